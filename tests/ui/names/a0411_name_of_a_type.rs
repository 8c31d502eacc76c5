use aster_runtime::mcp_tool;

struct fetch;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() {}

fn main() {}
