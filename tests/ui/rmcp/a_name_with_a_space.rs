use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(name = "fetch page/now", description = "Fetches a page.")]
    fn fetch(&self) -> String {
        String::new()
    }
}

fn main() {}

// It compiles, but for this.
compile_error!("nothing is said");
