use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch((page, depth): (String, u8)) -> String {
    format!("{page} {depth}")
}

fn main() {}
