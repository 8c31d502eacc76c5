use aster_runtime::{catalogue, mcp_prompt, mcp_resource, mcp_server, mcp_tool};

struct Web;
struct Notes;

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Standard, timeout = 3)]
    fn fetch(&self) {}
}

#[mcp_server(title = 3)]
impl Notes {
    /// Lists the notes.
    #[mcp_tool(tier = Standard)]
    fn list(&self) {}
}

/// One note.
#[mcp_resource(uri = "notes", tier = Standard)]
fn note() -> String {
    String::new()
}

/// All notes.
#[mcp_resource(uri = "notes:all", tier = Standard, size = "big")]
fn notes() -> String {
    String::new()
}

/// Asks for a review.
#[mcp_prompt(tier = Standard, title = 3)]
fn review() -> String {
    String::new()
}

fn main() {
    let _ = catalogue![
        Web::SERVER, Notes::SERVER, note::RESOURCE, notes::RESOURCE, review::PROMPT;
        raise { WebTool::Fetch => Elevated }
    ];
}
