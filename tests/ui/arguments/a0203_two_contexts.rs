use aster_runtime::{ToolContext, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier = Standard)]
async fn fetch(ctx: &ToolContext, again: &ToolContext) -> bool {
    ctx.is_cancelled() || again.is_cancelled()
}

fn main() {}
