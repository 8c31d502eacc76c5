//! An agent: a chat loop against any OpenAI-compatible endpoint, with its tools behind the bridge.
//!
//! ```text
//! OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=qwen3 \
//!     cargo run --example agent -- "What is in this folder?"
//! ```
//!
//! The prompt is injected once; every call that the model makes of `aster_mcp` goes to the session, and a Restricted
//! tool asks on the terminal first.
#![expect(clippy::print_stdout, reason = "a chat prints its answer")]

use std::error::Error;
use std::sync::Arc;
use std::{env, fs};

use aster_runtime::gate::approval::Terminal;
use aster_runtime::{Host, Profile, catalogue, mcp_server};
use serde_json::{Value, json};

/// The files of the folder that the agent was started in.
#[mcp_server(name = "folder")]
mod folder {
    use super::fs;
    use aster_runtime::{Json, ToolError, mcp_tool};

    /// Lists the files of the working folder by name.
    #[mcp_tool(tier = Standard, read_only)]
    pub(crate) fn list() -> Result<Json<Vec<String>>, std::io::Error> {
        let names = fs::read_dir(".")?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<Result<Vec<_>, std::io::Error>>()?;
        names.sort();
        Ok(Json(names))
    }

    /// Deletes a file of the working folder for good.
    #[mcp_tool(tier = Restricted, destructive)]
    pub(crate) fn delete(
        /// The file's name, without any folder.
        file: String,
    ) -> Result<String, ToolError> {
        if file.contains(['/', '\\']) || file == ".." {
            return Err(ToolError::new("only files of the working folder can be deleted; give a bare name"));
        }
        fs::remove_file(&file)
            .map_err(|error| ToolError::new(format!("{file} cannot be deleted: {error}")))?;
        Ok(format!("{file} is deleted"))
    }
}

/// How often the model may call tools before it has to answer.
const ROUNDS: usize = 16;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = env::args().nth(1).ok_or("ask something: cargo run --example agent -- \"…\"")?;
    let base = env::var("OPENAI_BASE_URL")
        .map_err(|_| "set OPENAI_BASE_URL, for example http://127.0.0.1:11434/v1")?;
    let model = env::var("OPENAI_MODEL").unwrap_or_else(|_| "default".to_owned());
    let key = env::var("OPENAI_API_KEY").ok();

    let mut builder = Host::builder().catalogue(catalogue![folder::SERVER]).secrets(key.clone());
    if let Some(terminal) = Terminal::new() {
        builder = builder.approver(Arc::new(terminal));
    }
    let host = builder.build().await?;
    let session = host.session(Profile::new("agent"))?;
    let injection = session.injection().ok_or("there are no tools")?;

    let client = reqwest::Client::new();
    let mut messages = vec![
        json!({"role": "system", "content": format!("You are a helpful assistant.\n\n{}", injection.prompt)}),
        json!({"role": "user", "content": question}),
    ];
    for _ in 0..ROUNDS {
        let body = json!({"model": model, "messages": messages, "tools": [injection.bridge_tool]});
        let mut request = client.post(format!("{}/chat/completions", base.trim_end_matches('/'))).json(&body);
        if let Some(key) = &key {
            request = request.bearer_auth(key);
        }
        let reply: Value = request.send().await?.error_for_status()?.json().await?;
        let message = reply.pointer("/choices/0/message").cloned().ok_or("the endpoint sent no message")?;
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        if calls.is_empty() {
            println!("{}", message["content"].as_str().unwrap_or_default());
            return Ok(());
        }
        messages.push(message);
        for call in calls {
            // The bridge reads the arguments as they come: JSON text, and what models get slightly wrong in it.
            let answer = match call.pointer("/function/name").and_then(Value::as_str) {
                Some("aster_mcp") => session.call(&call["function"]["arguments"]).await.to_text(),
                _ => "there is one function, aster_mcp".to_owned(),
            };
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": answer}));
        }
    }
    Err("the model went on calling tools; ask for less at once".into())
}
