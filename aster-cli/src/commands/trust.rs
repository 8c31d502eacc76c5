//! `aster mcp trust`: consent to what a project's file would run, to a command that has changed, and to tools that have.

use std::path::PathBuf;

use aster_runtime::config::pins::PinFiles;
use aster_runtime::config::trust::{Digest, Grant, TrustStore, hazards, quoted, visible};
use aster_runtime::config::{Config, Origin, ServerConfig};
use aster_runtime::pins::{PinError, PinStore, Waiting};
use aster_runtime::scan::scan_definition;
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
    let pins = compose::pin_files(&config)?;
    let mut answer = Answer::default();
    for question in (Stores { config: &config, consents: &store, pins: &pins }).questions(&arguments.names)? {
        match arguments.yes {
            true => output.note(question.text()),
            false => output.tell(question.text()),
        }
        let consent = arguments.yes || {
            render::ask(question.ask()).ok_or_else(|| {
                let server = question.server();
                Failure::new(Exit::Denied, format!("nobody can be asked about server `{}`", server.name))
                    .help("run it on a terminal, or add `--yes` where a script has checked what is shown")
            })?
        };
        let list = if consent { &mut answer.trusted } else { &mut answer.refused };
        list.extend(question.subjects());
        if consent {
            question.settle(&pins)?;
        }
    }
    output.report(&answer)?;
    Ok(if answer.refused.is_empty() { Exit::Success } else { Exit::Denied })
}

/// What a user can be asked to consent to.
enum Question<'a> {
    /// That the server is started with its command.
    Command(&'a ServerConfig),
    /// What a server lists.
    Listed(&'a ServerConfig, Vec<Waiting>),
}

impl Question<'_> {
    fn server(&self) -> &ServerConfig {
        match self {
            Self::Command(server) | Self::Listed(server, _) => server,
        }
    }

    /// All that is consented to, whole: nothing is cut, nothing invisible stays so.
    fn text(&self) -> String {
        match self {
            Self::Command(server) => description(server),
            Self::Listed(server, waiting) => {
                let parts: Vec<String> = waiting.iter().map(|waiting| changes(server, waiting)).collect();
                parts.join("\n")
            }
        }
    }

    fn ask(&self) -> String {
        match self {
            Self::Command(server) => format!("Start `{}` from now on?", server.name),
            Self::Listed(server, waiting) => match waiting.as_slice() {
                [one] => format!("Trust {} as it is now?", what(server, one)),
                all => format!("Trust all {} of `{}` as they are now?", all.len(), server.name),
            },
        }
    }

    fn subjects(&self) -> Vec<Subject> {
        let subject = |kind, name, digest| Subject { kind, name, file: self.server().file.clone(), digest };
        match self {
            Self::Command(server) => {
                vec![subject("command", server.name.clone(), Digest::of(server).to_string())]
            }
            Self::Listed(server, waiting) => waiting
                .iter()
                .map(|waiting| match &waiting.tool {
                    Some(tool) => {
                        subject("tool", format!("{}/{tool}", server.name), waiting.now.digest.clone())
                    }
                    None => subject("instructions", server.name.clone(), waiting.now.digest.clone()),
                })
                .collect(),
        }
    }

    /// Remembers the consent, in the stores as they are now: the question may have stood open while they changed.
    fn settle(&self, pins: &PinFiles) -> Result<(), Failure> {
        match self {
            Self::Command(server) if server.origin == Origin::Project => change(|store| store.grant(server)),
            Self::Command(server) => pins.agree(server).map_err(unusable),
            Self::Listed(server, waiting) => {
                let mut changed = None;
                pins.update(&server.name, &mut |pins| {
                    changed = waiting.iter().filter(|waiting| !pins.trust(waiting)).last();
                })
                .map_err(unusable)?;
                match changed {
                    None => Ok(()),
                    Some(waiting) => {
                        let message = format!("{} has changed once more meanwhile", what(server, waiting));
                        Err(Failure::new(Exit::Failed, message)
                            .help("run the command again to see it as it is now"))
                    }
                }
            }
        }
    }
}

/// What is consulted for questions.
struct Stores<'a> {
    config: &'a Config,
    consents: &'a TrustStore,
    pins: &'a PinFiles,
}

impl<'a> Stores<'a> {
    /// About the named servers and tools, or about everything that needs consent.
    fn questions(&self, names: &[String]) -> Result<Vec<Question<'a>>, Failure> {
        let mut questions = Vec::new();
        if names.is_empty() {
            for server in self.config.servers.iter().filter(|server| !server.disabled) {
                questions.extend(self.about(server)?);
            }
        }
        for name in names {
            let (server, tool) = match name.split_once('/') {
                Some((server, tool)) => (server, Some(tool)),
                None => (name.as_str(), None),
            };
            let server = self.config.server(server).ok_or_else(|| self.unknown(server))?;
            questions.extend(match tool {
                Some(tool) => vec![self.about_tool(server, tool)?],
                None => self.about_named(server)?,
            });
        }
        Ok(questions)
    }

    /// What needs consent.
    fn about(&self, server: &'a ServerConfig) -> Result<Vec<Question<'a>>, Failure> {
        let changed = self.pins.is_known(server).map_err(unusable)? == Some(false);
        let mut questions = Vec::new();
        if changed || !self.consents.trusts(server) {
            questions.push(Question::Command(server));
        }
        let waiting = self.pins.read(&server.name).map_err(unusable)?.waiting();
        if !waiting.is_empty() {
            questions.push(Question::Listed(server, waiting));
        }
        Ok(questions)
    }

    /// The same, where the user has said which server: then a project's command is shown once more.
    fn about_named(&self, server: &'a ServerConfig) -> Result<Vec<Question<'a>>, Failure> {
        let questions = self.about(server)?;
        match server.origin {
            _ if !questions.is_empty() => Ok(questions),
            Origin::Project => Ok(vec![Question::Command(server)]),
            Origin::User => {
                let message =
                    format!("server `{}` stands in your own file and needs no consent", server.name);
                Err(Failure::new(Exit::Usage, message))
            }
        }
    }

    fn about_tool(&self, server: &'a ServerConfig, tool: &str) -> Result<Question<'a>, Failure> {
        let mut waiting = self.pins.read(&server.name).map_err(unusable)?.waiting();
        waiting.retain(|waiting| waiting.tool.as_deref() == Some(tool));
        if waiting.is_empty() {
            let message = format!("`{}/{}` waits for no consent", server.name, visible(tool));
            return Err(Failure::new(Exit::Usage, message)
                .help("`aster mcp list` looks at what the servers list now"));
        }
        Ok(Question::Listed(server, waiting))
    }

    fn unknown(&self, name: &str) -> Failure {
        let known: Vec<&str> = self.config.servers.iter().map(|server| server.name.as_str()).collect();
        let help = match known.as_slice() {
            [] => "no file declares a server here".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        Failure::new(Exit::Usage, format!("no file declares a server `{}`", visible(name))).help(help)
    }
}

fn unusable(error: PinError) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

/// What waits, by name.
fn what(server: &ServerConfig, waiting: &Waiting) -> String {
    match &waiting.tool {
        Some(tool) => format!("`{}/{}`", server.name, visible(tool)),
        None => format!("what `{}` says of itself", server.name),
    }
}

/// What has changed.
fn changes(server: &ServerConfig, waiting: &Waiting) -> String {
    let what = what(server, waiting);
    let difference = waiting.difference();
    let mut text = match &waiting.before {
        Some(before) => {
            let since = visible(&before.since);
            format!("Since you trusted it ({since}), {what} has changed:\n\n{difference}")
        }
        None => format!("New: {what}\n\n{difference}"),
    };
    for finding in scan_definition("", &waiting.now.value()) {
        text.push_str(&format!("\n  ! {}: {}", finding.kind.words(), finding.message));
    }
    text.trim_end().to_owned() + "\n"
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
    /// `command`, `tool` or `instructions`.
    kind: &'static str,
    /// The server's name or the tool's id.
    name: String,
    file: PathBuf,
    digest: String,
}

#[derive(Default, Serialize)]
struct Answer {
    trusted: Vec<Subject>,
    refused: Vec<Subject>,
}

impl Report for Answer {
    fn human(&self) -> String {
        if self.trusted.is_empty() && self.refused.is_empty() {
            return "nothing needs consent".to_owned();
        }
        let line = |subject: &Subject, how| match subject.kind {
            "instructions" => format!("{} (what it says of itself): {how}", subject.name),
            _ => format!("{}: {how}", visible(&subject.name)),
        };
        let trusted = self.trusted.iter().map(|subject| line(subject, "trusted"));
        let refused = self.refused.iter().map(|subject| line(subject, "not trusted"));
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
