use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, grop = RESEARCH)]
fn fetch() {}

fn main() {}
