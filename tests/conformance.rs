//! The official conformance suite, in both versions that matter, against `examples/conformance_server`.
//!
//! `tests/peers/install.sh` installs the suites with a Node.js that is new enough for them, and prints the variable
//! `ASTER_PEERS`; without it there is nothing to test.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The required set of 2025-11-25, and what the suite runs beside it.
#[tokio::test]
async fn everything_that_2025_11_25_requires() {
    let beside = ["json-schema-2020-12", "server-session-lifecycle"];
    conforms("conformance-0-2", &["--requirements", "2025-11-25"], 33, &beside).await;
}

/// The required set of 2026-07-28, and what the suite runs beside it; tasks are an extension, and not served.
#[tokio::test]
async fn everything_that_2026_07_28_requires() {
    let beside = ["http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"];
    conforms("conformance-0-2", &["--requirements", "2026-07-28"], 50, &beside).await;
}

#[tokio::test]
async fn the_active_suite_of_the_last_stable_version() {
    conforms("conformance-0-1", &["--suite", "active"], 30, &[]).await;
}

/// Runs this many scenarios. None may fail or warn unless `tests/data/conformance.yaml` names it, and of those that the
/// suite does not score, the ones `beside`.
async fn conforms(suite: &str, selection: &[&str], scenarios: usize, beside: &[&str]) {
    let Some(peers) = std::env::var_os("ASTER_PEERS") else {
        writeln!(std::io::stderr(), "skipped: ASTER_PEERS is not set; run tests/peers/install.sh")
            .expect("written");
        return;
    };
    let modules = Path::new(&peers).join("node_modules");
    let program = modules.join(suite).join("dist/index.js");
    assert!(program.exists(), "{} is missing; run tests/peers/install.sh", program.display());
    let (_server, url) = start().await;
    let results = tempfile::tempdir().unwrap();
    let run = Command::new(node(&modules))
        .arg(program)
        .args(["server", "--url", &url])
        .args(selection)
        .arg("--expected-failures")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance.yaml"))
        .arg("--output-dir")
        .arg(results.path())
        .kill_on_drop(true)
        .output();
    let output = timeout(Duration::from_secs(300), run).await.expect("the suite ends in time").unwrap();

    let ran = read(results.path());
    let unscored: Vec<&Scenario> =
        ran.iter().filter(|scenario| beside.contains(&scenario.name.as_str())).collect();
    let passed = output.status.success()
        && ran.len() == scenarios
        && unscored.len() == beside.len()
        && unscored.iter().all(|scenario| scenario.failures.is_empty());
    assert!(
        passed,
        "{suite} {}: {}, {} scenarios of {scenarios}\n{}\n{}{}",
        selection.join(" "),
        output.status,
        ran.len(),
        ran.iter().map(|scenario| scenario.failures.as_str()).collect::<String>(),
        tail(&output.stdout),
        tail(&output.stderr),
    );
}

/// A schema of a tool's own is sent byte for byte, as the constant has it.
#[tokio::test]
async fn a_schema_of_its_own_is_on_the_wire_as_it_is_in_the_source() {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let mut server = Command::new(folder.join(format!("conformance_server{}", std::env::consts::EXE_SUFFIX)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (mut input, mut lines) =
        (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()).lines());
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(r#""json_schema_2020_12_tool""#) {
                return line;
            }
        }
        panic!("the server ended before it listed its tools");
    };
    let line = timeout(Duration::from_secs(30), read).await.expect("it answers in time");
    let tool = line.find(r#""json_schema_2020_12_tool""#).unwrap();
    let schema = line[tool..].split_once(r#""inputSchema":"#).unwrap().1;
    let constant = include_str!("../examples/conformance_schema.json");
    assert!(schema.starts_with(constant), "{}", &schema[..constant.len()]);
    assert!(schema[constant.len()..].starts_with([',', '}']), "{schema}");
}

/// Starts the example on a free port of the loopback, and reads the address that it prints first.
async fn start() -> (Child, String) {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let mut server = Command::new(folder.join(format!("conformance_server{}", std::env::consts::EXE_SUFFIX)))
        .args(["--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let line = timeout(Duration::from_secs(30), lines.next_line()).await.expect("it starts in time").unwrap();
    let url = line.expect("it prints its address");
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    (server, url)
}

/// The Node.js that was installed with the suites, or where there is none for this machine, the one on the path.
fn node(modules: &Path) -> OsString {
    let installed: PathBuf = modules.join(".bin/node");
    if installed.exists() { installed.into() } else { "node".into() }
}

struct Scenario {
    name: String,
    /// What failed or warned, a line each.
    failures: String,
}

/// The suite's own records: a folder per scenario, `server-NAME-TIME`, with the checks in it.
fn read(results: &Path) -> Vec<Scenario> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.iter().map(|folder| scenario(folder)).collect()
}

fn scenario(folder: &Path) -> Scenario {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let name = name.strip_prefix("server-").unwrap_or(name);
    // The time is in six parts.
    let name = name.rsplitn(7, '-').last().unwrap();
    let Ok(checks) = std::fs::read(folder.join("checks.json")) else {
        return Scenario { name: name.to_owned(), failures: format!("FAILURE {name}: it broke off\n") };
    };
    let checks: Value = serde_json::from_slice(&checks).unwrap();
    let mut failures = String::new();
    for check in checks.as_array().unwrap() {
        if let Some(status @ ("FAILURE" | "WARNING")) = check["status"].as_str() {
            let (id, message) = (&check["id"], &check["errorMessage"]);
            writeln!(failures, "{status} {name} {id}: {message}").unwrap();
        }
    }
    Scenario { name: name.to_owned(), failures }
}

/// The last lines of what the suite printed: its summary.
fn tail(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].iter().map(|line| format!("{line}\n")).collect()
}
