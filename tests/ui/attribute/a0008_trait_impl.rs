use aster_runtime::{mcp_server, mcp_tool};

struct Web;

trait Fetch {
    fn fetch();
}

#[mcp_server]
impl Fetch for Web {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch() {}
}

fn main() {}
