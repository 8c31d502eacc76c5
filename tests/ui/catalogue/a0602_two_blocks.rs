use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self) {}
}

#[mcp_server]
impl Web {
    /// Reads a page later.
    #[mcp_tool(tier = Standard)]
    fn later(&self) {}
}

fn main() {}
