//! The last step of an admitted call: into a native function, or to the upstream of an external server.

use std::collections::HashMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::catalogue::{Asks, ExternalSettings, Health, Listing, Origin};
use crate::gate::Admitted;
use crate::session::Running;
use crate::spec::ToolSpec;
use crate::tool::{Invocation, JsonObject, ServerState, ToolContext, ToolResult};

/// The connection to one external server. The upstream edge implements it; a host may bring its own.
pub trait Upstream: Send + Sync + 'static {
    /// The server's name, as the configuration gives it.
    fn name(&self) -> &str;

    /// What the configuration says of its tools.
    fn settings(&self) -> ExternalSettings;

    /// What is run or connected to, its command or URL without secrets: a human who is asked about a call is shown it.
    fn endpoint(&self) -> Option<String> {
        None
    }

    /// What the server says of itself, now and whenever that changes.
    fn listing(&self) -> watch::Receiver<Arc<Listing>>;

    /// Waits until the server can be called, and starts it for this where it is down: what it then lists may be another list.
    /// Where it can be called now there is nothing to wait for, and nothing is given back.
    ///
    /// # Errors
    ///
    /// Where it cannot be called.
    fn ready(&self) -> Option<BoxFuture<'_, Result<(), DispatchError>>> {
        None
    }

    /// Calls a tool by the server's own name for it. Dropping the future cancels the call, which is what a host does once
    /// the context is cancelled.
    fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>>;

    /// The same of a server that has been made [ready](Self::ready), as long as it offers what this listing does: a server that
    /// was started anew after the call was decided may be another. Whoever takes a connection for the call looks at what it
    /// lists after it has it.
    fn call_as_listed(
        &self,
        listing: &Arc<Listing>,
        tool: &str,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        if !offers(self, listing) {
            return Box::pin(ready(Err(changed(self.name()))));
        }
        self.call(tool, arguments, context)
    }

    /// Reads a resource of the listing by its URI. The result's value is `{"contents": […]}` (MCP `ReadResourceResult`).
    fn read(&self, uri: String, context: ToolContext) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        let _ = (uri, context);
        let reason = "it has no resources".to_owned();
        Box::pin(ready(Err(DispatchError::Unavailable { server: self.name().to_owned(), reason })))
    }

    /// Gets a prompt of the listing. The result's value is `{"messages": […]}` (MCP `GetPromptResult`).
    fn get(
        &self,
        prompt: &str,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        let _ = (prompt, arguments, context);
        let reason = "it has no prompts".to_owned();
        Box::pin(ready(Err(DispatchError::Unavailable { server: self.name().to_owned(), reason })))
    }

    /// Ends the connection and whatever the upstream started for it.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// An external server that is not started, and why: switched off, without consent, or not startable as configured.
#[derive(Debug)]
pub struct IdleUpstream {
    name: String,
    settings: ExternalSettings,
    listing: watch::Sender<Arc<Listing>>,
}

impl IdleUpstream {
    /// A server of this name in this state, which stays.
    #[must_use]
    pub fn new(name: impl Into<String>, settings: ExternalSettings, health: Health) -> Arc<Self> {
        let listing = watch::Sender::new(Arc::new(Listing::without_tools(health)));
        Arc::new(Self { name: name.into(), settings, listing })
    }
}

impl Upstream for IdleUpstream {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self) -> ExternalSettings {
        self.settings.clone()
    }

    fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.subscribe()
    }

    fn call(
        &self,
        _: &str,
        _: JsonObject,
        _: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        let reason = self.listing.borrow().health.to_string();
        Box::pin(ready(Err(DispatchError::Unavailable { server: self.name.clone(), reason })))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
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
    #[error("the call took longer than its limit of {limit:?} and was cancelled")]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// The caller gave up.
    #[error("the call was cancelled")]
    Cancelled,
    /// The function panicked.
    #[error("the tool panicked; the server goes on")]
    Panicked,
}

/// Where calls go: the state of the native servers, and the upstreams of the others.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) natives: HashMap<String, ServerState>,
    pub(crate) upstreams: HashMap<String, Arc<dyn Upstream>>,
    /// How long a native call may take that does not say so itself.
    pub(crate) timeout: Duration,
}

/// Sends an admitted call to where its tool runs. It was decided by this listing, where its server is not native.
pub(crate) async fn dispatch(
    routes: &Routes,
    admitted: Admitted,
    listing: Option<Arc<Listing>>,
    context: ToolContext,
) -> Result<ToolResult, DispatchError> {
    let (call, slot) = admitted.into_call();
    let server = call.tool.id().server();
    let unavailable = || DispatchError::Unavailable {
        server: server.to_owned(),
        reason: "it is not running; `aster mcp list` shows why".to_owned(),
    };
    match call.tool.origin() {
        Origin::Native(spec) => {
            let state = routes.natives.get(server).cloned().ok_or_else(unavailable)?;
            let limit = call.tool.timeout().unwrap_or(routes.timeout);
            let invocation = Invocation { state, context, arguments: call.arguments };
            native(spec, Running::new(call.session, slot), invocation, limit).await
        }
        Origin::Mounted | Origin::External => {
            let upstream = routes.upstreams.get(server).ok_or_else(unavailable)?;
            let listing = listing.ok_or_else(unavailable)?;
            let name = call.tool.id().tool();
            let result = match call.tool.asks() {
                Asks::Tool => upstream.call_as_listed(&listing, name, call.arguments, context).await,
                // As the call of a tool sees to itself, on the connection that it takes.
                Asks::Prompt | Asks::Resource(_) if !offers(&**upstream, &listing) => Err(changed(server)),
                Asks::Prompt => upstream.get(name, call.arguments, context).await,
                Asks::Resource(template) => {
                    let uri = template.expand(|name| call.arguments.get(name).and_then(Value::as_str));
                    upstream.read(uri, context).await
                }
            };
            drop(slot);
            result
        }
    }
}

/// Whether the server still offers what this listing does.
fn offers(upstream: &(impl Upstream + ?Sized), listing: &Arc<Listing>) -> bool {
    upstream.listing().borrow().offers_as(listing)
}

fn changed(server: &str) -> DispatchError {
    let reason =
        "what it lists changed after the call was decided; nothing was called. Look at its list again";
    DispatchError::Unavailable { server: server.to_owned(), reason: reason.to_owned() }
}

/// Runs a native function on a task of its own, so that a panic in it is this call's error and no more.
async fn native(
    spec: &'static ToolSpec,
    running: Running,
    mut invocation: Invocation,
    limit: Duration,
) -> Result<ToolResult, DispatchError> {
    if let Some(deadline) = Instant::now().checked_add(limit) {
        invocation.context = invocation.context.with_deadline(deadline.into());
    }
    let clock = invocation.context.limit().clone();
    // A plain `fn` learns by its token that nobody waits any more, whichever way that comes about.
    let abandoned = invocation.context.cancellation().clone().drop_guard();
    // Aborted where the caller gives up. A plain `fn` cannot be aborted: its thread is left to finish alone.
    let task = AbortOnDropHandle::new(tokio::spawn(running.within((spec.call)(invocation))));
    let ended = tokio::select! {
        biased;
        ended = task => ended,
        () = clock.passed() => return Err(DispatchError::TimedOut { limit }),
    };
    abandoned.disarm();
    match ended {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Ok(error.into()),
        Err(join) if join.is_panic() => Err(DispatchError::Panicked),
        Err(_) => Err(DispatchError::Cancelled),
    }
}
