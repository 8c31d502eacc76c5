//! `aster check`: every problem of the configuration, the native catalogue and the binary, and with `--start` of the servers.

use std::path::{Path, PathBuf};

use aster_runtime::catalogue::{Health, NativeCatalogue, Server};
use aster_runtime::config::{Config, Problem, ServerConfig};
use aster_runtime::lint;
use aster_runtime::text::one_line;
use serde::Serialize;

use crate::args::{Check, Global};
use crate::compose::{self, Start};
use crate::exit::{Exit, Failure, count};
use crate::render::{Output, Report};

/// The shape of `aster check --json`.
#[derive(Default, Serialize)]
struct Checked {
    files: Vec<PathBuf>,
    /// How many external servers are configured.
    servers: usize,
    /// How many native tools there are.
    native_tools: usize,
    /// What has to be mended.
    problems: Vec<Finding>,
    /// What works, but not as it is written.
    warnings: Vec<Finding>,
    /// What was not looked at, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Finding {
    /// `file:line:column`, or the server or tool that is meant.
    place: String,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    help: String,
}

impl From<&Problem> for Finding {
    fn from(problem: &Problem) -> Self {
        Self { place: problem.place(), message: problem.message.clone(), help: problem.help.clone() }
    }
}

pub(crate) async fn run(global: &Global, arguments: &Check, output: Output) -> Result<Exit, Failure> {
    let mut checked = Checked::default();
    check_native(&compose::NATIVE, compose::package(), &mut checked);
    let mut exit = Exit::Success;
    match compose::try_load(global) {
        Err(error) => checked.problems.extend(error.problems().iter().map(Finding::from)),
        Ok(config) => {
            check_config(&config, &mut checked)?;
            check_rules(global, &mut checked);
            if arguments.start && checked.problems.is_empty() {
                exit = check_servers(global, &mut checked, output).await?;
            }
        }
    }
    if !checked.problems.is_empty() && exit == Exit::Success {
        exit = Exit::Configuration;
    }
    output.report(&checked)?;
    Ok(exit)
}

/// The list of native servers, and what is linked beside it.
fn check_native(list: &NativeCatalogue, package: Option<&Path>, checked: &mut Checked) {
    checked.native_tools = list.entries.iter().map(|entry| entry.tools().len()).sum();
    let findings = lint::binary(list, package).unwrap_or_else(|(findings, why)| {
        checked
            .notes
            .push(format!("dependencies that are not linked were not looked for: {}", one_line(&why, 500)));
        findings
    });
    checked.problems.extend(findings.into_iter().map(|finding| Finding {
        message: match finding.places.as_slice() {
            [] => finding.message.clone(),
            places => format!("{} ({})", finding.message, places.join(" and ")),
        },
        place: finding.subject,
        help: finding.help,
    }));
}

fn check_config(config: &Config, checked: &mut Checked) -> Result<(), Failure> {
    checked.files.clone_from(&config.files);
    checked.servers = config.servers.len();
    checked.warnings.extend(config.warnings.iter().map(Finding::from));
    let launches = config.servers.iter().filter(|server| !server.disabled);
    checked.problems.extend(launches.filter_map(|server| server.launch.as_ref().err()).map(Finding::from));
    if let Err(failure) = compose::check_audit(config) {
        checked.problems.push(Finding {
            place: "audit".to_owned(),
            message: failure.to_string(),
            help: String::new(),
        });
    }
    let (store, warning) = compose::trust_store()?;
    checked.warnings.extend(warning.map(|message| Finding {
        place: "consents".to_owned(),
        message,
        help: String::new(),
    }));
    let pins = compose::pin_files(config)?;
    for server in config.servers.iter().filter(|server| !server.disabled) {
        let (message, help) = match pins.is_known(server) {
            Ok(Some(false)) => (
                format!(
                    "server `{}` is not started: its command has changed since you trusted it",
                    server.name
                ),
                format!("run `aster mcp trust {}`", server.name),
            ),
            Ok(_) => continue,
            Err(error) => (error.to_string(), String::new()),
        };
        checked.warnings.push(Finding { place: place(server), message, help });
    }
    let unasked = config.servers.iter().filter(|server| !server.disabled && !store.trusts(server));
    checked.warnings.extend(unasked.map(|server| Finding {
        place: place(server),
        message: format!("server `{}` is not started before you consent to its command", server.name),
        help: format!("run `aster mcp trust {}`", server.name),
    }));
    Ok(())
}

fn check_rules(global: &Global, checked: &mut Checked) {
    let read = compose::rule_files(global).read();
    checked.files.extend(read.files);
    checked.problems.extend(read.problems.iter().map(Finding::from));
    checked.warnings.extend(read.warnings.iter().map(Finding::from));
}

/// Where a server is declared.
fn place(server: &ServerConfig) -> String {
    format!("{}:{}", one_line(&server.file.display().to_string(), 4096), server.line)
}

async fn check_servers(global: &Global, checked: &mut Checked, output: Output) -> Result<Exit, Failure> {
    // The warnings of the configuration stand in the report.
    let output = output.without_notes();
    compose::with_host(global, Start::All, output, async |running| {
        let catalogue = running.host.catalogue();
        checked.problems.extend(catalogue.problems().iter().map(catalogue_finding));
        let down = catalogue.servers().iter();
        let down = down.filter(|server| matches!(server.health, Health::Down(_) | Health::Starting));
        let finding = |server: &Server| Finding {
            place: format!("server {}", server.name),
            message: one_line(&server.health.to_string(), 500),
            help: String::new(),
        };
        // A native server that does not exist on this system is nobody's mistake.
        let (native, external): (Vec<_>, Vec<_>) = down.partition(|server| server.native);
        checked.warnings.extend(native.into_iter().map(finding));
        let exit = if external.is_empty() { Exit::Success } else { Exit::Unavailable };
        checked.problems.extend(external.into_iter().map(finding));
        Ok(exit)
    })
    .await
}

fn catalogue_finding(problem: &aster_runtime::catalogue::Problem) -> Finding {
    let server = one_line(&problem.server, 100);
    let place = match &problem.tool {
        Some(tool) => format!("{server}/{}", one_line(tool, 100)),
        None => format!("server {server}"),
    };
    Finding { place, message: one_line(&problem.reason.to_string(), 500), help: String::new() }
}

impl Report for Checked {
    fn human(&self) -> String {
        let line = |kind: &str, finding: &Finding| {
            let help =
                if finding.help.is_empty() { String::new() } else { format!("\n  help: {}", finding.help) };
            format!("{kind}: {}: {}{help}", finding.place, finding.message)
        };
        let mut lines: Vec<String> = self
            .files
            .iter()
            .map(|file| format!("read {}", one_line(&file.display().to_string(), 4096)))
            .collect();
        lines.extend(self.problems.iter().map(|finding| line("problem", finding)));
        lines.extend(self.warnings.iter().map(|finding| line("warning", finding)));
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.push(format!(
            "{}, {}, {}, {}",
            count(self.servers, "external server"),
            count(self.native_tools, "native tool"),
            count(self.problems.len(), "problem"),
            count(self.warnings.len(), "warning"),
        ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aster_runtime::{Entry, catalogue};

    #[test]
    fn what_is_linked_and_not_listed_is_a_problem_with_both_places() {
        const SHORT: NativeCatalogue = catalogue![aster_servers::web::SERVER];
        let mut checked = Checked::default();
        check_native(&SHORT, compose::package(), &mut checked);
        let problem = checked.problems.iter().find(|problem| problem.place == "shortcuts");
        let message = &problem.unwrap_or_else(|| panic!("{}", checked.human())).message;
        for place in ["aster-servers/src/shortcuts/mod.rs:", "aster-cli/src/commands/check.rs:"] {
            assert!(message.contains(place), "{message}");
        }
        // Of the package `aster-servers` something is linked.
        assert!(
            !checked.problems.iter().any(|problem| problem.place == "aster-servers"),
            "{}",
            checked.human()
        );
    }

    #[test]
    fn a_server_crate_that_is_not_linked_is_a_problem_with_both_places() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let package = |name: &str, needs: &str| {
            let head = "version = \"0.0.1\"\nedition = \"2024\"\n\n[dependencies]";
            format!("[package]\nname = \"{name}\"\n{head}\n{needs}\n")
        };
        write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"app\", \"clock-tools\"]\n");
        write("Cargo.lock", &std::fs::read_to_string(root.join("Cargo.lock")).unwrap());
        write("app/Cargo.toml", &package("app", "clock-tools = { path = \"../clock-tools\" }"));
        write("app/src/lib.rs", "");
        let runtime = format!("aster-runtime = {{ path = {:?} }}", root.join("aster-runtime"));
        write(
            "clock-tools/Cargo.toml",
            &(package("clock-tools", &runtime) + "\n[lib]\npath = \"clock.rs\"\n"),
        );
        write("clock-tools/clock.rs", "#[cfg_attr(all(), aster_runtime::mcp_server)]\npub mod clock {}\n");

        let mut checked = Checked::default();
        check_native(&compose::NATIVE, Some(&folder.path().join("app")), &mut checked);
        let problem = checked.problems.iter().find(|problem| problem.place == "clock-tools");
        let message = &problem.unwrap_or_else(|| panic!("{}", checked.human())).message;
        for place in ["app/Cargo.toml:7", "clock-tools/clock.rs:1"] {
            assert!(message.contains(place), "{message}");
        }
        assert!(checked.human().contains("problem: clock-tools: this package publishes servers"));
    }

    #[test]
    fn a_list_that_is_no_catalogue_is_a_problem() {
        const TWICE: NativeCatalogue =
            NativeCatalogue { entries: &[compose::NATIVE.entries[0], TWIN], ..NativeCatalogue::EMPTY };
        const TWIN: Entry = compose::NATIVE.entries[0];
        let mut checked = Checked::default();
        check_native(&TWICE, None, &mut checked);
        let problem =
            checked.problems.iter().find(|problem| problem.message.contains("another server has this name"));
        assert!(problem.is_some_and(|problem| problem.place == "web"), "{}", checked.human());
        assert!(checked.human().contains("note: dependencies that are not linked"), "{}", checked.human());
    }
}
