//! `aster mcp list`: the servers, what was left out, and what the manifest costs.

use std::collections::BTreeMap;

use aster_runtime::catalogue::{Health, Problem, Server};
use aster_runtime::config::Origin;
use aster_runtime::text::one_line;
use aster_runtime::{Tier, View};
use serde::Serialize;

use crate::args::List;
use crate::compose::Running;
use crate::exit::{Exit, Failure, count};
use crate::render::{self, Output, Report};

/// The shape of `aster mcp list --json`.
#[derive(Serialize)]
struct Listed {
    servers: Vec<Row>,
    /// What is in no catalogue because it is malformed, with the reason.
    left_out: Vec<Problem>,
    tokens: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolRow>>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    /// `native`, `user` or `project`.
    origin: &'static str,
    #[serde(flatten)]
    health: Health,
    /// How many tools can be seen.
    tools: usize,
    /// How many a filter hides.
    hidden: usize,
    tiers: BTreeMap<Tier, usize>,
    group: String,
    title: Option<String>,
    description: Option<String>,
    version: Option<String>,
    protocol: Option<String>,
}

/// Estimates, one token per four characters.
#[derive(Serialize)]
struct Tokens {
    /// The whole manifest.
    manifest: usize,
    /// What is sent of it, degraded to fit the budget.
    prompt: usize,
    budget: usize,
    /// The schemas that it stands for.
    schemas: usize,
}

#[derive(Serialize)]
struct ToolRow {
    id: String,
    tier: Tier,
    group: String,
    summary: String,
}

pub(crate) fn run(running: &Running, arguments: &List, output: Output) -> Result<Exit, Failure> {
    let catalogue = running.host.catalogue();
    let view = running.session.view();
    let servers = catalogue.servers().iter().map(|server| row(running, &view, server)).collect();
    let injection = running.session.injection();
    let tools = || {
        let row = |tool: &aster_runtime::catalogue::Tool| ToolRow {
            id: one_line(tool.id().as_str(), 330),
            tier: tool.tier(),
            group: tool.group().to_owned(),
            summary: tool.summary().to_owned(),
        };
        view.tools().iter().map(|tool| row(tool)).collect()
    };
    output.report(&Listed {
        servers,
        left_out: catalogue.problems().to_vec(),
        tokens: Tokens {
            manifest: injection.as_ref().map_or(0, |injection| injection.manifest_tokens),
            prompt: injection.as_ref().map_or(0, |injection| injection.prompt_tokens),
            budget: running.host.config().inventory_budget_tokens(),
            schemas: view.schema_tokens(),
        },
        tools: arguments.tools.then(tools),
    })?;
    if running.config.files.is_empty() {
        output.note("no external servers are configured; `aster init` writes a file to start from");
    }
    Ok(Exit::Success)
}

fn row(running: &Running, view: &View, server: &Server) -> Row {
    let visible: Vec<_> = view.tools().iter().filter(|tool| tool.id().server() == server.name).collect();
    let mut tiers = BTreeMap::new();
    for tool in &visible {
        *tiers.entry(tool.tier()).or_default() += 1;
    }
    let origin = match running.config.server(&server.name).map(|server| server.origin) {
        _ if server.native => "native",
        Some(Origin::Project) => "project",
        _ => "user",
    };
    Row {
        name: server.name.clone(),
        origin,
        health: server.health.clone(),
        tools: visible.len(),
        hidden: server.tools.saturating_sub(visible.len()),
        tiers,
        group: server.group.clone(),
        title: server.title.clone(),
        description: server.description.clone(),
        version: server.version.as_deref().map(|version| one_line(version, 40)),
        protocol: server.protocol.as_deref().map(|protocol| one_line(protocol, 40)),
    }
}

impl Row {
    fn state(&self) -> &'static str {
        match self.health {
            Health::Ready => "ready",
            Health::Starting => "starting",
            Health::Down(_) => "down",
            Health::Disabled => "disabled",
            Health::NeedsConsent(_) => "needs consent",
        }
    }

    fn reason(&self) -> Option<String> {
        match &self.health {
            Health::Down(reason) | Health::NeedsConsent(reason) => {
                Some(format!("{}: {}", self.name, one_line(reason, 500)))
            }
            Health::Ready | Health::Starting | Health::Disabled => None,
        }
    }

    fn cells(&self) -> [String; 6] {
        let tiers: Vec<String> = self.tiers.iter().map(|(tier, count)| format!("{count} {tier}")).collect();
        let tools = match self.hidden {
            0 => self.tools.to_string(),
            hidden => format!("{} ({hidden} hidden)", self.tools),
        };
        [
            self.name.clone(),
            self.origin.to_owned(),
            self.state().to_owned(),
            tools,
            tiers.join(", "),
            self.protocol.clone().unwrap_or_default(),
        ]
    }
}

impl Report for Listed {
    fn human(&self) -> String {
        let header = ["Server", "From", "State", "Tools", "Tiers", "Protocol"];
        let mut parts = vec![match self.servers.is_empty() {
            true => "no servers".to_owned(),
            false => render::table(header, self.servers.iter().map(Row::cells)),
        }];
        if let Some(tools) = self.tools.as_ref().filter(|tools| !tools.is_empty()) {
            let cells =
                |tool: &ToolRow| [tool.id.clone(), tool.tier.to_string(), one_line(&tool.summary, 100)];
            parts.push(render::table(["Tool", "Tier", "What it does"], tools.iter().map(cells)));
        }
        let reasons: Vec<String> = self.servers.iter().filter_map(Row::reason).collect();
        if !reasons.is_empty() {
            parts.push(reasons.join("\n"));
        }
        if !self.left_out.is_empty() {
            let lines: Vec<String> = self
                .left_out
                .iter()
                .map(|problem| format!("  {}", one_line(&problem.to_string(), 500)))
                .collect();
            parts.push(format!("Left out:\n{}", lines.join("\n")));
        }
        let tools: usize = self.servers.iter().map(|server| server.tools).sum();
        if tools > 0 {
            let Tokens { manifest, prompt, budget, schemas } = self.tokens;
            let cut = match prompt < manifest {
                true => format!(", cut to {prompt} to fit the budget of {budget}"),
                false => format!(" of a budget of {budget}"),
            };
            let tools = count(tools, "tool");
            parts.push(format!(
                "The manifest of {tools} costs about {manifest} tokens{cut}; the schemas would cost {schemas}."
            ));
        }
        parts.join("\n\n")
    }
}
