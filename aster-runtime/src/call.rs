//! The way of one call, as the types it passes through: [`Proposed`] by a caller, admitted by the gate (see
//! [`crate::gate::Admitted`]), [`Completed`] by dispatch or by a refusal.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::catalogue::{InvalidArguments, Tool};
use crate::session::Session;
use crate::tool::{JsonObject, ToolResult};

/// A call that a session wants to make: resolved and decoded, nothing else.
#[derive(Debug, Clone)]
pub struct Proposed {
    /// The call's id, a UUID of version 7, the same in every record of it.
    pub call_id: Arc<str>,
    /// Who calls.
    pub session: Arc<Session>,
    /// What is called.
    pub tool: Arc<Tool>,
    /// With what.
    pub arguments: JsonObject,
}

/// Which check refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Check {
    /// The session does not know such a tool.
    Scope,
    /// The request could not be read.
    Request,
    /// The arguments do not fit the schema.
    Arguments,
    /// The session has not looked at the schema.
    Describe,
    /// A rule, or the lack of rules that can be read.
    Rule,
    /// A hook.
    Hook,
    /// A URL leads where calls may not go.
    Egress,
    /// An argument holds a secret.
    Secrets,
    /// The session has made all the calls that it may.
    Budget,
    /// A human, or the lack of one.
    Approval,
    /// There are too many calls.
    Limit,
    /// The tool is no longer what was looked at.
    Changed,
    /// The record of the call could not be written.
    Audit,
}

impl Check {
    /// The name that it has in a record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Request => "request",
            Self::Arguments => "arguments",
            Self::Describe => "describe",
            Self::Rule => "rule",
            Self::Hook => "hook",
            Self::Egress => "egress",
            Self::Secrets => "secrets",
            Self::Budget => "budget",
            Self::Approval => "approval",
            Self::Limit => "limit",
            Self::Changed => "changed",
            Self::Audit => "audit",
        }
    }
}

/// Who had a say in what became of a call, each by its name: for the audit alone, since where a rule stands is the user's
/// affair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct By {
    /// Where the rule stands that decided, or that had a human asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<str>>,
    /// The hook that decided, or that had a human asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Box<str>>,
    /// Who or what answered for the human.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<Box<str>>,
}

impl By {
    /// The rule at this place, if it is one.
    pub(crate) fn rule(place: Option<&str>) -> Self {
        Self { rule: place.map(Into::into), ..Self::default() }
    }

    /// This hook.
    pub(crate) fn hook(name: &str) -> Self {
        Self { hook: Some(name.into()), ..Self::default() }
    }

    /// Whether nobody had: the check alone decided, or the tier.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same, with the others where there is none.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            rule: self.rule.or(others.rule),
            hook: self.hook.or(others.hook),
            approver: self.approver.or(others.approver),
        }
    }

    /// The same with every name as this makes it.
    pub(crate) fn renamed(&self, name: impl Fn(&str) -> String) -> Self {
        let named = |said: &Option<Box<str>>| said.as_deref().map(|said| name(said).into());
        Self { rule: named(&self.rule), hook: named(&self.hook), approver: named(&self.approver) }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, hook, approver } = self;
        let approver = approver.as_deref().map(str::to_owned);
        let hook = hook.as_deref().map(|hook| format!("the hook `{hook}`"));
        let rule = rule.as_deref().map(|place| format!("the rule at {place}"));
        f.write_str(&Vec::from_iter([approver, hook, rule].into_iter().flatten()).join(", "))
    }
}

/// A refusal: which check, and a text for the model that says why and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denied {
    /// Which check.
    pub check: Check,
    /// Why, for the model and the audit.
    pub message: String,
    /// What the next try needs, for the model alone: it may be long.
    pub hint: Option<String>,
    /// By whom.
    pub by: By,
}

impl From<InvalidArguments> for Denied {
    fn from(error: InvalidArguments) -> Self {
        Self { hint: Some(error.hint()), ..Self::new(Check::Arguments, error.problem()) }
    }
}

impl Denied {
    /// A refusal by this check.
    #[must_use]
    pub fn new(check: Check, message: impl Into<String>) -> Self {
        Self { check, message: message.into(), hint: None, by: By::default() }
    }

    /// The same, by these.
    #[must_use]
    pub fn by(self, by: By) -> Self {
        Self { by, ..self }
    }

    /// What the caller is told.
    #[must_use]
    pub fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\n{hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool answered.
    Ok,
    /// The tool, or its server for it, answered that it failed.
    ToolError,
    /// The gate refused; nothing was called.
    Denied,
    /// The server could not be reached, or broke off.
    Failed,
    /// The deadline passed.
    TimedOut,
    /// The caller gave up.
    Cancelled,
    /// The function panicked.
    Panicked,
}

impl Outcome {
    /// The name that it has in a record.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
        }
    }
}

/// A call that is over.
#[derive(Debug, Clone)]
pub struct Completed {
    /// What came of it.
    pub outcome: Outcome,
    /// The check that refused it, where one did.
    pub denied: Option<Check>,
    /// What the caller is told.
    pub result: ToolResult,
    /// How long it took, the gate included.
    pub duration: Duration,
}
