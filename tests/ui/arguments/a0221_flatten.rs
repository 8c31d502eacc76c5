use aster_runtime::mcp_tool;

/// Lists pages.
#[mcp_tool(tier = Standard)]
fn list(#[arg(flatten)] names: Vec<String>) -> usize {
    names.len()
}

fn main() {
    let _ = list::TOOL;
}
