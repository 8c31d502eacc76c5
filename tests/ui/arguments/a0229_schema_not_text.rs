use aster_runtime::mcp_tool;

const SCHEMA: u8 = 0;

/// Counts.
#[mcp_tool(tier = Standard, schema = SCHEMA)]
fn count(arguments: aster_runtime::JsonObject) -> usize {
    arguments.len()
}

fn main() {}
