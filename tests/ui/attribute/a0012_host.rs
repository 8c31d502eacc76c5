use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard, egress("https://example.com"))]
fn fetch(url: String) -> String {
    url
}

fn main() {
    let _ = fetch::TOOL;
}
