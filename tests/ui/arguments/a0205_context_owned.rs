use aster_runtime::{ToolContext, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier = Standard)]
async fn fetch(ctx: ToolContext) -> String {
    ctx.call_id().to_owned()
}

fn main() {}
