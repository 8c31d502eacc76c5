use aster_runtime::mcp_tool;

mod groups {
    aster_runtime::groups! { pub SEARCH }
}

/// Fetches a page.
#[mcp_tool(tier = Standard, group = groups::SEACH)]
fn fetch() {}

fn main() {
    let _ = groups::SEARCH;
}
