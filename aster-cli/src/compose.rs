//! The composition root: from the command line and the configuration to a running host. Nothing else in the command
//! knows which servers, sinks and stores there are.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aster_runtime::audit::{AuditSink, JsonLines, Record, Segments, Sql, Store};
use aster_runtime::catalogue::{Health, NativeCatalogue};
use aster_runtime::config::approvals::{self, Endpoint, Published};
use aster_runtime::config::pins::{self, PinFiles};
use aster_runtime::config::rules::RuleFiles;
use aster_runtime::config::trust::{self, TrustStore};
use aster_runtime::config::{self, AuditPlace, Config, ConfigError, Destinations, ServerConfig, Sources};
use aster_runtime::dispatch::{IdleUpstream, Upstream};
use aster_runtime::gate::approval::{Approver, ClientApprover, Desk, Race, Terminal};
use aster_runtime::provider::Provider;
use aster_runtime::serve::http::approvals::Approvals;
use aster_runtime::serve::{Interrupt, http};
use aster_runtime::text::one_line;
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{Entry, Filter, Host, HostSession, Profile, ProgressiveConfig};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::render::Output;
use crate::{log, progress};

/// The native servers of this command.
pub(crate) const NATIVE: NativeCatalogue = aster_servers::CATALOGUE;

/// The folder that this command was built in, where it is a debug build and still there: its dependencies can be checked.
pub(crate) fn package() -> Option<&'static Path> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    (cfg!(debug_assertions) && folder.join("Cargo.toml").exists()).then_some(folder)
}

/// The agent that whoever types a command is.
const TYPIST: &str = "aster";

/// The agent that every client of `aster mcp serve` is.
const CLIENT: &str = "client";

/// How long a server may take to start unless it is configured.
const DEFAULT_STARTUP: Duration = Duration::from_secs(60);

/// How much longer than that a server may keep a command waiting.
const GRACE: Duration = Duration::from_secs(5);

/// Reads the user's and the project's file.
pub(crate) fn load(global: &Global) -> Result<Config, Failure> {
    Ok(try_load(global)?)
}

/// The same, for a command that reports the mistakes itself.
pub(crate) fn try_load(global: &Global) -> Result<Config, ConfigError> {
    let reserved: Vec<&str> = NATIVE.entries.iter().map(Entry::server).collect();
    let config = config::load(&sources(global), &reserved, &|name| std::env::var(name).ok())?;
    log::keep_out(config.secret_values());
    Ok(config)
}

fn sources(global: &Global) -> Sources {
    let user = global.config.clone().or_else(config::user_file);
    let look = !global.no_project;
    let project = look.then(|| config::project_file(Path::new("."), user.as_deref())).flatten();
    let agents = Some([TYPIST, CLIENT].map(str::to_owned).into());
    Sources { user, user_required: global.config.is_some(), project, agents }
}

/// Where the rules stand: beside the user's configuration, and in the project.
pub(crate) fn rule_files(global: &Global) -> RuleFiles {
    let user = global.config.clone().or_else(config::user_file);
    RuleFiles::beside(user.as_deref(), (!global.no_project).then_some(Path::new(".")))
}

/// The consents of the user, and why they were not believed.
pub(crate) fn trust_store() -> Result<(TrustStore, Option<String>), Failure> {
    Ok(TrustStore::open(&trust_path()?))
}

/// Where they are kept.
pub(crate) fn trust_path() -> Result<PathBuf, Failure> {
    Ok(state("consents")?.join(trust::FILE_NAME))
}

/// What is remembered of the external servers.
pub(crate) fn pin_files(config: &Config) -> Result<PinFiles, Failure> {
    Ok(PinFiles::new(state("pins")?.join(pins::FOLDER), &config.servers))
}

fn state(what: &str) -> Result<PathBuf, Failure> {
    config::state_directory()
        .ok_or_else(|| Failure::new(Exit::Failed, format!("there is no home directory to keep {what} in")))
}

/// Where the endpoints for approvals are kept that run.
pub(crate) fn approvals_folder() -> Result<PathBuf, Failure> {
    Ok(state("the endpoints for approvals")?.join(approvals::FOLDER))
}

/// An endpoint for approvals that listens, and the file by which `aster approve` finds it.
pub(crate) async fn approvals(
    desk: &Arc<Desk>,
    address: SocketAddr,
) -> Result<(Approvals, Published), Failure> {
    let bound = http::approvals::bind(Arc::clone(desk), address).await;
    let bound = bound.map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let endpoint = Endpoint { address: bound.address(), token: bound.token().to_owned() };
    let published = approvals::publish(&approvals_folder()?, &endpoint).map_err(|error| {
        let message = format!("`aster approve` cannot be told of the endpoint for approvals: {error}");
        Failure::new(Exit::Failed, message)
    })?;
    Ok((bound, published))
}

/// Which external servers to start. Those that are not are no part of the host.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start<'a> {
    All,
    /// All, to look at what they list and call nothing: their tools need not be trusted.
    Look,
    /// Those on which these ids are.
    For(&'a [String]),
}

impl Start<'_> {
    fn wants(self, name: &str) -> bool {
        match self {
            Self::All | Self::Look => true,
            // A bare name may be on any server.
            Self::For(ids) => {
                ids.iter().any(|id| id.split_once('/').is_none_or(|(server, _)| server == name))
            }
        }
    }
}

/// A host and the session of whoever typed the command.
pub(crate) struct Running {
    pub(crate) host: Host,
    pub(crate) session: HostSession,
    pub(crate) config: Config,
}

/// Puts the host together, waits until its servers have started or failed to, does the work, and ends what was
/// started, also where a signal cuts the work short.
pub(crate) async fn with_host(
    global: &Global,
    which: Start<'_>,
    output: Output,
    work: impl AsyncFnOnce(&Running) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let config = load(global)?;
    let interrupt = Interrupt::listen();
    // Whoever typed the command is there to be asked.
    let approver = Terminal::new().map(|terminal| Arc::new(terminal) as Arc<dyn Approver>);
    let host = host(global, &config, which, approver, Vec::new(), Provider::Plain, output).await?;
    let session = host
        .session(profile(TYPIST, &config).client(concat!("aster ", env!("CARGO_PKG_VERSION"))))
        .map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?;
    let slowest = config.servers.iter().filter_map(|server| server.startup_timeout).max().unwrap_or_default();
    let running = Running { host, session, config };
    let done = tokio::select! {
        done = async {
            progress::settle(&running.host, slowest.max(DEFAULT_STARTUP) + GRACE, output).await;
            work(&running).await
        } => done,
        () = interrupt.stop.cancelled() => Err(interrupted()),
    };
    tokio::select! {
        () = running.host.close() => done,
        () = interrupt.now.cancelled() => Err(interrupted()),
    }
}

pub(crate) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
}

/// Puts the host together for clients: on standard input, which is therefore no terminal to ask on, or over HTTP. The tokens
/// are those that let in here, which nobody is to see. Who is asked is the client's user, where the client is trusted to ask them, and whoever looks at the desk, where
/// there is one. Its servers go on starting.
pub(crate) async fn serving(
    global: &Global,
    config: &Config,
    which: Start<'_>,
    tokens: Vec<String>,
    provider: Provider,
    desk: Option<Arc<Desk>>,
    output: Output,
) -> Result<(Host, Profile), Failure> {
    let client = Arc::new(ClientApprover::new(config.approval_clients.iter().cloned()));
    let approver: Arc<dyn Approver> = match desk {
        Some(desk) => Arc::new(Race::new([client as Arc<dyn Approver>, desk])),
        None => client,
    };
    let host = host(global, config, which, Some(approver), tokens, provider, output).await?;
    Ok((host, profile(CLIENT, config)))
}

fn profile(agent: &str, config: &Config) -> Profile {
    let mut profile = Profile::new(agent);
    // Every entry was read when the file was; one that is no host is an error then.
    if let Some(Ok(limits)) = config.agents.get(agent).map(Destinations::policy) {
        profile = profile.egress(limits);
    }
    match &config.project {
        Some(project) => profile.project(one_line(&project.display().to_string(), 4096)),
        None => profile,
    }
}

async fn host(
    global: &Global,
    config: &Config,
    which: Start<'_>,
    approver: Option<Arc<dyn Approver>>,
    tokens: Vec<String>,
    provider: Provider,
    output: Output,
) -> Result<Host, Failure> {
    log::keep_out(config.secret_values().iter().chain(&tokens));
    for problem in &config.warnings {
        output.warn(problem);
    }
    let (read, rules) = rule_files(global).follow();
    for problem in &read.problems {
        output.warn(format_args!("{problem}; nothing beyond standard is called before it is mended"));
    }
    for warning in &read.warnings {
        output.warn(warning);
    }
    let wrong = |error: &dyn std::fmt::Display| Failure::new(Exit::Configuration, error.to_string());
    let (store, warning) = trust_store()?;
    if let Some(warning) = warning {
        output.warn(warning);
    }
    let audit: Arc<dyn AuditSink> = match audit(config, output).await {
        Ok(audit) => audit,
        Err(failure) => {
            output.warn(&failure);
            Arc::new(Unwritable)
        }
    };
    let egress = config.egress().map_err(|error| wrong(&error))?;
    let mut builder = Host::builder()
        .catalogue(NATIVE)
        .config(ProgressiveConfig {
            available_context_tokens: config.context_tokens,
            inventory_threshold_percent: config.inventory_percent,
            search_default_limit: config.search_limit,
            ..ProgressiveConfig::default()
        })
        .provider(provider)
        .follow_rules(rules)
        .egress(egress)
        .limits(config.limits.clone())
        .audit(audit)
        .secret_policy(config.secrets.clone())
        .secrets(config.secret_values().iter().cloned())
        .unrecorded(config.private_values().iter().cloned())
        .secrets(tokens);
    for filter in &config.filters {
        builder = builder.filter(Filter::new(&filter.allow, &filter.deny).map_err(|error| wrong(&error))?);
    }
    for hook in &config.hooks {
        builder = builder.hook(Arc::new(hook.clone()));
    }
    if let Some(approver) = approver {
        builder = builder.approver(approver);
    }
    let pins = pin_files(config)?;
    let (wanted, absent): (Vec<_>, Vec<_>) =
        config.servers.iter().partition(|server| which.wants(&server.name));
    for server in absent {
        let group = server.settings.group.map_or(server.name.as_str(), |group| group.name());
        builder = builder.absent_server(&server.name, group);
    }
    for server in wanted {
        builder = builder.with_upstream(upstream(server, &store, &pins, config));
        if let Some(directory) = server.launch.as_ref().ok().and_then(|launch| launch.directory.as_ref()) {
            builder = builder.server_directory(&server.name, directory);
        }
    }
    if !matches!(which, Start::Look) {
        builder = builder.pins(Arc::new(pins));
    }
    builder.build().await.map_err(|error| wrong(&error))
}

/// Where calls are recorded.
async fn audit(config: &Config, output: Output) -> Result<Arc<dyn AuditSink>, Failure> {
    let mut segments =
        Segments { age: config.audit.segment_age, keep: config.audit.keep_segments, ..Segments::default() };
    segments.size = config.audit.segment_bytes.unwrap_or(segments.size);
    let sql = match audit_place(config)? {
        AuditPlace::JsonLines(path) => {
            let lines = JsonLines::with_segments(&path, segments);
            return Ok(Arc::new(lines.map_err(|error| unwritable(&path.display(), &error))?));
        }
        AuditPlace::Sqlite(path) => {
            Sql::sqlite(path, segments).map_err(|error| unwritable(&"database", &error))?
        }
        AuditPlace::Postgres(url) => {
            Sql::postgres(url.reveal(), segments).map_err(|error| unwritable(&"database", &error))?
        }
    };
    // A database that is away may come back.
    if let Err(error) = sql.connect().await {
        output.warn(unwritable(&"database", &error));
    }
    Ok(Arc::new(sql))
}

/// The audit, to be read: this file of JSON lines, or what is configured.
pub(crate) fn audit_store(global: &Global, path: Option<&Path>) -> Result<Store, Failure> {
    let place = match path {
        Some(path) if !path.exists() => {
            let place = one_line(&path.display().to_string(), 4096);
            return Err(Failure::new(Exit::Usage, format!("there is no audit {place}")));
        }
        Some(path) => AuditPlace::JsonLines(path.to_owned()),
        None => audit_place(&load(global)?)?,
    };
    Ok(match place {
        AuditPlace::JsonLines(path) => Store::json_lines(path),
        AuditPlace::Sqlite(path) => Store::sqlite(path),
        AuditPlace::Postgres(url) => Store::postgres(url.reveal())
            .map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?,
    })
}

/// Whether the audit can probably be written, without making it.
pub(crate) fn check_audit(config: &Config) -> Result<(), Failure> {
    let (AuditPlace::JsonLines(path) | AuditPlace::Sqlite(path)) = audit_place(config)? else {
        return Ok(());
    };
    let checked = match path.metadata() {
        Ok(metadata) if metadata.is_file() => File::options().append(true).open(&path).map(drop),
        // Opening a pipe may wait for its reader.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            match path.ancestors().skip(1).find_map(|folder| folder.metadata().ok()) {
                Some(folder) if !folder.is_dir() => Err(ErrorKind::NotADirectory.into()),
                Some(folder) if folder.permissions().readonly() => Err(ErrorKind::PermissionDenied.into()),
                _ => Ok(()),
            }
        }
        Err(error) => Err(error),
    };
    checked.map_err(|error| unwritable(&path.display(), &error))
}

fn audit_place(config: &Config) -> Result<AuditPlace, Failure> {
    match &config.audit.place {
        Some(place) => Ok(place.clone()),
        None => Ok(AuditPlace::JsonLines(state("the audit")?.join("audit.jsonl"))),
    }
}

fn unwritable(place: &dyn std::fmt::Display, error: &io::Error) -> Failure {
    let place = one_line(&place.to_string(), 4096);
    let message = format!("the audit {place} cannot be written ({error}): only standard tools can be called");
    Failure::new(Exit::Failed, message)
}

/// Stands for an audit that cannot be opened: looking is free, and the gate denies what must be recorded.
struct Unwritable;

impl AuditSink for Unwritable {
    fn write(&self, _: &Record) -> io::Result<()> {
        Err(io::Error::other("the audit cannot be opened"))
    }
}

/// The connection to one server. This is the one place that starts what a configuration names, and it does not start
/// what nobody has consented to.
fn upstream(
    server: &ServerConfig,
    store: &TrustStore,
    pins: &PinFiles,
    config: &Config,
) -> Arc<dyn Upstream> {
    let idle = |health| IdleUpstream::new(&server.name, server.settings.clone(), health);
    if server.disabled {
        return idle(Health::Disabled);
    }
    if !store.trusts(server) {
        return idle(trust::needs_consent(&server.name));
    }
    let launch = match &server.launch {
        Ok(launch) => launch,
        Err(problem) => return idle(Health::Down(problem.to_string())),
    };
    match pins.may_start(server) {
        Ok(true) => {}
        Ok(false) => return idle(trust::has_changed(&server.name)),
        Err(error) => return idle(Health::Down(error.to_string())),
    }
    let mut stdio = StdioServer::new(&server.name, &launch.command)
        .args(launch.args.iter().cloned())
        .secrets(config.secret_values().iter().chain(config.private_values()).cloned())
        .settings(server.settings.clone());
    for (name, value) in &launch.env {
        stdio = stdio.env(name, value);
    }
    if let Some(directory) = &launch.directory {
        stdio = stdio.cwd(directory);
    }
    if let Some(limit) = server.startup_timeout {
        stdio = stdio.startup_timeout(limit);
    }
    if let Some(limit) = server.call_timeout {
        stdio = stdio.call_timeout(limit);
    }
    StdioUpstream::spawn(stdio)
}
