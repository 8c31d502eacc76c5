use aster_runtime::mcp_tool;

/// Runs a query.
#[mcp_tool(tier = Standard)]
fn query(#[arg(header = "my region")] region: String) -> String {
    region
}

fn main() {}
