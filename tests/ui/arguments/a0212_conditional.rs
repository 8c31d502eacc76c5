use aster_runtime::mcp_tool;

/// Lists the pages.
#[mcp_tool(tier = Standard)]
fn list(limit: u8, #[cfg(any())] offset: u8) -> u8 {
    limit
}

fn main() {}
