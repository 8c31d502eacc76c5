//! How long `aster mcp serve` takes from its start to its first list, without external servers, and how much memory it
//! then has.
//!
//! ```text
//! cargo bench --bench start
//! ```
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::Figures;
use criterion::{Criterion, SamplingMode};
use serde_json::{Value, json};

/// Starts it and waits for its list.
fn start(program: &Path, scratch: &Path) -> (Duration, Child) {
    let mut command = common::aster_in(program, scratch);
    command.args(["mcp", "serve"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().expect("aster starts");
    let mut input = child.stdin.as_ref().expect("a pipe");
    let mut output = BufReader::new(child.stdout.as_mut().expect("a pipe"));
    let mut ask = |message: Value| {
        writeln!(input, "{message}").expect("it reads");
        let mut line = String::new();
        if message.get("id").is_some() {
            output.read_line(&mut line).expect("it answers");
        }
        line
    };
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
    }}));
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let list = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let took = began.elapsed();
    assert!(list.contains("aster_mcp"), "{list}");
    (took, child)
}

/// Ends it by ending its input.
fn end(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let figures = Figures::new();
    let program = common::aster();
    let scratch = tempfile::tempdir().expect("a directory");

    let mut group = criterion.benchmark_group("start");
    group.sampling_mode(SamplingMode::Flat);
    group.bench_function("first list", |bencher| {
        bencher.iter_custom(|starts| {
            let start = |_| {
                let (took, child) = start(&program, scratch.path());
                end(child);
                took
            };
            (0..starts).map(start).sum()
        });
    });
    group.finish();
    if let Some(median) = figures.median("start", "first list") {
        figures.line(format!("\nfrom start to first list: {median:.1?}"));
    }

    let (_, child) = start(&program, scratch.path());
    figures.line(format!("after the first list: {}", common::memory(child.id())));
    end(child);
    figures.print(&mut criterion);
}
