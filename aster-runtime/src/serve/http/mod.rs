//! Serving over HTTP: MCP's "Streamable HTTP" in both protocol eras at one address, as a [`tower` service](HttpService) to
//! mount in a program's own router, or with a [`Listener`].
//!
//! rmcp speaks the protocol. What stands before it here are the checks that it lacks or leaves open: who may ask, how
//! much, and for how long. Nothing of a request is read before its `Host`, `Origin` and token are known to be good.

pub mod approvals;
mod guard;
mod listen;
mod page;
mod sessions;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Buf as _, BufMut as _, Bytes};
use futures_util::StreamExt as _;
use http::header::{
    ALLOW, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, BodyStream, Empty, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::Body as HttpBody;
use rmcp::ErrorData;
use rmcp::model::ProtocolVersion;
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use self::guard::Guard;
pub use self::listen::{Listener, NAMELESS, bind};
use self::sessions::{ASKING, Asking, Full as NoRoom, OfSession, Principals, Rooms, Sessions};
use super::{FIRST_ANSWER, ServeError, Server, Service, Shape, raw};
use crate::catalogue::Health;
use crate::host::{Host, HostSession};
use crate::session::Profile;

/// What a response carries.
pub type Body = BoxBody<Bytes, Box<dyn StdError + Send + Sync>>;

/// What rmcp answers with.
type Answer = BoxBody<Bytes, Infallible>;

/// The header in which the legacy era names a session.
const SESSION_ID: &str = "mcp-session-id";

/// The headers that may stand once: twice, and two programs on the way may each read another one.
const ONCE: [&str; 3] = [SESSION_ID, "mcp-protocol-version", "last-event-id"];

const METHODS: &str = "POST, GET, DELETE";

/// The longest id of a request that an error repeats.
const LONGEST_ID: usize = 256;

/// Who asks, as some authentication found out: the name that sessions belong to.
///
/// A [token](Options::token) names its principal. A program that authenticates by itself puts a `Principal` into the
/// extensions of the request, in a layer before the service, and it counts before the token's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Principal(pub String);

/// How to serve over HTTP: who may ask, how much, and for how long.
///
/// ```
/// use aster_runtime::serve::http::Options;
///
/// let options = Options::default().allowed_hosts(["tools.example"]).allowed_origins(["https://app.example"]);
/// ```
#[derive(Clone)]
pub struct Options {
    hosts: Vec<String>,
    origins: Vec<String>,
    tokens: Vec<(Principal, String)>,
    max_body: usize,
    max_bodies: usize,
    body_timeout: Duration,
    max_sessions: usize,
    max_sessions_of_one: usize,
    session_idle: Duration,
    max_connections: usize,
    header_timeout: Duration,
    write_timeout: Duration,
    grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            tokens: Vec::new(),
            max_body: 4 * 1024 * 1024,
            max_bodies: 256 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            max_sessions: 4096,
            max_sessions_of_one: 1024,
            session_idle: Duration::from_secs(15 * 60),
            max_connections: 4096,
            header_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let principals: Vec<&Principal> = self.tokens.iter().map(|(principal, _)| principal).collect();
        f.debug_struct("Options")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .field("tokens", &principals)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Sets the names under which the server may be reached, each with or without a port; any port without. By default
    /// those of loopback, and for a [`Listener`] the address that it listens on.
    #[must_use]
    pub fn allowed_hosts<S: Into<String>>(mut self, hosts: impl IntoIterator<Item = S>) -> Self {
        self.hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the sites whose pages may ask: `https://app.example`, `http://localhost:*` for any port, or `null`. By
    /// default those of loopback. The browsers of those set here, or of any that may ask where a token is demanded, let them
    /// read the answers (CORS). A request without an origin is no page's, and passes.
    #[must_use]
    pub fn allowed_origins<S: Into<String>>(mut self, origins: impl IntoIterator<Item = S>) -> Self {
        self.origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// Demands a bearer token, and names who comes with this one. Several can be added. At least 16 printable
    /// characters.
    #[must_use]
    pub fn token(mut self, principal: impl Into<String>, token: impl Into<String>) -> Self {
        self.tokens.push((Principal(principal.into()), token.into()));
        self
    }

    /// Sets how many bytes the body of a request may have. Default 4 MiB.
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = bytes;
        self
    }

    /// Sets how many bytes of bodies there may be at a time, of all requests that arrive or are being answered. Default
    /// 256 MiB; what arrives beyond that is answered with 503.
    #[must_use]
    pub fn max_bodies(mut self, bytes: usize) -> Self {
        self.max_bodies = bytes.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how long the body of a request may take to arrive. Default 30 s.
    #[must_use]
    pub fn body_timeout(mut self, limit: Duration) -> Self {
        self.body_timeout = limit;
        self
    }

    /// Sets how many sessions may be open: of the legacy era, and as many principals of the modern one. Default 4096;
    /// another is answered with 503. One in use takes about 200 KB, nearly all of it the channels of rmcp.
    #[must_use]
    pub fn max_sessions(mut self, most: usize) -> Self {
        self.max_sessions = most.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how many of them one principal may have. Default 1024; another is answered with 429. Nobody in particular has
    /// no such limit.
    #[must_use]
    pub fn max_sessions_of_one(mut self, most: usize) -> Self {
        self.max_sessions_of_one = most;
        self
    }

    /// Sets after how long without a message a session ends. Default 15 minutes: longer than a call that first waits for
    /// a human.
    #[must_use]
    pub fn session_idle(mut self, limit: Duration) -> Self {
        self.session_idle = limit;
        self
    }

    /// Sets how many connections a [`Listener`] holds at a time. Default 4096.
    #[must_use]
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = most.min(Semaphore::MAX_PERMITS);
        self
    }

    /// Sets how long a [`Listener`] waits for the head of a request. Default 10 s.
    #[must_use]
    pub fn header_timeout(mut self, limit: Duration) -> Self {
        self.header_timeout = limit;
        self
    }

    /// Sets how long a [`Listener`] waits for a client that reads nothing of its answers. Default 30 s.
    #[must_use]
    pub fn write_timeout(mut self, limit: Duration) -> Self {
        self.write_timeout = limit;
        self
    }

    /// Sets how long a [`Listener`] that stops lets running calls go on. Default 10 s.
    #[must_use]
    pub fn grace(mut self, limit: Duration) -> Self {
        self.grace = limit;
        self
    }
}

/// A host as a service for HTTP requests, whatever their path: to mount in a router, for example with
/// `axum::Router::nest_service("/mcp", …)`. A clone is the same service.
///
/// In the modern era each request stands alone; a principal's requests share one session of the host, and a request of
/// nobody in particular is a session of its own, for which the profile's
/// [`require_describe`](Profile::require_describe) is off: it could never have described anything. Where that must
/// hold, demand a token.
#[derive(Clone)]
pub struct HttpService {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    guard: Guard,
    options: Options,
    service: Arc<Service>,
    protocol: StreamableHttpService<Server, Sessions>,
    sessions: Arc<Sessions>,
    principals: Arc<Principals>,
    rooms: Arc<Rooms>,
    /// A permit for each byte of a body.
    bodies: Arc<Semaphore>,
    /// Until when an answer waits for servers that are starting.
    patience: Instant,
    /// No new request is taken, and what only listens ends.
    stopping: CancellationToken,
    /// Calls end too.
    ended: CancellationToken,
    _follow: AbortOnDropHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stopping.cancel();
        self.ended.cancel();
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// Makes the service of a host. It must be called on a tokio runtime, which goes on working for it until the last clone is
/// dropped.
///
/// # Errors
///
/// Where the profile, the shape or an option cannot be used.
pub fn service(
    host: Host,
    profile: Profile,
    shape: Shape,
    options: Options,
) -> Result<HttpService, ServeError> {
    let guard = Guard::new(&options)?;
    let (stopping, ended) = (CancellationToken::new(), CancellationToken::new());
    let anonymous = host.session(profile.clone().require_describe(false))?;
    let service = Service::new(host.clone(), profile, shape, stopping.clone())?;
    let principals =
        Principals::new(service.viewer.another(), anonymous, options.max_sessions, options.session_idle);
    let sessions = Arc::new(Sessions::new(options.session_idle));
    let served = Arc::clone(&service);
    let protocol = StreamableHttpService::new(
        move || Ok(Server::new(Arc::clone(&served), false)),
        Arc::clone(&sessions),
        // `Guard` has looked at these, and more closely.
        StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.max_body)
            .with_cancellation_token(ended.clone()),
    );
    let follow = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&service).follow()));
    Ok(HttpService {
        inner: Arc::new(Inner {
            host,
            guard,
            service,
            protocol,
            sessions,
            principals: Arc::new(principals),
            rooms: Rooms::new(options.max_sessions, options.max_sessions_of_one),
            bodies: Arc::new(Semaphore::new(options.max_bodies)),
            patience: Instant::now() + FIRST_ANSWER,
            stopping,
            ended,
            options,
            _follow: follow,
        }),
    })
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.respond(request).await) })
    }
}

impl HttpService {
    /// How many sessions of the legacy era are open.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.inner.sessions.count()
    }

    /// Takes no new request and ends the streams that only listen; calls that run go on.
    pub fn stop(&self) {
        self.inner.stopping.cancel();
    }

    /// Ends everything, calls that run too. Their host is not closed.
    pub fn end(&self) {
        self.stop();
        self.inner.ended.cancel();
    }

    /// Ends everything, and waits until each call has been recorded: that of a client whose connection has gone, too.
    pub async fn close(&self) {
        self.end();
        self.inner.service.rounds.close().await;
    }

    /// How the servers are, in numbers: no name and no reason. A [`Listener`] answers with it at `/health`, without a token;
    /// the service itself answers at no path of that kind, and a program that mounts it can answer with this where it likes.
    ///
    /// 200 and `{"status": "ok", "servers": {"ready": 2, …}}`, or 503 and `"stopping"`.
    #[must_use]
    pub fn health(&self) -> Response<Body> {
        let mut servers = serde_json::Map::new();
        for state in ["ready", "starting", "down", "disabled", "needs_consent"] {
            servers.insert(state.to_owned(), json!(0));
        }
        for server in self.inner.service.viewer.view().servers() {
            let state = match server.health {
                Health::Ready => "ready",
                Health::Starting => "starting",
                Health::Down(_) => "down",
                Health::Disabled => "disabled",
                Health::NeedsConsent(_) => "needs_consent",
            };
            servers[state] = json!(servers[state].as_u64().unwrap_or_default() + 1);
        }
        let (code, status) = match self.inner.stopping.is_cancelled() {
            false => (StatusCode::OK, "ok"),
            true => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
        };
        json_response(code, &json!({"status": status, "servers": servers}))
    }

    /// What calls, searches and refusals came to, as Prometheus reads it. For those who may call tools.
    #[must_use]
    pub fn metrics(&self) -> Response<Body> {
        let text = self.inner.service.host.stats().prometheus();
        let mut response = Response::new(Full::new(Bytes::from(text)).map_err(Into::into).boxed());
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    async fn respond<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let page = match self.inner.guard.admit(&request) {
            Ok(page) => page,
            Err(refusal) => return refusal.into_response(),
        };
        let response = match page.preflight(&request) {
            Some(response) => response,
            None => self.inner.answer(request).await.unwrap_or_else(Refusal::into_response),
        };
        page.readable(response)
    }
}

/// The last place that every response of the protocol passes: results lose what the SDK's types would have cost them.
fn outgoing(response: Response<Answer>) -> Response<Body> {
    raw::body::restored(response).map(http_body_util::BodyExt::boxed)
}

impl Inner {
    async fn answer<B>(&self, request: Request<B>) -> Result<Response<Body>, Refusal>
    where
        B: HttpBody + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        if ![Method::POST, Method::GET, Method::DELETE].contains(&parts.method) {
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, format!("the methods are {METHODS}")));
        }
        let named = self.guard.check_token(&parts.headers)?;
        let principal = parts.extensions.get::<Principal>().cloned().or(named);
        // Checked, and nothing that comes after has a use for it.
        parts.headers.remove(AUTHORIZATION);
        if self.stopping.is_cancelled() {
            return Err(Refusal::busy("the server is stopping"));
        }
        if let Some(name) = ONCE.into_iter().find(|name| parts.headers.get_all(*name).iter().nth(1).is_some())
        {
            return Err(Refusal::invalid(format!("there is more than one {name} header")));
        }
        let session = parts.headers.get(SESSION_ID).map(|id| id.to_str().unwrap_or_default().to_owned());
        let method = parts.method.clone();
        if method == Method::DELETE
            && session.as_deref().is_some_and(|id| !self.sessions.belongs(id, principal.as_ref()))
        {
            return Err(Refusal::new(StatusCode::NOT_FOUND, UNKNOWN_SESSION));
        }

        let (body, envelope, held) = if method == Method::POST {
            check_content(&parts.headers)?;
            let (body, held) = self.read(body).await?;
            let envelope = Envelope::read(&body)?;
            (body, envelope, Some(held))
        } else {
            (Bytes::new(), Envelope::default(), None)
        };
        let room = match &envelope.method {
            Some(method) if method == "initialize" => Some(self.rooms.take(principal.as_ref())?),
            _ => None,
        };
        if method == Method::POST {
            self.first_answer().await;
        }

        parts.extensions.insert(Caller {
            principal: principal.clone(),
            principals: Arc::clone(&self.principals),
            _held: held.map(Arc::new),
        });
        let asking = Asking { principal, room: Mutex::new(room) };
        let request = Request::from_parts(parts, Full::new(body));
        let response = ASKING.scope(asking, self.protocol.handle(request)).await;
        let response = match response.status() {
            // The type was right: it is the message that rmcp could not read.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                return Err(Refusal::invalid("this is no JSON-RPC message of MCP").about(envelope.id()));
            }
            StatusCode::INTERNAL_SERVER_ERROR if self.ended.is_cancelled() => {
                return Err(Refusal::busy("the server is stopping"));
            }
            // A session that ended while it was asked.
            StatusCode::INTERNAL_SERVER_ERROR if session.is_some() => {
                return Err(Refusal::new(StatusCode::NOT_FOUND, UNKNOWN_SESSION));
            }
            // Clients take a session for ended at 200 or 204 only, and the Python SDK warns of anything else.
            StatusCode::ACCEPTED if method == Method::DELETE => {
                let mut response = response;
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
            _ if method == Method::GET => response.map(|body| self.until_stopping(body)),
            _ => response,
        };
        Ok(outgoing(response))
    }

    /// The whole body, where it is not too large and does not take too long, and the room that it takes.
    async fn read<B>(&self, body: B) -> Result<(Bytes, OwnedSemaphorePermit), Refusal>
    where
        B: HttpBody,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let most = self.options.max_body;
        let too_large =
            || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {most} bytes"));
        if body.size_hint().lower() > most as u64 {
            return Err(too_large());
        }
        // What was announced and does not come takes no room from others.
        let room = |bytes: usize| {
            let room = u32::try_from(bytes).ok();
            let room = room.and_then(|bytes| Arc::clone(&self.bodies).try_acquire_many_owned(bytes).ok());
            room.ok_or_else(|| Refusal::busy("there is too much to read at once; try again later"))
        };
        let collected = async {
            let mut body = std::pin::pin!(Limited::new(body, most));
            let (mut bytes, mut held) = (Vec::new(), room(0)?);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                    true => too_large(),
                    false => Refusal::invalid("the body broke off"),
                })?;
                if let Ok(data) = frame.into_data() {
                    held.merge(room(data.remaining())?);
                    bytes.put(data);
                }
            }
            Ok((bytes.into(), held))
        };
        let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive");
        tokio::time::timeout(self.options.body_timeout, collected).await.map_err(late)?
    }

    /// Waits for servers that are starting, no longer than until a second after the service began.
    async fn first_answer(&self) {
        let left = self.patience.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        self.host.settle(left).await;
        self.service.renew().await;
    }

    /// A stream that only listens ends when the server stops.
    fn until_stopping(&self, body: Answer) -> Answer {
        let stopped = self.stopping.clone().cancelled_owned();
        http_body_util::BodyExt::boxed(StreamBody::new(BodyStream::new(body).take_until(stopped)))
    }
}

/// Who sent a request, and where the sessions of the modern era are: it travels with the request through rmcp.
#[derive(Clone)]
struct Caller {
    principal: Option<Principal>,
    principals: Arc<Principals>,
    /// The room of its body, which is not another's before the request is answered.
    _held: Option<Arc<OwnedSemaphorePermit>>,
}

/// Who has proved who it is, of a request that came over HTTP.
pub(super) fn principal(context: &RequestContext<RoleServer>) -> Option<String> {
    let caller = context.extensions.get::<http::request::Parts>()?.extensions.get::<Caller>()?;
    Some(caller.principal.as_ref()?.0.clone())
}

/// The session of a request that came over HTTP and belongs to no session of the protocol.
pub(super) fn modern_session(context: &RequestContext<RoleServer>) -> Option<Arc<HostSession>> {
    if context.extensions.get::<OfSession>().is_some() {
        return None;
    }
    let caller = context.extensions.get::<http::request::Parts>()?.extensions.get::<Caller>()?;
    Some(caller.principals.session(caller.principal.as_ref()))
}

/// Refuses a request that came over HTTP without a session and names a version whose clients can only be asked in one.
pub(super) fn check_era(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    let stands_alone = context.extensions.get::<http::request::Parts>().is_some()
        && context.extensions.get::<OfSession>().is_none();
    match context.protocol_version().filter(|version| stands_alone && version.has_initialize()) {
        Some(version) => {
            Err(ErrorData::unsupported_protocol_version(version, &[ProtocolVersion::V_2026_07_28]))
        }
        None => Ok(()),
    }
}

const UNKNOWN_SESSION: &str = "there is no such session; begin one with `initialize`";

fn check_content(headers: &HeaderMap) -> Result<(), Refusal> {
    let refused = |message| Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let is_json = types.next().and_then(|value| value.to_str().ok()).is_some_and(|value| {
        let essence = value.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("application/json")
    });
    if !is_json || types.next().is_some() {
        return refused("the Content-Type of a message is application/json");
    }
    if headers.get_all(CONTENT_ENCODING).iter().any(|value| value != "identity") {
        return refused("a message is not compressed");
    }
    Ok(())
}

/// What of a message is needed before rmcp reads it.
#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    // Named, so that each may stand once: two readers might otherwise each take another one.
    #[serde(default, rename = "params")]
    _params: Option<IgnoredAny>,
    #[serde(default, rename = "result")]
    _result: Option<IgnoredAny>,
    #[serde(default, rename = "error")]
    _error: Option<IgnoredAny>,
}

impl Envelope {
    fn read(body: &[u8]) -> Result<Self, Refusal> {
        // A list can be read as a struct too, field after field.
        let is_list = body.trim_ascii_start().starts_with(b"[");
        match serde_json::from_slice::<Self>(body) {
            Ok(envelope) if !is_list => Ok(envelope),
            // A place, and nothing of what stands there.
            Err(error) if error.classify() != Category::Data => Err(Refusal::new(
                StatusCode::BAD_REQUEST,
                format!("this is not JSON, from line {} column {} on", error.line(), error.column()),
            )
            .code(-32700)),
            _ if is_list => Err(Refusal::invalid("this is a batch; send each message by itself")),
            _ => Err(Refusal::invalid("this is no JSON-RPC message of MCP")),
        }
    }

    /// The id that an error may repeat.
    fn id(self) -> Value {
        match self.id {
            Some(Value::Number(id)) => Value::Number(id),
            Some(Value::String(id)) if id.len() <= LONGEST_ID => Value::String(id),
            _ => Value::Null,
        }
    }
}

/// Why a request is not answered: a status, and a JSON-RPC error that says it to who looks at the body.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    code: i32,
    message: String,
    id: Value,
    challenge: Option<&'static str>,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, code: -32600, message: message.into(), id: Value::Null, challenge: None }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn busy(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).code(-32000)
    }

    fn code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    fn about(mut self, id: Value) -> Self {
        self.id = id;
        self
    }

    fn challenge(mut self, challenge: &'static str) -> Self {
        self.challenge = Some(challenge);
        self
    }

    fn into_response(self) -> Response<Body> {
        let error = json!({"code": self.code, "message": self.message});
        let mut response =
            json_response(self.status, &json!({"jsonrpc": "2.0", "id": self.id, "error": error}));
        let headers = response.headers_mut();
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        match self.status {
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static(METHODS));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

impl From<NoRoom> for Refusal {
    fn from(full: NoRoom) -> Self {
        match full {
            NoRoom::OfAll => Self::busy("there are too many sessions; try again later"),
            NoRoom::OfOne => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "you have too many sessions; end one (DELETE), or try again later",
            )
            .code(-32000),
        }
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().map_err(Into::into).boxed());
    *response.status_mut() = status;
    response
}

fn json_response(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())).map_err(Into::into).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
