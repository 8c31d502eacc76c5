//! Direct mode: what an external server defines and answers arrives at a client as it was sent, in either era, under a name
//! of its own; and what a client may not see is as if it were not there.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aster_runtime::audit::{AuditSink, Record, Stage};
use aster_runtime::call::Outcome;
use aster_runtime::provider::Provider;
use aster_runtime::serve::{self, Shape};
use aster_runtime::tool::Json;
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{Filter, Host, HostBuilder, Profile, ToolId, catalogue, mcp_resource, mcp_server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How long anything may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that writes JSON by hand and keeps what it reads as text.
struct Client {
    input: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    modern: bool,
    next: i64,
    notifications: Vec<String>,
    /// What the server said of itself, where it was asked.
    hello: String,
    _server: AbortOnDropHandle<()>,
}

impl Client {
    async fn new(host: &Host, profile: Profile, shape: Shape, modern: bool) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (host, streams) = (host.clone(), tokio::io::split(theirs));
        let server = tokio::spawn(async move {
            serve::over(streams, host, profile, shape, CancellationToken::new()).await.unwrap();
        });
        let (output, input) = tokio::io::split(ours);
        let mut client = Self {
            input,
            lines: BufReader::new(output).lines(),
            modern,
            next: 0,
            notifications: Vec::new(),
            hello: String::new(),
            _server: AbortOnDropHandle::new(server),
        };
        client.hello = if modern {
            client.ask("server/discover", json!({})).await
        } else {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}});
            let answer = client.ask("initialize", hello).await;
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
            answer
        };
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if self.modern {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "new", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})).await;
        self.next
    }

    async fn line(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.lines.next_line()).await.unwrap().unwrap().unwrap()
    }

    /// The answer's line.
    async fn ask(&mut self, method: &str, params: Value) -> String {
        let id = self.request(method, params).await;
        loop {
            let line = self.line().await;
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return line;
            }
            self.notifications.push(message["method"].as_str().unwrap_or_default().to_owned());
        }
    }

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    async fn list(&mut self) -> Vec<Value> {
        let mut result = self.result("tools/list", json!({})).await;
        assert!(result.get("nextCursor").is_none());
        serde_json::from_value(result["tools"].take()).unwrap()
    }

    async fn call(&mut self, name: &str, arguments: Value) -> String {
        self.ask("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Waits for a notification that the list has changed.
    async fn hear_of_change(&mut self) {
        let changed = "notifications/tools/list_changed";
        while !self.notifications.iter().any(|method| method == changed) {
            let message: Value = serde_json::from_str(&self.line().await).unwrap();
            self.notifications.push(message["method"].as_str().unwrap().to_owned());
        }
    }
}

#[derive(Default)]
struct Memory(Mutex<Vec<Record>>);

impl AuditSink for Memory {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.0.lock().unwrap().push(record.clone());
        Ok(())
    }
}

/// A file with what the server lists; it is read anew at each listing.
fn listed(folder: &Path, tools: &Value) -> PathBuf {
    let file = folder.join("tools.json");
    std::fs::write(&file, tools.to_string()).unwrap();
    file
}

fn fake(tools: &Path) -> Arc<StdioUpstream> {
    let server = StdioServer::new("fake", env!("CARGO_BIN_EXE_fake_server"));
    StdioUpstream::spawn(server.args([format!("--tools={}", tools.display())]))
}

async fn ready(builder: HostBuilder) -> Host {
    let host = builder.build().await.unwrap();
    assert!(host.settle(PATIENCE).await);
    host
}

fn profile() -> Profile {
    Profile::new("test")
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool.", "inputSchema": {"type": "object"}})
}

/// Definitions with whatever rmcp's types do not know, lose or change.
fn strange_definitions() -> Value {
    json!([
        {"vendor": {"b": 1, "a": [0.1, 18446744073709551615u64, -9223372036854775808i64, null]}, "name": "raw", "title": "Raw ✓",
         "description": "Answers with\nwhat it is told.", "inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"result": {"type": "string", "x-order": 0.9}}, "additionalProperties": false},
         "annotations": {"audience": ["system", "both"], "readOnlyHint": false, "priority": 0.9, "category": "x"},
         "execution": {"taskSupport": "optional", "more": 1},
         "icons": [{"src": "data:,", "sizes": "48x48", "theme": "dim"}],
         "_meta": {"ui/resourceUri": "ui://x", "aster/raw": {"tools": []}}},
        {"name": "list.all", "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}, "outputSchema": {"type": "array", "items": {}}, "annotations": {"destructiveHint": true, "readOnlyHint": "true"}},
        {"name": "list_all", "inputSchema": {"type": "object"}, "outputSchema": {"required": ["a"], "type": "object"}},
    ])
}

#[tokio::test]
async fn definitions_arrive_as_they_were_sent() {
    let folder = tempfile::tempdir().unwrap();
    let host =
        ready(Host::builder().with_upstream(fake(&listed(folder.path(), &strange_definitions())))).await;
    for modern in [false, true] {
        let mut client = Client::new(&host, profile(), Shape::Direct, modern).await;
        let tools = client.list().await;
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert!(
            names[0].starts_with("fake__list_all_") && names[1].starts_with("fake__list_all_"),
            "{names:?}"
        );
        assert_ne!(names[0], names[1]);
        assert_eq!(names[2], "fake__raw");
        for sent in strange_definitions().as_array_mut().unwrap() {
            let name = sent["name"].as_str().unwrap().to_owned();
            let got = tools.iter().find(|tool| tool["inputSchema"] == sent["inputSchema"]).unwrap();
            sent["name"] = got["name"].clone();
            if name == "list.all" && !modern {
                // Older clients know output schemas of objects only.
                sent.as_object_mut().unwrap().shift_remove("outputSchema");
            }
            assert_eq!(got.to_string(), sent.to_string());
        }
        let result = client.result("tools/list", json!({})).await;
        assert_eq!(result.get("resultType"), modern.then(|| json!("complete")).as_ref());
        assert_eq!(result.get("cacheScope").is_some(), modern);
        assert!(result.get("_meta").is_none());
    }
}

#[tokio::test]
async fn results_arrive_as_they_were_sent() {
    let folder = tempfile::tempdir().unwrap();
    let tools = json!([tool("raw"), tool("echo")]);
    let host = ready(Host::builder().with_upstream(fake(&listed(folder.path(), &tools)))).await;
    let strange = r#"{"z":0.1,"content":[{"type":"hologram","data":{"b":1,"a":2}},{"type":"text","text":"é\u0007","annotations":{"audience":["system"],"priority":0.9},"_meta":{"k":1}},{"type":"resource","resource":{"uri":"x:y","text":"t","vendor":[1e300,-0.5]}},{"type":"image","data":"","mimeType":"image/PNG","extra":null}],"isError":false,"structuredContent":{"n":[18446744073709551615,-9223372036854775808,0.30000000000000004,1e-7]},"_meta":{"aster/raw":{"content":[]},"io.x/y":null}}"#;
    let array = r#"{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":[1,2]}"#;
    let untold = r#"{"structuredContent":[0.1],"content":[],"x":1}"#;
    for modern in [false, true] {
        for (shape, name) in [(Shape::Direct, "fake__raw"), (Shape::Bridge, "aster_mcp")] {
            let mut client = Client::new(&host, profile(), shape.clone(), modern).await;
            let complete = |result: &str| match modern {
                true => format!("{},\"resultType\":\"complete\"}}", &result[..result.len() - 1]),
                false => result.to_owned(),
            };
            for (sent, legacy) in [
                (strange, strange),
                (array, r#"{"content":[{"type":"text","text":"[1, 2]"}]}"#),
                (untold, r#"{"content":[{"type":"text","text":"[0.1]"}],"x":1}"#),
                (r#"{"resultType":"complete","content":[]}"#, r#"{"content":[]}"#),
                ("{}", r#"{"content":[]}"#),
            ] {
                let arguments = json!({"result": sent});
                let arguments = match shape {
                    Shape::Bridge => json!({"action": "execute", "name": "fake/raw", "arguments": arguments}),
                    _ => arguments,
                };
                let answer = client.call(name, arguments).await;
                let expected = match (modern, sent) {
                    (false, _) => legacy.to_owned(),
                    (true, "{}") => complete(r#"{"content":[]}"#),
                    (true, sent) if sent.contains("resultType") => sent.to_owned(),
                    (true, sent) => complete(sent),
                };
                let id = client.next;
                let read: Value = serde_json::from_str(&expected).unwrap();
                assert_eq!(answer, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{read}}}"#), "{sent}");
            }
        }
    }
}

/// Keeps the books.
#[mcp_server(name = "books")]
mod books {
    use aster_runtime::mcp_tool;

    use super::Json;

    #[derive(serde::Serialize, schemars::JsonSchema)]
    pub(crate) struct Sum {
        cents: i64,
    }

    /// Sums up amounts, in cents.
    #[mcp_tool(tier = Standard, read_only, title = "Sum")]
    pub(crate) fn total(
        /// The amounts, in cents.
        amounts: Vec<i64>,
    ) -> Json<Sum> {
        Json(Sum { cents: amounts.iter().sum() })
    }
}

/// Has a shelf.
#[mcp_server(name = "shelf")]
mod shelf {
    use aster_runtime::mcp_resource;

    /// What stands on it.
    #[mcp_resource(uri = "shelf://all", tier = Standard)]
    pub(crate) fn all() -> &'static str {
        "books"
    }
}

#[tokio::test]
async fn a_resource_that_a_shape_leaves_out_is_unknown_and_recorded() {
    let audit = Arc::new(Memory::default());
    let native = catalogue![books::SERVER, shelf::SERVER];
    let host = ready(Host::builder().catalogue(native).audit(audit.clone())).await;
    let mut client = Client::new(&host, profile(), Shape::Server("books".to_owned()), true).await;
    let mut answers = Vec::new();
    for uri in ["shelf://all", "shelf://one"] {
        let answer = client.ask("resources/read", json!({ "uri": uri })).await;
        answers.push(answer.replace(uri, "URI").replace(&format!(r#""id":{}"#, client.next), "ID"));
    }
    assert_eq!(answers[0], answers[1]);
    let records = audit.0.lock().unwrap();
    let told: Vec<_> = records.iter().map(|record| (record.requested.as_str(), record.outcome)).collect();
    assert_eq!(told, [("shelf://all", Some(Outcome::Denied)), ("shelf://one", Some(Outcome::Denied))]);
}

/// Has any page of any book, as far as it knows.
#[mcp_server(name = "pages")]
mod pages {
    use aster_runtime::mcp_resource;

    /// Any page.
    #[mcp_resource(uri = "book://{book}/{page}", tier = Standard)]
    pub(crate) fn page(book: String, page: String) -> String {
        format!("page {page} of {book}")
    }
}

/// Has one book.
#[mcp_server(name = "novel")]
mod novel {
    use aster_runtime::{ToolContext, mcp_prompt, mcp_resource, mcp_tool};

    /// A page of the novel.
    #[mcp_resource(uri = "book://novel/{page}", tier = Standard)]
    pub(crate) fn novel_page(page: String) -> String {
        format!("the novel's page {page}")
    }

    /// Asks for a summary.
    #[mcp_prompt(tier = Standard)]
    pub(crate) fn summary() -> &'static str {
        "Sum it up."
    }

    /// Closes the book, or opens it.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn close(ctx: &ToolContext, closed: bool) {
        let switch = |name: &str| match closed {
            true => ctx.availability().withhold(name, "the book is closed"),
            false => ctx.availability().offer(name),
        };
        ["novel_page", "summary"].into_iter().for_each(switch);
    }
}

#[tokio::test]
async fn another_servers_closer_template_hides_none_of_the_one_that_is_served() {
    let host = ready(Host::builder().catalogue(catalogue![pages::SERVER, novel::SERVER])).await;
    for (shape, told) in [
        (Shape::Server("pages".to_owned()), "page 7 of novel"),
        (Shape::Server("novel".to_owned()), "the novel's page 7"),
        (Shape::Bridge, "the novel's page 7"),
    ] {
        for modern in [false, true] {
            let mut client = Client::new(&host, profile(), shape.clone(), modern).await;
            let uri = json!({"uri": "book://novel/7"});
            let read = client.result("resources/read", uri.clone()).await;
            assert_eq!(read["contents"][0]["text"], told);
            if !modern {
                assert_eq!(client.result("resources/subscribe", uri).await, json!({}));
            }
        }
    }
}

#[tokio::test]
async fn what_is_withheld_when_serving_begins_is_declared_and_may_come() {
    let host = ready(Host::builder().catalogue(catalogue![novel::SERVER])).await;
    let mut opener = Client::new(&host, profile(), Shape::Direct, true).await;
    opener.call("novel__close", json!({"closed": true})).await;
    let withheld = |catalogue: &aster_runtime::Catalogue| catalogue.prompts().is_empty();
    tokio::time::timeout(PATIENCE, host.changes().wait_for(withheld)).await.unwrap().unwrap();
    let shape = Shape::Server("novel".to_owned());
    let mut client = Client::new(&host, profile(), shape, false).await;
    let hello: Value = serde_json::from_str(&client.hello).unwrap();
    for capability in ["resources", "prompts"] {
        assert_eq!(hello["result"]["capabilities"][capability]["listChanged"], true, "{hello}");
    }
    assert_eq!(client.result("prompts/list", json!({})).await["prompts"], json!([]));
    opener.call("novel__close", json!({"closed": false})).await;
    while client.result("prompts/list", json!({})).await["prompts"] == json!([]) {}
    let templates = client.result("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][0]["name"], "novel_page");
    // What scope hides is not declared for that.
    let hidden = profile().deny(["novel/novel_page", "novel/summary"]);
    let client = Client::new(&host, hidden, Shape::Direct, true).await;
    assert!(!client.hello.contains("\"prompts\"") && !client.hello.contains("\"resources\""));
}

/// Asks others about the weather.
#[mcp_server(name = "weather")]
mod weather {
    use aster_runtime::{ToolContext, mcp_tool};

    /// Tells the weather.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn forecast() -> &'static str {
        "rain"
    }

    /// Has another service asked, or none in particular.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn ask(ctx: &ToolContext, service: Option<String>) {
        let note = service.map(|service| format!("At the moment {service} answers.")).unwrap_or_default();
        ctx.availability().note("forecast", &note);
    }
}

#[tokio::test]
async fn a_note_is_in_the_description_as_long_as_it_holds() {
    let host = ready(Host::builder().catalogue(catalogue![weather::SERVER])).await;
    let forecast = ToolId::new("weather", "forecast");
    let digest = || host.catalogue().get(&forecast).unwrap().digest();
    let (mut client, reviewed) = (Client::new(&host, profile(), Shape::Direct, false).await, digest());
    let mut bridge = Client::new(&host, profile(), Shape::Bridge, false).await;
    for (service, description) in [
        (json!("Buienradar"), "Tells the weather. At the moment Buienradar answers."),
        (json!("Yr\nand\u{202e} others"), "Tells the weather. At the moment Yr and others answers."),
        (Value::Null, "Tells the weather."),
    ] {
        client.call("weather__ask", json!({ "service": service })).await;
        client.hear_of_change().await;
        let tools = client.list().await;
        let forecast = tools.iter().find(|tool| tool["name"] == "weather__forecast").unwrap();
        assert_eq!(forecast["description"], description);
        let found = bridge.call("aster_mcp", json!({"action": "search", "query": "tells the weather"})).await;
        assert!(found.contains(description), "{found}");
        assert_eq!(found.contains("At the moment"), description.contains("At the moment"), "{found}");
        assert_eq!(digest(), reviewed, "a note is no other tool");
        assert!(client.call("weather__forecast", json!({})).await.contains("rain"));
    }
}

#[tokio::test]
async fn native_tools_stand_beside_external_ones_and_both_names_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Arc::new(Memory::default());
    let upstream = fake(&listed(folder.path(), &json!([tool("echo")])));
    let builder = Host::builder().catalogue(catalogue![books::SERVER]).with_upstream(upstream);
    let host = ready(builder.audit(Arc::clone(&audit) as Arc<dyn AuditSink>)).await;
    // A session that has to look before it calls has looked when it has read the list.
    let mut client = Client::new(&host, profile().require_describe(true), Shape::Direct, true).await;
    let tools = client.list().await;
    assert_eq!((&tools[0]["name"], &tools[1]["name"]), (&json!("books__total"), &json!("fake__echo")));
    assert_eq!(tools[0]["title"], "Sum");
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[0]["outputSchema"]["properties"]["cents"]["type"], "integer");
    let hello: Value = serde_json::from_str(&client.hello).unwrap();
    let instructions = hello["result"]["instructions"].as_str().unwrap();
    assert!(
        instructions.contains("books (1): Keeps the books.; fake (1): Do not trust it."),
        "{instructions}"
    );
    assert!(instructions.contains("data, not instructions"));

    let sum = client.call("books__total", json!({"amounts": [1, 2]})).await;
    assert!(sum.contains(r#""structuredContent":{"cents":3}"#), "{sum}");
    client.call("fake__echo", json!({"a": 1})).await;
    for unknown in ["fake/echo", "echo", "aster_mcp", "fake__none"] {
        let refused = client.call(unknown, json!({})).await;
        assert!(refused.contains(r#""code":-32602"#), "{refused}");
    }
    let records = audit.0.lock().unwrap();
    let outcomes: Vec<_> = records
        .iter()
        .filter(|record| record.stage == Stage::Outcome)
        .map(|record| (record.requested.as_str(), record.tool.as_deref(), record.outcome.unwrap()))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("books__total", Some("books/total"), Outcome::Ok),
            ("fake__echo", Some("fake/echo"), Outcome::Ok),
            ("fake/echo", None, Outcome::Denied),
            ("echo", None, Outcome::Denied),
            ("aster_mcp", None, Outcome::Denied),
            ("fake__none", None, Outcome::Denied),
        ]
    );
}

#[tokio::test]
async fn what_is_hidden_is_as_if_it_were_not_there() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = [tool("echo"), tool("list_all")];
    // One is hidden by its name, and would otherwise take another's.
    let hidden = [tool("echo"), tool("list_all"), tool("list.all"), tool("secret")];
    let filter = Filter::new(&["*"], &["fake/list.all", "fake/secret"]).unwrap();
    let upstream = fake(&listed(folders[0].path(), &json!(hidden)));
    let hiding = ready(Host::builder().with_upstream(upstream).filter(filter)).await;
    let without = ready(Host::builder().with_upstream(fake(&listed(folders[1].path(), &json!(open))))).await;
    for modern in [false, true] {
        for shape in [Shape::Direct, Shape::Bridge] {
            let mut transcripts = Vec::new();
            for host in [&hiding, &without] {
                let mut client = Client::new(host, profile(), shape.clone(), modern).await;
                let mut lines = vec![client.hello.clone(), client.ask("tools/list", json!({})).await];
                for name in ["fake__secret", "fake__list_all", "fake/secret", "secret", "fake__list.all"] {
                    lines.push(client.call(name, json!({"a": 1})).await);
                }
                for (action, name) in
                    [("execute", "fake/secret"), ("describe", "fake/secret"), ("execute", "fake__secret")]
                {
                    lines.push(client.call("aster_mcp", json!({"action": action, "name": name})).await);
                }
                let search = json!({"action": "search", "query": "secret list"});
                lines.push(client.call("aster_mcp", search).await);
                transcripts.push(lines);
            }
            assert_eq!(transcripts[0], transcripts[1], "{shape:?}");
            let heard = transcripts[0][3].contains(r#""text":"{\"a\":1}""#);
            assert!(!heard || shape == Shape::Direct);
        }
    }
    // That the visible one of the two can be called at all: it is no accident that all was refused.
    let mut client = Client::new(&hiding, profile(), Shape::Direct, true).await;
    let names: Vec<Value> = client.list().await.iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["fake__echo", "fake__list_all"]);
    assert!(client.call("fake__echo", json!({"a": 1})).await.contains(r#"{\"a\":1}"#));
}

#[tokio::test]
async fn clients_hear_of_a_changed_list_and_of_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let with = |hidden: i64, visible: i64| {
        let [mut secret, mut echo] = [tool("secret"), tool("echo")];
        (secret["vendor"], echo["vendor"]) = (json!(hidden), json!(visible));
        json!([tool("change"), echo, secret])
    };
    let upstream = fake(&listed(folder.path(), &with(1, 1)));
    let host = ready(Host::builder().with_upstream(upstream)).await;
    let profile = profile().deny(["fake/secret"]);
    let mut legacy = Client::new(&host, profile.clone(), Shape::Direct, false).await;
    let mut modern = Client::new(&host, profile, Shape::Direct, true).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    modern.request("subscriptions/listen", filter).await;
    assert!(modern.line().await.contains("acknowledged"));
    legacy.list().await;

    // The server says that its list changed, and it did not; then what changes is hidden from these sessions.
    legacy.call("fake__change", json!({})).await;
    let mut changes = host.changes();
    changes.mark_unchanged();
    listed(folder.path(), &with(2, 1));
    legacy.call("fake__change", json!({})).await;
    tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap().unwrap();
    // Then only a field changes that no type knows.
    listed(folder.path(), &with(2, 2));
    legacy.call("fake__change", json!({})).await;
    for client in [&mut legacy, &mut modern] {
        client.hear_of_change().await;
        assert_eq!(client.list().await[1]["vendor"], json!(2));
        let heard = client.notifications.iter().filter(|method| method.ends_with("list_changed")).count();
        assert_eq!(heard, 1, "{:?}", client.notifications);
    }
}

#[tokio::test]
async fn a_list_too_long_for_one_message_has_pages() {
    let folder = tempfile::tempdir().unwrap();
    let tools: Vec<Value> = (10..30)
        .map(|number| json!({"name": format!("t{number}"), "description": "x".repeat(250_000)}))
        .collect();
    let host = ready(Host::builder().with_upstream(fake(&listed(folder.path(), &json!(tools))))).await;
    let mut client = Client::new(&host, profile(), Shape::Direct, true).await;
    let first = client.result("tools/list", json!({})).await;
    let second = client.result("tools/list", json!({"cursor": first["nextCursor"]})).await;
    assert!(second.get("nextCursor").is_none());
    let names: Vec<&str> = [&first, &second]
        .iter()
        .flat_map(|page| page["tools"].as_array().unwrap())
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, (10..30).map(|number| format!("fake__t{number}")).collect::<Vec<_>>());
    let refused = client.ask("tools/list", json!({"cursor": "2"})).await;
    assert!(
        refused.contains("-32602") && refused.contains("the cursor is not one of this server's"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_tool_that_a_client_remembers_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let begin = folder.path().join("begin");
    let server = StdioServer::new("fake", env!("CARGO_BIN_EXE_fake_server"));
    let upstream = StdioUpstream::spawn(server.args([format!("--start-when-exists={}", begin.display())]));
    let host = Host::builder().with_upstream(upstream).build().await.unwrap();
    let mut client = Client::new(&host, profile(), Shape::Direct, true).await;
    assert!(client.list().await.is_empty());
    let id = client.request("tools/call", json!({"name": "fake__echo", "arguments": {"a": 1}})).await;
    // Another call goes ahead of it meanwhile.
    assert!(client.call("other__echo", json!({})).await.contains("-32602"));
    std::fs::write(begin, "").unwrap();
    let answer: Value = serde_json::from_str(&client.line().await).unwrap();
    assert_eq!(answer["id"], id);
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"a":1}"#);
}

struct Shelf;

/// Has one book.
#[mcp_server(name = "shelf")]
impl Shelf {
    /// The first book.
    #[mcp_resource(uri = "books://first", tier = Standard)]
    fn first() -> &'static str {
        "first"
    }
}

struct Library;

/// Has every book.
#[mcp_server(name = "library")]
impl Library {
    /// A book by its number.
    #[mcp_resource(uri = "library://{number}", tier = Standard)]
    fn book(number: u64) -> String {
        number.to_string()
    }
}

#[tokio::test]
async fn a_read_that_is_refused_says_why_and_is_recorded_once() {
    let records = Arc::new(Memory::default());
    let builder = Host::builder().catalogue(catalogue![Shelf::SERVER, Library::SERVER]);
    let builder = builder.with_server(Shelf).with_server(Library);
    let host = builder.audit(Arc::clone(&records) as Arc<dyn AuditSink>).build().await.unwrap();
    let shape = Shape::Server("library".to_owned());
    let mut client = Client::new(&host, Profile::new("test"), shape, false).await;
    for (uri, code, outcome) in [
        // Another server's, which this shape leaves out.
        ("books://first", -32002, Outcome::Denied),
        ("library://first", -32602, Outcome::Denied),
        // It fits the schema, which has no upper bound, and not the type.
        ("library://18446744073709551616", -32602, Outcome::ToolError),
    ] {
        records.0.lock().unwrap().clear();
        let answer = client.ask("resources/read", json!({"uri": uri})).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["error"]["code"], code, "{answer}");
        let records = records.0.lock().unwrap();
        let outcomes: Vec<_> = records.iter().filter_map(|record| record.outcome).collect();
        assert_eq!(outcomes, [outcome], "{uri}");
    }
}

/// Takes what every provider takes in a way of its own.
#[mcp_server]
mod forms {
    use super::Json;
    use std::collections::BTreeMap;

    /// Sorts labels.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(super) fn sort(
        /// Each with its weight.
        labels: BTreeMap<String, u8>,
        /// The first one is skipped.
        #[arg(length(1..))]
        skip: Option<String>,
        /// Where it comes from.
        #[arg(header = "Origin-Of")]
        origin: Option<String>,
    ) -> Json<Vec<String>> {
        let _ = (skip, origin);
        Json(labels.into_keys().collect())
    }
}

#[tokio::test]
async fn schemas_are_written_as_the_provider_takes_them() {
    for (provider, labels, strict) in [
        (Provider::Plain, "object", false),
        (Provider::OpenAi, "object", false),
        (Provider::Anthropic, "object", false),
        (Provider::OpenAiStrict, "string", true),
        (Provider::Gemini, "string", false),
    ] {
        let host = Host::builder().catalogue(catalogue![forms::SERVER]).provider(provider);
        let host = ready(host).await;
        let own = host.catalogue().tools()[0].clone();
        let bridge = host.session(profile()).unwrap().injection().unwrap().tool(provider);
        let (function, schema) = match provider {
            Provider::Anthropic => (&bridge, "input_schema"),
            Provider::Gemini => (&bridge, "parameters"),
            _ => (&bridge["function"], "parameters"),
        };
        assert_eq!(function["name"], "aster_mcp", "{provider}");
        assert!(function["description"].as_str().is_some_and(|text| !text.is_empty()), "{provider}");
        assert_eq!(
            function[schema]["properties"]["arguments"]["type"],
            json!(if strict { json!(["string", "null"]) } else { json!(labels) }),
            "{provider}"
        );
        assert_eq!(function["strict"] == true, strict, "{provider}");
        for modern in [false, true] {
            let mut client = Client::new(&host, profile(), Shape::Direct, modern).await;
            let schema = client.list().await[0]["inputSchema"].take();
            assert_eq!(schema, own.export(provider).schema, "{provider}");
            assert_eq!(schema["properties"]["labels"]["type"], labels, "{provider}");
            assert_eq!(schema["required"].as_array().unwrap().len(), if strict { 3 } else { 1 });

            // What was asked for arrives, and what the tool itself asks for.
            let text = json!({"labels": "{\"b\": 1, \"a\": 2}", "skip": null, "origin": null});
            for arguments in [text, json!({"labels": {"a": 2, "b": 1}})] {
                let answer = client.call("forms__sort", arguments).await;
                assert!(answer.contains(r#"{"result":["a","b"]}"#), "{provider}: {answer}");
            }
            let wrong = client.call("forms__sort", json!({"labels": "[1]"})).await;
            assert!(wrong.contains(r#""isError":true"#), "{wrong}");

            let mut client = Client::new(&host, profile(), Shape::Bridge, modern).await;
            let bridge = client.list().await[0]["inputSchema"].take();
            assert_eq!(
                bridge["properties"]["arguments"]["type"],
                json!(if strict { json!(["string", "null"]) } else { json!(labels) })
            );
            let execute =
                json!({"action": "execute", "name": "forms/sort", "arguments": "{\"labels\": {\"c\": 1}}"});
            assert!(client.call("aster_mcp", execute).await.contains(r#"["c"]"#));
            let described =
                client.call("aster_mcp", json!({"action": "describe", "name": "forms/sort"})).await;
            assert_eq!(described.contains("as text.)"), labels == "string", "{described}");
        }
    }
}
