use aster_runtime::mcp_server;

#[mcp_server]
mod web {
    use aster_runtime::mcp_tool;

    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch() {}

    struct Tool;
}

fn main() {
    let _ = web::SERVER;
}
