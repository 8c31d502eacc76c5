use aster_runtime::mcp_tool;

struct Web;

impl Web {
    /// Reads a page.
    #[mcp_tool(tier = Standard)]
    fn page(query: String) -> String {
        query
    }
}

fn main() {}
