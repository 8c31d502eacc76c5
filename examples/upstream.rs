//! External servers beside native tools: one that works, one that does not, and neither waits for the other.
//!
//! ```text
//! cargo run --example upstream
//! ```
//!
//! The server that works is this program, started again with `serve`.
#![expect(clippy::print_stdout, reason = "the example is to be read")]

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};

use aster_runtime::serve::{self, Shape};
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{Host, Profile, ToolContext, catalogue, mcp_server, mcp_tool};
use serde_json::json;
use tokio::time::sleep;

/// Takes its time.
#[mcp_server(name = "kitchen")]
mod kitchen {
    use super::{Duration, ToolContext, mcp_tool, sleep};

    /// Boils an egg; each minute takes a tenth of a second here.
    #[mcp_tool(tier = Standard)]
    pub(crate) async fn boil_egg(
        ctx: &ToolContext,
        /// How many minutes.
        #[arg(default = 4, range(1..=10))]
        minutes: u32,
    ) -> String {
        for minute in 1..=minutes {
            sleep(Duration::from_millis(100)).await;
            ctx.progress(f64::from(minute), Some(f64::from(minutes)), None);
        }
        format!("an egg, boiled for {minutes} minutes")
    }
}

/// Counts the letters of a text.
#[mcp_tool(tier = Standard, server = "text", read_only)]
fn count_letters(
    /// The text.
    text: String,
) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if env::args().nth(1).as_deref() == Some("serve") {
        let host = Host::builder().catalogue(catalogue![kitchen::SERVER]).build().await?;
        let shape = Shape::Server("kitchen".into());
        return Ok(serve::stdio(host, Profile::new("kitchen"), shape, Default::default()).await?);
    }

    let kitchen = StdioServer::new("kitchen", env::current_exe()?.to_string_lossy()).args(["serve"]);
    let broken = StdioServer::new("broken", "this-command-does-not-exist");
    let host = Host::builder()
        .catalogue(catalogue![count_letters::TOOL])
        .with_upstream(StdioUpstream::spawn(kitchen))
        .with_upstream(StdioUpstream::spawn(broken))
        .build()
        .await?;
    host.settle(Duration::from_secs(10)).await;

    println!("Servers:");
    for server in host.catalogue().servers() {
        println!("  {:8} {} tools, {}", server.name, server.tools, server.health);
    }

    let session = host.session(Profile::new("cook"))?;
    println!("A search that finds nothing says what is away:");
    println!("  {}", session.call(&json!({"action": "search", "query": "zzz"})).await.to_text());

    println!("Two calls to one server do not wait for each other:");
    let boil =
        |minutes| json!({"action": "execute", "name": "kitchen/boil_egg", "arguments": {"minutes": minutes}});
    let started = Instant::now();
    let (soft, hard) = (boil(3), boil(5));
    let (soft, hard) = tokio::join!(session.call(&soft), session.call(&hard));
    println!("  {}, {}", soft.to_text(), hard.to_text());
    println!("  in the time of the longer one: {}", started.elapsed() < Duration::from_millis(800));
    host.close().await;
    Ok(())
}
