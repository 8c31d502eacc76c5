use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, crate = "aster_runtime")]
fn fetch() {}

fn main() {}
