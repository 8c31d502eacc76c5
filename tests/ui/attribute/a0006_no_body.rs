use aster_runtime::mcp_tool;

trait Fetch {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch(&self);
}

fn main() {}
