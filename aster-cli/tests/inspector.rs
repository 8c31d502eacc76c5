//! Real clients drive `aster mcp serve`, in both eras of the protocol: the command line of MCP Inspector, and for a
//! cancelled call, which that cannot do, the Python SDK.
//!
//! `tests/peers/install.sh` installs them and prints the variable `ASTER_PEERS`; without it there is nothing to test.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests start what starts the command")]
mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::Sandbox;
use serde_json::{Value, json};

/// How long a server behind the bridge may take to start.
const STARTUP: Duration = Duration::from_secs(120);

/// A sandbox whose user has one external server, and reads one page of a site on loopback.
struct Clients {
    peers: PathBuf,
    sandbox: Sandbox,
    page: String,
}

/// What a tool answered, in the Inspector's words.
struct Answer {
    text: String,
    is_error: bool,
}

impl Clients {
    /// None, said on standard error, where the clients are not installed.
    fn new() -> Option<Self> {
        let Some(peers) = std::env::var_os("ASTER_PEERS").map(PathBuf::from) else {
            writeln!(std::io::stderr(), "skipped: ASTER_PEERS is not set; run tests/peers/install.sh")
                .expect("written");
            return None;
        };
        let sandbox = Sandbox::new();
        let site = site();
        sandbox.user(&format!(
            "mcp:\n  servers:\n    everything: {{command: '{}', args: [stdio, '{}']}}\n\
             egress: {{allow_private: ['{site}']}}\naudit: {{path: '{}'}}\n",
            peers.join("node_modules/.bin/mcp-server-everything").display(),
            sandbox.path("").display(),
            sandbox.path("audit.jsonl").display(),
        ));
        Some(Self { peers, sandbox, page: format!("http://{site}/") })
    }

    /// A program in the sandbox, which starts `aster` in the same.
    fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).env("HOME", self.sandbox.path("home"));
        command.current_dir(self.sandbox.path("project"));
        command
    }

    /// Runs the Inspector's command line against `aster mcp serve`.
    fn inspector(&self, era: &str, serve: &[&str], arguments: &[&str]) -> Output {
        let config = format!("XDG_CONFIG_HOME={}", self.sandbox.path("config").display());
        let mut command = self.program("node");
        command.arg(self.peers.join("node_modules/.bin/mcp-inspector")).args(["--cli", "-e", &config]);
        command.arg(env!("CARGO_BIN_EXE_aster")).args(["mcp", "serve"]).args(serve);
        command.args(["--protocol-era", era, "--format", "json", "-q"]).args(arguments).output().unwrap()
    }

    fn tools(&self, era: &str, serve: &[&str]) -> Vec<Value> {
        let output = self.inspector(era, serve, &["--method", "tools/list", "--strict"]);
        assert!(output.status.success(), "every client must be able to use the schemas: {output:?}");
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
        listed["result"]["tools"].as_array().unwrap().clone()
    }

    fn call(&self, era: &str, serve: &[&str], tool: &str, arguments: &Value) -> Answer {
        let arguments = arguments.to_string();
        let request = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments];
        let output = self.inspector(era, serve, &request);
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let result = &answer["result"];
        let is_error = result["isError"] == true;
        // The Inspector has its own code for it.
        assert_eq!(output.status.code(), Some(if is_error { 5 } else { 0 }), "{output:?}");
        Answer { text: result["content"][0]["text"].as_str().unwrap().to_owned(), is_error }
    }

    /// Asks the bridge, again as long as the server behind it is still starting.
    fn bridge(&self, era: &str, request: &Value) -> Answer {
        let started = Instant::now();
        loop {
            let answer = self.call(era, &[], "aster_mcp", request);
            if !answer.text.contains("starting") {
                return answer;
            }
            assert!(started.elapsed() < STARTUP, "the server is still starting: {}", answer.text);
        }
    }

    fn audit(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.sandbox.path("audit.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
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

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The command lines of processes that name this, which a test gives to all that it starts.
fn running(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(mark)).collect()
}

fn bridge_is_found_described_and_executed(era: &str) {
    let Some(clients) = Clients::new() else { return };
    assert_eq!(names(&clients.tools(era, &[])), ["aster_mcp"]);

    let found = clients.bridge(era, &json!({"action": "search", "query": "echo back a message"}));
    assert!(!found.is_error && found.text.contains(r#""id":"everything/echo""#), "{}", found.text);
    let described = clients.bridge(era, &json!({"action": "describe", "name": "everything/echo"}));
    assert!(!described.is_error && described.text.contains("Message to echo"), "{}", described.text);

    let execute = |name: &str, arguments: Value| {
        clients.bridge(era, &json!({"action": "execute", "name": name, "arguments": arguments}))
    };
    let external = execute("everything/echo", json!({"message": "hello"}));
    assert_eq!((external.text.as_str(), external.is_error), ("Echo: hello", false));
    let native = execute("web/extract", json!({"url": clients.page}));
    assert!(!native.is_error && native.text.ends_with("They flower **late**."), "{}", native.text);

    let unknown = execute("everything/ecco", json!({}));
    assert!(
        unknown.is_error && unknown.text.contains("no tool `everything/ecco` is known"),
        "{}",
        unknown.text
    );
    let wrong = execute("everything/echo", json!({"massage": "hello"}));
    assert!(wrong.is_error && wrong.text.contains(r#""message" is a required property"#), "{}", wrong.text);
    assert!(wrong.text.contains(r#""description":"Message to echo""#), "the schema is there: {}", wrong.text);

    let audit = clients.audit();
    let outcomes: Vec<_> = audit.iter().filter(|record| record["stage"] == "outcome").collect();
    let of = |outcome: &str| outcomes.iter().filter(|record| record["outcome"] == outcome).count();
    assert!(of("ok") == 2 && of("denied") >= 2, "{audit:?}");
    assert!(outcomes.iter().all(|record| record["client"] == "inspector-cli"), "{audit:?}");
    assert_eq!(running(&clients.sandbox.path("").display().to_string()), [""; 0], "nothing is left running");
}

#[test]
fn inspector_uses_the_bridge_in_the_legacy_era() {
    bridge_is_found_described_and_executed("legacy");
}

#[test]
fn inspector_uses_the_bridge_in_the_modern_era() {
    bridge_is_found_described_and_executed("modern");
}

#[test]
fn inspector_uses_one_server_by_its_bare_names() {
    let Some(clients) = Clients::new() else { return };
    for era in ["legacy", "modern"] {
        assert_eq!(names(&clients.tools(era, &["web"])), ["extract"]);
        let page = clients.call(era, &["web"], "extract", &json!({"url": clients.page}));
        assert!(!page.is_error && page.text.ends_with("They flower **late**."), "{}", page.text);
        let wrong = clients.call(era, &["web"], "extract", &json!({"page": clients.page}));
        assert!(wrong.is_error && wrong.text.contains(r#""url" is a required property"#), "{}", wrong.text);
    }
}

fn cancelled_call_ends_and_nothing_else_does(era: &str, protocol: &str) {
    let Some(clients) = Clients::new() else { return };
    let mut client = clients.program(&clients.peers.join("venv/bin/python").display().to_string());
    client.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/cancel.py"));
    client.arg(era).arg(clients.sandbox.path("audit.jsonl")).arg(env!("CARGO_BIN_EXE_aster"));
    client.arg("--config").arg(clients.sandbox.path("config/aster/aster.yaml")).args(["mcp", "serve"]);
    let output = client.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected =
        json!({"protocol": protocol, "cancelled": true, "outcome": "cancelled", "afterwards": "Echo: here"});
    assert_eq!(seen, expected);

    let audit = clients.audit();
    let long = |record: &&Value| record["tool"] == "everything/trigger-long-running-operation";
    let stages: Vec<_> = audit.iter().filter(long).map(|record| &record["stage"]).collect();
    assert_eq!(stages, ["intent", "outcome"], "one call, one outcome: {audit:?}");
    assert!(audit.iter().all(|record| record["client"] == "mcp"), "{audit:?}");
    assert_eq!(running(&clients.sandbox.path("").display().to_string()), [""; 0], "nothing is left running");
}

#[test]
fn python_cancels_a_call_in_the_legacy_era() {
    cancelled_call_ends_and_nothing_else_does("legacy", "2025-11-25");
}

#[test]
fn python_cancels_a_call_in_the_modern_era() {
    cancelled_call_ends_and_nothing_else_does("auto", "2026-07-28");
}
