//! How far a human's answer goes, and whose counts where several are asked.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aster_runtime::call::{Check, Completed, Outcome, Proposed};
use aster_runtime::catalogue::Tool;
use aster_runtime::gate::approval::{
    Approval, ApprovalRequest, ApprovalScope, Approver, Desk, MAX_WAITING, MAX_WAITING_OF_SESSION, Race,
};
use aster_runtime::gate::hooks::{Failure, Hook, Verdict};
use aster_runtime::gate::limits::{Limit, Limits};
use aster_runtime::gate::rules::{Action, Rule, Rules, Test};
use aster_runtime::testing::{Answer, Recording, TestHost};
use aster_runtime::tool::{ClientInfo, ClientLink, LogLevel, ToolResult};
use aster_runtime::{CallOptions, Host, HostBuilder, HostSession, Profile, catalogue, mcp_tool};
use common::Scripted;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Burns it.
#[mcp_tool(tier = Restricted, server = "desk")]
fn burn(what: String) -> String {
    what
}

/// Notes it.
#[mcp_tool(tier = Standard, server = "desk")]
fn note(what: String) -> String {
    what
}

/// Approves thus far, and remembers what it was asked.
struct Approves(ApprovalScope, Mutex<Vec<ApprovalRequest>>);

impl Approves {
    fn new(scope: ApprovalScope) -> Arc<Self> {
        Arc::new(Self(scope, Mutex::default()))
    }

    fn asked(&self) -> usize {
        self.1.lock().unwrap().len()
    }

    fn last(&self) -> ApprovalRequest {
        self.1.lock().unwrap().last().unwrap().clone()
    }
}

impl Approver for Approves {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.1.lock().unwrap().push(request.clone());
        Box::pin(async { Approval::Approved { by: "a human".to_owned(), scope: self.0 } })
    }
}

/// An external server with one tool that destroys.
fn peer() -> Arc<Scripted> {
    let answer = |_: &str, arguments| Ok(ToolResult::structured(Value::Object(arguments)));
    Scripted::new("peer", answer).at("peer --all").ready(destroys("Deletes it."))
}

fn destroys(description: &str) -> Vec<Value> {
    vec![json!({"name": "delete", "description": description, "annotations": {"destructiveHint": true}})]
}

fn builder(approver: Arc<dyn Approver>) -> HostBuilder {
    Host::builder().catalogue(catalogue![burn::TOOL, note::TOOL]).approver(approver)
}

async fn call(session: &HostSession, id: &str, what: &str) -> Completed {
    call_by(session, id, what, None).await
}

async fn call_by(
    session: &HostSession,
    id: &str,
    what: &str,
    client: Option<Arc<dyn ClientLink>>,
) -> Completed {
    let Value::Object(arguments) = json!({"what": what}) else { unreachable!() };
    session.execute(id, arguments, CallOptions { client, ..CallOptions::default() }).await
}

#[tokio::test]
async fn an_answer_holds_as_far_as_it_says() {
    for (scope, asked, last) in [
        (ApprovalScope::Once, [1, 2, 3], "a human"),
        (ApprovalScope::Arguments, [1, 1, 2], "a human"),
        (ApprovalScope::Session, [1, 1, 1], "a human (remembered for this session)"),
    ] {
        let (human, audit) = (Approves::new(scope), Arc::new(Recording::default()));
        let host = builder(human.clone()).audit(audit.clone()).build().await.unwrap();
        let session = host.session(Profile::new("t")).unwrap();
        for (what, asked) in ["a letter", "a letter", "a book"].into_iter().zip(asked) {
            assert_eq!(call(&session, "desk/burn", what).await.outcome, Outcome::Ok);
            assert_eq!(human.asked(), asked, "{scope:?}: {what}");
        }
        let record = serde_json::to_value(audit.records().last().unwrap()).unwrap();
        assert_eq!(record["decision"], json!({"admitted": last}));
        let decided: Vec<String> =
            audit.records().iter().map(|record| serde_json::to_value(record).unwrap().to_string()).collect();
        let named =
            decided.iter().any(|text| text.contains("remembered for these arguments in this session"));
        assert_eq!(named, scope == ApprovalScope::Arguments);
        // Another session is another run.
        call(&host.session(Profile::new("t")).unwrap(), "desk/burn", "a letter").await;
        assert_eq!(human.asked(), asked[2] + 1);
    }
}

#[tokio::test]
async fn a_tool_that_has_changed_asks_again() {
    let (human, peer) = (Approves::new(ApprovalScope::Session), peer());
    let host = builder(human.clone()).with_upstream(peer.clone()).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    for _ in 0..2 {
        assert_eq!(call(&session, "peer/delete", "x").await.outcome, Outcome::Ok);
    }
    assert_eq!(human.asked(), 1);
    assert_eq!(human.last().endpoint.as_deref(), Some("peer --all"));
    assert!(human.last().to_string().contains("peer --all"));
    assert_eq!(human.last().change, None);
    let mut changes = host.changes();
    peer.list(destroys("Deletes it, and everything else."));
    let changed = |tool: &Arc<Tool>| tool.description().contains("else");
    changes.wait_for(|catalogue| catalogue.tools().iter().any(changed)).await.unwrap();
    for session in [session, host.session(Profile::new("t")).unwrap()] {
        assert_eq!(call(&session, "peer/delete", "x").await.outcome, Outcome::Ok);
    }
    let asked = human.1.lock().unwrap().clone();
    let changed = "-   Deletes it.\n+   Deletes it, and everything else.\n";
    assert!(asked[1].change.as_ref().unwrap().contains(changed), "{}", asked[1]);
    assert!(asked[1].to_string().contains("    +   Deletes it, and everything else.\n"), "{}", asked[1]);
    // That was approved: it is what it was.
    assert_eq!((asked.len(), &asked[2].change), (3, &None));
}

#[tokio::test]
async fn a_change_that_nobody_approved_is_shown_again() {
    let peer = peer();
    let no = Answer::Deny("no");
    let host = TestHost::start(
        Host::builder().with_upstream(peer.clone()),
        Profile::new("t"),
        [Answer::Approve, no.clone(), no],
    )
    .await;
    host.call("peer/delete", json!({})).await;
    let mut changes = host.host().changes();
    peer.list(destroys("Deletes it, and everything else."));
    let changed = |tool: &Arc<Tool>| tool.description().contains("else");
    changes.wait_for(|catalogue| catalogue.tools().iter().any(changed)).await.unwrap();
    for _ in 0..2 {
        host.call("peer/delete", json!({})).await;
        assert!(host.script().asked().last().unwrap().change.is_some());
    }
}

struct Suspicious;

impl Hook for Suspicious {
    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        let odd = call.arguments["what"] == "odd";
        Box::pin(async move { Ok(if odd { Verdict::ask("that is odd") } else { Verdict::go_on() }) })
    }
}

#[tokio::test]
async fn another_reason_asks_again() {
    let rules = || {
        let rule = |place: &'static str| Rule::new(Action::Ask, place).tools(["desk/note"]).unwrap();
        let hot = rule("rules:2").argument("/what", [Test::glob(["hot*"]).unwrap()]).unwrap();
        Arc::new(Rules::new([rule("rules:1"), hot]))
    };
    let (changing, followed) = watch::channel(rules());
    let human = Approves::new(ApprovalScope::Session);
    let host =
        builder(human.clone()).follow_rules(followed).hook(Arc::new(Suspicious)).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    for (tool, what, asked) in [
        ("desk/note", "cold", 1),
        ("desk/note", "warm", 1),
        // Another rule asks too.
        ("desk/note", "hot", 2),
        ("desk/note", "hotter", 2),
        ("desk/note", "cold", 2),
        // A hook asks too.
        ("desk/note", "odd", 3),
        ("desk/note", "odd", 3),
        ("desk/burn", "x", 4),
        ("desk/burn", "odd", 5),
        ("desk/burn", "y", 5),
    ] {
        assert_eq!(call(&session, tool, what).await.outcome, Outcome::Ok);
        assert_eq!(human.asked(), asked, "{tool} {what}");
    }
    assert!(human.last().why.contains("Restricted") && human.last().why.contains("that is odd"));
    changing.send_replace(rules());
    call(&session, "desk/note", "cold").await;
    assert_eq!(human.asked(), 6);
}

/// The way back to a client that has proved who it is, or has not.
struct Of {
    vouched: bool,
    told: AtomicUsize,
}

impl ClientLink for Of {
    fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {
        self.told.fetch_add(1, Ordering::SeqCst);
    }

    fn log(&self, _: LogLevel, _: &str) {}

    fn client(&self) -> ClientInfo {
        let mut info = ClientInfo::default();
        info.vouched = self.vouched;
        info
    }
}

fn client(vouched: bool) -> Arc<Of> {
    Arc::new(Of { vouched, told: AtomicUsize::new(0) })
}

#[tokio::test]
async fn nobody_in_particular_is_approved_for_one_call_only() {
    let human = Approves::new(ApprovalScope::Session);
    let host = builder(human.clone()).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    for (vouched, asked) in [(false, 1), (false, 2), (true, 3), (true, 3), (false, 4)] {
        let completed = call_by(&session, "desk/burn", "x", Some(client(vouched))).await;
        assert_eq!((completed.outcome, human.asked()), (Outcome::Ok, asked), "vouched: {vouched}");
    }
    assert!(!human.last().remembers);
}

/// Answers after a while; counts the questions that are open.
struct After(u64, Approval, Arc<AtomicUsize>);

struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Approver for After {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            self.2.fetch_add(1, Ordering::SeqCst);
            let _open = Open(&self.2);
            sleep(Duration::from_secs(self.0)).await;
            self.1.clone()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_the_first_clear_answer_counts() {
    let yes = || Approval::once("a human");
    let no = || Approval::denied("a human", "no");
    let nobody = |hint: &str| Approval::Unasked { hint: Some(hint.to_owned()) };
    let never = 100_000;
    for (answers, seconds, told) in [
        (vec![(2, yes()), (1, no()), (never, yes())], 1, "no"),
        (vec![(1, yes()), (2, no())], 1, "x"),
        (vec![(0, nobody("ring")), (3, yes())], 3, "x"),
        (vec![(3, yes()), (1, nobody("ring")), (4, no())], 3, "x"),
        (vec![(0, nobody("ring")), (1, nobody("knock"))], 1, ", or ring, or knock"),
        (vec![(never, yes()), (never, yes())], 300, "nobody approved"),
        (vec![], 0, "nobody can be asked here"),
    ] {
        let open = Arc::new(AtomicUsize::new(0));
        let asked = answers
            .into_iter()
            .map(|(after, answer)| Arc::new(After(after, answer, Arc::clone(&open))) as Arc<dyn Approver>);
        let host = builder(Arc::new(Race::new(asked))).build().await.unwrap();
        let session = host.session(Profile::new("t")).unwrap();
        let start = Instant::now();
        let text = call(&session, "desk/burn", "x").await.result.to_text();
        assert!(text.contains(told), "{text}");
        assert_eq!(start.elapsed().as_secs(), seconds, "{text}");
        assert_eq!(open.load(Ordering::SeqCst), 0, "a question is open");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_at_the_desk_until_somebody_answers_anywhere() {
    for by_desk in [true, false] {
        let (desk, open) = (Arc::new(Desk::default()), Arc::default());
        let other = Arc::new(After(20, Approval::once("another"), open));
        let host =
            builder(Arc::new(Race::new([desk.clone() as Arc<dyn Approver>, other]))).build().await.unwrap();
        let session = host.session(Profile::new("t")).unwrap();
        let client = client(true);
        let called = call_by(&session, "desk/burn", "x", Some(client.clone()));
        let looks = async {
            sleep(Duration::from_secs(12)).await;
            let waiting = desk.waiting();
            assert_eq!((waiting.len(), &waiting[0].request.arguments), (1, &json!({"what": "x"})));
            if by_desk {
                assert!(desk.answer(&waiting[0].request.call_id, Approval::denied("a human", "no")));
            }
            waiting[0].request.call_id.clone()
        };
        let (completed, id) = tokio::join!(called, looks);
        assert_eq!(completed.outcome, if by_desk { Outcome::Denied } else { Outcome::Ok });
        assert!(desk.waiting().is_empty() && !desk.answer(&id, Approval::once("too late")));
        // At the start, and every five seconds.
        assert_eq!(client.told.load(Ordering::SeqCst), if by_desk { 3 } else { 4 });
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_wait_than_a_human_can_read() {
    let desk = Arc::new(Desk::default());
    let host = builder(desk.clone()).build().await.unwrap();
    let call = || {
        let session = host.session(Profile::new("t")).unwrap();
        tokio::spawn(async move { call_by(&session, "desk/burn", "x", None).await })
    };
    let waiting: Vec<_> = (0..MAX_WAITING).map(|_| call()).collect();
    while desk.waiting().len() < MAX_WAITING {
        sleep(Duration::from_millis(10)).await;
    }
    let refused = call().await.unwrap();
    assert_eq!((refused.outcome, refused.denied), (Outcome::Denied, Some(Check::Approval)));
    let told = refused.result.to_text();
    assert!(
        told.contains("64 calls wait for a human already") && told.ends_with("Try again in 30 s"),
        "{told}"
    );

    // Where one is answered, another has its place; and each that gives up leaves it.
    assert!(desk.answer(&desk.waiting()[0].request.call_id, Approval::once("a human")));
    let next = call();
    while desk.waiting().len() < MAX_WAITING {
        sleep(Duration::from_millis(10)).await;
    }
    waiting.iter().chain([&next]).for_each(|call| call.abort());
    while !desk.waiting().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    let last = call();
    while desk.waiting().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    assert!(desk.answer(&desk.waiting()[0].request.call_id, Approval::once("a human")));
    assert_eq!(last.await.unwrap().outcome, Outcome::Ok);
}

#[tokio::test(start_paused = true)]
async fn one_session_leaves_the_others_their_places() {
    let desk = Arc::new(Desk::default());
    let host = builder(desk.clone()).build().await.unwrap();
    let session = || Arc::new(host.session(Profile::new("t")).unwrap());
    let call = |session: &Arc<HostSession>| {
        let session = Arc::clone(session);
        tokio::spawn(async move { call_by(&session, "desk/burn", "x", None).await })
    };
    let (greedy, other) = (session(), session());
    let _waiting: Vec<_> = (0..MAX_WAITING_OF_SESSION).map(|_| call(&greedy)).collect();
    while desk.waiting().len() < MAX_WAITING_OF_SESSION {
        sleep(Duration::from_millis(10)).await;
    }
    let told = call(&greedy).await.unwrap().result.to_text();
    assert!(told.starts_with("8 calls of this session wait for a human already"), "{told}");
    let _other = call(&other);
    while desk.waiting().len() == MAX_WAITING_OF_SESSION {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_whose_rate_is_used_up() {
    let human = Approves::new(ApprovalScope::Once);
    let limits = Limits::default().server("desk", Limit::default().per_minute(1));
    let host = builder(human.clone()).limits(limits).build().await.unwrap();
    let session = host.session(Profile::new("t")).unwrap();
    assert_eq!(call(&session, "desk/burn", "x").await.outcome, Outcome::Ok);
    assert_eq!(call(&session, "desk/burn", "x").await.denied, Some(Check::Limit));
    assert_eq!(human.asked(), 1);
}
