//! `TOOLS.md`: for people, what there is, how far it reaches and what it takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::catalogue::{NativeCatalogue, url_arguments};
use crate::spec::{Annotations, Entry, Tier, ToolSpec};

/// One thing that can be called.
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) tool: &'static ToolSpec,
    /// As raised.
    pub(super) tier: Tier,
    pub(super) group: &'static str,
    pub(super) uri: Option<&'static str>,
    pub(super) mime_type: Option<&'static str>,
}

/// All of a list, by kind and id.
pub(super) fn rows(list: &NativeCatalogue) -> Vec<Row> {
    let mut rows = Vec::new();
    for entry in list.entries {
        let of_server = match entry {
            Entry::Server(server) => server.group,
            _ => None,
        };
        let row = |kind, tool: &'static ToolSpec| Row {
            kind,
            tool,
            tier: tier(list, tool),
            group: tool.group.or(of_server).map_or(tool.server, |group| group.name()),
            uri: None,
            mime_type: None,
        };
        rows.extend(entry.tools().iter().map(|tool| row("tool", tool)));
        rows.extend(entry.resources().iter().map(|resource| Row {
            uri: Some(resource.uri),
            mime_type: resource.mime_type,
            ..row("resource", &resource.callable)
        }));
        rows.extend(entry.prompts().iter().map(|prompt| row("prompt", &prompt.callable)));
    }
    rows.sort_by_key(|row| {
        (
            row.tool.server,
            ["tool", "resource", "prompt"].iter().position(|kind| *kind == row.kind),
            row.tool.name,
        )
    });
    rows
}

fn tier(list: &NativeCatalogue, tool: &ToolSpec) -> Tier {
    let raised =
        list.raises.iter().filter(|raise| raise.tool.server == tool.server && raise.tool.name == tool.name);
    raised.map(|raise| raise.tier).fold(tool.tier, Tier::max)
}

/// The hints that are said, `not` before those that are denied.
pub(super) fn hints(annotations: Annotations) -> Vec<String> {
    let Annotations { read_only, destructive, idempotent, open_world } = annotations;
    [
        ("read-only", read_only),
        ("destructive", destructive),
        ("idempotent", idempotent),
        ("open-world", open_world),
    ]
    .into_iter()
    .filter_map(|(name, hint)| Some(if hint? { name.to_owned() } else { format!("not-{name}") }))
    .collect()
}

/// The document of a list, in Markdown: for each server what it is, and everything on it with tier, group, description and
/// arguments.
#[must_use]
pub fn document(list: &NativeCatalogue) -> String {
    let mut page =
        "# Tools\n\n<!-- Written by the tests of the catalogue: ASTER_BLESS=1 writes it anew. -->\n"
            .to_owned();
    let mut servers: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in rows(list) {
        servers.entry(row.tool.server).or_default().push(row);
    }
    for (name, rows) in servers {
        let _ = write!(page, "\n## {name}\n");
        let spec = list.entries.iter().find_map(|entry| match entry {
            Entry::Server(server) if server.name == name => Some(server),
            _ => None,
        });
        if let Some(description) = spec.map(|spec| spec.description.trim()).filter(|text| !text.is_empty()) {
            let _ = write!(page, "\n{description}\n");
        }
        for row in &rows {
            callable(&mut page, row);
        }
    }
    page
}

fn callable(page: &mut String, row: &Row) {
    let Row { kind, tool, tier, group, .. } = row;
    let _ = write!(page, "\n### {}/{}\n\n", tool.server, tool.name);
    let mut facts = vec![(*kind).to_owned()];
    facts.push(match *tier == tool.tier {
        true => format!("tier {tier}"),
        false => format!("tier {tier}, raised from {}", tool.tier),
    });
    facts.push(format!("group {group}"));
    facts.extend(hints(tool.annotations));
    facts.extend(row.uri.map(|uri| format!("`{uri}`")));
    facts.extend(row.mime_type.map(str::to_owned));
    let _ = write!(page, "{}\n\n{}\n", facts.join(" · "), tool.description.trim());

    let schema = (tool.input_schema)();
    let urls = url_arguments(tool, &schema);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object().filter(|properties| !properties.is_empty())
    else {
        return;
    };
    page.push_str("\n| argument | type | what it is |\n|---|---|---|\n");
    for (name, property) in properties {
        let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
        let egress = if urls.contains(name) { ", under egress" } else { "" };
        let secret = if tool.secret_arguments.contains(&name.as_str()) { ", secret" } else { "" };
        let description = property["description"].as_str().unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{name}` | {}{optional}{egress}{secret} | {} |",
            kind_of(property),
            cell(description)
        );
    }
}

fn kind_of(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("array of {}", kind_of(&schema["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if schema["enum"].is_array() => "enum".to_owned(),
        _ => "any".to_owned(),
    }
}

fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
