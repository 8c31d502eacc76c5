//! `permissions.yaml` with the real command: what it makes of calls, `aster policy`, and a change under a client that is
//! being served.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests have rules of their own, and no project's configuration")]
mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use common::Sandbox;
use insta::assert_snapshot;
use serde_json::{Value, json};

/// How long a line may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox whose user has a server with the tools `echo`, `fail` and `wipe`, the last of which says that it destroys.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let peer = sandbox.peer("");
    sandbox.user(&format!("mcp:\n  servers: {{peer: {peer}}}\n"));
    sandbox
}

fn rules(sandbox: &Sandbox, text: &str) {
    // As editors do it: the file is never half there.
    sandbox.write("config/aster/new.yaml", text);
    let folder = sandbox.path("config/aster");
    fs::rename(folder.join("new.yaml"), folder.join("permissions.yaml")).unwrap();
}

fn is_wiped(sandbox: &Sandbox) -> bool {
    fs::read_to_string(sandbox.path("log")).is_ok_and(|log| log.contains("wiped"))
}

/// Also of a server that is configured, and that this command does not start.
#[test]
fn a_rule_is_about_a_group_that_there_can_be() {
    let sandbox = sandbox();
    let peer = sandbox.peer("");
    sandbox.user(&format!("mcp:\n  servers: {{peer: {peer}, other: {peer}}}\n"));
    let echo = || sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=a"]);
    rules(&sandbox, "rules: [{action: deny, group: other}]\n");
    echo().expect(0);
    rules(&sandbox, "rules: [{action: deny, group: othre}]\n");
    echo().expect(0);
    rules(&sandbox, "rules: [{action: deny, origin: native, group: othre}]\n");
    let told = echo().expect(3).stderr;
    assert!(told.contains("permissions.yaml:1: no tool has the group `othre`"), "{told}");
}

#[test]
fn rules_decide_what_becomes_of_a_call() {
    let sandbox = sandbox();
    let echo = |text: &str| sandbox.run(&["mcp", "call", "peer/echo", "--arg", &format!("text={text}")]);
    rules(
        &sandbox,
        "rules:
  - action: deny
    tool: peer/echo
    arguments: {/text: {regex: 'rm\\s+-rf'}}
    reason: nothing is removed here.
  - action: allow
    tool: peer/wipe
  - action: ask
    path: ~/.ssh
",
    );
    assert!(echo("hello").expect(0).stdout.starts_with("heard hello"));
    assert_snapshot!(echo("rm  -rf x").expect(4).stderr, @"  × a rule denies this call of `peer/echo`: nothing is removed here. Nothing was called");
    // The annotation asked for an approval, which the rule lifts.
    sandbox.run(&["mcp", "call", "peer/wipe"]).expect(0);
    assert!(is_wiped(&sandbox));
    let asked = echo("/tmp/../home/../../../../../../../../../../../../../x").expect(0);
    assert!(asked.stdout.starts_with("heard"));
    let asked = echo(&format!("{}/.ssh/id", sandbox.path("home").display())).expect(4);
    assert!(asked.stderr.contains("a rule asks for it"), "{asked}");
    let log = fs::read_to_string(sandbox.path("state/aster/audit.jsonl")).unwrap();
    assert!(log.contains("nothing is removed here. Nothing was called"), "{log}");
    assert!(log.contains("permissions.yaml:2\"}"), "{log}");

    // A project adds, and allows nothing.
    rules(&sandbox, "rules: []\n");
    fs::remove_file(sandbox.path("log")).unwrap();
    sandbox.write(
        "project/permissions.yaml",
        "rules: [{action: allow, tool: 'peer/*'}, {action: deny, tool: peer/fail}]\n",
    );
    let outcome = sandbox.run(&["mcp", "call", "peer/wipe"]).expect(4);
    assert!(outcome.stderr.contains("a project can deny and ask, and not allow"), "{outcome}");
    assert!(!is_wiped(&sandbox));
    assert!(
        sandbox.run(&["mcp", "call", "peer/fail"]).expect(2).stderr.contains("there is no tool `peer/fail`")
    );
    assert!(
        sandbox
            .run(&["mcp", "call", "peer/fail", "--no-project"])
            .expect(1)
            .stderr
            .contains("it cannot be done")
    );

    // Nothing beyond standard runs by rules that nobody can read.
    rules(&sandbox, "rules: [\n");
    let outcome = sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=x", "--no-project"]).expect(4);
    assert!(outcome.stderr.contains("the rules of what may be called cannot be read"), "{outcome}");
    assert_snapshot!(sandbox.run(&["check", "--no-project"]).expect(3).stdout, @r"
    read [ROOT]/config/aster/aster.yaml
    read [ROOT]/config/aster/permissions.yaml
    problem: [ROOT]/config/aster/permissions.yaml:1:8: the text is not valid YAML: unclosed bracket '['
    note: dependencies that are not linked were not looked for: cargo did not start this, as `cargo test` and `cargo run` do
    1 external server, 3 native tools, 1 problem, 0 warnings
    ");
}

#[test]
fn what_a_rule_hides_is_to_the_command_as_if_it_were_not_there() {
    let sandbox = sandbox();
    rules(&sandbox, "rules: [{action: deny, tool: peer/echo, reason: silence}]\n");
    for command in [&["mcp", "call"][..], &["mcp", "describe"], &["mcp", "call", "--json"]] {
        let told = |name: &str| {
            let outcome = sandbox.run(&[command, &[name]].concat());
            assert_ne!(outcome.code, 0, "{outcome}");
            outcome.to_string().replace(name, "NAME")
        };
        assert_eq!(told("peer/echo"), told("peer/ocho"), "{command:?}");
        assert_eq!(told("echo"), told("ocho"), "{command:?}");
    }
    let found = sandbox.run(&["mcp", "search", "says what it is told", "--json"]).json();
    assert!(!found.to_string().contains("peer/echo"), "{found}");
    assert!(!sandbox.run(&["mcp", "list", "--tools"]).expect(0).stdout.contains("peer/echo"));
}

#[test]
fn policy_test_says_what_comes_of_a_call_and_why() {
    let sandbox = sandbox();
    rules(
        &sandbox,
        "default: ask
rules:
  - {action: allow, tool: 'peer/*', reason: it is ours}
  - {action: ask, tool: peer/echo, arguments: {/text: {glob: '*secret*'}}, reason: secrets are dear}
  - {action: deny, host: evil.example, reason: they are evil}
  - {action: deny, tool: peer/fail, team: blue}
",
    );
    let test = |arguments: &[&str]| sandbox.run(&[&["policy", "test"], arguments].concat());
    assert_snapshot!(test(&["peer/echo", r#"{"text": "x"}"#]).expect(0).stdout, @r"
    peer/echo runs
      by the rule at [ROOT]/config/aster/permissions.yaml:3
      why: it is ours
      tier: elevated, since nobody says otherwise
    ");
    assert_snapshot!(test(&["peer/echo", "--arg", "text=a secret"]).expect(0).stdout, @r"
    peer/echo asks a human
      by the rule at [ROOT]/config/aster/permissions.yaml:4
      why: a rule asks: secrets are dear
      tier: elevated, since nobody says otherwise
      also matching: allow at [ROOT]/config/aster/permissions.yaml:3
    ");
    assert_snapshot!(test(&["peer/echo", "--arg", "text=https://evil.example/secret"]).expect(4).stdout, @r"
    peer/echo is denied
      by the rule at [ROOT]/config/aster/permissions.yaml:5
      why: a rule denies this call of `peer/echo`: they are evil. Nothing was called
      tier: elevated, since nobody says otherwise
      also matching: ask at [ROOT]/config/aster/permissions.yaml:4
      also matching: allow at [ROOT]/config/aster/permissions.yaml:3
    ");
    assert_snapshot!(test(&["peer/wipe"]).expect(0).stdout, @r"
    peer/wipe runs
      by the rule at [ROOT]/config/aster/permissions.yaml:3
      why: it is ours
      tier: restricted, since it says so of itself
    ");
    assert_snapshot!(test(&["peer/fail", "--team", "blue", "--agent", "kim"]).expect(4).stdout, @r"
    peer/fail does not exist for kim
      by the rule at [ROOT]/config/aster/permissions.yaml:6
      tier: elevated, since nobody says otherwise
      also matching: allow at [ROOT]/config/aster/permissions.yaml:3
    ");
    assert_snapshot!(test(&["web/extract", r#"{"url": "https://x.example"}"#]).expect(0).stdout, @r"
    web/extract asks a human
      by the rule at [ROOT]/config/aster/permissions.yaml:1
      why: no rule allows it
      tier: elevated, as it was declared
    ");
    assert_snapshot!(test(&["peer/fail", "--json"]).expect(0).stdout, @r#"
    {
      "id": "peer/fail",
      "agent": "client",
      "decision": "run",
      "why": "it is ours",
      "rule": "[ROOT]/config/aster/permissions.yaml:3",
      "tier": "elevated",
      "tier_source": "default",
      "matching": [
        {
          "action": "allow",
          "rule": "[ROOT]/config/aster/permissions.yaml:3",
          "reason": "it is ours"
        }
      ]
    }
    "#);
    test(&["peer/nothing"]).expect(2);
    sandbox.write("project/aster.yaml", "mcp:\n  tools: {deny: [peer/fail]}\n");
    assert_snapshot!(test(&["peer/fail"]).expect(4).stdout, @r"
    peer/fail does not exist for client
      why: `mcp.tools` in aster.yaml leaves it out
      tier: elevated, since nobody says otherwise
      also matching: allow at [ROOT]/config/aster/permissions.yaml:3
    ");
    test(&["peer/echo", "{"]).expect(2);
    assert!(test(&["peer/echo", "{}"]).expect(2).stderr.contains("do not fit the schema"));
    // Nothing was called.
    assert!(!is_wiped(&sandbox));
    assert_eq!(fs::read_to_string(sandbox.path("state/aster/audit.jsonl")).unwrap(), "");
}

#[test]
fn policy_lint_finds_mistakes_and_what_never_decides() {
    let sandbox = sandbox();
    assert_snapshot!(sandbox.run(&["policy", "lint"]).expect(0).stdout, @"0 rules, 0 problems, 0 warnings");
    rules(
        &sandbox,
        "rules:
  - {action: deny, tool: peer/*}
  - {action: ask, tool: peer/wipe}
  - {action: deny, tool: web/fetsch}
  - {action: ask, server: mail}
  - {action: allow, tier: elevated}
",
    );
    assert_snapshot!(sandbox.run(&["policy", "lint"]).expect(3).stdout, @r"
    read [ROOT]/config/aster/permissions.yaml
    problem: [ROOT]/config/aster/permissions.yaml:3: the rule never decides: whatever it matches, the rule at [ROOT]/config/aster/permissions.yaml:2 matches too, and `deny` wins over `ask`
      help: leave it out, or narrow the other
    problem: [ROOT]/config/aster/permissions.yaml:4: `web/fetsch` matches nothing: server `web` has no `fetsch`
      help: `aster mcp list --tools` shows what there is
    problem: [ROOT]/config/aster/permissions.yaml:5: no server is called `mail`
      help: `aster mcp list` shows the servers
    problem: [ROOT]/config/aster/permissions.yaml:6: the rule allows what nobody asks about: standard and elevated tools run without it
      help: leave it out
    5 rules, 4 problems, 0 warnings
    ");
    rules(&sandbox, "rules:\n  - {action: block, tool: peer/*}\n  - {action: deny, toll: x}\n");
    assert_snapshot!(sandbox.run(&["policy", "lint"]).expect(3).stdout, @r"
    read [ROOT]/config/aster/permissions.yaml
    problem: [ROOT]/config/aster/permissions.yaml:2:14: `action` of a rule cannot be `block`
      help: known here: `deny`, `ask`, `allow`
    problem: [ROOT]/config/aster/permissions.yaml:3:20: a rule has no key `toll`
      help: did you mean `tool`?
    0 rules, 2 problems, 0 warnings
    ");
    let linted = sandbox.run(&["policy", "lint", "--json"]).expect(3).json();
    assert_eq!((&linted["rules"], linted["problems"].as_array().unwrap().len()), (&json!(0), 2));
}

/// A client of `aster mcp serve --mode direct`.
struct Client {
    command: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    errors: Receiver<String>,
    next: i64,
}

impl Client {
    fn start(sandbox: &Sandbox) -> Self {
        let mut command = sandbox.command();
        command.args(["mcp", "serve", "--mode", "direct"]).env("ASTER_LOG", "aster_runtime::config=warn");
        let mut command =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(command.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let (sender, errors) = channel();
        let output = BufReader::new(command.stderr.take().unwrap());
        thread::spawn(move || output.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
        let input = command.stdin.take().unwrap();
        let mut client = Self { command, input, lines, errors, next: 0 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        client.ask("initialize", hello);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The answer to a request; what comes before it is skipped.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let message = self.lines.recv_timeout(PATIENCE).unwrap();
            if message["id"] == self.next {
                return message;
            }
        }
    }

    /// Waits until the client is told that its list has changed.
    fn told(&self) {
        let changed = "notifications/tools/list_changed";
        while self.lines.recv_timeout(PATIENCE).unwrap()["method"] != changed {}
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.filter(|name| name.starts_with("peer__")).collect()
    }

    fn call(&mut self, name: &str) -> Value {
        let mut answer = self.ask("tools/call", json!({"name": name, "arguments": {"text": "hi"}}));
        answer.as_object_mut().unwrap().remove("id");
        answer
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.command.kill();
        let _ = self.command.wait();
    }
}

#[test]
fn a_client_that_is_served_sees_changed_rules_at_once() {
    let sandbox = sandbox();
    let mut client = Client::start(&sandbox);
    while client.tools().is_empty() {
        client.told();
    }
    assert_eq!(client.tools(), ["peer__echo", "peer__fail", "peer__wipe"]);

    // Hidden: off the list, and to call it is to call a name that there is not.
    rules(&sandbox, "rules: [{action: deny, tool: peer/echo, reason: silence}]\n");
    client.told();
    assert_eq!(client.tools(), ["peer__fail", "peer__wipe"]);
    let (hidden, unknown) = (client.call("peer__echo"), client.call("peer__ocho"));
    assert_eq!(hidden.to_string(), unknown.to_string().replace("peer__ocho", "peer__echo"));

    // A mistake changes nothing, and is told.
    rules(&sandbox, "rules: [{action: dney, tool: 'peer/*'}]\n");
    let told = client.errors.recv_timeout(PATIENCE).unwrap();
    assert!(
        told.contains("permissions.yaml:1:18: `action` of a rule cannot be `dney`; did you mean `deny`?"),
        "{told}"
    );
    assert!(told.contains("the last good rules stay"), "{told}");
    assert_eq!(client.tools(), ["peer__fail", "peer__wipe"]);

    // Without its file a rule stays, and that is told; a file without the rule drops it.
    fs::remove_file(sandbox.path("config/aster/permissions.yaml")).unwrap();
    let told = client.errors.recv_timeout(PATIENCE).unwrap();
    assert!(told.contains("what it denies and asks stays; start Aster again to drop it"), "{told}");
    assert_eq!(client.tools(), ["peer__fail", "peer__wipe"]);
    rules(&sandbox, "rules: []\n");
    client.told();
    assert_eq!(client.tools(), ["peer__echo", "peer__fail", "peer__wipe"]);
    assert!(client.call("peer__echo").to_string().contains("heard hi"));
}
