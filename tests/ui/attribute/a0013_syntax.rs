use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier: Standard)]
fn fetch() {}

fn main() {
    let _ = fetch::TOOL;
}
