use aster_runtime::mcp_tool;

/// Reads a file.
#[mcp_tool(tier = Standard)]
fn read(#[arg(path)] file: u32) -> u32 {
    file
}

fn main() {}
