//! Tools in a web application: a host's bridge beside its own routes, in one router.
//!
//! ```text
//! cargo run --example mount_http
//! ```
//!
//! The application says who its users are, and each has a session of their own. A client in the same program calls a tool.
#![expect(clippy::print_stdout, reason = "the example is to be read")]

use std::error::Error;

use aster_runtime::serve::Shape;
use aster_runtime::serve::http::{self, Options, Principal};
use aster_runtime::{Host, Profile, catalogue, mcp_tool};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::get;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Counts the letters of a text.
#[mcp_tool(tier = Standard, server = "text", read_only)]
fn count_letters(
    /// The text.
    text: String,
) -> usize {
    text.chars().filter(|c| c.is_alphabetic()).count()
}

/// Stands for the application's own log-in.
async fn log_in(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let user = match request.headers().get("x-api-key").map(|key| key.as_bytes()) {
        Some(b"the key of ann") => "ann",
        _ => return Err(StatusCode::UNAUTHORIZED),
    };
    request.extensions_mut().insert(Principal(user.to_owned()));
    Ok(next.run(request).await)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let host = Host::builder().catalogue(catalogue![count_letters::TOOL]).build().await?;
    let profile = Profile::new("application").require_describe(true);
    let tools = http::service(host.clone(), profile, Shape::Bridge, Options::default())?;
    let router = Router::new()
        .nest_service("/mcp", tools.clone())
        .layer(from_fn(log_in))
        .route("/", get(async || "the application's own page"));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let stopped = tools.clone();
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        axum::serve(listener, router)
            .with_graceful_shutdown(async move {
                let _ = stopping.await;
                // Streams that only listen would hold it up.
                stopped.stop();
            })
            .await
    });

    println!("{}", reqwest::get(format!("http://{address}/")).await?.text().await?);
    println!("without a key: {}", reqwest::get(format!("http://{address}/mcp")).await?.status());
    for arguments in [
        json!({"action": "execute", "name": "text/count_letters", "arguments": {"text": "Aster, 2"}}),
        json!({"action": "describe", "name": "text/count_letters"}),
        json!({"action": "execute", "name": "text/count_letters", "arguments": {"text": "Aster, 2"}}),
    ] {
        println!("{} → {}", arguments["action"], call(&format!("http://{address}/mcp"), &arguments).await?);
    }
    let _ = stop.send(());
    serving.await??;
    host.close().await;
    Ok(())
}

/// A client of the protocol's modern era: each request says all there is to know.
async fn call(url: &str, arguments: &Value) -> Result<String, Box<dyn Error>> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "aster_mcp",
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "example", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let response = reqwest::Client::new()
        .post(url)
        .header("x-api-key", "the key of ann")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "aster_mcp")
        .json(&message)
        .send()
        .await?;
    let events = response.text().await?;
    let answer =
        events.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap_or_default();
    let answer: Value = serde_json::from_str(answer)?;
    Ok(answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}
