//! A server in this process: one that was written with the SDK's macros, mounted as it is.
//!
//! It speaks MCP over a pair of pipes in memory: what it lists is read leniently, and its calls have deadlines. Otherwise it
//! is a native server. Tools, resources and prompts have the tiers and the group of [`ExternalSettings`], and nothing of it is
//! pinned, since its code is that of the binary. It is not started again, for it ends with the process or by its own fault.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{
    ClientRequest, ErrorCode, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
    ReadResourceRequestParams,
};
use rmcp::{ServerHandler, ServiceExt};
use tokio::io::split;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{CallLimits, Connection, Era, Failure};
use super::diagnostics::Diagnostics;
use super::raw::Tap;
use crate::catalogue::{ExternalSettings, Health, Listing, Pinning};
use crate::dispatch::{DispatchError, Upstream};
use crate::tool::{JsonObject, NOT_FOUND, ToolContext, ToolError, ToolResult};

/// How much one side may write before the other reads, in bytes.
const PIPE: usize = 64 << 10;

/// How long the server may take from its start to its complete list of tools, and again whenever that changes.
const STARTUP: Duration = Duration::from_secs(60);

/// How long a call may take, as of a server that is a program.
const LIMITS: CallLimits = CallLimits { idle: Duration::from_secs(60), total: Duration::from_secs(600) };

/// Why a server is down that was closed.
const CLOSED: &str = "it has been closed";

/// A [`ServerHandler`] of `rmcp` as a server of a host, under its own name there and behind its gate.
///
/// Tools, resources, templates of resources and prompts are mounted. What the server asks of its client is refused, its
/// completions are not asked for, and whoever subscribes to one of its resources hears of no change.
///
/// ```
/// use aster_runtime::catalogue::ExternalSettings;
/// use aster_runtime::upstream::MountedServer;
/// use aster_runtime::{CallOptions, Host, Profile, Tier};
/// use rmcp::{ServerHandler, tool, tool_router};
///
/// #[derive(Clone)]
/// struct Clock;
///
/// #[tool_router(server_handler)]
/// impl Clock {
///     #[tool(description = "Tells how many seconds a day has.")]
///     fn day(&self) -> String {
///         "86400".to_owned()
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let settings = ExternalSettings::default().tier(Tier::Standard);
/// let host = Host::builder().with_upstream(MountedServer::mount("clock", Clock, settings)).build().await?;
/// host.settle(std::time::Duration::from_secs(5)).await;
/// let session = host.session(Profile::new("assistant"))?;
/// let day = session.execute("clock/day", Default::default(), CallOptions::default()).await;
/// assert_eq!(day.result.to_text(), "86400");
/// # Ok(())
/// # }
/// ```
pub struct MountedServer {
    name: String,
    settings: ExternalSettings,
    state: watch::Receiver<State>,
    listing: watch::Receiver<Arc<Listing>>,
    closing: CancellationToken,
    _close_on_drop: DropGuard,
}

#[derive(Debug, Clone)]
enum State {
    Starting,
    Ready(Arc<Connection>),
    Down(Arc<str>),
}

impl MountedServer {
    /// Starts the server in the background, under this name, and returns at once. A tool that the settings say nothing of
    /// is Elevated, or Restricted where it says of itself that it destroys.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn mount<H: ServerHandler>(
        name: impl Into<String>,
        handler: H,
        settings: ExternalSettings,
    ) -> Arc<Self> {
        let name = name.into();
        let settings = ExternalSettings { native: true, pins: Pinning::Off, ..settings };
        let (state, state_seen) = watch::channel(State::Starting);
        let (listing, listing_seen) = watch::channel(Arc::new(Listing::without_tools(Health::Starting)));
        let closing = CancellationToken::new();
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let server = tokio::spawn(closing.clone().run_until_cancelled_owned(async move {
            match handler.serve(theirs).await {
                Ok(service) => service.waiting().await.map(drop).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            }
        }));
        let keeper = Keeper { name: name.clone(), state, listing, closing: closing.clone() };
        tokio::spawn(async move {
            let reason = keeper.keep(ours).await;
            // With the pipe gone, or closing, it ends by itself.
            let told = match timeout(Duration::from_secs(1), server).await {
                Ok(Err(error)) if error.is_panic() => "it panicked".to_owned(),
                Ok(Ok(Some(Err(error)))) if reason != CLOSED => format!("{reason}: {error}"),
                _ => reason,
            };
            keeper.down(&told);
        });
        Arc::new(Self {
            name,
            settings,
            state: state_seen,
            listing: listing_seen,
            _close_on_drop: closing.clone().drop_guard(),
            closing,
        })
    }

    /// The connection, once there is one.
    async fn connection(&self) -> Result<Arc<Connection>, DispatchError> {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| !matches!(state, State::Starting)).await;
        match settled.as_deref() {
            Ok(State::Ready(connection)) => Ok(Arc::clone(connection)),
            Ok(State::Down(reason)) => Err(self.unavailable(reason)),
            _ => Err(self.unavailable(CLOSED)),
        }
    }

    /// Asks for what is not a call of a tool.
    async fn ask(&self, request: ClientRequest) -> Result<ToolResult, DispatchError> {
        let connection = self.connection().await?;
        self.ended(connection.ask(request, LIMITS.idle).await).await
    }

    async fn ended(
        &self,
        result: Result<ToolResult, Option<DispatchError>>,
    ) -> Result<ToolResult, DispatchError> {
        match result {
            Err(None) => Err(self.end().await),
            Err(Some(error)) => Err(error),
            Ok(result) => Ok(result),
        }
    }

    /// Why the connection ended, which its keeper is about to find out.
    async fn end(&self) -> DispatchError {
        let mut state = self.state.clone();
        match state.wait_for(|state| matches!(state, State::Down(_))).await.as_deref() {
            Ok(State::Down(reason)) => self.unavailable(reason),
            _ => self.unavailable(CLOSED),
        }
    }

    fn unavailable(&self, reason: &str) -> DispatchError {
        DispatchError::Unavailable { server: self.name.clone(), reason: reason.to_owned() }
    }
}

impl Upstream for MountedServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self) -> ExternalSettings {
        self.settings.clone()
    }

    fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.clone()
    }

    fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        let tool = tool.to_owned();
        async move {
            let connection = self.connection().await?;
            self.ended(connection.call(&tool, arguments, &context, LIMITS).await).await
        }
        .boxed()
    }

    fn read(&self, uri: String, _: ToolContext) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        async move {
            let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
            let read = self.ask(ClientRequest::ReadResourceRequest(request)).await;
            match read {
                // As a native resource says it that is described by its template and is not there.
                Err(DispatchError::Protocol { code, message })
                    if code == i64::from(ErrorCode::RESOURCE_NOT_FOUND.0) =>
                {
                    Ok(ToolError::new(message).with_code(NOT_FOUND).into())
                }
                read => read,
            }
        }
        .boxed()
    }

    fn get(
        &self,
        prompt: &str,
        arguments: JsonObject,
        _: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        let params = GetPromptRequestParams::new(prompt).with_arguments(arguments);
        self.ask(ClientRequest::GetPromptRequest(GetPromptRequest::new(params))).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.closing.cancel();
            // The keeper drops its end when it is done.
            let mut state = self.state.clone();
            while state.changed().await.is_ok() {}
        }
        .boxed()
    }
}

impl fmt::Debug for MountedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MountedServer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The task behind a mounted server.
struct Keeper {
    name: String,
    state: watch::Sender<State>,
    listing: watch::Sender<Arc<Listing>>,
    closing: CancellationToken,
}

impl Keeper {
    /// Connects, tells of the server, keeps its lists current, and gives back why it ended.
    async fn keep(&self, pipe: tokio::io::DuplexStream) -> String {
        let diagnostics = Arc::new(Diagnostics::new(self.name.as_str(), []));
        let tap = Tap::of_all(Arc::clone(&diagnostics));
        let (reader, writer) = split(pipe);
        let opening = async {
            let connection =
                Connection::open(reader, writer, Era::Legacy, Arc::clone(&tap), diagnostics).await?;
            let listing = connection.listing().await?;
            Ok((connection, listing))
        };
        let opened = tokio::select! {
            biased;
            () = self.closing.cancelled() => return CLOSED.to_owned(),
            opened = timeout(STARTUP, opening) => opened,
        };
        let (connection, listing) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(Failure::Refused { message, .. })) => return format!("it cannot be used: {message}"),
            Ok(Err(Failure::Ended)) => return "it ended before it listed its tools".to_owned(),
            Err(_) => return format!("it did not list its tools within {STARTUP:?}"),
        };
        let connection = Arc::new(connection);
        self.listing.send_replace(Arc::new(listing));
        self.state.send_replace(State::Ready(Arc::clone(&connection)));

        let refresh = connection.follow(&self.name, STARTUP, |listing| {
            self.listing.send_replace(Arc::new(listing));
        });
        let reason = tokio::select! {
            biased;
            () = self.closing.cancelled() => CLOSED,
            () = tap.ended.cancelled() => tap.failure().unwrap_or("it ended"),
            never = refresh => match never {},
        };
        let reason = reason.to_owned();
        // Ends what is pending, whoever still holds the connection.
        tap.end();
        reason
    }

    /// All stays listed, with the reason that it cannot be called.
    fn down(&self, reason: &str) {
        let mut listing = Listing::clone(&self.listing.borrow());
        listing.health = Health::Down(reason.to_owned());
        self.listing.send_replace(Arc::new(listing));
        self.state.send_replace(State::Down(reason.into()));
    }
}
