//! What a tool may ask of its caller while it runs.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::Availability;
use crate::session::Session;

/// How grave a message to the client is (RFC 5424, as MCP uses it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Of use to someone who looks for a mistake.
    Debug,
    /// Ordinary course.
    Info,
    /// Something to look at.
    Warning,
    /// Something failed.
    Error,
}

/// The way back to the client of one call; the serving edge implements it. Both are best effort: a client that does
/// not listen is no reason for a tool to fail.
pub trait ClientLink: Send + Sync {
    /// `done` of `total`, where the client asked for progress.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>);

    /// A message for the client's log.
    fn log(&self, level: LogLevel, message: &str);
}

/// How many changes a reader may lag behind before it loses the oldest.
const WAITING_UPDATES: usize = 256;

/// Where a server says that one of its resources is not what it was, for the clients that subscribed to it. Cheap to
/// clone; a host has one of them.
///
/// Tools reach it by [`ToolContext::resource_updated`], a server's own tasks by [`ServerEnv`](super::ServerEnv).
#[derive(Debug, Clone)]
pub struct ResourceUpdates(broadcast::Sender<Arc<str>>);

impl Default for ResourceUpdates {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_UPDATES))
    }
}

impl ResourceUpdates {
    /// Tells that the resource with this URI has changed.
    pub fn notify(&self, uri: &str) {
        // Nobody who listens is no failure.
        let _ = self.0.send(uri.into());
    }

    /// The URIs of what changes from now on, whoever may see it.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.0.subscribe()
    }
}

/// The caller's side of one call: session, deadline, cancellation, progress and log. Cheap to clone.
///
/// ```
/// use aster_runtime::{ToolContext, mcp_tool};
///
/// /// Counts to ten.
/// #[mcp_tool(tier = Standard)]
/// async fn count(ctx: &ToolContext) -> String {
///     for step in 1..=10 {
///         ctx.progress(f64::from(step), Some(10.0), None);
///     }
///     format!("done for {}", ctx.session().agent())
/// }
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct ToolContext {
    session: Arc<Session>,
    call_id: Arc<str>,
    deadline: Option<Instant>,
    cancelled: CancellationToken,
    client: Option<Arc<dyn ClientLink>>,
    updates: Option<ResourceUpdates>,
    availability: Availability,
}

impl ToolContext {
    /// A context for one call; the host makes it.
    #[must_use]
    pub fn new(session: Arc<Session>, call_id: impl Into<Arc<str>>) -> Self {
        Self {
            session,
            call_id: call_id.into(),
            deadline: None,
            cancelled: CancellationToken::new(),
            client: None,
            updates: None,
            availability: Availability::default(),
        }
    }

    /// The same, with a deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The same, cancelled by this token.
    #[must_use]
    pub fn with_cancellation(mut self, token: CancellationToken) -> Self {
        self.cancelled = token;
        self
    }

    /// The same, with a way back to the client.
    #[must_use]
    pub fn with_client(mut self, client: Option<Arc<dyn ClientLink>>) -> Self {
        self.client = client;
        self
    }

    /// The same, with a way to those who subscribed to resources.
    #[must_use]
    pub fn with_updates(mut self, updates: ResourceUpdates) -> Self {
        self.updates = Some(updates);
        self
    }

    /// The same, with the list of the tool's own server.
    #[must_use]
    pub fn with_availability(mut self, availability: Availability) -> Self {
        self.availability = availability;
        self
    }

    /// The session that calls.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The id of this call, the same as in the audit.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// When the caller stops waiting.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether the caller has given up. A plain `fn` that works long looks here now and then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Completes when the caller gives up.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// The token behind [`is_cancelled`](Self::is_cancelled), to hand on to work of one's own.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancelled
    }

    /// Reports progress: `done` of `total`, in a unit of the tool's choice, growing from call to call.
    pub fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(client) = &self.client {
            client.progress(done, total, message);
        }
    }

    /// Tells all clients that subscribed to it that the resource with this URI has changed.
    pub fn resource_updated(&self, uri: &str) {
        if let Some(updates) = &self.updates {
            updates.notify(uri);
        }
    }

    /// Which of the tools, resources and prompts of the tool's own server are offered.
    #[must_use]
    pub fn availability(&self) -> &Availability {
        &self.availability
    }

    /// Writes to the client's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        if let Some(client) = &self.client {
            client.log(level, message);
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id)
            .field("session", &self.session.id())
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
