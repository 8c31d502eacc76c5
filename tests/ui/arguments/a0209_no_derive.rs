use aster_runtime::mcp_tool;

struct NoDerive;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(page: NoDerive) {
    let NoDerive = page;
}

fn main() {}
