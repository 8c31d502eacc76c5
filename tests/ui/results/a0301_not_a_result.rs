use aster_runtime::mcp_tool;

struct Page;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() -> Page {
    Page
}

fn main() {}
