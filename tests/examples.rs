//! The examples run, offline, and do what they say.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::timeout;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

/// An example's program: `cargo test` builds them beside this one.
fn example(name: &str) -> Command {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let program: PathBuf = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is not built; run the tests with `cargo test`", program.display());
    Command::new(program)
}

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    (output, text)
}

#[test]
fn hello_tool_shows_the_whole_way() {
    let (output, text) = run(&mut example("hello_tool"));
    assert!(output.status.success(), "{output:?}");
    for expected in [
        "- calculator/add: Adds two whole numbers.",
        "- moon/illumination: ",
        "the prompt: ",
        r#""id":"moon/illumination""#,
        r#""input_schema":"{\"type\":\"object\""#,
        "\n42\n",
        r#"the arguments: "b" is a required property"#,
    ] {
        assert!(text.contains(expected), "{expected} is missing in:\n{text}");
    }
    let audit: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with("{\"chain\""))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let outcomes: Vec<&Value> =
        audit.iter().filter(|record| record["stage"] == "outcome").map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["ok", "ok", "denied"]);
}

#[test]
fn two_servers_denies_and_hides() {
    let (output, text) = run(&mut example("two_servers"));
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("needs a human's approval"), "{text}");
    assert!(text.contains(r#"{"result":[{"id":1,"text":"buy milk"}]}"#), "{text}");
    assert!(text.contains("no tool `house/open_door` is known; find tools"), "{text}");
}

#[test]
fn upstream_goes_on_without_the_broken_server() {
    let (output, text) = run(&mut example("upstream"));
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("broken   0 tools, down: "), "{text}");
    assert!(text.contains(r#""unavailable_servers":{"broken":"down"}"#), "{text}");
    assert!(text.contains("boiled for 3 minutes, an egg, boiled for 5 minutes"), "{text}");
}

#[test]
fn mount_http_serves_beside_the_applications_own_routes() {
    let (output, text) = run(&mut example("mount_http"));
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "the application's own page");
    assert_eq!(lines[1], "without a key: 401 Unauthorized");
    assert!(lines[2].contains("describe"), "{text}");
    assert!(lines[3].contains("input_schema"), "{text}");
    assert_eq!(lines[4], "\"execute\" → 5");
}

#[test]
fn own_binary_is_a_whole_binary() {
    let call = |arguments: &[&str]| run(example("own_binary").args(arguments));
    assert!(call(&["list"]).1.contains("text/reverse  [standard]"));
    assert!(call(&["search", "turn", "text"]).1.contains("text/reverse"));
    assert!(call(&["describe", "text/repeat"]).1.contains("maximum"));
    assert_eq!(call(&["call", "text/reverse", r#"{"text": "aster"}"#]).1, "retsa\n");
    let code = |arguments: &[&str]| call(arguments).0.status.code();
    assert_eq!(code(&["check"]), Some(0));
    assert_eq!(code(&["call", "text/repeat", r#"{"text": ""}"#]), Some(1));
    assert_eq!(code(&["call", "text/repeat", r#"{"times": 3}"#]), Some(2));
    assert_eq!(code(&["call", "text/nothing"]), Some(2));
    assert_eq!(code(&["dance"]), Some(2));
}

#[test]
fn typed_agent_gives_its_agent_what_it_is_given() {
    let mut child = example("typed_agent").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for call in [
        json!({"action": "execute", "name": "notes/add", "arguments": {"text": "tea"}}),
        json!({"action": "execute", "name": "house/windows"}),
        json!({"action": "execute", "name": "notes/clear"}),
        json!({"action": "execute", "name": "house/open_door"}),
    ] {
        writeln!(stdin, "{call}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("- house/windows: ") && !text.contains("- house/open_door"), "{text}");
    let answers: Vec<&str> = text.lines().skip_while(|line| !line.starts_with('{')).collect();
    assert_eq!(answers[..2], [r#"{"result":["tea"]}"#, "the kitchen's"]);
    assert!(answers[2].contains("`notes/clear` needs a human's approval"), "{text}");
    assert!(answers[3].contains("no tool `house/open_door` is known"), "{text}");
}

#[test]
fn notes_server_lists_everything_it_has() {
    let (output, text) = run(example("notes_server").arg("list"));
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "notes/write  [standard]  Writes a note down, over an older one of its name.",
            "notes/index  [standard]  resource notes://index: The names of all notes.",
            "notes/note  [standard]  resource notes://note/{name}: One note.",
            "notes/improve  [standard]  prompt: Asks for a better version of a note.",
        ]
    );
}

/// A model as a script: it answers by how many messages it has been sent.
#[tokio::test(flavor = "multi_thread")]
async fn agent_injects_routes_and_answers() {
    let model = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .respond_with(|request: &Request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let messages = body["messages"].as_array().unwrap();
            let call = |arguments: Value| {
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
                    "function": {"name": "aster_mcp", "arguments": arguments.to_string()}}]})
            };
            let message = match messages.len() {
                2 => call(json!({"action": "execute", "name": "folder/list"})),
                4 => call(
                    json!({"action": "execute", "name": "folder/delete", "arguments": {"file": "keep.txt"}}),
                ),
                _ => json!({"role": "assistant", "content": "There is keep.txt, and I may not delete it."}),
            };
            ResponseTemplate::new(200).set_body_json(json!({"choices": [{"message": message}]}))
        })
        .mount(&model)
        .await;

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keep.txt"), "x").unwrap();
    let mut agent = example("agent");
    agent.arg("What is here?").current_dir(&folder).env("OPENAI_BASE_URL", format!("{}/v1", model.uri()));
    agent.env_remove("OPENAI_API_KEY").stdin(Stdio::null());
    let (output, text) = tokio::task::spawn_blocking(move || run(&mut agent)).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text, "There is keep.txt, and I may not delete it.\n");
    assert!(folder.path().join("keep.txt").exists());

    let requests = model.received_requests().await.unwrap();
    let bodies: Vec<Value> =
        requests.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    assert_eq!(bodies.len(), 3);
    assert_eq!(bodies[0]["tools"][0]["function"]["name"], "aster_mcp");
    assert!(bodies[0]["messages"][0]["content"].as_str().unwrap().contains("- folder/list: "));
    assert_eq!(bodies[1]["messages"][3]["content"], r#"{"result":["keep.txt"]}"#);
    assert!(bodies[2]["messages"][5]["content"].as_str().unwrap().contains("needs a human's approval"));
}

/// How long one step with the conformance server may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// `conformance_server`, and a client of 2026-07-28 for it.
struct Conformance {
    _server: Child,
    url: String,
    http: reqwest::Client,
}

impl Conformance {
    async fn start() -> Self {
        let mut command = tokio::process::Command::from(example("conformance_server"));
        command
            .args(["--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut server = command.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it starts in time").unwrap();
        let url = line.expect("it prints its address");
        Self { _server: server, url, http: reqwest::Client::new() }
    }

    fn request(&self, method: &str, mut params: Value, capabilities: &Value) -> RequestBuilder {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let name = params["name"].as_str().or_else(|| params["uri"].as_str()).map(str::to_owned);
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let mut request = self.http.post(&self.url).timeout(PATIENCE).json(&message);
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        request
    }

    /// The status and the answer to a client that can be asked everything.
    async fn ask(&self, method: &str, params: Value) -> (u16, Value) {
        let everything = json!({"elicitation": {}, "sampling": {}, "roots": {}});
        answer(self.request(method, params, &everything)).await
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let (status, mut answer) = self.ask(method, params).await;
        assert_eq!(status, 200, "{answer}");
        answer["result"].take()
    }

    async fn names(&self, method: &str, list: &str) -> Vec<String> {
        let result = self.result(method, json!({})).await;
        let listed = result[list].as_array().unwrap_or_else(|| panic!("{result}"));
        listed.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// Sends a request, and takes its status and the last message of a response of either form.
async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).rfind(|data| !data.is_empty());
    (status, serde_json::from_str(last.unwrap_or(&text)).unwrap_or_else(|_| panic!("{status} {text:?}")))
}

/// Reads a stream until something stands in it, up to the end of an event.
async fn hear(stream: &mut Response, wanted: &str) -> String {
    let mut text = String::new();
    while !(text.contains(wanted) && text.ends_with("\n\n")) {
        let chunk = timeout(PATIENCE, stream.chunk()).await.expect("it is heard in time").unwrap();
        text += std::str::from_utf8(&chunk.unwrap_or_else(|| panic!("it ended with {text:?}"))).unwrap();
    }
    text
}

#[tokio::test]
async fn conformance_server_publishes_every_kind_of_thing_by_its_bare_name() {
    let server = Conformance::start().await;
    let discovered = server.result("server/discover", json!({})).await;
    assert_eq!(discovered["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "conformance");
    for (method, list, expected) in [
        ("tools/list", "tools", "test_simple_text"),
        ("prompts/list", "prompts", "test_simple_prompt"),
        ("resources/list", "resources", "static_text"),
        ("resources/templates/list", "resourceTemplates", "template_data"),
    ] {
        let names = server.names(method, list).await;
        assert!(names.iter().any(|name| name == expected), "{expected} is not in {names:?}");
    }

    // Without `arguments` at all, as the suite sends it.
    let said = server.result("tools/call", json!({"name": "test_simple_text"})).await;
    assert_eq!(said["content"][0]["text"], "This is a simple text response for testing.");
    let read = server.result("resources/read", json!({"uri": "test://template/123/data"})).await;
    let data: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(data, json!({"id": "123", "templateTest": true, "data": "Data for ID: 123"}));
    let argument = json!({"name": "arg1", "value": "test"});
    let completed =
        json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "argument": argument});
    let completed = server.result("completion/complete", completed).await;
    assert_eq!(completed["completion"]["values"], json!(["testValue1", "testValue2"]));
}

#[tokio::test]
async fn conformance_server_asks_in_rounds() {
    let server = Conformance::start().await;
    let accept = |content: Value| json!({"action": "accept", "content": content});

    let call = json!({"name": "test_input_required_result_multi_round"});
    let first = server.result("tools/call", call.clone()).await;
    assert_eq!(first["inputRequests"]["step1"]["method"], "elicitation/create", "{first}");
    let with = |key: &str, content: Value, state: &Value| {
        let mut call = call.clone();
        call["inputResponses"] = json!({key: accept(content)});
        call["requestState"] = state.clone();
        call
    };
    let second =
        server.result("tools/call", with("step1", json!({"name": "Ada"}), &first["requestState"])).await;
    assert!(second["inputRequests"]["step2"].is_object(), "{second}");
    assert_ne!(first["requestState"], second["requestState"]);
    let tampered = format!("{}-TAMPERED", second["requestState"].as_str().unwrap());
    let (_, refused) =
        server.ask("tools/call", with("step2", json!({"color": "red"}), &json!(tampered))).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let last =
        server.result("tools/call", with("step2", json!({"color": "red"}), &second["requestState"])).await;
    assert_eq!(last["content"][0]["text"], r#""Ada" likes "red""#);

    // A prompt asks in the same way.
    let mut get = json!({"name": "test_input_required_result_prompt"});
    let asked = server.result("prompts/get", get.clone()).await;
    assert_eq!(asked["resultType"], "input_required");
    get["inputResponses"] = json!({"user_context": accept(json!({"context": "tea"}))});
    get["requestState"] = asked["requestState"].clone();
    let got = server.result("prompts/get", get).await;
    assert_eq!(got["messages"][0]["content"]["text"], r#"Consider this context: "tea""#);
}

/// The statuses and codes that 2026-07-28 gives requests that cannot be served.
#[tokio::test]
async fn conformance_server_refuses_by_status_and_code() {
    let server = Conformance::start().await;
    let nobody = json!({});
    let missing = json!({"name": "test_missing_capability"});
    let (status, refused) = answer(server.request("tools/call", missing, &nobody)).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32021)));
    assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    assert_eq!(refused["id"], 7);

    let (status, refused) = server.ask("unknown/method", json!({})).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!(-32601)));
    let unknown = "test://nothing";
    let (_, refused) = server.ask("resources/read", json!({ "uri": unknown })).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["uri"]),
        (&json!(-32602), &json!(unknown))
    );

    // The argument is to stand in a header too, and the same.
    let call = json!({"name": "test_header", "arguments": {"region": "Hello"}});
    for (header, expected) in
        [(None, 400), (Some("=?base64?SGVsbG8?="), 400), (Some("=?base64?SGVsbG8=?="), 200)]
    {
        let mut request = server.request("tools/call", call.clone(), &nobody);
        if let Some(header) = header {
            request = request.header("mcp-param-region", header);
        }
        let (status, answered) = answer(request).await;
        assert_eq!(status, expected, "{header:?} {answered}");
        assert_eq!(answered["error"]["code"] == -32020, expected == 400, "{header:?} {answered}");
    }

    // A page that came from the server itself may call it; one from elsewhere may not.
    let own = server.url.strip_suffix("/mcp").unwrap();
    for (origin, expected) in [(own, 200), ("http://evil.example.com", 403)] {
        let request = server.request("server/discover", json!({}), &nobody).header("origin", origin);
        assert_eq!(request.send().await.unwrap().status(), expected, "{origin}");
    }
}

#[tokio::test]
async fn conformance_server_tells_of_what_it_switches() {
    let server = Conformance::start().await;
    for (kind, filter, method, list) in [
        ("tool", "toolsListChanged", "tools/list", "tools"),
        ("prompt", "promptsListChanged", "prompts/list", "prompts"),
    ] {
        let listen = json!({"notifications": {filter: true}});
        let mut stream = server.request("subscriptions/listen", listen, &json!({})).send().await.unwrap();
        hear(&mut stream, "notifications/subscriptions/acknowledged").await;
        let switched = format!("test_switched_{kind}");
        assert!(server.names(method, list).await.contains(&switched));
        let trigger = format!("test_trigger_{kind}_change");
        server.result("tools/call", json!({ "name": trigger })).await;
        let heard = hear(&mut stream, "list_changed").await;
        assert!(heard.contains(&format!("notifications/{list}/list_changed")), "{heard}");
        assert!(heard.contains("io.modelcontextprotocol/subscriptionId"), "{heard}");
        assert!(!server.names(method, list).await.contains(&switched));
    }
}

#[test]
fn conformance_server_has_one_option() {
    let (output, _) = run(example("conformance_server").arg("--port"));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`--http ADDRESS`"), "{output:?}");
}
