use aster_runtime::{mcp_server, mcp_tool};

/// One.
#[mcp_tool(tier)]
fn one() {}

/// Two.
#[mcp_tool(tier = , read_only)]
fn two() {}

/// Three.
#[mcp_tool(tier = Standard, name = )]
fn three() {}

/// Four.
#[mcp_tool("Fetches a page", tier = Standard)]
fn four() {}

/// Five.
#[mcp_tool(Standard)]
fn five() {}

/// Six.
#[mcp_tool(tier = Standard; read_only)]
fn six() {}

/// Seven.
#[mcp_tool(tier = Standard read_only)]
fn seven() {}

/// Eight.
#[mcp_tool(tier Standard)]
fn eight() {}

/// Nine.
#[mcp_tool(tier == Standard)]
fn nine() {}

/// Ten.
#[mcp_tool(tier = Standard, description = )]
fn ten() {}

/// Eleven.
#[mcp_tool(, tier = Standard)]
fn eleven() {}

/// Twelve.
#[mcp_tool(tier = Standard, group = groups::)]
fn twelve() {}

/// Thirteen.
#[mcp_tool(tier = Standard)]
fn thirteen(#[arg = 5] page: u8, #[arg(default: 5)] size: u8, #[arg(default = 1 +)] at: u8) {
    let _ = (page, size, at);
}

struct Web;

#[mcp_server("web")]
impl Web {
    /// Fourteen.
    #[mcp_tool = "fetch"]
    fn fourteen(&self) {}
}

fn main() {}
