//! What the benches share: load from several callers, the two ends of a call, and ratios to paste into the README.
#![allow(dead_code, reason = "not every bench uses all of it")]

pub(crate) mod tools;

use std::cell::RefCell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use aster_runtime::audit::JsonLines;
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{Host, HostSession, NativeCatalogue, Profile};
use criterion::Criterion;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{Peer, RunningService};
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};

/// How long servers may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// What all calls say.
pub(crate) const TEXT: &str = "The quick brown fox jumps over the lazy dog.";

/// The server that all calls go to.
pub(crate) const ECHO_SERVER: &str = env!("CARGO_BIN_EXE_echo_server");

/// The runtime that a host has by default.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("threads can be started")
}

/// How long `callers` take who each make `calls` calls, one after the other.
pub(crate) async fn load<C, F>(callers: u64, calls: u64, call: C) -> Duration
where
    C: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let start = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                for _ in 0..calls {
                    call().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a call is answered");
    }
    start.elapsed()
}

/// A session whose one external server is `ECHO_SERVER`, as the command would make it: with its audit in a file.
pub(crate) async fn session(natives: NativeCatalogue, scratch: &Path) -> Arc<HostSession> {
    let audit = JsonLines::open(scratch.join("audit.jsonl")).expect("the audit can be opened");
    let host = Host::builder()
        .catalogue(natives)
        .with_upstream(StdioUpstream::spawn(StdioServer::new("bench", ECHO_SERVER)))
        .audit(Arc::new(audit))
        .build()
        .await
        .expect("a host");
    assert!(host.settle(PATIENCE).await, "the server starts");
    Arc::new(host.session(Profile::new("bench")).expect("a session"))
}

/// The arguments of the bridge for a call of this tool.
pub(crate) fn bridge_call(id: &str) -> Value {
    json!({"action": "execute", "name": id, "arguments": {"text": TEXT}})
}

/// A client of the official SDK, connected to a program over its standard input and output.
pub(crate) struct Client {
    service: RunningService<RoleClient, ()>,
    child: Child,
}

impl Client {
    pub(crate) async fn connect(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let pipes = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
        let connected = tokio::time::timeout(PATIENCE, ().serve(pipes)).await;
        Self { service: connected.expect("in time").expect("an MCP server"), child }
    }

    pub(crate) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Waits for the server behind a proxy.
    pub(crate) async fn offers(&self, tool: &str) {
        let offered = async {
            while !self.service.list_all_tools().await.expect("a list").iter().any(|found| found.name == tool)
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, offered).await.expect("the tool is listed");
    }

    /// Ends the server in order.
    pub(crate) async fn close(mut self) {
        let _ = self.service.cancel().await;
        let _ = tokio::time::timeout(PATIENCE, self.child.wait()).await;
    }
}

/// One call, whose answer is the text that was said.
pub(crate) async fn call(peer: &Peer<RoleClient>, tool: &'static str, arguments: Map<String, Value>) {
    let result = peer.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await;
    check(&result.expect("an answer"));
}

fn check(result: &CallToolResult) {
    let text = result.content.first().and_then(|block| block.as_text()).map(|block| block.text.as_str());
    assert_eq!(text, Some(TEXT));
}

/// The fields of an object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

/// The `aster` command, built as it is shipped.
pub(crate) fn aster() -> PathBuf {
    let mut build = std::process::Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--package", "aster-cli", "--message-format", "json"]);
    let output =
        build.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(output.status.success(), "aster does not build");
    let messages = output.stdout.split(|byte| *byte == b'\n');
    messages
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "aster")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo names the program")
}

/// An `aster` that knows no files but those in `scratch`.
pub(crate) fn aster_in(program: &Path, scratch: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.env_clear().env("HOME", scratch).env("XDG_STATE_HOME", scratch).env("XDG_CONFIG_HOME", scratch);
    command.current_dir(scratch).arg("--no-project");
    command
}

/// The Python that has FastMCP, if the peers are installed.
pub(crate) fn python() -> Option<PathBuf> {
    let peers = std::env::var_os("ASTER_PEERS")?;
    let python = Path::new(&peers).join("venv/bin/python");
    let fastmcp = std::process::Command::new(&python).args(["-c", "import fastmcp"]).output();
    fastmcp.is_ok_and(|output| output.status.success()).then_some(python)
}

/// What a process has resident, in MB, for the figures: what it has had at most, what it has now, and how much of that is
/// no file's, such as its own code's. Only Linux tells.
pub(crate) fn memory(process: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let field = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kibibytes.unwrap_or_default() * 1024.0 / 1e6
    };
    let (peak, now, own) = (field("VmHWM:"), field("VmRSS:"), field("RssAnon:"));
    format!("{now:.1} MB resident, {peak:.1} MB at most; {own:.1} MB without files such as its code")
}

/// What criterion measured in this run.
pub(crate) struct Figures {
    began: SystemTime,
    directory: PathBuf,
    rows: RefCell<Vec<String>>,
}

impl Figures {
    pub(crate) fn new() -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().map(|target| target.join("criterion"));
        let directory = std::env::var_os("CRITERION_HOME").map(PathBuf::from).or(target);
        Self { began: SystemTime::now(), directory: directory.unwrap_or_default(), rows: RefCell::default() }
    }

    /// The median time of one iteration, if it was measured in this run.
    pub(crate) fn median(&self, group: &str, subject: &str) -> Option<Duration> {
        let file = self.directory.join(group).join(subject).join("new/estimates.json");
        let fresh = file.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|at| at >= self.began);
        let estimates: Value = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
        let nanoseconds = estimates["median"]["point_estimate"].as_f64()?;
        fresh.then(|| Duration::from_secs_f64(nanoseconds / 1e9))
    }

    /// Adds a line to what is printed at the end.
    pub(crate) fn line(&self, line: impl Into<String>) {
        self.rows.borrow_mut().push(line.into());
    }

    /// Adds a table of a group whose iterations have each `calls` calls: each subject with its ratio to the first.
    pub(crate) fn compare(&self, title: &str, group: &str, calls: u32, subjects: &[&str]) {
        let medians: Vec<_> = subjects
            .iter()
            .filter_map(|subject| Some((subject, self.median(group, subject)? / calls)))
            .collect();
        let Some((_, base)) = medians.first() else { return };
        self.line(format!("\n| {title} | a call | calls a second | ratio |\n|---|--:|--:|--:|"));
        for (subject, median) in &medians {
            let (seconds, ratio) = (median.as_secs_f64(), median.as_secs_f64() / base.as_secs_f64());
            self.line(format!("| {subject} | {median:.1?} | {:.0} | {ratio:.2} |", 1.0 / seconds));
        }
    }

    /// Adds the ratio of the second to the first, taken in turns: whatever else the machine does slows both alike.
    pub(crate) fn in_turns(&self, mut first: impl FnMut() -> Duration, mut second: impl FnMut() -> Duration) {
        const ROUNDS: usize = 400;
        let mut ratios: Vec<_> = (0..ROUNDS)
            .map(|round| {
                let (base, other) = if round % 2 == 0 {
                    let base = first();
                    (base, second())
                } else {
                    let other = second();
                    (first(), other)
                };
                other.as_secs_f64() / base.as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let [low, median, high] = [1, 2, 3].map(|quarter| ratios[quarter * ROUNDS / 4]);
        self.line(format!("\nin turns: {median:.2} ({low:.2} to {high:.2} in half of {ROUNDS} rounds)"));
    }

    /// Prints it.
    pub(crate) fn print(self, criterion: &mut Criterion) {
        criterion.final_summary();
        self.rows.into_inner().iter().for_each(|row| println!("{row}"));
    }
}
