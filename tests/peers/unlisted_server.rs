//! A binary that links more than it lists, for the tests of `check`.

use aster_runtime::{NativeCatalogue, catalogue, mcp_server};

/// Stands in the list.
#[mcp_server]
mod listed {
    /// Says that it is listed.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(crate) fn listed_tool() -> &'static str {
        "listed"
    }
}

/// Was forgotten.
#[mcp_server]
mod forgotten {
    /// Says that it was forgotten.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(crate) fn forgotten_tool() -> &'static str {
        "forgotten"
    }
}

const CATALOGUE: NativeCatalogue = catalogue![listed::SERVER];

aster_runtime::serve_main!(CATALOGUE);
