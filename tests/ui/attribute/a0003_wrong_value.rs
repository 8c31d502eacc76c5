use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, name = 3)]
fn fetch() {}

fn main() {}
