use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, name = "get", tier = Elevated)]
fn fetch() {}

fn main() {}
