//! External servers over standard input and output, against a server that misbehaves on demand.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aster_runtime::call::{Check, Outcome};
use aster_runtime::catalogue::{ExternalSettings, Health, Listing};
use aster_runtime::dispatch::{DispatchError, Upstream};
use aster_runtime::gate::approval::{Approval, ApprovalRequest, Approver};
use aster_runtime::pins::{PinError, PinStore, ServerPins};
use aster_runtime::tool::ClientLink;
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{
    CallOptions, Host, JsonObject, LogLevel, Profile, Session, Tier, ToolContext, ToolResult,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// Longer than anything here takes, and short enough to see that something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn fake<const N: usize>(switches: [&str; N]) -> StdioServer {
    StdioServer::new("fake", env!("CARGO_BIN_EXE_fake_server")).args(switches)
}

/// Starts a server and waits until it is known how it does.
async fn start(server: StdioServer) -> (Arc<StdioUpstream>, Arc<Listing>) {
    let upstream = StdioUpstream::spawn(server);
    let listing = listing_when(&upstream, |listing| listing.health != Health::Starting).await;
    (upstream, listing)
}

async fn listing_when(upstream: &StdioUpstream, wanted: impl FnMut(&Arc<Listing>) -> bool) -> Arc<Listing> {
    let mut listing = upstream.listing();
    within(async { listing.wait_for(wanted).await.expect("the supervisor runs").clone() }).await
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not hang")
}

fn context() -> ToolContext {
    ToolContext::new(Arc::new(Session::new(Profile::new("test"))), "call")
}

async fn call(upstream: &StdioUpstream, tool: &str, arguments: Value) -> Result<ToolResult, DispatchError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    within(upstream.call(tool, arguments, context())).await
}

async fn text(upstream: &StdioUpstream, tool: &str, arguments: Value) -> String {
    call(upstream, tool, arguments).await.expect("the call succeeds").to_text()
}

async fn stats(upstream: &StdioUpstream) -> Value {
    serde_json::from_str(&text(upstream, "stats", json!({})).await).expect("statistics are JSON")
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

fn down(listing: &Listing) -> &str {
    let Health::Down(reason) = &listing.health else { panic!("the server is {}", listing.health) };
    reason
}

#[tokio::test]
async fn a_server_is_listed_and_called() {
    let (upstream, listing) = start(fake([])).await;
    assert_eq!(listing.health, Health::Ready);
    assert_eq!(names(&listing), ["echo", "stats"]);
    assert_eq!(listing.title.as_deref(), Some("Fake server"));
    assert_eq!(listing.instructions.as_deref(), Some("Do not trust it."));
    assert_eq!(listing.protocol.as_deref(), Some("2025-11-25"));
    assert_eq!(text(&upstream, "echo", json!({"z": 1, "a": [2.5]})).await, r#"{"z":1,"a":[2.5]}"#);
    within(upstream.close()).await;
    assert_eq!(down(&upstream.listing().borrow()), "it has been closed");
    let error = call(&upstream, "echo", json!({})).await.expect_err("it is closed");
    assert!(matches!(error, DispatchError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn both_eras_and_what_lies_between() {
    for (switches, protocol) in [
        (["--modern", ""], "2026-07-28"),
        (["--version=2024-11-05", ""], "2024-11-05"),
        (["--exit-on-discover", ""], "2025-11-25"),
        (["--sloppy", ""], "2024-11-05"),
        (["--modern", "--banner"], "2026-07-28"),
    ] {
        let (upstream, listing) = start(fake(switches)).await;
        assert_eq!(listing.protocol.as_deref(), Some(protocol), "{switches:?}: {}", listing.health);
        assert_eq!(text(&upstream, "echo", json!({})).await, "{}", "{switches:?}");
        within(upstream.close()).await;
    }
}

#[tokio::test]
async fn noise_is_skipped_kept_for_diagnosis_and_never_answered() {
    let (upstream, listing) = start(fake(["--banner", "--junk", "--stderr-flood"])).await;
    assert_eq!(listing.health, Health::Ready);
    assert_eq!(text(&upstream, "echo", json!({"a": 1})).await, r#"{"a":1}"#);
    let output = upstream.recent_output();
    assert!(output.iter().any(|line| line == "Fake server 1.0"), "{output:?}");
    assert!(output.iter().any(|line| line == "DEBUG received something"), "{output:?}");
    assert!(output.iter().all(|line| line.chars().count() <= 500));
    // `server/discover`, `initialize`, `notifications/initialized`, `tools/list`, and the two calls.
    assert_eq!(stats(&upstream).await["received"], 6);
}

#[tokio::test]
async fn lists_are_read_page_by_page_and_end() {
    for (pages, expected) in [
        ("--pages=three", vec!["page-0", "page-1", "page-2"]),
        ("--pages=constant", vec!["page-0", "page-7"]),
        ("--pages=endless", vec!["same"]),
        ("--pages=empty-cursor", vec!["only"]),
        ("--pages=breaks-off", vec!["first"]),
    ] {
        let (upstream, listing) = start(fake([pages])).await;
        assert_eq!(names(&listing), expected, "{pages}");
        within(upstream.close()).await;
    }
}

#[tokio::test]
async fn a_list_that_is_none_is_a_reason() {
    let (_upstream, listing) = start(fake(["--list-not-array"])).await;
    assert!(down(&listing).contains("its list of tools is no array"), "{}", listing.health);
    assert!(listing.tools.is_empty());
}

#[tokio::test]
async fn malformed_tools_arrive_as_they_were_sent() {
    let (_upstream, listing) = start(fake(["--malformed"])).await;
    assert_eq!(listing.tools.len(), 7);
    assert_eq!(listing.tools[3], json!({"name": "null-schema", "inputSchema": null}));
    assert_eq!(listing.tools[5], json!("not even an object"));
    assert_eq!(listing.tools[6]["priority"], json!(0.9));
    assert_eq!(listing.tools[6]["execution"], json!({"x": 1}));
}

#[tokio::test]
async fn captured_lists_keep_every_field_in_its_place() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools");
    let mut lists = 0;
    for entry in std::fs::read_dir(directory).expect("the captured lists are there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        lists += 1;
        let captured: Vec<Value> =
            serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("a list");
        for era in ["--modern", ""] {
            let (upstream, listing) = start(fake([&format!("--tools={}", path.display()), era])).await;
            // As text too, since values are equal whatever the order of their fields.
            assert_eq!(json!(listing.tools).to_string(), json!(captured).to_string(), "{}", path.display());
            within(upstream.close()).await;
        }
    }
    assert_eq!(lists, 3);
}

#[tokio::test]
async fn results_pass_unchanged() {
    let (upstream, _) = start(fake([])).await;
    for result in [
        json!({"content": [{"type": "hologram", "data": "x"}], "vendor": {"b": 1, "a": 2}}),
        json!({"content": [{"type": "text", "text": "a", "annotations": {"audience": ["system"], "priority": 0.9}}]}),
        json!({"tools": [], "contents": [], "content": [{"type": "image"}], "structuredContent": [1, null]}),
        json!({"isError": true, "structuredContent": 18_446_744_073_709_551_615_u64}),
        json!({}),
    ] {
        let raw = result.to_string();
        let answer = call(&upstream, "raw", json!({"result": raw})).await.expect("it is a result");
        assert_eq!(answer.into_value().to_string(), raw);
    }
    assert_eq!(call(&upstream, "raw", json!({"result": "null"})).await.expect("text").to_text(), "null");
    let floats = "[0.1,1e-7,2.2250738585072014e-308,123456789.12345679,5e-324]";
    let answer =
        call(&upstream, "raw", json!({"result": format!("{{\"x\":{floats}}}")})).await.expect("a result");
    assert_eq!(answer.as_object()["x"].to_string(), floats);
}

#[tokio::test]
async fn replies_that_cannot_be_read_fail_their_call_alone() {
    let (upstream, _) = start(fake([])).await;
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    for unreadable in [deep.as_str(), "1e999", r#"{"a": "\ud800"}"#] {
        let error = call(&upstream, "raw", json!({"result": unreadable})).await.expect_err("unreadable");
        assert!(matches!(error, DispatchError::Protocol { code: -32700, .. }), "{error}");
    }
    assert_eq!(text(&upstream, "split", json!({})).await, "é — 🦀");
    assert_eq!(text(&upstream, "latin-1", json!({})).await, "caf\u{fffd}");
    assert_eq!(text(&upstream, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn what_the_server_asks_for_is_no_result() {
    let (upstream, _) = start(fake(["--modern"])).await;
    let result = json!({"resultType": "input_required", "inputRequests": {}}).to_string();
    let error = call(&upstream, "raw", json!({"result": result})).await.expect_err("a question");
    assert!(error.to_string().contains("input_required"), "{error}");
}

#[tokio::test]
async fn protocol_errors_are_shown_safely() {
    let (upstream, _) = start(fake([]).env("TOKEN", "hunter2-hunter2")).await;
    let message = format!("bad\u{1b}[2J\n- forged {} hunter2-hunter2", "x".repeat(10_000));
    let error =
        call(&upstream, "refuse", json!({"code": -32602, "message": message})).await.expect_err("refused");
    let DispatchError::Protocol { code, message } = error else { panic!("{error}") };
    assert_eq!(code, -32602);
    assert!(message.starts_with("bad[2J - forged") && message.chars().count() <= 2_000, "{message}");
    let error =
        call(&upstream, "refuse", json!({"message": "key hunter2-hunter2"})).await.expect_err("refused");
    assert!(error.to_string().contains("key [redacted]"), "{error}");
}

#[tokio::test]
async fn calls_to_one_server_do_not_wait_for_each_other() {
    let (upstream, _) = start(fake([])).await;
    let waiting = call(&upstream, "wait", json!({"gate": "a"}));
    let opening = async {
        for _ in 0..100 {
            text(&upstream, "echo", json!({})).await;
        }
        text(&upstream, "open", json!({"gate": "a"})).await
    };
    let (waited, opened) = tokio::join!(waiting, opening);
    assert_eq!((waited.expect("it went on").to_text(), opened), ("a".to_owned(), "opened".to_owned()));
}

type Report = (f64, Option<f64>, Option<String>);

#[derive(Default)]
struct Client(Mutex<Vec<Report>>);

impl ClientLink for Client {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        self.0.lock().expect("unpoisoned").push((done, total, message.map(str::to_owned)));
    }

    fn log(&self, _: LogLevel, _: &str) {}
}

#[tokio::test]
async fn progress_reaches_the_caller_in_order_and_before_the_result() {
    let (upstream, _) = start(fake([])).await;
    for _ in 0..20 {
        let client = Arc::new(Client::default());
        let context = context().with_client(Some(client.clone()));
        let result =
            within(upstream.call("progress", serde_json::Map::new(), context)).await.expect("a result");
        assert_eq!(result.to_text(), "done");
        let step = |step: f64| (step, Some(3.0), Some(format!("step {step}")));
        assert_eq!(*client.0.lock().expect("unpoisoned"), [step(1.0), step(2.0), step(3.0)]);
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_on_the_server() {
    let (upstream, _) = start(fake([])).await;
    let abandoned = upstream.call("wait", serde_json::Map::new(), context());
    // The server answers this one only when the other has been cancelled; until then the select drops neither.
    let watcher = call(&upstream, "open", json!({"gate": "unrelated"}));
    tokio::select! {
        biased;
        _ = abandoned => panic!("nobody opens this gate"),
        opened = watcher => assert_eq!(opened.expect("a result").to_text(), "opened"),
    }
    assert_eq!(text(&upstream, "cancelled", json!({})).await, "cancelled");
    assert_eq!(stats(&upstream).await["cancelled"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn an_unanswered_call_times_out_and_is_cancelled() {
    let (upstream, _) = start(fake([]).call_timeout(Duration::from_secs(1))).await;
    let error = call(&upstream, "wait", json!({"gate": "never"})).await.expect_err("no answer");
    assert_eq!(error, DispatchError::TimedOut { limit: Duration::from_secs(1) });
    assert_eq!(text(&upstream, "cancelled", json!({})).await, "cancelled");
}

#[tokio::test]
async fn a_server_that_never_answers_is_down_within_its_start_up_deadline() {
    let (upstream, listing) =
        start(fake(["--mute", "--banner"]).startup_timeout(Duration::from_secs(1))).await;
    assert!(down(&listing).starts_with("it did not list its tools within 1 s"), "{}", listing.health);
    within(upstream.close()).await;
}

#[tokio::test]
async fn one_server_that_hangs_delays_no_other() {
    let hung = StdioUpstream::spawn(fake(["--mute"]));
    let (_healthy, listing) = start(fake([])).await;
    assert_eq!(listing.health, Health::Ready);
    assert_eq!(hung.listing().borrow().health, Health::Starting);
}

#[tokio::test]
async fn what_cannot_be_started_says_so() {
    for (server, expected) in [
        (StdioServer::new("s", "no-such-program"), "cannot run `no-such-program`: it is not found on PATH"),
        (StdioServer::new("s", "/no/such/program"), "there is no such file"),
        (fake([]).cwd("/no/such/directory"), "its working directory `/no/such/directory` is no directory"),
        (
            fake(["--fail-unless-exists=/no/such/file"]),
            "exit status: 7); it wrote: Error: the file is missing",
        ),
    ] {
        let (_upstream, listing) = start(server).await;
        assert!(down(&listing).contains(expected), "{}", listing.health);
    }
}

#[tokio::test]
async fn pending_calls_fail_when_the_server_dies_and_the_next_call_starts_it_again() {
    // Only a call starts it again.
    let (upstream, before) = start(fake([]).restart_delay(Duration::from_secs(3_600))).await;
    let (pending, dying) = tokio::join!(
        call(&upstream, "wait", json!({"gate": "never"})),
        call(&upstream, "die", json!({"words": "Error: out of \u{1b}[31mcheese"})),
    );
    for failed in [pending, dying] {
        let Err(DispatchError::Unavailable { server, reason }) = failed else { panic!("{failed:?}") };
        assert_eq!(server, "fake");
        assert_eq!(reason, "it ended (exit status: 3); it wrote: Error: out of [31mcheese");
    }
    let listing = listing_when(&upstream, |listing| listing.health != Health::Ready).await;
    assert!(down(&listing).contains("cheese"));
    assert_eq!(listing.tools, before.tools, "a call can still name them");

    assert_eq!(text(&upstream, "echo", json!({})).await, "{}");
    listing_when(&upstream, |listing| listing.health == Health::Ready).await;
    // `initialize`, `notifications/initialized`, `tools/list` and the two calls: its era is remembered.
    assert_eq!(stats(&upstream).await["received"], 5);
}

#[tokio::test]
async fn a_server_that_fails_is_started_again_without_being_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("now");
    let server = fake([&format!("--fail-unless-exists={}", file.display())]);
    let (upstream, listing) = start(server.restart_delay(Duration::from_millis(10))).await;
    down(&listing);
    std::fs::write(file, "").expect("written");
    listing_when(&upstream, |listing| listing.health == Health::Ready).await;
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone_until_it_is_called() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("starts");
    let starts = || std::fs::read_to_string(&file).unwrap_or_default().lines().count();
    let server = fake([&format!("--count-starts={}", file.display()), "--fail-unless-exists=/no/such/file"]);
    let (upstream, _) = start(server.restart_delay(Duration::from_millis(1))).await;
    // Five restarts after the first start, and each tries both handshakes.
    within(async {
        while starts() < 12 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    call(&upstream, "echo", json!({})).await.expect_err("it fails again");
    assert!(starts() <= 14, "{} starts", starts());
}

#[tokio::test]
async fn a_call_waits_for_a_server_that_is_starting() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("now");
    let upstream = StdioUpstream::spawn(fake([&format!("--start-when-exists={}", file.display())]));
    let starting = async { std::fs::write(&file, "").expect("written") };
    let (answer, ()) = within(async { tokio::join!(call(&upstream, "echo", json!({})), starting) }).await;
    assert_eq!(answer.expect("it has started").to_text(), "{}");
}

#[tokio::test]
async fn a_line_beyond_the_cap_ends_the_server_with_a_reason() {
    let (upstream, _) = start(fake([])).await;
    let error = call(&upstream, "oversize", json!({})).await.expect_err("no result");
    assert!(error.to_string().contains("a line of more than 16 MiB"), "{error}");
    assert_eq!(text(&upstream, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn the_last_line_needs_no_line_feed() {
    let (upstream, _) = start(fake([])).await;
    assert_eq!(text(&upstream, "last-words", json!({})).await, "farewell");
}

#[tokio::test]
async fn changes_of_the_list_are_gathered_and_told() {
    for era in ["--modern", ""] {
        let (upstream, _) = start(fake([era])).await;
        if era == "--modern" {
            within(async { while stats(&upstream).await["subscribed"] != true {} }).await;
        }
        text(&upstream, "change", json!({"times": 200})).await;
        let listing = listing_when(&upstream, |listing| listing.tools.len() == 3).await;
        assert_eq!(names(&listing), ["echo", "stats", "extra-0"]);
        let lists = stats(&upstream).await["lists"].as_u64().expect("a number");
        assert!((2..=3).contains(&lists), "{lists} readings, of which one at the start");
    }
}

#[tokio::test]
async fn a_change_that_changes_nothing_is_not_told() {
    let (upstream, _) = start(fake(["--pages=three"])).await;
    let mut listing = upstream.listing();
    listing.borrow_and_update();
    text(&upstream, "change", json!({})).await;
    // Six pages are two readings.
    within(async { while stats(&upstream).await["lists"] != 6 {} }).await;
    within(upstream.close()).await;
    within(listing.changed()).await.expect("the closing is told");
    assert!(matches!(listing.borrow_and_update().health, Health::Down(_)), "nothing was told before it");
}

#[tokio::test]
async fn the_servers_own_requests_are_answered() {
    let (upstream, _) = start(fake([])).await;
    let ask = async |method: &str, params: Value| -> Value {
        let answer = text(&upstream, "ask", json!({"method": method, "params": params})).await;
        serde_json::from_str(&answer).expect("an answer is JSON")
    };
    assert_eq!(ask("ping", json!({})).await["result"], json!({}));
    assert_eq!(ask("ping", json!(null)).await["result"], json!({}));
    let sampling = json!({"messages": [], "maxTokens": 1});
    assert_eq!(ask("sampling/createMessage", sampling).await["error"]["code"], -32601);
    assert_eq!(ask("sampling/createMessage", json!({"malformed": true})).await["error"]["code"], -32601);
    assert_eq!(ask("no/such/method", json!(null)).await["error"]["code"], -32601);
}

#[tokio::test]
async fn the_environment_is_scrubbed() {
    let (upstream, _) = start(fake([]).env("GIVEN", "value")).await;
    let environment: BTreeMap<String, String> =
        serde_json::from_str(&text(&upstream, "environment", json!({})).await).expect("a map");
    assert_eq!(environment.get("GIVEN").map(String::as_str), Some("value"));
    // Cargo sets these for every test.
    let leaked: Vec<_> = environment.keys().filter(|name| name.starts_with("CARGO")).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    assert!(environment.contains_key("PATH"));
}

#[cfg(target_os = "linux")]
mod processes {
    use super::*;
    use std::io::Write;
    use tokio::io::{AsyncBufReadExt, BufReader};

    /// Whether the process is there and no zombie.
    fn is_alive(pid: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    }

    async fn until_gone(pid: &str) {
        within(async {
            while is_alive(pid) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    #[tokio::test]
    async fn grandchildren_that_ignore_signals_end_with_the_server() {
        // Once where the server ends by itself, once where it has to be killed, once without being closed.
        for (switches, close) in [([""], true), (["--stay"], true), (["--stay"], false)] {
            let (upstream, _) = start(fake(switches)).await;
            let pid = text(&upstream, "grandchild", json!({})).await;
            assert!(is_alive(&pid));
            if close {
                within(upstream.close()).await;
            } else {
                drop(upstream);
            }
            until_gone(&pid).await;
        }
    }

    /// No test: the host that `nothing_outlives_a_host_that_is_killed` kills.
    #[tokio::test]
    #[ignore = "runs until it is killed"]
    async fn host_to_be_killed() {
        let (upstream, _) = start(fake(["--stay"])).await;
        let pid = text(&upstream, "grandchild", json!({})).await;
        std::fs::write(std::env::var_os("PID_FILE").expect("where to write"), pid).expect("written");
        writeln!(std::io::stdout(), "\nready").expect("written");
        std::future::pending::<()>().await;
    }

    #[tokio::test]
    async fn nothing_outlives_a_host_that_is_killed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pid");
        let mut host = tokio::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--ignored", "--exact", "--nocapture", "processes::host_to_be_killed"])
            .env("PID_FILE", &file)
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("it runs");
        let mut output = BufReader::new(host.stdout.take().expect("a pipe")).lines();
        within(async { while output.next_line().await.expect("output").expect("a line") != "ready" {} })
            .await;
        let pid = std::fs::read_to_string(&file).expect("the host has written it");
        assert!(is_alive(&pid));
        host.kill().await.expect("killed");
        until_gone(&pid).await;
    }

    #[tokio::test]
    async fn a_server_whose_child_holds_its_output_open_is_seen_to_have_ended() {
        let (upstream, _) = start(fake([])).await;
        let error = call(&upstream, "abandon", json!({})).await.expect_err("it ended");
        assert!(error.to_string().contains("it ended (exit status: 0)"), "{error}");
    }
}

/// Pins in memory.
#[derive(Default)]
struct Memory(Mutex<ServerPins>);

impl PinStore for Memory {
    fn read(&self, _: &str) -> Result<ServerPins, PinError> {
        Ok(self.0.lock().expect("not poisoned").clone())
    }

    fn update(&self, _: &str, change: &mut dyn FnMut(&mut ServerPins)) -> Result<(), PinError> {
        change(&mut self.0.lock().expect("not poisoned"));
        Ok(())
    }

    fn modified(&self, _: &str) -> Option<SystemTime> {
        None
    }
}

/// A server that ends while it is asked about a call of it, and has other tools when it comes back.
struct Exchanges {
    upstream: Arc<StdioUpstream>,
    tools: PathBuf,
}

impl Exchanges {
    /// Its tools, of which `echo` says this of itself.
    fn list(tools: &Path, echo: &str) {
        let tools_now = json!([
            {"name": "echo", "description": echo, "inputSchema": {"type": "object"}},
            {"name": "stats", "description": "Counts.", "inputSchema": {"type": "object"}},
        ]);
        std::fs::write(tools, tools_now.to_string()).expect("written");
    }

    async fn exchange(&self) {
        let _ = call(&self.upstream, "die", json!({"words": "bye"})).await;
        listing_when(&self.upstream, |listing| matches!(listing.health, Health::Down(_))).await;
        Self::list(&self.tools, "Echoes, and sends it on.");
    }
}

impl Approver for Exchanges {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            self.exchange().await;
            Approval::once("a human")
        })
    }
}

#[tokio::test]
async fn a_server_that_comes_back_with_another_tool_is_not_called() {
    for tier in [Tier::Standard, Tier::Restricted] {
        let directory = tempfile::tempdir().expect("a directory");
        let tools = directory.path().join("tools.json");
        Exchanges::list(&tools, "Echoes.");
        let server = fake([&format!("--tools={}", tools.display())])
            .restart_delay(Duration::from_secs(3_600))
            .settings(ExternalSettings::default().tier(tier));
        let (upstream, _) = start(server).await;
        let exchanges = Arc::new(Exchanges { upstream: Arc::clone(&upstream), tools: tools.clone() });
        let host = Host::builder()
            .with_upstream(Arc::clone(&upstream) as Arc<dyn Upstream>)
            .pins(Arc::new(Memory::default()))
            .approver(Arc::clone(&exchanges) as Arc<dyn Approver>)
            .build()
            .await
            .expect("a host");
        let session = host.session(Profile::new("test")).expect("a session");
        if tier == Tier::Standard {
            let echoed =
                within(session.execute("fake/echo", JsonObject::new(), CallOptions::default())).await;
            assert_eq!(echoed.result.to_text(), "{}");
            exchanges.exchange().await;
        }
        let called = within(session.execute("fake/echo", JsonObject::new(), CallOptions::default())).await;
        assert_eq!(called.denied, Some(Check::Changed), "{}", called.result.to_text());
        // It came back, and was not called: `initialize`, `notifications/initialized`, `tools/list` and this call.
        assert_eq!(stats(&upstream).await["received"], 4);
        // What has not changed is called as ever.
        if tier == Tier::Standard {
            exchanges.exchange().await;
            let stats =
                within(session.execute("fake/stats", JsonObject::new(), CallOptions::default())).await;
            assert_eq!(stats.outcome, Outcome::Ok, "{}", stats.result.to_text());
        }
        within(host.close()).await;
    }
}

#[tokio::test]
async fn a_call_is_not_sent_to_a_server_that_lists_something_else_than_what_decided_it() {
    let (upstream, listing) = start(fake([])).await;
    let arguments = JsonObject::new;
    let sent = within(upstream.call_as_listed(&listing, "echo", arguments(), context())).await;
    assert_eq!(sent.expect("it is as listed").to_text(), "{}");
    let other = Arc::new(Listing { tools: Vec::new(), ..Listing::clone(&listing) });
    let sent = within(upstream.call_as_listed(&other, "echo", arguments(), context())).await;
    let Err(DispatchError::Unavailable { reason, .. }) = sent else { panic!("{sent:?}") };
    assert!(reason.contains("changed after the call was decided"), "{reason}");
}
