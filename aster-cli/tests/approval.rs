//! Approvals, with the real command: whom `aster mcp serve` asks on standard output, what waits for `aster approve`, and what
//! comes of it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests talk to a command that runs")]
mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use common::Sandbox;
use serde_json::{Value, json};

/// How long a line may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox whose user trusts the client `shower`, and has a server with a tool that deletes everything.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let peer = sandbox.peer("");
    sandbox.user(&format!("mcp:\n  servers: {{peer: {peer}}}\n  approval: {{clients: [shower]}}\n"));
    sandbox
}

/// Whether the tool was called.
fn is_wiped(sandbox: &Sandbox) -> bool {
    fs::read_to_string(sandbox.path("log")).unwrap().contains("wiped")
}

/// A client that says it is of this name, and whose user can fill in forms.
struct Client {
    command: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    name: &'static str,
    modern: bool,
    next: i64,
}

impl Client {
    fn start(sandbox: &Sandbox, name: &'static str, modern: bool) -> Self {
        Self::start_with(sandbox, name, modern, &[])
    }

    fn start_with(sandbox: &Sandbox, name: &'static str, modern: bool, options: &[&str]) -> Self {
        let mut command = sandbox.command();
        command
            .args(["mcp", "serve"])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut command = command.spawn().unwrap();
        let output = BufReader::new(command.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let input = command.stdin.take();
        let mut client = Self { command, input, lines, name, modern, next: 0 };
        if !modern {
            client.request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"elicitation": {}},
                    "clientInfo": {"name": name, "version": "1"},
                }),
            );
            client.message();
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, mut params: Value) {
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
            });
        }
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
    }

    /// The next message that is no notification.
    fn message(&self) -> Value {
        loop {
            let message = self.lines.recv_timeout(PATIENCE).unwrap();
            if !message["id"].is_null() {
                return message;
            }
        }
    }

    /// Calls the tool, and answers what is asked. What was asked, if anything, and what the call came to.
    fn wipe(&mut self, answer: &Value) -> (Option<Value>, String) {
        let arguments = json!({"action": "execute", "name": "peer/wipe", "arguments": {}});
        let mut call = json!({"name": "aster_mcp", "arguments": arguments});
        self.request("tools/call", call.clone());
        let mut asked = None;
        loop {
            let message = self.message();
            if message["method"] == "elicitation/create" {
                asked = Some(message["params"].clone());
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}));
            } else if message["result"]["resultType"] == "input_required" {
                let requests = message["result"]["inputRequests"].as_object().unwrap();
                let (key, request) = requests.iter().next().unwrap();
                asked = Some(request["params"].clone());
                call["inputResponses"] = json!({ key: answer });
                call["requestState"] = message["result"]["requestState"].clone();
                self.request("tools/call", call.clone());
            } else {
                assert_eq!(message["id"], self.next, "{message}");
                let told = &message["result"]["content"][0]["text"];
                return (asked, told.as_str().unwrap_or_default().to_owned());
            }
        }
    }

    /// Closes the input; the command then ends by itself.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.command.wait().unwrap().success());
    }
}

#[test]
fn a_client_that_the_user_trusts_is_asked_and_what_it_answers_holds() {
    for modern in [false, true] {
        for (answer, wiped, told) in [
            (json!({"action": "decline"}), false, "the user denied the call; nothing was called"),
            (
                json!({"action": "accept", "content": {"approve": false}}),
                false,
                "the user denied the call; nothing was called",
            ),
            (json!({"action": "accept", "content": {"approve": true}}), true, ""),
        ] {
            let sandbox = sandbox();
            let mut client = Client::start(&sandbox, "shower", modern);
            let (asked, came) = client.wipe(&answer);
            let asked = asked.unwrap();
            let message = asked["message"].as_str().unwrap();
            assert!(message.contains("wants to call peer/wipe (restricted)"), "{message}");
            assert_eq!(asked["requestedSchema"]["required"], json!(["approve"]));
            assert_eq!((came.as_str(), is_wiped(&sandbox)), (told, wiped), "modern: {modern}");
            client.end();
        }
    }
}

#[test]
fn no_other_client_is_asked() {
    for modern in [false, true] {
        for name in ["another", "Shower", "shower "] {
            let sandbox = sandbox();
            let mut client = Client::start(&sandbox, name, modern);
            let approve = json!({"action": "accept", "content": {"approve": true}});
            let (asked, told) = client.wipe(&approve);
            assert_eq!(asked, None, "{name}");
            assert!(told.contains("nobody can be asked here"), "{told}");
            assert!(told.contains("`mcp.approval.clients: ["), "{told}");
            assert!(!is_wiped(&sandbox));
            client.end();
        }
    }
}

/// The calls that wait, once there is one.
fn waiting(sandbox: &Sandbox) -> Value {
    let start = Instant::now();
    loop {
        let calls = sandbox.run(&["--json", "approve"]).expect(0).json()["waiting"].clone();
        if calls[0].is_object() {
            return calls;
        }
        assert!(start.elapsed() < PATIENCE, "no call waits");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The status that the endpoint answers a request with.
fn status(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    // In one piece: a connection that is closed with something unread is reset, and takes the answer with it.
    let request = format!("{request} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_call_waits_for_the_user_who_answers_with_the_command() {
    let sandbox = sandbox();
    sandbox.run(&["approve"]).expect(0);
    let mut client = Client::start_with(&sandbox, "anybody", false, &["--approvals"]);
    let wipe = json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "peer/wipe", "arguments": {}}});
    client.request("tools/call", wipe.clone());
    let call = waiting(&sandbox)[0].clone();
    assert_eq!(
        (&call["tool"], &call["tier"], &call["remembers"]),
        (&json!("peer/wipe"), &json!("restricted"), &json!(true))
    );
    assert!(call["endpoint"].as_str().unwrap().starts_with("sh [ROOT]/peer.sh "), "{call}");
    let id = call["id"].as_str().unwrap();
    let shown = sandbox.run(&["approve", id]).expect(0).stdout;
    assert!(
        shown.contains("wants to call peer/wipe (restricted)") && shown.contains("sh [ROOT]/peer.sh"),
        "{shown}"
    );

    // What may be long is told of one call at a time.
    let whole = sandbox.run(&["--json", "approve", id]).expect(0).json();
    assert_eq!((&whole["id"], &whole["tool"], &whole["arguments"]), (&call["id"], &call["tool"], &json!({})));
    assert!(whole["text"].as_str().unwrap().contains("wants to call peer/wipe"), "{whole}");
    assert!(call.get("arguments").is_none() && call.get("text").is_none(), "{call}");

    // Whoever has not the token, or comes by a name that is not ours or from a page, is refused.
    let folder = sandbox.path("state/aster/approvals");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let endpoint: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let (address, token) = (endpoint["address"].as_str().unwrap(), endpoint["token"].as_str().unwrap());
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let (good, bad) = (format!("Bearer {token}"), format!("Bearer {}0", &token[1..]));
    let (host, none) = (("host", address), ("x-none", ""));
    let (known, evil) = (("authorization", good.as_str()), ("host", "evil.example"));
    let post = format!("POST /approvals/{id}");
    for (headers, refused) in [
        ([host, none, none], 401),
        ([host, ("authorization", &bad), none], 401),
        ([evil, known, none], 403),
        ([host, known, ("origin", "http://evil.example")], 403),
        ([host, known, ("origin", &format!("http://{address}"))], 403),
    ] {
        assert_eq!(status(address, &post, &headers, r#"{"approve": true}"#), refused, "{headers:?}");
        assert_eq!(status(address, "GET /approvals", &headers, ""), refused, "{headers:?}");
    }
    for (body, refused) in
        [("", 400), ("{}", 400), (r#"{"approve": "yes"}"#, 400), (r#"{"approve": true, "by": "me"}"#, 400)]
    {
        assert_eq!(status(address, &post, &[host, known], body), refused, "{body}");
    }
    assert_eq!(status(address, "POST /approvals/other", &[host, known], r#"{"approve": true}"#), 404);
    assert_eq!(status(address, "GET /approvals", &[host, known], ""), 200);
    assert_eq!(status(address, &format!("GET /approvals/{id}"), &[host, known], ""), 200);
    assert_eq!(status(address, &format!("GET /approvals/{id}"), &[host], ""), 401);
    assert_eq!(status(address, "GET /approvals/other", &[host, known], ""), 404);
    assert!(!is_wiped(&sandbox));

    let answered = sandbox.run(&["--json", "approve", id, "--yes", "--scope", "session"]).expect(0).json();
    assert_eq!((&answered["approved"], &answered["scope"]), (&json!(true), &json!("session")));
    assert_eq!(client.message()["id"], client.next);
    assert!(is_wiped(&sandbox));
    // Each is answered once, and this one held for the session.
    assert!(sandbox.run(&["approve", id, "--no"]).expect(2).stderr.contains("waits"));
    client.request("tools/call", wipe);
    assert_eq!(client.message()["id"], client.next);
    let records = sandbox.run(&["audit", "export"]).expect(0).stdout;
    let by = "the user, by `aster approve`";
    assert!(
        records.contains(&format!("{by}\""))
            && records.contains(&format!("{by} (remembered for this session)")),
        "{records}"
    );
    assert!(!records.contains(token));

    client.end();
    assert!(!file.exists());
}

/// A server whose tool reads the files of a folder, as any that reads files could.
const READER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"reader","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      result='{"tools":[{"name":"read","description":"Reads all.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
    *)
      token=$(cat "$1"/*.json | sed -n 's/.*"token": *"\([0-9a-f]*\)".*/\1/p')
      result='{"content":[{"type":"text","text":"it reads '"$token"'."}]}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
fn no_agent_gets_to_see_the_token_that_approves() {
    let sandbox = Sandbox::new();
    sandbox.write("reader.sh", READER);
    let (script, folder) = (sandbox.path("reader.sh"), sandbox.path("state/aster/approvals"));
    let reader = format!("{{command: sh, args: ['{}', '{}']}}", script.display(), folder.display());
    sandbox.user(&format!("mcp:\n  servers: {{reader: {reader}}}\n"));
    let mut client = Client::start_with(&sandbox, "anybody", false, &["--approvals"]);
    let read = json!({"action": "execute", "name": "reader/read", "arguments": {}});
    client.request("tools/call", json!({"name": "aster_mcp", "arguments": read}));
    let told = client.message()["result"]["content"][0]["text"].clone();
    assert_eq!(told, "it reads [redacted].");
    client.end();
}

#[test]
fn whoever_is_asked_sees_what_changed_of_the_tool_when_it_was_trusted() {
    let sandbox = sandbox();
    sandbox.run(&["mcp", "list"]).expect(0);
    let script = fs::read_to_string(sandbox.path("peer.sh")).unwrap();
    sandbox.write("peer.sh", &script.replace("Deletes everything.", "Deletes most."));
    sandbox.run(&["mcp", "list"]).expect(0);
    sandbox.run(&["mcp", "trust", "peer", "--yes"]).expect(0);
    let mut client = Client::start_with(&sandbox, "anybody", true, &["--approvals"]);
    client.request("tools/call", json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "peer/wipe", "arguments": {}}}));
    let call = waiting(&sandbox)[0].clone();
    let id = call["id"].as_str().unwrap();
    let changed = "-   Deletes everything.\n+   Deletes most.\n";
    let whole = sandbox.run(&["--json", "approve", id]).expect(0).json();
    assert!(whole["change"].as_str().unwrap().contains(changed) && call.get("change").is_none(), "{whole}");
    let shown = sandbox.run(&["approve", id]).expect(0).stdout;
    assert!(shown.contains("    +   Deletes most.\n"), "{shown}");
    sandbox.run(&["approve", id, "--no"]).expect(0);
    assert_eq!(client.message()["id"], client.next);
    client.end();
    let records = sandbox.run(&["audit", "query", "--check", "approval", "--json"]).expect(0).json();
    assert_eq!(records["records"][0]["by"], json!({"approver": "the user, by `aster approve`"}));
}

#[test]
fn what_the_user_denies_is_not_called_and_the_endpoint_is_on_this_machine() {
    let sandbox = sandbox();
    let mut client = Client::start_with(&sandbox, "anybody", true, &["--approvals=127.0.0.1:0"]);
    client.request("tools/call", json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "peer/wipe", "arguments": {"approve": true}}}));
    let call = waiting(&sandbox)[0].clone();
    sandbox.run(&["approve", call["id"].as_str().unwrap(), "--no"]).expect(0);
    let told = client.message()["result"]["content"][0]["text"].clone();
    assert_eq!(told, "the user denied the call; nothing was called");
    assert!(!is_wiped(&sandbox));
    client.end();
    let outcome = sandbox.run(&["--json", "mcp", "serve", "--approvals=0.0.0.0:0"]).expect(2);
    assert!(outcome.stderr.contains("not on loopback"), "{outcome}");
}
