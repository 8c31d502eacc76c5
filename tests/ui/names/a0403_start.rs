use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, name = "2nd_page")]
fn fetch() {}

fn main() {}
