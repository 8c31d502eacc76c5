use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() -> impl std::fmt::Display {
    "page"
}

fn main() {}
