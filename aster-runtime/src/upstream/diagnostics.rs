//! What a server wrote beside its messages: the last lines of its standard error and of what was no message on its
//! standard output, made safe to show and without the values that its configuration handed to it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::gate::secrets::Redactor;
use crate::text;

/// How many lines are kept of each stream.
const KEPT: usize = 40;

/// The longest line that is kept, in characters.
const MAX_LINE: usize = 500;

/// The longest message of a protocol error, in characters: validators list all that is wrong with some arguments.
const MAX_MESSAGE: usize = 2_000;

/// The last lines that one server wrote.
#[derive(Debug)]
pub(super) struct Diagnostics {
    server: String,
    redactor: Redactor,
    recent: Mutex<Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    stderr: VecDeque<String>,
    junk: VecDeque<String>,
}

impl Diagnostics {
    /// Diagnostics of `server`, in whose lines these values are replaced.
    pub(super) fn new<'a>(server: impl Into<String>, secrets: impl IntoIterator<Item = &'a String>) -> Self {
        Self { server: server.into(), redactor: Redactor::new(secrets), recent: Mutex::default() }
    }

    /// A line of standard error.
    pub(super) fn stderr(&self, line: &[u8]) {
        let line = self.safe(&String::from_utf8_lossy(line));
        if line.is_empty() {
            return;
        }
        tracing::debug!(server = self.server, line, "standard error");
        keep(&mut self.recent().stderr, line);
    }

    /// A line of standard output that is no message.
    pub(super) fn junk(&self, line: &[u8]) {
        // Only the beginning is shown, so only that is worth decoding.
        let line = self.safe(&String::from_utf8_lossy(&line[..line.len().min(4 * MAX_LINE)]));
        if line.is_empty() {
            return;
        }
        tracing::debug!(server = self.server, line, "not a message on standard output");
        keep(&mut self.recent().junk, line);
    }

    /// A log message. MCP ties it to no call, so it goes to the operator's log and not to a client's.
    pub(super) fn log(&self, params: Option<&Value>) {
        let field = |key| params.and_then(|params| params.get(key));
        let level = field("level").and_then(Value::as_str).unwrap_or("info");
        let message = match field("data") {
            Some(Value::String(text)) => self.safe(text),
            Some(data) => self.safe(&data.to_string()),
            None => return,
        };
        tracing::debug!(server = self.server, level = self.safe(level), message, "log message");
    }

    /// The text without configured values.
    pub(super) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.redact(text)
    }

    /// The text as one safe line, without configured values.
    pub(super) fn safe(&self, text: &str) -> String {
        text::one_line(&self.redactor.redact(text), MAX_LINE)
    }

    /// The same, for what a server answers a request with.
    pub(super) fn message(&self, text: &str) -> String {
        text::one_line(&self.redactor.redact(text), MAX_MESSAGE)
    }

    /// The line that most likely tells why the server ended. That is seldom the last: runtimes print a stack or their
    /// version after the error, and npm where its log is.
    pub(super) fn cause(&self) -> Option<String> {
        let recent = self.recent();
        let lines = if recent.stderr.is_empty() { &recent.junk } else { &recent.stderr };
        let npm = |line: &&String| line.starts_with("npm error") && !line.starts_with("npm error code");
        let error = |line: &&String| line.to_ascii_lowercase().contains("error:");
        lines.iter().find(npm).or_else(|| lines.iter().rev().find(error)).or(lines.back()).cloned()
    }

    /// All lines that are kept, those of standard output first.
    pub(super) fn lines(&self) -> Vec<String> {
        let recent = self.recent();
        recent.junk.iter().chain(&recent.stderr).cloned().collect()
    }

    /// Forgets the lines of an earlier run.
    pub(super) fn clear(&self) {
        *self.recent() = Recent::default();
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(lines: &mut VecDeque<String>, line: String) {
    if lines.len() == KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(output: &str) -> Option<String> {
        let diagnostics = Diagnostics::new("s", []);
        output.lines().for_each(|line| diagnostics.stderr(line.as_bytes()));
        diagnostics.cause()
    }

    #[test]
    fn the_line_that_tells_most() {
        for (output, expected) in [
            ("TypeError: no\n    at x (y.js:1)\n\nNode.js v20.0.0", "TypeError: no"),
            (
                "Traceback:\n  File x\nModuleNotFoundError: No module named 'x'",
                "ModuleNotFoundError: No module named 'x'",
            ),
            (
                "npm error code E404\nnpm error 404 Not found\nnpm error A log is at x",
                "npm error 404 Not found",
            ),
            ("TOKEN is not set", "TOKEN is not set"),
            ("--log  where the standard error goes\nrun with --help", "run with --help"),
        ] {
            assert_eq!(cause(output).as_deref(), Some(expected));
        }
        assert_eq!(cause(""), None);
    }

    #[test]
    fn the_newest_lines_are_kept_and_no_secret() {
        let secret = "hunter2-hunter2".to_owned();
        let diagnostics = Diagnostics::new("s", [&secret]);
        for number in 0..2 * KEPT {
            diagnostics.stderr(format!("line {number} \u{1b}[2J {secret}").as_bytes());
        }
        let lines = diagnostics.lines();
        assert_eq!(lines.len(), KEPT);
        assert_eq!(lines.last().map(String::as_str), Some("line 79 [2J [redacted]"));
        diagnostics.clear();
        assert_eq!(diagnostics.lines(), Vec::<String>::new());
    }
}
