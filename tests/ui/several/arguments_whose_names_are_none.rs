use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(mut _q: String, mut arguments: String, ref _meta: String) {
    _q.push('a');
    arguments.push('b');
    let _ = _meta;
}

fn main() {
    let _ = fetch::TOOL;
}
