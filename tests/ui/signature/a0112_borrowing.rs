use aster_runtime::{NativeCatalogue, catalogue, mcp_server, mcp_tool};

struct Web<'a> {
    page: &'a str,
}

#[mcp_server]
impl Web<'_> {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(&self) -> String {
        self.page.to_owned()
    }
}

const CATALOGUE: NativeCatalogue = catalogue![Web::SERVER];

fn main() {
    let _ = CATALOGUE;
}
