use aster_runtime::{agent, catalogue, mcp_prompt, mcp_server, mcp_tool};

struct Web;

#[derive(Debug)]
enum WebTool {
    Hammer,
}

#[mcp_server]
impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self) {}
}

/// Reads pages.
#[mcp_tool(tier = Standard)]
fn pages() {}

/// Asks for pages.
#[mcp_prompt(tier = Standard)]
fn pages() -> &'static str {
    "Which pages?"
}

agent! { READER = { tools: [pages::TOOL] } }

fn main() {
    let _ = (WebTool::Hammer, catalogue![Web::SERVER, pages::TOOL], READER.profile());
    Web.page();
}
