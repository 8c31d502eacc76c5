//! What a server wrote beside its messages: the last lines of its standard error and of what was no message on its
//! standard output, made safe to show and without the values that its configuration handed to it.

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

    /// The text as one safe line, without configured values.
    pub(super) fn safe(&self, text: &str) -> String {
        text::one_line(&self.redactor.redact(text), MAX_LINE)
    }

    /// The same, for what a server answers a request with.
    pub(super) fn message(&self, text: &str) -> String {
        text::one_line(&self.redactor.redact(text), MAX_MESSAGE)
    }

    /// The line that most likely tells why the server ended: the last one that speaks of an error, since runtimes
    /// print a stack or their version after it, or else the last.
    pub(super) fn cause(&self) -> Option<String> {
        let recent = self.recent();
        let lines = if recent.stderr.is_empty() { &recent.junk } else { &recent.stderr };
        let error = lines.iter().rev().find(|line| line.to_ascii_lowercase().contains("error"));
        error.or(lines.back()).cloned()
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
