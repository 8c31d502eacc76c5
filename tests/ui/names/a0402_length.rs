use aster_runtime::{mcp_server, mcp_tool};

struct TheWholeWideWorldOfInterlinkedHypertext;

#[mcp_server]
impl TheWholeWideWorldOfInterlinkedHypertext {
    /// Fetches a page.
    #[mcp_tool(tier = Standard)]
    fn fetch_a_page_from_its_address() {}
}

fn main() {}
