//! What a call needs before it may run. Pure.

use crate::catalogue::Tool;
use crate::spec::Tier;

/// What a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// Nothing more.
    Run,
    /// A human's approval; why.
    Ask(String),
}

/// What the tool's tier asks for, or else a hook does.
#[must_use]
pub fn requirement(tool: &Tool, hook: Option<String>) -> Requirement {
    match tool.tier() {
        Tier::Restricted => Requirement::Ask("the tool is Restricted".to_owned()),
        Tier::Standard | Tier::Elevated => hook.map_or(Requirement::Run, Requirement::Ask),
    }
}
