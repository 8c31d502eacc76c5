use aster_runtime::mcp_tool;

#[mcp_tool(tier = Standard)]
fn fetch() {}

fn main() {}
