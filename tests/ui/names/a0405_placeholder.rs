use aster_runtime::mcp_tool;

/// TODO
#[mcp_tool(tier = Standard)]
fn fetch() {}

fn main() {}
