//! A crate that re-exports the runtime, and whose users do not know its name.

mod facade {
    pub(crate) use aster_runtime as aster;
}

use crate::facade::aster::{mcp_server, mcp_tool};

/// Adds two whole numbers.
#[mcp_tool(tier = Standard, crate = crate::facade::aster)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

struct Web;

#[mcp_server(crate = crate::facade::aster)]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Elevated)]
    fn fetch(&self) {}
}

fn main() {
    let _ = (add::TOOL, Web::SERVER);
}
