//! How the command ends: one code per kind of ending, and the failure that carries it.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use aster_runtime::config::ConfigError;
use aster_runtime::text::block;
use miette::Diagnostic;
use serde::Serialize;

/// The exit codes, the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub(crate) enum Exit {
    /// It worked.
    Success = 0,
    /// The tool ran and reported an error, or its server refused the call.
    ToolFailed = 1,
    /// The command line, an id or the arguments of a call are wrong.
    Usage = 2,
    /// The configuration or the native catalogue has a mistake.
    Configuration = 3,
    /// A rule or a person refused.
    Denied = 4,
    /// The server is down, switched off, without consent, or did not answer in time.
    Unavailable = 5,
    /// Something else went wrong, for example a file that cannot be written.
    Failed = 6,
    /// Interrupted from the keyboard.
    Interrupted = 130,
}

/// The table of the help text.
pub(crate) const HELP: &str = "Exit codes:
  0    it worked
  1    the tool ran and reported an error, or its server refused the call
  2    the command line, an id or the arguments of a call are wrong
  3    the configuration or the native catalogue has a mistake
  4    a rule or a person refused
  5    the server is down, switched off, without consent, or did not answer in time
  6    something else went wrong
  130  interrupted";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why the command did not do what was asked.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(rename = "code")]
    exit: Exit,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Failure>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: None, problems: Vec::new() }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into()).filter(|help| !help.is_empty());
        self
    }

    pub(crate) fn with_problems(mut self, problems: impl IntoIterator<Item = Self>) -> Self {
        self.problems.extend(problems);
        self
    }

    pub(crate) fn problems(&self) -> &[Self] {
        &self.problems
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

// What people see is safe whatever went into it; a program gets it whole.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&block(&self.message, usize::MAX))
    }
}

impl Error for Failure {}

impl Diagnostic for Failure {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(block(help, usize::MAX)) as Box<dyn fmt::Display>)
    }
}

/// "1 mistake", "2 mistakes".
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let problems = error.problems();
        let count = count(problems.len(), "mistake");
        Self::new(Exit::Configuration, format!("the configuration has {count}")).with_problems(
            problems.iter().map(|problem| {
                Self::new(Exit::Configuration, format!("{}: {}", problem.place(), problem.message))
                    .help(&problem.help)
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_readme_name_every_code() {
        let readme = include_str!("../README.md");
        let all = [
            Exit::Success,
            Exit::ToolFailed,
            Exit::Usage,
            Exit::Configuration,
            Exit::Denied,
            Exit::Unavailable,
            Exit::Failed,
            Exit::Interrupted,
        ];
        let lines: Vec<&str> = HELP.lines().skip(1).collect();
        assert_eq!(lines.len(), all.len());
        for (exit, line) in all.into_iter().zip(lines) {
            let (code, meaning) = line.trim().split_once(' ').unwrap();
            assert_eq!(code, (exit as u8).to_string());
            assert!(readme.contains(&format!("| {code} | {} |", meaning.trim())), "{line}");
        }
    }
}
