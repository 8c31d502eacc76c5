use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(page: Strng, depth: u7) -> Jsn<u8> {
    Jsn(page.len() + depth)
}

fn main() {}
