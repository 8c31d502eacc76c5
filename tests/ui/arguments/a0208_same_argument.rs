use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(page: String, #[arg(name = "page")] address: String) -> String {
    page + &address
}

fn main() {}
