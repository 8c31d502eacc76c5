//! What the way through the gate costs: a native tool against its function, and a tool of an external server against a
//! client of the official SDK on the same server.
//!
//! ```text
//! cargo bench --bench calls
//! ```
//!
//! Both write their audit to a file, an intent and an outcome for each call, as the command does.
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use std::hint::black_box;
use std::sync::Arc;

use aster_runtime::{HostSession, catalogue, mcp_tool};
use common::{Client, Figures, TEXT, bridge_call, load, object};
use criterion::{Criterion, SamplingMode, Throughput};
use serde_json::{Value, json};
use tokio::process::Command;

/// Says what it is told.
#[mcp_tool(tier = Standard, read_only, server = "native")]
async fn echo(
    /// What to say.
    text: String,
) -> String {
    text
}

async fn execute(session: Arc<HostSession>, call: Arc<Value>) {
    let result = session.call(&call).await;
    assert_eq!(result.as_object()["content"][0]["text"], TEXT);
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let figures = Figures::new();
    let runtime = common::runtime();
    let scratch = tempfile::tempdir().expect("a directory");
    let session = runtime.block_on(common::session(catalogue![echo::TOOL], scratch.path()));

    let mut group = criterion.benchmark_group("native");
    group.bench_function("the function", |bencher| {
        bencher.iter_custom(|calls| {
            runtime.block_on(load(1, calls, || async {
                assert_eq!(black_box(echo(black_box(TEXT.to_owned())).await), TEXT);
            }))
        });
    });
    group.bench_function("aster", |bencher| {
        let call = Arc::new(bridge_call("native/echo"));
        let execute = || {
            let (session, call) = (session.clone(), call.clone());
            move || execute(session.clone(), call.clone())
        };
        bencher.iter_custom(|calls| runtime.block_on(load(1, calls, execute())));
    });
    group.finish();
    figures.compare("a native tool", "native", 1, &["the function", "aster"]);

    let direct = runtime.block_on(Client::connect(&mut Command::new(common::ECHO_SERVER)));
    for callers in [1_u32, 64] {
        let name = format!("upstream {callers}");
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(callers.into())).sampling_mode(SamplingMode::Flat);
        let direct_calls = |calls| {
            let (peer, arguments) = (direct.peer(), object(json!({ "text": TEXT })));
            let call = move || {
                let (peer, arguments) = (peer.clone(), arguments.clone());
                async move { common::call(&peer, "echo", arguments).await }
            };
            runtime.block_on(load(callers.into(), calls, call))
        };
        let our_calls = |calls| {
            let (session, call) = (session.clone(), Arc::new(bridge_call("bench/echo")));
            runtime.block_on(load(callers.into(), calls, move || execute(session.clone(), call.clone())))
        };
        group.bench_function("rmcp", |bencher| bencher.iter_custom(direct_calls));
        group.bench_function("aster", |bencher| bencher.iter_custom(our_calls));
        group.finish();
        let title = format!("a stdio server, callers: {callers}");
        figures.compare(&title, &name, callers, &["rmcp", "aster"]);
        let calls = (640 / callers).into();
        figures.in_turns(|| direct_calls(calls), || our_calls(calls));
    }
    runtime.block_on(direct.close());
    figures.print(&mut criterion);
}
