//! The audit in a database: SQLite, and a real PostgreSQL server that the test starts. A writer is killed under load, and
//! every call that was dispatched has its intent.
#![cfg(all(unix, feature = "sql"))]
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "common/postgres.rs"]
mod postgres;

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aster_runtime::audit::{AuditSink, Fault, JsonLines, Segments, Sql, Stage, Store, Verification};
use aster_runtime::call::{Check, Outcome};
use aster_runtime::{
    CallOptions, Host, HostSession, JsonObject, Profile, ToolContext, catalogue, mcp_server,
};
use futures_util::future::join_all;
use postgres::{PASSWORD, Postgres};
use tokio::sync::Notify;

/// Where the child's records go.
const PLACE: &str = "ASTER_TEST_AUDIT";

/// Where it notes what was dispatched.
const DISPATCHED: &str = "ASTER_TEST_DISPATCHED";

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A desk.
#[mcp_server]
mod desk {
    use super::*;
    use aster_runtime::mcp_tool;

    /// Notes that it was dispatched, in a file that outlives the process.
    #[mcp_tool(tier = Elevated)]
    pub(crate) async fn note(ctx: &ToolContext) {
        if let Some(path) = std::env::var_os(DISPATCHED) {
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(format!("{}\n", ctx.call_id()).as_bytes()).unwrap();
        }
    }

    /// Does nothing of weight.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn idle() {}

    /// Waits until it is told to go.
    #[mcp_tool(tier = Elevated)]
    pub(crate) async fn wait() {
        WAITING.notify_one();
        GO.notified().await;
    }
}

static WAITING: Notify = Notify::const_new();

static GO: Notify = Notify::const_new();

async fn session(audit: Arc<dyn AuditSink>) -> (Host, HostSession) {
    let host = Host::builder().catalogue(catalogue![desk::SERVER]).audit(audit).build().await.unwrap();
    let session = host.session(Profile::new("clerk")).unwrap();
    (host, session)
}

async fn call(session: &HostSession, tool: &str) -> (Outcome, Option<Check>) {
    let completed = session.execute(tool, JsonObject::new(), CallOptions::default()).await;
    (completed.outcome, completed.denied)
}

/// Ends soon, so that segments end too.
fn segments() -> Segments {
    Segments { size: 20_000, ..Segments::default() }
}

/// Where an audit is, for a child to be told and for the parent to read.
#[derive(Debug)]
enum Place {
    Lines(PathBuf),
    Sqlite(PathBuf),
    Postgres(String),
}

impl Place {
    fn told(&self) -> String {
        match self {
            Self::Lines(path) => format!("lines {}", path.display()),
            Self::Sqlite(path) => format!("sqlite {}", path.display()),
            Self::Postgres(url) => format!("postgres {url}"),
        }
    }

    fn read(told: &str) -> Self {
        let (kind, place) = told.split_once(' ').unwrap();
        match kind {
            "lines" => Self::Lines(place.into()),
            "sqlite" => Self::Sqlite(place.into()),
            _ => Self::Postgres(place.to_owned()),
        }
    }

    fn sink(&self, segments: Segments) -> Arc<dyn AuditSink> {
        match self {
            Self::Lines(path) => Arc::new(JsonLines::with_segments(path, segments).unwrap()),
            Self::Sqlite(path) => Arc::new(Sql::sqlite(path, segments).unwrap()),
            Self::Postgres(url) => Arc::new(Sql::postgres(url, segments).unwrap()),
        }
    }

    fn store(&self) -> Store {
        match self {
            Self::Lines(path) => Store::json_lines(path),
            Self::Sqlite(path) => Store::sqlite(path),
            Self::Postgres(url) => Store::postgres(url).unwrap(),
        }
    }

    async fn verify(&self) -> Verification {
        self.store().verify().await.unwrap()
    }

    /// The calls that have an intent.
    async fn intents(&self) -> HashSet<String> {
        let mut intents = HashSet::new();
        let visit = |entry: aster_runtime::audit::Entry<'_>| {
            if let Some(record) = entry.record().filter(|record| record.stage == Stage::Intent) {
                intents.insert(record.call_id);
            }
        };
        self.store().read(visit).await.unwrap();
        intents
    }
}

/// No test of its own: the process that is killed. It calls, eight calls at a time, until then.
#[test]
fn the_child_that_is_killed() {
    let Ok(told) = std::env::var(PLACE) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (_host, session) = session(Place::read(&told).sink(segments())).await;
        let session = Arc::new(session);
        let callers = (0..8).map(|caller| {
            let session = Arc::clone(&session);
            tokio::spawn(async move {
                loop {
                    call(&session, if caller % 4 == 3 { "desk/idle" } else { "desk/note" }).await;
                }
            })
        });
        join_all(callers).await;
    });
}

fn child(place: &Place, dispatched: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_that_is_killed"])
        .env(PLACE, place.told())
        .env(DISPATCHED, dispatched)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills writers under load, at random points, two of them at a time; after each, the audit is intact and has the intent of
/// every call that was dispatched.
async fn kill(place: Place, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let dispatched = folder.path().join("dispatched");
    let noted = || fs::read_to_string(&dispatched).unwrap_or_default();
    for round in 0..rounds {
        let mut children = [child(&place, &dispatched), child(&place, &dispatched)];
        let before = noted().lines().count();
        let random = RandomState::new().hash_one(round);
        let (enough, more) = (before + 20 + (random % 150) as usize, random % 5_000);
        let deadline = Instant::now() + PATIENCE;
        while noted().lines().count() < enough {
            assert!(Instant::now() < deadline, "the children do not call");
            assert!(
                children.iter_mut().all(|child| child.try_wait().unwrap().is_none()),
                "a child has ended"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        // Anywhere in the middle of what they do.
        std::thread::sleep(Duration::from_micros(more));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let intents = place.intents().await;
        let noted = noted();
        let without: Vec<&str> = noted.lines().filter(|call_id| !intents.contains(*call_id)).collect();
        assert_eq!(without, Vec::<&str>::new(), "{place:?}: calls were dispatched without their intent");
        let verified = place.verify().await;
        assert!(verified.is_intact(), "{place:?}: {:?}", verified.findings);
        assert!(verified.unfinished <= 16 * (round as u64 + 1), "{verified:?}");
    }
    // A writer goes on where the killed ones ended.
    let sink = place.sink(segments());
    let (host, session) = session(Arc::clone(&sink)).await;
    assert_eq!(call(&session, "desk/idle").await, (Outcome::Ok, None));
    host.close().await;
    let verified = place.verify().await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_with_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    kill(Place::Lines(folder.path().join("audit.jsonl")), 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_with_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    kill(Place::Sqlite(folder.path().join("audit.db")), 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_under_load_with_postgres() {
    let Some(server) = Postgres::start() else { return };
    kill(Place::Postgres(server.url()), 4).await;
}

/// Calls until segments have ended, a few at a time.
async fn fill(place: &Place, calls: usize, segments: Segments) {
    let (host, session) = session(place.sink(segments)).await;
    for _ in 0..calls / 4 {
        let some = std::array::from_fn::<_, 4, _>(|_| call(&session, "desk/note"));
        for ended in join_all(some).await {
            assert_eq!(ended, (Outcome::Ok, None));
        }
    }
    host.close().await;
}

/// What must hold of every database. `change` runs a statement in it.
async fn holds(place: Place, change: impl Fn(&str)) {
    let keep = Segments { size: 10_000, keep: Some(2), ..Segments::default() };
    fill(&place, 80, keep).await;
    fill(&place, 8, keep).await;
    let verified = place.verify().await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    let chain = verified.chains[0].clone();
    assert_eq!((verified.chains.len(), chain.segments), (1, 3), "{chain:?}");
    assert!(chain.first > 1, "{chain:?}");
    let middle = chain.first + 5;

    let expect = async |what: &str, undo: &str, fault: Fault| {
        change(what);
        let found = place.verify().await;
        assert_eq!(found.findings.first().map(|finding| &finding.fault), Some(&fault), "{what}: {found:?}");
        change(undo);
        assert!(place.verify().await.is_intact(), "{undo}");
    };
    let changed = |from: &str, to: &str, sequence: u64| {
        format!(
            "UPDATE aster_audit SET record = CAST(replace(CAST(record AS TEXT), '\"{from}\"', '\"{to}\"') AS JSON) \
             WHERE sequence = {sequence}"
        )
    };
    let last = chain.last;
    for sequence in [middle, last] {
        let fault = Fault::Changed { chain: 0, sequence };
        expect(&changed("clerk", "Clerk", sequence), &changed("Clerk", "clerk", sequence), fault).await;
    }
    let moved =
        |from: u64, to: u64| format!("UPDATE aster_audit SET sequence = {to} WHERE sequence = {from}");
    let fault = Fault::Missing { chain: 0, first: middle, last: middle };
    expect(&moved(middle, last + 9), &moved(last + 9, middle), fault).await;
    change(&format!("DELETE FROM aster_audit WHERE sequence = {last}"));
    let found = place.verify().await;
    assert_eq!(found.findings[0].fault, Fault::Missing { chain: 0, first: last, last });
}

#[tokio::test]
async fn tampering_with_sqlite_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/audit.db");
    let place = Place::Sqlite(path.clone());
    let change = |statement: &str| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(&statement.replace(" AS JSON", " AS TEXT")).unwrap();
    };
    holds(place, change).await;
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn tampering_with_postgres_is_found() {
    let Some(server) = Postgres::start() else { return };
    holds(Place::Postgres(server.url()), |statement| drop(server.query(statement))).await;
    // The records can be asked like any table.
    let asked = "SELECT DISTINCT record->>'tool' FROM aster_audit WHERE record->>'outcome' = 'ok'";
    assert_eq!(server.query(asked), "desk/note");
}

#[tokio::test]
async fn without_its_database_nothing_beyond_standard_is_called() {
    let Some(server) = Postgres::start() else { return };
    let place = Place::Postgres(server.url());
    let sink = Sql::postgres(&server.url(), segments()).unwrap();
    sink.connect().await.unwrap();
    let (host, session) = session(Arc::new(sink)).await;
    assert_eq!(call(&session, "desk/note").await, (Outcome::Ok, None));
    server.crash();
    assert_eq!(call(&session, "desk/note").await, (Outcome::Denied, Some(Check::Audit)));
    assert_eq!(call(&session, "desk/idle").await, (Outcome::Ok, None));
    // What came of it is recorded once there is a database to record it in, before what comes then.
    server.serve();
    assert_eq!(call(&session, "desk/note").await, (Outcome::Ok, None));
    host.close().await;
    let verified = place.verify().await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.calls, verified.unfinished), (4, 0));
    let told = "SELECT string_agg(record->>'stage', ' ' ORDER BY sequence) FROM aster_audit";
    assert_eq!(server.query(told), "intent outcome outcome intent outcome intent outcome");
}

/// A call that was running when the database went has its outcome soon after it is back, whether anybody calls then or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_started_anew_loses_no_outcome() {
    let Some(server) = Postgres::start() else { return };
    let place = Place::Postgres(server.url());
    let (host, clerk) = session(place.sink(segments())).await;
    let crash = async {
        WAITING.notified().await;
        server.crash();
        GO.notify_one();
    };
    let (ended, ()) = tokio::join!(call(&clerk, "desk/wait"), crash);
    assert_eq!(ended, (Outcome::Ok, None));
    server.serve();
    let deadline = Instant::now() + PATIENCE;
    while server.query("SELECT count(*) FROM aster_audit WHERE record->>'stage' = 'outcome'") == "0" {
        assert!(Instant::now() < deadline, "the outcome is not written");
    }
    host.close().await;
    let verified = place.verify().await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.calls, verified.unfinished, host.stats().lost_records), (1, 0, 0));

    // Whoever closes waits for one that is about to be there.
    let (host, clerk) = session(place.sink(segments())).await;
    assert_eq!(call(&clerk, "desk/note").await, (Outcome::Ok, None));
    server.crash();
    assert_eq!(call(&clerk, "desk/idle").await, (Outcome::Ok, None));
    let closing = tokio::spawn(async move { host.close().await });
    server.serve();
    closing.await.unwrap();
    let verified = place.verify().await;
    assert_eq!((verified.is_intact(), verified.calls, verified.unfinished), (true, 3, 0));
}

/// Under load some transactions are on their way to their end when the server goes: each is kept once, or never was.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_started_anew_under_load_has_every_call_once() {
    let Some(server) = Postgres::start() else { return };
    let place = Place::Postgres(server.url());
    let (host, session) = session(place.sink(segments())).await;
    assert_eq!(call(&session, "desk/note").await, (Outcome::Ok, None));
    let (session, enough) = (Arc::new(session), Arc::new(AtomicBool::new(false)));
    let ended = Arc::new([const { AtomicU64::new(0) }; 2]);
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (session, enough, ended) = (Arc::clone(&session), Arc::clone(&enough), Arc::clone(&ended));
            tokio::spawn(async move {
                while !enough.load(Ordering::SeqCst) {
                    let called =
                        call(&session, if caller % 2 == 0 { "desk/idle" } else { "desk/note" }).await;
                    ended[usize::from(called.0 == Outcome::Denied)].fetch_add(1, Ordering::SeqCst);
                    // Not so often that what waits comes to much.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        })
        .collect();
    let more = async |which: usize, many: u64| {
        let until = ended[which].load(Ordering::SeqCst) + many;
        let deadline = Instant::now() + PATIENCE;
        while ended[which].load(Ordering::SeqCst) < until {
            assert!(Instant::now() < deadline, "nothing is called");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    for round in 0..4 {
        more(0, 50 + RandomState::new().hash_one(round) % 50).await;
        server.crash();
        more(1, 5).await;
        server.serve();
    }
    more(0, 50).await;
    enough.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
    host.close().await;
    let verified = place.verify().await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    let called = 1 + ended.iter().map(|ended| ended.load(Ordering::SeqCst)).sum::<u64>();
    assert_eq!((verified.calls, verified.unfinished, host.stats().lost_records), (called, 0, 0));
}

/// A way to the server that can be cut.
struct Wire {
    url: String,
    calling: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(server: &Postgres) -> Self {
        let mut url = url::Url::parse(&server.url()).unwrap();
        let (port, calling) = (url.port().unwrap(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let calls = Arc::clone(&calling);
        std::thread::spawn(move || {
            for caller in listener.incoming().map(Result::unwrap) {
                let called = TcpStream::connect(("127.0.0.1", port)).unwrap();
                calls.lock().unwrap().push(caller.try_clone().unwrap());
                for (mut from, mut to) in
                    [(caller.try_clone().unwrap(), called.try_clone().unwrap()), (called, caller)]
                {
                    std::thread::spawn(move || io::copy(&mut from, &mut to));
                }
            }
        });
        Self { url: url.into(), calling }
    }

    /// Cuts all connections for those who made them.
    fn cut(&self) {
        for caller in self.calling.lock().unwrap().drain(..) {
            caller.shutdown(Shutdown::Both).unwrap();
        }
    }
}

/// The connection breaks while the server commits the first transaction of a chain: of the chain nobody else sees anything yet.
#[test]
fn what_is_still_being_committed_is_not_written_again() {
    let Some(server) = Postgres::start() else { return };
    let wire = Wire::to(&server);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sink = Sql::postgres(&wire.url, segments()).unwrap();
    runtime.block_on(sink.connect()).unwrap();
    let mut other = ::postgres::Client::connect(&server.url(), ::postgres::NoTls).unwrap();
    let holds_up = "CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS \
                    'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'; \
                    CREATE CONSTRAINT TRIGGER waits AFTER INSERT ON aster_audit DEFERRABLE INITIALLY DEFERRED \
                    FOR EACH ROW EXECUTE FUNCTION waits(); \
                    SELECT pg_advisory_lock(1)";
    other.batch_execute(holds_up).unwrap();
    let mut until_there_wait = |many: i64| {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        let deadline = Instant::now() + PATIENCE;
        while other.query_one(waiting, &[]).unwrap().get::<_, i64>(0) < many {
            assert!(Instant::now() < deadline, "the database is not written to");
        }
    };
    let search = serde_json::json!({"time": "", "stage": "search", "session": "s", "agent": "a"});
    sink.write(&serde_json::from_value(search).unwrap()).unwrap();
    until_there_wait(1);
    wire.cut();
    until_there_wait(2);
    other.batch_execute("SELECT pg_advisory_unlock(1)").unwrap();
    runtime.block_on(sink.flush()).unwrap();
    let verified = runtime.block_on(Place::Postgres(server.url()).verify());
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.records, sink.lost()), (1, 0));
}

/// A server may go while it owes an answer, and then there is nothing on the way that it could leave unacknowledged.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_goes_without_a_word_is_noticed_soon() {
    let Some(server) = Postgres::start() else { return };
    let sink = Sql::postgres(&server.url(), segments()).unwrap();
    sink.connect().await.unwrap();
    let port = url::Url::parse(&server.url()).unwrap().port().unwrap();
    let deadline = Instant::now() + PATIENCE;
    // In hundredths of a second; 2 is the timer that asks whether the other end is there.
    //
    // Source: Linux, Documentation/networking/proc_net_tcp.rst.
    let asks_in = loop {
        let connections = fs::read_to_string("/proc/net/tcp").unwrap();
        let mut of_ours = connections.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = of_ours.find(|fields| fields[2].ends_with(&format!(":{port:04X}"))).unwrap();
        if let Some(asks_in) = ours[5].strip_prefix("02:") {
            break u64::from_str_radix(asks_in, 16).unwrap();
        }
        assert!(Instant::now() < deadline, "{ours:?}");
    };
    assert!(asks_in <= 10 * 100, "{asks_in}");
}

/// The chain, the number and the time of every line that was not read before, in the order in which they are passed.
async fn by_time(store: &mut Store) -> Vec<(u64, u64, i64)> {
    let mut passed = Vec::new();
    let visit = |entry: aster_runtime::audit::Entry<'_>| {
        let line: serde_json::Value = serde_json::from_slice(entry.line()).unwrap();
        let number = |field: &str| line[field].as_u64().unwrap();
        passed.push((number("chain"), number("sequence"), entry.written().unwrap()));
    };
    store.read_by_time(visit).await.unwrap();
    passed
}

/// Two processes take turns, and so do their records.
async fn in_turns(place: Place) {
    let small = Segments { size: 4_000, ..Segments::default() };
    let writers = [session(place.sink(small)).await, session(place.sink(small)).await];
    let mut store = place.store();
    for from in [0, 8] {
        for turn in from..from + 8 {
            assert_eq!(call(&writers[turn % 2].1, "desk/note").await.0, Outcome::Ok);
            let written = std::time::SystemTime::now();
            while written.elapsed().unwrap() < Duration::from_millis(2) {
                std::thread::yield_now();
            }
        }
        let passed = by_time(&mut store).await;
        assert_eq!(passed.iter().filter(|line| line.0 < 2).count(), passed.len(), "{place:?}: {passed:?}");
        assert!(passed.is_sorted_by_key(|(_, _, written)| *written), "{place:?}: {passed:?}");
        let turns = passed.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        assert!(passed.len() >= 16 && turns >= 7, "{place:?}: {passed:?}");
        for chain in 0..2 {
            let numbers: Vec<u64> = passed.iter().filter(|line| line.0 == chain).map(|line| line.1).collect();
            assert!(numbers.is_sorted() && !numbers.is_empty(), "{place:?}: {passed:?}");
        }
    }
    assert_eq!(by_time(&mut store).await, []);
    for (host, _) in writers {
        host.close().await;
    }
}

#[tokio::test]
async fn records_of_several_writers_are_read_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    in_turns(Place::Lines(folder.path().join("audit.jsonl"))).await;
}

#[tokio::test]
async fn records_of_several_chains_in_a_database_are_read_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.db");
    let place = Place::Sqlite(path.clone());
    fill(&place, 80, segments()).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    // SQLite has one writer at a time, which takes the first chain.
    let change = "UPDATE aster_audit SET chain = 1 WHERE sequence % 3 = 0";
    connection.execute(change, []).unwrap();
    let mut store = place.store();
    let mut numbers = Vec::new();
    let visit = |entry: aster_runtime::audit::Entry<'_>| {
        let line: serde_json::Value = serde_json::from_slice(entry.line()).unwrap();
        numbers.push((line["sequence"].as_u64().unwrap(), entry.written().unwrap()));
    };
    store.read_by_time(visit).await.unwrap();
    assert!(numbers.len() >= 160 && numbers.is_sorted_by_key(|(_, written)| *written), "{numbers:?}");
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), numbers.last().map(|(last, _)| usize::try_from(*last).unwrap()).unwrap());
    assert_eq!(by_time(&mut store).await, []);
}

#[tokio::test]
async fn no_error_shows_the_password() {
    let wrong = format!("postgres://aster:{PASSWORD}@127.0.0.1:1/none");
    let sink = Sql::postgres(&wrong, segments()).unwrap();
    let error = sink.connect().await.unwrap_err();
    assert!(!format!("{error} {error:?} {sink:?}").contains(PASSWORD), "{error}");
    let error = Sql::postgres(&format!("postgres://a:{PASSWORD}@[x"), segments()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
}

/// A database that was open to others is its owner's alone once it is written.
#[tokio::test]
async fn what_was_open_to_others_no_longer_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Sql::sqlite(&path, segments()).unwrap().connect().await.unwrap();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
    }
}

/// A record that the database refuses costs no other that is in one transaction with it.
#[tokio::test]
async fn a_record_that_is_refused_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.db");
    let sink = Sql::sqlite(&path, segments()).unwrap();
    sink.connect().await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let refuse = "CREATE TRIGGER refuses BEFORE INSERT ON aster_audit WHEN NEW.record LIKE '%desk/idle%' \
                  BEGIN SELECT RAISE(ABORT, 'refused'); END; BEGIN IMMEDIATE";
    other.execute_batch(refuse).unwrap();
    let (host, session) = session(Arc::new(sink)).await;
    // Until the database is let go, all intents wait in one or two transactions.
    let calls = ["desk/note", "desk/idle", "desk/note", "desk/note", "desk/note"];
    let calls = join_all(calls.map(|tool| call(&session, tool)));
    let (ended, ()) = tokio::join!(calls, async { other.execute_batch("COMMIT").unwrap() });
    assert_eq!(ended, [(Outcome::Ok, None); 5]);
    host.close().await;
    let verified = Store::sqlite(&path).verify().await.unwrap();
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.calls, verified.unfinished), (4, 0));
}

/// A long chain takes longer to read than any statement of a writer may.
#[tokio::test]
async fn a_chain_is_read_however_long_that_takes() {
    let Some(server) = Postgres::start() else { return };
    let place = Place::Postgres(server.url());
    fill(&place, 4, segments()).await;
    server.query(
        "ALTER TABLE aster_audit RENAME TO kept; \
         CREATE VIEW aster_audit AS SELECT chain, sequence, \
         json_build_object('longest', current_setting('statement_timeout')) AS record FROM kept",
    );
    let mut longest = HashSet::new();
    let visit = |entry: aster_runtime::audit::Entry<'_>| {
        longest.insert(String::from_utf8(entry.line().to_vec()).unwrap());
    };
    place.store().read(visit).await.unwrap();
    assert_eq!(longest, HashSet::from([r#"{"longest" : "0"}"#.to_owned()]));
}

/// Calls so often that segments are to be dropped, which nobody may.
async fn retains(place: Place, forbid: impl FnOnce()) {
    let keep = Segments { size: 4_000, keep: Some(1), ..Segments::default() };
    fill(&place, 4, keep).await;
    forbid();
    fill(&place, 40, keep).await;
    let verified = place.verify().await;
    assert!(verified.is_intact(), "{place:?}: {:?}", verified.findings);
    assert_eq!((verified.calls, verified.chains[0].first), (44, 1), "{place:?}");
}

#[tokio::test]
async fn what_cannot_be_dropped_keeps_no_record_out() {
    // What is refused may take the whole transaction with it, as what finds the disk full does.
    for undone in ["ABORT", "ROLLBACK"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.db");
        let trigger = format!(
            "CREATE TRIGGER retains BEFORE DELETE ON aster_audit BEGIN SELECT RAISE({undone}, 'kept'); END"
        );
        let forbid = || rusqlite::Connection::open(&path).unwrap().execute_batch(&trigger).unwrap();
        retains(Place::Sqlite(path.clone()), forbid).await;
    }

    let Some(server) = Postgres::start() else { return };
    server.query(
        "CREATE FUNCTION retains() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''kept''; END'",
    );
    // At once, and when it is committed.
    for trigger in [
        "TRIGGER retains BEFORE DELETE ON aster_audit",
        "CONSTRAINT TRIGGER retains AFTER DELETE ON aster_audit DEFERRABLE INITIALLY DEFERRED",
    ] {
        let forbid = || {
            server.query(&format!("CREATE {trigger} FOR EACH ROW EXECUTE FUNCTION retains()"));
        };
        retains(Place::Postgres(server.url()), forbid).await;
        server.query("DROP TABLE aster_audit, aster_audit_chain");
    }
}

#[tokio::test]
async fn a_database_that_is_taken_away_takes_no_later_record_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.db");
    let (host, session) = session(Arc::new(Sql::sqlite(&path, segments()).unwrap())).await;
    assert_eq!(call(&session, "desk/note").await, (Outcome::Ok, None));
    for entry in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(call(&session, "desk/note").await, (Outcome::Ok, None));
    host.close().await;
    let verified = Store::sqlite(&path).verify().await.unwrap();
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.calls, verified.unfinished), (1, 0));
}
