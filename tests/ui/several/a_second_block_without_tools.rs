use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self) {
        self.find();
    }
}

#[mcp_server]
#[allow(dead_code)] // beside #[mcp_server]
impl Web {
    fn find(&self) {}
}

fn main() {}
