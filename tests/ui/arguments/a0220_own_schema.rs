use aster_runtime::mcp_tool;

const SCHEMA: &str = r#"{"type": "object"}"#;

/// Runs a query.
#[mcp_tool(tier = Standard, schema = SCHEMA)]
fn query(region: String, limit: u8) -> String {
    region.repeat(limit.into())
}

fn main() {}
