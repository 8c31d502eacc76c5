//! An endpoint of its own for approvals: what waits at a [`Desk`], and what a human answers, over HTTP on loopback. And the
//! client of it.
//!
//! It is no part of the service that agents are served by: another port, another token, and no page of a browser may ask.
//!
//! | request | answer |
//! |---|---|
//! | `GET /approvals` | 200 and the [calls](WaitingCall) that wait, without what may be long in them |
//! | `GET /approvals/ID` | 200 and the [whole call](WholeCall); 404 where it does not wait any more |
//! | `POST /approvals/ID` with `{"approve": true, "scope": "once"}` | 204; 404 where that call does not wait any more |

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{client, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::guard::Guard;
use super::{Body, Options, Refusal, empty, json_response};
use crate::gate::approval::{Approval, ApprovalScope, Desk, Waiting};
use crate::serve::ServeError;
use crate::spec::Tier;

const PATH: &str = "/approvals";

/// Who approves, as it stands in the audit.
const BY: &str = "the user, by `aster approve`";

/// How many connections there may be, how long one may last, and how long an answer of a human may be, in bytes.
const MAX_CONNECTIONS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 4 << 10;

/// How much a client reads of an answer, in bytes.
const MAX_READ: usize = 256 << 20;

/// A call that waits, as the endpoint tells of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WaitingCall {
    /// The call's id.
    pub id: String,
    /// The agent that wants to call.
    pub agent: String,
    /// The tool's id.
    pub tool: String,
    /// Its tier.
    pub tier: Tier,
    /// What its server is, where it is an external one: the command or the URL.
    pub endpoint: Option<String>,
    /// Why a human is asked.
    pub why: String,
    /// Since when it waits, in RFC 3339.
    pub since: String,
    /// Whether an answer can hold for more than this call.
    pub remembers: bool,
}

/// A call that waits, with all that a human has to see before an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WholeCall {
    /// What the list of calls says of it.
    #[serde(flatten)]
    pub call: WaitingCall,
    /// The arguments, whole but for the values of those that the tool declares secret.
    pub arguments: Value,
    /// What is different about the tool since a human approved a call of it last, or when the user trusted it last, line by
    /// line; where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// All of it as a human is to read it, safe to show.
    pub text: String,
}

impl From<Waiting> for WholeCall {
    fn from(mut waiting: Waiting) -> Self {
        let text = waiting.request.to_string();
        let request = &mut waiting.request;
        let (arguments, change) = (request.arguments.take(), request.change.take());
        Self { text, arguments, change, call: waiting.into() }
    }
}

impl From<Waiting> for WaitingCall {
    fn from(Waiting { request, since, .. }: Waiting) -> Self {
        Self {
            id: request.call_id.to_string(),
            agent: request.agent,
            tool: request.tool.to_string(),
            tier: request.tier,
            endpoint: request.endpoint,
            why: request.why,
            since: since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            remembers: request.remembers,
        }
    }
}

/// What a human answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    approve: bool,
    #[serde(default)]
    scope: ApprovalScope,
}

/// A desk at an address, not yet answering.
pub struct Approvals {
    desk: Arc<Desk>,
    listener: TcpListener,
    address: SocketAddr,
    guard: Guard,
    token: String,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Listens at an address of loopback, where port 0 is any that is free, with a new token.
///
/// # Errors
///
/// Where others than this machine could reach the address, where it cannot be listened at, and where the system has no
/// random numbers.
pub async fn bind(desk: Arc<Desk>, address: SocketAddr) -> Result<Approvals, ServeError> {
    if !address.ip().is_loopback() {
        let message = format!("approvals are given on this machine alone, and {address} is not on loopback");
        return Err(ServeError::Options(message));
    }
    let mut random = [0; 32];
    getrandom::fill(&mut random).map_err(|error| ServeError::Random(error.to_string()))?;
    let token = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let guard = Guard::new(&Options::default().token("approver", token.clone()))?;
    let bound = |error: io::Error| ServeError::Address { address, error };
    let listener = TcpListener::bind(address).await.map_err(bound)?;
    let address = listener.local_addr().map_err(bound)?;
    Ok(Approvals { desk, listener, address, guard, token })
}

impl Approvals {
    /// The address, with the port that was free.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that lets one in. Whoever has it approves in the user's name.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Answers until `stop` is cancelled.
    pub async fn serve(self, stop: CancellationToken) {
        let Self { desk, listener, guard, .. } = self;
        let (guard, room) = (Arc::new(guard), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok((stream, _)) = accepted else {
                // Where there are too many files open, there still are right away.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // One too many is closed: its client tries again.
            let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
            let (desk, guard) = (Arc::clone(&desk), Arc::clone(&guard));
            connections.spawn(async move {
                let answer = service_fn(move |request| {
                    let (desk, guard) = (Arc::clone(&desk), Arc::clone(&guard));
                    async move { Ok::<_, Infallible>(respond(&desk, &guard, request).await) }
                });
                let connection = server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .keep_alive(false)
                    .serve_connection(TokioIo::new(stream), answer);
                let _ = tokio::time::timeout(PATIENCE, connection).await;
                drop(place);
            });
        }
    }
}

async fn respond(desk: &Desk, guard: &Guard, request: Request<Incoming>) -> Response<Body> {
    answer(desk, guard, request)
        .await
        .unwrap_or_else(|refusal| json_response(refusal.status, &json!({"error": refusal.message})))
}

async fn answer(desk: &Desk, guard: &Guard, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
    guard.admit(&request)?;
    if request.headers().contains_key(ORIGIN) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "no page of a browser may ask here"));
    }
    guard.check_token(request.headers())?;
    let gone = || Refusal::new(StatusCode::NOT_FOUND, "no such call waits");
    match (request.method(), request.uri().path()) {
        (&Method::GET, PATH) => {
            let waiting: Vec<WaitingCall> = desk.waiting().into_iter().map(WaitingCall::from).collect();
            Ok(json_response(StatusCode::OK, &json!(waiting)))
        }
        (&Method::GET, path) => {
            let call = desk.find(id_in(path).ok_or_else(gone)?).ok_or_else(gone)?;
            Ok(json_response(StatusCode::OK, &json!(WholeCall::from(call))))
        }
        (&Method::POST, path) => {
            let id = id_in(path).ok_or_else(gone)?.to_owned();
            let body = Limited::new(request.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|_| Refusal::invalid("the answer cannot be read"))?.to_bytes();
            let Answer { approve, scope } = serde_json::from_slice(&body)
                .map_err(|_| Refusal::invalid("an answer is {\"approve\": true | false, \"scope\": …}"))?;
            let approval = match approve {
                true => Approval::Approved { by: BY.to_owned(), scope },
                false => Approval::denied_by_user(BY),
            };
            if desk.answer(&id, approval) { Ok(empty(StatusCode::NO_CONTENT)) } else { Err(gone()) }
        }
        _ => Err(gone()),
    }
}

/// The call that a path is about.
fn id_in(path: &str) -> Option<&str> {
    path.strip_prefix(PATH)?.strip_prefix('/')
}

/// The path of a call; `None` for what is the id of none.
fn path_of(id: &str) -> Option<String> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_id.then(|| format!("{PATH}/{id}"))
}

/// The other side: asks an endpoint at `address` with its `token`.
#[derive(Clone)]
pub struct Client {
    address: SocketAddr,
    token: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Client {
    /// Of the endpoint at this address.
    #[must_use]
    pub fn new(address: SocketAddr, token: impl Into<String>) -> Self {
        Self { address, token: token.into() }
    }

    /// The calls that wait, those that have waited longest first.
    ///
    /// # Errors
    ///
    /// Where the endpoint cannot be reached ([`ErrorKind::ConnectionRefused`](io::ErrorKind::ConnectionRefused) where
    /// nobody is there), or refuses.
    pub async fn waiting(&self) -> io::Result<Vec<WaitingCall>> {
        match self.send(Method::GET, PATH, &Value::Null).await? {
            (StatusCode::OK, body) => Ok(serde_json::from_slice(&body)?),
            (status, body) => Err(refused(status, &body)),
        }
    }

    /// One of them, whole; `None` where it does not wait any more.
    ///
    /// # Errors
    ///
    /// As [`waiting`](Self::waiting).
    pub async fn whole(&self, id: &str) -> io::Result<Option<WholeCall>> {
        let Some(path) = path_of(id) else { return Ok(None) };
        match self.send(Method::GET, &path, &Value::Null).await? {
            (StatusCode::OK, body) => Ok(Some(serde_json::from_slice(&body)?)),
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, body) => Err(refused(status, &body)),
        }
    }

    /// Approves a call, thus far, or denies it. Says whether it was still waiting.
    ///
    /// # Errors
    ///
    /// As [`waiting`](Self::waiting).
    pub async fn answer(&self, id: &str, approve: Option<ApprovalScope>) -> io::Result<bool> {
        let Some(path) = path_of(id) else { return Ok(false) };
        let answer = Answer { approve: approve.is_some(), scope: approve.unwrap_or_default() };
        match self.send(Method::POST, &path, &json!(answer)).await? {
            (StatusCode::NO_CONTENT, _) => Ok(true),
            (StatusCode::NOT_FOUND, _) => Ok(false),
            (status, body) => Err(refused(status, &body)),
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> io::Result<(StatusCode, Bytes)> {
        let sent = async {
            let stream = TcpStream::connect(self.address).await?;
            let (mut sender, connection) =
                client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
            let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(HOST, self.address.to_string())
                .header(AUTHORIZATION, format!("Bearer {}", self.token))
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(body.to_string())))
                .map_err(io::Error::other)?;
            let response = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_READ).collect().await;
            Ok((status, body.map_err(io::Error::other)?.to_bytes()))
        };
        tokio::time::timeout(PATIENCE, sent).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

fn refused(status: StatusCode, body: &[u8]) -> io::Error {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    io::Error::other(format!("it refused ({status}): {}", body["error"].as_str().unwrap_or_default()))
}
