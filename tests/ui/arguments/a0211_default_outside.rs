use aster_runtime::mcp_tool;

/// Lists the pages.
#[mcp_tool(tier = Standard)]
fn list(#[arg(default = 50, range(1..=20))] limit: u8) -> u8 {
    limit
}

fn main() {}
