use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
#[mcp_tool(tier = Elevated)]
fn fetch() {}

fn main() {}
