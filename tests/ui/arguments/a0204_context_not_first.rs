use aster_runtime::{ToolContext, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier = Standard)]
async fn fetch(page: String, ctx: &ToolContext) -> String {
    format!("{page} {}", ctx.call_id())
}

fn main() {}
