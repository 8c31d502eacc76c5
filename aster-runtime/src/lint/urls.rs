//! Parameters that take a URL and that the gate does not look at.

use serde_json::Value;

use super::{Field, Finding, Rule, fields};
use crate::catalogue::NativeCatalogue;
use crate::spec::ToolSpec;

/// The parameters of tools that take a URL, by the format of their schema or by their name, and do not stand under egress.
/// The gate looks at arguments, and not into them: a URL inside of a struct is nobody's to judge.
#[must_use]
pub fn urls(list: &NativeCatalogue) -> Vec<Finding> {
    let tools = list.entries.iter().flat_map(|entry| entry.tools());
    tools
        .flat_map(|tool| {
            let schema = (tool.input_schema)();
            fields(&schema).iter().filter_map(|field| outside(tool, field)).collect::<Vec<_>>()
        })
        .collect()
}

fn outside(tool: &ToolSpec, field: &Field<'_>) -> Option<Finding> {
    let named = ["url", "urls", "uri", "uris"]
        .contains(&field.name.rsplit(['_', '-', '.']).next().unwrap_or(field.name).to_lowercase().as_str());
    let takes_url = field.schemas.iter().any(|schema| is_url(schema) || (named && is_text(schema)));
    if !takes_url || (field.depth == 1 && tool.url_arguments.contains(&field.name)) {
        return None;
    }
    let help = match field.depth {
        1 => "write `#[arg(url)]` on the parameter, or accept it with the reason",
        _ => {
            "make it a parameter of the tool, or let the tool ask `ServerEnv::egress` and accept it with the reason"
        }
    };
    let message = "it takes a URL and does not stand under egress";
    Some(Finding::of(Rule::Egress, tool, message, help).parameter(&field.path))
}

/// Whether a schema is one of URLs, or of a list of them.
fn is_url(schema: &Value) -> bool {
    let is = |schema: &Value| {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        ["uri", "uri-reference", "iri", "iri-reference", "url"].contains(&format)
    };
    each(schema, &is)
}

fn is_text(schema: &Value) -> bool {
    each(schema, &|schema| schema.get("type").is_some_and(|kind| kind == "string"))
}

/// Whether it holds of a schema, of one of its alternatives, or of the items of its lists.
fn each(schema: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    let alternatives = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let parts: Vec<&Value> = alternatives.chain(schema.get("items")).collect();
    holds(schema) || parts.into_iter().any(|part| holds(part) || part.get("items").is_some_and(holds))
}
