use aster_runtime::{NativeCatalogue, catalogue, mcp_server};

#[mcp_server]
mod web {
    use aster_runtime::mcp_tool;

    /// Follows links.
    #[mcp_tool(tier = Elevated)]
    fn crawl() {}
}

const CATALOGUE: NativeCatalogue = catalogue![web::SERVER; raise { web::Tool::Crawl => Standard }];

fn main() {
    let _ = CATALOGUE;
}
