use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(#[arg(range(1..=5))] page: String) -> String {
    page
}

fn main() {}
