use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server]
impl Web {
    /// Reads a page.
    #[cfg(not(any()))]
    #[mcp_tool(tier = Standard)]
    fn page(&self) {}

    /// Reads a page elsewhere.
    #[cfg(any())]
    #[mcp_tool(tier = Standard)]
    fn page(&self) {}

    /// Reads.
    #[mcp_tool(tir = Standard)]
    fn other(&self) {}
}

fn main() {}
