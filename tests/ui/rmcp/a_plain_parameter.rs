use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(description = "Fetches a page.")]
    fn fetch(&self, page: String) -> String {
        page
    }
}

fn main() {}
