//! The way of one call, as the types it passes through: [`Proposed`] by a caller, admitted by the gate (see
//! [`crate::gate::Admitted`]), [`Completed`] by dispatch or by a refusal.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::catalogue::Tool;
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

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The tool answered.
    Ok,
    /// The tool answered that it failed.
    ToolError,
    /// The gate refused; nothing was called.
    Denied,
    /// The server could not be reached, broke off, or refused the call.
    Failed,
    /// The deadline passed.
    TimedOut,
    /// The caller gave up.
    Cancelled,
    /// The function panicked.
    Panicked,
}

/// A call that is over.
#[derive(Debug, Clone)]
pub struct Completed {
    /// What came of it.
    pub outcome: Outcome,
    /// What the caller is told.
    pub result: ToolResult,
    /// How long it took, the gate included.
    pub duration: Duration,
}
