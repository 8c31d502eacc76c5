//! `aster mcp trust`: consent to what a project's file would run.

use std::path::PathBuf;

use aster_runtime::config::trust::{Digest, Grant, TrustStore, hazards, quoted, visible};
use aster_runtime::config::{Config, Origin, ServerConfig};
use serde::Serialize;

use crate::args::{Global, Trust};
use crate::compose;
use crate::exit::{Exit, Failure};
use crate::render::{self, Output, Report};

pub(crate) fn run(global: &Global, arguments: &Trust, output: Output) -> Result<Exit, Failure> {
    let (store, warning) = compose::trust_store()?;
    if let Some(warning) = warning {
        output.warn(warning);
    }
    if arguments.list {
        output.report(&Grants { granted: store.grants().to_vec() })?;
        return Ok(Exit::Success);
    }
    if arguments.remove {
        return remove(&store, &arguments.names, output);
    }

    let config = compose::load(global)?;
    let mut answer = Answer::default();
    let mut consented = Vec::new();
    for server in selected(&config, &store, &arguments.names)? {
        match arguments.yes {
            true => output.note(description(server)),
            false => output.tell(description(server)),
        }
        let consent = arguments.yes || {
            let question = format!("Start `{}` from now on?", server.name);
            render::ask(question).ok_or_else(|| {
                Failure::new(Exit::Denied, format!("nobody can be asked about server `{}`", server.name))
                    .help("run it on a terminal, or add `--yes` where a script has checked the command")
            })?
        };
        if consent {
            consented.push(server);
            answer.trusted.push(Subject::of(server));
        } else {
            answer.refused.push(Subject::of(server));
        }
    }
    if !consented.is_empty() {
        change(|store| consented.into_iter().for_each(|server| store.grant(server)))?;
    }
    output.report(&answer)?;
    Ok(if answer.refused.is_empty() { Exit::Success } else { Exit::Denied })
}

/// The named servers, or all of the project's that need consent.
fn selected<'a>(
    config: &'a Config,
    store: &TrustStore,
    names: &[String],
) -> Result<Vec<&'a ServerConfig>, Failure> {
    if names.is_empty() {
        return Ok(config
            .servers
            .iter()
            .filter(|server| !server.disabled && !store.trusts(server))
            .collect());
    }
    let find = |name: &String| {
        let server = config.server(name).filter(|server| server.origin == Origin::Project);
        server.ok_or_else(|| {
            let shown = visible(name);
            if config.server(name).is_some() {
                return Failure::new(
                    Exit::Usage,
                    format!("server `{shown}` stands in your own file and needs no consent"),
                );
            }
            let known: Vec<&str> = config
                .servers
                .iter()
                .filter(|server| server.origin == Origin::Project)
                .map(|server| server.name.as_str())
                .collect();
            let help = match known.as_slice() {
                [] => "no project's file declares a server here".to_owned(),
                known => format!("it declares {}", known.join(", ")),
            };
            Failure::new(Exit::Usage, format!("the project's file declares no server `{shown}`")).help(help)
        })
    };
    names.iter().map(find).collect()
}

fn remove(store: &TrustStore, names: &[String], output: Output) -> Result<Exit, Failure> {
    if !store.grants().iter().any(|grant| names.contains(&grant.name)) {
        return Err(
            Failure::new(Exit::Usage, "there is no such consent").help("`aster mcp trust --list` shows them")
        );
    }
    let removed = change(|store| names.iter().flat_map(|name| store.remove(name)).collect())?;
    output.report(&Removed { removed })?;
    Ok(Exit::Success)
}

/// Changes the consents as they are now: a question may have stood open while another command changed them.
fn change<T>(change: impl FnOnce(&mut TrustStore) -> T) -> Result<T, Failure> {
    TrustStore::update(&compose::trust_path()?, change)
        .map_err(|error| Failure::new(Exit::Failed, format!("the consents cannot be changed: {error}")))
}

/// Everything that is consented to, whole: nothing is cut, nothing invisible stays so.
fn description(server: &ServerConfig) -> String {
    let declared = &server.declared;
    let file = visible(&server.file.display().to_string());
    let mut text = format!("Server `{}` of {file}:{} wants to run:\n\n", server.name, server.line);
    let mut row = |label: &str, value: &str| text.push_str(&format!("  {label:<10} {}\n", quoted(value)));
    row("command", &declared.command);
    for (at, argument) in declared.args.iter().enumerate() {
        row(if at == 0 { "arguments" } else { "" }, argument);
    }
    for (at, (name, value)) in declared.env.iter().enumerate() {
        row(if at == 0 { "variables" } else { "" }, &format!("{name}={value}"));
    }
    let directory = server.file.parent().unwrap_or(&server.file).display().to_string();
    match &declared.cwd {
        Some(cwd) => row("directory", &format!("{cwd} (from {directory})")),
        None => row("directory", &directory),
    }
    let variables = declared.variables();
    if !variables.is_empty() {
        row("reads", &variables.join(", "));
    }
    for hazard in hazards(declared) {
        text.push_str(&format!("\n  ! {hazard}"));
    }
    text.trim_end().to_owned() + "\n"
}

#[derive(Serialize)]
struct Subject {
    name: String,
    file: PathBuf,
    digest: Digest,
}

impl Subject {
    fn of(server: &ServerConfig) -> Self {
        Self { name: server.name.clone(), file: server.file.clone(), digest: Digest::of(server) }
    }
}

#[derive(Default, Serialize)]
struct Answer {
    trusted: Vec<Subject>,
    refused: Vec<Subject>,
}

impl Report for Answer {
    fn human(&self) -> String {
        if self.trusted.is_empty() && self.refused.is_empty() {
            return "no server needs consent".to_owned();
        }
        let trusted = self.trusted.iter().map(|subject| format!("{}: trusted", subject.name));
        let refused = self.refused.iter().map(|subject| format!("{}: not trusted", subject.name));
        trusted.chain(refused).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Serialize)]
struct Grants {
    granted: Vec<Grant>,
}

impl Report for Grants {
    fn human(&self) -> String {
        if self.granted.is_empty() {
            return "no consents".to_owned();
        }
        let rows = self.granted.iter().map(|grant| {
            let directory = grant.directory.display().to_string();
            [visible(&grant.name), visible(&grant.command), visible(&directory), visible(&grant.granted)]
        });
        render::table(["Server", "Command", "Project", "Since"], rows)
    }
}

#[derive(Serialize)]
struct Removed {
    removed: Vec<Grant>,
}

impl Report for Removed {
    fn human(&self) -> String {
        let line = |grant: &Grant| {
            format!(
                "{}: no longer trusted in {}",
                visible(&grant.name),
                visible(&grant.directory.display().to_string())
            )
        };
        self.removed.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}
