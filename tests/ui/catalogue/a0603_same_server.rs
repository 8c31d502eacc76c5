use aster_runtime::{mcp_server, mcp_tool};

use aster_runtime::{NativeCatalogue, catalogue};

#[mcp_server]
mod web {
    use aster_runtime::mcp_tool;

    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch() {}
}

/// Searches the web.
#[mcp_tool(tier = Standard, server = "web")]
fn search() {}

const CATALOGUE: NativeCatalogue = catalogue![web::SERVER, search::TOOL];

fn main() {
    let _ = CATALOGUE;
}
