//! Serving over HTTP: both eras at one address, whose session is whose, and everything that comes from strangers.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![cfg_attr(target_os = "linux", expect(clippy::print_stderr, reason = "what was measured is to be read"))]

mod common;

use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use aster_runtime::audit::{AuditSink, Record};
use aster_runtime::gate::limits::{Limit, Limits};
use aster_runtime::serve::http::{self, HttpService, Options, Principal};
use aster_runtime::serve::{ServeError, Shape};
use aster_runtime::tool::AskError;
use aster_runtime::{Host, Profile, ToolContext, ToolResult, mcp_server, mcp_tool};
use common::Scripted;
use futures_util::future::join_all;
use proptest::prelude::*;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(30);

const TOKEN: &str = "the-token-of-this-test";

/// Calls that are held until they are let go.
struct Probe {
    started: Arc<Semaphore>,
    release: Arc<Semaphore>,
}

/// Looks and waits.
#[mcp_server(name = "probe")]
impl Probe {
    /// Says a text back.
    #[mcp_tool(tier = Standard)]
    fn echo(text: String) -> String {
        text
    }

    /// Waits until it is released.
    #[mcp_tool(tier = Standard)]
    async fn wait(&self) -> &'static str {
        self.started.add_permits(1);
        self.release.acquire().await.unwrap().forget();
        "released"
    }

    /// Asks for the client's folders.
    #[mcp_tool(tier = Standard)]
    async fn folders(ctx: &ToolContext) -> Result<String, AskError> {
        Ok(format!("{:?}", ctx.roots().await?))
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Value>>);

impl AuditSink for Recorder {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

impl Recorder {
    fn outcomes(&self) -> Vec<Value> {
        let records = self.0.lock().unwrap();
        records.iter().filter_map(|record| record.get("outcome")).cloned().collect()
    }
}

/// An external server that says when it has started.
fn late() -> Arc<Scripted> {
    Arc::new(Scripted::new("late", |_, _| Ok(ToolResult::text("late"))))
}

/// Tools that come late.
fn tools(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!({"name": name, "description": "Comes late."})).collect()
}

/// A host that listens.
struct Edge {
    address: SocketAddr,
    service: HttpService,
    audit: Arc<Recorder>,
    started: Arc<Semaphore>,
    release: Arc<Semaphore>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

async fn host(probe: Probe, audit: Arc<Recorder>, late: Option<Arc<Scripted>>) -> Host {
    let mut builder = Host::builder().with_server(probe).audit(audit);
    if let Some(late) = late {
        builder = builder.with_upstream(late);
    }
    builder.build().await.unwrap()
}

impl Edge {
    async fn start(options: Options) -> Self {
        Self::with(options, Profile::new("test"), None).await
    }

    async fn with(options: Options, profile: Profile, late: Option<Arc<Scripted>>) -> Self {
        let (started, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let audit = Arc::new(Recorder::default());
        let probe = Probe { started: Arc::clone(&started), release: Arc::clone(&release) };
        let host = host(probe, Arc::clone(&audit), late).await;
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = http::bind(host, profile, Shape::Bridge, options, any).await.unwrap();
        let (address, service) = (listener.address(), listener.service().clone());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(stop.clone()));
        Self { address, service, audit, started, release, stop, serving }
    }

    fn client(&self, modern: bool) -> Client {
        Client::new(format!("http://{}/mcp", self.address), modern)
    }

    /// Waits until a call of `probe/wait` runs.
    async fn called(&self) {
        within(self.started.acquire()).await.unwrap().forget();
    }

    /// Waits until that many calls have ended, and says how.
    async fn outcomes(&self, number: usize) -> Vec<Value> {
        until(|| self.audit.outcomes().len() >= number).await;
        self.audit.outcomes()
    }

    /// Sends bytes and returns what comes until the connection ends.
    async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // It may be refused before it is read.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = within(stream.read_to_end(&mut answer)).await;
        String::from_utf8(answer).unwrap()
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not hang")
}

async fn until(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A client of one era.
#[derive(Clone)]
struct Client {
    http: reqwest::Client,
    url: String,
    modern: bool,
    /// What it calls itself.
    name: &'static str,
    headers: Vec<(&'static str, String)>,
    session: Option<String>,
}

impl Client {
    fn new(url: String, modern: bool) -> Self {
        let name = if modern { "new" } else { "old" };
        Self { http: reqwest::Client::new(), url, modern, name, headers: Vec::new(), session: None }
    }

    fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn token(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    /// Begins a session, where the era has one.
    async fn begin(mut self) -> Self {
        if !self.modern {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": self.name, "version": "1"}});
            let response = self.send("initialize", hello).await;
            assert_eq!(response.status(), 200);
            self.session = Some(response.headers()["mcp-session-id"].to_str().unwrap().to_owned());
            assert_eq!(answer(response).await["result"]["protocolVersion"], "2025-06-18");
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            assert_eq!(self.post(&ready).send().await.unwrap().status(), 202);
        }
        self
    }

    fn request(&self, method: Method) -> reqwest::RequestBuilder {
        let mut request = self.http.request(method, &self.url);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.header("accept", "application/json, text/event-stream").timeout(PATIENCE)
    }

    fn post(&self, message: &Value) -> reqwest::RequestBuilder {
        let mut request = self.request(Method::POST).json(message);
        if self.modern {
            request = request.header("mcp-protocol-version", "2026-07-28");
            request = request.header("mcp-method", message["method"].as_str().unwrap());
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        }
        request
    }

    async fn send(&self, method: &str, mut params: Value) -> Response {
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            });
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(&message).send().await.unwrap()
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        answer(self.send(method, params).await).await
    }

    /// What the bridge answers.
    async fn bridge(&self, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({"name": "aster_mcp", "arguments": arguments})).await;
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    async fn execute(&self, name: &str, arguments: Value) -> String {
        self.bridge(json!({"action": "execute", "name": name, "arguments": arguments})).await
    }

    /// The stream on which a client hears of changes.
    async fn listen(&self) -> Response {
        if self.modern {
            return self
                .send("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
                .await;
        }
        self.request(Method::GET).send().await.unwrap()
    }
}

/// The answer in a response of either form.
async fn answer(response: Response) -> Value {
    let streamed = response.headers()["content-type"] == "text/event-stream";
    let text = response.text().await.unwrap();
    let messages: Vec<&str> = if streamed { data(&text) } else { vec![&text] };
    serde_json::from_str(messages.last().unwrap_or_else(|| panic!("no answer in {text:?}"))).unwrap()
}

fn data(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty()).collect()
}

/// Reads a stream until something stands in it.
async fn hear(response: &mut Response, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let chunk = within(response.chunk()).await.unwrap();
        text += std::str::from_utf8(&chunk.unwrap_or_else(|| panic!("it ended with {text:?}"))).unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bridge_in_both_eras_at_one_address() {
    let edge = Edge::start(Options::default()).await;
    for modern in [false, true] {
        let client = edge.client(modern).begin().await;
        let listed = client.ask("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "aster_mcp");
        assert_eq!(listed["result"].get("resultType").is_some(), modern);
        assert!(
            client.bridge(json!({"action": "search", "query": "say text back"})).await.contains("probe/echo")
        );
        let described = client.bridge(json!({"action": "describe", "name": "probe/echo"})).await;
        assert!(described.contains("input_schema"), "{described}");
        assert_eq!(client.execute("probe/echo", json!({"text": "abc"})).await, "abc");
        assert_eq!(client.ask("tools/call", json!({"name": "nothing"})).await["error"]["code"], -32602);
    }
    assert_eq!(edge.service.sessions(), 1);
    // What nobody offered is refused, and recorded like everything else that is.
    assert_eq!(edge.audit.outcomes(), ["ok", "denied", "ok", "denied"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_its_client_says_so_or_nothing() {
    let edge = Edge::start(Options::default().session_idle(Duration::from_millis(300))).await;
    let client = edge.client(false).begin().await;
    assert_eq!(client.request(Method::DELETE).send().await.unwrap().status(), 204);
    assert_eq!(client.send("tools/list", json!({})).await.status(), 404);
    assert_eq!(client.request(Method::DELETE).send().await.unwrap().status(), 404);

    let client = edge.client(false).begin().await;
    until(|| edge.service.sessions() == 0).await;
    assert_eq!(client.send("tools/list", json!({})).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_belong_to_those_who_began_them() {
    let options = Options::default().token("ann", TOKEN).token("bob", "another-token-of-this-test");
    let edge = Edge::with(options, Profile::new("test").require_describe(true), None).await;
    let describe = json!({"action": "describe", "name": "probe/echo"});
    let echo = json!({"text": "abc"});

    // In the legacy era a session is one of the protocol; in the modern one it is all that a principal does.
    let old = edge.client(false).token(TOKEN).begin().await;
    let other = edge.client(false).token(TOKEN).begin().await;
    old.bridge(describe.clone()).await;
    assert_eq!(old.execute("probe/echo", echo.clone()).await, "abc");
    assert!(other.execute("probe/echo", echo.clone()).await.contains("describe"));

    let new = edge.client(true).token(TOKEN);
    assert!(new.execute("probe/echo", echo.clone()).await.contains("describe"));
    new.bridge(describe.clone()).await;
    assert_eq!(new.execute("probe/echo", echo.clone()).await, "abc");
    let bob = edge.client(true).token("another-token-of-this-test");
    assert!(bob.execute("probe/echo", echo.clone()).await.contains("describe"));

    // Another's session is none.
    let mut thief = edge.client(false).token("another-token-of-this-test");
    thief.session.clone_from(&old.session);
    let mut stranger = thief.clone();
    stranger.session = Some("00000000-0000-0000-0000-000000000000".to_owned());
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let mut answers = Vec::new();
        for client in [&thief, &stranger] {
            let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
            let request = match method {
                Method::POST => client.post(&list),
                _ => client.request(method.clone()),
            };
            let response = request.send().await.unwrap();
            answers.push((response.status(), response.text().await.unwrap()));
        }
        assert_eq!(answers[0].0, 404, "{method}");
        assert_eq!(answers[0], answers[1], "{method}");
    }
    assert_eq!(old.execute("probe/echo", echo).await, "abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_names_whose_call_it_was_and_through_which_client() {
    let edge = Edge::start(Options::default().token("ann", TOKEN)).await;
    let echo = json!({"text": "abc"});
    // In the modern era the two share a session.
    for (modern, name) in [(true, "first"), (true, "second"), (false, "third"), (false, "fourth")] {
        let client = edge.client(modern).token(TOKEN).named(name).begin().await;
        client.execute("probe/echo", echo.clone()).await;
        client.execute("probe/nothing", json!({})).await;
        client.ask("tools/call", json!({"name": "nothing"})).await;
        client.bridge(json!({"action": "execute", "name": 1})).await;
        let records = std::mem::take(&mut *edge.audit.0.lock().unwrap());
        assert_eq!(records.len(), 5, "{records:?}");
        for record in &records {
            assert_eq!((&record["client"], &record["principal"]), (&json!(name), &json!("ann")), "{record}");
            assert!(!record.to_string().contains(TOKEN), "{record}");
        }
    }
}

/// With all that the modern era asks for, rmcp gives a request no session; that of an older client has one, or it could
/// never be asked anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_stands_alone_names_a_version_that_does() {
    let edge = Edge::start(Options::default()).await;
    let began = edge.client(false).begin().await;
    for client in [edge.client(false), began] {
        let execute = json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "probe/folders"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2025-11-25",
            "io.modelcontextprotocol/clientInfo": {"name": "mixed", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        }});
        let client = client.header("mcp-protocol-version", "2025-11-25");
        let response = client.send("tools/call", execute).await;
        assert_eq!(response.status(), 400);
        let refused = answer(response).await;
        assert_eq!(refused["error"]["code"], -32022, "{refused}");
        assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    }
    assert!(edge.audit.outcomes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_in_particular_need_not_describe_in_the_modern_era() {
    let edge = Edge::with(Options::default(), Profile::new("test").require_describe(true), None).await;
    let echo = json!({"text": "abc"});
    assert_eq!(edge.client(true).execute("probe/echo", echo.clone()).await, "abc");
    let old = edge.client(false).begin().await;
    assert!(old.execute("probe/echo", echo).await.contains("describe"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_in_particular_has_the_limits_of_one_session() {
    let probe = Probe { started: Arc::new(Semaphore::new(0)), release: Arc::new(Semaphore::new(0)) };
    let limits = Limits::default().session(Limit::default().per_minute(2));
    let host = Host::builder().with_server(probe).limits(limits).build().await.unwrap();
    let options = Options::default().token("someone", "0123456789abcdef0123456789abcdef");
    for (options, token) in [(Options::default(), None), (options, Some("0123456789abcdef0123456789abcdef"))]
    {
        let any = "127.0.0.1:0".parse().unwrap();
        let listener =
            http::bind(host.clone(), Profile::new("test"), Shape::Bridge, options, any).await.unwrap();
        let mut client = Client::new(format!("http://{}/mcp", listener.address()), true);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(stop.clone()));
        if let Some(token) = token {
            client = client.token(token);
        }
        for _ in 0..2 {
            assert_eq!(client.execute("probe/echo", json!({"text": "abc"})).await, "abc");
        }
        let told = client.execute("probe/echo", json!({"text": "abc"})).await;
        assert!(told.starts_with("this session may make 2 calls a minute"), "{told}");
        stop.cancel();
        serving.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_demanded_of_every_request_but_for_health() {
    let edge = Edge::start(Options::default().token("ann", TOKEN)).await;
    for (token, challenge) in [(None, "Bearer"), (Some("wrong"), "Bearer error=\"invalid_token\"")] {
        for modern in [false, true] {
            let mut client = edge.client(modern);
            if let Some(token) = token {
                client = client.token(token);
            }
            for method in [Method::POST, Method::GET, Method::DELETE] {
                let response = client.request(method).body("{}").send().await.unwrap();
                assert_eq!(response.status(), 401);
                assert_eq!(response.headers()["www-authenticate"], challenge);
            }
        }
    }
    assert_eq!(edge.client(true).token(TOKEN).execute("probe/echo", json!({"text": "a"})).await, "a");
    let health = reqwest::get(format!("http://{}/health", edge.address)).await.unwrap();
    assert_eq!(
        health.json::<Value>().await.unwrap(),
        json!({"status": "ok", "servers": {"ready": 1, "starting": 0, "down": 0, "disabled": 0, "needs_consent": 0}})
    );
    // What was called is for those who may call.
    let metrics = edge.client(true).http.get(format!("http://{}/metrics", edge.address));
    assert_eq!(metrics.try_clone().unwrap().send().await.unwrap().status(), 401);
    let metrics = metrics.bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(metrics.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("aster_calls_total{server=\"probe\",outcome=\"ok\"} 1\n"), "{metrics}");
    assert!(
        edge.raw(b"GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            .await
            .contains(" 403 ")
    );
}

#[tokio::test]
async fn other_machines_need_a_token() {
    let host = Host::builder().build().await.unwrap();
    let bind = |address: &str, options| {
        http::bind(host.clone(), Profile::new("test"), Shape::Bridge, options, address.parse().unwrap())
    };
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "192.0.2.1:0"] {
        let error = bind(address, Options::default()).await.unwrap_err();
        assert!(matches!(error, ServeError::TokenRequired(_)), "{address}: {error}");
    }
    assert!(bind("0.0.0.0:0", Options::default().token("ann", TOKEN)).await.is_ok());
    let error = bind("127.0.0.1:0", Options::default().token("ann", "short")).await.unwrap_err().to_string();
    assert!(error.contains("16 or more") && !error.contains("short"), "{error}");
    let error = bind("127.0.0.1:0", Options::default().token("", TOKEN)).await.unwrap_err().to_string();
    assert!(error.contains("label") && !error.contains(TOKEN), "{error}");
}

/// Everything that begins with 127 is loopback, where the system has it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_listener_answers_to_its_own_address() {
    let host = Host::builder().build().await.unwrap();
    for address in ["127.0.0.1:0", "127.0.0.2:0", "[::ffff:127.0.0.1]:0"] {
        let address = address.parse().unwrap();
        let listener =
            http::bind(host.clone(), Profile::new("test"), Shape::Bridge, Options::default(), address)
                .await
                .unwrap();
        let url = listener.url().replace("/mcp", "/health");
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(stop.clone()));
        assert_eq!(reqwest::get(&url).await.unwrap().status(), 200, "{url}");
        stop.cancel();
        within(serving).await.unwrap();
    }
}

/// Who listens everywhere is reached under its addresses, and under a name only where that was named.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_listener_at_all_addresses_answers_to_each() {
    let host = Host::builder().build().await.unwrap();
    for named in [false, true] {
        let mut options = Options::default().token("ann", TOKEN);
        if named {
            options = options.allowed_hosts(["tools.example"]);
        }
        let any = "0.0.0.0:0".parse().unwrap();
        let bound = http::bind(host.clone(), Profile::new("test"), Shape::Bridge, options, any).await;
        let listener = bound.unwrap();
        assert_eq!(listener.is_nameless(), !named);
        let url = format!("http://127.0.0.2:{}/health", listener.address().port());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(stop.clone()));
        let status = async |name: &str| {
            reqwest::Client::new().get(&url).header("host", name).send().await.unwrap().status().as_u16()
        };
        let own = if named { 403 } else { 200 };
        assert_eq!(status("127.0.0.2").await, own);
        assert_eq!(status("127.0.0.2:80").await, own);
        assert_eq!(status("localhost").await, own);
        // Another's address, and a name that its owner may have pointed here.
        assert_eq!(status("127.0.0.3").await, 403);
        assert_eq!(status("evil.example").await, 403);
        assert_eq!(status("tools.example").await, if named { 200 } else { 403 });
        stop.cancel();
        within(serving).await.unwrap();
    }
}

/// A program's own authentication names principals, and its router carries the service.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_mounts_the_service_and_names_principals() {
    let closed = || Arc::new(Semaphore::new(0));
    let probe = Probe { started: closed(), release: closed() };
    let host = host(probe, Arc::default(), None).await;
    let profile = Profile::new("test").require_describe(true);
    let service = http::service(host, profile, Shape::Bridge, Options::default()).unwrap();
    let authenticate = |mut request: axum::extract::Request, next: axum::middleware::Next| async move {
        if let Some(user) = request.headers().get("x-user") {
            let user = user.to_str().unwrap().to_owned();
            request.extensions_mut().insert(Principal(user));
        }
        next.run(request).await
    };
    let router = axum::Router::new()
        .nest_service("/tools/mcp", service.clone())
        .layer(axum::middleware::from_fn(authenticate));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/tools/mcp", listener.local_addr().unwrap());
    let serving = tokio::spawn(async { axum::serve(listener, router).await });

    let client = |user: &str| Client::new(url.clone(), true).header("x-user", user);
    let echo = json!({"text": "abc"});
    client("ann").bridge(json!({"action": "describe", "name": "probe/echo"})).await;
    assert_eq!(client("ann").execute("probe/echo", echo.clone()).await, "abc");
    assert!(client("bob").execute("probe/echo", echo).await.contains("describe"));

    // Nobody is not somebody whose name is empty: the call that one began is none of the other's.
    let call = json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "probe/folders"}});
    let (nobody, nameless) = (Client::new(url.clone(), true), client(""));
    nameless.bridge(json!({"action": "describe", "name": "probe/folders"})).await;
    for (one, other) in [(&nobody, &nameless), (&nameless, &nobody)] {
        let asked = one.ask("tools/call", call.clone()).await;
        let mut again = call.clone();
        again["requestState"] = asked["result"]["requestState"].clone();
        again["inputResponses"] = json!({"roots_1": {"roots": []}});
        let refused = other.ask("tools/call", again.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let done = one.ask("tools/call", again).await;
        assert_eq!(done["result"]["content"][0]["text"], "[]", "{done}");
    }

    let old = Client::new(url.clone(), false).header("x-user", "ann").begin().await;
    let mut stream = old.listen().await;
    hear(&mut stream, "retry").await;
    service.stop();
    while within(stream.chunk()).await.unwrap().is_some() {}
    assert_eq!(old.send("tools/list", json!({})).await.status(), 503);
    serving.abort();
}

/// What strangers send: the head of a request, its body, and the status.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_requests_are_refused() {
    let edge = Edge::start(Options::default().max_body(1000)).await;
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    let batch = format!("[{list}, {list}]");
    let plain = format!("Host: localhost\r\n{json}");
    let stream = "Host: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: none\r\n";
    let long = format!("{list}{}", " ".repeat(1000));
    let deep = "[".repeat(900);
    let many: String = (0..100).map(|number| format!("X-{number}: a\r\n")).collect();
    let wide = format!("X-Wide: {}\r\n", "a".repeat(1_000_000));
    let cases: &[(&str, &str, &[u8], u16)] = &[
        // The names.
        ("POST /mcp", "Host: evil.example\r\n", b"", 403),
        ("POST /mcp", "Host: localhost\r\nHost: localhost\r\n", b"", 400),
        ("POST /mcp", "Host: localhost\r\nHost: evil.example\r\n", b"", 400),
        ("POST /mcp", "", b"", 400),
        ("POST http://evil.example/mcp", "Host: localhost\r\n", b"", 403),
        ("POST http://localhost/mcp", "Host: evil.example\r\n", b"", 403),
        ("POST /mcp", "Host: localhost\r\nOrigin: null\r\n", b"", 403),
        ("POST /mcp", "Host: localhost\r\nOrigin: http://evil.example\r\n", b"", 403),
        (
            "POST /mcp",
            "Host: localhost\r\nOrigin: http://localhost\r\nOrigin: http://localhost\r\n",
            b"",
            403,
        ),
        ("GET /", "Host: localhost\r\nOrigin: http://evil.example\r\n", b"", 403),
        ("GET /", "Host: localhost\r\n", b"", 404),
        // The method.
        ("PUT /mcp", "Host: localhost\r\n", b"", 405),
        ("OPTIONS /mcp", "Host: localhost\r\n", b"", 405),
        ("TRACE /mcp", "Host: localhost\r\n", b"", 405),
        ("PATCH /mcp", "Host: localhost\r\nOrigin: http://localhost:6274\r\n", b"", 405),
        // The head.
        ("POST /mcp", &format!("Host: localhost\r\n{many}"), b"", 431),
        ("POST /mcp", &format!("Host: localhost\r\n{wide}"), b"", 431),
        ("POST /mcp", "Host: localhost\r\nContent-Type: text/plain\r\n", list.as_bytes(), 415),
        ("POST /mcp", "Host: localhost\r\nContent-Type: application/json-rpc\r\n", list.as_bytes(), 415),
        ("POST /mcp", "Host: localhost\r\n", list.as_bytes(), 415),
        (
            "POST /mcp",
            "Host: localhost\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n",
            list.as_bytes(),
            415,
        ),
        (
            "POST /mcp",
            "Host: localhost\r\nContent-Type: application/json\r\nAccept: text/html\r\n",
            list.as_bytes(),
            406,
        ),
        (
            "POST /mcp",
            &format!("Host: localhost\r\nMcp-Session-Id: a\r\nMcp-Session-Id: b\r\n{json}"),
            b"{}",
            400,
        ),
        ("GET /mcp", &format!("{stream}MCP-Protocol-Version: 2025-06-18\r\n"), b"", 404),
        (
            "GET /mcp",
            &format!("{stream}MCP-Protocol-Version: 2025-06-18\r\nMCP-Protocol-Version: 2025-11-25\r\n"),
            b"",
            400,
        ),
        ("GET /mcp", &format!("{stream}Mcp-Session-Id: other\r\n"), b"", 400),
        ("GET /mcp", &format!("{stream}Last-Event-Id: 1/0\r\nLast-Event-Id: 1/1\r\n"), b"", 400),
        (
            "POST /mcp",
            &format!("Host: localhost\r\nMCP-Protocol-Version: 1999\r\n{json}"),
            list.as_bytes(),
            400,
        ),
        // The body.
        ("POST /mcp", &plain, long.as_bytes(), 413),
        ("POST /mcp", &plain, b"", 400),
        ("POST /mcp", &plain, b"{\"secret\": ", 400),
        ("POST /mcp", &plain, b"\xff\xfe", 400),
        ("POST /mcp", &plain, b"{\"method\": \"\xc3\x28\"}", 400),
        ("POST /mcp", &plain, deep.as_bytes(), 400),
        ("POST /mcp", &plain, b"[]", 400),
        ("POST /mcp", &plain, batch.as_bytes(), 400),
        ("POST /mcp", &plain, b"null", 400),
        ("POST /mcp", &plain, b"{}", 400),
        ("POST /mcp", &plain, b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400),
        ("POST /mcp", &plain, b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"initialize\"}", 400),
        ("POST /mcp", &plain, list.as_bytes(), 400),
        ("POST /mcp", &format!("Host: localhost\r\nMcp-Session-Id: none\r\n{json}"), list.as_bytes(), 404),
    ];
    for (line, headers, body, status) in cases {
        let length = body.len();
        let head =
            format!("{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
        let answer = edge.raw(&[head.as_bytes(), body].concat()).await;
        let shown = &head[..head.len().min(300)];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{shown}\n{answer}");
        assert!(!answer.contains("secret"), "{answer}");
        let Some((_, body)) = answer.split_once("\r\n\r\n").filter(|(head, _)| head.contains("json")) else {
            continue;
        };
        let body: Value = serde_json::from_str(body).unwrap();
        assert!(body["error"]["message"].is_string(), "{answer}");
    }
    let code = async |body: &str| {
        let answer = edge.client(false).request(Method::POST).header("content-type", "application/json");
        let answer: Value = answer.body(body.to_owned()).send().await.unwrap().json().await.unwrap();
        (answer["error"]["code"].as_i64().unwrap(), answer["id"].clone())
    };
    assert_eq!(code("{").await, (-32700, Value::Null));
    assert_eq!(code("[]").await.0, -32600);
    // A list is no message, also where its items could be read as the fields of one.
    for list in ["[]", r#"[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]"#, r#"[1, "initialize", {}]"#] {
        let answer = answer(
            edge.client(false)
                .request(Method::POST)
                .header("content-type", "application/json")
                .body(list)
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(answer["error"]["message"], "this is a batch; send each message by itself", "{list}");
    }
    assert_eq!(code(r#"{"jsonrpc": "1.0", "id": "x", "method": "ping"}"#).await, (-32600, json!("x")));
    // It still answers.
    assert_eq!(edge.client(true).execute("probe/echo", json!({"text": "a"})).await, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_requests_are_given_up() {
    let options = Options::default()
        .body_timeout(Duration::from_millis(200))
        .header_timeout(Duration::from_millis(200));
    let edge = Edge::start(options).await;
    // Headers that never end, and a connection on which nothing comes at all.
    for slow in ["POST /mcp HTTP/1.1\r\nHost: localhost\r\n", ""] {
        let answer = edge.raw(slow.as_bytes()).await;
        assert!(answer.is_empty() || answer.contains(" 408 "), "{answer}");
    }
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    assert!(edge.raw(head.as_bytes()).await.starts_with("HTTP/1.1 408 "));
    // A body that breaks off.
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    let _ = within(stream.read_to_string(&mut answer)).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

/// What one connection sends slowly is not there for the others, and comes back with it.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_so_much_room_in_all() {
    let edge = Edge::start(Options::default().max_bodies(1000)).await;
    let list = format!("{}{}", json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), " ".repeat(300));
    let began = edge.client(false).begin().await;
    let send = async || {
        let request = began.request(Method::POST).header("content-type", "application/json");
        request.body(list.clone()).send().await.unwrap()
    };
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n";
    let mut slow = TcpStream::connect(edge.address).await.unwrap();
    // What is only announced takes no room.
    slow.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(send().await.status(), 200);
    slow.write_all(&[b' '; 800]).await.unwrap();
    let refused = within(async {
        loop {
            let response = send().await;
            if response.status() != StatusCode::OK {
                break response;
            }
        }
    });
    let refused = refused.await;
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    drop(slow);
    within(async { while send().await.status() != StatusCode::OK {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_may_ask_can_read_the_answers_and_no_others() {
    let edge =
        Edge::start(Options::default().allowed_origins(["https://app.example"]).token("ann", TOKEN)).await;
    let app = |client: Client| client.header("origin", "https://app.example");
    let told = |response: &Response| {
        let told = response.headers().iter().filter(|(name, _)| name.as_str().starts_with("access-control"));
        let told = told.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let mut told: Vec<String> = told.collect();
        told.sort();
        told
    };
    let readable = [
        "access-control-allow-origin: https://app.example",
        "access-control-expose-headers: mcp-session-id, mcp-protocol-version, www-authenticate, retry-after",
    ];
    // A preflight has no token.
    let preflight = |origin| {
        let asks = edge.client(false).request(Method::OPTIONS).header("origin", origin);
        asks.header("access-control-request-method", "POST")
            .header("access-control-request-headers", "Authorization,content-type, mcp-param-city,x-other")
    };
    let response = preflight("https://app.example").send().await.unwrap();
    assert_eq!(response.status(), 204);
    assert_eq!(
        told(&response),
        [
            "access-control-allow-headers: authorization, content-type, mcp-param-city",
            "access-control-allow-methods: POST, GET, DELETE",
            readable[0],
            readable[1],
            "access-control-max-age: 600",
        ]
    );
    let response = preflight("https://evil.example").send().await.unwrap();
    assert_eq!((response.status(), told(&response)), (StatusCode::FORBIDDEN, Vec::new()));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let health = edge.client(false).http.get(format!("http://{}/health", edge.address));
    for (request, status) in [
        (app(edge.client(false).token(TOKEN).begin().await).post(&list), 200),
        (app(edge.client(false)).post(&list), 401),
        (app(edge.client(false)).request(Method::OPTIONS), 405),
        (health.header("origin", "https://app.example"), 200),
    ] {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(told(&response), readable);
        assert_eq!(response.headers()["vary"], "origin");
    }
    for request in [
        edge.client(false).token(TOKEN).begin().await.post(&list),
        edge.client(false).token(TOKEN).header("origin", "https://evil.example").post(&list),
        edge.client(false).request(Method::OPTIONS).header("access-control-request-method", "POST"),
    ] {
        assert_eq!(told(&request.send().await.unwrap()), Vec::<String>::new());
    }
    // Whatever runs on this machine can serve a page: it may ask, and without a token read nothing.
    let open = Edge::start(Options::default()).await;
    let response = open.client(false).begin().await.header("origin", "http://localhost:3000").post(&list);
    let response = response.send().await.unwrap();
    assert_eq!((response.status(), told(&response)), (StatusCode::OK, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_no_answer_is_given_up() {
    let edge = Edge::start(Options::default().write_timeout(Duration::from_millis(200))).await;
    let mut stream = TcpStream::connect(edge.address).await.unwrap();
    let requests = "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1000);
    // The answers fill all that lies between, and then the server takes no more until it breaks off.
    within(async { while stream.write_all(requests.as_bytes()).await.is_ok() {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_room_for_so_many() {
    let edge = Edge::start(Options::default().max_sessions(2)).await;
    let first = edge.client(false).begin().await;
    let second = edge.client(false).begin().await;
    let hello = || json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    let refused = edge.client(false).send("initialize", hello()).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()["retry-after"], "1");
    first.request(Method::DELETE).send().await.unwrap();
    let third = edge.client(false).begin().await;
    drop((first, second, third));

    // One principal takes not all of it; what nobody proves is nobody's share.
    let options = Options::default().max_sessions_of_one(2).max_sessions(4);
    let edge = Edge::start(options.token("ann", TOKEN).token("bob", "another-token-of-this-test")).await;
    let (ann, bob) =
        (edge.client(false).token(TOKEN), edge.client(false).token("another-token-of-this-test"));
    let first = ann.clone().begin().await;
    let second = ann.clone().begin().await;
    let refused = ann.send("initialize", hello()).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert!(answer(refused).await["error"]["message"].as_str().unwrap().contains("too many sessions"));
    let other = bob.begin().await;
    assert_eq!(edge.service.sessions(), 3);
    first.request(Method::DELETE).send().await.unwrap();
    let third = ann.begin().await;
    drop((second, third, other));

    let edge = Edge::start(Options::default().max_connections(3)).await;
    let mut held = Vec::new();
    let full = within(async {
        loop {
            let mut stream = TcpStream::connect(edge.address).await.unwrap();
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            let mut answer = vec![0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            if answer.ends_with(b"503") {
                break String::from_utf8(answer).unwrap();
            }
            held.push(stream);
        }
    })
    .await;
    assert_eq!(full, "HTTP/1.1 503");
    assert!(held.len() <= 3, "{}", held.len());
    drop(held);
    let freed = || async { reqwest::get(format!("http://{}/health", edge.address)).await.unwrap().status() };
    within(async { while freed().await != StatusCode::OK {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_cancels_its_call() {
    let edge = Edge::start(Options::default()).await;
    let client = edge.client(true);
    let call = tokio::spawn(async move { client.execute("probe/wait", json!({})).await });
    edge.called().await;
    call.abort();
    assert_eq!(edge.outcomes(1).await, ["cancelled"]);

    // In the legacy era a connection that breaks cancels nothing, as the specification says; the session's end does.
    let client = edge.client(false).begin().await;
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.execute("probe/wait", json!({})).await });
    edge.called().await;
    call.abort();
    assert_eq!(client.execute("probe/echo", json!({"text": "a"})).await, "a");
    assert_eq!(edge.audit.outcomes(), ["cancelled", "ok"]);
    client.request(Method::DELETE).send().await.unwrap();
    assert_eq!(edge.outcomes(3).await, ["cancelled", "ok", "cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_lets_calls_finish_and_ends_what_only_listens() {
    for modern in [false, true] {
        let edge = Edge::start(Options::default().grace(PATIENCE)).await;
        let client = edge.client(modern).begin().await;
        let mut stream = client.listen().await;
        hear(&mut stream, "data:").await;
        let caller = client.clone();
        let call = tokio::spawn(async move { caller.execute("probe/wait", json!({})).await });
        edge.called().await;
        edge.stop.cancel();
        while within(stream.chunk()).await.unwrap().is_some() {}
        assert!(TcpStream::connect(edge.address).await.is_err());
        assert!(!call.is_finished() && !edge.serving.is_finished());
        edge.release.add_permits(1);
        assert_eq!(within(call).await.unwrap(), "released");
        within(edge.serving).await.unwrap();
        assert_eq!(edge.audit.outcomes(), ["ok"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_cancels_calls_that_take_too_long() {
    for modern in [false, true] {
        let edge = Edge::start(Options::default().grace(Duration::from_millis(100))).await;
        let client = edge.client(modern).begin().await;
        let call = tokio::spawn(async move {
            client
                .send(
                    "tools/call",
                    json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "probe/wait"}}),
                )
                .await
        });
        edge.called().await;
        edge.stop.cancel();
        within(edge.serving).await.unwrap();
        until(|| !edge.audit.outcomes().is_empty()).await;
        assert_eq!(edge.audit.outcomes(), ["cancelled"]);
        call.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_what_waits_for_its_client() {
    let call = json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "probe/folders"}});
    let asked = |answer: Value| assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let edge = Edge::start(Options::default()).await;
    asked(edge.client(true).ask("tools/call", call.clone()).await);
    edge.stop.cancel();
    within(edge.serving).await.unwrap();
    assert_eq!(edge.audit.outcomes(), ["cancelled"]);

    // Where a program mounted the service, no listener waits for it.
    let edge = Edge::start(Options::default()).await;
    asked(edge.client(true).ask("tools/call", call).await);
    edge.service.stop();
    assert_eq!(edge.outcomes(1).await, ["cancelled"]);
}

/// When serving has ended, the process may end too: whatever ran is in the audit by then.
#[tokio::test(flavor = "multi_thread")]
async fn calls_without_a_connection_are_recorded_before_serving_ends() {
    for mounted in [false, true] {
        let edge = Edge::start(Options::default()).await;
        let client = edge.client(false).begin().await;
        let call = tokio::spawn(async move { client.execute("probe/wait", json!({})).await });
        edge.called().await;
        call.abort();
        let _ = call.await;
        if mounted {
            within(edge.service.close()).await;
        } else {
            edge.stop.cancel();
            within(edge.serving).await.unwrap();
        }
        assert_eq!(edge.audit.outcomes(), ["cancelled"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_twice_that_it_is_ready_hears_of_a_change_once() {
    let late = late();
    late.list(tools(&["one"]));
    let edge = Edge::with(Options::default(), Profile::new("test"), Some(Arc::clone(&late))).await;
    let client = edge.client(false).begin().await;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    for _ in 0..3 {
        assert_eq!(client.post(&ready).send().await.unwrap().status(), 202);
    }
    let mut stream = client.listen().await;
    hear(&mut stream, "data:").await;
    late.list(tools(&["one", "two"]));
    let mut heard = hear(&mut stream, "list_changed").await;
    late.list(tools(&["one", "two", "three"]));
    // The second change is there once all has been told of the first.
    let listed = || async { client.ask("tools/list", json!({})).await.to_string() };
    within(async { while !listed().await.contains("late (3)") {} }).await;
    client.request(Method::DELETE).send().await.unwrap();
    while let Ok(Some(chunk)) = within(stream.chunk()).await {
        heard += std::str::from_utf8(&chunk).unwrap();
    }
    let told = heard.matches("list_changed").count();
    assert!(told == 1 || told == 2, "{heard}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_answer_waits_and_changes_are_told() {
    let late = late();
    let edge = Edge::with(Options::default(), Profile::new("test"), Some(Arc::clone(&late))).await;
    let client = edge.client(true);
    let (listed, ()) = tokio::join!(client.ask("tools/list", json!({})), async {
        tokio::task::yield_now().await;
        late.list(tools(&["one"]));
    });
    assert!(listed["result"]["tools"][0]["description"].as_str().unwrap().contains("late (1)"), "{listed}");

    let old = edge.client(false).begin().await;
    let (mut old_stream, mut new_stream) = (old.listen().await, client.listen().await);
    hear(&mut old_stream, "data:").await;
    hear(&mut new_stream, "acknowledged").await;
    late.list(tools(&["one", "two"]));
    hear(&mut old_stream, "notifications/tools/list_changed").await;
    hear(&mut new_stream, "notifications/tools/list_changed").await;
    // No such thing as a change of nothing.
    late.list(tools(&["one", "two"]));
    late.list(tools(&["one", "two", "three"]));
    let heard = hear(&mut old_stream, "list_changed").await;
    assert_eq!(heard.matches("list_changed").count(), 1);
    assert!(
        old.ask("tools/list", json!({})).await["result"]["tools"][0]["description"]
            .as_str()
            .unwrap()
            .contains("late (3)")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_starts_holds_up_the_first_answer_alone() {
    let edge = Edge::with(Options::default(), Profile::new("test"), Some(late())).await;
    let began = Instant::now();
    edge.client(true).ask("tools/list", json!({})).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    let began = Instant::now();
    edge.client(true).ask("tools/list", json!({})).await;
    assert!(began.elapsed() < Duration::from_millis(900));
}

/// One edge for all cases: starting one for each would be most of the time.
fn fuzzed() -> &'static (tokio::runtime::Runtime, Edge) {
    static FUZZED: OnceLock<(tokio::runtime::Runtime, Edge)> = OnceLock::new();
    FUZZED.get_or_init(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let edge = runtime.block_on(Edge::start(Options::default()));
        (runtime, edge)
    })
}

/// Nearly a message: the ways in which one can be wrong, and bytes that are none.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof![
        Just("initialize"),
        Just("tools/call"),
        Just("tools/list"),
        Just("server/discover"),
        Just("notifications/cancelled"),
        Just("subscriptions/unknown"),
        Just("ping"),
        Just("")
    ];
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!(1)),
        Just(json!("a")),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"name": "aster_mcp", "arguments": {"action": "search"}})),
        Just(json!({"name": 1, "arguments": []})),
        Just(
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}})
        ),
        Just(json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})),
        Just(json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}})),
    ];
    let message = (value.clone(), method, value, any::<bool>()).prop_map(|(id, method, params, with_id)| {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if with_id {
            message["id"] = id;
        }
        message.to_string().into_bytes()
    });
    let mutated =
        (message.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut message, at, byte)| {
            let at = at.index(message.len());
            message[at] = byte;
            message
        });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), message, mutated]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn no_body_is_the_servers_fault(body in body(), modern in any::<bool>(), session in any::<bool>()) {
        let (runtime, edge) = fuzzed();
        let status = runtime.block_on(async {
            let mut request = edge.client(false).request(Method::POST).header("content-type", "application/json");
            if modern {
                request = request.header("mcp-protocol-version", "2026-07-28");
            }
            if session {
                request = request.header("mcp-session-id", "a");
            }
            request.body(body).send().await.unwrap().status()
        });
        prop_assert!(!status.is_server_error(), "{}", status);
        prop_assert!(!edge.serving.is_finished());
    }
}

/// A binary of `serve_main!` that serves over HTTP, and where.
#[cfg(unix)]
async fn own_binary(arguments: &[&str]) -> (tokio::process::Child, String) {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let mut server = tokio::process::Command::new(folder.join("own_binary"))
        .arg("serve")
        .args(arguments)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap().unwrap();
    (server, line.strip_prefix("listening on ").unwrap().to_owned())
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_binary_ends_in_order_on_a_signal() {
    let (mut server, url) = own_binary(&["--http=127.0.0.1:0", "--allow-host", "a.example,127.0.0.1"]).await;
    let client = Client::new(url, false).begin().await;
    let mut stream = client.listen().await;
    hear(&mut stream, "data:").await;
    let signal = std::process::Command::new("kill").arg(server.id().unwrap().to_string()).status().unwrap();
    assert!(signal.success());
    while within(stream.chunk()).await.unwrap().is_some() {}
    assert_eq!(within(server.wait()).await.unwrap().code(), Some(0));
}

/// Sessions that stay, each with its stream and a call now and then, cost what they cost once. How many and for how many
/// seconds: `ASTER_SESSIONS` and `ASTER_SESSIONS_SECONDS`.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_stay_hold_their_memory() {
    let read =
        |name, otherwise| std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise);
    let (number, seconds) = (read("ASTER_SESSIONS", 50), read("ASTER_SESSIONS_SECONDS", 2));
    let (server, url) = own_binary(&["--http", "127.0.0.1:0"]).await;
    let status = format!("/proc/{}/status", server.id().unwrap());
    let memory = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let round = async |clients: &[Client]| {
        for some in clients.chunks(50) {
            let calls = some.iter().map(|client| client.execute("text/reverse", json!({"text": "abc"})));
            assert!(join_all(calls).await.iter().all(|answer| answer == "cba"));
        }
    };
    let idle = memory();
    let shared = reqwest::Client::new();
    let mut clients = Vec::new();
    let mut streams = Vec::new();
    for _ in 0..number {
        let client = Client { http: shared.clone(), ..Client::new(url.clone(), false) }.begin().await;
        streams.push(client.request(Method::GET).timeout(Duration::from_secs(3600)).send().await.unwrap());
        clients.push(client);
    }
    let rounds = async || {
        let began = Instant::now();
        let mut rounds = 0;
        while began.elapsed() < Duration::from_secs(seconds) / 2 {
            round(&clients).await;
            rounds += 1;
        }
        rounds
    };
    // In the first half whatever is kept for a while comes to be kept; in the second it must not become more.
    let open = memory();
    rounds().await;
    let (before, rounds, after) = (memory(), rounds().await, memory());
    eprintln!(
        "{number} sessions: {idle} kB idle, {open} kB open, {before} kB in use, {after} kB after {rounds} more rounds"
    );
    let allowed = before / 10 + 4096;
    assert!(after <= before + allowed, "{before} kB grew to {after} kB");
    drop(streams);
}
