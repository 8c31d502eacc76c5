//! `aster mcp scan`: what in the lists of the external servers should make one look twice.

use aster_runtime::catalogue::{Health, Server};
use aster_runtime::scan::{self, Finding};
use aster_runtime::text::{block, one_line};
use serde::Serialize;

use crate::compose::Running;
use crate::exit::{Exit, Failure, count};
use crate::render::{Output, Report};

/// The shape of `aster mcp scan --json`.
#[derive(Serialize)]
struct Scanned {
    /// How many external servers were looked at.
    servers: usize,
    /// How many of their tools.
    tools: usize,
    /// What to look at.
    problems: Vec<Finding>,
    /// What is no mistake, but good to know.
    notes: Vec<Finding>,
    /// The servers that could not be looked at, and why.
    unseen: Vec<String>,
}

pub(crate) fn run(running: &Running, output: Output) -> Result<Exit, Failure> {
    let catalogue = running.host.catalogue();
    let external: Vec<&Server> = catalogue.servers().iter().filter(|server| !server.native).collect();
    let (problems, notes) = scan::scan(&catalogue).into_iter().partition(|finding| finding.kind.is_problem());
    let unseen = external.iter().filter(|server| !matches!(server.health, Health::Ready | Health::Disabled));
    let scanned = Scanned {
        servers: external.iter().filter(|server| server.health == Health::Ready).count(),
        tools: external.iter().map(|server| server.tools).sum(),
        problems,
        notes,
        unseen: unseen
            .map(|server| format!("server {}: {}", server.name, one_line(&server.health.to_string(), 500)))
            .collect(),
    };
    output.report(&scanned)?;
    Ok(match &scanned {
        Scanned { problems, .. } if !problems.is_empty() => Exit::Configuration,
        Scanned { unseen, .. } if !unseen.is_empty() => Exit::Unavailable,
        _ => Exit::Success,
    })
}

impl Report for Scanned {
    fn human(&self) -> String {
        let line = |kind: &str, text: &str| format!("{kind}: {}", block(text, usize::MAX));
        let mut lines: Vec<String> =
            self.problems.iter().map(|finding| line("problem", &finding.to_string())).collect();
        lines.extend(self.notes.iter().map(|finding| line("note", &finding.to_string())));
        lines.extend(self.unseen.iter().map(|server| line("not looked at", server)));
        lines.push(format!(
            "{}, {}, {}, {}",
            count(self.servers, "external server"),
            count(self.tools, "tool"),
            count(self.problems.len(), "problem"),
            count(self.notes.len(), "note"),
        ));
        lines.join("\n")
    }
}
