use aster_runtime::{agent, mcp_server, mcp_tool};

struct Web;

#[mcp_server]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self) {}
}

#[mcp_server(name = "Web")]
impl Web {
    /// Reads a page later.
    #[mcp_tool(tier = Standard, grop = LATER)]
    fn later(&self) {}

    /// Searches the web.
    #[mcp_tool]
    fn search(&self, query: &str) -> usize {
        query.len()
    }

    /// Saves a page.
    #[mcp_tool(tier = Standard)]
    fn save(&self) {}

    /// Saves a page for others.
    #[mcp_tool(tier = Standard, name = "save")]
    fn save_for(&self) {}

    /// Saves a page for all.
    #[mcp_tool(tier = Standard, name = "save_all")]
    fn save__for(&self) {}
}

agent! { READER = { tools: [WebTool::Page, WebTool::Later] } }

fn main() {
    let _ = (READER.profile(), Web::SERVER);
    Web.page();
    Web.later();
}
