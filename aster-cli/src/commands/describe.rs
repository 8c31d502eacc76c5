//! `aster mcp describe`: the whole definition of tools.

use std::sync::Arc;

use aster_runtime::catalogue::{Health, Tool};
use aster_runtime::provider::{Loss, Provider};
use aster_runtime::search::default_ranker;
use aster_runtime::text::{block, one_line};
use aster_runtime::{BridgeError, HostSession, Tier, bridge};
use serde::Serialize;
use serde_json::Value;

use crate::args::Describe;
use crate::compose::Running;
use crate::exit::{Exit, Failure};
use crate::render::{Output, Report, safe_json};

/// The shape of `aster mcp describe --json`.
#[derive(Serialize)]
struct Described {
    tools: Vec<Definition>,
}

#[derive(Serialize)]
struct Definition {
    id: String,
    tier: Tier,
    group: String,
    signature: String,
    /// The MCP tool as its server sent it, with the input schema in the provider's form.
    definition: Value,
    /// What that form does not say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    losses: Vec<Lost>,
}

#[derive(Serialize)]
struct Lost {
    /// Where in the tool's own schema, as a JSON pointer.
    path: String,
    keyword: String,
    reason: &'static str,
    source: &'static str,
}

impl Definition {
    fn new(tool: &Tool, provider: Provider) -> Self {
        let export = provider.export(tool.input_schema());
        let mut definition = tool.definition().clone();
        definition["inputSchema"] = export.schema;
        let lost = |Loss { path, keyword, rule, .. }| Lost {
            path,
            keyword,
            reason: rule.reason,
            source: rule.source,
        };
        Self {
            id: tool.id().to_string(),
            tier: tool.tier(),
            group: tool.group().to_owned(),
            signature: tool.signature(),
            definition,
            losses: export.losses.into_iter().map(lost).collect(),
        }
    }
}

pub(crate) fn run(running: &Running, arguments: &Describe, output: Output) -> Result<Exit, Failure> {
    let mut tools = Vec::new();
    let mut failures = Vec::new();
    for id in &arguments.ids {
        match resolve(&running.session, id) {
            Ok(tool) => tools.push(Definition::new(&tool, arguments.provider)),
            Err(failure) => failures.push(failure),
        }
    }
    match failures.len() {
        0 => {
            output.report(&Described { tools })?;
            Ok(Exit::Success)
        }
        1 => Err(failures.remove(0)),
        count => Err(Failure::new(failures[0].exit(), format!("{count} tools cannot be described"))
            .with_problems(failures)),
    }
}

/// The tool of this id, or why there is none: its server may be down.
pub(crate) fn resolve(session: &HostSession, id: &str) -> Result<Arc<Tool>, Failure> {
    let view = session.view();
    let ranker = default_ranker(&view);
    let error = match bridge::resolve(&view, &*ranker, id) {
        Ok(tool) => return Ok(Arc::clone(tool)),
        Err(error) => error,
    };
    let named = id.split_once('/').map_or(id, |(server, _)| server);
    if let Some(server) =
        view.servers().iter().find(|server| server.name == named && server.health != Health::Ready)
    {
        let reason = one_line(&server.health.to_string(), 500);
        return Err(Failure::new(Exit::Unavailable, format!("server `{named}` is not available: {reason}")));
    }
    Err(match error {
        BridgeError::UnknownTool { name, candidates } => {
            let help = match candidates.as_slice() {
                [] => "`aster mcp list --tools` shows what there is".to_owned(),
                candidates => format!("did you mean {}?", candidates.join(" or ")),
            };
            Failure::new(Exit::Usage, format!("there is no tool `{name}`")).help(help)
        }
        other => Failure::new(Exit::Usage, other.to_string()),
    })
}

impl Report for Described {
    fn human(&self) -> String {
        let one = |tool: &Definition| {
            let field = |key: &str| tool.definition.get(key).filter(|value| value.is_object());
            let mut parts = vec![format!(
                "{} ({}, group {})\n  {}",
                one_line(&tool.id, 330),
                tool.tier,
                tool.group,
                one_line(&tool.signature, 1000)
            )];
            let description = tool.definition["description"].as_str().unwrap_or_default();
            parts.push(block(description, 16_000));
            parts.extend(field("inputSchema").map(|schema| format!("Arguments:\n{}", safe_json(schema))));
            if !tool.losses.is_empty() {
                let line = |lost: &Lost| {
                    let place = one_line(&format!("{} {}", lost.path, lost.keyword), 300);
                    format!("  {place}: {} ({})", lost.reason, lost.source)
                };
                let lines: Vec<String> = tool.losses.iter().map(line).collect();
                parts.push(format!("Left out for this provider:\n{}", lines.join("\n")));
            }
            parts.extend(field("outputSchema").map(|schema| format!("Result:\n{}", safe_json(schema))));
            parts.extend(
                field("annotations").map(|claims| format!("What it says of itself:\n{}", safe_json(claims))),
            );
            parts.join("\n\n")
        };
        self.tools.iter().map(one).collect::<Vec<_>>().join("\n\n")
    }
}
