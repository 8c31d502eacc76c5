use aster_runtime::{NativeCatalogue, catalogue, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn fetch() {}

const CATALOGUE: NativeCatalogue = catalogue![fetch];

fn main() {
    let _ = CATALOGUE;
}
