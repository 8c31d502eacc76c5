use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(descripton = "Fetches a page.")]
    fn fetch(&self) -> String {
        String::new()
    }
}

fn main() {}
