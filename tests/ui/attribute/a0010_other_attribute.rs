use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, instructions = "Use it to read.")]
fn fetch() {}

fn main() {}
