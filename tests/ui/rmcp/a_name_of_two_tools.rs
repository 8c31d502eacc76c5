use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(name = "fetch", description = "Fetches a page.")]
    fn fetch(&self) -> String {
        String::new()
    }

    #[tool(name = "fetch", description = "Fetches a page again.")]
    fn fetch_again(&self) -> String {
        String::new()
    }
}

fn main() {}

// It compiles, but for this.
compile_error!("nothing is said");
