//! What the gate costs, without hooks and without the audit: beside a call that a client of the official SDK makes over standard
//! input and output, and beside one record of the audit.
//!
//! ```text
//! cargo bench --bench gate
//! ```
//!
//! Twenty rules are in force; egress, the scan for secrets and a limit of the server too.
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aster_runtime::audit::{AuditSink, JsonLines, Record};
use aster_runtime::call::Proposed;
use aster_runtime::gate::hooks::Heard;
use aster_runtime::gate::limits::{Limit, Limits};
use aster_runtime::gate::rules::{Action, Rule, Rules};
use aster_runtime::gate::{self, Gate};
use aster_runtime::{CallOptions, Host, Profile, Scope, Session, ToolId, catalogue, mcp_tool};
use common::{Client, ECHO_SERVER, Figures, TEXT, object};
use criterion::Criterion;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::watch;

/// Says what it is told.
#[mcp_tool(tier = Elevated, server = "native")]
async fn echo(
    /// What to say.
    text: String,
) -> String {
    text
}

/// Keeps the last record of a call.
#[derive(Default)]
struct Last(Mutex<Option<Record>>);

impl AuditSink for Last {
    fn write(&self, record: &Record) -> io::Result<()> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(record.clone());
        Ok(())
    }
}

fn rules() -> Rules {
    let others = (0..19).map(|number| Rule::new(Action::Deny, "rules").tools([format!("other{number}/*")]));
    let looks = Rule::new(Action::Ask, "rules").tools(["shell/*"]);
    Rules::new(others.chain([looks]).map(|rule| rule.expect("a rule")))
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let figures = Figures::new();
    let runtime = common::runtime();
    let scratch = tempfile::tempdir().expect("a directory");

    let last = Arc::new(Last::default());
    let arguments = || object(json!({ "text": TEXT }));
    let tool = runtime.block_on(async {
        let builder = Host::builder().catalogue(catalogue![echo::TOOL]).audit(last.clone());
        let host = builder.build().await.expect("a host");
        let session = host.session(Profile::new("bench")).expect("a session");
        session.execute("native/echo", arguments(), CallOptions::default()).await;
        let catalogue = host.catalogue();
        Arc::clone(catalogue.get(&ToolId::new("native", "echo")).expect("the tool"))
    });
    let record = last.0.lock().unwrap_or_else(PoisonError::into_inner).clone().expect("a record");

    let mut gate = Gate::default();
    gate.rules = watch::channel(Arc::new(rules())).1;
    gate.limits = Limits::default().server("native", Limit::default().concurrent(64));
    let profile = Profile::new("bench");
    let scope = Scope::new(&[], &profile).expect("a scope").under(Arc::clone(&gate.rules.borrow()));
    let session = Arc::new(Session::new(profile));
    let admitted = |calls: u64| {
        runtime.block_on(async {
            let proposed = Proposed {
                call_id: "call".into(),
                session: Arc::clone(&session),
                tool: Arc::clone(&tool),
                arguments: arguments(),
            };
            let began = Instant::now();
            for _ in 0..calls {
                let call = proposed.clone();
                gate::admit(&gate, &scope, call, None, &mut Heard::default()).await.expect("it is admitted");
            }
            began.elapsed()
        })
    };
    let audit = JsonLines::open(scratch.path().join("audit.jsonl")).expect("the audit can be opened");
    let written = |records: u64| -> Duration {
        let began = Instant::now();
        for _ in 0..records {
            audit.write(&record).expect("it is written");
        }
        began.elapsed()
    };
    let direct = runtime.block_on(Client::connect(&mut Command::new(ECHO_SERVER)));
    let called = |calls| {
        let (peer, arguments) = (direct.peer(), arguments());
        let call = move || {
            let (peer, arguments) = (peer.clone(), arguments.clone());
            async move { common::call(&peer, "echo", arguments).await }
        };
        runtime.block_on(common::load(1, calls, call))
    };

    let mut group = criterion.benchmark_group("gate");
    group.bench_function("rmcp", |bencher| bencher.iter_custom(called));
    group.bench_function("one record", |bencher| bencher.iter_custom(written));
    group.bench_function("the gate", |bencher| bencher.iter_custom(admitted));
    group.finish();
    figures.compare("one call", "gate", 1, &["rmcp", "one record", "the gate"]);
    figures.line("the gate beside a call of the official SDK's client");
    figures.in_turns(|| called(200), || admitted(200));
    figures.line("the gate beside one record");
    figures.in_turns(|| written(200), || admitted(200));
    runtime.block_on(direct.close());
    figures.print(&mut criterion);
}
