//! What people and programs get to see. Nothing else in the command writes to standard output or standard error.
//!
//! Constraint: nothing that could steer a terminal or hide text leaves here, whatever strangers wrote and callers forgot.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};

use aster_runtime::gate::approval::confirm;
use aster_runtime::text::{block, escape_unsafe};
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use miette::{GraphicalReportHandler, GraphicalTheme};
use serde::Serialize;
use serde_json::json;

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::log;

/// What a command found out, for programs (`Serialize`, a stable shape) and for people.
pub(crate) trait Report: Serialize {
    /// The text for people, without a line feed at its end.
    fn human(&self) -> String;
}

/// Where and how to show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        Self { json: global.json, quiet: global.quiet }
    }

    /// The same, with notes, warnings and progress kept back.
    pub(crate) fn without_notes(self) -> Self {
        Self { quiet: true, ..self }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether progress would be seen and wanted.
    pub(crate) fn shows_progress(self) -> bool {
        !self.json && !self.quiet && io::stderr().is_terminal()
    }

    /// The result, to standard output.
    pub(crate) fn report(self, report: &impl Report) -> Result<(), Failure> {
        let text = if self.json { safe_json(report) } else { report.human() };
        if text.is_empty() {
            return Ok(());
        }
        self.text(text)
    }

    /// A line of JSON to standard output, byte for byte where a program reads it. On a terminal, what could steer it is
    /// escaped. Says whether anybody reads on.
    pub(crate) fn json_line(self, line: &[u8]) -> Result<bool, Failure> {
        let mut stdout = io::stdout().lock();
        let text = String::from_utf8_lossy(line);
        let shown = if stdout.is_terminal() { escape_unsafe(&text) } else { text };
        match stdout.write_all(shown.as_bytes()).and_then(|()| stdout.write_all(b"\n")) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Failure::new(
                Exit::Failed,
                format!("the result cannot be written to standard output: {error}"),
            )),
            Ok(()) => Ok(true),
        }
    }

    /// A text for people and programs alike, to standard output.
    pub(crate) fn text(self, text: impl Display) -> Result<(), Failure> {
        line(io::stdout(), text).map_err(|error| {
            Failure::new(Exit::Failed, format!("the result cannot be written to standard output: {error}"))
        })
    }

    /// For a command line that cannot be read, but asks for JSON.
    pub(crate) const JSON: Self = Self { json: true, quiet: false };

    /// A text that a person must have seen before an answer, to standard error, `--quiet` or not.
    pub(crate) fn tell(self, text: impl Display) {
        // Where standard error is closed, nobody can be told.
        let _ = line(io::stderr(), text);
    }

    /// A text for people, to standard error.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            self.tell(text);
        }
    }

    /// Something to look at, to standard error.
    pub(crate) fn warn(self, text: impl Display) {
        self.note(format_args!("warning: {text}"));
    }

    /// Why there is no result, to standard error, and not what secret was typed.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            return self.tell(log::without_secrets(&safe_json(&json!({ "error": failure }))));
        }
        let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let theme = if coloured { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
        for failure in std::iter::once(failure).chain(failure.problems()) {
            let mut text = String::new();
            if handler.render_report(&mut text, failure).is_err() {
                text = failure.to_string();
            }
            // Its own escapes are the theme's; those of a failure's text are gone.
            let _ = writeln!(io::stderr(), "{}", log::without_secrets(text.trim_end()));
        }
    }
}

/// Asks on the terminal; `None` where there is none to ask on.
pub(crate) fn ask(question: impl Display) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    // An unreadable terminal is a no.
    Some(confirm(block(&question.to_string(), usize::MAX)).unwrap_or(false))
}

/// A line under the header and no other.
const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// The narrowest terminal, in columns, for which a table is folded.
const MIN_WIDTH: u16 = 60;

/// A table of columns and nothing else.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
    // Piped output is for `grep`, and a narrow column helps nobody: then every row is one line, however long.
    if !io::stdout().is_terminal() || table.width().is_none_or(|width| width < MIN_WIDTH) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// JSON for programs, indented for people who look at it. A character that could steer a terminal or hide text stays
/// what it is, but escaped.
pub(crate) fn safe_json(value: &impl Serialize) -> String {
    let text =
        serde_json::to_string_pretty(value).unwrap_or_else(|error| json!(error.to_string()).to_string());
    escape_unsafe(&text).into_owned()
}

/// Writes a text, made safe. A reader that went away (`aster … | head`) is no failure.
fn line(mut stream: impl Write, text: impl Display) -> io::Result<()> {
    let text = block(&text.to_string(), usize::MAX);
    match writeln!(stream, "{text}").and_then(|()| stream.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use aster_runtime::text::is_unsafe;

    use super::*;

    #[test]
    fn what_callers_forgot_is_safe_and_a_full_disk_is_seen() {
        let mut written = Vec::new();
        line(&mut written, "a\u{1b}[2J\n\u{202e}b\tc").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "a[2J\nb\tc\n");
        assert_eq!(line(&mut [0_u8; 2][..], "abc").unwrap_err().kind(), ErrorKind::WriteZero);
    }

    #[test]
    fn json_is_exact_and_safe() {
        let value = json!({"a\u{202e}": "\u{7f}\u{e0041}\n\u{1b}[2J ü", "b": [1, {"c": null}]});
        let text = safe_json(&value);
        assert!(!text.chars().any(|c| c != '\n' && is_unsafe(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
