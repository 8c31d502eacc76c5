use aster_runtime::mcp_tool;

use std::rc::Rc;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
async fn fetch() -> usize {
    let page = Rc::new(1);
    std::future::ready(()).await;
    *page
}

fn main() {}
