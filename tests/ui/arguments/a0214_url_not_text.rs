use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(#[arg(url)] page: u8) -> u8 {
    page
}

fn main() {}
