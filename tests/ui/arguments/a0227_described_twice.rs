use aster_runtime::mcp_tool;

/// Fetches a page.
///
/// # Arguments
///
/// * `page` - which one
#[mcp_tool(tier = Standard)]
fn fetch(
    /// The page to fetch.
    page: String,
) -> String {
    page
}

fn main() {
    let _ = fetch::TOOL;
}
