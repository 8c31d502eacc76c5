//! The commands that start servers, with the real binary and a small server in shell.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Sandbox, exists};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A sandbox with the peer in it; what the peer does leaves lines in `log`.
fn with_peer() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    // Its script is there also for who starts it in another way.
    sandbox.peer("");
    let log = sandbox.path("log");
    (sandbox, log)
}

fn servers(entries: &[(&str, String)]) -> String {
    let lines: Vec<String> = entries.iter().map(|(name, entry)| format!("    {name}: {entry}\n")).collect();
    format!("mcp:\n  servers:\n{}", lines.concat())
}

#[test]
fn list_shows_every_server_and_what_was_left_out() {
    let (sandbox, _) = with_peer();
    sandbox.user(&servers(&[
        ("peer", sandbox.peer(", tiers: {echo: standard}")),
        ("off", "{command: x, disabled: true}".to_owned()),
        ("gone", "{command: aster-test-no-such-program}".to_owned()),
        ("unset", "{command: \"${NOT_SET}\"}".to_owned()),
    ]));
    sandbox.project(&(servers(&[("theirs", sandbox.peer(""))]) + "  tools: {deny: [\"*/fail\"]}\n"));
    let outcome = sandbox.run(&["mcp", "list", "--tools"]).expect(0);
    // What the native servers offer depends on the system.
    let lines = outcome
        .stdout
        .lines()
        .filter(|line| !["web", "shortcuts"].iter().any(|native| line.trim().starts_with(native)));
    let (servers, costs): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| !line.starts_with("The manifest of "));
    assert!(
        costs.len() == 1 && costs[0].contains(" of a budget of 1500; the schemas would cost "),
        "{costs:?}"
    );
    assert_snapshot!(servers.join("\n"), @r"
      Server      From      State           Tools          Tiers                      Protocol
    ──────────────────────────────────────────────────────────────────────────────────────────────
      gone        user      down            0
      off         user      disabled        0
      peer        user      ready           2 (1 hidden)   1 standard, 1 restricted   2025-06-18
      theirs      project   needs consent   0
      unset       user      down            0

      Tool          Tier         What it does
    ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
      peer/echo     standard     Says what it is told.[2J
      peer/wipe     restricted   Deletes everything.

    gone: cannot run `aster-test-no-such-program`: it is not found on PATH; install it, or configure its full path
    theirs: run `aster mcp trust theirs`
    unset: [ROOT]/config/aster/aster.yaml:6:22: `command` of server `unset` needs the variable `NOT_SET`, which is not set; set it, or write `${NOT_SET:-default}`

    Left out:
      peer/bad name: the name has a character that is not allowed in it
    ");

    let listed = sandbox.run(&["mcp", "list", "--json"]).expect(0).json();
    let peer = listed["servers"].as_array().unwrap().iter().find(|server| server["name"] == "peer").unwrap();
    assert_eq!(peer["state"], "ready");
    assert_eq!(peer["tiers"], json!({"standard": 1, "restricted": 1}));
    assert_eq!((peer["tools"].as_u64(), peer["hidden"].as_u64()), (Some(2), Some(1)));
    assert_eq!(listed["left_out"][0]["tool"], "bad name");
    let tokens = &listed["tokens"];
    assert!(
        tokens["schemas"].as_u64() > Some(0) && tokens["manifest"].as_u64() <= tokens["budget"].as_u64(),
        "{tokens}"
    );
    assert_eq!(listed["tools"], Value::Null);
}

#[test]
fn without_a_configuration_there_are_the_native_servers() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.run(&["mcp", "list"]).expect(0);
    assert!(outcome.stderr.contains("aster init"), "{outcome}");
    let listed = sandbox.run(&["mcp", "list", "--json", "--quiet"]).expect(0);
    assert_eq!(listed.stderr, "");
    let listed = listed.json();
    let servers: Vec<_> = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| (&server["name"], &server["origin"]))
        .collect();
    let native = json!("native");
    assert_eq!(servers, [(&json!("shortcuts"), &native), (&json!("web"), &native)]);
    let outcome = sandbox.run(&["mcp", "call", "web/extract", "--arg", "url=http://127.0.0.1/"]).expect(4);
    assert!(outcome.stderr.contains("not a public address"), "{outcome}");
    sandbox.user("egress: {allow_private: [\"127.0.0.1:9\"]}");
    sandbox.run(&["mcp", "call", "web/extract", "--arg", "url=http://127.0.0.1:9/"]).expect(1);
}

#[test]
fn a_projects_server_never_starts_without_consent() {
    let (sandbox, log) = with_peer();
    sandbox.project(&servers(&[("theirs", sandbox.peer(""))]));
    for arguments in [
        &["mcp", "list"][..],
        &["mcp", "search", "echo"],
        &["mcp", "describe", "theirs/echo"],
        &["mcp", "call", "theirs/echo", "--arg", "text=x"],
        &["mcp", "serve"],
        &["mcp", "serve", "theirs"],
        &["check", "--start"],
        &["mcp", "trust"],
    ] {
        sandbox.run(arguments);
        assert!(!exists(&log), "{arguments:?} started it");
    }
    let call = ["mcp", "call", "theirs/echo", "--arg", "text=x"];
    assert_snapshot!(sandbox.run(&call).expect(5).stderr, @r"  × server `theirs` is not available: needs consent: run `aster mcp trust theirs`");

    sandbox.run(&["mcp", "trust", "theirs", "--yes"]).expect(0);
    assert!(!exists(&log), "consent starts nothing");
    sandbox.run(&call).expect(0);
    assert_eq!(fs::read_to_string(&log).unwrap(), "started\n");

    sandbox.project(&servers(&[("theirs", sandbox.peer(", env: {SECRET: x}"))]));
    sandbox.run(&call).expect(5);
    assert_eq!(fs::read_to_string(&log).unwrap(), "started\n", "what changed needs consent anew");
}

#[test]
fn search_and_describe_read_well() {
    let (sandbox, _) = with_peer();
    let natives = "  tools: {deny: [\"web/*\", \"shortcuts/*\"]}\n";
    sandbox.user(&(servers(&[("peer", sandbox.peer(""))]) + natives));
    assert_snapshot!(sandbox.run(&["mcp", "search", "says", "told"]).expect(0).stdout, @r"
    peer/echo (elevated)
      Says what it is told.[2J
      echo(text: string)
    ");
    let page = sandbox.run(&["mcp", "search", "--server", "peer", "--limit", "1", "--json"]).expect(0).json();
    assert_eq!((&page["total"], &page["next_offset"]), (&json!(3), &json!(1)));
    let near = sandbox.run(&["mcp", "search", "messagge", "--server", "none"]).expect(0).stdout;
    assert!(near.contains("no server `none` is known"), "{near}");
    let long = "word ".repeat(60);
    let refused = sandbox.run(&["mcp", "search", &long]).expect(2);
    assert!(refused.stderr.contains("the query has 300 bytes, the limit is 256"), "{refused}");
    assert_snapshot!(sandbox.run(&["mcp", "search", "zzzz", "--server", "peer"]).expect(0).stdout, @r"no tool matches; try other or fewer words, or list the tools of a server with an empty query. The servers are: peer");

    let outcome = sandbox.run(&["mcp", "describe", "peer/echo"]).expect(0);
    assert_snapshot!(outcome.stdout, @r#"
    peer/echo (elevated, group peer)
      echo(text: string)

    Says what it is told.[2J

    Arguments:
    {
      "type": "object",
      "properties": {
        "text": {
          "type": "string"
        }
      },
      "required": [
        "text"
      ]
    }

    What it says of itself:
    {
      "readOnlyHint": true
    }
    "#);
    let for_openai = ["mcp", "describe", "peer/echo", "--provider", "openai-strict"];
    let told = sandbox.run(&for_openai).expect(0).stdout;
    assert!(told.contains("\"additionalProperties\": false") && !told.contains("Left out"), "{told}");
    let described = sandbox.run(&["mcp", "describe", "peer/echo", "peer/fail", "--json"]).expect(0);
    assert!(!described.stdout.contains('\u{202e}'));
    assert_eq!(
        described.json()["tools"][0]["definition"]["description"],
        "Says what it is told.\u{202e}\u{1b}[2J"
    );
    assert_eq!(described.json()["tools"][1]["id"], "peer/fail");
    assert_snapshot!(sandbox.run(&["mcp", "describe", "peer/ecko", "fail", "none/x"]).expect(2).stderr, @r"
    × 3 tools cannot be described
    × there is no tool `peer/ecko`
    help: did you mean peer/echo?
    × there is no tool `fail`
    help: did you mean peer/fail?
    × there is no tool `none/x`
    help: `aster mcp list --tools` shows what there is
    ");
}

#[test]
fn a_call_ends_with_the_code_of_its_outcome() {
    let (sandbox, log) = with_peer();
    sandbox.user(&servers(&[
        ("peer", sandbox.peer("")),
        ("gone", "{command: aster-test-no-such-program}".to_owned()),
    ]));
    let run = |arguments: &[&str]| sandbox.run(&[&["mcp", "call"], arguments].concat());

    let outcome = run(&["peer/echo", r#"{"text": "hello"}"#]).expect(0);
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("heard hello[2J\n", ""));
    let outcome = sandbox
        .run_with_input(&["mcp", "call", "peer/echo", "-", "--json"], r#"{"text": "piped"}"#)
        .expect(0);
    assert_eq!(outcome.json()["outcome"], "ok");
    assert_eq!(outcome.json()["result"]["content"][0]["text"], "heard piped\u{1b}[2J");

    let outcome = run(&["peer/fail"]).expect(1);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("it cannot be done"), "{outcome}");
    assert_eq!(run(&["peer/fail", "--json"]).expect(1).json()["result"]["isError"], true);

    assert_snapshot!(run(&["peer/echo", "--arg", "text=5", "--arg", "more=x"]).expect(2).stderr, @r#"
    × the arguments do not fit the schema of `peer/echo`; nothing was called
    help: `aster mcp describe peer/echo` shows it
    × /text: value is not of type "string"
    "#);
    let outcome = run(&["peer/fail", "--arg", "as=bug"]).expect(1);
    assert!(outcome.stderr.contains("the server refused the call: unknown method"), "{outcome}");
    run(&["peer/echo", "[]"]).expect(2);
    run(&["peer/nothing"]).expect(2);
    run(&["nobody/nothing"]).expect(2);
    run(&["gone/x"]).expect(5);

    let outcome = run(&["peer/wipe"]).expect(4);
    assert_snapshot!(outcome.stderr, @r#"  × `peer/wipe` needs a human's approval (the tool is Restricted), and nobody can be asked here. Nothing was called. The user can call it from a terminal with `aster mcp call peer/wipe`, or lower its tier in aster.yaml: `mcp.servers.peer.tiers: {"wipe": elevated}` with `annotations: ignore`"#);
    assert!(!fs::read_to_string(&log).unwrap().contains("wiped"));
}

#[test]
fn every_call_is_recorded_and_no_secret_is() {
    let (sandbox, _) = with_peer();
    let secret = "correct-horse-battery";
    sandbox.user(&servers(&[("peer", sandbox.peer(&format!(", env: {{SECRET: {secret}}}")))]));
    sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=hello"]).expect(0);
    sandbox.run(&["mcp", "call", "peer/wipe"]).expect(4);
    sandbox.run(&["mcp", "call", "peer/echo"]).expect(2);
    sandbox.run(&["mcp", "call", "peer/nothing"]).expect(2);
    let audit = fs::read_to_string(sandbox.path("state/aster/audit.jsonl")).unwrap();
    assert!(!audit.contains(secret), "{audit}");
    let records: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<_> = records.iter().filter(|record| record["stage"] == "outcome").collect();
    let told: Vec<_> = outcomes.iter().map(|record| (&record["tool"], &record["outcome"])).collect();
    let denied = json!("denied");
    let expected = [
        (&json!("peer/echo"), &json!("ok")),
        (&json!("peer/wipe"), &denied),
        (&json!("peer/echo"), &denied),
        (&Value::Null, &denied),
    ];
    assert_eq!(told, expected);
}

#[test]
fn without_an_audit_one_can_look_but_not_touch() {
    let (sandbox, log) = with_peer();
    sandbox.write("file", "");
    let user = servers(&[("peer", sandbox.peer(", tiers: {fail: standard}"))]);
    sandbox.user(&format!("{user}audit: {{path: {}/x.jsonl}}\n", sandbox.path("file").display()));
    let outcome = sandbox.run(&["mcp", "list"]).expect(0);
    assert_snapshot!(outcome.stderr, @r"warning: the audit [ROOT]/file/x.jsonl cannot be written (File exists (os error 17)): only standard tools can be called");
    sandbox.run(&["mcp", "call", "peer/fail"]).expect(1);
    let outcome = sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=x"]).expect(4);
    assert!(outcome.stderr.contains("audit"), "{outcome}");
    sandbox.run(&["check"]).expect(3);
    assert!(!fs::read_to_string(&log).unwrap().contains("wiped"));
}

#[test]
fn arguments_are_read_before_anything_starts() {
    let (sandbox, log) = with_peer();
    sandbox.user(&servers(&[("peer", sandbox.peer(""))]));
    sandbox.run_with_input(&["mcp", "call", "peer/echo", "-"], "[1]").expect(2);
    sandbox.run(&["mcp", "call", "peer/echo", "@none.json"]).expect(2);
    assert!(!exists(&log));

    // The input stays open: only the signal can end it.
    let mut command = sandbox.command();
    command.args(["mcp", "call", "peer/echo", "-"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take();
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success() && !child.wait().unwrap().success());
    assert!(input.is_some() && !exists(&log));
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_that_cannot_be_written_is_a_failure() {
    let sandbox = Sandbox::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        sandbox.command().args(["mcp", "list", "-q"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot be written to standard output"));
}

#[test]
fn a_second_signal_ends_what_is_still_closing() {
    let (sandbox, log) = with_peer();
    // It serves, and then neither the end of its input nor a signal that it can ignore ends it.
    let stubborn = r#"trap "" TERM; . "$0"; while :; do sleep 0.1; done"#;
    sandbox.user(&servers(&[(
        "peer",
        format!(
            "{{command: sh, args: [-c, '{stubborn}', '{}', '{}']}}",
            sandbox.path("peer.sh").display(),
            log.display()
        ),
    )]));
    let mut command = sandbox.command();
    command.args(["mcp", "list"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut told).unwrap();
    // All that is left to do is closing, for which the peer would be given seconds.
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

/// Waits until the peer of a process has started.
fn wait_for(child: &mut Child, log: &Path) {
    while !exists(log) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before the peer started");
        std::thread::yield_now();
    }
}

fn is_alive(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status().unwrap().success()
}

/// Ends the process with a signal once the peer has started, and gives its exit code.
fn interrupt(sandbox: &Sandbox, arguments: &[&str], log: &Path, signal: &str) -> Option<i32> {
    let mut child = sandbox.command().args(arguments).stdin(Stdio::piped()).spawn().unwrap();
    wait_for(&mut child, log);
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    child.wait().unwrap().code()
}

#[test]
fn a_signal_ends_the_command_and_its_servers() {
    for (arguments, signal, code) in [
        (&["mcp", "list"][..], "-INT", 130),
        (&["mcp", "list"], "-TERM", 130),
        (&["mcp", "serve"], "-TERM", 0),
    ] {
        let (sandbox, log) = with_peer();
        // It lists no tools before the test lets it: the command is still waiting when the signal comes.
        let pid = sandbox.path("pid");
        let script =
            format!("echo $$ > {}; echo started >> {}; cat > /dev/null", pid.display(), log.display());
        sandbox.user(&servers(&[("peer", format!("{{command: sh, args: [-c, '{script}']}}"))]));
        assert_eq!(interrupt(&sandbox, arguments, &log, signal), Some(code), "{arguments:?} {signal}");
        let pid = fs::read_to_string(pid).unwrap();
        assert!(!is_alive(&pid), "the server outlives {arguments:?} {signal}");
    }
}

#[test]
fn serve_ends_with_its_parent_and_leaves_no_server_behind() {
    let (sandbox, log) = with_peer();
    let pid = sandbox.path("pid");
    let script = format!("echo $$ > {}; echo started >> {}; cat > /dev/null", pid.display(), log.display());
    sandbox.user(&servers(&[("peer", format!("{{command: sh, args: [-c, '{script}']}}"))]));
    // The test holds the other end of the pipe, so that the shell's death does not end the input.
    let mut shell = sandbox.prepare(Command::new("sh"));
    shell.args(["-c", r#"exec 3<&0; "$0" mcp serve <&3 & wait"#, env!("CARGO_BIN_EXE_aster")]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input = shell.stdin.take();
    let mut output = shell.stdout.take().unwrap();
    wait_for(&mut shell, &log);
    shell.kill().unwrap();
    shell.wait().unwrap();
    // What the command writes to is closed when the last of its processes has gone.
    std::io::copy(&mut output, &mut std::io::sink()).unwrap();
    assert!(input.is_some());
    assert!(!is_alive(&fs::read_to_string(pid).unwrap()), "the server outlives the parent");
}

#[test]
fn check_names_every_problem_and_starts_nothing_by_itself() {
    let (sandbox, log) = with_peer();
    sandbox.user(&servers(&[
        ("peer", sandbox.peer("")),
        ("unset", "{command: x, args: [\"${NOT_SET}\"]}".to_owned()),
        ("off", "{command: \"${NOT_SET}\", disabled: true}".to_owned()),
    ]));
    sandbox.project(&servers(&[("peer", "{command: x}".to_owned()), ("theirs", "{command: y}".to_owned())]));
    assert_snapshot!(sandbox.run(&["check"]).expect(3).stdout, @r"
    read [ROOT]/config/aster/aster.yaml
    read [ROOT]/project/aster.yaml
    problem: [ROOT]/config/aster/aster.yaml:4:32: `args` of server `unset` needs the variable `NOT_SET`, which is not set
      help: set it, or write `${NOT_SET:-default}`
    warning: [ROOT]/project/aster.yaml:3:5: server `peer` is left out: [ROOT]/config/aster/aster.yaml:3 declares it, and a project cannot override the user's own
      help: give it another name
    warning: [ROOT]/project/aster.yaml:4: server `theirs` is not started before you consent to its command
      help: run `aster mcp trust theirs`
    note: dependencies that are not linked were not looked for: cargo did not start this, as `cargo test` and `cargo run` do
    4 external servers, 3 native tools, 1 problem, 2 warnings
    ");
    assert!(!exists(&log) && !exists(&sandbox.path("state/aster")));
    let checked = sandbox.run(&["check", "--json"]).expect(3).json();
    assert_eq!(
        (checked["problems"].as_array().unwrap().len(), checked["warnings"].as_array().unwrap().len()),
        (1, 2)
    );

    sandbox.user("mcp: {sevrers: {}, tols: {}}\n");
    let checked = sandbox.run(&["check", "--json", "--no-project"]).expect(3).json();
    assert_eq!(checked["problems"][0]["help"], "did you mean `servers`?");
    assert_eq!(checked["problems"][1]["help"], "did you mean `tools`?");

    sandbox.user(&servers(&[("peer", sandbox.peer(""))]));
    sandbox.run(&["check", "--no-project"]).expect(0);
    assert!(!exists(&log));
    let outcome = sandbox.run(&["check", "--no-project", "--start"]).expect(3);
    assert!(exists(&log) && outcome.stdout.contains("problem: peer/bad name:"), "{outcome}");
    sandbox.user(&servers(&[("gone", "{command: aster-test-no-such-program}".to_owned())]));
    sandbox.run(&["check", "--no-project", "--start"]).expect(5);
}

#[test]
fn serve_offers_the_bridge_and_one_native_server_alone() {
    let (sandbox, log) = with_peer();
    sandbox.user(&servers(&[("peer", sandbox.peer(""))]));
    let request = |id: u32, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
    };
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let opening =
        request(1, "initialize", client) + "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    let talk = |arguments: &[&str], requests: &str| {
        let outcome = sandbox.run_with_input(arguments, &(opening.clone() + requests)).expect(0);
        let mut lines = outcome.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.find(|message| message["id"] == 2).unwrap_or_else(|| panic!("no answer: {outcome}"))
    };

    let listed = talk(&["mcp", "serve"], &request(2, "tools/list", json!({})));
    assert_eq!(listed["result"]["tools"][0]["name"], "aster_mcp");
    let call = json!({"name": "aster_mcp", "arguments": {"action": "execute", "name": "peer/echo", "arguments": {"text": "hi"}}});
    let called = talk(&["mcp", "serve"], &request(2, "tools/call", call));
    assert_eq!(called["result"]["content"][0]["text"], "heard hi\u{1b}[2J");
    let direct = ["mcp", "serve", "--mode", "direct"];
    let call = json!({"name": "peer__echo", "arguments": {"text": "hi"}});
    let called = talk(&direct, &request(2, "tools/call", call));
    assert_eq!(called["result"]["content"][0]["text"], "heard hi\u{1b}[2J");
    let listed = talk(&direct, &request(2, "tools/list", json!({})));
    let names: Vec<&Value> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("peer__wipe")) && names.contains(&&json!("web__extract")), "{names:?}");
    fs::remove_file(&log).unwrap();
    let listed = talk(&["mcp", "serve", "web"], &request(2, "tools/list", json!({})));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "extract"), "{listed}");
    // What is not behind the bridge has no use for external servers.
    for name in ["peer", "nobody"] {
        sandbox.run(&["mcp", "serve", name]).expect(2);
    }
    sandbox.run(&["mcp", "serve", "web", "--mode", "direct"]).expect(2);
    assert!(!exists(&log));
}

/// The head of the answer to a request over HTTP.
fn status(address: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

/// Serves over HTTP at this address, and gives back what it says first, and the rest to be read.
fn serve_over_http(
    sandbox: &Sandbox,
    address: &str,
    more: &[&str],
) -> (Child, Value, BufReader<ChildStderr>) {
    let mut server = sandbox
        .command()
        .args(["mcp", "serve", "--json", "--http", address, "--token-env", "ASTER_TEST_TOKEN"])
        .args(more)
        .env("ASTER_TEST_TOKEN", "the-token-of-a-test")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut told = BufReader::new(server.stderr.take().unwrap());
    told.read_line(&mut line).unwrap();
    (server, serde_json::from_str(&line).unwrap(), told)
}

#[test]
fn serve_over_http_says_where_and_ends_on_a_signal() {
    let sandbox = Sandbox::new();
    let (mut server, first, mut told) = serve_over_http(&sandbox, "127.0.0.1:0", &[]);
    let mut line = first.to_string();
    let url = first["listening"].as_str().unwrap().to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    assert!(status(address, "/health", "").contains(" 200 "));
    assert!(status(address, "/mcp", "").contains(" 401 "));
    assert!(status(address, "/mcp", "Authorization: Bearer the-token-of-a-test\r\n").contains(" 406 "));
    let ended = Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
    told.read_line(&mut line).unwrap();
    assert!(!line.contains("the-token"), "{line}");
}

#[test]
fn serve_over_http_at_all_addresses_says_under_which_names() {
    let sandbox = Sandbox::new();
    let told = |more: &[&str]| {
        let (mut server, first, _) = serve_over_http(&sandbox, "0.0.0.0:0", more);
        server.kill().unwrap();
        server.wait().unwrap();
        first["note"].clone()
    };
    assert!(told(&[]).as_str().unwrap().contains("--allow-host"));
    assert_eq!(told(&["--allow-host", "tools.example"]), Value::Null);
}

#[test]
fn serve_over_http_refuses_what_is_not_safe() {
    let sandbox = Sandbox::new();
    let serve = |more: &[&str]| sandbox.run(&[&["mcp", "serve", "--http"], more].concat());
    let outcome = serve(&["0.0.0.0:0"]).expect(2);
    assert!(outcome.stderr.contains("can be reached from other machines"), "{outcome}");
    let outcome = serve(&["127.0.0.1:0", "--token-env", "ASTER_TEST_NOT_SET"]).expect(2);
    assert!(outcome.stderr.contains("there is no token"), "{outcome}");
    let outcome = serve(&["127.0.0.1:0", "--allow-origin", "app.example"]).expect(2);
    assert!(outcome.stderr.contains("cannot be an allowed origin"), "{outcome}");
    serve(&["nowhere"]).expect(2);
    sandbox.run(&["mcp", "serve", "--token-env", "PATH"]).expect(2);
}

#[test]
fn a_hook_of_the_configuration_judges_calls() {
    let sandbox = Sandbox::new();
    let hook = sandbox.path("hook");
    fs::write(&hook, "echo 'not today' >&2\nexit 2\n").unwrap();
    let call = ["mcp", "call", "web/extract", "--arg", "url=http://127.0.0.1:9/"];
    let hooks = |command: &str| {
        format!(
            "hooks: {{PreToolUse: [{{command: '{command}', args: ['{}'], tools: 'web/*'}}]}}",
            hook.display()
        )
    };
    sandbox.user(&hooks("sh"));
    let outcome = sandbox.run(&call).expect(4);
    assert!(outcome.stderr.contains("the hook `sh` denied the call: not today"), "{outcome}");
    sandbox.user(&hooks("/nowhere/hook"));
    let outcome = sandbox.run(&call).expect(4);
    assert!(outcome.stderr.contains("the hook `hook` failed"), "{outcome}");
}
