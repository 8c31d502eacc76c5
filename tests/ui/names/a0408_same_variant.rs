use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn v1(&self) {}

    /// Reads a page again.
    #[mcp_tool(tier = Standard)]
    fn v_1(&self) {}
}

fn main() {
    let _ = Web::SERVER;
    let _ = WebTool::V1;
}
