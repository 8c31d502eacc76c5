use aster_runtime::{NativeCatalogue, catalogue, groups, mcp_tool};

groups! { pub RESEARCH, pub DESKTOP }

/// Follows links.
#[mcp_tool(tier = Elevated, server = "web", group = DESKTOP)]
fn crawl() {}

const CATALOGUE: NativeCatalogue = catalogue![crawl::TOOL; groups { RESEARCH }];

fn main() {
    let _ = CATALOGUE;
}
