use aster_runtime::mcp_server;

struct Web;

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[cfg_attr(not(windows), mcp_tool(tier = Standard))]
    fn fetch(page: String) -> String {
        page
    }
}

fn main() {
    let _ = Web::SERVER;
}
