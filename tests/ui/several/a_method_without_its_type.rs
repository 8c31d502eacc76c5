use aster_runtime::mcp_tool;

/// Reads a page.
#[mcp_tool(tier = Standard)]
fn page(&self) {}

/// Reads pages.
#[mcp_tool(tier = Standard)]
unsafe extern "C" fn pages(first: u8, _: ...) {
    let _ = first;
}

fn main() {}
