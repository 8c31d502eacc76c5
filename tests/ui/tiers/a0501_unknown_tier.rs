use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Elevted)]
fn fetch() {}

fn main() {}
