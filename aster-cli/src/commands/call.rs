//! `aster mcp call`: one call, through the same gate as every other.

use std::io::Read;

use aster_runtime::call::{Completed, Outcome};
use aster_runtime::catalogue::Tool;
use aster_runtime::text::block;
use aster_runtime::{CallOptions, JsonObject, ToolId, ToolResult};
use serde::Serialize;
use serde_json::{Map, Value};

use super::describe::resolve;
use crate::args::Call;
use crate::compose::Running;
use crate::exit::{Exit, Failure};
use crate::progress::CallProgress;
use crate::render::{Output, Report};

/// The shape of `aster mcp call --json`.
#[derive(Serialize)]
struct Called<'a> {
    id: &'a str,
    outcome: Outcome,
    duration_ms: u128,
    /// The `CallToolResult` as the tool gave it.
    result: &'a JsonObject,
    #[serde(skip)]
    text: String,
}

pub(crate) async fn run(running: &Running, arguments: &Call, output: Output) -> Result<Exit, Failure> {
    let input = read_arguments(arguments)?;
    let tool = resolve(&running.session, &arguments.id)?;
    check(&tool, &input)?;
    let progress = CallProgress::new(output);
    let options = CallOptions { client: Some(progress.clone()), ..CallOptions::default() };
    let completed = running.session.execute(tool.id().as_str(), input, options).await;
    progress.finish();
    conclude(tool.id(), completed, output)
}

/// Judges the arguments before anyone is asked about them; the gate judges them again.
fn check(tool: &Tool, input: &JsonObject) -> Result<(), Failure> {
    let Err(invalid) = tool.check(input) else { return Ok(()) };
    let lines = invalid.violations.into_iter().map(|violation| {
        let place = if violation.path.is_empty() { "the arguments" } else { &violation.path };
        Failure::new(Exit::Usage, block(&format!("{place}: {}", violation.message), 500))
    });
    let id = tool.id();
    Err(Failure::new(
        Exit::Usage,
        format!("the arguments do not fit the schema of `{id}`; nothing was called"),
    )
    .help(format!("`aster mcp describe {id}` shows it"))
    .with_problems(lines))
}

fn conclude(id: &ToolId, completed: Completed, output: Output) -> Result<Exit, Failure> {
    let Completed { outcome, result, duration } = completed;
    let text = text(&result);
    let exit = match outcome {
        Outcome::Ok => Exit::Success,
        Outcome::ToolError | Outcome::Panicked => Exit::ToolFailed,
        Outcome::Denied => Exit::Denied,
        Outcome::Failed | Outcome::TimedOut => Exit::Unavailable,
        Outcome::Cancelled => Exit::Interrupted,
    };
    // What a tool answered is a result, for programs even where it is an error; a refusal is none.
    if outcome == Outcome::Ok || (outcome == Outcome::ToolError && output.is_json()) {
        output.report(&Called {
            id: id.as_str(),
            outcome,
            duration_ms: duration.as_millis(),
            result: result.as_object(),
            text,
        });
        return Ok(exit);
    }
    Err(Failure::new(exit, text))
}

fn text(result: &ToolResult) -> String {
    let text = result.to_text();
    block(text.trim_end(), text.len())
}

impl Report for Called<'_> {
    fn human(&self) -> String {
        self.text.clone()
    }
}

fn read_arguments(arguments: &Call) -> Result<JsonObject, Failure> {
    let mut object = match arguments.arguments.as_deref() {
        None => Map::new(),
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| {
                Failure::new(Exit::Usage, format!("standard input cannot be read: {error}"))
            })?;
            parse(&text, "standard input")?
        }
        Some(text) => match text.strip_prefix('@') {
            Some(file) => {
                let read = std::fs::read_to_string(file);
                parse(
                    &read.map_err(|error| {
                        Failure::new(Exit::Usage, format!("{file} cannot be read: {error}"))
                    })?,
                    file,
                )?
            }
            None => parse(text, "the argument")?,
        },
    };
    for pair in &arguments.pairs {
        let (name, value) = pair.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Failure::new(Exit::Usage, "`--arg` takes `name=value`")
                .help("for example `--arg limit=5 --arg query=rust`")
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        object.insert(name.to_owned(), value);
    }
    Ok(object)
}

fn parse(text: &str, from: &str) -> Result<JsonObject, Failure> {
    let help = "for example `'{\"query\": \"rust\"}'`, or `--arg query=rust`";
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::new(Exit::Usage, format!("{from} is JSON, but not an object")).help(help)),
        // serde_json's messages name a place and no content.
        Err(error) => Err(Failure::new(Exit::Usage, format!("{from} is not JSON: {error}")).help(help)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(arguments: Option<&str>, pairs: &[&str]) -> Result<Value, String> {
        let call = Call {
            id: "a/b".to_owned(),
            arguments: arguments.map(str::to_owned),
            pairs: pairs.iter().map(|&pair| pair.to_owned()).collect(),
        };
        read_arguments(&call).map(Value::Object).map_err(|failure| failure.to_string())
    }

    #[test]
    fn arguments_come_from_json_files_and_pairs() {
        assert_eq!(read(None, &[]), Ok(json!({})));
        assert_eq!(read(Some(r#"{"a": 1}"#), &["b=x=y", "a=[2]"]), Ok(json!({"a": [2], "b": "x=y"})));
        assert_eq!(
            read(None, &["n=5", "t=five", "q=\"5\"", "e=", "u=ü"]),
            Ok(json!({"n": 5, "t": "five", "q": "5", "e": "", "u": "ü"}))
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"from": "file"}"#).unwrap();
        assert_eq!(read(Some(&format!("@{}", file.path().display())), &[]), Ok(json!({"from": "file"})));
        for (arguments, pairs) in
            [(Some("[1]"), &[][..]), (Some("{"), &[]), (Some("@/none"), &[]), (None, &["x"]), (None, &["=x"])]
        {
            assert!(read(arguments, pairs).is_err(), "{arguments:?} {pairs:?}");
        }
    }
}
