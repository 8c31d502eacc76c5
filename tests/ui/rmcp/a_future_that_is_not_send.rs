use std::rc::Rc;

use rmcp::{tool, tool_router};

struct Web;

#[tool_router(server_handler)]
impl Web {
    #[tool(description = "Fetches a page.")]
    async fn fetch(&self) -> String {
        let page = Rc::new(String::new());
        std::future::ready(()).await;
        page.to_string()
    }
}

fn main() {}
