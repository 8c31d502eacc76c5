//! An MCP server that misbehaves on demand: the child process of the tests in `tests/upstream.rs`.
//!
//! It speaks JSON-RPC by hand, so that it can say what no SDK would. Switches on its command line decide how it starts
//! and lists; its tools misbehave when they are called. Calls that are to overlap wait for each other at named gates,
//! and never for time to pass.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// What the command line says.
#[derive(Default)]
struct Switches(Vec<String>);

impl Switches {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|switch| switch == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|switch| switch.strip_prefix(name)?.strip_prefix('='))
    }
}

struct Server {
    switches: Switches,
    received: AtomicUsize,
    lists: AtomicUsize,
    extra_tools: AtomicUsize,
    cancelled: Mutex<Vec<Value>>,
    gates: Mutex<HashSet<String>>,
    gate_opened: Condvar,
    /// Requests of ours that wait for an answer.
    asked: Mutex<HashMap<String, mpsc::Sender<Value>>>,
    /// The id of a modern client's subscription.
    subscription: Mutex<Option<Value>>,
}

type Outcome = Result<Value, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let switches = Switches(std::env::args().skip(1).collect());
    if let Some(file) = switches.value("--count-starts") {
        writeln!(File::options().create(true).append(true).open(file)?, "started")?;
    }
    if let Some(file) = switches.value("--start-when-exists") {
        while !Path::new(file).exists() {
            thread::sleep(Duration::from_millis(5));
        }
    }
    if let Some(file) = switches.value("--fail-unless-exists")
        && !Path::new(file).exists()
    {
        complain("Error: the file is missing\n    at start (fake.js:1)\nNode.js v20");
        std::process::exit(7);
    }
    if switches.has("--banner") {
        write_raw(b"\xEF\xBB\xBFFake server 1.0\r\n\"hi\"\n[]\n123\n{\"level\":\"info\"}\n\n{broken\n");
    }
    if switches.has("--stderr-flood") {
        let line = "x".repeat(100_000);
        for _ in 0..20 {
            complain(&line);
        }
    }
    let server: &'static Server = Box::leak(Box::new(Server {
        switches,
        received: AtomicUsize::new(0),
        lists: AtomicUsize::new(0),
        extra_tools: AtomicUsize::new(0),
        cancelled: Mutex::default(),
        gates: Mutex::default(),
        gate_opened: Condvar::new(),
        asked: Mutex::default(),
        subscription: Mutex::default(),
    }));
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        server.received.fetch_add(1, SeqCst);
        if server.switches.has("--junk") {
            write_raw(b"DEBUG received something\n");
        }
        server.receive(&message);
    }
    // A server that ignores the end of its input.
    if server.switches.has("--stay") {
        thread::park();
    }
    Ok(())
}

impl Server {
    fn receive(&'static self, message: &Value) {
        let id = message["id"].clone();
        match message["method"].as_str() {
            None => {
                let asked = lock(&self.asked).remove(id.as_str().unwrap_or_default());
                asked.map(|sender| sender.send(message.clone()));
            }
            Some("notifications/cancelled") => {
                // Under the lock that the waiting ones look from, or one of them might miss it.
                let _gates = lock(&self.gates);
                lock(&self.cancelled).push(message["params"]["requestId"].clone());
                self.gate_opened.notify_all();
            }
            Some(_) if self.switches.has("--mute") || id.is_null() => {}
            Some("server/discover") => self.discover(&id),
            Some("initialize") => self.initialize(&id),
            Some("tools/list") => self.list(&id, message["params"]["cursor"].as_str()),
            Some("subscriptions/listen") => self.listen(&id, &message["params"]),
            Some("tools/call") => {
                let params = message["params"].clone();
                thread::spawn(move || match self.call(&id, &params) {
                    Ok(result) => reply(&id, &result),
                    Err(error) => refuse(&id, -32000, &error.to_string()),
                });
            }
            Some(_) => refuse(&id, -32601, "Method not found"),
        }
    }

    fn discover(&self, id: &Value) {
        if self.switches.has("--exit-on-discover") {
            complain("Error: received a request before initialization");
            std::process::exit(1);
        }
        if !self.switches.has("--modern") {
            return refuse(id, -32601, "Method not found");
        }
        reply(
            id,
            &json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
                "ttlMs": 0,
                // Unknown to the SDK, which would refuse the whole reply.
                "cacheScope": "galaxy",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "fake", "version": "1"}},
            }),
        );
    }

    fn initialize(&self, id: &Value) {
        if self.switches.has("--modern") {
            return refuse(id, -32601, "Method not found");
        }
        if self.switches.has("--sloppy") {
            // No capabilities, no version of the server.
            return reply(id, &json!({"protocolVersion": "2024-11-05", "serverInfo": {"name": "fake"}}));
        }
        reply(
            id,
            &json!({
                "protocolVersion": self.switches.value("--version").unwrap_or("2025-11-25"),
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "fake", "title": "Fake server", "version": "1"},
                "instructions": "Do not trust it.",
            }),
        );
    }

    fn list(&self, id: &Value, cursor: Option<&str>) {
        self.lists.fetch_add(1, SeqCst);
        if self.switches.has("--list-not-array") {
            return reply(id, &json!({"tools": {"echo": {}}}));
        }
        if let Some(file) = self.switches.value("--tools") {
            let tools = std::fs::read_to_string(file).unwrap_or_default();
            // Spliced in as text, so that nothing is lost or re-ordered on this side.
            write_raw(
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"tools\":{tools}}}}}\n",
                    tools = one_line(&tools)
                )
                .as_bytes(),
            );
            return;
        }
        let page: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
        let (tools, next) = match self.switches.value("--pages") {
            Some("three") => {
                (vec![tool(&format!("page-{page}"))], (page < 2).then(|| (page + 1).to_string()))
            }
            Some("constant") => (vec![tool(&format!("page-{page}"))], Some("7".to_owned())),
            Some("endless") => (vec![tool("same")], Some((page + 1).to_string())),
            Some("empty-cursor") => (vec![tool("only")], Some(String::new())),
            Some("breaks-off") if page == 1 => return refuse(id, -32603, "no second page"),
            Some("breaks-off") => (vec![tool("first")], Some("1".to_owned())),
            _ => (self.tools(), None),
        };
        reply(id, &json!({"tools": tools, "nextCursor": next}));
    }

    fn tools(&self) -> Vec<Value> {
        let extra = (0..self.extra_tools.load(SeqCst)).map(|number| tool(&format!("extra-{number}")));
        let mut tools: Vec<_> = ["echo", "stats"].iter().map(|name| tool(name)).chain(extra).collect();
        if self.switches.has("--malformed") {
            tools.extend([
                json!({"name": "no-schema"}),
                json!({"name": "null-schema", "inputSchema": null}),
                json!({"name": "hints", "inputSchema": {}, "annotations": {"readOnlyHint": "true"}}),
                json!("not even an object"),
                json!({"name": "vendor", "inputSchema": {"type": "object"}, "execution": {"x": 1}, "priority": 0.9}),
            ]);
        }
        tools
    }

    fn listen(&self, id: &Value, params: &Value) {
        *lock(&self.subscription) = Some(id.clone());
        notify(
            "notifications/subscriptions/acknowledged",
            json!({
                "notifications": params["notifications"],
                "_meta": {"io.modelcontextprotocol/subscriptionId": id},
            }),
        );
    }

    /// Waits until the gate is open, or the request cancelled.
    fn wait_at(&self, gate: &str, id: &Value) {
        let mut gates = lock(&self.gates);
        while !gates.contains(gate) && !lock(&self.cancelled).contains(id) {
            gates = self.gate_opened.wait(gates).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn call(&self, id: &Value, params: &Value) -> Outcome {
        let arguments = &params["arguments"];
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
        let token = &params["_meta"]["progressToken"];
        Ok(match params["name"].as_str().unwrap_or_default() {
            "echo" => text(&arguments.to_string()),
            "stats" => text(
                &json!({
                    "received": self.received.load(SeqCst),
                    "lists": self.lists.load(SeqCst),
                    "cancelled": *lock(&self.cancelled),
                    "subscribed": lock(&self.subscription).is_some(),
                })
                .to_string(),
            ),
            "environment" => text(&json!(std::env::vars().collect::<BTreeMap<_, _>>()).to_string()),
            "wait" => {
                self.wait_at(argument("gate"), id);
                text(argument("gate"))
            }
            "open" => {
                lock(&self.gates).insert(argument("gate").to_owned());
                self.gate_opened.notify_all();
                text("opened")
            }
            "cancelled" => {
                // Answers once some request has been cancelled.
                let mut gates = lock(&self.gates);
                while lock(&self.cancelled).is_empty() {
                    gates = self.gate_opened.wait(gates).unwrap_or_else(PoisonError::into_inner);
                }
                text("cancelled")
            }
            "die" => {
                complain(argument("words"));
                std::process::exit(3);
            }
            "progress" => {
                for step in 1..=3 {
                    notify(
                        "notifications/progress",
                        json!({"progressToken": token, "progress": step, "total": 3, "message": format!("step\u{1b} {step}")}),
                    );
                }
                notify("notifications/progress", json!({"progressToken": "unknown", "progress": 99}));
                reply(id, &text("done"));
                // After its completion, and with a second reply: both are to be ignored.
                notify("notifications/progress", json!({"progressToken": token, "progress": 4}));
                text("twice")
            }
            "change" => {
                self.extra_tools.fetch_add(1, SeqCst);
                let subscription = lock(&self.subscription).clone();
                for _ in 0..arguments["times"].as_u64().unwrap_or(1) {
                    notify(
                        "notifications/tools/list_changed",
                        match &subscription {
                            Some(id) => json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}}),
                            None => json!({}),
                        },
                    );
                }
                text("changed")
            }
            "raw" => {
                // The reply's result as text, so that this side cannot tidy it up.
                write_raw(
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}\n", argument("result"))
                        .as_bytes(),
                );
                text("twice")
            }
            "refuse" => {
                refuse(id, arguments["code"].as_i64().unwrap_or_default(), argument("message"));
                text("twice")
            }
            "oversize" => {
                let chunk = vec![b'x'; 1 << 20];
                for _ in 0..17 {
                    write_raw(&chunk);
                }
                self.wait_at("never", id);
                text("unreachable")
            }
            "split" => {
                // One byte per write, with white space before it and a carriage return after it.
                let message = json!({"jsonrpc": "2.0", "id": id, "result": text("é — 🦀")});
                for byte in format!("  {message}\r\n").as_bytes() {
                    write_raw(&[*byte]);
                }
                text("twice")
            }
            "latin-1" => {
                write_raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"caf").as_bytes());
                write_raw(b"\xE9\"}]}}\n");
                text("twice")
            }
            "last-words" => {
                // The reply is all there is: no line feed, then the end.
                let message = json!({"jsonrpc": "2.0", "id": id, "result": text("farewell")});
                write_raw(message.to_string().as_bytes());
                std::process::exit(0);
            }
            "ask" => text(&self.ask(argument("method"), &arguments["params"])?.to_string()),
            "grandchild" => {
                let child = Command::new("sh")
                    .args(["-c", "trap '' TERM HUP INT; while :; do sleep 1000; done"])
                    .stdin(Stdio::null())
                    .spawn()?;
                text(&child.id().to_string())
            }
            "abandon" => {
                // Ends while a child of its own keeps its standard output open.
                Command::new("sh")
                    .args(["-c", "trap '' TERM HUP INT; while :; do sleep 1000; done"])
                    .stdin(Stdio::null())
                    .spawn()?;
                std::process::exit(0);
            }
            name => return Err(format!("no tool {name}").into()),
        })
    }

    /// Asks the client something and gives back its whole answer.
    fn ask(&self, method: &str, params: &Value) -> Outcome {
        let (sender, answer) = mpsc::channel();
        lock(&self.asked).insert("ours".to_owned(), sender);
        send(&json!({"jsonrpc": "2.0", "id": "ours", "method": method, "params": params}));
        Ok(answer.recv()?)
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name}."), "inputSchema": {"type": "object"}})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn one_line(text: &str) -> String {
    text.lines().collect()
}

fn reply(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i64, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn notify(method: &str, params: Value) {
    send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn send(message: &Value) {
    write_raw(format!("{message}\n").as_bytes());
}

fn write_raw(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    // A client that has gone is no concern of this server's.
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

fn complain(words: &str) {
    let _ = writeln!(io::stderr(), "{words}");
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
