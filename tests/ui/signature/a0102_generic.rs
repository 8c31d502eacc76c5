use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch<T: Into<String>>(page: T) -> String {
    page.into()
}

fn main() {}
