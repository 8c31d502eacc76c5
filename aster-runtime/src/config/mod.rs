//! `aster.yaml`: the user's own file and the project's, read, checked and merged.
//!
//! Two files are read, and both may be missing. The user's own lies in the platform's configuration directory
//! ([`user_file`]); the project's is the nearest upward from the working directory to the root of the repository
//! ([`project_file`]). The user's file decides; a project's file can only add servers, which are not started before
//! the user has consented to their exact commands ([`trust`]), or tighten:
//!
//! | in a project's file | effect |
//! |---|---|
//! | a server with a name of its own | added, after consent; its tools are never below `elevated`, its command has no `${…}` |
//! | a server that the user's file names too | left out, with a warning |
//! | `mcp.tools.allow` | a tool must be allowed by both files |
//! | `mcp.tools.deny` | both lists count |
//! | `mcp.pins`, `pins` of a server | what is stricter counts |
//! | `mcp.context_tokens`, `mcp.inventory_percent`, `mcp.search_limit` | the smaller number counts |
//! | `egress.allow`, `egress.deny` | a destination must pass both files |
//! | `mcp.approval`, `egress.allow_private`, `egress.agents`, `secrets`, `audit`, `hooks`, `limits` | left out, with a warning |
//!
//! A missing file is an empty one; a file that cannot be read, or that has a mistake, is an error which names every
//! mistake with its line. What depends on the environment, a variable that is not set, costs its server alone.
//!
//! ```
//! use aster_runtime::config::{Sources, load};
//!
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("aster.yaml");
//! std::fs::write(&file, "mcp:\n  servers:\n    time:\n      command: uvx\n      args: [mcp-server-time]\n")?;
//!
//! let sources = Sources { user: Some(file), ..Sources::default() };
//! let config = load(&sources, &["web"], &|name| std::env::var(name).ok())?;
//! assert_eq!(config.servers[0].name, "time");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod approvals;
mod expand;
mod file;
mod merge;
pub mod pins;
pub mod rules;
mod state;
pub mod trust;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcetera::BaseStrategy;

use crate::catalogue::ExternalSettings;
use crate::gate::egress::{EgressPolicy, PatternError};
use crate::gate::hooks::ProgramHook;
use crate::gate::limits::Limits;
use crate::gate::secrets::SecretPolicy;
use crate::text::one_line;
pub use merge::load;
use yaml::Mark;

/// The name of a configuration file.
pub const FILE_NAME: &str = "aster.yaml";

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The files to read.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The user's own file.
    pub user: Option<PathBuf>,
    /// Whether the user's own file must exist, as when it was named on a command line.
    pub user_required: bool,
    /// The project's file.
    pub project: Option<PathBuf>,
    /// The agents that there are: under `egress.agents` no other can be named, or a misspelt one would have no limit. `None`
    /// where the caller knows them and looks itself.
    pub agents: Option<Vec<String>>,
}

/// What both files say together.
#[derive(Debug, Clone)]
pub struct Config {
    /// The external servers, by name.
    pub servers: Vec<ServerConfig>,
    /// One filter per file that has one. A tool must pass every one of them.
    pub filters: Vec<ToolFilter>,
    /// The tokens of the model's context, from which the budget of the manifest is counted. 100,000 unless said.
    pub context_tokens: usize,
    /// The percentage of them that the manifest may take. 1.5 unless said.
    pub inventory_percent: f64,
    /// How many tools a search answers with. 5 unless said.
    pub search_limit: usize,
    /// The names of the clients that show a question to a human, so that an approval can be asked for there.
    pub approval_clients: Vec<String>,
    /// The private addresses that native servers may reach, as they stand in the file.
    pub allow_private: Vec<String>,
    /// The hooks, in the order of the file.
    pub hooks: Vec<ProgramHook>,
    /// How many calls may run at once, and how many in a minute.
    pub limits: Limits,
    /// The hosts that calls may name, by the user's own file.
    pub destinations: Destinations,
    /// The same, by the project's: a destination must pass both.
    pub project_destinations: Destinations,
    /// What is more for single agents, by their names.
    pub agents: BTreeMap<String, Destinations>,
    /// What becomes of secrets in calls and results.
    pub secrets: SecretPolicy,
    /// Where the audit is written, and how long it is kept.
    pub audit: AuditConfig,
    /// The directory of the project's file, where there is one.
    pub project: Option<PathBuf>,
    /// What was left out or tightened, and why.
    pub warnings: Vec<Problem>,
    /// The files that were read, the user's first.
    pub files: Vec<PathBuf>,
    values: Values,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            filters: Vec::new(),
            context_tokens: 100_000,
            inventory_percent: 1.5,
            search_limit: 5,
            approval_clients: Vec::new(),
            allow_private: Vec::new(),
            hooks: Vec::new(),
            limits: Limits::default(),
            destinations: Destinations::default(),
            project_destinations: Destinations::default(),
            agents: BTreeMap::new(),
            secrets: SecretPolicy::default(),
            audit: AuditConfig::default(),
            project: None,
            warnings: Vec::new(),
            files: Vec::new(),
            values: Values::default(),
        }
    }
}

impl Config {
    /// The values that are secret: of those under `env`, and of those that a variable brought into a command, an argument, a
    /// working directory or a path, the ones whose names say so or that look like it. Left out are values of fewer than
    /// [`MIN_SECRET`](crate::gate::secrets::MIN_SECRET) bytes.
    #[must_use]
    pub fn secret_values(&self) -> &[String] {
        &self.values.secret
    }

    /// The others among these values: paths, addresses, modes. They are kept out of records and errors, and calls may hold
    /// them. Left out are values of variables that name places and people (`HOME`, `USER`, `PATH` and the like), since text
    /// without them would be unreadable.
    #[must_use]
    pub fn private_values(&self) -> &[String] {
        &self.values.private
    }

    /// Where the URLs of calls may lead.
    ///
    /// # Errors
    ///
    /// None where the configuration was loaded: every entry was read then.
    pub fn egress(&self) -> Result<EgressPolicy, PatternError> {
        let own = self.destinations.policy()?.allow_private(&self.allow_private)?;
        Ok(own.within(&self.project_destinations.policy()?))
    }

    /// The server of this name.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&ServerConfig> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// The warnings, and why servers that are not disabled cannot be started.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let launches = self.servers.iter().filter(|server| !server.disabled);
        self.warnings.iter().chain(launches.filter_map(|server| server.launch.as_ref().err()))
    }
}

/// Where the audit is written, and how long it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditConfig {
    /// Where; `None` is the host's default.
    pub place: Option<AuditPlace>,
    /// The bytes after which a segment ends; `None` is the host's default.
    pub segment_bytes: Option<u64>,
    /// The age at which a segment ends; `None` is never.
    pub segment_age: Option<Duration>,
    /// How many ended segments of a chain are kept; `None` is all.
    pub keep_segments: Option<u32>,
}

/// What keeps the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditPlace {
    /// A file of JSON lines.
    JsonLines(PathBuf),
    /// A SQLite database: a file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(DatabaseUrl),
}

/// The URL of a database, with its password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The URL, password and all.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Globs over ids, from one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Where it is not empty, a tool's id must match one of these.
    pub allow: Vec<String>,
    /// A tool's id must match none of these.
    pub deny: Vec<String>,
}

/// Whose word a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The user's own file.
    User,
    /// The project's file: it needs consent.
    Project,
}

/// One external server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// Whose word it is.
    pub origin: Origin,
    /// The file that declares it, absolute.
    pub file: PathBuf,
    /// The line on which it is declared, from 1.
    pub line: u32,
    /// What the file says, word for word: what a user consents to.
    pub declared: Declared,
    /// What is started, or why nothing can be.
    pub launch: Result<Launch, Problem>,
    /// Whether it is switched off.
    pub disabled: bool,
    /// What the catalogue is told of its tools.
    pub settings: ExternalSettings,
    /// How long it may take to list its tools; `None` is the host's default.
    pub startup_timeout: Option<Duration>,
    /// How long a call may take; `None` is the host's default.
    pub call_timeout: Option<Duration>,
}

/// A server's command as its file has it, variables unexpanded.
#[derive(Clone, PartialEq, Eq)]
pub struct Declared {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables that are set for it, in the file's order.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub cwd: Option<String>,
}

impl Declared {
    /// The environment variables that `${…}` reads for it, by name, each once.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let env = self.env.iter().map(|(_, value)| value);
        let texts = std::iter::once(&self.command).chain(&self.args).chain(env).chain(&self.cwd);
        let templates = texts.filter_map(|text| expand::Template::parse(text).ok());
        let names: BTreeSet<String> = templates.flat_map(expand::Template::into_names).collect();
        names.into_iter().collect()
    }
}

/// A server's command with its variables filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program: a name to look up in `PATH`, or an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables that are set for it.
    pub env: Vec<(String, String)>,
    /// The directory it starts in, absolute; `None` is that of this process. A project's server starts in the
    /// directory of the project's file.
    pub directory: Option<PathBuf>,
}

// Both may hold secrets, which `{:?}` must not bring into a log.
impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared").field("command", &self.command).finish_non_exhaustive()
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Hosts, from one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Destinations {
    /// Where it is not empty, a host must be one of these.
    pub allow: Vec<String>,
    /// A host must be none of these.
    pub deny: Vec<String>,
}

impl Destinations {
    /// The same, as a policy.
    ///
    /// # Errors
    ///
    /// Where an entry is not a host.
    pub fn policy(&self) -> Result<EgressPolicy, PatternError> {
        EgressPolicy::default().allow(&self.allow)?.deny(&self.deny)
    }
}

#[derive(Clone, Default)]
struct Values {
    secret: Vec<String>,
    private: Vec<String>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} values]", self.secret.len() + self.private.len())
    }
}

/// Something that is wrong in a configuration, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// The column, from 1; 0 where the whole file is meant.
    pub column: u32,
    /// What is wrong, as a fragment.
    pub message: String,
    /// What to do; empty where the message says it.
    pub help: String,
}

impl Problem {
    fn new(file: &Path, at: Mark, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            message: message.into(),
            help: help.into(),
        }
    }

    /// The place, as editors and terminals understand it: `file:line:column`.
    #[must_use]
    pub fn place(&self) -> String {
        let file = one_line(&self.file.display().to_string(), 4096);
        if self.line == 0 { file } else { format!("{file}:{}:{}", self.line, self.column) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

/// Why a configuration cannot be used: every problem of both files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    problems: Vec<Problem>,
}

impl ConfigError {
    /// The problems, at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// The user's own file: `aster/aster.yaml` in `$XDG_CONFIG_HOME`, by default `~/.config`; on Windows in `%APPDATA%`.
/// `None` where there is no home directory.
#[must_use]
pub fn user_file() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.config_dir().join("aster").join(FILE_NAME))
}

/// The directory for what Aster remembers: `aster` in `$XDG_STATE_HOME`, by default `~/.local/state`; on Windows in
/// the local application data. `None` where there is no home directory.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.state_dir().unwrap_or_else(|| strategy.cache_dir()).join("aster"))
}

/// The project's file: the nearest `aster.yaml` from `directory` upward to the root of the repository, which is the
/// first directory with an entry `.git`. Outside a repository only `directory` itself is looked at, so that nobody
/// who can write to a parent directory speaks for the project. The user's own file is never a project's.
#[must_use]
pub fn project_file(directory: &Path, user: Option<&Path>) -> Option<PathBuf> {
    nearest(directory, FILE_NAME, user)
}

/// The nearest file of this name upward to the root of the repository, and never the user's own.
fn nearest(directory: &Path, name: &str, user: Option<&Path>) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    let user = user.and_then(|user| user.canonicalize().ok());
    let root = directory.ancestors().find(|ancestor| ancestor.join(".git").symlink_metadata().is_ok());
    let depth = root.map_or(1, |root| directory.components().count() - root.components().count() + 1);
    directory.ancestors().take(depth).map(|ancestor| ancestor.join(name)).find(|file| {
        // What exists but cannot be looked at is the project's file too: reading it will say why it fails.
        let exists = !matches!(file.try_exists(), Ok(false)) && !file.is_dir();
        exists && file.canonicalize().ok().is_none_or(|file| Some(file) != user)
    })
}

/// Opens a file to read it, where it is one: a pipe or a device would keep the reader waiting, or have somebody else's
/// input read.
fn open_regular(path: &Path) -> io::Result<File> {
    let regular = |metadata: &Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file")),
    };
    // Before it is opened, since opening a device may already do something; and after, since it may have changed.
    regular(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits() as i32);
    }
    let file = options.open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
