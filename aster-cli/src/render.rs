//! What people and programs get to see. Nothing else in the command writes to standard output or standard error.
//!
//! Constraint: what strangers wrote has been made safe before it comes here, or is made safe here.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use comfy_table::{ContentArrangement, Table, presets};
use miette::{GraphicalReportHandler, GraphicalTheme};
use serde::Serialize;
use serde_json::json;

use crate::args::Global;
use crate::exit::Failure;

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

    /// Whether progress would be seen and wanted.
    pub(crate) fn shows_progress(self) -> bool {
        !self.json && !self.quiet && io::stderr().is_terminal()
    }

    /// The result, to standard output.
    pub(crate) fn report(self, report: &impl Report) {
        if self.json {
            // Pretty for people who look at it; one value for programs that parse it.
            let text = serde_json::to_string_pretty(report)
                .unwrap_or_else(|error| json!({"error": error.to_string()}).to_string());
            line(io::stdout(), text);
        } else {
            line(io::stdout(), report.human());
        }
    }

    /// A text for people, to standard error.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            line(io::stderr(), text);
        }
    }

    /// Something to look at, to standard error.
    pub(crate) fn warn(self, text: impl Display) {
        self.note(format_args!("warning: {text}"));
    }

    /// Why there is no result, to standard error.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            line(io::stderr(), json!({ "error": failure }));
            return;
        }
        let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let theme = if coloured { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
        if handler.render_report(&mut text, failure).is_err() {
            text = failure.to_string();
        }
        line(io::stderr(), text.trim_end());
    }
}

/// Asks on the terminal; `None` where there is none to ask on.
pub(crate) fn ask(question: impl Display) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{question} [y/N] ");
    let _ = stderr.flush();
    let mut answer = String::new();
    // End of input and an unreadable terminal are a no.
    let _ = io::stdin().read_line(&mut answer);
    Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// A table without vertical lines.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    // Piped output is for `grep`: every row one line, however long.
    if !io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A reader that went away (`aster … | head`) is no failure.
fn line(mut stream: impl Write, text: impl Display) {
    let _ = writeln!(stream, "{text}");
}
