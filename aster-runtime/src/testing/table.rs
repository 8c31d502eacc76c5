//! What a reviewer has to see change: a line for everything that can be called.

use std::fmt::Write as _;

use super::document::{Row, hints, rows};
use crate::catalogue::NativeCatalogue;

/// Kind, id, tier, group, hints and a digest of the schemas of everything in a list, a line each, in the order of ids; for
/// resources the digest is that of URI and media type as well. A tier that the catalogue raises is the raised one.
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
        let definition = (kind, (tool.input_schema)(), (tool.output_schema)(), row.uri, row.mime_type);
        let json = serde_json::to_string(&definition).unwrap_or_default();
        let digest = blake3::hash(json.as_bytes()).to_hex();
        let _ =
            writeln!(table, "{kind} {}/{} {tier} {group} {hints} {}", tool.server, tool.name, &digest[..16]);
    }
    table
}
