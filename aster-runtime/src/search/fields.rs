//! What of a tool is searched, and how much each part counts.

use serde_json::Value;

use super::tokens::bare;
use crate::catalogue::{Server, Tool};

/// The parts of a tool that are searched, each with its own weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// The server's name and title.
    Server,
    /// The tool's name and title.
    Name,
    /// The tool's description.
    Description,
    /// The names of its parameters.
    Parameter,
    /// Their descriptions.
    ParameterDescription,
    /// The texts that they may be.
    Value,
    /// What the server says of itself.
    ServerDescription,
}

/// How many fields there are.
pub(super) const FIELDS: usize = 7;

/// How many words each field has on average in public tools (LiveMCPBench's, and those of 300 servers of Toucan;
/// rounded).
pub(super) const AVERAGE_LENGTHS: [f32; FIELDS] = [6.0, 3.0, 20.0, 4.0, 9.0, 2.0, 30.0];

/// How deep parameters are looked for in a schema.
const MAX_DEPTH: usize = 6;

/// How many characters of a text are read: the longest say in their first words what they are about.
const MAX_TEXT: usize = 4_000;

/// Hands over every text of a tool with its field. A schema's keywords are not content: only names of properties,
/// descriptions and the texts of `enum` and `const` are.
pub(super) fn texts<'a>(tool: &'a Tool, server: Option<&'a Server>, text: &mut dyn FnMut(Field, &'a str)) {
    let text = &mut |field, said: &'a str| text(field, start(said));
    text(Field::Server, tool.id().server());
    if let Some(server) = server {
        text(Field::Server, server.title.as_deref().unwrap_or_default());
        text(Field::ServerDescription, server.description.as_deref().unwrap_or_default());
    }
    text(Field::Name, tool.id().tool());
    if let Some(title) = title(tool) {
        text(Field::Name, title);
    }
    text(Field::Description, tool.description());
    parameters(tool.input_schema(), MAX_DEPTH, false, text);
}

/// What a tool is called where people read it, if that is not its name again.
///
/// Source: MCP 2025-11-25, `Tool.title`, and before it `ToolAnnotations.title`.
fn title(tool: &Tool) -> Option<&str> {
    let definition = tool.definition();
    let title = definition.get("title").or_else(|| definition.get("annotations")?.get("title"))?.as_str()?;
    (bare(title) != bare(tool.id().tool())).then_some(title)
}

fn start(text: &str) -> &str {
    if text.len() <= MAX_TEXT {
        return text;
    }
    text.char_indices().nth(MAX_TEXT).map_or(text, |(at, _)| &text[..at])
}

/// What a schema says so many levels deep, and its description if it is one of a parameter's own.
fn parameters<'a>(schema: &'a Value, depth: usize, is_parameter: bool, text: &mut dyn FnMut(Field, &'a str)) {
    let Some(schema) = schema.as_object() else { return };
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("description", Value::String(description)) if is_parameter => {
                text(Field::ParameterDescription, description);
            }
            _ if depth == 0 => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    text(Field::Parameter, name);
                    parameters(property, depth - 1, true, text);
                }
            }
            ("enum", Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).for_each(|value| text(Field::Value, value));
            }
            ("const", Value::String(value)) => text(Field::Value, value),
            ("items", items @ Value::Object(_)) => parameters(items, depth - 1, false, text),
            ("anyOf" | "oneOf" | "allOf", Value::Array(parts)) => {
                parts.iter().for_each(|part| parameters(part, depth - 1, false, text));
            }
            _ => {}
        }
    }
}
