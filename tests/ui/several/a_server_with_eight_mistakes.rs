use aster_runtime::{mcp_server, mcp_tool};

struct Web;

#[mcp_server(titel = "The web")]
impl Web {
    /// Fetches a page.
    #[mcp_tool]
    async fn fetch(&self, page: &str) -> String {
        page.to_owned()
    }

    #[mcp_tool(tier = Standard, timeout = "soon")]
    fn search<T>(&mut self, (query, limit): (String, T)) -> (String, T) {
        (query, limit)
    }

    fn helper() {}
}

fn main() {
    Web::helper();
    let _ = (Web::SERVER, WebTool::Fetch, WebTool::Search);
}
