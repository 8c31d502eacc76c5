//! The fixtures of the official MCP conformance suite, as one server made with Aster's macros.
//!
//! ```text
//! cargo run --example conformance_server      # speaks MCP on standard input and output
//! ```
//!
//! Nothing here is of use but as an example of every kind of thing that a server can publish: results of each type,
//! progress and log, and failures. `tests/conformance.rs` runs the suite against it.

use std::error::Error;

use aster_runtime::serve::{self, Shape};
use aster_runtime::{Host, NativeCatalogue, Profile, catalogue, mcp_server};
use tokio_util::sync::CancellationToken;

const CATALOGUE: NativeCatalogue = catalogue![conformance::SERVER];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder().catalogue(CATALOGUE).build().await?;
    // The suite knows the tools by their bare names.
    let shape = Shape::Server("conformance".to_owned());
    serve::stdio(host, Profile::new("conformance"), shape, CancellationToken::new()).await?;
    Ok(())
}

/// Fixtures of the MCP conformance suite.
#[mcp_server(name = "conformance")]
mod conformance {
    use aster_runtime::{Audio, Content, Image, LogLevel, Resource, ToolContext, ToolError, mcp_tool};

    /// A red pixel.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
        \0\0\0\x0cIDATx\xdac\xf8\xcf\xc0\0\0\x03\x01\x01\0\xf7\x03AC\0\0\0\0IEND\xaeB`\x82";

    /// One sample of silence.
    const WAV: &[u8] =
        b"RIFF&\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x02\0\0\0\0\0";

    // ── What a tool can return ──

    /// Returns a text.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_simple_text() -> &'static str {
        "This is a simple text response for testing."
    }

    /// Returns an image.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_image_content() -> Image {
        Image::new("image/png", PNG)
    }

    /// Returns a sound.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_audio_content() -> Audio {
        Audio::new("audio/wav", WAV)
    }

    /// Returns a resource with its contents.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_embedded_resource() -> Resource {
        Resource::text("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    }

    /// Returns a text, an image and a resource.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_multiple_content_types() -> Vec<Content> {
        let data = r#"{"test":"data","value":123}"#;
        vec![
            "Multiple content types test:".into(),
            Image::new("image/png", PNG).into(),
            Resource::text("test://mixed-content-resource", "application/json", data).into(),
        ]
    }

    /// Always fails.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_error_handling() -> Result<(), ToolError> {
        Err(ToolError::new("This tool intentionally returns an error for testing"))
    }

    // ── What a tool can report while it runs ──

    /// Writes three messages to the client's log.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_tool_with_logging(ctx: &ToolContext) -> &'static str {
        ctx.log(LogLevel::Info, "Tool execution started");
        ctx.log(LogLevel::Info, "Tool processing data");
        ctx.log(LogLevel::Info, "Tool execution completed");
        "three messages were logged"
    }

    /// Writes a message to the client's log, which a modern client gets only if it asked for messages.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_logging_tool(ctx: &ToolContext) -> &'static str {
        ctx.log(LogLevel::Error, "Nobody asked for this");
        "a message was logged"
    }

    /// Reports its progress at the start, half-way and at the end.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn test_tool_with_progress(ctx: &ToolContext) -> &'static str {
        for done in [0.0, 50.0, 100.0] {
            ctx.progress(done, Some(100.0), None);
        }
        "progress was reported three times"
    }
}
