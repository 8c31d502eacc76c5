//! The MCP server behind the benches: one tool, `echo`, and as little work of its own as can be, so that what is measured
//! is the way to it.

use std::error::Error;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut input = BufReader::with_capacity(64 << 10, io::stdin().lock());
    let mut output = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let request: Value = serde_json::from_str(&line)?;
        line.clear();
        if let Some(answer) = answer(&request) {
            let answer = match answer {
                Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
                Err(error) => json!({"jsonrpc": "2.0", "id": request["id"], "error": error}),
            };
            serde_json::to_writer(&mut output, &answer)?;
            output.write_all(b"\n")?;
        }
        // Once for all requests that have come together.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(())
}

/// `None` where none is due.
fn answer(request: &Value) -> Option<Result<Value, Value>> {
    request.get("id")?;
    Some(match request["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        })),
        "tools/list" => Ok(json!({"tools": [{
            "name": "echo",
            "description": "Says what it is told.",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "What to say."}},
                "required": ["text"],
            },
        }]})),
        "tools/call" => Ok(json!({
            "content": [{"type": "text", "text": request["params"]["arguments"]["text"]}],
        })),
        "ping" => Ok(json!({})),
        _ => Err(json!({"code": -32601, "message": "Method not found"})),
    })
}
