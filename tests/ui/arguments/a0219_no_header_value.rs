use aster_runtime::mcp_tool;

/// Runs a query.
#[mcp_tool(tier = Standard)]
fn query(#[arg(header = "Share")] share: f64) -> f64 {
    share
}

fn main() {}
