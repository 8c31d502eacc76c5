use aster_runtime::{mcp_server, mcp_tool};

/// Fetches a page.
#[mcp_tool(tier)]
fn one() {}

/// Fetches a page.
#[mcp_tool(tier = , read_only)]
fn two() {}

/// Fetches a page.
#[mcp_tool(tier = Standard, name = )]
fn three() {}

/// Fetches a page.
#[mcp_tool("Fetches a page", tier = Standard)]
fn four() {}

/// Fetches a page.
#[mcp_tool(Standard)]
fn five() {}

/// Fetches a page.
#[mcp_tool(tier = Standard; read_only)]
fn six() {}

/// Fetches a page.
#[mcp_tool(tier = Standard read_only)]
fn seven() {}

/// Fetches a page.
#[mcp_tool(tier Standard)]
fn eight() {}

/// Fetches a page.
#[mcp_tool(tier == Standard)]
fn nine() {}

/// Fetches a page.
#[mcp_tool(tier = Standard, description = )]
fn ten() {}

/// Fetches a page.
#[mcp_tool(, tier = Standard)]
fn eleven() {}

/// Fetches a page.
#[mcp_tool(tier = Standard, group = groups::)]
fn twelve() {}

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn thirteen(#[arg = 5] page: u8, #[arg(default: 5)] size: u8, #[arg(default = 1 +)] at: u8) {
    let _ = (page, size, at);
}

struct Web;

#[mcp_server("web")]
impl Web {
    /// Fetches a page.
    #[mcp_tool = "fetch"]
    fn fourteen(&self) {}
}

fn main() {}
