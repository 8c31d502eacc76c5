use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(read_only)]
fn fetch() {}

fn main() {
    let _ = fetch::TOOL;
}
