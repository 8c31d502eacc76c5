//! The gate: the one place that turns a proposed call into an admitted or a denied one.
//!
//! The order of its checks is [`admit`]'s body. Each check has a module of its own; `rules`, `egress` and `secrets`
//! are pure, so that what they decide can be tested without a runtime.

mod admit;
pub mod approval;
pub mod egress;
pub mod hooks;
pub mod rules;
pub mod secrets;

use std::sync::Arc;
use std::time::Duration;

pub use admit::{Admitted, admit};
use serde::Serialize;

use self::approval::Approver;
use self::egress::EgressPolicy;
use self::hooks::Hook;

/// What the gate decides by.
#[derive(Clone)]
#[non_exhaustive]
pub struct Gate {
    /// Who may be asked about Restricted calls; with none they are denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// How long a human may take to answer.
    pub approval_timeout: Duration,
    /// What looks at every call first.
    pub hooks: Vec<Arc<dyn Hook>>,
    /// Where a call's URLs may lead.
    pub egress: EgressPolicy,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            approver: None,
            approval_timeout: Duration::from_secs(300),
            hooks: Vec::new(),
            egress: EgressPolicy::default(),
        }
    }
}

/// Which check refused a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
    /// A hook.
    Hook,
    /// A URL leads where calls may not go.
    Egress,
    /// A human, or the lack of one.
    Approval,
    /// The record of the call could not be written.
    Audit,
}

/// A refusal: which check, and a text for the model that says why and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denied {
    /// Which check.
    pub check: Check,
    /// Why, for the model.
    pub message: String,
}

impl Denied {
    /// A refusal by this check.
    #[must_use]
    pub fn new(check: Check, message: impl Into<String>) -> Self {
        Self { check, message: message.into() }
    }
}
