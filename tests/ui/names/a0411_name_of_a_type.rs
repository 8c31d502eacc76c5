use aster_runtime::mcp_tool;

#[expect(non_camel_case_types)]
struct fetch {}

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() {}

fn main() {}
