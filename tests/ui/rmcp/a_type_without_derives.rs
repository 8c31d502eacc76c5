use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};

struct Page {
    url: String,
}

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(description = "Fetches a page.")]
    fn fetch(&self, Parameters(page): Parameters<Page>) -> String {
        page.url
    }
}

fn main() {}
