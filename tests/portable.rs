//! The schemas of native tools are ones that every client and model can use: MCP Inspector's lint has nothing against any
//! of them, each server by itself or all in direct mode, in both eras.
//!
//! `tests/peers/install.sh` installs the Inspector and prints the variable `ASTER_PEERS`; without it there is nothing to test.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aster_runtime::serve::Shape;
use aster_runtime::serve::http::{self, Options};
use aster_runtime::{Host, Profile, catalogue};
use aster_servers::shortcuts::Shortcuts;
use aster_servers::shortcuts::cli::Cli;
use aster_servers::web;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(120);

/// None, said on standard error, where the Inspector is not installed.
fn inspector() -> Option<PathBuf> {
    let Some(peers) = std::env::var_os("ASTER_PEERS") else {
        writeln!(std::io::stderr(), "skipped: ASTER_PEERS is not set; run tests/peers/install.sh")
            .expect("written");
        return None;
    };
    Some(Path::new(&peers).join("node_modules/.bin/mcp-inspector"))
}

/// The names of the tools that the Inspector lists, with nothing to say against them.
async fn inspected(inspector: &Path, era: &str, target: &[&str]) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("node");
    command.arg(inspector).arg("--cli").args(target).args(["--protocol-era", era, "--format", "json"]);
    // With `--quiet` it would say nothing of what is less than an error.
    command.args(["--method", "tools/list", "--strict"]).env("HOME", home.path()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.expect("the Inspector ends in time").unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Warning: tool"), "{era}, {target:?}: {said}");
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn asters_own_servers() {
    let Some(inspector) = inspector() else { return };
    // Where it does not run it can be listed all the same.
    let shortcuts = Shortcuts::new(Cli::new("shortcuts", PATIENCE));
    let host =
        Host::builder().catalogue(catalogue![web::SERVER]).with_server(shortcuts).build().await.unwrap();
    for (shape, expected) in [
        (Shape::Direct, ["shortcuts__list", "shortcuts__run", "web__extract"].as_slice()),
        (Shape::Server("shortcuts".to_owned()), &["list", "run"]),
        (Shape::Server("web".to_owned()), &["extract"]),
    ] {
        let address = "127.0.0.1:0".parse().unwrap();
        let (profile, options) = (Profile::new("test"), Options::default());
        let listener = http::bind(host.clone(), profile, shape, options, address).await.unwrap();
        let (url, stop) = (listener.url(), CancellationToken::new());
        let serving = tokio::spawn(listener.serve(stop.clone()));
        for era in ["legacy", "modern"] {
            let mut names = inspected(&inspector, era, &["--server-url", &url]).await;
            names.sort_unstable();
            assert_eq!(names, expected);
        }
        stop.cancel();
        serving.await.unwrap();
    }
}

#[tokio::test]
async fn binaries_of_ones_own() {
    let Some(inspector) = inspector() else { return };
    let examples = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    for (example, server, expected) in
        [("own_binary", "text", ["repeat", "reverse"].as_slice()), ("notes_server", "notes", &["write"])]
    {
        let program = examples.join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
        assert!(program.exists(), "{} is not built; run the tests with `cargo test`", program.display());
        let mut names = inspected(&inspector, "modern", &[program.to_str().unwrap(), "serve", server]).await;
        names.sort_unstable();
        assert_eq!(names, expected);
    }
}
