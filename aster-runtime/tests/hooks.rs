//! Hooks that are programs, real ones: what they are given, what their words do, and that whatever goes wrong with them
//! refuses the call or withholds its result.
#![cfg(all(unix, feature = "hooks"))]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aster_runtime::audit::{AuditSink, Record};
use aster_runtime::call::{Check, Completed, Outcome};
use aster_runtime::gate::approval::{Approval, ApprovalRequest, Approver};
use aster_runtime::gate::hooks::{Event, Matcher, OnFailure, ProgramHook};
use aster_runtime::gate::rules::Rules;
use aster_runtime::host::CallOptions;
use aster_runtime::{Host, Profile, catalogue, mcp_server};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// A desk.
#[mcp_server(name = "desk")]
mod desk {
    use aster_runtime::{ToolError, mcp_tool};

    /// Says what it is told.
    #[mcp_tool(tier = Elevated, alias = "speak")]
    pub(crate) fn say(
        /// What to say.
        text: String,
    ) -> String {
        text
    }

    /// Fails.
    #[mcp_tool(tier = Elevated)]
    pub(crate) fn fail() -> Result<String, ToolError> {
        Err(ToolError::new("the drawer is locked"))
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Value>>);

impl AuditSink for Recorder {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

#[derive(Default)]
struct Asked(Mutex<Vec<String>>);

impl Approver for Asked {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.0.lock().unwrap().push(request.why.to_string());
        Box::pin(async { Approval::once("the test") })
    }
}

/// A folder of hooks, and a host that has them.
struct Bench {
    folder: tempfile::TempDir,
    hooks: Vec<ProgramHook>,
    rules: Rules,
    audit: Arc<Recorder>,
    asked: Arc<Asked>,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            hooks: Vec::new(),
            rules: Rules::default(),
            audit: Arc::default(),
            asked: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A hook that is a shell script. The shell is what is run: a file that was just written may still be open for writing
    /// in a process that another test is starting, and then it cannot be run itself.
    fn script(&self, event: Event, body: &str) -> ProgramHook {
        let path = self.path(&format!("hook-{}", fs::read_dir(self.folder.path()).unwrap().count()));
        fs::write(&path, body).unwrap();
        ProgramHook::new(event, "sh").args([path.to_str().unwrap()])
    }

    fn hook(mut self, event: Event, body: &str, more: impl FnOnce(ProgramHook) -> ProgramHook) -> Self {
        let hook = self.script(event, body);
        self.hooks.push(more(hook));
        self
    }

    /// A hook before the call that answers with this.
    fn says(self, answer: &Value, more: impl FnOnce(ProgramHook) -> ProgramHook) -> Self {
        self.hook(Event::PreToolUse, &format!("cat > /dev/null\ncat <<'END'\n{answer}\nEND"), more)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Completed {
        let mut builder = Host::builder()
            .catalogue(catalogue![desk::SERVER])
            .audit(self.audit.clone())
            .approver(self.asked.clone())
            .rules(self.rules.clone())
            .secrets(["hunter2hunter2"]);
        for hook in &self.hooks {
            builder = builder.hook(Arc::new(hook.clone()));
        }
        let host = builder.build().await.unwrap();
        let session = host.session(Profile::new("clerk").project("/p")).unwrap();
        let completed =
            session.execute(tool, arguments.as_object().unwrap().clone(), CallOptions::default()).await;
        host.close().await;
        completed
    }

    async fn say(&self) -> (Outcome, String) {
        let completed = self.call("desk/say", json!({"text": "hello"})).await;
        (completed.outcome, completed.result.to_text())
    }

    /// The verdicts of the last outcome: hook and verdict.
    fn verdicts(&self) -> Vec<String> {
        let records = self.audit.0.lock().unwrap();
        let hooks =
            records.last().unwrap().get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
        hooks.iter().map(|said| said["verdict"].as_str().unwrap().to_owned()).collect()
    }

    /// The reason of the last outcome's first verdict.
    fn reason(&self) -> String {
        let records = self.audit.0.lock().unwrap();
        records.last().unwrap()["hooks"][0]["reason"].as_str().unwrap_or_default().to_owned()
    }
}

fn before(fields: Value) -> Value {
    let mut output = json!({"hookEventName": "PreToolUse"});
    output.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "hookSpecificOutput": output })
}

fn as_is(hook: ProgramHook) -> ProgramHook {
    hook
}

#[tokio::test]
async fn a_hook_is_given_the_whole_call_and_little_of_our_environment() {
    let bench = Bench::new();
    let (input, environment) = (bench.path("input"), bench.path("environment"));
    let body = format!("cat > {}\nenv > {}", input.display(), environment.display());
    let bench = bench.hook(Event::PreToolUse, &body, |hook| hook.env("OWN", "1"));
    assert_eq!(bench.say().await, (Outcome::Ok, "hello".to_owned()));

    let input: Value = serde_json::from_slice(&fs::read(input).unwrap()).unwrap();
    for (field, value) in [
        ("hook_event_name", json!("PreToolUse")),
        ("agent_type", json!("clerk")),
        ("project", json!("/p")),
        ("tool_name", json!("mcp__desk__say")),
        ("tool_id", json!("desk/say")),
        ("mcp_server", json!({"name": "desk"})),
        ("tier", json!("elevated")),
        ("group", json!("desk")),
        ("tool_input", json!({"text": "hello"})),
    ] {
        assert_eq!(input[field], value, "{field}");
    }
    let record = bench.audit.0.lock().unwrap().last().unwrap().clone();
    assert_eq!(input["tool_use_id"], record["call_id"]);
    assert_eq!(input["session_id"], record["session"]);

    let environment = fs::read_to_string(environment).unwrap();
    assert!(environment.contains("OWN=1") && environment.contains("PATH="), "{environment}");
    // Cargo gives a test many of these.
    assert!(!environment.contains("CARGO"), "{environment}");
    assert_eq!(bench.verdicts(), ["go_on"]);
}

#[tokio::test]
async fn the_words_of_a_hook_decide() {
    for (answer, outcome, told) in [
        (json!({}), Outcome::Ok, "hello"),
        (json!({"systemMessage": "nothing to say"}), Outcome::Ok, "hello"),
        (before(json!({"permissionDecision": "defer"})), Outcome::Ok, "hello"),
        (before(json!({"permissionDecision": "allow"})), Outcome::Ok, "hello"),
        (json!({"decision": "approve"}), Outcome::Ok, "hello"),
        (
            before(json!({"permissionDecision": "deny", "permissionDecisionReason": "too loud"})),
            Outcome::Denied,
            "denied the call: too loud",
        ),
        (json!({"decision": "block", "reason": "old words"}), Outcome::Denied, "denied the call: old words"),
        (json!({"continue": false, "stopReason": "stop"}), Outcome::Denied, "denied the call: stop"),
    ] {
        let bench = Bench::new().says(&answer, as_is);
        let said = bench.say().await;
        assert_eq!(said.0, outcome, "{answer}: {}", said.1);
        assert!(said.1.ends_with(told), "{answer}: {}", said.1);
    }
    let refused = Bench::new().hook(Event::PreToolUse, "echo 'not hunter2hunter2 again' >&2; exit 2", as_is);
    let (outcome, told) = refused.say().await;
    assert_eq!(outcome, Outcome::Denied);
    assert!(told.ends_with("denied the call: not [redacted] again"), "{told}");
    let record = refused.audit.0.lock().unwrap().last().unwrap().clone();
    assert_eq!(record["hooks"][0]["reason"], "not [redacted] again");
    assert_eq!(record["decision"], json!({"denied": "hook"}));
    assert_eq!(record["by"], json!({"hook": "sh"}));
}

#[tokio::test]
async fn a_hook_that_fails_refuses_the_call() {
    let script = |body: &'static str| move |bench: &Bench| bench.script(Event::PreToolUse, body);
    let program =
        |bench: &Bench, name: &str| ProgramHook::new(Event::PreToolUse, bench.path(name).to_str().unwrap());
    type Make = Box<dyn Fn(&Bench) -> ProgramHook>;
    let cases: [(&str, Make, &str); 13] = [
        ("crash", Box::new(script("exit 1")), "it ended with exit status: 1"),
        ("signal", Box::new(script("kill -9 $$")), "it ended with signal: 9"),
        ("missing", Box::new(move |bench| program(bench, "missing")), "there is no such file"),
        (
            "not executable",
            Box::new(move |bench| {
                fs::write(bench.path("plain"), "").unwrap();
                program(bench, "plain")
            }),
            "it is not executable",
        ),
        ("junk", Box::new(script("echo all good")), "its output is no answer of a hook, at line 1"),
        (
            "another event",
            Box::new(script(r#"echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse"}}'"#)),
            "its answer is for another event than PreToolUse",
        ),
        (
            "no word",
            Box::new(script(r#"echo '{"hookSpecificOutput": {"permissionDecision": "maybe"}}'"#)),
            "`permissionDecision` is none of",
        ),
        (
            "a word in the wrong place",
            Box::new(script(r#"echo '{"permissionDecision": "deny"}'"#)),
            "its output is no answer of a hook",
        ),
        (
            "a word that is misspelt",
            Box::new(script(r#"echo '{"hookSpecificOutput": {"permisionDecision": "deny"}}'"#)),
            "its output is no answer of a hook",
        ),
        (
            "a list of words",
            Box::new(script(r#"echo '[null, null, "approve", null, false, null, null, null]'"#)),
            "its output is no answer of a hook",
        ),
        (
            "a list within",
            Box::new(script(
                r#"echo '{"hookSpecificOutput": ["PreToolUse", "allow", null, null, null, null]}'"#,
            )),
            "its output is no answer of a hook",
        ),
        (
            "no text",
            Box::new(script(r#"printf '{"systemMessage": "\377", "decision": "approve"}'"#)),
            "its output is not UTF-8",
        ),
        ("later", Box::new(script(r#"echo '{"async": true}'"#)), "it answers later"),
    ];
    for (name, make, told) in cases {
        for on_failure in [OnFailure::Block, OnFailure::Allow] {
            let mut bench = Bench::new();
            let hook = make(&bench).on_failure(on_failure);
            bench.hooks.push(hook);
            let said = bench.say().await;
            match on_failure {
                OnFailure::Allow => assert_eq!(said, (Outcome::Ok, "hello".to_owned()), "{name}"),
                OnFailure::Block => {
                    assert_eq!(said.0, Outcome::Denied, "{name}");
                    assert!(said.1.contains(told), "{name}: {}", said.1);
                }
            }
            // Whatever became of the call, the record says what became of the hook.
            assert_eq!(bench.verdicts(), ["failed"], "{name}");
            assert!(bench.reason().contains(told), "{name}: {}", bench.reason());
        }
    }
}

#[tokio::test]
async fn a_hook_that_says_nothing_in_time_refuses_and_leaves_nothing_running() {
    let bench = Bench::new();
    let pid = bench.path("pid");
    // The child holds the pipes, as a forgotten process in the background would.
    let body = format!("sleep 600 &\necho $! > {}\nwait", pid.display());
    let bench = bench.hook(Event::PreToolUse, &body, |hook| hook.timeout(Duration::from_secs(2)));
    let began = Instant::now();
    let (outcome, told) = bench.say().await;
    assert_eq!(outcome, Outcome::Denied);
    assert!(told.contains("it did not answer within 2s"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(60));

    let process = fs::read_to_string(pid).unwrap();
    let process = Path::new("/proc").join(process.trim());
    while cfg!(target_os = "linux") && process.join("exe").exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the child of a hook outlives it");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_a_hook_that_may_change_the_call_changes_it() {
    let rewrite = before(json!({"updatedInput": {"text": "quietly"}}));
    let bench = Bench::new().says(&rewrite, |hook| hook.changes(true));
    assert_eq!(bench.say().await, (Outcome::Ok, "quietly".to_owned()));
    assert_eq!(bench.audit.0.lock().unwrap()[0]["arguments"], json!({"text": "quietly"}));

    let (outcome, told) = Bench::new().says(&rewrite, as_is).say().await;
    assert_eq!(outcome, Outcome::Denied);
    assert!(told.contains("is not declared as one that may"), "{told}");

    let wrong = before(json!({"updatedInput": {"text": 7}}));
    let bench = Bench::new().says(&wrong, |hook| hook.changes(true));
    let completed = bench.call("desk/say", json!({"text": "hello"})).await;
    assert_eq!((completed.outcome, completed.denied), (Outcome::Denied, Some(Check::Arguments)));

    // Those that judge see what those that change have made of it, wherever they stand.
    let bench = Bench::new();
    let seen = bench.path("seen");
    let bench = bench
        .hook(Event::PreToolUse, &format!("cat > {}", seen.display()), as_is)
        .says(&rewrite, |hook| hook.changes(true));
    bench.say().await;
    let seen: Value = serde_json::from_slice(&fs::read(seen).unwrap()).unwrap();
    assert_eq!(seen["tool_input"], json!({"text": "quietly"}));
}

#[tokio::test]
async fn the_strictest_word_counts_and_all_are_recorded() {
    let word = |word: &str| before(json!({"permissionDecision": word, "permissionDecisionReason": word}));
    let bench = Bench::new().says(&word("allow"), as_is).says(&word("ask"), as_is).says(&json!({}), as_is);
    assert_eq!(bench.say().await.0, Outcome::Ok);
    assert_eq!(bench.verdicts(), ["allow", "ask", "go_on"]);
    let asked = bench.asked.0.lock().unwrap().clone();
    assert!(asked.len() == 1 && asked[0].ends_with("asks for it: ask"), "{asked:?}");

    let by = bench.audit.0.lock().unwrap()[0]["by"].clone();
    assert_eq!(by, json!({"hook": "sh", "approver": "the test"}));

    let bench = bench.says(&word("deny"), as_is);
    assert_eq!(bench.say().await.0, Outcome::Denied);
    assert_eq!(bench.verdicts(), ["allow", "ask", "go_on", "deny"]);
    assert_eq!(bench.asked.0.lock().unwrap().len(), 1, "nobody is asked about what is refused");
}

/// Who asks here is the tool's own server, whose word a hook may lift.
#[tokio::test]
async fn what_was_allowed_is_not_what_another_hook_made_of_it() {
    let rules = || Rules::new([]).ask_by_default("permissions.yaml:1");
    let allow = before(json!({"permissionDecision": "allow"}));
    let rewrite = before(json!({"updatedInput": {"text": "rm"}}));
    let changes = |hook: ProgramHook| hook.changes(true);
    for (bench, asked) in [
        (Bench::new().says(&allow, changes), 0),
        (Bench::new().says(&allow, changes).says(&rewrite, changes), 1),
        (Bench::new().says(&rewrite, changes).says(&allow, changes), 0),
    ] {
        let bench = Bench { rules: rules(), ..bench };
        assert_eq!(bench.say().await.0, Outcome::Ok);
        assert_eq!(bench.asked.0.lock().unwrap().len(), asked, "{:?}", bench.verdicts());
        let by = if asked == 0 {
            json!({"hook": "sh"})
        } else {
            json!({"rule": "permissions.yaml:1", "approver": "the test"})
        };
        assert_eq!(bench.audit.0.lock().unwrap()[0]["by"], by);
    }
}

#[tokio::test]
async fn a_hook_after_the_call_sees_and_changes_its_result() {
    let bench = Bench::new();
    let input = bench.path("input");
    let answer = json!({"hookSpecificOutput": {
        "hookEventName": "PostToolUse", "updatedMCPToolOutput": "quietly", "additionalContext": "it was loud",
    }});
    let body = format!("cat > {}\ncat <<'END'\n{answer}\nEND", input.display());
    let bench = bench.hook(Event::PostToolUse, &body, |hook| hook.changes(true));
    assert_eq!(bench.say().await, (Outcome::Ok, "quietly\nit was loud".to_owned()));
    assert_eq!(bench.verdicts(), ["replace"]);
    let input: Value = serde_json::from_slice(&fs::read(input).unwrap()).unwrap();
    assert_eq!(input["tool_response"]["content"], json!([{"type": "text", "text": "hello"}]));
    assert!(input["duration_ms"].is_u64() && input.get("error").is_none());
}

#[tokio::test]
async fn a_result_that_cannot_be_looked_at_is_withheld_and_the_call_stays_executed() {
    for (body, told) in [
        ("exit 1", "failed (it ended with exit status: 1)"),
        ("echo junk", "failed (its output is no answer of a hook"),
        ("echo 'there is a name in it' >&2; exit 2", "says: there is a name in it"),
        (r#"echo '{"decision": "block", "reason": "private"}'"#, "says: private"),
    ] {
        let bench = Bench::new().hook(Event::PostToolUse, body, as_is);
        let completed = bench.call("desk/say", json!({"text": "hello"})).await;
        let text = completed.result.to_text();
        assert_eq!(completed.outcome, Outcome::Ok, "it has been executed");
        assert!(completed.result.is_error() && !text.contains("hello"), "{text}");
        assert!(text.contains(told) && text.contains("do not call it again"), "{text}");
        let records = bench.audit.0.lock().unwrap();
        assert_eq!(records.len(), 2);
        assert_eq!(records[1]["outcome"], "ok");
    }
}

#[tokio::test]
async fn a_result_that_a_failing_hook_lets_pass_is_told_and_the_failure_recorded() {
    for (body, why) in [("exit 1", "it ended with exit status: 1"), ("echo junk", "no answer of a hook")] {
        let bench = Bench::new()
            .hook(Event::PostToolUse, body, |hook| hook.on_failure(OnFailure::Allow).changes(true));
        assert_eq!(bench.say().await, (Outcome::Ok, "hello".to_owned()));
        assert_eq!(bench.verdicts(), ["failed"]);
        assert!(bench.reason().contains(why), "{}", bench.reason());
    }
}

/// What oversteps has not failed by mischance.
#[tokio::test]
async fn no_setting_lets_a_hook_pass_that_changes_what_it_may_not() {
    let rewrite = before(json!({"updatedInput": {"text": "quietly"}}));
    let bench = Bench::new().says(&rewrite, |hook| hook.on_failure(OnFailure::Allow));
    assert_eq!(bench.say().await.0, Outcome::Denied);
    assert_eq!(bench.verdicts(), ["failed"]);
}

#[tokio::test]
async fn failures_have_an_event_of_their_own() {
    let bench = Bench::new();
    let input = bench.path("input");
    let body = format!("cat > {}", input.display());
    let bench = bench.hook(Event::PostToolUse, "exit 1", as_is).hook(Event::PostToolUseFailure, &body, as_is);
    let completed = bench.call("desk/fail", json!({})).await;
    assert_eq!(completed.outcome, Outcome::ToolError);
    assert_eq!(completed.result.to_text(), "the drawer is locked");
    let input: Value = serde_json::from_slice(&fs::read(input).unwrap()).unwrap();
    assert_eq!(input["hook_event_name"], "PostToolUseFailure");
    assert_eq!(input["error"], "the drawer is locked");
}

#[tokio::test]
async fn a_matcher_says_whom_a_hook_looks_at() {
    for (matcher, looks) in [
        (Matcher::all(), true),
        (Matcher::glob("desk/*").unwrap(), true),
        (Matcher::glob("*/say").unwrap(), true),
        (Matcher::glob("desk").unwrap(), false),
        (Matcher::glob("desk__*").unwrap(), false),
        (Matcher::glob("desk__*").unwrap().by_name(), true),
        (Matcher::regex("desk/(say|shout)").unwrap(), true),
        // Anchored at both ends, also around what has alternatives.
        (Matcher::regex("esk/say").unwrap(), false),
        (Matcher::regex("desk/sax*").unwrap(), false),
        (Matcher::regex("x|sk/say").unwrap(), false),
        (Matcher::regex("desk__say").unwrap().by_name(), true),
        // A name that the tool had before.
        (Matcher::glob("desk/speak").unwrap(), true),
        (Matcher::regex("desk__speak").unwrap().by_name(), true),
    ] {
        let bench = Bench::new().hook(Event::PreToolUse, "exit 2", |hook| hook.matcher(matcher.clone()));
        let outcome = if looks { Outcome::Denied } else { Outcome::Ok };
        assert_eq!(bench.say().await.0, outcome, "{matcher:?}");
    }
    assert_eq!(
        Matcher::glob("desk/[").unwrap_err().to_string(),
        "`desk/[` is no glob: unclosed character class; missing ']'"
    );
    for wrong in ["(", "a)(b", "desk/("] {
        assert!(Matcher::regex(wrong).unwrap_err().to_string().contains("is no regular expression"));
    }
}

#[tokio::test]
async fn a_hook_that_logs_much_is_heard_to_its_end() {
    let body = "cat > /dev/null\nhead -c 300000 /dev/zero >&2 || exit 1\necho end >&2 || exit 1";
    let bench = Bench::new().hook(Event::PreToolUse, &format!("set -e\n{body}"), as_is);
    assert_eq!(bench.say().await, (Outcome::Ok, "hello".to_owned()));
}
