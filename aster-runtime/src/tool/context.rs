//! What a tool may ask of its caller while it runs.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::ask::{
    self, AskError, ClientAnswer, ClientInfo, ClientRequest, Elicitation, Elicited, Root, Sampled, Sampling,
};
use super::{Availability, JsonObject, TimeLimit};
use crate::session::Session;

/// How long the client may take to answer a question of a tool.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(300);

/// How long one call may wait in all for its client's answers. Its own time limit stands still meanwhile, so that without
/// this a tool could ask for ever.
pub const ASK_LIMIT: Duration = Duration::from_secs(1800);

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

/// The way back to the client of one call; the serving edge implements it. Progress and log are best effort: a client that
/// does not listen is no reason for a tool to fail.
pub trait ClientLink: Send + Sync {
    /// `done` of `total`, where the client asked for progress.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>);

    /// A message for the client's log.
    fn log(&self, level: LogLevel, message: &str);

    /// Who the client is and what it can be asked; nothing, where nobody is there to ask.
    fn client(&self) -> ClientInfo {
        ClientInfo::default()
    }

    /// Asks the client all of this at once, and answers in the same order. Dropping the future takes the questions back.
    fn ask(&self, requests: Vec<ClientRequest>) -> BoxFuture<'_, Vec<Result<ClientAnswer, AskError>>> {
        let nobody = |request: ClientRequest| Err(AskError::Unsupported(request.kind()));
        Box::pin(ready(requests.into_iter().map(nobody).collect()))
    }
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

/// The caller's side of one call: session, deadline, cancellation, progress, log, and questions to the client. Cheap to
/// clone.
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
    limit: TimeLimit,
    cancelled: CancellationToken,
    client: Option<Arc<dyn ClientLink>>,
    updates: Option<ResourceUpdates>,
    availability: Option<Availability>,
}

impl ToolContext {
    /// A context for one call; the host makes it.
    #[must_use]
    pub fn new(session: Arc<Session>, call_id: impl Into<Arc<str>>) -> Self {
        Self {
            session,
            call_id: call_id.into(),
            limit: TimeLimit::default(),
            cancelled: CancellationToken::new(),
            client: None,
            updates: None,
            availability: None,
        }
    }

    /// The same, with a deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.limit = TimeLimit::until(deadline.into());
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
        self.availability = Some(availability);
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

    /// When the caller stops waiting. What a call waits for its client's answers does not count, so that this moves, by
    /// [`ASK_LIMIT`] at most.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.limit.deadline().map(Instant::from)
    }

    pub(crate) fn limit(&self) -> &TimeLimit {
        &self.limit
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

    /// Reports progress: `done` of `total`, in a unit of the tool's choice, growing from call to call. What does not grow,
    /// or is no finite number, is not sent (MCP, basic, progress: the value must increase).
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

    /// Which of the tools, resources and prompts of the tool's own server are offered. Outside a host nobody hears of it.
    #[must_use]
    pub fn availability(&self) -> Availability {
        self.availability.clone().unwrap_or_default()
    }

    /// Writes to the client's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        if let Some(client) = &self.client {
            client.log(level, message);
        }
    }

    /// Who the client is and what it can be asked: for a tool that has another way where it cannot.
    #[must_use]
    pub fn client(&self) -> ClientInfo {
        self.client.as_ref().map(|client| client.client()).unwrap_or_default()
    }

    /// Asks the client's user to fill in a form.
    ///
    /// # Errors
    ///
    /// Where nobody can be asked, or there is no answer to the question; see [`AskError`].
    pub async fn elicit(&self, form: Elicitation) -> Result<Elicited<JsonObject>, AskError> {
        match self.ask(form.into()).await? {
            ClientAnswer::Form(answer) => Ok(answer),
            ClientAnswer::Url(answer) => Ok(match answer {
                Elicited::Accepted(()) => Elicited::Accepted(JsonObject::new()),
                Elicited::Declined => Elicited::Declined,
                Elicited::Cancelled => Elicited::Cancelled,
            }),
            _ => Err(other_answer()),
        }
    }

    /// Asks the client's user for a value of this type, which must be flat; see [`Elicitation::of`].
    ///
    /// ```
    /// use aster_runtime::tool::{AskError, Elicited};
    /// use aster_runtime::{ToolContext, mcp_tool};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Table {
    ///     /// For how many?
    ///     guests: u8,
    ///     /// By the window?
    ///     #[serde(default)]
    ///     window: bool,
    /// }
    ///
    /// /// Books a table.
    /// #[mcp_tool(tier = Elevated)]
    /// async fn book(ctx: &ToolContext) -> Result<String, AskError> {
    ///     match ctx.elicit_as::<Table>("What table would you like?").await? {
    ///         Elicited::Accepted(table) => Ok(format!("a table for {}", table.guests)),
    ///         Elicited::Declined | Elicited::Cancelled => Ok("no table".to_owned()),
    ///     }
    /// }
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// As [`elicit`](Self::elicit), and where the type is more than a form can ask.
    pub async fn elicit_as<T: JsonSchema + DeserializeOwned>(
        &self,
        message: impl Into<String>,
    ) -> Result<Elicited<T>, AskError> {
        ask::typed(self.elicit(Elicitation::of::<T>(message)?).await?)
    }

    /// Asks the client's model.
    ///
    /// # Errors
    ///
    /// Where it cannot be asked or does not answer; see [`AskError`].
    pub async fn sample(&self, question: Sampling) -> Result<Sampled, AskError> {
        match self.ask(question.into()).await? {
            ClientAnswer::Sampled(answer) => Ok(answer),
            _ => Err(other_answer()),
        }
    }

    /// Asks for the folders that the client works in.
    ///
    /// # Errors
    ///
    /// Where it cannot be asked or does not answer; see [`AskError`].
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        match self.ask(ClientRequest::roots()).await? {
            ClientAnswer::Roots(roots) => Ok(roots),
            _ => Err(other_answer()),
        }
    }

    async fn ask(&self, request: ClientRequest) -> Result<ClientAnswer, AskError> {
        self.ask_all(vec![request]).await.pop().unwrap_or(Err(AskError::Closed))
    }

    /// Asks several things at once, which some clients then answer in one go, and answers in the same order.
    ///
    /// The call's own time limit stands still meanwhile; the client has [`ASK_TIMEOUT`], and all questions of one call
    /// together have [`ASK_LIMIT`].
    pub async fn ask_all(&self, requests: Vec<ClientRequest>) -> Vec<Result<ClientAnswer, AskError>> {
        let kinds: Vec<_> = requests.iter().map(ClientRequest::kind).collect();
        let Some(client) = &self.client else {
            return kinds.into_iter().map(|kind| Err(AskError::Unsupported(kind))).collect();
        };
        let left = ASK_LIMIT.saturating_sub(self.limit.stood());
        let (patience, late) =
            if left < ASK_TIMEOUT { (left, AskError::Exhausted) } else { (ASK_TIMEOUT, AskError::TimedOut) };
        let answers = async {
            let _paused = self.limit.pause();
            tokio::time::timeout(patience, client.ask(requests)).await.ok()
        };
        let answers = if patience.is_zero() { None } else { answers.await };
        answers.unwrap_or_else(|| vec![Err(late); kinds.len()])
    }
}

fn other_answer() -> AskError {
    AskError::Invalid("the client answered another question".to_owned())
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("call_id", &self.call_id)
            .field("session", &self.session.id())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}
