use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn get() {}

    /// Fetches a page again.
    #[mcp_tool(tier = Standard, name = "get")]
    fn fetch() {}
}

fn main() {
    let _ = (Web::SERVER, WebTool::Fetch);
}
