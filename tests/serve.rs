//! Serving over standard input and output, line by line: what a client of either era gets, and when.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client that writes lines and reads lines.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    modern: bool,
    next: i64,
}

impl Client {
    fn start(example: &str, arguments: &[&str], modern: bool) -> Self {
        let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
        let mut child = Command::new(folder.join(format!("{example}{}", std::env::consts::EXE_SUFFIX)))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let mut client = Self { child, input, lines, modern, next: 0 };
        if !modern {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
            assert_eq!(client.ask("initialize", hello)["result"]["protocolVersion"], "2025-06-18");
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its id.
    fn request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if self.modern {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "new", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    fn receive(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Closes the input and waits for the process; how long that took.
    fn end(mut self) -> Duration {
        drop(self.input.take());
        let began = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < PATIENCE, "it does not end");
            std::thread::yield_now();
        }
        began.elapsed()
    }
}

#[test]
fn the_bridge_in_both_eras() {
    for modern in [false, true] {
        let mut client = Client::start("own_binary", &["serve"], modern);
        let listed = client.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0]["name"], "aster_mcp");
        assert_eq!(tools[0]["annotations"]["destructiveHint"], true);
        assert_eq!(tools[0]["annotations"]["openWorldHint"], true);
        assert!(tools[0]["description"].as_str().unwrap().contains("text (2): Works on text."));
        // What only the modern era has is not sent to the legacy one.
        assert_eq!(listed["result"].get("resultType").is_some(), modern);

        let text = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let found = client.call("aster_mcp", json!({"action": "search", "query": "backwards reverse"}));
        assert!(text(&found).contains("text/reverse"));
        let called = json!({"action": "execute", "name": "text/reverse", "arguments": {"text": "abc"}});
        assert_eq!(text(&client.call("aster_mcp", called)), "cba");
        let wrong = client
            .call("aster_mcp", json!({"action": "execute", "name": "text/reverse", "arguments": {"t": 1}}));
        assert_eq!(wrong["result"]["isError"], true);
        assert!(text(&wrong).contains("The input schema of `text/reverse`"));
        assert_eq!(client.call("nothing", json!({}))["error"]["code"], -32602);
        client.end();
    }
}

#[test]
fn one_server_has_bare_names() {
    let mut client = Client::start("own_binary", &["serve", "text"], true);
    let listed = client.ask("tools/list", json!({}));
    let names: Vec<&Value> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["repeat", "reverse"]);
    assert_eq!(client.call("reverse", json!({"text": "ab"}))["result"]["content"][0]["text"], "ba");
    client.end();
}

#[test]
fn direct_mode_offers_every_tool() {
    for mode in [&["serve", "--mode", "direct"][..], &["serve", "--mode=direct"]] {
        let mut client = Client::start("own_binary", mode, false);
        let listed = client.ask("tools/list", json!({}));
        let names: Vec<&Value> =
            listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["text__repeat", "text__reverse"]);
        let called = client.call("text__reverse", json!({"text": "ab"}));
        assert_eq!(called["result"]["content"][0]["text"], "ba");
        client.end();
    }
}

#[test]
fn progress_comes_in_order_and_before_the_answer() {
    for modern in [false, true] {
        let mut client = Client::start("upstream", &["serve"], modern);
        let params =
            json!({"name": "boil_egg", "arguments": {"minutes": 3}, "_meta": {"progressToken": "egg"}});
        let id = client.request("tools/call", params);
        let mut steps = Vec::new();
        let answer = loop {
            let message = client.receive();
            if message["id"] == id {
                break message;
            }
            assert_eq!(message["params"]["progressToken"], "egg");
            steps.push(message["params"]["progress"].as_f64().unwrap());
        };
        assert_eq!(steps, [1.0, 2.0, 3.0]);
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("3 minutes"));
        client.end();
    }
}

#[test]
fn a_cancelled_call_is_not_answered() {
    for modern in [false, true] {
        let mut client = Client::start("upstream", &["serve"], modern);
        let params = json!({"name": "boil_egg", "arguments": {"minutes": 10}, "_meta": {"progressToken": 7}});
        let id = client.request("tools/call", params);
        assert_eq!(client.receive()["params"]["progress"].as_f64(), Some(1.0));
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
        // The server answers what comes after it, and never the cancelled call.
        let next = client.request("tools/call", json!({"name": "boil_egg", "arguments": {"minutes": 1}}));
        loop {
            let message = client.receive();
            assert_ne!(message["id"], id);
            if message["id"] == next {
                break;
            }
        }
        client.end();
    }
}

#[test]
fn the_end_of_input_ends_the_server_subscriptions_or_not() {
    let mut client = Client::start("own_binary", &["serve"], true);
    client.request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    assert_eq!(client.receive()["method"], "notifications/subscriptions/acknowledged");
    // rmcp waits five seconds for whatever is still running.
    assert!(client.end() < Duration::from_secs(4));
}

#[test]
fn resources_and_prompts_in_both_eras() {
    for modern in [false, true] {
        let mut client = Client::start("notes_server", &["serve", "notes"], modern);
        let resources = client.ask("resources/list", json!({}));
        assert_eq!(
            resources["result"]["resources"],
            json!([{"uri": "notes://index", "name": "index", "description": "The names of all notes."}])
        );
        assert_eq!(resources["result"].get("resultType").is_some(), modern);
        let templates = client.ask("resources/templates/list", json!({}));
        assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "notes://note/{name}");

        let mut read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(
            read("notes://note/welcome")["result"]["contents"],
            json!([{"uri": "notes://note/welcome", "mimeType": "text/plain", "text": "Write something down."}])
        );
        for unknown in ["notes://note/nothing", "notes://nothing", "nothing"] {
            let error = &read(unknown)["error"];
            assert_eq!(error["code"], if modern { -32602 } else { -32002 }, "{error}");
            assert_eq!(error["data"]["uri"], unknown);
        }

        let prompts = client.ask("prompts/list", json!({}));
        let prompt = &prompts["result"]["prompts"][0];
        assert_eq!((&prompt["name"], &prompt["title"]), (&json!("improve"), &json!("Improve a note")));
        assert_eq!(
            prompt["arguments"][0],
            json!({"name": "name", "description": "What the note is called.", "required": true})
        );
        let mut get = |name: &str, arguments: Value| {
            client.ask("prompts/get", json!({"name": name, "arguments": arguments}))
        };
        let got = get("improve", json!({"name": "welcome", "tone": "funny"}));
        assert_eq!(got["result"]["description"], "Asks for a better version of a note.");
        assert_eq!(got["result"]["messages"][0]["content"]["text"], "Rewrite this note. Make it funny.");
        assert_eq!(got["result"]["messages"][1]["content"]["resource"]["uri"], "notes://note/welcome");
        assert_eq!(get("improve", json!({}))["error"]["code"], -32602);
        assert_eq!(get("improve_it", json!({"name": "welcome"}))["error"]["code"], -32602);
        let failed = get("improve", json!({"name": "gone"}));
        assert_eq!(failed["error"]["message"], "there is no note `gone`");

        let mut complete = |reference: Value, argument: &str, value: &str| {
            client.ask(
                "completion/complete",
                json!({"ref": reference, "argument": {"name": argument, "value": value}}),
            )
        };
        let tones = complete(json!({"type": "ref/prompt", "name": "improve"}), "tone", "f");
        assert_eq!(
            tones["result"]["completion"],
            json!({"values": ["friendly", "formal", "funny"], "total": 3, "hasMore": false})
        );
        let none = complete(json!({"type": "ref/resource", "uri": "notes://note/{name}"}), "name", "w");
        assert_eq!(none["result"]["completion"]["values"], json!([]));
        assert_eq!(
            complete(json!({"type": "ref/prompt", "name": "nothing"}), "tone", "")["error"]["code"],
            -32602
        );
        client.end();
    }
}

#[test]
fn names_of_prompts_say_their_server_where_there_may_be_several() {
    let mut client = Client::start("notes_server", &["serve"], true);
    let prompts = client.ask("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "notes__improve");
    let got = client.ask("prompts/get", json!({"name": "notes__improve", "arguments": {"name": "welcome"}}));
    assert_eq!(got["result"]["messages"][0]["role"], "user");
    client.end();
}

#[test]
fn capabilities_are_what_there_is() {
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
    for (example, has) in [("own_binary", false), ("notes_server", true)] {
        let mut client = Client::start(example, &["serve"], true);
        client.modern = false;
        let capabilities = client.ask("initialize", hello.clone())["result"]["capabilities"].clone();
        if has {
            assert_eq!(capabilities["resources"], json!({"subscribe": true, "listChanged": true}));
            assert_eq!(capabilities["prompts"], json!({"listChanged": true}));
            assert_eq!(capabilities["completions"], json!({}));
        } else {
            for absent in ["resources", "prompts", "completions"] {
                assert_eq!(capabilities.get(absent), None, "{absent}");
            }
            assert_eq!(client.ask("resources/list", json!({}))["error"]["code"], -32601);
        }
        client.end();
    }
}

/// The next notification of this method.
fn notified(client: &Client, method: &str) -> Value {
    loop {
        let message = client.receive();
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

#[test]
fn an_old_client_follows_a_resource_until_it_forgets_it() {
    let mut client = Client::start("notes_server", &["serve", "notes"], false);
    let subscribed = client.ask("resources/subscribe", json!({"uri": "notes://note/a%20b"}));
    assert!(subscribed.get("error").is_none(), "{subscribed}");
    let unknown = client.ask("resources/subscribe", json!({"uri": "other://note"}));
    assert_eq!(unknown["error"]["code"], -32002);
    client.request("tools/call", json!({"name": "write", "arguments": {"name": "a b", "text": "x"}}));
    assert_eq!(notified(&client, "notifications/resources/updated")["uri"], "notes://note/a%20b");

    client.ask("resources/subscribe", json!({"uri": "notes://index"}));
    client.ask("resources/unsubscribe", json!({"uri": "notes://note/a%20b"}));
    client.request("tools/call", json!({"name": "write", "arguments": {"name": "a b", "text": "y"}}));
    // The list is told after the note, so that the note would have come first.
    assert_eq!(notified(&client, "notifications/resources/updated")["uri"], "notes://index");
    client.end();
}

#[test]
fn a_new_client_names_what_it_follows() {
    let mut client = Client::start("notes_server", &["serve", "notes"], true);
    let uris = ["notes://index", "other://note"];
    let listening =
        client.request("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}));
    let acknowledged = notified(&client, "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["notifications"], json!({"resourceSubscriptions": ["notes://index"]}));
    client.request("tools/call", json!({"name": "write", "arguments": {"name": "a", "text": "x"}}));
    let updated = notified(&client, "notifications/resources/updated");
    assert_eq!(updated["uri"], "notes://index");
    assert_eq!(updated["_meta"]["io.modelcontextprotocol/subscriptionId"], listening);
    client.end();
}
