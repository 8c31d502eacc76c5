use aster_runtime::{Json, mcp_tool};

struct Page;
struct Failure;

/// Fetches pages.
#[mcp_tool(tier = Standard)]
fn fetch(pages: Vec<Page>, #[arg(name = "next")] one: Option<Box<Page>>) -> Result<Json<Vec<Page>>, Failure> {
    let _ = (pages, one);
    Err(Failure)
}

/// Searches the web.
#[mcp_tool(tier = Standard)]
fn search() -> Result<Page, Box<dyn std::error::Error>> {
    Ok(Page)
}

fn main() {}
