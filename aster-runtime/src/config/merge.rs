//! Two files become one configuration: the user's decides, the project's adds or tightens.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use super::file::{self, HookEntry, Server, Text};
use super::yaml::Mark;
use super::{
    AuditPlace, Config, ConfigError, DatabaseUrl, Declared, Launch, MAX_FILE_BYTES, Origin, Problem,
    ServerConfig, Sources, ToolFilter, Values, open_regular,
};
use crate::catalogue::{AnnotationTrust, ExternalSettings, Pinning};
use crate::gate::hooks::ProgramHook;
use crate::gate::secrets::{self, MIN_SECRET};
use crate::spec::Tier;
use crate::text::one_line;

/// Variables whose values are places and names rather than secrets.
const ORDINARY: [&str; 17] = [
    "APPDATA",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LOCALAPPDATA",
    "LOGNAME",
    "OLDPWD",
    "PATH",
    "PWD",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
    "USERNAME",
    "USERPROFILE",
];

/// Reads both files and merges them. `reserved` are the names of the native servers, which no external server may
/// take; `lookup` answers for environment variables.
///
/// # Errors
///
/// [`ConfigError`] with every problem of both files: unreadable, not UTF-8, not YAML, an unknown or a repeated key, a
/// value that does not fit.
pub fn load(
    sources: &Sources,
    reserved: &[&str],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigError> {
    let mut problems = Vec::new();
    let mut read = |path: &Option<PathBuf>, required| {
        let path = path::absolute(path.as_deref()?).ok()?;
        match read_file(&path, required, reserved) {
            Ok(file) => file.map(|file| (path, file)),
            Err(found) => {
                problems.extend(found);
                None
            }
        }
    };
    let user = read(&sources.user, sources.user_required);
    let project = read(&sources.project, false);

    let mut merger = Merger { config: Config::default(), pins: Pinning::default(), lookup, errors: problems };
    if let Some((path, file)) = user {
        merger.agents(&path, &file, sources.agents.as_deref());
        merger.user(path, file);
    }
    if let Some((path, file)) = project {
        merger.project(path, file);
    }
    let Merger { mut config, errors, .. } = merger;
    if !errors.is_empty() {
        return Err(ConfigError { problems: errors });
    }
    config.servers.sort_by(|left, right| left.name.cmp(&right.name));
    for list in [&mut config.values.secret, &mut config.values.private] {
        list.sort();
        list.dedup();
    }
    Ok(config)
}

fn read_file(path: &Path, required: bool, reserved: &[&str]) -> Result<Option<file::File>, Vec<Problem>> {
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX) + 1;
    let mut bytes = Vec::new();
    // Whoever names a file may name a pipe, for example one that decrypts it.
    let file = if required { File::open(path) } else { open_regular(path) };
    let outcome = file.and_then(|file| file.take(limit).read_to_end(&mut bytes));
    match outcome {
        Ok(_) => file::read(&bytes, path, reserved).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound && !required => Ok(None),
        Err(error) => {
            let help = "mend the file or its permissions, or move it away";
            Err(vec![Problem::new(path, Mark::default(), format!("the file cannot be read: {error}"), help)])
        }
    }
}

struct Merger<'a> {
    config: Config,
    /// Those of servers that say nothing of their own.
    pins: Pinning,
    lookup: &'a dyn Fn(&str) -> Option<String>,
    errors: Vec<Problem>,
}

impl Merger<'_> {
    /// Limits of an agent that is not among those there are.
    fn agents(&mut self, path: &Path, file: &file::File, known: Option<&[String]>) {
        let Some(known) = known else { return };
        for (agent, (_, at)) in file.agents.iter().filter(|(agent, _)| !known.contains(agent)) {
            let message =
                format!("`egress.agents.{}` limits nobody: there is no such agent", one_line(agent, 64));
            let help = format!("the agents here are `{}`", known.join("` and `"));
            // Another host may read the same file, and have others; what is hardly another's name is a slip.
            let is_slip = known.iter().any(|known| strsim::damerau_levenshtein(agent, known) <= 2);
            let to = if is_slip { &mut self.errors } else { &mut self.config.warnings };
            to.push(Problem::new(path, *at, message, help));
        }
    }

    fn user(&mut self, path: PathBuf, file: file::File) {
        self.filter(file.allow, file.deny);
        self.config.destinations = file.destinations;
        self.pins = file.pins.map(|(pins, _)| pins).unwrap_or_default();
        let config = &mut self.config;
        config.context_tokens = file.context_tokens.map_or(config.context_tokens, |(number, _)| number);
        config.inventory_percent =
            file.inventory_percent.map_or(config.inventory_percent, |(number, _)| number);
        config.search_limit = file.search_limit.map_or(config.search_limit, |(number, _)| number);
        config.approval_clients = file.approval_clients.map(|(list, _)| list).unwrap_or_default();
        config.allow_private = file.allow_private.map(|(list, _)| list).unwrap_or_default();
        config.limits = file.limits.map(|(limits, _)| limits).unwrap_or_default();
        config.agents = file.agents.into_iter().map(|(agent, (lists, _))| (agent, lists)).collect();
        config.secrets = file.secrets.map(|(policy, _)| policy).unwrap_or_default();
        self.audit(&path, file.audit);
        for hook in file.hooks {
            self.hook(&path, hook);
        }
        for server in file.servers {
            self.server(&path, Origin::User, server);
        }
        self.config.files.push(path);
    }

    fn project(&mut self, path: PathBuf, file: file::File) {
        self.filter(file.allow, file.deny);
        self.config.project_destinations = file.destinations;
        self.lower(&path, "mcp.context_tokens", file.context_tokens, |config| &mut config.context_tokens);
        self.lower(&path, "mcp.inventory_percent", file.inventory_percent, |config| {
            &mut config.inventory_percent
        });
        self.lower(&path, "mcp.search_limit", file.search_limit, |config| &mut config.search_limit);
        if let Some((pins, at)) = file.pins {
            match pins < self.pins {
                true => self.looser_pins(&path, at, "`mcp.pins`"),
                false => self.tighten_pins(pins),
            }
        }
        let loosens = [
            ("mcp.approval.clients", file.approval_clients.map(|(_, at)| at)),
            ("egress.allow_private", file.allow_private.map(|(_, at)| at)),
            ("egress.agents", file.agents_at),
            ("secrets", file.secrets.map(|(_, at)| at)),
            ("limits", file.limits.map(|(_, at)| at)),
            ("hooks", file.hooks.first().map(|hook| hook.at)),
        ];
        for (key, at) in loosens {
            if let Some(at) = at {
                let message = format!("`{key}` is left out: it counts in the user's own file only");
                self.warn(&path, at, message, "set it there");
            }
        }
        for (key, at) in file.audit.said {
            let message = format!("`audit.{key}` is left out: it counts in the user's own file only");
            self.warn(&path, at, message, "set it there");
        }
        for server in file.servers {
            if let Some(own) = self.config.server(&server.name) {
                let message = format!(
                    "server `{}` is left out: {}:{} declares it, and a project cannot override the user's own",
                    server.name,
                    one_line(&own.file.display().to_string(), 4096),
                    own.line,
                );
                self.warn(&path, server.at, message, "give it another name");
                continue;
            }
            self.server(&path, Origin::Project, server);
        }
        self.config.project = Some(base(&path).to_owned());
        self.config.files.push(path);
    }

    fn audit(&mut self, path: &Path, said: file::Audit) {
        if let Some((key, text)) = said.place {
            let what = format!("`audit.{key}`");
            let place = self.expand(&text).map(|place| match key {
                "path" => Some(AuditPlace::JsonLines(base(path).join(place))),
                "sqlite" => Some(AuditPlace::Sqlite(base(path).join(place))),
                _ => self.postgres(&place),
            });
            match place {
                Ok(Some(place)) => self.config.audit.place = Some(place),
                Ok(None) => {
                    let message = format!("{what} is no URL of a PostgreSQL database");
                    let help = "write `postgres://user:${PASSWORD}@host/database`; what is no letter or digit in the \
                                password stands as `%` and two hexadecimal digits";
                    self.errors.push(Problem::new(path, text.at, message, help));
                }
                Err(name) => self.errors.push(unset(path, text.at, &what, &name)),
            }
        }
        let audit = &mut self.config.audit;
        audit.segment_bytes = said.segment_mib.map(|number| (number as u64) << 20);
        audit.segment_age = said.segment_days.map(|days| Duration::from_secs(days as u64 * 24 * 60 * 60));
        audit.keep_segments = said.keep_segments.and_then(|number| u32::try_from(number).ok());
    }

    /// A URL, of which the password is a secret as it stands there and as it is meant.
    fn postgres(&mut self, text: &str) -> Option<AuditPlace> {
        let url = Url::parse(text).ok().filter(|url| ["postgres", "postgresql"].contains(&url.scheme()))?;
        if let Some(password) = url.password() {
            let meant = percent_decode_str(password).decode_utf8_lossy().into_owned();
            let passwords =
                [password.to_owned(), meant].into_iter().filter(|value| value.len() >= MIN_SECRET);
            self.config.values.secret.extend(passwords);
        }
        Some(AuditPlace::Postgres(DatabaseUrl(url.into())))
    }

    fn warn(&mut self, path: &Path, at: Mark, message: String, help: &str) {
        self.config.warnings.push(Problem::new(path, at, message, help));
    }

    fn filter(&mut self, allow: Option<Vec<String>>, deny: Vec<String>) {
        // `allow: []` allows nothing; it must not read as "no filter".
        let allow = match allow {
            Some(globs) if globs.is_empty() => return self.config.filters.push(ToolFilter::nothing()),
            globs => globs.unwrap_or_default(),
        };
        if !allow.is_empty() || !deny.is_empty() {
            self.config.filters.push(ToolFilter { allow, deny });
        }
    }

    fn lower<T: PartialOrd + Copy + std::fmt::Display>(
        &mut self,
        path: &Path,
        key: &str,
        said: Option<(T, Mark)>,
        of: fn(&mut Config) -> &mut T,
    ) {
        let Some((number, at)) = said else { return };
        let current = of(&mut self.config);
        if number <= *current {
            *current = number;
            return;
        }
        let message = format!("`{key}` stays {current}: a project can only lower it");
        self.warn(path, at, message, "raise it in the user's own file");
    }

    fn server(&mut self, path: &Path, origin: Origin, server: Server) {
        let launch = self.launch(path, origin, &server);
        let settings = self.settings(path, origin, &server);
        self.config.servers.push(ServerConfig {
            name: server.name,
            origin,
            file: path.to_owned(),
            line: server.at.line,
            declared: Declared {
                command: server.command.raw,
                args: server.args.into_iter().map(|text| text.raw).collect(),
                env: server.env.into_iter().map(|(name, text)| (name, text.raw)).collect(),
                cwd: server.cwd.map(|text| text.raw),
            },
            launch,
            disabled: server.disabled,
            settings,
            startup_timeout: server.startup_timeout,
            call_timeout: server.call_timeout,
        });
    }

    /// A hook whose variables are not set would not be there when it is needed: that is an error.
    fn hook(&mut self, path: &Path, entry: HookEntry) {
        let what = format!("a hook of `{}`", entry.event.name());
        let mut fill =
            |text: &Text| self.expand(text).map_err(|variable| unset(path, text.at, &what, &variable));
        let filled = (|| {
            let command = program(path, entry.command.at, fill(&entry.command)?, &what)?;
            let args = entry.args.iter().map(&mut fill).collect::<Result<Vec<_>, _>>()?;
            let env = entry.env.iter().map(|(name, text)| Ok((name.clone(), fill(text)?)));
            Ok((command, args, env.collect::<Result<Vec<_>, _>>()?))
        })();
        let (command, args, env) = match filled {
            Ok(filled) => filled,
            Err(problem) => return self.errors.push(problem),
        };
        let mut hook = ProgramHook::new(entry.event, command)
            .args(args)
            .matcher(entry.matcher)
            .changes(entry.changes)
            .on_failure(entry.on_failure);
        if let Some(timeout) = entry.timeout {
            hook = hook.timeout(timeout);
        }
        for (name, value) in env {
            self.secret(&name, &value);
            hook = hook.env(name, value);
        }
        self.config.hooks.push(hook);
    }

    fn launch(&mut self, path: &Path, origin: Origin, server: &Server) -> Result<Launch, Problem> {
        let name = &server.name;
        if origin == Origin::Project && server.command.template.has_variables() {
            // A consent to it would be one to whatever the variable holds on the day.
            let message = format!("`command` of server `{name}` has a variable in it");
            let help = "a project's command must be written out; variables may stand in `args` and `env`";
            return Err(Problem::new(path, server.command.at, message, help));
        }
        let mut fill = |text: &Text, what: &str| {
            self.expand(text)
                .map_err(|variable| unset(path, text.at, &format!("{what} of server `{name}`"), &variable))
        };
        let command = fill(&server.command, "`command`")?;
        let command = program(path, server.command.at, command, &format!("server `{name}`"))?;
        let args = server.args.iter().map(|text| fill(text, "`args`")).collect::<Result<_, _>>()?;
        let directory = match &server.cwd {
            Some(text) => Some(base(path).join(fill(text, "`cwd`")?)),
            None => (origin == Origin::Project).then(|| base(path).to_owned()),
        };
        let mut env = Vec::with_capacity(server.env.len());
        for (variable, text) in &server.env {
            env.push((variable.clone(), fill(text, "`env`")?));
        }
        for (variable, value) in &env {
            self.secret(variable, value);
        }
        Ok(Launch { command, args, env, directory })
    }

    /// A stranger's file cannot say that a stranger's tools are harmless.
    fn settings(&mut self, path: &Path, origin: Origin, server: &Server) -> ExternalSettings {
        let name = &server.name;
        let mut settings = ExternalSettings {
            tier: server.tier.map(|(tier, _)| tier),
            tiers: server.tiers.iter().map(|(glob, tier, _)| (glob.clone(), *tier)).collect(),
            annotations: server.annotations.map(|(trust, _)| trust).unwrap_or_default(),
            url_arguments: server.url_arguments.clone(),
            free_arguments: server
                .free_arguments
                .as_ref()
                .map(|(names, _)| names.clone())
                .unwrap_or_default(),
            pins: server.pins.map_or(self.pins, |(pins, _)| pins),
            ..ExternalSettings::default()
        };
        if origin == Origin::User {
            return settings;
        }
        let below = server.tier.into_iter().chain(server.tiers.iter().map(|(_, tier, at)| (*tier, *at)));
        for (_, at) in below.filter(|(tier, _)| *tier < Tier::Elevated) {
            let message =
                format!("the tier of server `{name}` is raised to `elevated`: a project cannot go below it");
            self.warn(path, at, message, "declare the server in the user's own file");
        }
        settings.tier = settings.tier.map(|tier| tier.max(Tier::Elevated));
        settings.tiers.iter_mut().for_each(|(_, tier)| *tier = (*tier).max(Tier::Elevated));
        if let Some((trust, at)) = server.annotations.filter(|(trust, _)| *trust != AnnotationTrust::Tighten)
        {
            let said = if trust == AnnotationTrust::Trust { "trust" } else { "ignore" };
            let message = format!("`annotations: {said}` of server `{name}` is read as `tighten`");
            self.warn(path, at, message, "only the user's own file can loosen it");
            settings.annotations = AnnotationTrust::Tighten;
        }
        if let Some((_, at)) = server.free_arguments {
            let message = format!(
                "`free_arguments` of server `{name}` is left out: a project cannot loosen the egress"
            );
            self.warn(path, at, message, "declare the server in the user's own file");
            settings.free_arguments.clear();
        }
        let least = self.pins.max(Pinning::TrustFirst);
        if let Some((_, at)) = server.pins.filter(|(pins, _)| *pins < least) {
            self.looser_pins(path, at, &format!("`pins` of server `{name}`"));
        }
        settings.pins = settings.pins.max(least);
        settings
    }

    /// A project may make every server stricter, the user's own too.
    fn tighten_pins(&mut self, pins: Pinning) {
        self.pins = pins;
        for server in &mut self.config.servers {
            server.settings.pins = server.settings.pins.max(pins);
        }
    }

    fn looser_pins(&mut self, path: &Path, at: Mark, what: &str) {
        let message = format!("{what} is left out: a project can only make it stricter");
        self.warn(path, at, message, "loosen it in the user's own file");
    }

    fn expand(&mut self, text: &Text) -> Result<String, String> {
        let expanded = text.template.expand(self.lookup)?;
        for (name, value) in &expanded.taken {
            self.secret(name, value);
        }
        Ok(expanded.text)
    }

    fn secret(&mut self, name: &str, value: &str) {
        let ordinary = ORDINARY.contains(&name) || name.starts_with("XDG_") || name.starts_with("LC_");
        if ordinary || value.len() < MIN_SECRET {
            return;
        }
        let Values { secret, private } = &mut self.config.values;
        let list = if secrets::is_secret(name, value) { secret } else { private };
        list.push(value.to_owned());
    }
}

impl ToolFilter {
    /// The filter of a file that says `allow: []`.
    fn nothing() -> Self {
        Self { allow: Vec::new(), deny: vec!["**".to_owned()] }
    }
}

/// What to run for a command that a file names: a name, or a path against the file's directory.
fn program(path: &Path, at: Mark, command: String, of: &str) -> Result<String, Problem> {
    if command.trim().is_empty() {
        let message = format!("`command` of {of} is empty once its variables are filled in");
        return Err(Problem::new(path, at, message, "set the variable to a program"));
    }
    if !command.contains(path::is_separator) {
        return Ok(command);
    }
    let absolute: PathBuf = base(path).join(command).components().collect();
    Ok(absolute.to_string_lossy().into_owned())
}

/// The directory against which a file's paths are read.
fn base(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn unset(path: &Path, at: Mark, what: &str, variable: &str) -> Problem {
    let message = format!("{what} needs the variable `{variable}`, which is not set");
    Problem::new(path, at, message, format!("set it, or write `${{{variable}:-default}}`"))
}
