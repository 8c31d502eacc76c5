use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(#[arg(length(-1..=3))] page: String) -> String {
    page
}

fn main() {}
