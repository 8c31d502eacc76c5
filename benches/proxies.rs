//! `aster mcp serve` against FastMCP's proxy: the same client, over standard input and output, through one or the other
//! to the same server; and straight to it.
//!
//! ```text
//! export "$(tests/peers/install.sh)"
//! cargo bench --bench proxies
//! ```
//!
//! FastMCP's proxy is run twice: as `create_proxy` makes it, and as fast as it can be, on a session that it shares.
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use std::path::Path;

use common::{Client, ECHO_SERVER, Figures, TEXT, bridge_call, load, object};
use criterion::{Criterion, SamplingMode, Throughput};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio::runtime::Runtime;

/// A way to the server.
struct Subject {
    name: &'static str,
    client: Client,
    tool: &'static str,
    arguments: Map<String, Value>,
}

fn subjects(runtime: &Runtime, scratch: &Path) -> Vec<Subject> {
    let text = || object(json!({ "text": TEXT }));
    let connect = |name, mut command: Command, tool, arguments| {
        let client = runtime.block_on(async {
            let client = Client::connect(&mut command).await;
            client.offers(tool).await;
            client
        });
        Subject { name, client, tool, arguments }
    };
    let mut subjects = vec![connect("no proxy", Command::new(ECHO_SERVER), "echo", text())];

    let config = scratch.join("aster.yaml");
    let servers = json!({"mcp": {"servers": {"bench": {"command": ECHO_SERVER}}}});
    std::fs::write(&config, servers.to_string()).expect("written");
    let program = common::aster();
    let serve = |arguments: &[&str]| {
        let mut command = common::aster_in(&program, scratch);
        command.arg("--config").arg(&config).args(["mcp", "serve"]).args(arguments);
        Command::from(command)
    };
    subjects.push(connect("aster", serve(&[]), "aster_mcp", object(bridge_call("bench/echo"))));
    let help = common::aster_in(&program, scratch).args(["mcp", "serve", "--help"]).output().expect("help");
    if String::from_utf8_lossy(&help.stdout).contains("--mode") {
        subjects.push(connect("aster, direct", serve(&["--mode", "direct"]), "bench__echo", text()));
    }

    let Some(python) = common::python() else {
        println!("FastMCP is left out: ASTER_PEERS names no folder that tests/peers/install.sh has filled");
        return subjects;
    };
    for (name, mode) in [("FastMCP", "default"), ("FastMCP, shared session", "shared")] {
        let mut command = Command::new(&python);
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/proxy.py")).args([mode, ECHO_SERVER]);
        subjects.push(connect(name, command, "echo", text()));
    }
    subjects
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(30);
    let figures = Figures::new();
    let runtime = common::runtime();
    let scratch = tempfile::tempdir().expect("a directory");
    let subjects = subjects(&runtime, scratch.path());
    for callers in [1_u32, 64] {
        let name = format!("proxy {callers}");
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(callers.into())).sampling_mode(SamplingMode::Flat);
        for subject in &subjects {
            let call = || {
                let (peer, tool, arguments) =
                    (subject.client.peer(), subject.tool, subject.arguments.clone());
                move || {
                    let (peer, arguments) = (peer.clone(), arguments.clone());
                    async move { common::call(&peer, tool, arguments).await }
                }
            };
            group.bench_function(subject.name, |bencher| {
                bencher.iter_custom(|calls| runtime.block_on(load(callers.into(), calls, call())));
            });
        }
        group.finish();
        let title = format!("through a proxy, callers: {callers}");
        let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
        figures.compare(&title, &name, callers, &names);
        for (slow, aster) in names.iter().filter(|name| name.starts_with("FastMCP")).flat_map(|slow| {
            names.iter().filter(|name| name.starts_with("aster")).map(move |aster| (*slow, *aster))
        }) {
            if let (Some(slow_time), Some(time)) = (figures.median(&name, slow), figures.median(&name, aster))
            {
                let times = slow_time.as_secs_f64() / time.as_secs_f64();
                figures
                    .line(format!("{aster}: {times:.1} times the throughput of {slow}, callers: {callers}"));
            }
        }
    }
    for subject in &subjects {
        figures.line(format!("{}, after all calls: {}", subject.name, common::memory(subject.client.id())));
    }
    for subject in subjects {
        runtime.block_on(subject.client.close());
    }
    figures.print(&mut criterion);
}
