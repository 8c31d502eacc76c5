//! One established MCP connection: the handshake in either era, the list of tools, calls.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rmcp::model::{
    ClientCapabilities, ClientRequest, ErrorCode, ErrorData, Implementation, InitializeRequestParams,
    ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest,
    PaginatedRequestParams, ProtocolVersion, RequestMetaObject, SubscriptionFilter,
    SubscriptionsListenRequest, SubscriptionsListenRequestParams,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
};
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::diagnostics::Diagnostics;
use super::outbox::Outbox;
use super::raw::{RawTransport, Tap};
use super::requests::{Event, Request};
use crate::catalogue::{Health, Listing};
use crate::dispatch::DispatchError;
use crate::tool::{JsonObject, ToolContext, ToolResult};

/// The most pages of a list that are read.
const MAX_PAGES: usize = 100;

/// The most that is taken of one list. The largest known has some 350 tools.
const MAX_ITEMS: usize = 4_000;

/// The most JSON that is taken as one list, in bytes.
const MAX_LIST_BYTES: usize = 32 << 20;

/// How long changes of the list of tools are gathered before it is read again.
const SETTLE: Duration = Duration::from_millis(100);

/// How long they are gathered at most, where a server announces one after another.
const MAX_SETTLE: Duration = Duration::from_secs(30);

/// With how many open requests a line is still written on its own.
const FEW: usize = 4;

/// How the handshake is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Not known yet: `server/discover`, and `initialize` where the server does not know that.
    Unknown,
    /// `initialize` alone (revisions up to 2025-11-25).
    Legacy,
    /// `server/discover` alone (from 2026-07-28).
    Modern,
}

impl Era {
    fn lifecycle(self) -> ClientLifecycleMode {
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        match self {
            Self::Unknown => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
            Self::Legacy => ClientLifecycleMode::Initialize,
            Self::Modern => ClientLifecycleMode::Discover { preferred_versions },
        }
    }
}

/// What we tell a server of ourselves: a name, and that we offer it nothing.
#[derive(Debug)]
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> InitializeRequestParams {
        let aster = Implementation::new("aster", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(ClientCapabilities::default(), aster)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server answered with an error.
    Refused { code: i64, message: String },
    /// The connection has ended.
    Ended,
}

impl Failure {
    /// What the caller hears; `None` where the connection has ended, for which the supervisor has the reason.
    fn of_call(self) -> Option<DispatchError> {
        match self {
            Self::Refused { code, message } => Some(DispatchError::Protocol { code, message }),
            Self::Ended => None,
        }
    }
}

/// The limits of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLimits {
    /// Without a sign of progress.
    pub(super) idle: Duration,
    /// In all.
    pub(super) total: Duration,
}

/// A request for one page of a list.
type Page = fn(Option<PaginatedRequestParams>) -> ClientRequest;

macro_rules! page {
    ($list:ident) => {
        |params| {
            let mut request = $list::default();
            request.params = params;
            ClientRequest::$list(request)
        }
    };
}

/// A connection on which requests can be made, any number at a time. Dropping it closes the server's standard input.
#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    outbox: Arc<Outbox>,
    tap: Arc<Tap>,
    /// What every request says of us: to a modern server who we are, to another nothing.
    meta: RequestMetaObject,
    diagnostics: Arc<Diagnostics>,
}

impl Connection {
    /// Does the handshake. No deadline: that is the caller's.
    ///
    /// # Errors
    ///
    /// Why it failed; [`Failure::Ended`] where the server closed its output.
    pub(super) async fn open<R, W>(
        reader: R,
        writer: W,
        era: Era,
        tap: Arc<Tap>,
        diagnostics: Arc<Diagnostics>,
    ) -> Result<Self, Failure>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let outbox = Outbox::new(writer, Arc::clone(&tap));
        let transport = RawTransport::new(reader, Arc::clone(&outbox), Arc::clone(&tap));
        let served = serve_client_with_lifecycle(Client, transport, era.lifecycle()).await;
        let service = served.map_err(|error| handshake_failure(error, &diagnostics))?;
        let mut connection = Self { service, outbox, tap, meta: RequestMetaObject::new(), diagnostics };
        if let Some(info) = connection.service.peer_info().filter(|_| connection.era() == Era::Modern) {
            let client = Client.get_info();
            connection.meta = RequestMetaObject::with_client_context(
                info.protocol_version.clone(),
                client.client_info,
                client.capabilities,
            );
        }
        Ok(connection)
    }

    /// Whether the server speaks a revision without `initialize`.
    pub(super) fn era(&self) -> Era {
        let version = self.service.peer_info().map(|info| info.protocol_version.clone());
        if version.is_some_and(|version| !version.has_initialize()) { Era::Modern } else { Era::Legacy }
    }

    /// Whether it has not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.tap.ended.is_cancelled()
    }

    /// What there is to hear on the connection.
    pub(super) fn tap(&self) -> &Tap {
        &self.tap
    }

    /// What the server says of itself.
    fn said(&self) -> Listing {
        let mut listing = Listing::without_tools(Health::Ready);
        let Some(info) = self.service.peer_info() else { return listing };
        listing.protocol = Some(info.protocol_version.to_string());
        listing.instructions.clone_from(&info.instructions);
        if let Some(server) = &info.server_info {
            listing.title = server.title.clone().or_else(|| Some(server.name.clone()));
            listing.version = Some(server.version.clone());
        }
        listing
    }

    /// What the server says of itself, and what it lists: its tools and, of a server that is
    /// [whole](Tap::whole), its resources and prompts, which cost no more than themselves where they cannot be read.
    ///
    /// # Errors
    ///
    /// Where the tools cannot be read.
    pub(super) async fn listing(&self) -> Result<Listing, Failure> {
        let tools = self.list("tools", page!(ListToolsRequest)).await?;
        let mut listing = Listing { tools, ..self.said() };
        let capabilities = self.service.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default();
        if self.tap.whole && capabilities.resources.is_some() {
            listing.resources = self.list_if_possible("resources", page!(ListResourcesRequest)).await?;
            let templates = page!(ListResourceTemplatesRequest);
            listing.resources.extend(self.list_if_possible("resourceTemplates", templates).await?);
        }
        if self.tap.whole && capabilities.prompts.is_some() {
            listing.prompts = self.list_if_possible("prompts", page!(ListPromptsRequest)).await?;
        }
        Ok(listing)
    }

    /// A list that need not be there.
    async fn list_if_possible(&self, key: &'static str, page: Page) -> Result<Vec<Value>, Failure> {
        match self.list(key, page).await {
            Err(Failure::Refused { message, .. }) => {
                tracing::warn!(message, "its list of {key} cannot be read");
                Ok(Vec::new())
            }
            listed => listed,
        }
    }

    /// Reads a whole list, each thing in it as the server wrote it. Reading ends where the server says so, where it
    /// repeats itself, or at a cap; a page that fails after the first costs what would have followed.
    ///
    /// # Errors
    ///
    /// Where the first page fails or is no list.
    async fn list(&self, key: &'static str, page: Page) -> Result<Vec<Value>, Failure> {
        let mut list = List::of(key);
        let mut cursor = None;
        for at in 0..MAX_PAGES {
            let params =
                cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let read = match self.request(page(params)).await {
                Ok(result) => list.add(result).map_err(|message| Failure::Refused { code: 0, message }),
                // A server that has none may not know the method.
                Err(Failure::Refused { code, .. })
                    if at == 0 && code == i64::from(ErrorCode::METHOD_NOT_FOUND.0) =>
                {
                    return Ok(Vec::new());
                }
                Err(failure) => Err(failure),
            };
            match read {
                Ok(Some(next)) => cursor = Some(next),
                Ok(None) => return Ok(list.items),
                Err(Failure::Refused { message, .. }) if at > 0 => {
                    tracing::warn!(message, page = at, "the list of {key} breaks off");
                    return Ok(list.items);
                }
                Err(failure) => return Err(failure),
            }
        }
        tracing::warn!("the list of {key} has more than {MAX_PAGES} pages");
        Ok(list.items)
    }

    /// Asks for what is not a call of a tool. Dropping the future tells the server that nobody waits any more.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    #[cfg(feature = "serve")]
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<ToolResult, Option<DispatchError>> {
        match timeout(limit, self.request(request)).await {
            Ok(Ok(result)) => complete(result),
            Ok(Err(failure)) => Err(failure.of_call()),
            Err(_) => Err(Some(timed_out(limit))),
        }
    }

    /// Calls a tool. Dropping the future tells the server that nobody waits any more.
    ///
    /// # Errors
    ///
    /// Everything that is no result; `None` where the connection has ended, for which the supervisor has the reason.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: &ToolContext,
        limits: CallLimits,
    ) -> Result<ToolResult, Option<DispatchError>> {
        let params = Call { name: tool, arguments: &arguments };
        let sent = self.send("tools/call", &params).map_err(Failure::of_call)?;
        let end = Instant::now() + limits.total;
        // One timer for both limits: what is nearer.
        let patience = || end.min(Instant::now() + limits.idle);
        let mut alarm = pin!(sleep_until(patience()));
        loop {
            let heard = tokio::select! {
                biased;
                () = &mut alarm => {
                    let over = if Instant::now() >= end { limits.total } else { limits.idle };
                    return Err(Some(timed_out(over)));
                }
                heard = sent.request.heard() => heard,
            };
            match heard {
                Event::Progress(report) => {
                    alarm.as_mut().reset(patience());
                    let message = report.message.map(|message| self.diagnostics.safe(&message));
                    context.progress(report.done, report.total, message.as_deref());
                }
                Event::Reply(Ok(result)) => return complete(result),
                Event::Reply(Err(error)) => return Err(self.refused(&error).of_call()),
                Event::Ended => return Err(None),
            }
        }
    }

    /// Asks a modern server to say when its list of tools changes, which older ones do unasked. Completes when it
    /// stops doing so: `true` where it may be asked again.
    pub(super) async fn subscribe(&self) -> bool {
        let changes =
            self.service.peer_info().and_then(|info| info.capabilities.tools.as_ref()?.list_changed);
        if self.era() == Era::Legacy || changes != Some(true) {
            return false;
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let request = SubscriptionsListenRequest::new(SubscriptionsListenRequestParams::new(filter));
        // The notifications themselves are heard on the tap.
        self.request(ClientRequest::SubscriptionsListenRequest(request)).await.is_ok()
    }

    /// Reads the list of tools again whenever the server says that it has changed, each time within `limit`, and hands it to
    /// `tell`; for as long as it is polled.
    pub(super) async fn follow(&self, server: &str, limit: Duration, tell: impl Fn(Listing)) -> Infallible {
        let changed = || self.tap.list_changed.notified();
        let mut settle = SETTLE;
        loop {
            // A server that says so again and again, perhaps at each reading, is heard less and less often.
            settle = match timeout(settle, changed()).await {
                Ok(()) => (2 * settle).min(MAX_SETTLE),
                Err(_) => {
                    changed().await;
                    SETTLE
                }
            };
            sleep(settle).await;
            // What was said meanwhile is heard by this reading; what is said during it needs another.
            let _ = changed().now_or_never();
            match timeout(limit, self.listing()).await {
                Ok(Ok(listing)) => tell(listing),
                // Whoever polls this hears of the end from the tap.
                Ok(Err(Failure::Ended)) => return std::future::pending().await,
                Ok(Err(Failure::Refused { message, .. })) => {
                    tracing::warn!(server, message, "its list of tools cannot be read again");
                }
                Err(_) => tracing::warn!(server, "its list of tools does not come again"),
            }
        }
    }

    /// Sends a request, for as long as what comes back is kept.
    ///
    /// # Errors
    ///
    /// Where the connection has ended.
    fn send(&self, method: &str, params: &impl Serialize) -> Result<Sent<'_>, Failure> {
        let request = self.tap.requests.open().ok_or(Failure::Ended)?;
        let meta = Meta { progress_token: request.id, client: &self.meta };
        let message = Message { jsonrpc: "2.0", id: request.id, method, params: Params { meta, params } };
        self.write(&message)?;
        Ok(Sent { request, connection: self })
    }

    fn write(&self, message: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(message).map_err(|_| Failure::Ended)?;
        line.push(b'\n');
        self.outbox.send(&line, self.tap.requests.count() > FEW).map_err(|_| Failure::Ended)
    }

    fn refused(&self, error: &ErrorData) -> Failure {
        Failure::Refused { code: error.code.0.into(), message: self.diagnostics.message(&error.message) }
    }

    async fn request(&self, request: ClientRequest) -> Result<Value, Failure> {
        let Ok(Value::Object(mut request)) = serde_json::to_value(request) else {
            return Err(Failure::Ended);
        };
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = request.remove("params").unwrap_or_else(|| json!({}));
        let sent = self.send(&method, &params)?;
        match sent.request.ended().await {
            Some(Ok(result)) => Ok(result),
            Some(Err(error)) => Err(self.refused(&error)),
            None => Err(Failure::Ended),
        }
    }
}

/// A request as it is written.
#[derive(Serialize)]
struct Message<'a, P> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: Params<'a, P>,
}

#[derive(Serialize)]
struct Params<'a, P> {
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
    #[serde(flatten)]
    params: &'a P,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(rename = "progressToken")]
    progress_token: i64,
    #[serde(flatten)]
    client: &'a RequestMetaObject,
}

/// The parameters of `tools/call`.
#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    arguments: &'a JsonObject,
}

/// A request that was sent. Dropped before its reply, it tells the server.
struct Sent<'a> {
    request: Request<'a>,
    connection: &'a Connection,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if self.request.is_open() {
            let params = json!({"requestId": self.request.id, "reason": "the caller no longer waits"});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            // Where it cannot be told, the connection has ended.
            let _ = self.connection.write(&message);
        }
    }
}

/// What has been read of a list so far.
#[derive(Debug)]
struct List {
    key: &'static str,
    items: Vec<Value>,
    bytes: usize,
    seen: HashSet<String>,
    cursors: HashSet<String>,
}

impl List {
    fn of(key: &'static str) -> Self {
        Self { key, items: Vec::new(), bytes: 0, seen: HashSet::new(), cursors: HashSet::new() }
    }

    /// Takes in a page and gives back the cursor of the next, where there is one that is worth asking for.
    fn add(&mut self, page: Value) -> Result<Option<String>, String> {
        let key = self.key;
        let Value::Object(mut page) = page else { return Err(format!("its list of {key} is no object")) };
        let Some(Value::Array(items)) = page.remove(key) else {
            return Err(format!("its list of {key} is no array"));
        };
        for item in items {
            let text = item.to_string();
            self.bytes += text.len();
            if self.items.len() == MAX_ITEMS || self.bytes > MAX_LIST_BYTES {
                tracing::warn!("the list of {key} is cut at {}", self.items.len());
                return Ok(None);
            }
            // A server that repeats a page says nothing new; one that contradicts itself is the catalogue's to judge.
            if self.seen.insert(text) {
                self.items.push(item);
            }
        }
        let next = page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
        Ok(next.filter(|next| self.cursors.insert((*next).to_owned())).map(str::to_owned))
    }
}

/// The result of a call, unless it is a question of the server's: 2026-07-28 marks those.
fn complete(result: Value) -> Result<ToolResult, Option<DispatchError>> {
    let what = match result.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => return Ok(ToolResult::from_value(result)),
        Some("input_required") => "it asks for input from the user during the call (`input_required`)",
        Some("task") => "it answers with a task to be polled",
        Some(_) => "it answers with a kind of result that is not known here",
    };
    let code = ErrorCode::INVALID_REQUEST.0.into();
    Err(Some(DispatchError::Protocol { code, message: format!("{what}, which is not supported") }))
}

fn timed_out(limit: Duration) -> DispatchError {
    DispatchError::TimedOut { limit }
}

fn handshake_failure(error: ClientInitializeError, diagnostics: &Diagnostics) -> Failure {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            handshake_failure(*fallback, diagnostics)
        }
        ClientInitializeError::JsonRpcError(error) => {
            Failure::Refused { code: error.code.0.into(), message: diagnostics.message(&error.message) }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            let message =
                format!("it speaks none of the protocol revisions known here, only {}", versions.join(", "));
            Failure::Refused { code: 0, message: diagnostics.message(&message) }
        }
        _ => Failure::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Profile, Session};
    use crate::tool::{ClientLink, LogLevel};
    use std::sync::Mutex;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

    const LIMITS: CallLimits = CallLimits { idle: Duration::from_secs(2), total: Duration::from_secs(600) };

    /// The server's end, driven by a test. Time is paused, so that it passes only when all wait for it.
    struct Server {
        reader: BufReader<tokio::io::ReadHalf<DuplexStream>>,
        writer: tokio::io::WriteHalf<DuplexStream>,
    }

    impl Server {
        async fn next(&mut self) -> Value {
            let mut line = String::new();
            self.reader.read_line(&mut line).await.unwrap();
            serde_json::from_str(&line).unwrap_or_default()
        }

        async fn expect(&mut self, method: &str) -> Value {
            let message = self.next().await;
            assert_eq!(message["method"], method, "{message}");
            message
        }

        async fn send(&mut self, message: Value) {
            self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }

        async fn reply(&mut self, request: &Value, result: Value) {
            self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
        }

        async fn refuse(&mut self, request: &Value) {
            let error = json!({"code": -32601, "message": "Method not found"});
            self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
        }
    }

    type Opening = tokio::task::JoinHandle<Result<Connection, Failure>>;

    fn open() -> (Opening, Server, Arc<Tap>) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let diagnostics = Arc::new(Diagnostics::new("test", []));
        let tap = Tap::new(Arc::clone(&diagnostics));
        let opening =
            tokio::spawn(Connection::open(reader, writer, Era::Unknown, Arc::clone(&tap), diagnostics));
        let (reader, writer) = tokio::io::split(theirs);
        (opening, Server { reader: BufReader::new(reader), writer }, tap)
    }

    fn initialized() -> Value {
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})
    }

    async fn connected() -> (Arc<Connection>, Server) {
        let (opening, mut server, _) = open();
        let discover = server.expect("server/discover").await;
        server.refuse(&discover).await;
        let initialize = server.expect("initialize").await;
        server.reply(&initialize, initialized()).await;
        server.expect("notifications/initialized").await;
        (Arc::new(opening.await.unwrap().unwrap()), server)
    }

    #[derive(Default)]
    struct Reports(Mutex<Vec<f64>>);

    impl ClientLink for Reports {
        fn progress(&self, done: f64, _: Option<f64>, _: Option<&str>) {
            self.0.lock().unwrap().push(done);
        }

        fn log(&self, _: LogLevel, _: &str) {}
    }

    type Calling = tokio::task::JoinHandle<Result<ToolResult, Option<DispatchError>>>;

    fn call(connection: &Arc<Connection>, client: Option<Arc<dyn ClientLink>>) -> Calling {
        let connection = Arc::clone(connection);
        let context = ToolContext::new(Arc::new(Session::new(Profile::new("a"))), "1").with_client(client);
        tokio::spawn(async move { connection.call("t", JsonObject::new(), &context, LIMITS).await })
    }

    fn call_with(connection: &Arc<Connection>, argument: String) -> Calling {
        let connection = Arc::clone(connection);
        let context = ToolContext::new(Arc::new(Session::new(Profile::new("a"))), "1");
        let arguments = JsonObject::from_iter([("a".to_owned(), Value::from(argument))]);
        tokio::spawn(async move { connection.call("t", arguments, &context, LIMITS).await })
    }

    /// A package runner that fetches its server takes longer than the SDK waits for `server/discover`.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_slow_to_start_is_not_taken_at_its_first_word() {
        let (opening, mut server, _) = open();
        let discover = server.expect("server/discover").await;
        let initialize = server.expect("initialize").await;
        sleep(Duration::from_secs(20)).await;
        server.refuse(&discover).await;
        server.reply(&initialize, initialized()).await;
        let connection = opening.await.unwrap().unwrap();
        assert_eq!(connection.era(), Era::Legacy);
        assert_eq!(connection.said().protocol.as_deref(), Some("2025-06-18"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_modern_server_that_is_slow_to_start_is_recognised() {
        let (opening, mut server, tap) = open();
        let discover = server.expect("server/discover").await;
        let initialize = server.expect("initialize").await;
        server.reply(&discover, json!({"supportedVersions": ["2026-07-28"], "capabilities": {}})).await;
        server.refuse(&initialize).await;
        assert!(opening.await.unwrap().is_err());
        assert!(tap.modern_after_all.get().is_some(), "the supervisor tries again with this");
    }

    #[tokio::test(start_paused = true)]
    async fn progress_keeps_a_long_call_alive() {
        let (connection, mut server) = connected().await;
        let client = Arc::new(Reports::default());
        let calling = call(&connection, Some(client.clone()));
        let request = server.expect("tools/call").await;
        // Some servers turn the token into a string.
        let token = request["params"]["_meta"]["progressToken"].to_string();
        for step in 1..=90 {
            sleep(Duration::from_secs(1)).await;
            let params = json!({"progressToken": token, "progress": step});
            server
                .send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
                .await;
        }
        server.reply(&request, json!({"content": []})).await;
        assert_eq!(calling.await.unwrap().unwrap().into_value(), json!({"content": []}));
        assert_eq!(client.0.lock().unwrap().len(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn silence_and_endless_progress_both_end_a_call() {
        let (connection, mut server) = connected().await;
        let calling = call(&connection, None);
        let request = server.expect("tools/call").await;
        assert_eq!(
            calling.await.unwrap(),
            Err(Some(DispatchError::TimedOut { limit: Duration::from_secs(2) }))
        );
        let cancelled = server.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);

        let calling = call(&connection, None);
        let request = server.expect("tools/call").await;
        let began = Instant::now();
        while !calling.is_finished() {
            sleep(Duration::from_secs(1)).await;
            let params = json!({"progressToken": request["params"]["_meta"]["progressToken"], "progress": 1});
            server
                .send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
                .await;
        }
        assert_eq!(
            calling.await.unwrap(),
            Err(Some(DispatchError::TimedOut { limit: Duration::from_secs(600) }))
        );
        assert!(began.elapsed() < Duration::from_secs(602));
    }

    #[tokio::test(start_paused = true)]
    async fn a_modern_server_is_told_with_every_request_who_asks() {
        let (opening, mut server, _) = open();
        let discover = server.expect("server/discover").await;
        server
            .reply(&discover, json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
            .await;
        let connection = Arc::new(opening.await.unwrap().unwrap());
        let calling = call(&connection, None);
        let request = server.expect("tools/call").await;
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["progressToken"], request["id"]);
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "aster");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        server.reply(&request, json!({"content": []})).await;
        assert_eq!(calling.await.unwrap().unwrap().into_value(), json!({"content": []}));

        let listing = tokio::spawn(async move { connection.listing().await });
        let request = server.expect("tools/list").await;
        assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        server.reply(&request, json!({"tools": [{"name": "t"}]})).await;
        assert_eq!(listing.await.unwrap().unwrap().tools.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_reply_to_a_cancelled_call_is_dropped() {
        let (connection, mut server) = connected().await;
        let calling = call(&connection, None);
        let late = server.expect("tools/call").await;
        assert!(calling.await.unwrap().is_err());
        server.expect("notifications/cancelled").await;

        let calling = call(&connection, None);
        let request = server.expect("tools/call").await;
        server.reply(&late, json!({"content": "late"})).await;
        server.reply(&request, json!({"content": "now"})).await;
        assert_eq!(calling.await.unwrap().unwrap().into_value(), json!({"content": "now"}));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_fails_its_calls() {
        let (connection, server) = connected().await;
        let calls: Vec<_> = (0..100).map(|_| call_with(&connection, "x".repeat(1 << 20))).collect();
        for call in calls {
            assert_eq!(call.await.unwrap(), Err(None));
        }
        assert_eq!(connection.tap().failure(), Some("it does not read its standard input"));
        drop(server);
    }

    #[test]
    fn a_list_is_capped() {
        let tools: Vec<_> = (0..MAX_ITEMS + 1).map(|number| json!({"name": number})).collect();
        let mut list = List::of("tools");
        assert_eq!(list.add(json!({"tools": tools, "nextCursor": "more"})), Ok(None));
        assert_eq!(list.items.len(), MAX_ITEMS);

        let mut list = List::of("tools");
        let big = json!({"description": "x".repeat(MAX_LIST_BYTES)});
        assert_eq!(
            list.add(json!({"tools": [{"name": "a"}, big, {"name": "b"}], "nextCursor": "more"})),
            Ok(None)
        );
        assert_eq!(list.items, [json!({"name": "a"})]);
    }
}
