use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(page: Strng, more: Vec<Pge>) -> Result<Jsn<u8>, Failre> {
    let _ = (page, more);
}

fn main() {}
