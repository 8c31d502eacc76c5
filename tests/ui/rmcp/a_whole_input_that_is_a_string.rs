use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(description = "Fetches a page.")]
    fn fetch(&self, Parameters(page): Parameters<String>) -> String {
        page
    }
}

fn main() {}

// It compiles, but for this.
compile_error!("nothing is said");
