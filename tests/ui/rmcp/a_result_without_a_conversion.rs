use rmcp::{tool, tool_router};

struct Page;

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(description = "Fetches a page.")]
    fn fetch(&self) -> Page {
        Page
    }
}

fn main() {}
