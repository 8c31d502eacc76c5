//! Limits on how many calls run at once and how many start in a minute. Time is paused: it passes only when all wait for it.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::future::{pending, ready};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aster_runtime::audit::{AuditSink, Record};
use aster_runtime::call::{Check, Outcome};
use aster_runtime::catalogue::{ExternalSettings, Health, Listing};
use aster_runtime::dispatch::{DispatchError, Upstream};
use aster_runtime::gate::limits::{Limit, Limits};
use aster_runtime::host::CallOptions;
use aster_runtime::{
    Host, HostSession, JsonObject, Profile, ToolContext, ToolResult, catalogue, mcp_server, mcp_tool,
};
use futures_util::future::{BoxFuture, join_all};
use globset::Glob;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

/// A room.
#[derive(Default)]
struct Room {
    inside: AtomicUsize,
    most: Arc<AtomicUsize>,
}

#[mcp_server(name = "room")]
impl Room {
    /// Stays for a second.
    #[mcp_tool(tier = Standard)]
    async fn stay(&self) {
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Looks in.
    #[mcp_tool(tier = Standard)]
    async fn look(&self) {}

    /// Takes the key along.
    #[mcp_tool(tier = Elevated)]
    async fn lock(&self) {}
}

/// A plain `fn`, which cannot be stopped.
#[mcp_tool(tier = Standard, server = "cellar")]
fn dig(
    /// Until when.
    until: String,
) {
    DIGGING.fetch_add(1, Ordering::SeqCst);
    while !std::path::Path::new(&until).exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    DIGGING.fetch_sub(1, Ordering::SeqCst);
}

static DIGGING: AtomicUsize = AtomicUsize::new(0);

/// One whose call was given up still has its place.
#[tokio::test]
async fn a_function_keeps_its_place_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let until = folder.path().join("enough");
    let limits = Limits::default().server("cellar", Limit::default().concurrent(1)).max_waiting(0);
    let host = Host::builder().catalogue(catalogue![dig::TOOL]).limits(limits).build().await.unwrap();
    let session = host.session(Profile::new("guest")).unwrap();
    let dig = || {
        let arguments = Map::from_iter([("until".to_owned(), Value::from(until.to_str().unwrap()))]);
        session.execute("cellar/dig", arguments, CallOptions::default())
    };
    let given_up = async {
        while DIGGING.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = dig() => panic!("it digs until it is told"),
        () = given_up => {}
    }
    assert_eq!(dig().await.denied, Some(Check::Limit));
    std::fs::write(&until, "").unwrap();
    while DIGGING.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
    // The thread ends a moment after its function.
    while dig().await.denied.is_some() {
        tokio::task::yield_now().await;
    }
}

struct Bench {
    host: Host,
    session: HostSession,
    most: Arc<AtomicUsize>,
}

async fn bench(limits: Limits) -> Bench {
    let room = Room::default();
    let most = Arc::clone(&room.most);
    let host = Host::builder().with_server(room).limits(limits).build().await.unwrap();
    let session = host.session(Profile::new("guest")).unwrap();
    Bench { host, session, most }
}

/// What came of one call: nothing, or why it was refused.
async fn call(session: &HostSession, id: &str) -> Option<String> {
    let completed = session.execute(id, Map::<String, Value>::new(), CallOptions::default()).await;
    match completed.outcome {
        Outcome::Ok => None,
        outcome => {
            assert_eq!((outcome, completed.denied), (Outcome::Denied, Some(Check::Limit)));
            Some(completed.result.to_text())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_place_in_a_queue_that_is_bounded() {
    let bench = bench(Limits::default().server("room", Limit::default().concurrent(2)).max_waiting(3)).await;
    let calls = join_all((0..8).map(|_| call(&bench.session, "room/stay"))).await;
    assert_eq!(bench.most.load(Ordering::SeqCst), 2);
    // Two run, three wait, three are refused.
    let refused: Vec<_> = calls.into_iter().flatten().collect();
    assert_eq!(
        refused,
        ["the server `room` may have 2 calls at once, and 3 wait already. Nothing was called; try again in 1 s";
            3]
    );
    assert_eq!(call(&bench.session, "room/stay").await, None, "all places are free again");
}

/// Keeps nothing as long as it is told so.
#[derive(Default)]
struct Full(AtomicBool);

impl AuditSink for Full {
    fn write(&self, _: &Record) -> io::Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(io::Error::other("the disk is full")) } else { Ok(()) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_after_its_turn_has_not_had_it() {
    let (audit, two) = (Arc::new(Full::default()), Limit::default().per_minute(2));
    let limits = Limits::default().server("room", two).session(two);
    let host = Host::builder().with_server(Room::default()).limits(limits).audit(audit.clone());
    let session = host.build().await.unwrap().session(Profile::new("guest")).unwrap();
    let lock = async || session.execute("room/lock", Map::new(), CallOptions::default()).await.denied;
    audit.0.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        assert_eq!(lock().await, Some(Check::Audit));
    }
    audit.0.store(false, Ordering::SeqCst);
    assert_eq!((lock().await, lock().await, lock().await), (None, None, Some(Check::Limit)));
}

#[tokio::test]
async fn a_call_that_is_not_sent_is_none_of_a_sessions_number() {
    let audit = Arc::new(Full::default());
    let host = Host::builder().with_server(Room::default()).with_upstream(Arc::new(Asleep::default()));
    let host = host.audit(audit.clone()).build().await.unwrap();
    let session = host.session(Profile::new("guest").max_calls(2)).unwrap();
    let lock = async || session.execute("room/lock", Map::new(), CallOptions::default()).await.denied;
    audit.0.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        assert_eq!(lock().await, Some(Check::Audit));
    }
    audit.0.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        let mut given_up = pin!(call(&session, "asleep/dream"));
        assert!(futures_util::poll!(&mut given_up).is_pending());
    }
    assert_eq!((lock().await, lock().await, lock().await), (None, None, Some(Check::Budget)));
}

/// An external server that is down and does not get up.
struct Asleep(watch::Sender<Arc<Listing>>);

impl Default for Asleep {
    fn default() -> Self {
        let tools = vec![json!({"name": "dream"})];
        let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
        Self(watch::Sender::new(Arc::new(listing)))
    }
}

impl Upstream for Asleep {
    fn name(&self) -> &str {
        "asleep"
    }

    fn settings(&self) -> ExternalSettings {
        ExternalSettings::default()
    }

    fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.0.subscribe()
    }

    fn ready(&self) -> Option<BoxFuture<'_, Result<(), DispatchError>>> {
        Some(Box::pin(pending()))
    }

    fn call(
        &self,
        _: &str,
        _: JsonObject,
        _: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        Box::pin(pending())
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_given_back_comes_on_top_of_nothing() {
    for hanging in [10, 5, 1] {
        let limits = Limits::default().session(Limit::default().per_minute(10));
        let host = Host::builder().with_server(Room::default()).with_upstream(Arc::new(Asleep::default()));
        let host = host.limits(limits).build().await.unwrap();
        let session = host.session(Profile::new("guest")).unwrap();
        let all_sent = async || {
            let mut sent = 0;
            while call(&session, "room/look").await.is_none() {
                sent += 1;
            }
            sent
        };
        // Their places stay theirs, however long they wait.
        let others = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            all_sent().await
        };
        let sent = tokio::select! {
            biased;
            _ = join_all((0..hanging).map(|_| call(&session, "asleep/dream"))) => panic!("it does not get up"),
            sent = others => sent,
        };
        assert_eq!((sent, all_sent().await), (10 - hanging, hanging));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_and_whoever_gives_up_leaves_the_queue() {
    let limits = Limits::default().server("room", Limit::default().concurrent(1)).max_waiting(1);
    let bench = bench(limits.max_wait(Duration::from_millis(1500))).await;
    let (first, second) = tokio::join!(call(&bench.session, "room/stay"), call(&bench.session, "room/stay"));
    assert_eq!((first, second), (None, None));

    // One that is dropped while it waits leaves its place in the queue to another.
    let running = call(&bench.session, "room/stay");
    let waiting = tokio::time::timeout(Duration::from_millis(100), call(&bench.session, "room/stay"));
    let another = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        call(&bench.session, "room/stay").await
    };
    let (running, waiting, another) = tokio::join!(running, waiting, another);
    assert!(running.is_none() && waiting.is_err() && another.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_too_long_is_refused() {
    let limits = Limits::default().server("room", Limit::default().concurrent(1));
    let bench = bench(limits.max_wait(Duration::from_millis(500))).await;
    let (first, second) = tokio::join!(call(&bench.session, "room/stay"), call(&bench.session, "room/stay"));
    assert_eq!(first, None);
    assert!(second.unwrap().contains("none has ended for 500ms"));
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_refused_with_the_time_of_the_next_call() {
    let glob = Glob::new("room/l*").unwrap().compile_matcher();
    let bench = bench(Limits::default().tool(glob, Limit::default().per_minute(6))).await;
    for _ in 0..6 {
        assert_eq!(call(&bench.session, "room/look").await, None);
    }
    let told = call(&bench.session, "room/look").await.unwrap();
    assert_eq!(
        told,
        "`room/look` may make 6 calls a minute, and they are used up. Nothing was called; try again in 10 s"
    );
    assert_eq!(call(&bench.session, "room/stay").await, None, "another tool has its own");
    // A second of the ten has passed.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(call(&bench.session, "room/look").await.unwrap().ends_with("try again in 1 s"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(call(&bench.session, "room/look").await, None);
    assert!(call(&bench.session, "room/look").await.is_some());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    for _ in 0..6 {
        assert_eq!(call(&bench.session, "room/look").await, None);
    }
    assert!(call(&bench.session, "room/look").await.is_some(), "what is not used does not pile up");
}

#[tokio::test(start_paused = true)]
async fn sessions_have_limits_of_their_own_and_share_those_of_servers() {
    let limits = Limits::default()
        .session(Limit::default().per_minute(2))
        .server("room", Limit::default().per_minute(3));
    let bench = bench(limits).await;
    let other = bench.host.session(Profile::new("guest")).unwrap();
    assert_eq!(call(&bench.session, "room/look").await, None);
    assert_eq!(call(&bench.session, "room/look").await, None);
    assert!(call(&bench.session, "room/look").await.unwrap().starts_with("this session"));
    // The refused call has used up nothing of the server's.
    assert_eq!(call(&other, "room/look").await, None);
    assert!(call(&other, "room/look").await.unwrap().starts_with("the server `room`"));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_place_uses_up_no_rate() {
    let limit = Limit::default().concurrent(1).per_minute(2);
    let bench = bench(Limits::default().server("room", limit).max_waiting(0)).await;
    let (first, second) = tokio::join!(call(&bench.session, "room/stay"), call(&bench.session, "room/stay"));
    assert!(first.is_none() && second.unwrap().contains("wait already"));
    assert_eq!(call(&bench.session, "room/stay").await, None);
    assert!(call(&bench.session, "room/stay").await.unwrap().contains("they are used up"));
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_in_vain_is_told_to_wait_as_long() {
    let bench = bench(Limits::default().server("room", Limit::default().concurrent(0))).await;
    let told = call(&bench.session, "room/look").await.unwrap();
    assert!(told.ends_with("none has ended for 30s. Nothing was called; try again in 30 s"), "{told}");
}
