use aster_runtime::{agent, mcp_server};

mod groups {
    aster_runtime::groups! { pub SEARCH }
}

#[mcp_server(group = groups::SEARCH)]
mod web {
    use aster_runtime::mcp_tool;

    /// Follows links.
    #[mcp_tool(tier = Elevated)]
    fn crawl() {}
}

agent! { RESEARCHER = { groups: [groups::SEACH], tools: [web::Tool::Crawl] } }

fn main() {
    let _ = RESEARCHER.profile();
}
