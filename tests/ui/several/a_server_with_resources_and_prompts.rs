use aster_runtime::{mcp_prompt, mcp_resource, mcp_server, mcp_tool};

struct Notes;

/// Keeps notes.
#[mcp_server]
impl Notes {
    #[mcp_resource(uri = "notes", mime_typ = "text/plain", tier = Standard)]
    fn note(&mut self, #[arg(secret)] key: String) -> String {
        drop(key);
        String::new()
    }

    /// Asks for a review.
    #[mcp_prompt(uri = "notes://x", read_only)]
    fn review<T>(#[arg(header = "Code", complete)] code: T) -> String {
        drop(code);
        String::new()
    }

    /// Adds a note.
    #[mcp_tool(tier = Standard, mime_type = "text/plain")]
    #[mcp_prompt(tier = Standard)]
    fn add(#[arg(complete = ["a"])] text: String) {
        drop(text);
    }

    /// Also asks for a review.
    #[mcp_resource(uri = "notes://review", tier = Standard, name = "review")]
    fn other() -> String {
        String::new()
    }
}

fn main() {
    let _ = Notes::SERVER;
}
