//! The way of a call through a host: every path leaves exactly one outcome, nothing that was refused is dispatched, and
//! what a session may not see does not exist for it.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aster_runtime::audit::{AuditSink, JsonLines, Record, Stage};
use aster_runtime::call::{Check, Outcome, Proposed};
use aster_runtime::catalogue::{Catalogue, Health, Listing};
use aster_runtime::dispatch::{DispatchError, Upstream};
use aster_runtime::gate::approval::{Approval, ApprovalRequest, Approver};
use aster_runtime::gate::hooks::{Done, Failure, Hook, OnFailure, Review, Verdict};
use aster_runtime::gate::limits::Limits;
use aster_runtime::{
    CallOptions, Filter, Host, HostBuilder, HostSession, JsonObject, Profile, ToolContext, ToolError,
    ToolResult, catalogue, mcp_server, mcp_tool,
};
use common::Scripted;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Counts what is dispatched, and waits where a test wants it to.
#[derive(Default)]
struct Desk {
    calls: AtomicUsize,
    waiting: Notify,
}

/// A desk.
#[mcp_server(name = "desk")]
impl Desk {
    /// Adds two numbers.
    #[mcp_tool(tier = Standard)]
    async fn add(&self, a: i64, b: i64) -> i64 {
        self.calls.fetch_add(1, Ordering::SeqCst);
        a + b
    }

    /// Keeps a text.
    #[mcp_tool(tier = Elevated)]
    fn keep(&self, text: String) -> Result<String, ToolError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if text == "bad" { Err(ToolError::new("it will not keep").with_code("stale")) } else { Ok(text) }
    }

    /// Burns everything.
    #[mcp_tool(tier = Restricted)]
    fn burn(&self, what: String) -> String {
        self.calls.fetch_add(1, Ordering::SeqCst);
        format!("burnt {what}")
    }

    /// Panics.
    #[mcp_tool(tier = Standard)]
    async fn panic(&self) {
        panic!("the canary sings");
    }

    /// Panics off the runtime.
    #[mcp_tool(tier = Standard)]
    fn panic_blocking(&self) {
        panic!("the canary sings");
    }

    /// Never ends.
    #[mcp_tool(tier = Standard, timeout = "50ms")]
    async fn hang(&self, ctx: &ToolContext) {
        self.waiting.notify_one();
        ctx.cancelled().await;
        std::future::pending::<()>().await;
    }

    /// Waits until it is cancelled.
    #[mcp_tool(tier = Elevated, timeout = "60m")]
    async fn wait(&self, ctx: &ToolContext) {
        self.waiting.notify_one();
        ctx.cancelled().await;
        std::future::pending::<()>().await;
    }

    /// Works until nobody waits any more.
    #[mcp_tool(tier = Standard, timeout = "60m")]
    fn work(&self, ctx: &ToolContext) {
        while !ctx.is_cancelled() {
            std::thread::yield_now();
        }
        self.waiting.notify_one();
    }

    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(&self, #[arg(url)] url: String) -> String {
        self.calls.fetch_add(1, Ordering::SeqCst);
        url
    }
}

/// An external server that answers with its arguments.
fn echo() -> Arc<Scripted> {
    let answer = |tool: &str, arguments| match tool {
        "break" => Err(DispatchError::Unavailable {
            server: "echo".into(),
            reason: "it holds hunter2hunter2".into(),
        }),
        _ => Ok(ToolResult::structured(Value::Object(arguments))),
    };
    let tools = vec![json!({"name": "say", "description": "Says it back."}), json!({"name": "break"})];
    Scripted::new("echo", answer).ready(tools)
}

#[derive(Default)]
struct Recorder {
    records: Mutex<Vec<Value>>,
    broken: bool,
}

impl Recorder {
    fn all(&self) -> Vec<Value> {
        self.records.lock().unwrap().clone()
    }

    fn outcomes(&self) -> Vec<Value> {
        self.all().into_iter().filter(|record| record["stage"] == "outcome").collect()
    }
}

impl AuditSink for Recorder {
    fn write(&self, record: &Record) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("the disk is full"));
        }
        self.records.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

struct Answer(bool);

impl Approver for Answer {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        assert_eq!(request.arguments, json!({"what": "the letters"}));
        Box::pin(async { if self.0 { Approval::once("a test") } else { Approval::denied("a test", "no") } })
    }
}

/// Changes a tool while it is asked about it.
struct Meanwhile(Arc<Scripted>, watch::Receiver<Catalogue>);

impl Approver for Meanwhile {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            let tools = vec![
                json!({"name": "say", "description": "Wipes everything.", "annotations": {"destructiveHint": true}}),
            ];
            let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
            self.0.report(listing);
            let mut changes = self.1.clone();
            changes.wait_for(|catalogue| catalogue.tools().len() == 1).await.unwrap();
            Approval::once("a test")
        })
    }
}

struct Panics;

impl Approver for Panics {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        panic!("no terminal");
    }
}

struct Silent;

impl Approver for Silent {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(std::future::pending())
    }
}

struct Judge(fn(&Proposed) -> Verdict);

impl Hook for Judge {
    fn changes(&self) -> bool {
        true
    }

    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        Box::pin(async { Ok((self.0)(call)) })
    }
}

/// Panics, before and after, and lets the call go on.
struct Careless;

impl Hook for Careless {
    fn on_failure(&self) -> OnFailure {
        OnFailure::Allow
    }

    fn before<'a>(&'a self, _: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        panic!("before")
    }

    fn after<'a>(&'a self, _: Done<'a>) -> BoxFuture<'a, Result<Review, Failure>> {
        panic!("after")
    }
}

struct Bench {
    session: HostSession,
    host: Host,
    audit: Arc<Recorder>,
}

async fn bench_with(profile: Profile, more: impl FnOnce(HostBuilder) -> HostBuilder) -> Bench {
    let audit = Arc::new(Recorder::default());
    let builder = Host::builder()
        .catalogue(catalogue![Desk::SERVER])
        .with_server(Desk::default())
        .with_upstream(echo())
        .secrets(["hunter2hunter2"])
        .audit(Arc::clone(&audit) as Arc<dyn AuditSink>);
    let host = more(builder).build().await.unwrap();
    Bench { session: host.session(profile).unwrap(), host, audit }
}

async fn bench() -> Bench {
    bench_with(Profile::new("tester").project("house"), |builder| builder).await
}

fn execute(name: &str, arguments: Value) -> Value {
    json!({"action": "execute", "name": name, "arguments": arguments})
}

#[tokio::test]
async fn calls_of_each_tier_leave_their_records() {
    let Bench { session, audit, .. } = bench().await;
    assert_eq!(session.call(&execute("desk/add", json!({"a": 2, "b": 3}))).await.to_text(), "5");
    let told = session.call(&execute("desk/keep", json!({"text": "x hunter2hunter2"}))).await.to_text();
    assert!(told.contains("`/text` (configured-secret)"), "{told}");
    assert_eq!(session.call(&execute("desk/keep", json!({"text": "x"}))).await.to_text(), "x");
    let [intent, add, denied, _, keep] = &audit.all()[..] else { panic!("{:?}", audit.all()) };
    assert_eq!(
        (&intent["stage"], &intent["decision"]),
        (&json!("intent"), &json!({"admitted": "tier standard"}))
    );
    assert_eq!(
        (&add["outcome"], &add["tool"], &add["project"]),
        (&json!("ok"), &json!("desk/add"), &json!("house"))
    );
    assert!(
        add.get("arguments").is_none() && add.get("result").is_none() && add["arguments_digest"].is_string()
    );
    assert_eq!(intent["call_id"], add["call_id"]);
    assert_eq!(denied["arguments"], json!({"text": "x [redacted]"}));
    assert_eq!(denied["decision"], json!({"denied": "secrets"}));
    assert_eq!(keep["arguments"], json!({"text": "x"}));
    assert_eq!(keep["result"]["content"][0]["text"], "x");
}

#[tokio::test]
async fn every_way_to_end_has_its_outcome() {
    let Bench { session, audit, .. } = bench().await;
    for (name, arguments, outcome, told) in [
        ("desk/keep", json!({"text": "bad"}), "tool_error", "it will not keep"),
        ("desk/panic", json!({}), "panicked", "the tool panicked; the server goes on"),
        ("desk/panic_blocking", json!({}), "panicked", "the tool panicked; the server goes on"),
        ("desk/hang", json!({}), "timed_out", "took longer than its limit"),
        ("echo/say", json!({"a": 1}), "ok", "{\"a\":1}"),
        ("echo/break", json!({}), "failed", "it holds [redacted]"),
        ("desk/burn", json!({"what": "x"}), "denied", "needs a human's approval"),
        ("desk/add", json!({"a": "x"}), "denied", "do not fit the schema"),
        ("desk/add", json!([]), "denied", "`arguments` is an array"),
        ("add", json!({}), "denied", "did you mean `desk/add`?"),
        ("desk/fetch", json!({"url": "http://169.254.169.254/latest"}), "denied", "argument `url`: "),
        ("desk/fetch", json!({"url": "https://example.com/"}), "ok", "https://example.com/"),
    ] {
        let before = audit.outcomes().len();
        let result = session.call(&execute(name, arguments)).await;
        assert!(result.to_text().contains(told), "{name}: {}", result.to_text());
        assert_eq!(result.is_error(), outcome != "ok", "{name}");
        let outcomes = audit.outcomes();
        assert_eq!(outcomes.len(), before + 1, "{name}");
        assert_eq!(outcomes[before]["outcome"], outcome, "{name}: {}", outcomes[before]);
    }
    let log = serde_json::to_string(&audit.all()).unwrap();
    assert!(!log.contains("hunter2") && !log.contains("canary"), "{log}");
    // The server goes on after all that.
    assert_eq!(session.call(&execute("desk/add", json!({"a": 1, "b": 1}))).await.to_text(), "2");
}

#[tokio::test]
async fn restricted_calls_ask() {
    let burn = execute("desk/burn", json!({"what": "the letters"}));
    for (answer, outcome, told) in [(true, "ok", "burnt the letters"), (false, "denied", "no")] {
        let bench = bench_with(Profile::new("t"), |builder| builder.approver(Arc::new(Answer(answer)))).await;
        assert_eq!(bench.session.call(&burn).await.to_text(), told);
        assert_eq!(bench.audit.outcomes()[0]["outcome"], outcome);
        if answer {
            assert_eq!(bench.audit.outcomes()[0]["decision"], json!({"admitted": "a test"}));
        }
    }
    let bench = bench_with(Profile::new("t"), |builder| {
        builder.approver(Arc::new(Silent)).approval_timeout(Duration::from_millis(10))
    })
    .await;
    assert!(bench.session.call(&burn).await.to_text().contains("nobody approved"));
    assert_eq!(bench.audit.outcomes()[0]["decision"], json!({"denied": "approval"}));
}

#[tokio::test]
async fn an_approver_that_panics_denies() {
    let bench = bench_with(Profile::new("t"), |builder| builder.approver(Arc::new(Panics))).await;
    let told = bench.session.call(&execute("desk/burn", json!({"what": "x"}))).await;
    assert_eq!(told.to_text(), "nobody could be asked; nothing was called");
    assert_eq!(bench.audit.outcomes()[0]["decision"], json!({"denied": "approval"}));
}

#[tokio::test]
async fn a_tool_that_changes_while_a_human_decides_is_not_called() {
    let echo = echo();
    let listing = Listing {
        tools: vec![
            json!({"name": "say", "description": "Says it back.", "annotations": {"destructiveHint": true}}),
            json!({"name": "other"}),
        ],
        ..Listing::without_tools(Health::Ready)
    };
    echo.report(listing);
    let (ask, changes) = tokio::sync::oneshot::channel();
    let approver = Arc::new(Late(tokio::sync::Mutex::new(Some(changes))));
    let host = Host::builder()
        .with_upstream(Arc::clone(&echo) as Arc<dyn Upstream>)
        .approver(approver)
        .build()
        .await
        .unwrap();
    assert!(ask.send(Meanwhile(echo, host.changes())).is_ok());
    let session = host.session(Profile::new("t")).unwrap();
    let completed = session.execute("echo/say", JsonObject::new(), CallOptions::default()).await;
    assert_eq!((completed.outcome, completed.denied), (Outcome::Denied, Some(Check::Changed)));
    assert!(completed.result.to_text().contains("changed while the call was decided"));
}

/// An approver that is made after the host that asks it.
struct Late(tokio::sync::Mutex<Option<tokio::sync::oneshot::Receiver<Meanwhile>>>);

impl Approver for Late {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            let approver = self.0.lock().await.take().unwrap().await.unwrap();
            approver.ask(request).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_function_learns_that_nobody_waits() {
    let audit = Arc::new(Recorder::default());
    let host = Host::builder()
        .with_server(Desk::default())
        .audit(Arc::clone(&audit) as Arc<dyn AuditSink>)
        .call_timeout(Duration::MAX)
        .build()
        .await
        .unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let mut call = Box::pin(session.execute("desk/work", JsonObject::new(), CallOptions::default()));
    while audit.all().is_empty() {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
    drop(call);
    // The runtime cannot end while the function's thread runs: that this test does is the proof.
    assert_eq!(audit.outcomes()[0]["outcome"], "cancelled");
    assert_eq!(session.call(&execute("desk/add", json!({"a": 1, "b": 1}))).await.to_text(), "2");
}

#[tokio::test]
async fn an_execute_that_cannot_be_read_is_a_refused_call() {
    let Bench { session, audit, .. } = bench().await;
    for arguments in [json!({"action": "execute"}), json!({"action": "Execute", "name": 5})] {
        assert!(session.call(&arguments).await.is_error());
    }
    let outcomes = audit.outcomes();
    assert_eq!(outcomes.len(), 2);
    assert!(outcomes.iter().all(|outcome| outcome["decision"] == json!({"denied": "request"})));
}

#[tokio::test]
async fn a_cancelled_and_a_dropped_call_are_recorded_once() {
    let Bench { session, audit, .. } = bench().await;
    let stop = CancellationToken::new();
    let options = CallOptions { cancellation: stop.clone(), ..CallOptions::default() };
    // Cancelled as soon as the intent stands in the audit, so while the tool runs.
    let call = session.execute("desk/wait", JsonObject::new(), options);
    let cancel = async {
        while audit.all().is_empty() {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    let (completed, ()) = tokio::join!(call, cancel);
    assert_eq!(completed.outcome, Outcome::Cancelled);

    let mut call = Box::pin(session.execute("desk/wait", JsonObject::new(), CallOptions::default()));
    while audit.all().len() < 3 {
        assert!(futures_util::poll!(&mut call).is_pending());
        tokio::task::yield_now().await;
    }
    drop(call);
    let outcomes: Vec<Value> = audit.outcomes().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled", "cancelled"]);
}

/// Never comes to an end with a result.
struct Ponders(Arc<Notify>);

impl Hook for Ponders {
    fn after<'a>(&'a self, _: Done<'a>) -> BoxFuture<'a, Result<Review, Failure>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn what_is_cancelled_when_it_has_run_has_run() {
    let (desk, audit, pondering) = (Desk::default(), Arc::new(Recorder::default()), Arc::new(Notify::new()));
    let hook = Arc::new(Ponders(Arc::clone(&pondering)));
    let host = Host::builder().with_server(desk).audit(audit.clone()).hook(hook).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let stop = CancellationToken::new();
    let options = CallOptions { cancellation: stop.clone(), ..CallOptions::default() };
    let arguments = json!({"a": 40, "b": 2}).as_object().unwrap().clone();
    let cancel = async {
        pondering.notified().await;
        stop.cancel();
    };
    let (completed, ()) = tokio::join!(session.execute("desk/add", arguments, options), cancel);
    assert_eq!(completed.outcome, Outcome::Ok);
    let told = completed.result.to_text();
    assert!(told.contains("was cancelled when it had run") && !told.contains("42"), "{told}");
    assert_eq!(audit.outcomes()[0]["outcome"], "ok");
}

#[tokio::test]
async fn a_call_that_is_dropped_when_it_has_run_has_run() {
    let (audit, pondering) = (Arc::new(Recorder::default()), Arc::new(Notify::new()));
    let hook = Arc::new(Ponders(Arc::clone(&pondering)));
    let host =
        Host::builder().with_server(Desk::default()).audit(audit.clone()).hook(hook).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let arguments = json!({"a": 40, "b": 2}).as_object().unwrap().clone();
    tokio::select! {
        _ = session.execute("desk/add", arguments, CallOptions::default()) => panic!("the hook ponders"),
        () = pondering.notified() => {}
    }
    let [outcome] = &audit.outcomes()[..] else { panic!("{:?}", audit.all()) };
    assert_eq!((&outcome["outcome"], outcome.get("error_kind")), (&json!("ok"), None));
    assert!(outcome["error"].as_str().unwrap().contains("when it had run"), "{outcome}");
}

/// Lets a server list something else once the intent of a call of it stands in the audit.
struct Replaces(Arc<Scripted>, AtomicBool);

impl AuditSink for Replaces {
    fn write(&self, record: &Record) -> io::Result<()> {
        if record.stage == Stage::Intent && self.1.load(Ordering::SeqCst) {
            self.0.list(vec![json!({"name": "another"})]);
        }
        Ok(())
    }
}

#[tokio::test]
async fn what_a_server_no_longer_lists_is_not_asked_for() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let answer = move |_: &str, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(ToolResult::from_value(json!({"messages": [], "contents": []})))
    };
    let peer = Arc::new(Scripted::new("peer", answer));
    peer.report(Listing {
        tools: vec![json!({"name": "write"})],
        prompts: vec![json!({"name": "greet"})],
        resources: vec![json!({"name": "note", "uri": "note:1"})],
        ..Listing::without_tools(Health::Ready)
    });
    let listed = peer.listing().borrow().clone();
    let sink = Arc::new(Replaces(Arc::clone(&peer), AtomicBool::new(false)));
    let builder = Host::builder().with_upstream(peer.clone()).audit(sink.clone());
    let host = builder.build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let ask = async |kind: &str| match kind {
        "tool" => session.execute("peer/write", JsonObject::new(), CallOptions::default()).await,
        "prompt" => session.get_prompt("peer/greet", JsonObject::new(), CallOptions::default()).await,
        _ => session.read_resource("note:1", CallOptions::default()).await,
    };
    let kinds = ["tool", "prompt", "resource"];
    for kind in kinds {
        assert_eq!(ask(kind).await.outcome, Outcome::Ok, "{kind}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), kinds.len());
    sink.1.store(true, Ordering::SeqCst);
    let has = |name: &'static str| {
        move |catalogue: &Catalogue| catalogue.tools().iter().any(|tool| tool.id().tool() == name)
    };
    for kind in kinds {
        peer.report(Arc::clone(&listed));
        let mut changes = host.changes();
        changes.wait_for(has("write")).await.unwrap();
        let refused = ask(kind).await;
        assert_eq!(refused.outcome, Outcome::Failed, "{kind}: {}", refused.result.to_text());
        assert!(refused.result.to_text().contains("changed after the call was decided"));
        changes.wait_for(has("another")).await.unwrap();
    }
    assert_eq!(asked.load(Ordering::SeqCst), kinds.len());
}

#[tokio::test]
async fn a_result_that_is_too_large_is_withheld_and_the_call_stays_executed() {
    let (audit, many) = (Arc::new(Recorder::default()), "x".repeat(1 << 10));
    let host = Host::builder()
        .with_server(Desk::default())
        .audit(Arc::clone(&audit) as _)
        .limits(Limits::default().max_result(many.len()))
        .build()
        .await
        .unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let keep = async |text: &str| {
        let arguments = json!({ "text": text }).as_object().unwrap().clone();
        session.execute("desk/keep", arguments, CallOptions::default()).await
    };
    assert_eq!(keep(&many[..900]).await.result.to_text(), many[..900]);
    let withheld = keep(&many).await;
    assert_eq!(withheld.outcome, Outcome::Ok);
    let told = withheld.result.to_text();
    assert!(withheld.result.is_error() && !told.contains("xxx"), "{told}");
    assert!(told.starts_with("`desk/keep` ran, and what it answered is withheld: it has 1"), "{told}");
    let outcome = audit.outcomes().pop().unwrap();
    assert_eq!(outcome["outcome"], "ok");
    assert!(!outcome["result"].to_string().contains("xxx"), "{outcome}");
}

#[tokio::test]
async fn an_audit_that_cannot_be_written_stops_all_but_standard_calls() {
    let desk = Desk::default();
    let sink = Arc::new(Recorder { broken: true, ..Recorder::default() });
    let host = Host::builder().with_server(desk).audit(sink).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    assert_eq!(session.call(&execute("desk/add", json!({"a": 1, "b": 1}))).await.to_text(), "2");
    let completed = session
        .execute("desk/keep", json!({"text": "x"}).as_object().unwrap().clone(), CallOptions::default())
        .await;
    assert_eq!((completed.outcome, completed.denied), (Outcome::Denied, Some(Check::Audit)));
}

#[tokio::test]
async fn hooks_deny_rewrite_and_fail_closed() {
    for (hook, told) in [
        (Judge(|_| Verdict::go_on()), "5"),
        (Judge(|_| Verdict::deny("not today")), "the hook `hook` denied the call: not today"),
        (Judge(|_| Verdict::rewrite(json!({"a": 40, "b": 2}).as_object().unwrap().clone())), "42"),
        (
            Judge(|_| panic!("hook")),
            "the hook `hook` failed (it panicked), and without its word nothing is called; the user has to mend it",
        ),
    ] {
        let bench = bench_with(Profile::new("t"), |builder| builder.hook(Arc::new(hook))).await;
        assert_eq!(bench.session.call(&execute("desk/add", json!({"a": 2, "b": 3}))).await.to_text(), told);
    }
    // What a hook writes is checked like what a model writes.
    let wrong = Judge(|_| Verdict::rewrite(json!({"a": "x"}).as_object().unwrap().clone()));
    let bench = bench_with(Profile::new("t"), |builder| builder.hook(Arc::new(wrong))).await;
    assert!(
        bench
            .session
            .call(&execute("desk/add", json!({"a": 2, "b": 3})))
            .await
            .to_text()
            .contains("do not fit")
    );
}

#[tokio::test]
async fn a_hook_whose_failure_lets_the_call_go_on_is_recorded_as_failed() {
    let Bench { session, audit, .. } =
        bench_with(Profile::new("t"), |builder| builder.hook(Arc::new(Careless))).await;
    assert_eq!(session.call(&execute("desk/add", json!({"a": 2, "b": 3}))).await.to_text(), "5");
    let outcome = &audit.outcomes()[0];
    assert_eq!(
        (&outcome["outcome"], &outcome["decision"]["admitted"]),
        (&json!("ok"), &json!("tier standard"))
    );
    let said: Vec<_> = outcome["hooks"].as_array().unwrap().iter().collect();
    for (said, event) in said.iter().zip(["PreToolUse", "PostToolUse"]) {
        let found = [&said["event"], &said["verdict"], &said["reason"]];
        assert_eq!(json!(found), json!([event, "failed", "it panicked"]));
    }
    assert_eq!(said.len(), 2);
}

#[tokio::test]
async fn require_describe_wants_a_look_first() {
    let Bench { session, audit, .. } =
        bench_with(Profile::new("t").require_describe(true), |builder| builder).await;
    let add = execute("desk/add", json!({"a": 2, "b": 3}));
    assert!(session.call(&add).await.to_text().contains(r#"{"action": "describe", "name": "desk/add"}"#));
    assert_eq!(audit.outcomes()[0]["decision"], json!({"denied": "describe"}));
    session.call(&json!({"action": "describe", "name": "desk/add"})).await;
    assert_eq!(session.call(&add).await.to_text(), "5");
}

#[tokio::test]
async fn a_new_listing_is_a_new_catalogue() {
    let echo = echo();
    let host = Host::builder().with_upstream(Arc::clone(&echo) as Arc<dyn Upstream>).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let mut changes = host.changes();
    assert_eq!(session.view().tools().len(), 2);
    let listing = Listing { tools: vec![json!({"name": "fresh"})], ..Listing::without_tools(Health::Ready) };
    echo.report(listing);
    changes.wait_for(|catalogue| catalogue.tools().len() == 1).await.unwrap();
    assert_eq!(session.view().tools()[0].id().as_str(), "echo/fresh");
    assert!(
        session.call(&execute("echo/say", json!({}))).await.to_text().contains("no tool `echo/say` is known")
    );
}

#[tokio::test]
async fn a_call_waits_for_its_server_to_start() {
    let echo = echo();
    let ready = echo.listing().borrow().clone();
    echo.report(Listing::without_tools(Health::Starting));
    let host = Host::builder().with_upstream(Arc::clone(&echo) as Arc<dyn Upstream>).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let say = execute("echo/say", json!({"a": 1}));
    let mut call = Box::pin(session.call(&say));
    assert!(futures_util::poll!(&mut call).is_pending());
    // What the session cannot see is not waited for.
    let other = host.session(Profile::new("t").deny(["echo/*"])).unwrap();
    assert!(
        other.call(&execute("echo/say", json!({}))).await.to_text().contains("no tool `echo/say` is known")
    );
    echo.report(ready);
    assert_eq!(call.await.to_text(), "{\"a\":1}");
}

#[tokio::test]
async fn a_server_without_state_is_left_out_with_the_reason() {
    let host = Host::builder().catalogue(catalogue![Desk::SERVER]).build().await.unwrap();
    assert!(host.catalogue().tools().is_empty());
    let catalogue = host.catalogue();
    let Health::Down(reason) = &catalogue.servers()[0].health else { panic!("down") };
    assert!(reason.contains("HostBuilder::with_server"), "{reason}");
}

#[tokio::test]
async fn the_default_file_holds_one_line_a_record_and_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/audit.jsonl");
    let sink = Arc::new(JsonLines::open(&path).unwrap());
    let host = Host::builder().with_server(Desk::default()).audit(sink).build().await.unwrap();
    let session = host.session(Profile::new("a\nb")).unwrap();
    session.call(&execute("desk/add", json!({"a": 1, "b": 1}))).await;
    session.call(&execute("no\nsuch", json!({}))).await;
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Ids that a session may be hidden from, and some that exist nowhere.
const NAMES: [&str; 8] =
    ["desk/add", "desk/keep", "desk/burn", "echo/say", "nowhere/x", "desk/none", "add", "echo/say/"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is asked, of whatever scope: one outcome per execute, a denied call reaches no tool, and a hidden name
    /// answers byte for byte like one that does not exist.
    #[test]
    fn the_gate_holds(
        steps in proptest::collection::vec((0_usize..NAMES.len(), prop_oneof![
            Just(json!({"a": 1, "b": 2})), Just(json!({"text": "t"})), Just(json!({"what": "w"})), Just(json!(3)), Just(json!({})),
        ]), 1..12),
        groups in proptest::option::of(proptest::sample::subsequence(vec!["desk", "echo"], 0..=2)),
        deny in proptest::sample::subsequence(vec!["desk/k*", "echo/*", "*/add"], 0..=3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut profile = Profile::new("t");
            if let Some(groups) = &groups {
                profile = profile.groups(groups.iter().copied());
            }
            let filter = Filter::new(&[], &deny).unwrap();
            let Bench { session, host, audit } = bench_with(profile, |builder| builder.filter(filter)).await;
            for (step, (name, arguments)) in steps.iter().enumerate() {
                let name = NAMES[*name];
                let result = session.call(&execute(name, arguments.clone())).await;
                let outcomes = audit.outcomes();
                assert_eq!(outcomes.len(), step + 1);
                let outcome = &outcomes[step];
                let intents = audit.all().len() - outcomes.len();
                let dispatched = outcomes.iter().filter(|outcome| outcome["outcome"] != "denied").count();
                assert_eq!(intents, dispatched);

                let seen = session.view().tools().iter().any(|tool| tool.id().as_str() == name);
                let exists = host.catalogue().tools().iter().any(|tool| tool.id().as_str() == name);
                if exists && !seen {
                    // On a host that never had the tool, the very same bytes.
                    let without = Host::builder().filter(Filter::new(&["none/none"], &[]).unwrap()).build().await.unwrap();
                    let stranger = without.session(Profile::new("t")).unwrap();
                    if session.view().tools().is_empty() {
                        assert_eq!(result, stranger.call(&execute(name, arguments.clone())).await);
                    }
                    assert_eq!(outcome["decision"], json!({"denied": "scope"}));
                    assert!(outcome.get("tool").is_none());
                    assert!(!result.to_text().contains(&format!("did you mean `{name}`")));
                }
            }
        });
    }
}
