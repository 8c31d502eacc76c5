//! The audit's chain: what was changed, taken out, put in or moved is found, and what a killed writer leaves is none of
//! that.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aster_runtime::audit::{
    AuditSink, Commit, Fault, JsonLines, Record, Segments, Stage, Stats, Store, Verification,
};
use aster_runtime::call::{Check, Outcome};
use aster_runtime::{CallOptions, Host, HostSession, Profile, catalogue, mcp_server};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A desk.
#[mcp_server]
mod desk {
    use aster_runtime::mcp_tool;

    /// Adds two numbers.
    #[mcp_tool(tier = Standard)]
    pub(crate) fn add(a: i64, b: i64) -> i64 {
        a + b
    }

    /// Keeps a text.
    #[mcp_tool(tier = Elevated)]
    pub(crate) fn keep(text: String) -> String {
        text
    }
}

async fn session(audit: impl AuditSink + 'static) -> (Host, HostSession) {
    let host =
        Host::builder().catalogue(catalogue![desk::SERVER]).audit(Arc::new(audit)).build().await.unwrap();
    let session = host.session(Profile::new("clerk").project("p")).unwrap();
    (host, session)
}

async fn keep(session: &HostSession, text: &str) {
    let arguments = json!({"text": text}).as_object().cloned().unwrap();
    session.execute("desk/keep", arguments, CallOptions::default()).await;
}

/// Writes so many calls to this path, each two records, in segments of so many bytes.
async fn written(path: &Path, calls: usize, segments: Segments) {
    let (host, session) = session(JsonLines::with_segments(path, segments).unwrap()).await;
    for call in 0..calls {
        keep(&session, &format!("text {call}")).await;
    }
    host.close().await;
}

async fn verify(path: &Path) -> Verification {
    Store::json_lines(path).verify().await.unwrap()
}

fn faults(verification: &Verification) -> Vec<Fault> {
    verification.findings.iter().map(|finding| finding.fault.clone()).collect()
}

fn small() -> Segments {
    Segments { size: 4000, ..Segments::default() }
}

/// The files of the records, oldest first.
fn files(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
    files.sort_by_key(|path| (path.file_stem().unwrap() == "audit", path.clone()));
    files
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn write_lines(path: &Path, lines: &[String]) {
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

#[tokio::test]
async fn a_record_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (host, session) = session(JsonLines::open(&path).unwrap()).await;
    session.call(&json!({"action": "search", "query": "keep"})).await;
    session.call(&json!({"action": "describe", "name": "desk/keep"})).await;
    keep(&session, "a letter").await;
    session.call(&json!({"action": "execute", "name": "desk/none", "arguments": {}})).await;
    let mut entries: Vec<Value> = Vec::new();
    let mut store = Store::json_lines(&path);
    store.read(|entry| entries.push(serde_json::from_slice(entry.line()).unwrap())).await.unwrap();
    let pin =
        host.catalogue().tools().iter().find(|tool| tool.id().as_str() == "desk/keep").unwrap().digest();
    for entry in &mut entries {
        for field in ["time", "call_id", "session", "previous", "duration_ms", "error", "arguments_digest"] {
            if entry.get(field).is_some_and(|value| !value.is_null()) {
                entry[field] = json!("…");
            }
        }
        if entry.get("pin").is_some() {
            assert_eq!(entry["pin"], json!(pin));
            entry["pin"] = json!("…");
        }
    }
    let text: Vec<String> = entries.iter().map(Value::to_string).collect();
    insta::assert_snapshot!(text.join("\n"));
    assert!(verify(&path).await.is_intact());
    let stats = host.stats();
    assert_eq!((stats.searches, stats.described, stats.described_then_executed), (1, 1, 1));
    assert_eq!((stats.outcomes.get(Outcome::Ok), stats.denials.get(Check::Scope)), (1, 1));
}

#[tokio::test]
async fn what_is_refused_is_not_executed() {
    let host = Host::builder().catalogue(catalogue![desk::SERVER]).build().await.unwrap();
    let session = host.session(Profile::new("clerk").require_describe(true)).unwrap();
    let add = json!({"action": "execute", "name": "desk/add", "arguments": {"a": 1, "b": 2}});
    session.call(&json!({"action": "search", "query": "add numbers"})).await;
    session.call(&add).await;
    assert_eq!(session.session().search_counts().executed, 0, "it was not described");
    session.call(&json!({"action": "describe", "name": "desk/add"})).await;
    session.call(&json!({"action": "execute", "name": "desk/add", "arguments": {"a": "one"}})).await;
    assert_eq!(session.session().search_counts().executed, 0, "the arguments do not fit");
    session.call(&add).await;
    let counts = session.session().search_counts();
    assert_eq!((counts.described_then_executed, counts.executed_ranks[0]), (1, 1));
}

#[tokio::test]
async fn a_page_after_the_last_is_no_empty_search() {
    let host = Host::builder().catalogue(catalogue![desk::SERVER]).build().await.unwrap();
    let session = host.session(Profile::new("clerk")).unwrap();
    for (query, offset) in [("keep", 0), ("keep", 9), ("add numbers", 9)] {
        session.call(&json!({"action": "search", "query": query, "offset": offset})).await;
    }
    assert_eq!((host.stats().searches, host.stats().empty_searches), (3, 0));
    session.call(&json!({"action": "search", "query": "zebra", "offset": 9})).await;
    session.call(&json!({"action": "search", "query": "zebra"})).await;
    assert_eq!(host.stats().empty_searches, 2);
}

#[test]
fn counts_are_exposed_as_prometheus_reads_them() {
    let mut stats = Stats::default();
    let mut add = |mut record: Value| {
        for (field, value) in [("time", "2026-11-30T12:00:00Z"), ("session", "s"), ("agent", "a")] {
            record[field] = json!(value);
        }
        stats.add(&serde_json::from_value::<Record>(record).unwrap());
    };
    add(json!({"stage": "search", "found": 0}));
    add(json!({"stage": "search", "found": 2}));
    add(json!({"stage": "describe", "described": ["desk/keep", "desk/add"]}));
    add(json!({"stage": "intent", "tool": "desk/keep"}));
    add(json!({"stage": "outcome", "tool": "desk/keep", "outcome": "ok", "bytes": 10, "duration_ms": 5}));
    add(json!({"stage": "intent", "tool": "desk/keep"}));
    add(json!({
        "stage": "outcome", "tool": "desk/keep", "outcome": "failed", "error_kind": "unavailable", "bytes": 4,
        "duration_ms": 400_000,
    }));
    add(
        json!({"stage": "outcome", "tool": "desk/keep", "outcome": "denied", "decision": {"denied": "approval"}}),
    );
    add(json!({"stage": "outcome", "outcome": "denied", "decision": {"denied": "scope"}}));
    insta::assert_snapshot!(stats.prometheus());
}

#[tokio::test]
async fn segments_end_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    written(&path, 20, small()).await;
    // Another process goes on where the first one ended.
    written(&path, 20, small()).await;
    let files = files(folder.path());
    assert!(files.len() > 4, "{files:?}");
    let verified = verify(&path).await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.records, verified.calls, verified.unfinished), (80, 40, 0));
    assert_eq!(verified.chains.len(), 1);
    assert_eq!(verified.chains[0].segments as usize, files.len());
    assert_eq!((verified.chains[0].first, verified.chains[0].last), (1, 80));
}

#[tokio::test]
async fn retention_drops_whole_segments_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let segments = Segments { keep: Some(2), ..small() };
    for _ in 0..3 {
        written(&path, 30, segments).await;
    }
    let kept = files(folder.path());
    assert_eq!(kept.len(), 3, "{kept:?}");
    let verified = verify(&path).await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert!(verified.chains[0].first > 1);
    // What was dropped by anybody else is missed.
    fs::remove_file(&kept[0]).unwrap();
    assert!(matches!(faults(&verify(&path).await)[..], [Fault::Missing { first: 1, .. }]));
}

#[tokio::test]
async fn an_old_segment_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let segments = Segments { age: Some(Duration::ZERO), ..Segments::default() };
    written(&path, 3, segments).await;
    assert_eq!(files(folder.path()).len(), 6);
    assert!(verify(&path).await.is_intact());
}

#[tokio::test]
async fn each_writer_has_a_chain_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let first = JsonLines::open(&path).unwrap();
    let second = JsonLines::open(&path).unwrap();
    assert_eq!(second.path(), folder.path().join("audit-1.jsonl"));
    let ((_first, first), (_second, second)) = (session(first).await, session(second).await);
    tokio::join!(keep(&first, "a"), keep(&second, "b"));
    let verified = verify(&path).await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    assert_eq!((verified.chains.len(), verified.calls), (2, 2));
}

/// What can be done to a file of records, and what must be found.
#[derive(Debug, Clone, Copy)]
enum Tampering {
    Change,
    Remove,
    Repeat,
    Swap,
    Forge,
    Truncate,
    RemoveFile,
}

/// Does it to the line at this place of all lines, and says what has to be found, if anything can be.
fn tamper(folder: &Path, tampering: Tampering, at: usize) -> bool {
    let files = files(folder);
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (file, path) in files.iter().enumerate() {
        all.extend((0..lines(path).len()).map(|line| (file, line)));
    }
    let at = at % all.len();
    let (file, line) = all[at];
    let path = &files[file];
    let mut found = lines(path);
    match tampering {
        Tampering::Change => {
            let changed = found[line].replacen("clerk", "Clerk", 1);
            assert_ne!(changed, found[line]);
            found[line] = changed;
        }
        Tampering::Remove => drop(found.remove(line)),
        Tampering::Repeat => found.insert(line, found[line].clone()),
        Tampering::Swap => {
            if line + 1 == found.len() {
                return false;
            }
            found.swap(line, line + 1);
        }
        Tampering::Forge => {
            // As well made as it can be without changing what follows.
            let forged = found[line].replacen("clerk", "Clerk", 1);
            found.insert(line, forged);
        }
        Tampering::Truncate => found.truncate(line),
        Tampering::RemoveFile => {
            fs::remove_file(path).unwrap();
            return true;
        }
    }
    write_lines(path, &found);
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever is done to whichever record, the last one too: it is found, and what is left alone is not.
    #[test]
    fn no_tampering_goes_unseen(
        tampering in prop::sample::select(vec![
            Tampering::Change, Tampering::Remove, Tampering::Repeat, Tampering::Swap, Tampering::Forge,
            Tampering::Truncate, Tampering::RemoveFile,
        ]),
        at in any::<prop::sample::Index>(),
        calls in 1..12_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("audit.jsonl");
            written(&path, calls, small()).await;
            assert!(verify(&path).await.is_intact());
            if tamper(folder.path(), tampering, at.index(1 << 20)) {
                let found = verify(&path).await;
                assert!(!found.is_intact(), "{tampering:?}");
                // Whoever goes on writing does not cover it up.
                written(&path, 2, small()).await;
                assert!(!verify(&path).await.is_intact(), "{tampering:?}, and written on");
            }
        });
    }

    /// A writer may be killed after any byte: what is left is whole, and the next one goes on.
    #[test]
    fn a_line_that_was_not_finished_is_no_tampering(
        cut in any::<prop::sample::Index>(), line_feed in prop::bool::weighted(0.1),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("audit.jsonl");
            written(&path, 3, Segments::default()).await;
            let bytes = fs::read(&path).unwrap();
            let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
            // The head is noted after the line: at worst it tells of the one before.
            let head = folder.path().join("audit.head");
            fs::remove_file(&head).unwrap();
            let left = if line_feed { bytes.len() - 1 } else { last + cut.index(bytes.len() - last) };
            fs::write(&path, &bytes[..left]).unwrap();
            let torn = usize::from(left > last);
            let verified = verify(&path).await;
            assert!(verified.is_intact(), "{:?}", verified.findings);
            assert_eq!((verified.torn.len(), verified.calls, verified.unfinished), (torn, 2, 1));

            written(&path, 1, Segments::default()).await;
            let verified = verify(&path).await;
            assert!(verified.is_intact(), "{:?}", verified.findings);
            // Where only the line feed was missing, the line is whole.
            let whole = left + 1 == bytes.len();
            let expected = if whole { (0, 4, 0) } else { (torn, 3, 1) };
            assert_eq!((verified.torn.len(), verified.calls, verified.unfinished), expected);
            // What was torn is part of the chain: it cannot be put to other use.
            if torn > 0 && !whole {
                let mut found = lines(&path);
                let at = found.iter().position(|line| serde_json::from_str::<Value>(line).is_err()).unwrap();
                found[at].push(' ');
                write_lines(&path, &found);
                assert!(!verify(&path).await.is_intact());
            }
        });
    }
}

/// The first line after a rotation may be torn too, or garbled: everything that stands after it is read.
#[tokio::test]
async fn a_first_line_that_cannot_be_read_hides_no_other() {
    for torn in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        written(&path, 4, small()).await;
        let ended = files(folder.path()).len();
        assert!(ended > 1);
        // What a writer leaves that was killed in its first line after it ended a segment.
        fs::rename(&path, folder.path().join(format!("audit.{ended:06}.jsonl"))).unwrap();
        fs::write(&path, if torn { "{\"chain\":0,\"segm" } else { "" }).unwrap();
        written(&path, 2, Segments::default()).await;
        if !torn {
            let mut found = lines(&path);
            found[0].replace_range(..5, "#");
            write_lines(&path, &found);
        }
        let mut store = Store::json_lines(&path);
        let mut outcomes = 0;
        for more in [2, 1] {
            let count = |entry: aster_runtime::audit::Entry<'_>| {
                outcomes += usize::from(entry.record().is_some_and(|record| record.stage == Stage::Outcome));
            };
            store.read(count).await.unwrap();
            assert_eq!(outcomes, 4 + 2 + usize::from(more == 1), "torn: {torn}");
            written(&path, 1, Segments::default()).await;
        }
        let verified = verify(&path).await;
        assert_eq!((verified.is_intact(), verified.torn.len()), (torn, usize::from(torn)), "{verified:?}");
        if !torn {
            let sequence = verified.chains[0].last - 8 + 1;
            let expected = [Fault::Unreadable, Fault::Missing { chain: 0, first: sequence, last: sequence }];
            assert_eq!(faults(&verified)[..2], expected);
        }
    }
    // Nothing but such a line: nothing is passed twice.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    written(&path, 4, small()).await;
    fs::write(&path, "garbled\n").unwrap();
    let mut store = Store::json_lines(&path);
    for garbled in [1, 0] {
        let mut seen = 0;
        store.read(|entry| seen += usize::from(entry.line() == b"garbled")).await.unwrap();
        assert_eq!(seen, garbled);
    }
}

/// Retention drops the intent of a call that takes longer than its segment is kept.
#[tokio::test]
async fn a_call_that_outlives_its_intent_is_no_finding() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    written(&path, 1, Segments::default()).await;
    let found: Vec<Value> = lines(&path).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |record: &Value, segment: u64, seconds: i64| {
        let mut record = record.clone();
        let time: jiff::Timestamp = record["time"].as_str().unwrap().parse().unwrap();
        record["time"] = json!((time + jiff::SignedDuration::from_secs(seconds)).to_string());
        record["segment"] = json!(segment);
        record
    };
    let other = |record: &Value| {
        let mut record = record.clone();
        record["call_id"] = json!("");
        record["stage"] = json!("search");
        record
    };
    let mut chain = Forger::default();
    let first = chain.line(&found[0]);
    let dropped = json!({
        "chain": 0, "segment": 2, "time": at(&found[0], 2, 60)["time"], "note": "dropped", "before": 2,
        "digest": blake3::hash(first.as_bytes()).to_hex().to_string(),
    });
    let kept = [
        chain.line(&at(&other(&found[0]), 2, 60)),
        chain.line(&dropped),
        // Two segments later.
        chain.line(&at(&other(&found[0]), 3, 90)),
        chain.line(&at(&found[1], 4, 120)),
    ];
    let path = folder.path().join("kept.jsonl");
    write_lines(&path, &kept);
    let verified = verify(&path).await;
    assert!(verified.is_intact(), "{:?}", verified.findings);
    // One that began only after what is kept began has had its intent there.
    let mut late = at(&found[1], 2, 120);
    late["call_id"] = json!(uuid::Uuid::new_v7(uuid::Timestamp::now(uuid::NoContext)).to_string());
    let mut chain = Forger::default();
    let first = chain.line(&found[0]);
    let mut dropped = dropped.clone();
    dropped["digest"] = json!(blake3::hash(first.as_bytes()).to_hex().to_string());
    let early = at(&other(&found[0]), 2, -60);
    let kept = [chain.line(&early), chain.line(&dropped), chain.line(&late)];
    write_lines(&path, &kept);
    let call_id = late["call_id"].as_str().unwrap().to_owned();
    assert_eq!(faults(&verify(&path).await).last(), Some(&Fault::NoIntent { call_id }));
}

#[tokio::test]
async fn what_was_found_before_must_still_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    written(&path, 4, small()).await;
    let before = verify(&path).await.chains;
    written(&path, 4, small()).await;
    let verified = Store::json_lines(&path).verify_against(&before).await.unwrap();
    assert!(verified.is_intact(), "{:?}", verified.findings);
    // All made anew, with everything that lies beside it.
    for entry in fs::read_dir(folder.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    written(&path, 8, small()).await;
    assert!(verify(&path).await.is_intact());
    let verified = Store::json_lines(&path).verify_against(&before).await.unwrap();
    assert!(matches!(faults(&verified)[..], [Fault::Changed { sequence: 8, .. }]), "{:?}", verified.findings);
}

#[tokio::test]
async fn a_call_without_its_intent_or_with_two_outcomes_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    written(&path, 1, Segments::default()).await;
    let found = lines(&path);
    let outcome: Value = serde_json::from_str(&found[1]).unwrap();
    let call_id = outcome["call_id"].as_str().unwrap().to_owned();
    let mut chain = Forger::default();
    let mut forged = vec![chain.line(&outcome)];
    let path = folder.path().join("without.jsonl");
    write_lines(&path, &forged);
    assert_eq!(faults(&verify(&path).await), [Fault::NoIntent { call_id: call_id.clone() }]);
    let intent: Value = serde_json::from_str(&found[0]).unwrap();
    forged = vec![chain.again(&intent), chain.line(&outcome), chain.line(&outcome)];
    write_lines(&path, &forged);
    assert_eq!(faults(&verify(&path).await), [Fault::Repeated { call_id }]);
}

/// Makes a chain anew, as anybody can.
#[derive(Default)]
struct Forger {
    sequence: u64,
    previous: Option<String>,
}

impl Forger {
    fn line(&mut self, record: &Value) -> String {
        let mut record = record.clone();
        self.sequence += 1;
        record["sequence"] = json!(self.sequence);
        record["previous"] = json!(self.previous);
        let line = record.to_string();
        self.previous = Some(blake3::hash(line.as_bytes()).to_hex().to_string());
        line
    }

    fn again(&mut self, record: &Value) -> String {
        *self = Self::default();
        self.line(record)
    }
}

#[tokio::test]
async fn a_reader_passes_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut store = Store::json_lines(&path);
    let mut seen = Vec::new();
    for calls in [0, 1, 9, 0, 3] {
        written(&path, calls, small()).await;
        let mut new = 0;
        let visit = |entry: aster_runtime::audit::Entry<'_>| {
            let record: Record = entry.record().unwrap();
            new += usize::from(record.stage == Stage::Outcome);
            seen.push(entry.line().to_vec());
        };
        store.read(visit).await.unwrap();
        assert_eq!(new, calls);
    }
    assert_eq!(seen.len(), 26);
    let unique: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn where_nothing_can_be_written_nothing_beyond_standard_is_called() {
    // The one device that is always full.
    let audit = JsonLines::open("/dev/full").unwrap();
    let (_host, session) = session(audit).await;
    let arguments = json!({"text": "t"}).as_object().cloned().unwrap();
    let completed = session.execute("desk/keep", arguments, CallOptions::default()).await;
    assert_eq!(completed.denied, Some(Check::Audit));
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_is_taken_away_takes_no_later_record_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (host, session) = session(JsonLines::open(&path).unwrap()).await;
    keep(&session, "first").await;
    fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    keep(&session, "second").await;
    fs::remove_file(&path).unwrap();
    keep(&session, "third").await;
    assert_eq!(lines(&path).len(), 2);
    let verified = verify(&path).await;
    assert_eq!(faults(&verified), [Fault::Missing { chain: 0, first: 1, last: 4 }]);

    // Where there can be none, nothing beyond Standard is called.
    fs::remove_dir_all(folder.path()).unwrap();
    let arguments = json!({"text": "t"}).as_object().cloned().unwrap();
    let completed = session.execute("desk/keep", arguments, CallOptions::default()).await;
    assert_eq!(completed.denied, Some(Check::Audit));
    host.close().await;
}

/// An audit whose folder is emptied while it is written: no two processes write one chain after it.
#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_is_emptied_leaves_every_writer_a_chain_of_its_own() {
    for another_comes_first in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let (host, first) = session(JsonLines::open(&path).unwrap()).await;
        keep(&first, "gone").await;
        for entry in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        if !another_comes_first {
            keep(&first, "first").await;
        }
        let (other_host, other) = session(JsonLines::open(&path).unwrap()).await;
        for text in ["one", "two"] {
            keep(&other, text).await;
            keep(&first, text).await;
        }
        host.close().await;
        other_host.close().await;
        let verified = verify(&path).await;
        let lasts: Vec<(u32, u64)> = verified.chains.iter().map(|chain| (chain.chain, chain.last)).collect();
        if another_comes_first {
            assert_eq!(faults(&verified), []);
            assert_eq!(lasts, [(0, 4), (1, 4)]);
        } else {
            assert_eq!(faults(&verified), [Fault::Missing { chain: 0, first: 1, last: 2 }]);
            assert_eq!(lasts, [(0, 8), (1, 4)]);
        }
    }
}

/// A store that never says whether it keeps what it is given.
struct Hangs;

impl AuditSink for Hangs {
    fn write(&self, _: &Record) -> io::Result<()> {
        Ok(())
    }

    fn commit(&self, _: &Record) -> Commit {
        Commit::Pending(Box::pin(std::future::pending()))
    }

    fn flush(&self) -> Commit {
        Commit::Pending(Box::pin(std::future::pending()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_one_that_keeps_nothing() {
    let (host, session) = session(Hangs).await;
    let arguments = json!({"text": "t", "a": 1, "b": 2}).as_object().cloned().unwrap();
    for (tool, drop, expected) in [
        ("desk/keep", ["a", "b"].as_slice(), (Outcome::Denied, Some(Check::Audit))),
        ("desk/add", &["text"], (Outcome::Ok, None)),
    ] {
        let mut arguments = arguments.clone();
        arguments.retain(|name, _| !drop.contains(&name.as_str()));
        let call = session.execute(tool, arguments, CallOptions::default());
        let completed = tokio::time::timeout(Duration::from_secs(300), call).await.unwrap();
        assert_eq!((completed.outcome, completed.denied), expected, "{tool}");
    }
    tokio::time::timeout(Duration::from_secs(300), host.close()).await.unwrap();
    // It may still keep them, and would count those that it does not.
    assert_eq!(host.stats().lost_records, 0);
}

/// Counts what is logged as an error.
#[derive(Clone, Default)]
struct Errors(Arc<AtomicUsize>);

impl tracing::Subscriber for Errors {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn a_segment_that_ends_replaces_no_file() {
    let errors = Errors::default();
    let _listening = tracing::subscriber::set_default(errors.clone());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (host, session) = session(JsonLines::with_segments(&path, small()).unwrap()).await;
    let restored = folder.path().join("audit.000001.jsonl");
    fs::write(&restored, "restored\n").unwrap();
    for text in 0..12 {
        keep(&session, &format!("text {text}")).await;
    }
    assert_eq!(lines(&restored), ["restored"]);
    assert_eq!(lines(&path).len(), 24);
    // Which is said once, and not with every record.
    assert_eq!(errors.0.load(Ordering::SeqCst), 1);
    // Once it is out of the way, the segment ends.
    fs::remove_file(&restored).unwrap();
    keep(&session, "last").await;
    host.close().await;
    assert_eq!(lines(&restored).len(), 24);
    assert_eq!(faults(&verify(&path).await), []);
}
