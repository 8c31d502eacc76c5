use aster_runtime::mcp_tool;

/// Lists the pages.
#[mcp_tool(tier = Standard)]
fn list(#[arg(range(20..=1))] limit: u8) -> u8 {
    limit
}

fn main() {}
