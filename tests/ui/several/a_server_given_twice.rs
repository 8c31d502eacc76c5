use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server]
#[mcp_server(name = "web")]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self) {}
}

fn main() {
    Web.page();
}
