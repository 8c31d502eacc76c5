use aster_runtime::mcp_tool;

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn one(#[arg(range(0.5..=1))] a: u8, #[arg(range(-1..))] b: u32, #[arg(range(..=300))] c: Option<u8>) {
    let _ = (a, b, c);
}

/// Fetches a page.
#[mcp_tool(tier = Standard)]
fn two(
    /// TODO: say what it is
    a: u8,
    #[arg(range("a"..))] b: String,
    #[arg(length(..=2.5))] c: Vec<u8>,
    #[arg(path)] d: Option<bool>,
) {
    let _ = (a, b, c, d);
}

/// TODO: describe
#[mcp_tool(tier = Standard)]
fn three() {}

fn main() {}
