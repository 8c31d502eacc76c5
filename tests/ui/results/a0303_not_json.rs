use aster_runtime::{Json, mcp_tool};

struct Page;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() -> Json<Page> {
    Json(Page)
}

fn main() {}
