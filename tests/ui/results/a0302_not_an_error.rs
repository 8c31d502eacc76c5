use aster_runtime::mcp_tool;

struct Failure;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() -> Result<String, Failure> {
    Err(Failure)
}

fn main() {}
