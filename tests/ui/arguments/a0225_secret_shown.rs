use aster_runtime::mcp_tool;

/// Logs in.
#[mcp_tool(tier = Restricted)]
fn log_in(#[arg(secret, example = "hunter2")] password: String) -> usize {
    password.len()
}

fn main() {
    let _ = log_in::TOOL;
}
