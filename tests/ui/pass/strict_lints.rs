//! A crate that takes everything seriously. `nonstandard_style` is denied and not forbidden, for `inventory::submit!` has
//! an `allow` of its own.
#![forbid(unsafe_code, missing_docs, unused_imports, dead_code)]
#![deny(warnings, unused, nonstandard_style, unreachable_pub, future_incompatible, rust_2018_idioms)]
#![deny(clippy::all, clippy::pedantic)]

use aster_runtime::{McpServer, NativeServer, ServerEnv, StartError, mcp_server, mcp_tool};

/// Adds two whole numbers.
#[mcp_tool(tier = Standard)]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

/// A public function.
#[mcp_tool(tier = Standard)]
#[must_use]
pub fn subtract(a: i64, b: i64) -> i64 {
    a - b
}

/// Counts what it does not keep.
#[mcp_tool(tier = Standard)]
fn length(text: String) -> usize {
    text.len()
}

/// Takes one argument more than clippy would like.
#[mcp_tool(tier = Standard)]
fn octets(n1: u8, n2: u8, n3: u8, n4: u8, n5: u8, n6: u8, n7: u8, n8: u8) -> u64 {
    u64::from_be_bytes([n1, n2, n3, n4, n5, n6, n7, n8])
}

/// Is on its way out.
#[deprecated = "use `add`"]
#[mcp_tool(tier = Standard)]
fn sum(a: i64, b: i64) -> i64 {
    a + b
}

struct Web {
    prefix: String,
}

impl McpServer for Web {
    async fn start(_: &ServerEnv) -> Result<Self, StartError> {
        Ok(Self { prefix: String::new() })
    }
}

#[mcp_server]
impl Web {
    /// Fetches a page.
    #[mcp_tool(tier = Elevated)]
    fn fetch(&self, page: String) -> String {
        page + &self.prefix
    }

    /// Is on its way out as well.
    #[deprecated = "use `fetch`"]
    #[mcp_tool(tier = Elevated)]
    fn get(&self, page: String) -> usize {
        page.len() + self.prefix.len()
    }
}

#[mcp_server]
mod clock {
    use aster_runtime::mcp_tool;

    /// Tells the time.
    #[mcp_tool(tier = Standard)]
    fn now() {}
}

fn main() {
    assert_eq!(<Web as NativeServer>::SPEC.tools.len(), 2);
}
