//! Real clients drive `aster mcp serve` in front of real servers, in both eras of the protocol: the Python SDK, the
//! TypeScript SDK and FastMCP, which are told what to do line by line, and the command line of MCP Inspector, which also
//! judges the schemas.
//!
//! `tests/peers/install.sh` installs them and prints the variable `ASTER_PEERS`; without it there is nothing to test.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests start what starts the command")]
mod common;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::Sandbox;
use serde_json::{Value, json};

/// How long anything may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);

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

    /// Connects a library to `aster mcp serve`.
    fn connect(&self, library: Library, era: &str) -> Client {
        let environment = json!({
            "HOME": self.path("home"),
            "XDG_CONFIG_HOME": self.path("config"),
            "PATH": std::env::var("PATH").unwrap(),
        });
        let command = [env!("CARGO_BIN_EXE_aster"), "mcp", "serve"];
        Client::start(self, library, era, &json!({"command": command, "env": environment}))
    }

    /// Runs the Inspector's command line against `aster mcp serve`. It connects anew for each request.
    fn inspector(&self, era: &str, serve: &[&str], arguments: &[&str]) -> Output {
        let config = format!("XDG_CONFIG_HOME={}", self.path("config"));
        let mut command = self.program("node");
        command.arg(self.peers.join("node_modules/.bin/mcp-inspector")).args(["--cli", "-e", &config]);
        command.arg(env!("CARGO_BIN_EXE_aster")).args(["mcp", "serve"]).args(serve);
        command.args(["--protocol-era", era, "--format", "json", "-q"]).args(arguments).output().unwrap()
    }

    fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.sandbox.path("audit.jsonl")).unwrap_or_default();
        // A line without its end is still being written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What came of each call, by the tool that was asked for. A call has exactly one outcome, and its client's name.
    fn outcomes(&self, client: &str) -> Vec<(String, String)> {
        let audit = self.audit();
        let mut calls: HashMap<&str, usize> = HashMap::new();
        let mut outcomes = Vec::new();
        for record in &audit {
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
    answers: Receiver<Value>,
    protocol: String,
    changes: u64,
}

impl Client {
    fn start(clients: &Clients, library: Library, era: &str, target: &Value) -> Self {
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
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, answers) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        let requests = child.stdin.take();
        let mut client = Self { child, requests, answers, protocol: String::new(), changes: 0 };
        client.protocol = client.answer()["protocol"].as_str().unwrap().to_owned();
        client
    }

    fn answer(&self) -> Value {
        self.answers.recv_timeout(PATIENCE).expect("the client answers; what it complains of is above")
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

    /// Waits until the list of tools has changed once more.
    fn change(&mut self) {
        self.changes = self.ask(&json!({"changes": self.changes + 1}))["changes"].as_u64().unwrap();
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

fn uses_the_bridge(library: Library, era: &str, protocol: &str) {
    let Some(clients) = Clients::new(&["everything", "files", "memory", "time", "growing"]) else { return };
    let mut client = clients.connect(library, era);
    assert_eq!(client.protocol, protocol);

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
    let cancelled = client.ask(&json!({"cancel": "aster_mcp", "arguments": endless}));
    assert_eq!(cancelled, json!({"cancelled": true}));
    // On the open connection: its end would cancel the call as well.
    wait_until("the audit has the outcome", || {
        let audit = clients.audit();
        let ended = |record: &Value| record["tool"] == LONG && record["outcome"] == "cancelled";
        if audit.iter().any(ended) { Ok(()) } else { Err(format!("{audit:?}")) }
    });
    assert_eq!(client.execute("everything/echo", &json!({"message": "here"})), fine("Echo: here"));

    // A server that gains a tool.
    assert_eq!(client.execute("growing/grow", &json!({})), fine("grown"));
    while !client.tools()[0]["description"].as_str().unwrap().contains("growing (5)") {
        client.change();
    }
    let running = clients.running();
    assert!(running.len() > clients.servers.len() || cfg!(not(target_os = "linux")), "{running:?}");
    client.close();
    clients.assert_all_ended();

    let called = |name: &str, outcome: &str| (name.to_owned(), outcome.to_owned());
    assert_eq!(
        clients.outcomes(library.name()),
        [
            called("everything/echo", "ok"),
            called("files/read_text_file", "ok"),
            called("memory/read_graph", "ok"),
            called("time/get_current_time", "ok"),
            called("web/extract", "ok"),
            called("everything/ecco", "denied"),
            called("everything/echo", "denied"),
            called("files/read_text_file", "tool_error"),
            called(LONG, "ok"),
            called(LONG, "cancelled"),
            called("everything/echo", "ok"),
            called("growing/grow", "ok"),
        ]
    );
}

/// One test for each library and era.
macro_rules! table {
    ($($test:ident: $library:ident, $era:literal, $protocol:literal;)+) => {$(
        #[test]
        fn $test() {
            uses_the_bridge(Library::$library, $era, $protocol);
        }
    )+};
}

table! {
    python_in_the_legacy_era: Python, "legacy", "2025-11-25";
    python_in_the_modern_era: Python, "modern", "2026-07-28";
    typescript_in_the_legacy_era: TypeScript, "legacy", "2025-11-25";
    typescript_in_the_modern_era: TypeScript, "modern", "2026-07-28";
    fastmcp_in_the_legacy_era: FastMcp, "legacy", "2025-11-25";
    fastmcp_in_the_modern_era: FastMcp, "modern", "2026-07-28";
}

/// What the Inspector lists; it fails where a schema is one that some client or model could not use.
fn inspected(clients: &Clients, era: &str, serve: &[&str]) -> Vec<Value> {
    let output = clients.inspector(era, serve, &["--method", "tools/list", "--strict"]);
    assert!(output.status.success(), "every client must be able to use the schemas: {output:?}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["result"]["tools"].as_array().unwrap().clone()
}

/// What a tool answers to the Inspector, and whether it is an error.
fn inspect(clients: &Clients, era: &str, serve: &[&str], tool: &str, arguments: &Value) -> (String, bool) {
    let arguments = arguments.to_string();
    let request = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
    let output = clients.inspector(era, serve, &request);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let result = &answer["result"];
    let is_error = result["isError"] == true;
    // The Inspector has its own code for it.
    assert_eq!(output.status.code(), Some(if is_error { 5 } else { 0 }), "{output:?}");
    (result["content"][0]["text"].as_str().unwrap().to_owned(), is_error)
}

fn inspector_is_content(era: &str) {
    let Some(clients) = Clients::new(&["everything"]) else { return };

    assert_eq!(names(&inspected(&clients, era, &[])), ["aster_mcp"]);
    let execute = |name: &str, arguments: Value| {
        let request = json!({"action": "execute", "name": name, "arguments": arguments});
        wait_until("the server has started", || {
            let answer = inspect(&clients, era, &[], "aster_mcp", &request);
            if answer.0.contains("starting") { Err(answer.0) } else { Ok(answer) }
        })
    };
    assert_eq!(execute("everything/echo", json!({"message": "hello"})), ("Echo: hello".to_owned(), false));
    let (misspelt, wrong) = execute("everything/echo", json!({"massage": "hello"}));
    assert!(wrong && misspelt.contains(r#""message" is a required property"#), "{misspelt}");

    assert_eq!(names(&inspected(&clients, era, &["web"])), ["extract"]);
    let (page, wrong) = inspect(&clients, era, &["web"], "extract", &json!({"url": clients.page}));
    assert!(!wrong && page.ends_with("They flower **late**."), "{page}");
    let (misspelt, wrong) = inspect(&clients, era, &["web"], "extract", &json!({"page": clients.page}));
    assert!(wrong && misspelt.contains(r#""url" is a required property"#), "{misspelt}");

    let outcomes = clients.outcomes("inspector-cli");
    assert!(outcomes.iter().filter(|(_, outcome)| outcome == "ok").count() == 2, "{outcomes:?}");
    clients.assert_all_ended();
}

#[test]
fn inspector_in_the_legacy_era() {
    inspector_is_content("legacy");
}

#[test]
fn inspector_in_the_modern_era() {
    inspector_is_content("modern");
}
