use aster_runtime::{mcp_prompt, mcp_server, mcp_tool};

/// Reads a page.
#[mcp_tool(tier = Standard)]
fn page(&self, query: String) -> String {
    self.0.clone() + &query
}

/// Reads pages.
#[mcp_tool(tier = Standard)]
unsafe extern "C" fn pages(first: u8, mut others: ...) -> u8 {
    first + unsafe { others.arg::<u8>() }
}

struct Web;

impl Web {
    /// Reads a page.
    #[mcp_prompt(tier = Standard)]
    fn page(&self, query: String) -> String {
        self.with(query)
    }

    fn with(&self, query: String) -> String {
        query
    }
}

#[mcp_server]
impl Web {
    /// Reads pages.
    #[mcp_tool(tier = Standard)]
    unsafe extern "C" fn pages(&self, first: u8, _: ...) -> u8 {
        first
    }
}

fn main() {
    let _ = (page(String::new()), page::TOOL, Web.page(String::new()), Web::SERVER);
}
