//! The tour: an annotated function and a spawned MCP server behind one bridge.
//!
//! ```text
//! cargo run --example hello_tool
//! ```
//!
//! Prints what a model would be given, and what a search, a describe and an execute answer. The MCP server is this very
//! program, started again with `serve`: any other command that speaks MCP would do.
#![expect(clippy::print_stdout, reason = "the tour is to be read")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use aster_runtime::audit::JsonLines;
use aster_runtime::serve::{self, Shape};
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{Host, Profile, catalogue, mcp_server, mcp_tool};
use serde_json::json;

/// Adds two whole numbers.
#[mcp_tool(tier = Standard, server = "calculator", read_only)]
fn add(
    /// The first summand.
    a: i64,
    /// The second summand.
    b: i64,
) -> i64 {
    a + b
}

/// Tells the phases of the moon.
#[mcp_server(name = "moon")]
mod moon {
    use aster_runtime::mcp_tool;

    /// Tells how much of the moon is lit on a day, in percent.
    ///
    /// Good to about two days: it counts mean months from the new moon of 6 January 2000.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn illumination(
        /// Days since 6 January 2000.
        #[arg(range(0..=36_525))]
        day: u32,
    ) -> String {
        let phase = f64::from(day) / 29.530_588_853 * std::f64::consts::TAU;
        format!("{:.0} %", 50.0 * (1.0 - phase.cos()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if env::args().nth(1).as_deref() == Some("serve") {
        let host = Host::builder().catalogue(catalogue![moon::SERVER]).build().await?;
        return Ok(serve::stdio(
            host,
            Profile::new("moon"),
            Shape::Server("moon".into()),
            Default::default(),
        )
        .await?);
    }

    // The native tools, the external server, and where the audit goes.
    let moon = StdioServer::new("moon", env::current_exe()?.to_string_lossy()).args(["serve"]);
    let audit = env::temp_dir().join(format!("aster-hello-{}.jsonl", std::process::id()));
    let host = Host::builder()
        .catalogue(catalogue![add::TOOL])
        .with_upstream(StdioUpstream::spawn(moon))
        .audit(Arc::new(JsonLines::open(&audit)?))
        .build()
        .await?;
    host.settle(Duration::from_secs(10)).await;

    // What goes to the model: one function, and a manifest for the system prompt.
    let session = host.session(Profile::new("assistant"))?;
    let injection = session.injection().ok_or("no tools")?;
    heading("prompt");
    println!("{}", injection.prompt.trim_end());
    heading("tokens (one per four characters)");
    println!("the prompt: {} of {} allowed", injection.prompt_tokens, injection.inventory_budget_tokens);
    println!("all schemas, which it stands for: {}", host.catalogue().schema_tokens());

    // What the model may do with it.
    for request in [
        json!({"action": "search", "query": "moon"}),
        json!({"action": "describe", "name": "moon/illumination"}),
        json!({"action": "execute", "name": "moon/illumination", "arguments": {"day": 9_800}}),
        json!({"action": "execute", "name": "calculator/add", "arguments": {"a": 2, "b": 40}}),
        json!({"action": "execute", "name": "calculator/add", "arguments": {"a": 2}}),
    ] {
        heading(&format!("aster_mcp {request}"));
        println!("{}", session.call(&request).await.to_text());
    }

    heading("audit");
    print!("{}", fs::read_to_string(&audit)?);
    fs::remove_file(&audit)?;
    host.close().await;
    Ok(())
}

fn heading(text: &str) {
    println!("\n━━ {text}");
}
