//! `aster mcp list`: the servers, what was left out, and what the manifest costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use aster_runtime::catalogue::{Health, Problem, Resource, Server, Tool};
use aster_runtime::config::Origin;
use aster_runtime::text::one_line;
use aster_runtime::{Host, HostSession, Tier, View};
use serde::Serialize;

use crate::args::List;
use crate::compose::Running;
use crate::exit::{Exit, Failure, count};
use crate::render::{self, Output, Report};

/// The shape of `aster mcp list --json`.
#[derive(Serialize)]
struct Listed {
    servers: Vec<Row>,
    /// What is in no catalogue, because it is malformed, not trusted or secret, with the reason.
    left_out: Vec<Problem>,
    tokens: Tokens,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<ToolRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<Vec<ToolRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompts: Option<Vec<ToolRow>>,
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
    /// How many resources and templates of resources can be seen.
    resources: usize,
    /// How many prompts can be seen.
    prompts: usize,
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

/// A tool, a resource or a prompt.
#[derive(Serialize)]
struct ToolRow {
    id: String,
    /// Of a resource, or its template.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
    tier: Tier,
    group: String,
    summary: String,
}

pub(crate) fn run(running: &Running, arguments: &List, output: Output) -> Result<Exit, Failure> {
    let origin = |server: &Server| match running.config.server(&server.name).map(|server| server.origin) {
        _ if server.native => "native",
        Some(Origin::Project) => "project",
        _ => "user",
    };
    output.report(&listed(&running.host, &running.session, origin, arguments.tools))?;
    if running.config.files.is_empty() {
        output.note("no external servers are configured; `aster init` writes a file to start from");
    }
    Ok(Exit::Success)
}

fn listed(
    host: &Host,
    session: &HostSession,
    origin: impl Fn(&Server) -> &'static str,
    in_full: bool,
) -> Listed {
    let (catalogue, view, injection) = (host.catalogue(), session.view(), session.injection());
    let servers = catalogue.servers().iter().map(|server| row(&view, server, origin(server))).collect();
    let tools = || view.tools().iter().map(|tool| ToolRow::new(tool, None)).collect();
    let resources = || {
        let row = |one: &Arc<Resource>| ToolRow::new(one.callable(), Some(one.template().as_str()));
        view.resources().iter().map(row).collect()
    };
    let prompts = || view.prompts().iter().map(|prompt| ToolRow::new(prompt.callable(), None)).collect();
    Listed {
        servers,
        left_out: catalogue.problems().to_vec(),
        tokens: Tokens {
            manifest: injection.as_ref().map_or(0, |injection| injection.manifest_tokens),
            prompt: injection.as_ref().map_or(0, |injection| injection.prompt_tokens),
            budget: host.config().inventory_budget_tokens(),
            schemas: view.schema_tokens(),
        },
        tools: in_full.then(tools),
        resources: in_full.then(resources),
        prompts: in_full.then(prompts),
    }
}

fn row(view: &View, server: &Server, origin: &'static str) -> Row {
    let visible: Vec<_> = view.tools().iter().filter(|tool| tool.id().server() == server.name).collect();
    let mut tiers = BTreeMap::new();
    for tool in &visible {
        *tiers.entry(tool.tier()).or_default() += 1;
    }
    Row {
        name: server.name.clone(),
        origin,
        health: server.health.clone(),
        tools: visible.len(),
        hidden: server.tools.saturating_sub(visible.len()),
        resources: view.resources().iter().filter(|one| one.id().server() == server.name).count(),
        prompts: view.prompts().iter().filter(|one| one.id().server() == server.name).count(),
        tiers,
        group: server.group.clone(),
        title: server.title.clone(),
        description: server.description.clone(),
        version: server.version.as_deref().map(|version| one_line(version, 40)),
        protocol: server.protocol.as_deref().map(|protocol| one_line(protocol, 40)),
    }
}

impl ToolRow {
    fn new(callable: &Tool, uri: Option<&str>) -> Self {
        Self {
            id: one_line(callable.id().as_str(), 330),
            uri: uri.map(str::to_owned),
            tier: callable.tier(),
            group: callable.group().to_owned(),
            summary: callable.summary().to_owned(),
        }
    }

    /// The cells of a table, with what the row stands for, unless that is a tool.
    fn cells(&self, what: Option<&str>) -> [String; 3] {
        let what = match (what, &self.uri) {
            (Some(what), Some(uri)) => format!("{what} {}: ", one_line(uri, 100)),
            (Some(what), None) => format!("{what}: "),
            (None, _) => String::new(),
        };
        [self.id.clone(), self.tier.to_string(), format!("{what}{}", one_line(&self.summary, 100))]
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
        let mut tools = match self.hidden {
            0 => self.tools.to_string(),
            hidden => format!("{} ({hidden} hidden)", self.tools),
        };
        for (number, noun) in [(self.resources, "resource"), (self.prompts, "prompt")] {
            if number > 0 {
                tools.push_str(&format!("; {}", count(number, noun)));
            }
        }
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
        let of = [(&self.tools, None), (&self.resources, Some("resource")), (&self.prompts, Some("prompt"))];
        let cells =
            of.into_iter().flat_map(|(rows, what)| rows.iter().flatten().map(move |row| row.cells(what)));
        let cells: Vec<_> = cells.collect();
        if !cells.is_empty() {
            parts.push(render::table(["Tool", "Tier", "What it does"], cells));
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

#[cfg(test)]
mod tests {
    use aster_runtime::{Profile, catalogue, mcp_server};
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    /// Keeps notes.
    #[mcp_server]
    mod notes {
        use aster_runtime::{mcp_prompt, mcp_resource, mcp_tool};

        /// Writes a note.
        #[mcp_tool(tier = Elevated)]
        pub(super) fn write() {}

        /// Any note.
        #[mcp_resource(uri = "notes://{number}", tier = Standard)]
        pub(super) fn note(number: u8) -> String {
            number.to_string()
        }

        /// The first note.
        #[mcp_resource(uri = "notes://first", tier = Restricted)]
        pub(super) fn first() -> &'static str {
            "hello"
        }

        /// Asks for a summary.
        #[mcp_prompt(tier = Standard)]
        pub(super) fn summary() -> &'static str {
            "Sum it up."
        }
    }

    #[tokio::test]
    async fn resources_and_prompts_are_shown_beside_tools() {
        let host = Host::builder().catalogue(catalogue![notes::SERVER]).build().await.expect("a host");
        let session = host.session(Profile::new("test").deny(["notes/first"])).expect("a session");
        let listed = listed(&host, &session, |_| "native", true);
        let human = listed.human();
        let (shown, _) = human.split_once("\n\nThe manifest").expect("what it costs");
        assert_snapshot!(shown, @"
          Server   From     State   Tools                     Tiers        Protocol
        ─────────────────────────────────────────────────────────────────────────────
          notes    native   ready   1; 1 resource; 1 prompt   1 elevated

          Tool            Tier       What it does
        ───────────────────────────────────────────────────────────────────
          notes/write     elevated   Writes a note.
          notes/note      standard   resource notes://{number}: Any note.
          notes/summary   standard   prompt: Asks for a summary.
        ");
        let json = serde_json::to_value(&listed).expect("JSON");
        assert_eq!(
            (&json["servers"][0]["resources"], &json["servers"][0]["prompts"]),
            (&json!(1), &json!(1))
        );
        let note = json!({"id": "notes/note", "uri": "notes://{number}", "tier": "standard", "group": "notes",
            "summary": "Any note."});
        assert_eq!(json["resources"], json!([note]));
        assert_eq!(json["prompts"][0]["id"], "notes/summary");
    }
}
