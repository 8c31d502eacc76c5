//! `aster mcp call`: one call, through the same gate as every other.

use std::io::Read;

use aster_runtime::call::{Check, Completed, Outcome};
use aster_runtime::catalogue::Tool;
use aster_runtime::text::{block, one_line};
use aster_runtime::{CallOptions, JsonObject, ToolResult};
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

pub(crate) async fn run(
    running: &Running,
    id: &str,
    input: JsonObject,
    output: Output,
) -> Result<Exit, Failure> {
    let progress = CallProgress::new(output);
    let options = CallOptions { client: Some(progress.clone()), ..CallOptions::default() };
    // Straight to the gate, right or wrong: it records every call.
    let completed = running.session.execute(id, input.clone(), options).await;
    progress.finish();
    let exit = match (completed.outcome, completed.denied) {
        (Outcome::Ok, _) => Exit::Success,
        (Outcome::ToolError | Outcome::Panicked, _) => Exit::ToolFailed,
        (Outcome::Failed | Outcome::TimedOut, _) => Exit::Unavailable,
        (Outcome::Cancelled, _) => Exit::Interrupted,
        (Outcome::Denied, Some(Check::Scope | Check::Arguments | Check::Request)) => {
            let tool = resolve(&running.session, id)?;
            return Err(misfit(&tool, &input).unwrap_or_else(|| refused(Exit::Usage, &completed)));
        }
        (Outcome::Denied, _) => Exit::Denied,
    };
    // What a tool answered is a result, for programs even where it is an error; a refusal is none.
    if completed.outcome == Outcome::Ok || (completed.outcome == Outcome::ToolError && output.is_json()) {
        output.report(&Called {
            id,
            outcome: completed.outcome,
            duration_ms: completed.duration.as_millis(),
            result: completed.result.as_object(),
            text: text(&completed.result),
        })?;
        return Ok(exit);
    }
    Err(refused(exit, &completed))
}

fn refused(exit: Exit, completed: &Completed) -> Failure {
    Failure::new(exit, text(&completed.result))
}

/// Where the arguments do not fit, for people: the text for models has the whole schema in it.
pub(crate) fn misfit(tool: &Tool, input: &JsonObject) -> Option<Failure> {
    let invalid = tool.check(input).err()?;
    let lines = invalid.violations.into_iter().map(|violation| {
        let place = if violation.path.is_empty() { "the arguments" } else { &violation.path };
        Failure::new(Exit::Usage, one_line(&format!("{place}: {}", violation.message), 500))
    });
    let id = tool.id();
    let message = format!("the arguments do not fit the schema of `{id}`; nothing was called");
    Some(
        Failure::new(Exit::Usage, message)
            .help(format!("`aster mcp describe {id}` shows it"))
            .with_problems(lines),
    )
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

/// The arguments of a call, from wherever the command line says.
pub(crate) fn read_arguments(arguments: &Call) -> Result<JsonObject, Failure> {
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
                let file = &one_line(file, 4096);
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
