use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(nam = "a", description = "Fetches a page.")]
    fn fetch(&self) -> String {
        String::new()
    }

    #[tool(name = 3, description = "Searches the web.")]
    fn search(&self) -> String {
        String::new()
    }
}

fn main() {}
