use aster_runtime::{mcp_server, mcp_tool};

struct Web {
    pages: Vec<String>,
}

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(&mut self, page: String) {
        self.pages.push(page);
    }
}

fn main() {}
