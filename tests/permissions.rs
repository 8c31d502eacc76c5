//! Rules through a whole host: what they hide does not exist, what they deny is not dispatched, what they ask about is
//! asked, and a change holds for the next call. And that the page about them is right.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aster_runtime::audit::AuditSink;
use aster_runtime::call::{Check, Outcome, Proposed};
use aster_runtime::config::rules::RuleFiles;
use aster_runtime::gate::approval::{Approval, ApprovalRequest, Approver};
use aster_runtime::gate::hooks::{Failure, Hook, Verdict};
use aster_runtime::gate::rules::{Action, Landscape, Rule, Rules, Test, lint};
use aster_runtime::testing::{Answer, Recording, TestHost};
use aster_runtime::{
    CallOptions, Filter, Host, HostBuilder, JsonObject, Profile, Session, Tier, ToolId, ToolResult,
    mcp_server, mcp_tool,
};
use common::Scripted;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The blocks of YAML in a page.
fn blocks(page: &str) -> Vec<&str> {
    page.split("\n```yaml\n").skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

#[test]
fn the_examples_of_the_page_are_rules_without_a_fault() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/permissions.md")).unwrap();
    let blocks = blocks(&page);
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("permissions.yaml");
        fs::write(&file, block).unwrap();
        let read = RuleFiles::of_user(file).read();
        assert_eq!(read.problems, [], "{block}");
        assert_eq!(lint(&read.rules, &Landscape::default()), [], "{block}");
        assert!(!read.rules.rules().is_empty());
    }
}

struct Desk {
    calls: Arc<AtomicUsize>,
}

/// A desk.
#[mcp_server(name = "desk")]
impl Desk {
    /// Adds two numbers.
    #[mcp_tool(tier = Standard)]
    fn add(&self, a: i64, b: i64) -> i64 {
        self.calls.fetch_add(1, Ordering::SeqCst);
        a + b
    }

    /// Keeps a text.
    #[mcp_tool(tier = Elevated, alias = "store")]
    async fn keep(&self, text: String) -> String {
        self.calls.fetch_add(1, Ordering::SeqCst);
        text
    }

    /// Burns everything.
    #[mcp_tool(tier = Restricted)]
    fn burn(&self, text: String) -> String {
        self.calls.fetch_add(1, Ordering::SeqCst);
        text
    }

    /// Says who asks, by the way of a plain function.
    #[mcp_tool(tier = Standard)]
    fn who(&self) -> String {
        Session::current().map_or_else(String::new, |session| session.agent().to_owned())
    }

    /// Says who asks, by the way of a task.
    #[mcp_tool(tier = Standard)]
    async fn who_async(&self) -> String {
        tokio::task::yield_now().await;
        Session::current().map_or_else(String::new, |session| session.agent().to_owned())
    }

    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(&self, #[arg(url)] url: String) -> String {
        url
    }
}

/// An external server with one tool that destroys and one that does not.
fn files(calls: &Arc<AtomicUsize>) -> Arc<Scripted> {
    let calls = Arc::clone(calls);
    let answer = move |tool: &str, _| {
        calls.fetch_add(1, Ordering::SeqCst);
        Ok(ToolResult::text(tool))
    };
    Scripted::new("files", answer).ready(vec![
        json!({"name": "read", "description": "Reads a file."}),
        json!({"name": "wipe", "description": "Wipes a file.", "annotations": {"destructiveHint": true}}),
    ])
}

fn builder(calls: &Arc<AtomicUsize>) -> HostBuilder {
    Host::builder().with_server(Desk { calls: Arc::clone(calls) }).with_upstream(files(calls))
}

async fn desk(
    rules: impl IntoIterator<Item = Rule>,
    profile: Profile,
    answers: impl IntoIterator<Item = Answer>,
) -> (TestHost, Arc<AtomicUsize>) {
    let calls = Arc::default();
    let builder = builder(&calls).rules(Rules::new(rules));
    (TestHost::start(builder, profile, answers).await, calls)
}

fn rule(action: Action) -> Rule {
    Rule::new(action, "rules:7")
}

#[tokio::test]
async fn a_rule_denies_one_call_and_says_why_to_the_model_and_where_to_the_record() {
    let evil = Test::glob(["*evil*"]).unwrap();
    let deny =
        rule(Action::Deny).reason("no evil").tools(["desk/keep"]).unwrap().argument("/text", [evil]).unwrap();
    let (host, calls) = desk([deny], Profile::new("t"), []).await;
    assert_eq!(host.call("desk/keep", json!({"text": "good"})).await.outcome, Outcome::Ok);
    let denied = host.call("desk/keep", json!({"text": "an evil text"})).await;
    assert_eq!((denied.outcome, denied.denied), (Outcome::Denied, Some(Check::Rule)));
    assert_eq!(
        denied.result.to_text(),
        "a rule denies this call of `desk/keep`: no evil. Nothing was called"
    );
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let record = serde_json::to_value(host.audit().records().last().unwrap()).unwrap();
    assert_eq!(record["decision"], json!({"denied": "rule"}));
    assert_eq!(record["by"], json!({"rule": "rules:7"}));
    assert!(!record["error"].as_str().unwrap().contains("rules:7"), "{record}");
}

#[tokio::test]
async fn an_argument_can_raise_one_call() {
    let large = Test::range(Some(100.into()), None).unwrap();
    let ask = || {
        rule(Action::Ask).reason("much").tools(["desk/add"]).unwrap().argument("/a", [large.clone()]).unwrap()
    };
    let (host, calls) = desk([ask()], Profile::new("t"), [Answer::Approve, Answer::Deny("no")]).await;
    assert_eq!(host.call("desk/add", json!({"a": 99, "b": 1})).await.outcome, Outcome::Ok);
    assert!(host.script().asked().is_empty());
    assert_eq!(host.call("desk/add", json!({"a": 100, "b": 1})).await.result.to_text(), "101");
    let denied = host.call("desk/add", json!({"a": 100, "b": 1})).await;
    assert_eq!((denied.denied, calls.load(Ordering::SeqCst)), (Some(Check::Approval), 2));
    assert_eq!(host.script().asked()[0].why, "a rule asks: much");
    // What was raised is recorded like what is Restricted.
    let records: Vec<Value> =
        host.audit().records().iter().map(|record| serde_json::to_value(record).unwrap()).collect();
    assert_eq!((&records[1]["tier"], records[1].get("arguments")), (&json!("standard"), None));
    assert_eq!(
        (&records[3]["tier"], &records[3]["arguments"]),
        (&json!("restricted"), &json!({"a": 100, "b": 1}))
    );
    let by = json!({"rule": "rules:7", "approver": "a test"});
    assert_eq!(records[3]["decision"], json!({"admitted": "a test, asked by the rule at rules:7"}));
    let denied = &records[4];
    assert_eq!(denied["decision"], json!({"denied": "approval"}));
    assert_eq!((&records[3]["by"], &denied["by"], &denied["error"]), (&by, &by, &json!("no")));
    assert_eq!((&denied["tier"], &denied["arguments"]), (&json!("restricted"), &json!({"a": 100, "b": 1})));
}

#[tokio::test]
async fn allow_lifts_what_an_annotation_caused_and_nothing_else() {
    let allow = rule(Action::Allow).tools(["*"]).unwrap();
    let (host, calls) = desk([allow.clone()], Profile::new("t"), []).await;
    let wiped = host.call("files/wipe", json!({})).await;
    assert_eq!((wiped.outcome, calls.load(Ordering::SeqCst)), (Outcome::Ok, 1));
    let record = serde_json::to_value(host.audit().records().last().unwrap()).unwrap();
    assert_eq!(record["decision"], json!({"admitted": "the rule at rules:7"}));
    // Not the tier that its author declared, not egress, not scope.
    assert_eq!(host.call("desk/burn", json!({"text": "x"})).await.denied, Some(Check::Approval));
    assert_eq!(
        host.call("desk/fetch", json!({"url": "http://127.0.0.1/"})).await.denied,
        Some(Check::Egress)
    );
    let (host, _) = desk([allow], Profile::new("t").deny(["files/*"]), []).await;
    assert_eq!(host.call("files/wipe", json!({})).await.denied, Some(Check::Scope));
}

#[tokio::test]
async fn changed_rules_hold_for_the_next_call_and_are_news_to_those_who_follow() {
    let calls = Arc::default();
    let (rules, receiver) = watch::channel(Arc::new(Rules::default()));
    let host = TestHost::start(builder(&calls).follow_rules(receiver), Profile::new("t"), []).await;
    let mut changes = host.host().changes();
    changes.borrow_and_update();
    assert_eq!(host.session().view().tools_of("files").len(), 2);
    assert_eq!(host.call("files/read", json!({})).await.outcome, Outcome::Ok);
    rules.send_replace(Arc::new(Rules::new([rule(Action::Deny).servers(["files"]).unwrap()])));
    assert_eq!(host.call("files/read", json!({})).await.denied, Some(Check::Scope));
    assert!(host.session().view().servers().iter().all(|server| server.name != "files"));
    changes.changed().await.unwrap();
    rules.send_replace(Arc::new(Rules::default()));
    assert_eq!(host.call("files/read", json!({})).await.outcome, Outcome::Ok);
    changes.changed().await.unwrap();
}

/// Makes the rules stricter while a call is decided.
struct Stricter(watch::Sender<Arc<Rules>>, Action);

impl Hook for Stricter {
    fn before<'a>(&'a self, _: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        let rule = rule(self.1).tools(["desk/keep"]).unwrap().argument("/text", [Test::present()]).unwrap();
        self.0.send_replace(Arc::new(Rules::new([rule])));
        Box::pin(async { Ok(Verdict::go_on()) })
    }
}

#[tokio::test]
async fn rules_that_become_stricter_meanwhile_count() {
    for (action, check) in [(Action::Deny, Check::Rule), (Action::Ask, Check::Changed)] {
        let calls = Arc::default();
        let (rules, receiver) = watch::channel(Arc::new(Rules::default()));
        let builder = builder(&calls).follow_rules(receiver).hook(Arc::new(Stricter(rules, action)));
        let host = TestHost::start(builder, Profile::new("t"), [Answer::Approve]).await;
        assert_eq!(host.call("desk/keep", json!({"text": "x"})).await.denied, Some(check));
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }
}

/// A server that is down, and what happens while it starts.
fn down(calls: &Arc<AtomicUsize>, start: impl Fn() + Send + Sync + 'static) -> Arc<Scripted> {
    let calls = Arc::clone(calls);
    let answer = move |tool: &str, _| {
        calls.fetch_add(1, Ordering::SeqCst);
        Ok(ToolResult::text(tool))
    };
    Scripted::new("down", answer).down(start).ready(vec![json!({"name": "read"})])
}

#[tokio::test]
async fn rules_that_become_stricter_while_a_server_starts_count() {
    let cases =
        [(Action::Deny, Some(Check::Rule)), (Action::Ask, Some(Check::Changed)), (Action::Allow, None)];
    for (action, denied) in cases {
        let calls = Arc::default();
        let (rules, receiver) = watch::channel(Arc::new(Rules::default()));
        let down = down(&calls, move || {
            let path = rule(action).tools(["down/read"]).unwrap().argument("/path", [Test::present()]);
            rules.send_replace(Arc::new(Rules::new([path.unwrap()])));
        });
        let builder = Host::builder().with_upstream(down).follow_rules(receiver);
        let host = TestHost::start(builder, Profile::new("t"), []).await;
        let completed = host.call("down/read", json!({"path": "x"})).await;
        assert_eq!(completed.denied, denied, "{}", completed.result.to_text());
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(denied.is_none()));
    }
}

/// Adds a rule while a human is asked about a call, and approves.
struct Adds(watch::Sender<Arc<Rules>>, fn() -> Vec<Rule>);

impl Approver for Adds {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.0.send_replace(Arc::new(Rules::new(self.1())));
        Box::pin(async { Approval::once("whoever was asked") })
    }
}

#[tokio::test]
async fn an_answer_to_one_rule_is_none_to_another() {
    fn asks(place: &'static str, reason: &str) -> Rule {
        Rule::new(Action::Ask, place).reason(reason).tools(["desk/keep"]).unwrap()
    }
    fn one() -> Vec<Rule> {
        vec![asks("rules:7", "it is kept")]
    }
    type Then = fn() -> Vec<Rule>;
    let cases: [(Then, _); 7] = [
        (one, None),
        // Lines were put in before it, and other rules beside it.
        (|| vec![asks("rules:31", "it is kept")], None),
        (|| vec![asks("rules:9", "it is kept"), asks("rules:7", "no").tools(["desk/burn"]).unwrap()], None),
        // The same words, of something else.
        (
            || vec![asks("rules:7", "it is kept").argument("/text", [Test::present()]).unwrap()],
            Some(Check::Changed),
        ),
        (|| vec![asks("rules:7", "it is kept"), asks("rules:9", "it leaves")], Some(Check::Changed)),
        (|| vec![asks("rules:7", "it leaves")], Some(Check::Changed)),
        (Vec::new, None),
    ];
    for (then, denied) in cases {
        let calls = Arc::default();
        let (rules, receiver) = watch::channel(Arc::new(Rules::new(one())));
        let audit = Arc::new(Recording::default());
        let builder = builder(&calls).follow_rules(receiver).approver(Arc::new(Adds(rules, then)));
        let builder = builder.audit(Arc::clone(&audit) as Arc<dyn AuditSink>);
        let session = builder.build().await.unwrap().session(Profile::new("t")).unwrap();
        let arguments = json!({"text": "x"}).as_object().unwrap().clone();
        let completed = session.execute("desk/keep", arguments, CallOptions::default()).await;
        assert_eq!(completed.denied, denied, "{}", completed.result.to_text());
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(denied.is_none()));
        // Also of a call that is then refused for something else.
        let record = audit.records().pop().unwrap();
        assert_eq!(record.by.approver.as_deref(), Some("whoever was asked"));
    }
}

/// Says the same of every call.
struct Says(Verdict);

impl Hook for Says {
    fn before<'a>(&'a self, _: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

#[tokio::test]
async fn a_hook_lifts_no_more_than_a_rule_and_no_rule_lifts_a_hooks_question() {
    let allows = || Verdict::allow("it is tested");
    let asks = || Verdict::ask("who knows");
    let text = || json!({"text": "x"});
    for (action, verdict, id, arguments, denied) in [
        (Some(Action::Ask), allows(), "desk/keep", text(), None),
        (None, allows(), "files/wipe", json!({}), None),
        (None, allows(), "desk/burn", text(), Some(Check::Approval)),
        (Some(Action::Deny), allows(), "desk/keep", text(), Some(Check::Rule)),
        (Some(Action::Allow), asks(), "desk/keep", text(), Some(Check::Approval)),
        (None, asks(), "desk/keep", text(), Some(Check::Approval)),
    ] {
        let calls = Arc::default();
        let rules = action.map(|action| rule(action).argument("any", [Test::present()]).unwrap());
        let builder = builder(&calls).rules(Rules::new(rules)).hook(Arc::new(Says(verdict)));
        let host = TestHost::start(builder, Profile::new("t"), []).await;
        assert_eq!(host.call(id, arguments).await.denied, denied, "{action:?} {id}");
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(denied.is_none()));
    }
}

#[tokio::test]
async fn rules_that_cannot_be_read_leave_only_what_is_standard() {
    let calls = Arc::default();
    let rules = Rules::default().unreadable("permissions.yaml:3:1: the text is not valid YAML");
    let host = TestHost::start(builder(&calls).rules(rules), Profile::new("t"), []).await;
    assert_eq!(host.call("desk/add", json!({"a": 1, "b": 1})).await.outcome, Outcome::Ok);
    for (id, arguments) in
        [("desk/keep", json!({"text": "x"})), ("desk/burn", json!({"text": "x"})), ("files/read", json!({}))]
    {
        let denied = host.call(id, arguments).await;
        assert_eq!(denied.denied, Some(Check::Rule), "{id}");
        assert!(denied.result.to_text().contains("the user has to mend them: permissions.yaml:3:1"), "{id}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn a_path_through_a_link_is_where_it_leads() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("secret")).unwrap();
    fs::create_dir_all(root.join("open")).unwrap();
    std::os::unix::fs::symlink(root.join("secret"), root.join("open/door")).unwrap();
    let file = root.join("permissions.yaml");
    fs::write(&file, format!("rules:\n  - action: deny\n    path: {}\n", root.join("secret").display()))
        .unwrap();
    let calls = Arc::default();
    let read = RuleFiles::of_user(&file).read();
    assert_eq!(read.problems, []);
    let host = TestHost::start(builder(&calls).rules(read.rules), Profile::new("t"), []).await;
    let keep = async |path: std::path::PathBuf| {
        host.call("desk/keep", json!({"text": path.to_string_lossy()})).await.denied
    };
    for path in ["secret", "secret/key", "open/../secret", "open/door", "open/door/key", "open/./door/new"] {
        assert_eq!(keep(root.join(path)).await, Some(Check::Rule), "{path}");
    }
    for path in ["open", "open/key", "secrets", "open/door/../open"] {
        assert_eq!(keep(root.join(path)).await, None, "{path}");
    }
    assert_eq!(keep("word ".repeat(1000).into()).await, None, "a long text is no path");
}

#[cfg(unix)]
#[tokio::test]
async fn a_relative_path_is_read_from_where_its_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let file = root.join("permissions.yaml");
    fs::write(&file, format!("rules:\n  - action: deny\n    path: {}\n", root.join("secret").display()))
        .unwrap();
    let calls = Arc::default();
    let builder = builder(&calls).rules(RuleFiles::of_user(&file).read().rules);
    let host = TestHost::start(builder.server_directory("files", &root), Profile::new("t"), []).await;
    let of = async |id: &str, argument: &str, path: &str| host.call(id, json!({argument: path})).await.denied;
    assert_eq!(of("files/read", "path", "secret/key").await, Some(Check::Rule));
    assert_eq!(of("files/read", "path", "open/../secret").await, Some(Check::Rule));
    assert_eq!(of("files/read", "path", "open").await, None);
    assert_eq!(of("desk/keep", "text", "secret/key").await, None, "another server runs here");
}

/// Lets a link lead elsewhere while it is asked, and approves.
#[cfg(unix)]
struct Swaps(std::path::PathBuf);

#[cfg(unix)]
impl Approver for Swaps {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        fs::remove_file(self.0.join("open/door")).unwrap();
        std::os::unix::fs::symlink(self.0.join("secret"), self.0.join("open/door")).unwrap();
        Box::pin(async { Approval::once("whoever does not know") })
    }
}

#[cfg(unix)]
#[tokio::test]
async fn where_a_path_leads_is_asked_again_after_a_human_was() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["secret", "open", "open/room"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("open/room"), root.join("open/door")).unwrap();
    let file = root.join("permissions.yaml");
    fs::write(&file, format!("rules:\n  - action: deny\n    path: {}\n", root.join("secret").display()))
        .unwrap();
    let calls = Arc::default();
    let builder = builder(&calls).rules(RuleFiles::of_user(&file).read().rules);
    let host = builder.approver(Arc::new(Swaps(root.clone()))).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    let arguments = json!({"text": root.join("open/door/key").to_string_lossy()});
    let arguments = arguments.as_object().unwrap().clone();
    let completed = session.execute("desk/burn", arguments, CallOptions::default()).await;
    assert_eq!(completed.denied, Some(Check::Rule), "{}", completed.result.to_text());
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn where_a_path_leads_is_asked_again_after_its_server_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["secret", "open"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(root.join("open"), root.join("door")).unwrap();
    let file = root.join("permissions.yaml");
    fs::write(&file, format!("rules:\n  - action: deny\n    path: {}\n", root.join("secret").display()))
        .unwrap();
    let calls = Arc::default();
    let swapped = root.clone();
    let down = down(&calls, move || {
        fs::remove_file(swapped.join("door")).unwrap();
        std::os::unix::fs::symlink(swapped.join("secret"), swapped.join("door")).unwrap();
    });
    let builder = Host::builder().with_upstream(down).rules(RuleFiles::of_user(&file).read().rules);
    let host = TestHost::start(builder, Profile::new("t"), []).await;
    let completed = host.call("down/read", json!({"path": root.join("door/key").to_string_lossy()})).await;
    assert_eq!(completed.denied, Some(Check::Rule), "{}", completed.result.to_text());
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn scope_has_three_layers() {
    let everything = [
        "desk/add",
        "desk/burn",
        "desk/fetch",
        "desk/keep",
        "desk/who",
        "desk/who_async",
        "files/read",
        "files/wipe",
    ];
    let id = |id: &str| ToolId::parse(id).unwrap();
    let agent = || Profile::new("a");
    let table: Vec<(Profile, Option<Filter>, Vec<&str>)> = vec![
        (agent(), None, everything.to_vec()),
        // Groups, tools, and tools alone.
        (agent().groups(["files"]), None, vec!["files/read", "files/wipe"]),
        (
            agent().groups(["files"]).tools([id("desk/add")]),
            None,
            vec!["desk/add", "files/read", "files/wipe"],
        ),
        (agent().tools([id("desk/add"), id("files/read")]), None, vec!["desk/add", "files/read"]),
        (agent().groups::<_, &str>([]), None, vec![]),
        // The agent's own globs.
        (agent().groups(["files"]).allow(["*/read"]), None, vec!["files/read"]),
        (
            agent().tools([id("desk/add")]).groups(["files"]).allow(["*/read"]),
            None,
            vec!["desk/add", "files/read"],
        ),
        (agent().tools([id("desk/add"), id("desk/who")]).deny(["*/add"]), None, vec!["desk/who"]),
        // A supervisor keeps what it directs by.
        (agent().supervisor([id("desk/who")]).groups(["files"]).deny(["*"]), None, vec!["desk/who"]),
        (agent().supervisor([id("desk/who")]).tools([id("desk/add")]), None, vec!["desk/add", "desk/who"]),
        // The user's filter is above all.
        (
            agent(),
            Some(Filter::new(&["desk/*"], &["*/who*", "*/fetch"]).unwrap()),
            vec!["desk/add", "desk/burn", "desk/keep"],
        ),
        (agent().supervisor([id("desk/who")]), Some(Filter::new(&[], &["desk/who"]).unwrap()), vec![]),
        (agent().tools([id("desk/add")]), Some(Filter::new(&["files/*"], &[]).unwrap()), vec![]),
        // What a tool was called before counts as well.
        (agent(), Some(Filter::new(&["desk/store"], &[]).unwrap()), vec!["desk/keep"]),
        (
            agent(),
            Some(Filter::new(&["desk/*"], &["desk/store", "*/who*", "*/fetch"]).unwrap()),
            vec!["desk/add", "desk/burn"],
        ),
    ];
    for (profile, filter, expected) in table {
        let calls = Arc::default();
        let shown = format!("{profile:?} {filter:?}");
        let mut builder = builder(&calls);
        if let Some(filter) = filter {
            builder = builder.filter(filter);
        }
        let host = TestHost::start(builder, profile, []).await;
        let seen: Vec<String> =
            host.session().view().tools().iter().map(|tool| tool.id().to_string()).collect();
        assert_eq!(seen, expected, "{shown}");
        for tool in host.host().catalogue().tools() {
            assert_eq!(host.session().shows(tool), seen.contains(&tool.id().to_string()), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_rule_hides_by_team() {
    let deny = || rule(Action::Deny).teams(["blue"]).unwrap().groups(["files"]).unwrap();
    for (profile, tools) in
        [(Profile::new("a").team("blue"), 0), (Profile::new("a").team("red"), 2), (Profile::new("a"), 2)]
    {
        let (host, _) = desk([deny()], profile, []).await;
        assert_eq!(host.session().view().tools_of("files").len(), tools);
    }
}

#[tokio::test]
async fn a_session_brings_arguments_and_a_budget() {
    let defaults = json!({"a": 40, "b": 2}).as_object().unwrap().clone();
    let profile = Profile::new("a").default_arguments(ToolId::new("desk", "add"), defaults).max_calls(3);
    let (host, calls) = desk([], profile, []).await;
    assert_eq!(host.call("desk/add", json!({})).await.result.to_text(), "42");
    assert_eq!(host.call("desk/add", json!({"a": 1})).await.result.to_text(), "3");
    // What is refused is not counted.
    assert_eq!(host.call("desk/add", json!({"a": "x"})).await.denied, Some(Check::Arguments));
    assert_eq!(host.call("desk/who", json!({})).await.outcome, Outcome::Ok);
    let denied = host.call("desk/add", json!({})).await;
    assert_eq!((denied.denied, calls.load(Ordering::SeqCst)), (Some(Check::Budget), 2));
    assert_eq!(denied.result.to_text(), "the session has made all of its 3 calls; nothing was called");
    // Another run of the same profile begins anew.
    let other = host.session().another();
    let completed = other.execute("desk/who", JsonObject::new(), CallOptions::default()).await;
    assert_eq!(completed.outcome, Outcome::Ok);
}

#[tokio::test]
async fn a_function_knows_its_session() {
    let (host, _) = desk([], Profile::new("alice"), []).await;
    for id in ["desk/who", "desk/who_async"] {
        assert_eq!(host.call(id, json!({})).await.result.to_text(), "alice", "{id}");
    }
    assert!(Session::current().is_none());
}

/// What a session can find out about a name without being allowed to call it, byte for byte.
async fn answers(host: &TestHost, id: &str) -> Vec<String> {
    let session = host.session();
    let (server, tool) = id.split_once('/').unwrap();
    let injection = session.injection();
    let mut answers = vec![format!("{injection:?}"), format!("{:?}", session.view().servers())];
    for request in [
        json!({"action": "execute", "name": id, "arguments": {}}),
        json!({"action": "execute", "name": id, "arguments": {"text": 5}}),
        json!({"action": "execute", "name": tool, "arguments": {}}),
        json!({"action": "execute", "name": format!("{server}__{tool}"), "arguments": {}}),
        json!({"action": "describe", "name": id}),
        json!({"action": "describe", "names": [id, "desk/who"]}),
        json!({"action": "search", "query": tool}),
        json!({"action": "search", "query": tool, "server": server}),
        json!({"action": "search"}),
    ] {
        answers.push(session.call(&request).await.to_text());
    }
    answers
}

/// The desk without one tool, as if it had never been.
fn without(hidden: Option<&str>) -> Arc<Scripted> {
    let all = ["add", "burn", "keep", "who"];
    let tools = all.iter().filter(|name| hidden != Some(**name)).map(|name| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        json!({"name": name, "description": format!("Does {name} things at the desk."), "inputSchema": schema})
    });
    Scripted::new("desk", |_, _| Ok(ToolResult::text("done"))).ready(tools.collect())
}

/// The ways to hide the tool of this id.
fn ways_to_hide(id: &str) -> Vec<(Rules, Profile, Option<Filter>)> {
    let profile = || Profile::new("agent").team("blue");
    let (server, tool) = id.split_once('/').unwrap();
    let others: Vec<ToolId> = ["add", "burn", "keep", "who"]
        .into_iter()
        .filter(|name| *name != tool)
        .map(|name| ToolId::new(server, name))
        .collect();
    let deny = |rule: Rule| Rules::new([rule]);
    vec![
        (deny(rule(Action::Deny).tools([id]).unwrap()), profile(), None),
        (deny(rule(Action::Deny).tools([format!("{server}__{tool}")]).unwrap()), profile(), None),
        (
            deny(rule(Action::Deny).tools([format!("*/{tool}")]).unwrap().teams(["blue"]).unwrap()),
            profile(),
            None,
        ),
        (
            deny(rule(Action::Deny).tools([id]).unwrap().tiers([Tier::Elevated]).unwrap().native(false)),
            profile(),
            None,
        ),
        (Rules::default(), profile().deny([id]), None),
        (Rules::default(), profile().tools(others), None),
        (Rules::default(), profile(), Some(Filter::new(&[], &[id]).unwrap())),
    ]
}

#[tokio::test]
async fn what_is_hidden_answers_byte_for_byte_like_what_is_not_there() {
    for hidden in ["add", "burn", "keep"] {
        let id = format!("desk/{hidden}");
        let absent = Host::builder().with_upstream(without(Some(hidden)));
        let absent = TestHost::start(absent, Profile::new("agent").team("blue"), []).await;
        let expected = answers(&absent, &id).await;
        for (at, (rules, profile, filter)) in ways_to_hide(&id).into_iter().enumerate() {
            let mut builder = Host::builder().with_upstream(without(None)).rules(rules);
            if let Some(filter) = filter {
                builder = builder.filter(filter);
            }
            let host = TestHost::start(builder, profile, []).await;
            assert_eq!(answers(&host, &id).await, expected, "{id}, way {at}");
            let denied = host.call(&id, json!({})).await;
            assert_eq!(denied.denied, Some(Check::Scope), "{id}, way {at}");
        }
    }
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let action = prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)];
    let tool = prop_oneof![
        Just("desk/add"),
        Just("desk/keep"),
        Just("desk/burn"),
        Just("files/*"),
        Just("files__wipe"),
        Just("*/read"),
        Just("*")
    ];
    let test = proptest::option::of(prop_oneof![Just("x"), Just("[xy]"), Just("1")]);
    (action, tool, test, any::<bool>()).prop_map(|(action, tool, test, anywhere)| {
        let rule = rule(action).tools([tool]).unwrap();
        match test {
            Some(test) => {
                let place = if anywhere { "any" } else { "/text" };
                rule.argument(place, [Test::regex([test]).unwrap()]).unwrap()
            }
            None => rule,
        }
    })
}

fn any_call() -> impl Strategy<Value = (String, Value)> {
    let name = prop_oneof![
        Just("desk/add"),
        Just("desk/keep"),
        Just("desk/burn"),
        Just("desk/fetch"),
        Just("files/read"),
        Just("files/wipe"),
        Just("files/none"),
        Just("keep"),
        Just("")
    ];
    let arguments = prop_oneof![
        Just(json!({"a": 1, "b": 2})),
        Just(json!({"text": "x"})),
        Just(json!({"text": "y z"})),
        Just(json!({"text": 5})),
        Just(json!({"url": "http://10.0.0.1/"})),
        Just(json!({}))
    ];
    (name, arguments).prop_map(|(name, arguments)| (name.to_owned(), arguments))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the rules, the answers of humans and the calls are: each call has exactly one outcome, an intent where it was
    /// dispatched and none where it was denied, and nothing that was denied reaches a tool.
    #[test]
    fn every_call_ends_once_and_what_is_denied_is_not_dispatched(
        rules in proptest::collection::vec(any_rule(), 0..5),
        by_default in any::<bool>(),
        unreadable in proptest::bool::weighted(0.2),
        answers in proptest::collection::vec(prop_oneof![Just(Answer::Approve), Just(Answer::Deny("no"))], 0..6),
        calls in proptest::collection::vec((any_call(), any::<bool>()), 1..6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dispatched: Arc<AtomicUsize> = Arc::default();
            let mut rules = Rules::new(rules);
            if by_default {
                rules = rules.ask_by_default("default");
            }
            if unreadable {
                rules = rules.unreadable("broken");
            }
            let host = TestHost::start(builder(&dispatched).rules(rules), Profile::new("t"), answers).await;
            for ((name, arguments), by_bridge) in &calls {
                let (seen, ran) = (host.audit().records().len(), dispatched.load(Ordering::SeqCst));
                if *by_bridge {
                    let call = json!({"action": "execute", "name": name, "arguments": arguments});
                    host.session().call(&call).await;
                } else {
                    host.call(name, arguments.clone()).await;
                }
                let records: Vec<Value> =
                    host.audit().records()[seen..].iter().map(|record| serde_json::to_value(record).unwrap()).collect();
                let stages: Vec<&str> = records.iter().map(|record| record["stage"].as_str().unwrap()).collect();
                let ran = dispatched.load(Ordering::SeqCst) - ran;
                let denied = records.last().unwrap()["outcome"] == "denied";
                assert_eq!(stages, if denied { vec!["outcome"] } else { vec!["intent", "outcome"] }, "{name} {arguments}");
                // `fetch` does not count itself.
                assert_eq!(ran, usize::from(!denied && name != "desk/fetch"), "{name} {arguments}");
                assert!(records.iter().all(|record| record["call_id"] == records[0]["call_id"]));
            }
        });
    }

    /// Whichever way a tool is hidden, and whatever is asked about it: the answer is that of a host that never had it.
    #[test]
    fn hidden_is_unknown(
        hidden in prop_oneof![Just("add"), Just("burn"), Just("keep"), Just("who")],
        way in 0_usize..7,
        action in prop_oneof![Just("execute"), Just("describe"), Just("search"), Just("Execute"), Just("sing")],
        key in prop_oneof![Just("name"), Just("query"), Just("names"), Just("server")],
        text in prop_oneof![
            Just("desk/{}"), Just("{}"), Just("desk__{}"), Just("desk/{}s"), Just(" Desk/{} "), Just("does {} things"), Just("desk")
        ],
        arguments in prop_oneof![Just(json!({})), Just(json!({"text": 1})), Just(json!(null)), Just(json!("{"))],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let id = format!("desk/{hidden}");
            let absent = Host::builder().with_upstream(without(Some(hidden)));
            let absent = TestHost::start(absent, Profile::new("agent").team("blue"), []).await;
            let (rules, profile, filter) = ways_to_hide(&id).swap_remove(way);
            let mut builder = Host::builder().with_upstream(without(None)).rules(rules);
            if let Some(filter) = filter {
                builder = builder.filter(filter);
            }
            let host = TestHost::start(builder, profile, []).await;
            let request = json!({"action": action, key: text.replace("{}", hidden), "arguments": arguments});
            let (one, other) = (host.session().call(&request).await, absent.session().call(&request).await);
            assert_eq!(one.as_object(), other.as_object(), "{request}");
        });
    }
}
