//! What a call needs before it may run. Pure.

use crate::catalogue::Tool;
use crate::spec::Tier;

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Nothing more.
    Run,
    /// A human's approval; why.
    Ask(&'static str),
}

/// What the tool's tier asks for.
#[must_use]
pub fn requirement(tool: &Tool) -> Requirement {
    match tool.tier() {
        Tier::Standard | Tier::Elevated => Requirement::Run,
        Tier::Restricted => Requirement::Ask("the tool is Restricted"),
    }
}
