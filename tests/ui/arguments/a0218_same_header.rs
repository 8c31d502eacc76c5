use aster_runtime::mcp_tool;

/// Runs a query.
#[mcp_tool(tier = Standard)]
fn query(#[arg(header = "Region")] region: String, #[arg(header = "region")] other: String) -> String {
    region + &other
}

fn main() {}
