use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, name = "fetch/page")]
fn fetch() {}

fn main() {}
