use aster_runtime::mcp_tool;

/// Fetches a page.
///
/// # Arguments
///
/// * `page` - which one
/// * `depth` - how far to follow links
#[mcp_tool(tier = Standard)]
fn fetch(page: String) -> String {
    page
}

fn main() {
    let _ = fetch::TOOL;
}
