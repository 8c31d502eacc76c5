use aster_runtime::{mcp_resource, mcp_tool};

trait Read {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(query: String) -> String {
        query
    }

    /// A page.
    #[mcp_resource(uri = "web://page", tier = Elevated)]
    fn always_the_same() -> String {
        String::new()
    }
}

mod page {
    pub(crate) const NAME: &str = "page";
}

/// Reads a page.
#[mcp_tool(tier = Standard)]
fn page() -> &'static str {
    page::NAME
}

fn main() {
    page();
}
