//! `aster mcp search`: the bridge's search, for people.

use aster_runtime::bridge::{self, SearchRequest};
use aster_runtime::search::{MAX_QUERY_BYTES, default_ranker};
use serde::Serialize;
use serde_json::Value;

use crate::args::Search;
use crate::compose::Running;
use crate::exit::{Exit, Failure};
use crate::render::{Output, Report};

/// The bridge's answer as it is: `{"tools": [{id, description?, signature, tier?, also?}], "total"?, "next_offset"?, "message"?,
/// "nearest_words"?, "unavailable_servers"?}`.
#[derive(Serialize)]
#[serde(transparent)]
struct Found(Value);

pub(crate) fn run(running: &Running, arguments: &Search, output: Output) -> Result<Exit, Failure> {
    let query = arguments.query.join(" ");
    if query.len() > MAX_QUERY_BYTES {
        let problem = format!("the query has {} bytes, the limit is {MAX_QUERY_BYTES}", query.len());
        return Err(Failure::new(Exit::Usage, problem).help("name the task in a few words"));
    }
    let view = running.session.view();
    let request = SearchRequest {
        query: query.trim().to_owned(),
        server: arguments.server.clone(),
        limit: arguments.limit,
        offset: arguments.offset,
        explain: false,
    };
    let ranker = default_ranker(&view);
    output.report(&Found(bridge::search(&view, &*ranker, &request, running.host.config())))?;
    Ok(Exit::Success)
}

impl Report for Found {
    fn human(&self) -> String {
        let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        let tools = self.0["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut parts: Vec<String> = tools
            .iter()
            .map(|tool| {
                let tier = tool["tier"].as_str().map(|tier| format!(" ({tier})")).unwrap_or_default();
                let about = text(tool, "description");
                format!("{}{tier}\n  {about}\n  {}", text(tool, "id"), text(tool, "signature"))
            })
            .collect();
        parts.extend(self.0["message"].as_str().map(str::to_owned));
        if let Some(words) = self.0["nearest_words"].as_array() {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            parts.push(format!("Nearest words: {}", words.join(", ")));
        }
        if let Some(servers) = self.0["unavailable_servers"].as_object() {
            let lines =
                servers.iter().map(|(name, why)| format!("  {name}: {}", why.as_str().unwrap_or_default()));
            parts.push(format!("Not available:\n{}", lines.collect::<Vec<_>>().join("\n")));
        }
        if let Some(next) = self.0["next_offset"].as_u64() {
            let of = self.0["total"].as_u64().map(|total| format!(" of {total}")).unwrap_or_default();
            parts.push(format!("{}{of}; `--offset {next}` shows more", tools.len()));
        }
        parts.join("\n\n")
    }
}
