//! Real clients drive `aster mcp serve` in front of real servers, over stdio and HTTP, in both eras of the protocol: the
//! Python SDK, the TypeScript SDK and FastMCP, which are told what to do line by line, and the command line of MCP
//! Inspector, which also judges the schemas.
//!
//! `tests/peers/install.sh` installs them and prints the variable `ASTER_PEERS`; without it there is nothing to test.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests start what starts the command")]
mod common;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::Sandbox;
use serde_json::{Value, json};

/// How long anything may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a client over HTTP comes with, and the variable that tells it to the server.
const TOKEN: &str = "the-token-of-a-test";
const TOKEN_VARIABLE: &str = "ASTER_TEST_TOKEN";

/// The eras, and which version of the protocol that is.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("modern", "2026-07-28")];

/// An operation that takes until it is cancelled, and reports progress.
const LONG: &str = "everything/trigger-long-running-operation";

/// A sandbox whose user has these external servers, and reads one page of a site on loopback.
struct Clients {
    peers: PathBuf,
    sandbox: Sandbox,
    servers: &'static [&'static str],
    page: String,
}

impl Clients {
    /// None, said on standard error, where the clients are not installed.
    fn new(servers: &'static [&'static str]) -> Option<Self> {
        let Some(peers) = std::env::var_os("ASTER_PEERS").map(PathBuf::from) else {
            writeln!(std::io::stderr(), "skipped: ASTER_PEERS is not set; run tests/peers/install.sh")
                .expect("written");
            return None;
        };
        let sandbox = Sandbox::new();
        sandbox.write("note.txt", "remember the milk");
        sandbox.write("peer.sh", include_str!("common/peer.sh"));
        let site = site();
        let clients = Self { peers, sandbox, servers, page: format!("http://{site}/") };
        let entries: String =
            servers.iter().map(|name| format!("    {name}: {}\n", clients.entry(name))).collect();
        clients.sandbox.user(&format!(
            "mcp:\n  servers:\n{entries}egress: {{allow_private: ['{site}']}}\naudit: {{path: '{}'}}\n",
            clients.path("audit.jsonl"),
        ));
        Some(clients)
    }

    fn path(&self, name: &str) -> String {
        self.sandbox.path(name).display().to_string()
    }

    fn peer(&self, name: &str) -> String {
        self.peers.join(name).display().to_string()
    }

    /// A server in the configuration.
    fn entry(&self, name: &str) -> String {
        let npm = |package: &str| self.peer(&format!("node_modules/.bin/mcp-server-{package}"));
        match name {
            "everything" => format!("{{command: '{}', args: [stdio]}}", npm(name)),
            "files" => format!("{{command: '{}', args: ['{}']}}", npm("filesystem"), self.path("")),
            "memory" => {
                format!("{{command: '{}', env: {{MEMORY_FILE_PATH: '{}'}}}}", npm(name), self.path("memory"))
            }
            "time" => {
                format!("{{command: '{}', tiers: {{'*': standard}}}}", self.peer("venv/bin/mcp-server-time"))
            }
            "growing" => {
                let (script, log) = (self.path("peer.sh"), self.path("log"));
                format!("{{command: sh, args: ['{script}', '{log}', grow], tiers: {{grow: standard}}}}")
            }
            other => panic!("no server {other}"),
        }
    }

    /// A program in the sandbox, which starts `aster` in the same.
    fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.sandbox.path("home"));
        command.env("ASTER_PEERS", &self.peers).current_dir(self.sandbox.path("project"));
        command
    }

    /// `aster mcp serve` in the sandbox, for a client to start.
    fn aster(&self, arguments: &[&str]) -> Value {
        let environment = json!({
            "HOME": self.path("home"),
            "XDG_CONFIG_HOME": self.path("config"),
            "PATH": std::env::var("PATH").unwrap(),
        });
        let command = [&[env!("CARGO_BIN_EXE_aster"), "mcp", "serve"], arguments].concat();
        json!({"command": command, "env": environment})
    }

    /// Runs the Inspector's command line. It connects anew for each request.
    fn inspector(&self, era: &str, target: &Value, arguments: &[&str]) -> Output {
        let mut command = self.program("node");
        command.arg(self.peers.join("node_modules/.bin/mcp-inspector")).arg("--cli");
        if let Some(url) = target["url"].as_str() {
            let header = format!("Authorization: Bearer {}", target["token"].as_str().unwrap());
            command.args(["--server-url", url, "--header", &header, "--stored-auth-only"]);
        } else {
            for (name, value) in target["env"].as_object().unwrap() {
                command.arg("-e").arg(format!("{name}={}", value.as_str().unwrap()));
            }
            command.args(words(&target["command"]));
        }
        command.args(["--protocol-era", era, "--format", "json", "-q"]).args(arguments).output().unwrap()
    }

    fn audit(&self) -> Vec<Value> {
        // A process that starts before another has ended writes a file of its own.
        let files = ["audit.jsonl", "audit-1.jsonl", "audit-2.jsonl"]
            .map(|name| fs::read_to_string(self.sandbox.path(name)).unwrap_or_default());
        // A line without its end is still being written.
        let lines =
            files.iter().flat_map(|text| text.split_inclusive('\n')).filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How many calls of the long operation were cancelled.
    fn cancelled(&self) -> usize {
        let cancelled = |record: &&Value| record["tool"] == LONG && record["outcome"] == "cancelled";
        self.audit().iter().filter(cancelled).count()
    }

    /// What came of each call, by the tool that was asked for. A call has exactly one outcome, and its client's name.
    fn outcomes(&self, client: &str) -> Vec<(String, String)> {
        let audit = self.audit();
        let mut calls: HashMap<&str, usize> = HashMap::new();
        let mut outcomes = Vec::new();
        // A search or a describe is none.
        for record in audit.iter().filter(|record| record.get("call_id").is_some()) {
            let count = calls.entry(record["call_id"].as_str().unwrap()).or_default();
            if record["stage"] == "outcome" {
                *count += 1;
                let of = |field: &str| record[field].as_str().unwrap().to_owned();
                outcomes.push((of("requested"), of("outcome")));
            }
        }
        assert!(calls.values().all(|count| *count == 1), "one outcome for each call: {audit:?}");
        assert!(audit.iter().all(|record| record["client"] == client), "all by {client}: {audit:?}");
        outcomes
    }

    /// The command lines of what was started for this sandbox and is still running, as far as the system tells.
    fn running(&self) -> Vec<String> {
        let mark = self.path("");
        let read = |process: &fs::DirEntry, what: &str| {
            String::from_utf8_lossy(&fs::read(process.path().join(what)).unwrap_or_default()).into_owned()
        };
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        // Each has its home directory in the sandbox.
        let ours = processes.filter(|process| read(process, "environ").contains(&mark));
        ours.map(|process| read(&process, "cmdline").replace('\0', " ")).collect()
    }

    /// Nothing that was started is running any more. What a client cuts short may need a moment.
    fn assert_all_ended(&self) {
        wait_until("all that was started has ended", || {
            let left = self.running();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
}

/// `aster mcp serve` over HTTP in the sandbox, at an address that it says.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(clients: &Clients, arguments: &[&str]) -> Self {
        let mut command = clients.sandbox.command();
        command.args(["mcp", "serve", "--json", "--http", "127.0.0.1:0", "--token-env", TOKEN_VARIABLE]);
        command.args(arguments).env(TOKEN_VARIABLE, TOKEN).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        // What it complains of later is shown, and never fills the pipe.
        thread::spawn(move || std::io::copy(&mut told, &mut std::io::stderr()));
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no address: {line}"));
        Self { child, url: line["listening"].as_str().unwrap().to_owned() }
    }

    fn target(&self, token: &str) -> Value {
        json!({"url": self.url, "token": token})
    }

    /// Tells it to end, which it does without complaint.
    fn stop(mut self) {
        let told = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(told.success());
        let status = wait_until("the server ends", || self.child.try_wait().unwrap().ok_or_else(String::new));
        assert!(status.success(), "{status}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is gone already unless the test has failed.
        let _ = self.child.kill();
    }
}

/// The lines that a child prints.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The words of a command line.
fn words(command: &Value) -> impl Iterator<Item = &str> {
    command.as_array().unwrap().iter().map(|word| word.as_str().unwrap())
}

/// Waits for a condition, which says why it does not hold yet.
#[track_caller]
fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match condition() {
            Ok(value) => return value,
            Err(why) => assert!(began.elapsed() < PATIENCE, "{what}: {why}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// A site of one page, for as long as the test runs.
fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 4096]);
            let page = "<title>Asters</title><p>They flower <b>late</b>.";
            let head =
                format!("content-type: text/html\r\ncontent-length: {}\r\nconnection: close", page.len());
            // A client that has gone does not hear of it.
            let _ = stream.read(&mut request);
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\n\r\n{page}");
        }
    });
    address
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    Python,
    TypeScript,
    FastMcp,
}

impl Library {
    /// How the client calls itself.
    fn name(self) -> &'static str {
        match self {
            Self::Python => "mcp",
            Self::TypeScript => "typescript",
            Self::FastMcp => "fastmcp",
        }
    }
}

/// A client that does what it is told; `tests/peers/client.py` says what that can be.
struct Client {
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<String>,
    protocol: String,
    changes: u64,
}

impl Client {
    fn command(clients: &Clients, library: Library, era: &str, target: &Value) -> Command {
        const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers");
        let mut command = match library {
            Library::TypeScript => clients.program("node"),
            Library::Python | Library::FastMcp => {
                let mut command = clients.program(clients.peer("venv/bin/python"));
                command.arg("-B");
                command
            }
        };
        command.arg(match library {
            Library::TypeScript => format!("{SCRIPTS}/client.mjs"),
            Library::Python | Library::FastMcp => format!("{SCRIPTS}/client.py"),
        });
        command.args([library.name(), era, &target.to_string()]);
        command
    }

    fn start(clients: &Clients, library: Library, era: &str, target: &Value) -> Self {
        let mut command = Self::command(clients, library, era, target);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let answers = lines(child.stdout.take().unwrap());
        let requests = child.stdin.take();
        let mut client = Self { child, requests, answers, protocol: String::new(), changes: 0 };
        client.protocol = client.answer()["protocol"].as_str().unwrap().to_owned();
        client
    }

    fn answer(&self) -> Value {
        let answer =
            self.answers.recv_timeout(PATIENCE).expect("the client answers; what it complains of is above");
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("not JSON: {answer}"))
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.requests.as_ref().unwrap(), "{request}").unwrap();
        self.answer()
    }

    fn tools(&mut self) -> Vec<Value> {
        self.ask(&json!({"list": {}}))["tools"].as_array().unwrap().clone()
    }

    /// Asks the bridge: the text of the answer, and whether it is an error.
    fn bridge(&mut self, request: &Value) -> (String, bool) {
        let answer = self.ask(&json!({"call": "aster_mcp", "arguments": request}));
        let result = &answer["result"];
        (
            result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned(),
            result["isError"] == true,
        )
    }

    fn execute(&mut self, name: &str, arguments: &Value) -> (String, bool) {
        self.bridge(&json!({"action": "execute", "name": name, "arguments": arguments}))
    }

    /// Waits until so many changes of the list of tools have been heard of, and notes how many it were.
    fn hear(&mut self, changes: u64) {
        self.changes = self.ask(&json!({"changes": changes}))["changes"].as_u64().unwrap();
    }

    /// Ends the connection; the client closes what it has opened.
    fn close(mut self) {
        drop(self.requests.take());
        let status = wait_until("the client ends", || self.child.try_wait().unwrap().ok_or_else(String::new));
        assert!(status.success(), "{status}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It is gone already unless the test has failed.
        let _ = self.child.kill();
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// What lies behind the bridge.
const SERVERS: &[&str] = &["everything", "files", "memory", "time", "growing"];

/// Does with each server what can be done with it. What comes of it is `outcomes_of_use`.
fn uses_the_bridge(clients: &Clients, client: &mut Client, library: Library) {
    // List, find, describe.
    assert_eq!(names(&client.tools()), ["aster_mcp"]);
    for server in clients.servers {
        wait_until("the server has started", || {
            let (found, _) = client.bridge(&json!({"action": "search", "server": server}));
            if found.contains("starting") { Err(found) } else { Ok(()) }
        });
    }
    let (found, _) = client.bridge(&json!({"action": "search", "query": "echo back a message"}));
    assert!(found.contains(r#""id":"everything/echo""#), "{found}");
    let (described, _) = client.bridge(&json!({"action": "describe", "name": "everything/echo"}));
    assert!(described.contains("Message to echo"), "{described}");

    // Call every server, and a native one.
    let fine = |text: &str| (text.to_owned(), false);
    assert_eq!(client.execute("everything/echo", &json!({"message": "hello"})), fine("Echo: hello"));
    let note = client.execute("files/read_text_file", &json!({"path": clients.path("note.txt")}));
    assert_eq!(note, fine("remember the milk"));
    let (graph, _) = client.execute("memory/read_graph", &json!({}));
    assert_eq!(serde_json::from_str::<Value>(&graph).unwrap(), json!({"entities": [], "relations": []}));
    let (time, wrong) = client.execute("time/get_current_time", &json!({"timezone": "Asia/Kolkata"}));
    assert!(!wrong && time.contains("+05:30"), "{time}");
    let (page, wrong) = client.execute("web/extract", &json!({"url": clients.page}));
    assert!(!wrong && page.ends_with("They flower **late**."), "{page}");

    // What is wrong is said: by the bridge, by a server, and by the protocol.
    let (unknown, wrong) = client.execute("everything/ecco", &json!({}));
    assert!(wrong && unknown.contains("no tool `everything/ecco` is known"), "{unknown}");
    let (misspelt, wrong) = client.execute("everything/echo", &json!({"massage": "hello"}));
    assert!(wrong && misspelt.contains(r#""message" is a required property"#), "{misspelt}");
    assert!(misspelt.contains(r#""description":"Message to echo""#), "the schema is there: {misspelt}");
    let (outside, wrong) = client.execute("files/read_text_file", &json!({"path": "/etc/hostname"}));
    assert!(wrong && outside.contains("Access denied"), "{outside}");
    let error = client.ask(&json!({"call": "no_such_tool", "arguments": {}}))["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().unwrap().contains("no tool `no_such_tool` is known"), "{error}");

    // Progress, and a call that is cancelled while all else goes on.
    let steps = json!({"action": "execute", "name": LONG, "arguments": {"duration": 0.2, "steps": 4}});
    let long = client.ask(&json!({"call": "aster_mcp", "arguments": steps}));
    assert!(long["result"]["content"][0]["text"].as_str().unwrap().contains("completed"), "{long}");
    let heard: Vec<_> =
        long["progress"].as_array().unwrap().iter().map(|report| report[0].as_f64().unwrap()).collect();
    let sent = [1.0, 2.0, 3.0, 4.0];
    // The TypeScript SDK forgets a call when the answer comes, and with it progress that it has not shown yet.
    assert!(heard == sent || library == Library::TypeScript && heard == sent[..3], "{long}");
    assert_eq!(long["progress"][0][1].as_f64(), Some(4.0), "{long}");
    let endless = json!({"action": "execute", "name": LONG, "arguments": {"duration": 100, "steps": 1000}});
    let before = clients.cancelled();
    let cancelled = client.ask(&json!({"cancel": "aster_mcp", "arguments": endless}));
    assert_eq!(cancelled, json!({"cancelled": true}));
    // On the open connection: its end would cancel the call as well.
    wait_until("the audit has the outcome", || {
        if clients.cancelled() > before { Ok(()) } else { Err(format!("{:?}", clients.audit())) }
    });
    assert_eq!(client.execute("everything/echo", &json!({"message": "here"})), fine("Echo: here"));
}

/// A call of the first has a server gain a tool, and all clients hear of it.
fn hears_of_a_change(clients: &mut [Client]) {
    for client in &mut *clients {
        let described = client.tools()[0]["description"].to_string();
        assert!(described.contains("growing (4)"), "{described}");
        client.hear(0);
    }
    assert_eq!(clients[0].execute("growing/grow", &json!({})), ("grown".to_owned(), false));
    for client in clients {
        // What was on its way before counts too.
        loop {
            client.hear(client.changes + 1);
            if client.tools()[0]["description"].as_str().unwrap().contains("growing (5)") {
                break;
            }
        }
    }
}

const OUTCOMES_OF_USE: [(&str, &str); 12] = [
    ("everything/echo", "ok"),
    ("files/read_text_file", "ok"),
    ("memory/read_graph", "ok"),
    ("time/get_current_time", "ok"),
    ("web/extract", "ok"),
    ("everything/ecco", "denied"),
    ("everything/echo", "denied"),
    ("files/read_text_file", "tool_error"),
    ("no_such_tool", "denied"),
    (LONG, "ok"),
    (LONG, "cancelled"),
    ("everything/echo", "ok"),
];

/// The outcomes are those of so many clients that used the bridge, one after the other, and of one change.
#[track_caller]
fn assert_outcomes(clients: &Clients, library: Library, uses: usize) {
    let expected: Vec<(&str, &str)> =
        std::iter::repeat_n(OUTCOMES_OF_USE, uses).flatten().chain([("growing/grow", "ok")]).collect();
    let outcomes = clients.outcomes(library.name());
    let outcomes: Vec<(&str, &str)> =
        outcomes.iter().map(|(name, outcome)| (name.as_str(), outcome.as_str())).collect();
    assert_eq!(outcomes, expected);
}

fn uses_the_bridge_over_stdio(library: Library, era: &str) {
    let Some(clients) = Clients::new(SERVERS) else { return };
    let mut client = Client::start(&clients, library, era, &clients.aster(&[]));
    assert_eq!((era, client.protocol.as_str()), ERAS[usize::from(era == "modern")]);
    uses_the_bridge(&clients, &mut client, library);
    hears_of_a_change(std::slice::from_mut(&mut client));
    let running = clients.running();
    assert!(running.len() > clients.servers.len() || cfg!(not(target_os = "linux")), "{running:?}");
    client.close();
    clients.assert_all_ended();
    assert_outcomes(&clients, library, 1);
}

/// In both eras at one address, at the same time.
fn uses_the_bridge_over_http(library: Library) {
    let Some(clients) = Clients::new(SERVERS) else { return };
    let served = Served::start(&clients, &[]);
    let mut connected = ERAS.map(|(era, protocol)| {
        let client = Client::start(&clients, library, era, &served.target(TOKEN));
        assert_eq!(client.protocol, protocol);
        client
    });
    for client in &mut connected {
        uses_the_bridge(&clients, client, library);
    }
    hears_of_a_change(&mut connected);
    connected.into_iter().for_each(Client::close);

    for (era, _) in ERAS {
        let mut stranger = Client::command(&clients, library, era, &served.target("a-wrong-token"));
        let refused = stranger.stdin(Stdio::null()).output().unwrap();
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("asks for a bearer token") || said.contains("401"), "{said}");
    }
    served.stop();
    clients.assert_all_ended();
    assert_outcomes(&clients, library, ERAS.len());
}

#[test]
fn python_over_stdio_in_the_legacy_era() {
    uses_the_bridge_over_stdio(Library::Python, "legacy");
}

#[test]
fn python_over_stdio_in_the_modern_era() {
    uses_the_bridge_over_stdio(Library::Python, "modern");
}

#[test]
fn python_over_http() {
    uses_the_bridge_over_http(Library::Python);
}

#[test]
fn typescript_over_stdio_in_the_legacy_era() {
    uses_the_bridge_over_stdio(Library::TypeScript, "legacy");
}

#[test]
fn typescript_over_stdio_in_the_modern_era() {
    uses_the_bridge_over_stdio(Library::TypeScript, "modern");
}

#[test]
fn typescript_over_http() {
    uses_the_bridge_over_http(Library::TypeScript);
}

#[test]
fn fastmcp_over_stdio_in_the_legacy_era() {
    uses_the_bridge_over_stdio(Library::FastMcp, "legacy");
}

#[test]
fn fastmcp_over_stdio_in_the_modern_era() {
    uses_the_bridge_over_stdio(Library::FastMcp, "modern");
}

#[test]
fn fastmcp_over_http() {
    uses_the_bridge_over_http(Library::FastMcp);
}

/// What the Inspector lists; it fails where a schema is one that some client or model could not use.
fn inspected(clients: &Clients, era: &str, target: &Value) -> Vec<Value> {
    let output = clients.inspector(era, target, &["--method", "tools/list", "--strict"]);
    assert!(output.status.success(), "every client must be able to use the schemas: {output:?}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["result"]["tools"].as_array().unwrap().clone()
}

/// What a tool answers to the Inspector, and whether it is an error.
fn inspect(clients: &Clients, era: &str, target: &Value, tool: &str, arguments: &Value) -> (String, bool) {
    let arguments = arguments.to_string();
    let request = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
    let output = clients.inspector(era, target, &request);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let result = &answer["result"];
    let is_error = result["isError"] == true;
    // The Inspector has its own code for it.
    assert_eq!(output.status.code(), Some(if is_error { 5 } else { 0 }), "{output:?}");
    (result["content"][0]["text"].as_str().unwrap().to_owned(), is_error)
}

fn inspector_uses_the_bridge(clients: &Clients, era: &str, target: &Value) {
    assert_eq!(names(&inspected(clients, era, target)), ["aster_mcp"]);
    let execute = |name: &str, arguments: Value| {
        let request = json!({"action": "execute", "name": name, "arguments": arguments});
        wait_until("the server has started", || {
            let answer = inspect(clients, era, target, "aster_mcp", &request);
            if answer.0.contains("starting") { Err(answer.0) } else { Ok(answer) }
        })
    };
    assert_eq!(execute("everything/echo", json!({"message": "hello"})), ("Echo: hello".to_owned(), false));
    let (misspelt, wrong) = execute("everything/echo", json!({"massage": "hello"}));
    assert!(wrong && misspelt.contains(r#""message" is a required property"#), "{misspelt}");
}

fn inspector_over_stdio(era: &str) {
    let Some(clients) = Clients::new(&["everything"]) else { return };
    inspector_uses_the_bridge(&clients, era, &clients.aster(&[]));

    let web = clients.aster(&["web"]);
    assert_eq!(names(&inspected(&clients, era, &web)), ["extract"]);
    let (page, wrong) = inspect(&clients, era, &web, "extract", &json!({"url": clients.page}));
    assert!(!wrong && page.ends_with("They flower **late**."), "{page}");
    let (misspelt, wrong) = inspect(&clients, era, &web, "extract", &json!({"page": clients.page}));
    assert!(wrong && misspelt.contains(r#""url" is a required property"#), "{misspelt}");

    let outcomes = clients.outcomes("inspector-cli");
    assert!(outcomes.iter().filter(|(_, outcome)| outcome == "ok").count() == 2, "{outcomes:?}");
    clients.assert_all_ended();
}

#[test]
fn inspector_over_stdio_in_the_legacy_era() {
    inspector_over_stdio("legacy");
}

#[test]
fn inspector_over_stdio_in_the_modern_era() {
    inspector_over_stdio("modern");
}

#[test]
fn inspector_over_http() {
    let Some(clients) = Clients::new(&["everything"]) else { return };
    let served = Served::start(&clients, &[]);
    for (era, _) in ERAS {
        inspector_uses_the_bridge(&clients, era, &served.target(TOKEN));
        let refused = clients.inspector(era, &served.target("a-wrong-token"), &["--method", "tools/list"]);
        // The Inspector's code for it.
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    }
    served.stop();
    clients.assert_all_ended();
    let outcomes = clients.outcomes("inspector-cli");
    let ok = outcomes.iter().filter(|(_, outcome)| outcome == "ok").count();
    assert_eq!(ok, ERAS.len(), "{outcomes:?}");
}

/// Calls of everything-server whose answers are always the same, one of them an error of its own.
fn repeatable() -> Vec<(&'static str, Value)> {
    vec![
        ("echo", json!({"message": "é — 🦀"})),
        ("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        ("get-resource-links", json!({"count": 3})),
        ("get-resource-reference", json!({"resourceId": 0})),
        ("get-structured-content", json!({"location": "Chicago"})),
        ("get-sum", json!({"a": 1, "b": 0.1})),
        ("get-tiny-image", json!({})),
        (
            "gzip-file-as-resource",
            json!({"name": "a.gz", "data": "data:text/plain,aster", "outputType": "resource"}),
        ),
        ("trigger-long-running-operation", json!({"duration": 0, "steps": 1})),
    ]
}

/// Its other tools: they show the environment or the time, start what goes on, or need a client that does tasks.
const OTHERS: [&str; 4] =
    ["get-env", "simulate-research-query", "toggle-simulated-logging", "toggle-subscriber-updates"];

/// What a client sees of everything-server whose tools have this before their names: the answer that lists the tools, by
/// their own names, and what each repeatable call gives.
fn seen(prefix: &str, mut ask: impl FnMut(&Value) -> Value) -> Vec<Value> {
    let expected = repeatable().len() + OTHERS.len();
    let listed = wait_until("all tools are there", || {
        let mut listed = ask(&json!({"list": {}}));
        let tools = listed["tools"].as_array_mut().unwrap();
        tools.retain_mut(|tool| {
            let own = tool["name"].as_str().unwrap().strip_prefix(prefix).map(str::to_owned);
            own.is_some_and(|own| {
                tool["name"] = json!(own);
                true
            })
        });
        // Nobody promises an order.
        tools.sort_by_key(|tool| tool["name"].as_str().unwrap().to_owned());
        if tools.len() == expected { Ok(listed) } else { Err(format!("{:?}", names(tools))) }
    });
    let calls = repeatable().into_iter().map(|(name, arguments)| {
        let mut answer = ask(&json!({"call": format!("{prefix}{name}"), "arguments": arguments}));
        // Some clients forget progress that arrives with the answer.
        answer.as_object_mut().unwrap().shift_remove("progress");
        answer
    });
    [listed].into_iter().chain(calls).collect()
}

/// Sets aside the fields that results have in the modern era only, which everything-server does not speak. The TypeScript
/// SDK keeps some to itself.
fn without_fields_of_the_modern_era(mut seen: Vec<Value>) -> Vec<Value> {
    let (listed, calls) = seen.split_first_mut().unwrap();
    let take = |result: &mut Value, field: &str, expected: fn(&Value) -> bool| {
        let value = result.as_object_mut().unwrap().shift_remove(field);
        assert!(value.as_ref().is_none_or(expected), "{field}: {value:?}");
    };
    take(listed, "ttlMs", Value::is_u64);
    take(listed, "cacheScope", |scope| scope == "private");
    take(listed, "resultType", |kind| kind == "complete");
    for answer in calls {
        take(&mut answer["result"], "resultType", |kind| kind == "complete");
    }
    seen
}

#[track_caller]
fn assert_same(era: &str, direct: &[Value], through: Vec<Value>) {
    let through = if era == "modern" { without_fields_of_the_modern_era(through) } else { through };
    assert_eq!(direct.len(), through.len());
    for (direct, through) in direct.iter().zip(&through) {
        // As text: the order of the fields is to be kept too.
        assert_eq!(through.to_string(), direct.to_string(), "in the {era} era");
    }
}

/// The plainest client, which hides nothing: JSON-RPC by hand.
struct Plain {
    connection: Connection,
    modern: bool,
}

enum Connection {
    Stdio { child: Child, output: Receiver<String> },
    Http { target: Value, session: Option<String> },
}

impl Plain {
    fn start(clients: &Clients, era: &str, target: &Value) -> Self {
        let connection = if target["url"].is_string() {
            Connection::Http { target: target.clone(), session: None }
        } else {
            let mut command = words(&target["command"]);
            let mut program = clients.program(command.next().unwrap());
            program.env("XDG_CONFIG_HOME", clients.path("config")).args(command);
            let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let output = lines(child.stdout.take().unwrap());
            Connection::Stdio { child, output }
        };
        let mut plain = Self { connection, modern: era == "modern" };
        if !plain.modern {
            let client = json!({"name": "plain", "version": "1"});
            let hello = json!({"protocolVersion": ERAS[0].1, "capabilities": {}, "clientInfo": client});
            plain.request("initialize", hello);
            plain.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        plain
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": ERAS[1].1,
                "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let lines = self.send(&json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}));
        // The answer is the last that came.
        serde_json::from_str(lines.last().expect("the server answers")).unwrap()
    }

    /// What comes until the answer, where the message is a request.
    fn send(&mut self, message: &Value) -> Vec<String> {
        let answers = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            line.get("method").is_none() && line["id"] == message["id"]
        };
        match &mut self.connection {
            Connection::Stdio { child, output } => {
                writeln!(child.stdin.as_ref().unwrap(), "{message}").unwrap();
                let mut lines = Vec::new();
                while message.get("id").is_some() && !lines.last().is_some_and(|line: &String| answers(line))
                {
                    lines.push(output.recv_timeout(PATIENCE).expect("the server answers"));
                }
                lines
            }
            Connection::Http { target, session } => {
                let (head, body) = post(target, message, self.modern, session.as_deref());
                let opened = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
                *session = opened.map(str::to_owned).or(session.take());
                // JSON by itself, or as the data of events, some of which have none.
                let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
                let lines: Vec<_> = lines.filter(|line| line.starts_with('{')).map(str::to_owned).collect();
                assert!(
                    message.get("id").is_none() || lines.last().is_some_and(|line| answers(line)),
                    "{head}\n{body}"
                );
                lines
            }
        }
    }

    /// The same as the other clients'.
    fn ask(&mut self, request: &Value) -> Value {
        if !request["list"].is_null() {
            return self.request("tools/list", json!({}))["result"].take();
        }
        let params = json!({"name": request["call"], "arguments": request["arguments"]});
        let mut answer = self.request("tools/call", params);
        assert!(answer.get("error").is_none(), "{answer}");
        json!({"result": answer["result"].take()})
    }
}

/// The head of an answer, and its body. In HTTP 1.0 nothing is in chunks, and its end is the connection's.
fn post(target: &Value, message: &Value, modern: bool, session: Option<&str>) -> (String, String) {
    let url = target["url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let (address, path) = url.split_once('/').unwrap();
    let mut head = format!(
        "POST /{path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n",
        target["token"].as_str().unwrap(),
    );
    if modern {
        head.push_str(&format!(
            "MCP-Protocol-Version: {}\r\nMcp-Method: {}\r\n",
            ERAS[1].1,
            message["method"].as_str().unwrap(),
        ));
        if let Some(name) = message["params"]["name"].as_str() {
            head.push_str(&format!("Mcp-Name: {name}\r\n"));
        }
    }
    if let Some(session) = session {
        head.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
    }
    let body = message.to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 ") || head.contains(" 202 "), "{answer}");
    (head.to_owned(), body.to_owned())
}

impl Drop for Plain {
    fn drop(&mut self) {
        if let Connection::Stdio { child, .. } = &mut self.connection {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

/// What is seen of everything-server without anything between; then through direct mode, in each era, over stdio and HTTP.
fn sees_in_direct_mode_what_it_sees_directly(see: impl Fn(&Clients, &str, &Value, &str) -> Vec<Value>) {
    let Some(clients) = Clients::new(&["everything"]) else { return };
    let everything = json!({"command": [clients.peer("node_modules/.bin/mcp-server-everything"), "stdio"]});
    let direct = see(&clients, "legacy", &everything, "");
    let stdio = clients.aster(&["--mode", "direct"]);
    let served = Served::start(&clients, &["--mode", "direct"]);
    for target in [stdio, served.target(TOKEN)] {
        for (era, _) in ERAS {
            assert_same(era, &direct, see(&clients, era, &target, "everything__"));
        }
    }
    served.stop();
    clients.assert_all_ended();
}

fn library_in_direct_mode(library: Library) {
    sees_in_direct_mode_what_it_sees_directly(|clients, era, target, prefix| {
        let mut client = Client::start(clients, library, era, target);
        let mut seen = seen(prefix, |request| client.ask(request));
        client.close();
        if library == Library::TypeScript {
            // In the modern era, which does not have it, it is not shown.
            for tool in seen[0]["tools"].as_array_mut().unwrap() {
                tool.as_object_mut().unwrap().shift_remove("execution");
            }
        }
        // Their order is the library's.
        seen.iter_mut().for_each(Value::sort_all_objects);
        seen
    });
}

#[test]
fn direct_mode_changes_nothing_but_the_names() {
    sees_in_direct_mode_what_it_sees_directly(|clients, era, target, prefix| {
        let mut plain = Plain::start(clients, era, target);
        seen(prefix, |request| plain.ask(request))
    });
}

#[test]
fn python_in_direct_mode() {
    library_in_direct_mode(Library::Python);
}

#[test]
fn typescript_in_direct_mode() {
    library_in_direct_mode(Library::TypeScript);
}

#[test]
fn fastmcp_in_direct_mode() {
    library_in_direct_mode(Library::FastMcp);
}
