use rmcp::tool;

#[tool(description = "A page.")]
struct Page;

fn main() {}
