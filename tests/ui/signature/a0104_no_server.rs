use aster_runtime::mcp_tool;

struct Web {
    page: String,
}

impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(&self) -> String {
        self.page.clone()
    }
}

fn main() {
    Web { page: String::new() }.fetch();
}
