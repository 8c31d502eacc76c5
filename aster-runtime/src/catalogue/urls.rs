//! Which arguments name a URL, and so stand under egress.

use serde_json::Value;

use super::schema::properties;
use crate::spec::ToolSpec;

/// The arguments of a native tool that name a URL: those that its attribute says and, where one value is all of them, those
/// whose schema says so.
pub(crate) fn url_arguments(tool: &ToolSpec, schema: &Value) -> Vec<String> {
    if !tool.whole {
        return tool.url_arguments.iter().map(|name| (*name).to_owned()).collect();
    }
    let definition = |property: &Value| {
        let reference = property.get("$ref")?.as_str()?.strip_prefix('#')?;
        schema.pointer(reference).cloned()
    };
    properties(schema)
        .filter(|(_, property)| !is_said_to_be_none(property))
        .filter(|(name, property)| {
            takes_url(name, property) || definition(property).is_some_and(|target| takes_url(name, &target))
        })
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The arguments of a native tool whose schema says that they are no URLs. A stranger's schema says nothing of the kind.
pub(crate) fn said_to_be_none(schema: &Value) -> impl Iterator<Item = &str> {
    properties(schema).filter(|(_, property)| is_said_to_be_none(property)).map(|(name, _)| name)
}

fn is_said_to_be_none(property: &Value) -> bool {
    property.get("x-egress") == Some(&Value::Bool(false))
}

/// Whether a parameter takes a URL, by the format of its schema, or by its name where it takes a text.
pub(crate) fn takes_url(name: &str, schema: &Value) -> bool {
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name).to_lowercase();
    let is_named = ["url", "urls", "uri", "uris"].contains(&last.as_str());
    is_url(schema) || (is_named && is_text(schema))
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
