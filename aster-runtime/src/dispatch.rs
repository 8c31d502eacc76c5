//! The last step of an admitted call: into a native function, or to the upstream of an external server.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::catalogue::{ExternalSettings, Listing};
use crate::tool::{JsonObject, ToolContext, ToolResult};

/// The connection to one external server. The upstream edge implements it; a host may bring its own.
pub trait Upstream: Send + Sync + 'static {
    /// The server's name, as the configuration gives it.
    fn name(&self) -> &str;

    /// What the configuration says of its tools.
    fn settings(&self) -> ExternalSettings;

    /// What the server says of itself, now and whenever that changes.
    fn listing(&self) -> watch::Receiver<Arc<Listing>>;

    /// Calls a tool by the server's own name for it. Dropping the future cancels the call.
    fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>>;

    /// Ends the connection and whatever the upstream started for it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Why an admitted call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The server cannot be reached; the reason.
    #[error("server `{server}` is not available: {reason}")]
    Unavailable {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The server answered with a protocol error.
    #[error("the server refused the call: {message} (code {code})")]
    Protocol {
        /// The JSON-RPC error code.
        code: i64,
        /// The server's message.
        message: String,
    },
    /// The deadline passed.
    #[error("the call took longer than its limit of {seconds} s and was cancelled")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// The caller gave up.
    #[error("the call was cancelled")]
    Cancelled,
    /// The function panicked.
    #[error("the tool panicked; the server goes on")]
    Panicked,
}
