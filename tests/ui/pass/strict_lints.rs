//! A crate that takes everything seriously. `nonstandard_style` is denied and not forbidden, for `inventory::submit!` has
//! an `allow` of its own.
#![forbid(unsafe_code, missing_docs, unused_imports, dead_code, unreachable_code)]
#![deny(warnings, unused, nonstandard_style, unreachable_pub, future_incompatible, rust_2018_idioms)]
#![deny(clippy::all, clippy::pedantic)]

use aster_runtime::{
    McpServer, NativeServer, ServerEnv, StartError, mcp_prompt, mcp_resource, mcp_server, mcp_tool,
};

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

/// One note.
#[mcp_resource(uri = "notes://{id}", tier = Standard)]
fn note(id: String) -> Option<String> {
    (!id.is_empty()).then_some(id)
}

/// Asks for a review.
#[mcp_prompt(tier = Standard)]
fn review(#[arg(complete = ["draft", "final"])] state: String) -> String {
    format!("Review the {state}.")
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

/// Nothing but resources and prompts.
struct Notes;

impl Notes {
    fn names(typed: &str) -> Vec<String> {
        vec![typed.to_owned()]
    }
}

#[mcp_server]
impl Notes {
    /// One note.
    #[mcp_resource(uri = "notes://all/{name}", tier = Standard)]
    fn note(#[arg(complete = Self::names)] name: String) -> String {
        name
    }

    /// Asks for a note.
    #[mcp_prompt(tier = Standard)]
    fn ask() -> &'static str {
        "Write a note."
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
    assert_eq!((Notes::SERVER.resources.len(), Notes::SERVER.prompts.len()), (1, 1));
}
