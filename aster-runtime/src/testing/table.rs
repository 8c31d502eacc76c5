//! What a reviewer has to see change: a line for everything that can be called.

use std::fmt::Write as _;

use serde_json::Value;

use super::document::{Row, hints, rows};
use crate::catalogue::NativeCatalogue;
use crate::provider::Provider;

/// Kind, id, tier, group, hints and a digest of the schemas of everything in a list, a line each, in the order of ids; for
/// resources the digest is that of URI and media type as well. A tier that the catalogue raises is the raised one. Below a
/// tool stands what each [`Provider`] would lose of its schema.
///
/// ```
/// # use aster_runtime::{catalogue, mcp_tool};
/// # /// Adds.
/// # #[mcp_tool(tier = Standard, read_only, server = "calculator")]
/// # fn add(a: i64, b: i64) -> i64 { a + b }
/// # fn main() {
/// let table = aster_runtime::testing::table(&catalogue![add::TOOL]);
/// assert!(table.starts_with("tool calculator/add standard calculator read-only "));
/// # }
/// ```
#[must_use]
pub fn table(list: &NativeCatalogue) -> String {
    let mut table = String::new();
    for row in rows(list) {
        let Row { kind, tool, tier, group, .. } = &row;
        let hints = match hints(tool.annotations).as_slice() {
            [] => "-".to_owned(),
            hints => hints.join(","),
        };
        let schema = (tool.input_schema)();
        let definition = (kind, &schema, (tool.output_schema)(), row.uri, row.mime_type);
        let json = serde_json::to_string(&definition).unwrap_or_default();
        let digest = blake3::hash(json.as_bytes()).to_hex();
        let _ =
            writeln!(table, "{kind} {}/{} {tier} {group} {hints} {}", tool.server, tool.name, &digest[..16]);
        if *kind == "tool" {
            losses(&mut table, &schema);
        }
    }
    table
}

/// What a provider does not take of a tool's schema: a line for each that loses something.
fn losses(table: &mut String, schema: &Value) {
    for provider in Provider::ALL {
        let losses = provider.export(schema).losses;
        let place = |path: &str| if path.is_empty() { "the root".to_owned() } else { path.to_owned() };
        let lost: Vec<String> =
            losses.iter().map(|loss| format!("{} at {}", loss.keyword, place(&loss.path))).collect();
        if !lost.is_empty() {
            let _ = writeln!(table, "  {provider:?} loses {}", lost.join(", "));
        }
    }
}
