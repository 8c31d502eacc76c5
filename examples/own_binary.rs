//! A whole binary from a catalogue of one's own: list, search, describe, call, serve and check.
//!
//! ```text
//! cargo run --example own_binary -- list
//! cargo run --example own_binary -- call text/reverse '{"text": "aster"}'
//! cargo run --example own_binary -- serve text      # speaks MCP on standard input and output
//! ```

use aster_runtime::{NativeCatalogue, catalogue, mcp_server};

/// Works on text.
#[mcp_server(name = "text")]
mod text {
    use aster_runtime::{ToolError, mcp_tool};

    /// Reverses a text, character by character.
    #[mcp_tool(tier = Standard, read_only, idempotent)]
    pub(crate) fn reverse(
        /// The text.
        text: String,
    ) -> String {
        text.chars().rev().collect()
    }

    /// Repeats a text.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn repeat(
        /// The text.
        text: String,
        /// How often.
        #[arg(default = 2, range(1..=100))]
        times: u8,
    ) -> Result<String, ToolError> {
        if text.is_empty() {
            return Err(ToolError::new("there is nothing to repeat; give a text"));
        }
        Ok(text.repeat(times.into()))
    }
}

const CATALOGUE: NativeCatalogue = catalogue![text::SERVER];

aster_runtime::serve_main!(CATALOGUE);
