use aster_runtime::mcp_server;

#[mcp_server]
mod web {
    use aster_runtime::mcp_tool;

    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    pub fn fetch(&self, page: String) -> String {
        self.pages.get(page)
    }

    /// Searches the web.
    #[mcp_tool(tier = Standard)]
    pub fn search<T: ToString>(query: T) -> String {
        query.to_string()
    }

    const TIERS: u8 = 1;
}

fn main() {
    let _ = web::SERVER;
}
