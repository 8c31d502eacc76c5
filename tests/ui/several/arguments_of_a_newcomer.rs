use std::sync::Arc;

use aster_runtime::{ToolContext, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch(
    ctx: Arc<ToolContext>,
    #[serde(default)] depth: u8,
    #[arg(description = "the page", required)] page: String,
    #[arg(min = 1, max_length = 3)] text: String,
    #[arg(default = -1)] limit: u32,
    #[arg(default = 300)] size: u8,
    #[arg(example = 0.5)] count: Option<i64>,
) {
    let _ = (ctx, depth, page, text, limit, size, count);
}

/// Searches the web.
#[mcp_tool(tier = "Elevated")]
fn search(ctx: Option<&ToolContext>) -> std::pin::Pin<Box<dyn Future<Output = String> + Send>> {
    let _ = ctx;
    Box::pin(async { String::new() })
}

fn main() {}
