//! `aster stats`: what the audit comes to.

use aster_runtime::audit::Stats;
use aster_runtime::call::Outcome;
use serde::Serialize;

use super::audit::{Filter, store, unreadable};
use crate::args::{self, Global, Selection};
use crate::exit::{Exit, Failure};
use crate::render::{self, Output, Report};

pub(crate) async fn run(global: &Global, arguments: &args::Stats, output: Output) -> Result<Exit, Failure> {
    let filter = Filter::new(&Selection { period: arguments.period.clone(), ..Selection::default() })?;
    let mut stats = Stats::default();
    let visit = |entry: aster_runtime::audit::Entry<'_>| {
        if let Some(record) = entry.record().filter(|record| filter.takes(&entry, record)) {
            stats.add(&record);
        }
    };
    store(global, &arguments.period)?.read(visit).await.map_err(|error| unreadable(&error))?;
    if arguments.prometheus {
        output.text(stats.prometheus().trim_end())?;
    } else {
        output.report(&Counted(stats))?;
    }
    Ok(Exit::Success)
}

#[derive(Serialize)]
#[serde(transparent)]
struct Counted(Stats);

impl Report for Counted {
    fn human(&self) -> String {
        let stats = &self.0;
        let mut parts = Vec::new();
        if !stats.servers.is_empty() {
            let rows = stats.servers.iter().map(|(server, stats)| {
                let of = |outcome| stats.outcomes.get(outcome).to_string();
                let ran = stats.outcomes.total() - stats.outcomes.get(Outcome::Denied);
                let failures = stats.failures.iter().map(|(kind, count)| format!("{count} {kind}"));
                let failures: Vec<String> = failures.collect();
                [
                    server.clone(),
                    stats.outcomes.total().to_string(),
                    of(Outcome::Ok),
                    of(Outcome::ToolError),
                    of(Outcome::Denied),
                    failures.join(", "),
                    format!("{} ms", stats.duration_ms / ran.max(1)),
                ]
            });
            let header = ["Server", "Calls", "Ok", "Tool errors", "Denied", "Failures", "Mean"];
            parts.push(render::table(header, rows));
        }
        let denials = stats.denials.iter().map(|(check, count)| format!("{count} by {}", check.name()));
        let denials: Vec<String> = denials.collect();
        let why = if denials.is_empty() { String::new() } else { format!(" ({})", denials.join(", ")) };
        parts.push(format!(
            "{} calls, {} denied{why}\n{} searches, {} of them empty, {} with a tool described after them; {} tools \
             described, {} of them executed then",
            stats.outcomes.total(),
            stats.outcomes.get(Outcome::Denied),
            stats.searches,
            stats.empty_searches,
            stats.described_searches,
            stats.described,
            stats.described_then_executed,
        ));
        parts.join("\n\n")
    }
}
