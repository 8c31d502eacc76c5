use aster_runtime::mcp_tool;

/// Lists pages.
#[mcp_tool(tier = Standard)]
fn list(#[arg(default = "ten")] limit: u8) -> u8 {
    limit
}

fn main() {}
