use aster_runtime::{NativeCatalogue, catalogue, mcp_server};

/// Tells the time.
#[mcp_server]
mod clock {
    /// Tells how late it is.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(crate) fn now() {}
}

const CATALOGUE: NativeCatalogue = catalogue![aster_hygiene::clock::SERVER, clock::SERVER];

fn main() {
    let _ = CATALOGUE;
}
