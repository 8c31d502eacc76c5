//! The examples run, offline, and do what they say.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
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
        .filter(|line| line.starts_with("{\"time\""))
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
    agent.env_remove("OPENAI_API_KEY").stdin(std::process::Stdio::null());
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
