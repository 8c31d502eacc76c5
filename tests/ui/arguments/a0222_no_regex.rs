use aster_runtime::mcp_tool;

/// Looks a country up.
#[mcp_tool(tier = Standard)]
fn country(#[arg(pattern = "^[A-Z{2}$")] code: String) -> String {
    code
}

fn main() {
    let _ = country::TOOL;
}
