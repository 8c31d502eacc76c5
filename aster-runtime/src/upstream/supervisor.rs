//! Keeps one server running: starts it, watches it, tells what happens to it, and starts it again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{CallLimits, Connection, Era, Failure};
use super::diagnostics::Diagnostics;
use super::raw::Tap;
use super::stdio::{Process, StdioServer};
use crate::catalogue::{ExternalSettings, Health, Listing};
use crate::dispatch::{DispatchError, Upstream};
use crate::tool::{JsonObject, ToolContext, ToolResult};

/// How often a server is started again without anyone asking for it.
const MAX_RESTARTS: u32 = 5;

/// How long a server must have run for its earlier failures to be forgotten.
const STABLE: Duration = Duration::from_secs(60);

/// How long a connection that ended waits for the process to end, so that the reason can say how it did.
const EXIT_PATIENCE: Duration = Duration::from_secs(1);

/// How long output may still come after the process has ended: what it wrote last, or what a child of it writes.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The pause before a server is asked again to tell of changes.
const RESUBSCRIBE: Duration = Duration::from_secs(5);

/// Why a server is down that was closed.
const CLOSED: &str = "it has been closed";

/// Why a call is not sent to a server that is up.
const CHANGED: &str =
    "what it lists changed after the call was decided; nothing was called. Describe the tool again";

/// How the server is doing, for those who want to call it.
#[derive(Debug, Clone)]
enum State {
    Starting,
    Ready(Arc<Connection>),
    Down {
        /// Grows with every time the server goes down.
        attempt: u64,
        reason: Arc<str>,
    },
}

/// An external server over standard input and output, kept running by a task of its own.
///
/// [`close`](Upstream::close) ends it in order. Dropping the last handle does so in the background, and the end of the
/// runtime kills it.
pub struct StdioUpstream {
    server: Arc<StdioServer>,
    state: watch::Receiver<State>,
    listing: watch::Receiver<Arc<Listing>>,
    /// The attempt after which someone asked for another.
    wanted: watch::Sender<u64>,
    diagnostics: Arc<Diagnostics>,
    closing: CancellationToken,
    _close_on_drop: DropGuard,
}

impl StdioUpstream {
    /// Starts the server in the background and returns at once.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn spawn(server: StdioServer) -> Arc<Self> {
        let (state, state_seen) = watch::channel(State::Starting);
        let (listing, listing_seen) = watch::channel(Arc::new(Listing::without_tools(Health::Starting)));
        let (wanted, wanted_seen) = watch::channel(0);
        let closing = CancellationToken::new();
        let diagnostics =
            Arc::new(Diagnostics::new(server.name.as_str(), server.env.values().chain(&server.secrets)));
        let server = Arc::new(server);
        let supervisor = Supervisor {
            server: Arc::clone(&server),
            state,
            listing,
            wanted: wanted_seen,
            diagnostics: Arc::clone(&diagnostics),
            closing: closing.clone(),
            era: Era::Unknown,
        };
        tokio::spawn(supervisor.run());
        Arc::new(Self {
            server,
            state: state_seen,
            listing: listing_seen,
            wanted,
            diagnostics,
            _close_on_drop: closing.clone().drop_guard(),
            closing,
        })
    }

    /// The last lines that the server wrote beside its messages, of its present or else its last run: for whoever
    /// looks for the reason that it does not work. They are safe to show on a terminal.
    #[must_use]
    pub fn recent_output(&self) -> Vec<String> {
        self.diagnostics.lines()
    }

    /// The connection, once there is one. A server that is down is started for this.
    async fn connection(&self) -> Result<Arc<Connection>, DispatchError> {
        let now = self.state.borrow().clone();
        let failed = match now {
            State::Ready(connection) if connection.is_open() => return Ok(connection),
            State::Ready(connection) => return Err(self.end_of(&connection).await),
            State::Down { attempt, .. } => {
                self.wanted.send_modify(|wanted| *wanted = attempt.max(*wanted));
                attempt
            }
            State::Starting => 0,
        };
        let mut state = self.state.clone();
        let settled = state
            .wait_for(|state| match state {
                State::Ready(_) => true,
                State::Down { attempt, .. } => *attempt > failed,
                State::Starting => false,
            })
            .await;
        match settled.as_deref() {
            Ok(State::Ready(connection)) => Ok(Arc::clone(connection)),
            Ok(State::Down { reason, .. }) => Err(self.unavailable(Some(reason))),
            _ => Err(self.unavailable(Some(CLOSED))),
        }
    }

    async fn call_on(
        &self,
        connection: &Arc<Connection>,
        tool: &str,
        arguments: JsonObject,
        context: &ToolContext,
    ) -> Result<ToolResult, DispatchError> {
        let limits = CallLimits { idle: self.server.call_timeout, total: self.server.call_limit };
        match connection.call(tool, arguments, context, limits).await {
            Ok(result) => Ok(result),
            Err(Some(error)) => Err(error),
            Err(None) => Err(self.end_of(connection).await),
        }
    }

    /// Why `connection` ended, which the supervisor is about to find out.
    async fn end_of(&self, connection: &Arc<Connection>) -> DispatchError {
        let mut state = self.state.clone();
        let settled = state.wait_for(|state| match state {
            State::Ready(current) => !Arc::ptr_eq(current, connection),
            _ => true,
        });
        match timeout(2 * EXIT_PATIENCE, settled).await {
            Ok(Ok(state)) => match &*state {
                State::Down { reason, .. } => self.unavailable(Some(reason)),
                _ => self.unavailable(None),
            },
            _ => self.unavailable(None),
        }
    }

    fn unavailable(&self, reason: Option<&str>) -> DispatchError {
        DispatchError::Unavailable {
            server: self.server.name.clone(),
            reason: reason.unwrap_or("the connection to it ended").to_owned(),
        }
    }
}

impl Upstream for StdioUpstream {
    fn name(&self) -> &str {
        &self.server.name
    }

    fn settings(&self) -> ExternalSettings {
        self.server.settings.clone()
    }

    fn endpoint(&self) -> Option<String> {
        let words = std::iter::once(&self.server.command).chain(&self.server.args);
        // A word with a space in it, or an empty one, would read as another number of words.
        let quoted = |word: &String| match word.contains(|c: char| c.is_whitespace() || c == '"') {
            false if !word.is_empty() => word.clone(),
            _ => format!("{word:?}"),
        };
        let line = words.map(quoted).collect::<Vec<_>>().join(" ");
        Some(self.diagnostics.redact(&line).into_owned())
    }

    fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.clone()
    }

    fn ready(&self) -> Option<BoxFuture<'_, Result<(), DispatchError>>> {
        if matches!(&*self.state.borrow(), State::Ready(connection) if connection.is_open()) {
            return None;
        }
        Some(async move { self.connection().await.map(drop) }.boxed())
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
            self.call_on(&connection, &tool, arguments, &context).await
        }
        .boxed()
    }

    fn call_as_listed(
        &self,
        listing: &Arc<Listing>,
        tool: &str,
        arguments: JsonObject,
        context: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        let (listing, tool) = (Arc::clone(listing), tool.to_owned());
        async move {
            let connection = match &*self.state.borrow() {
                State::Ready(connection) => Arc::clone(connection),
                State::Down { reason, .. } => return Err(self.unavailable(Some(reason))),
                State::Starting => return Err(self.unavailable(None)),
            };
            // Looked at after the connection: what one lists is published before it can be called.
            if !self.listing.borrow().offers_as(&listing) {
                return Err(self.unavailable(Some(CHANGED)));
            }
            self.call_on(&connection, &tool, arguments, &context).await
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.closing.cancel();
            // The supervisor drops its end when it is done.
            let mut state = self.state.clone();
            while state.changed().await.is_ok() {}
        }
        .boxed()
    }
}

impl fmt::Debug for StdioUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioUpstream").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The task behind an upstream.
struct Supervisor {
    server: Arc<StdioServer>,
    state: watch::Sender<State>,
    listing: watch::Sender<Arc<Listing>>,
    wanted: watch::Receiver<u64>,
    diagnostics: Arc<Diagnostics>,
    closing: CancellationToken,
    /// What an earlier run showed, so that a restart does not have to find out again.
    era: Era,
}

/// A server that is up.
struct Running {
    process: Process,
    connection: Arc<Connection>,
}

impl Supervisor {
    async fn run(mut self) {
        let closing = self.closing.clone();
        let mut failures = 0;
        for attempt in 1.. {
            self.diagnostics.clear();
            self.state.send_replace(State::Starting);
            let started = tokio::select! {
                biased;
                () = closing.cancelled() => break,
                started = self.start() => started,
            };
            match started {
                Ok((mut running, listing)) => {
                    let since = Instant::now();
                    let reason = self.attend(&mut running, listing).await;
                    self.down(attempt, reason.as_deref().unwrap_or(CLOSED));
                    // After it was told, since this may take its time.
                    running.process.close().await;
                    if reason.is_none() {
                        break;
                    }
                    if since.elapsed() > STABLE {
                        failures = 0;
                    }
                }
                Err(reason) => self.down(attempt, &reason),
            }
            failures += 1;
            let pause = self.pause(failures);
            tokio::select! {
                biased;
                () = closing.cancelled() => break,
                asked = self.wanted.wait_for(|wanted| *wanted >= attempt) => if asked.is_err() { break },
                () = sleep(pause), if failures <= MAX_RESTARTS => {}
            }
        }
        self.publish(Listing::without_tools(Health::Down(CLOSED.to_owned())));
    }

    /// The pause after this many failures in a row.
    fn pause(&self, failures: u32) -> Duration {
        self.server.restart_delay.saturating_mul(4_u32.saturating_pow(failures.saturating_sub(1)))
    }

    /// Starts the server and reads its tools, all within the one deadline for this.
    async fn start(&mut self) -> Result<(Running, Listing), String> {
        let deadline = Instant::now() + self.server.startup_timeout;
        let first = timeout_at(deadline, self.connect(self.era)).await;
        let result = match first {
            // Some servers exit on a request before `initialize`, some are out of step after it.
            Ok(Err(Start::Handshake { modern, .. })) if self.era == Era::Unknown => {
                let era = if modern { Era::Modern } else { Era::Legacy };
                self.diagnostics.clear();
                timeout_at(deadline, self.connect(era)).await
            }
            first => first,
        };
        match result {
            Ok(Ok((running, listing))) => {
                self.era = running.connection.era();
                Ok((running, listing))
            }
            Ok(Err(Start::Spawn(reason) | Start::Handshake { reason, .. })) => {
                // What was remembered may be what fails: the package may have been updated.
                self.era = Era::Unknown;
                Err(reason)
            }
            Err(_) => {
                let seconds = self.server.startup_timeout.as_secs_f32();
                Err(self.with_cause(format!("it did not list its tools within {seconds} s")))
            }
        }
    }

    async fn connect(&self, era: Era) -> Result<(Running, Listing), Start> {
        let (mut process, stdout, stdin) = Process::spawn(&self.server, &self.diagnostics)
            .map_err(|reason| Start::Spawn(self.diagnostics.safe(&reason)))?;
        let tap = Tap::new(Arc::clone(&self.diagnostics));
        let diagnostics = Arc::clone(&self.diagnostics);
        let opening = async {
            let connection = Connection::open(stdout, stdin, era, Arc::clone(&tap), diagnostics).await?;
            let listing = connection.listing().await?;
            Ok((connection, listing))
        };
        // A process that has ended may leave its output open to a child of its own that never answers.
        let opened = tokio::select! {
            opened = opening => opened,
            () = async { process.wait().await; sleep(LAST_WORDS).await } => Err(Failure::Ended),
        };
        match opened {
            Ok((connection, listing)) => Ok((Running { process, connection: Arc::new(connection) }, listing)),
            Err(Failure::Refused { message, .. }) => {
                let reason = self.with_cause(format!("it cannot be used: {message}"));
                Err(Start::Handshake { reason, modern: tap.modern_after_all.get().is_some() })
            }
            Err(Failure::Ended) => {
                let reason = self.reason(&mut process, &tap, " before it listed its tools").await;
                Err(Start::Handshake { reason, modern: tap.modern_after_all.get().is_some() })
            }
        }
    }

    /// Tells of a server that is up, keeps its list of tools current, and gives back why it ended; `None` where that
    /// was asked for.
    async fn attend(&self, running: &mut Running, listing: Listing) -> Option<String> {
        let connection = &running.connection;
        let tap = connection.tap();
        self.publish(listing);
        self.state.send_replace(State::Ready(Arc::clone(connection)));

        let refresh = connection
            .follow(&self.server.name, self.server.startup_timeout, |listing| self.publish(listing));
        let subscription = async {
            while connection.subscribe().await {
                sleep(RESUBSCRIBE).await;
                // Meanwhile there may have been a change that was not told.
                tap.list_changed.notify_one();
            }
            std::future::pending::<()>().await;
        };
        let ended = async {
            tokio::select! {
                () = tap.ended.cancelled() => {}
                () = async { running.process.wait().await; sleep(LAST_WORDS).await } => {}
            }
        };
        let closing = tokio::select! {
            biased;
            () = self.closing.cancelled() => true,
            () = ended => false,
            never = refresh => match never {},
            () = subscription => false,
        };
        // Ends what is pending, and closes the server's standard input, whoever still holds the connection.
        tap.end();
        if closing {
            return None;
        }
        Some(self.reason(&mut running.process, tap, "").await)
    }

    /// Why a connection ended, as far as can be told.
    async fn reason(&self, process: &mut Process, tap: &Tap, when: &str) -> String {
        if let Some(failure) = tap.failure() {
            return failure.to_owned();
        }
        self.with_cause(match process.ended(EXIT_PATIENCE).await {
            Some(status) => format!("it ended{when} ({status})"),
            None => format!("it closed the connection{when}"),
        })
    }

    fn with_cause(&self, reason: String) -> String {
        match self.diagnostics.cause() {
            Some(line) => format!("{reason}; it wrote: {line}"),
            None => reason,
        }
    }

    /// The tools stay listed, so that a call to one of them starts the server again.
    fn down(&self, attempt: u64, reason: &str) {
        tracing::info!(server = self.server.name, reason, "external server is down");
        let mut listing = Listing::clone(&self.listing.borrow());
        listing.health = Health::Down(reason.to_owned());
        self.publish(listing);
        self.state.send_replace(State::Down { attempt, reason: reason.into() });
    }

    fn publish(&self, listing: Listing) {
        self.listing.send_if_modified(|current| {
            let differs = **current != listing;
            if differs {
                *current = Arc::new(listing);
            }
            differs
        });
    }
}

/// Why a start failed.
enum Start {
    /// There is no process.
    Spawn(String),
    /// There was one; whether it turned out to speak the modern protocol.
    Handshake { reason: String, modern: bool },
}
