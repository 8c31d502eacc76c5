//! The host: catalogue, gate, dispatch and audit put together, and the pipeline of a call.
//!
//! [`HostSession::call`] and [`HostSession::execute`] are the doors to tools, [`HostSession::read_resource`] and
//! [`HostSession::get_prompt`] those to the rest, and all lead through `HostSession::run`: the one function in which the whole
//! way of a call is read.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, field};

use crate::audit::{AuditSink, Recorder, Stats, Traced, Trail};
use crate::boot::{DeadName, Found, Names, Promise};
use crate::bridge::{self, BridgeError, ExecuteRequest, Request};
use crate::call::{Check, Completed, Denied, Outcome, Proposed};
use crate::catalogue::{
    Catalogue, CatalogueError, ExternalSettings, Health, Listing, NativeCatalogue, Part, Resource, Tool,
    external_part, native_parts, raise,
};
use crate::dispatch::{self, DispatchError, Routes, Upstream};
use crate::gate::approval::Approver;
use crate::gate::egress::EgressPolicy;
use crate::gate::hooks::{self, Done, Hook};
use crate::gate::limits::Limits;
use crate::gate::rules::{Rule, Rules, Ruling};
use crate::gate::secrets::{Redactor, SecretPolicy};
use crate::gate::{self, Admitted, Gate};
use crate::id::{self, NameError, ToolId};
use crate::inject::{self, ConfigError, Injection, ProgressiveConfig};
use crate::lint::{self, Finding};
use crate::pins::{self, PinStore};
use crate::provider::Provider;
use crate::scope::{Filter, FilterError, Scope, View};
use crate::search::{Current, Indexes, MakeRanker};
use crate::session::{Profile, Session};
use crate::spec::{Entry, NativeServer, Raise};
use crate::text;
use crate::tool::{
    Availability, ClientInfo, ClientLink, JsonObject, Moments, ResourceUpdates, ServerEnv, ServerState,
    SharedMoments, ToolContext, ToolResult,
};

/// How long a native call may take unless its tool or the host says otherwise.
pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The target of the span that each call is.
pub const CALL_SPAN: &str = "aster::call";

/// How long a call waits for its server to start.
pub(crate) const START_PATIENCE: Duration = Duration::from_secs(30);

/// How often pins are looked at again while something is in quarantine: the user may have agreed to it meanwhile.
const QUARANTINE_TICK: Duration = Duration::from_secs(2);

/// Why a host cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The native tools are no catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The configuration of disclosure is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two servers have one name.
    #[error("two servers are called `{0}`; rename one of them")]
    DuplicateServer(String),
    /// The name of an external server breaks the grammar.
    #[error("an external server cannot be called `{name}`: {error}")]
    ServerName {
        /// The name, made safe to show.
        name: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// A prompt, a profile, a rule, a hook or a limit names what there is not, or a prompt promises what an agent does not see.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    DeadNames(Vec<DeadName>),
    /// A filter of the host or of one of its agents cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The list is not that of the whole binary.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Unlisted(Vec<Finding>),
    /// A server was handed in that is not in the catalogue.
    #[error("`{0}` was handed in with its state, but another server of that name is in the catalogue")]
    OtherServer(String),
}

/// Why there is no session of a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A glob of the profile cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The profile names a tool, a server or a group that there is not.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    DeadNames(Vec<DeadName>),
}

/// Puts a host together.
pub struct HostBuilder {
    entries: Vec<Entry>,
    raises: Vec<Raise>,
    whole: Option<NativeCatalogue>,
    promises: Vec<Promise>,
    states: HashMap<&'static str, ServerState>,
    upstreams: Vec<Arc<dyn Upstream>>,
    absent: Vec<(String, String)>,
    filters: Vec<Filter>,
    config: ProgressiveConfig,
    provider: Provider,
    indexes: Indexes,
    gate: Gate,
    audit: Arc<dyn AuditSink>,
    secrets: Vec<String>,
    unrecorded: Vec<String>,
    pins: Option<Arc<dyn PinStore>>,
    call_timeout: Duration,
}

impl HostBuilder {
    fn new() -> Self {
        Self {
            entries: Vec::new(),
            raises: Vec::new(),
            whole: None,
            promises: Vec::new(),
            states: HashMap::new(),
            upstreams: Vec::new(),
            absent: Vec::new(),
            filters: Vec::new(),
            config: ProgressiveConfig::default(),
            provider: Provider::default(),
            indexes: Indexes::default(),
            gate: Gate::default(),
            audit: Arc::new(Traced),
            secrets: Vec::new(),
            unrecorded: Vec::new(),
            pins: None,
            call_timeout: DEFAULT_CALL_TIMEOUT,
        }
    }

    /// Adds the servers and tools of a list that `catalogue!` checked.
    #[must_use]
    pub fn catalogue(mut self, catalogue: NativeCatalogue) -> Self {
        self.add(catalogue.entries);
        self.raises.extend(catalogue.raises);
        self
    }

    /// As [`catalogue`](Self::catalogue), for a list that is to have all there is: where a server is linked into the binary
    /// and not listed, [`build`](Self::build) refuses and names both places.
    #[must_use]
    pub fn whole_catalogue(mut self, catalogue: NativeCatalogue) -> Self {
        self.whole = Some(catalogue);
        self.catalogue(catalogue)
    }

    /// Adds a server with live state. It need not be in the list; where it is, this state is the one it runs on.
    #[must_use]
    pub fn with_server<S: NativeServer>(mut self, server: S) -> Self {
        self.add(&[Entry::Server(S::SPEC)]);
        self.states.insert(S::SPEC.name, Arc::new(server));
        self
    }

    /// Adds an external server.
    #[must_use]
    pub fn with_upstream(mut self, upstream: Arc<dyn Upstream>) -> Self {
        self.upstreams.push(upstream);
        self
    }

    /// Says that there is an external server which this host goes without, and the group of its tools: what rules, hooks and
    /// limits say of it is not said in vain.
    #[must_use]
    pub fn absent_server(mut self, name: impl Into<String>, group: impl Into<String>) -> Self {
        self.absent.push((name.into(), group.into()));
        self
    }

    /// Says where an external server runs, where that is not the directory of this process: rules read the relative paths in
    /// its calls from there too.
    #[must_use]
    pub fn server_directory(mut self, server: impl Into<String>, directory: impl AsRef<Path>) -> Self {
        // One that is relative is so to this process.
        let directory = std::path::absolute(&directory).unwrap_or_else(|_| directory.as_ref().to_owned());
        self.gate.directories.insert(server.into(), directory);
        self
    }

    /// Adds a filter that every session's tools must pass.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// Sets the budget of the manifest and the bounds of searches.
    #[must_use]
    pub fn config(mut self, config: ProgressiveConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets whose model calls the tools: a describe, and what is served, have schemas as that provider takes them. Default
    /// [`Provider::Plain`], each as it is. Arguments are checked against the tool's own.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// Searches with rankings of one's own: `make` is called once for each distinct set of tools that a session sees.
    /// [`Fused`](crate::search::Fused) puts one together with ours.
    #[must_use]
    pub fn ranking(mut self, make: Arc<MakeRanker>) -> Self {
        self.indexes = Indexes::of(make);
        self
    }

    /// Sets who is asked about Restricted calls; without one they are denied.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.gate.approver = Some(approver);
        self
    }

    /// Sets how long a human may take to answer. Default 5 minutes.
    #[must_use]
    pub fn approval_timeout(mut self, timeout: Duration) -> Self {
        self.gate.approval_timeout = timeout;
        self
    }

    /// Adds a hook that sees every call first.
    #[must_use]
    pub fn hook(mut self, hook: Arc<dyn Hook>) -> Self {
        self.gate.hooks.push(hook);
        self
    }

    /// Sets the rules of what is denied, asked about and allowed.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.gate.rules = watch::channel(Arc::new(rules)).1;
        self
    }

    /// The same with rules that change: each call is decided by those of its time, and what they hide is hidden at once.
    #[must_use]
    pub fn follow_rules(mut self, rules: watch::Receiver<Arc<Rules>>) -> Self {
        self.gate.rules = rules;
        self
    }

    /// Sets where the URLs of calls may lead.
    #[must_use]
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.gate.egress = policy;
        self
    }

    /// Sets how many calls may run at once and how many in a minute, none of which is limited unless set, and how large a result
    /// may be.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.gate.limits = limits;
        self
    }

    /// Sets where the audit goes; without one it goes to `tracing`.
    #[must_use]
    pub fn audit(mut self, sink: Arc<dyn AuditSink>) -> Self {
        self.audit = sink;
        self
    }

    /// Sets what becomes of secrets in calls and in their results. Default: such calls are denied, and results are shown
    /// without them.
    #[must_use]
    pub fn secret_policy(mut self, policy: SecretPolicy) -> Self {
        self.gate.secrets = policy;
        self
    }

    /// Adds values that are secret: they never stand in the audit or in an error, and the policy of secrets looks for them
    /// in calls and results.
    #[must_use]
    pub fn secrets<S: Into<String>>(mut self, values: impl IntoIterator<Item = S>) -> Self {
        self.secrets.extend(values.into_iter().map(Into::into));
        self
    }

    /// Adds values that never stand in the audit or in an error, and that calls and results may hold all the same: what a
    /// configuration says of paths and names.
    #[must_use]
    pub fn unrecorded<S: Into<String>>(mut self, values: impl IntoIterator<Item = S>) -> Self {
        self.unrecorded.extend(values.into_iter().map(Into::into));
        self
    }

    /// Remembers what the tools of external servers say of themselves, and keeps those that change from every session
    /// until the user has agreed. Without a store nothing is remembered.
    #[must_use]
    pub fn pins(mut self, store: Arc<dyn PinStore>) -> Self {
        self.pins = Some(store);
        self
    }

    /// Says of an agent what it may see and what the host's own prompt tells it, so that the two are compared before anything
    /// starts: a tool of a native server that the text names, as `server/tool`, must be there, and the agent must see it. So must
    /// what the profile itself names.
    #[must_use]
    pub fn agent(mut self, profile: Profile, prompt: impl Into<String>) -> Self {
        self.promises.push(Promise { profile, prompt: prompt.into() });
        self
    }

    /// Sets how long a native call may take whose tool does not say so itself. Default 60 s.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    fn add(&mut self, entries: &[Entry]) {
        for entry in entries {
            // One server may come from the list, the inventory and `with_server`; it is the same constant each time.
            if !self.entries.iter().any(|known| known.is_same(entry)) {
                self.entries.push(*entry);
            }
        }
    }

    /// Starts the native servers side by side and makes the host. External servers go on starting behind it; see
    /// [`Host::settle`].
    ///
    /// A native server that cannot start is left out with its reason, like an external one.
    ///
    /// # Errors
    ///
    /// Where the catalogue or the configuration cannot be used.
    pub async fn build(self) -> Result<Host, HostError> {
        self.config.validate()?;
        if let Some(findings) = self.whole.as_ref().map(lint::unlisted).filter(|found| !found.is_empty()) {
            return Err(HostError::Unlisted(findings));
        }
        let mut parts: BTreeMap<String, Arc<Part>> = BTreeMap::new();
        let mut natives = native_parts(&self.entries)?;
        raise(&mut natives, &self.raises);
        for part in natives {
            parts.insert(part.server.name.clone(), Arc::new(part));
        }
        let externals = self.upstreams.iter().map(|upstream| {
            let (name, group) = (upstream.name().to_owned(), upstream.settings().group);
            let group = group.map_or_else(|| name.clone(), |group| group.name().to_owned());
            (name, group)
        });
        let names = Names::new(parts.values(), externals.chain(self.absent));
        let promised = promised(&names, &parts, &self.filters, &self.gate, &self.promises)?;
        promised.iter().for_each(|name| tracing::warn!("{name}"));
        let updates = ResourceUpdates::default();
        let moments = SharedMoments::default();
        let env = ServerEnv {
            egress: self.gate.egress.clone(),
            updates: updates.clone(),
            availability: Availability::default(),
        };
        let mut gate = self.gate;
        gate.secrets = gate.secrets.known(&self.secrets);
        // What is let through by an exception is no less a secret in a record.
        let redactor = Redactor::new(self.secrets.iter().chain(&self.unrecorded))
            .with_formats(gate.secrets.least_recorded());
        let natives = start_natives(&self.entries, self.states, &env, &moments, &redactor, &mut parts).await;
        let (mut upstreams, mut followed) = (HashMap::new(), HashMap::new());
        for upstream in self.upstreams {
            let name = upstream.name().to_owned();
            if let Err(error) = id::check_server_name(&name) {
                return Err(HostError::ServerName { name: text::one_line(&name, 64), error });
            }
            if let Some(endpoint) = upstream.endpoint() {
                gate.endpoints.insert(name.clone(), endpoint);
            }
            let listing = upstream.listing().borrow().clone();
            let (part, _) =
                trusted_part(&name, &upstream.settings(), &listing, &gate.secrets, self.pins.as_deref());
            if parts.insert(name.clone(), Arc::new(part)).is_some() {
                return Err(HostError::DuplicateServer(name));
            }
            followed.insert(name.clone(), listing);
            upstreams.insert(name, upstream);
        }
        let changes = moments.subscribe();
        let catalogue = merge(&parts, &moments);
        let shared = Arc::new(Shared {
            routes: Routes { natives, upstreams, timeout: self.call_timeout },
            parts: Mutex::new(parts),
            followed: watch::Sender::new(followed),
            catalogue: watch::Sender::new(catalogue),
            names,
            filters: self.filters,
            config: self.config,
            provider: self.provider,
            indexes: self.indexes,
            gate,
            audit: Arc::new(Recorder::new(self.audit)),
            redactor,
            updates,
            moments,
            pins: self.pins,
            watchers: Mutex::default(),
        });
        shared.watch(changes);
        Ok(Host { shared })
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// Compares what is named with what there is, and gives back what may be harmless.
fn promised(
    names: &Names,
    natives: &BTreeMap<String, Arc<Part>>,
    filters: &[Filter],
    gate: &Gate,
    promises: &[Promise],
) -> Result<Vec<DeadName>, HostError> {
    let catalogue = Catalogue::merge(natives.values().map(|part| &**part));
    let mut views = Vec::with_capacity(promises.len());
    for promise in promises {
        let scope = Scope::new(filters, &promise.profile)?.under(Arc::clone(&gate.rules.borrow()));
        views.push((promise, scope.view(&catalogue)));
    }
    let Found { errors, warnings } = names.check(gate, &views);
    if errors.is_empty() { Ok(warnings) } else { Err(HostError::DeadNames(errors)) }
}

/// The states of the native servers. The part of one that cannot start loses its tools and says why.
async fn start_natives(
    entries: &[Entry],
    mut given: HashMap<&'static str, ServerState>,
    env: &ServerEnv,
    moments: &SharedMoments,
    redactor: &Redactor,
    parts: &mut BTreeMap<String, Arc<Part>>,
) -> HashMap<String, ServerState> {
    let starts = entries.iter().map(|entry| {
        let given = given.remove(entry.server());
        let availability = Availability::new(entry.server(), Arc::clone(moments));
        let env = ServerEnv { availability, ..env.clone() };
        async move {
            match (given, entry) {
                (Some(state), _) => (entry.server(), Ok(state)),
                (None, Entry::Server(spec)) => {
                    // On a task of its own, so that a panic in one start costs that server alone.
                    let started = tokio::spawn((spec.start)(env)).await;
                    let started = started.map_err(|_| "it panicked while starting".to_owned());
                    (spec.name, started.and_then(|started| started.map_err(|error| error.to_string())))
                }
                (None, free) => (free.server(), Ok(Arc::new(()) as ServerState)),
            }
        }
    });
    let mut states = HashMap::new();
    for (server, started) in join_all(starts).await {
        match started {
            Ok(state) => {
                states.insert(server.to_owned(), state);
            }
            Err(reason) => {
                if let Some(part) = parts.get_mut(server) {
                    let part = Arc::make_mut(part);
                    part.clear();
                    part.server.health = Health::Down(redactor.redact(&reason).into_owned());
                }
            }
        }
    }
    states
}

struct Shared {
    routes: Routes,
    parts: Mutex<BTreeMap<String, Arc<Part>>>,
    /// By upstream, the listing that its part was made of. The catalogue is never behind it.
    followed: watch::Sender<HashMap<String, Arc<Listing>>>,
    catalogue: watch::Sender<Catalogue>,
    names: Names,
    filters: Vec<Filter>,
    config: ProgressiveConfig,
    provider: Provider,
    indexes: Indexes,
    gate: Gate,
    audit: Arc<Recorder>,
    redactor: Redactor,
    updates: ResourceUpdates,
    moments: SharedMoments,
    pins: Option<Arc<dyn PinStore>>,
    watchers: Mutex<JoinSet<()>>,
}

impl Shared {
    /// Follows every upstream, what native servers withhold, and the rules: each change makes a new catalogue, or one that
    /// is looked at anew.
    fn watch(self: &Arc<Self>, moments: watch::Receiver<Moments>) {
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        for upstream in self.routes.upstreams.values() {
            let (host, secrets) = (Arc::downgrade(self), self.gate.secrets.clone());
            watchers.spawn(follow(host, Arc::clone(upstream), secrets, self.pins.clone()));
        }
        watchers.spawn(follow_moments(Arc::downgrade(self), moments));
        watchers.spawn(follow_rules(Arc::downgrade(self), self.gate.rules.clone()));
    }

    /// The rules as they are now.
    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.gate.rules.borrow())
    }

    fn replace(&self, part: Part, listing: Arc<Listing>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let name = part.server.name.clone();
        parts.insert(name.clone(), Arc::new(part));
        self.catalogue.send_replace(merge(&parts, &self.moments));
        self.followed.send_modify(|followed| drop(followed.insert(name, listing)));
    }
}

fn merge(parts: &BTreeMap<String, Arc<Part>>, moments: &watch::Sender<Moments>) -> Catalogue {
    let moments = moments.borrow();
    let parts: Vec<_> = parts.values().map(|part| part.at_the_moment(&moments)).collect();
    Catalogue::merge(parts.iter().map(|part| &**part))
}

async fn follow_moments(host: Weak<Shared>, mut moments: watch::Receiver<Moments>) {
    while moments.changed().await.is_ok() {
        moments.borrow_and_update();
        let Some(host) = host.upgrade() else { return };
        let parts = host.parts.lock().unwrap_or_else(PoisonError::into_inner);
        host.catalogue.send_replace(merge(&parts, &host.moments));
    }
}

/// The catalogue is the same under other rules; but who follows it must look at it again.
async fn follow_rules(host: Weak<Shared>, mut rules: watch::Receiver<Arc<Rules>>) {
    while rules.changed().await.is_ok() {
        rules.borrow_and_update();
        let Some(host) = host.upgrade() else { return };
        host.catalogue.send_modify(|_| {});
    }
}

/// What a server lists, without secrets and without what is not trusted, and whether there is such.
fn trusted_part(
    name: &str,
    settings: &ExternalSettings,
    listing: &Listing,
    secrets: &SecretPolicy,
    store: Option<&dyn PinStore>,
) -> (Part, bool) {
    let mut part = match listing.without_secrets(name, secrets) {
        None => external_part(name, settings, listing),
        Some((clean, problems)) => {
            let mut part = external_part(name, settings, &clean);
            part.problems.extend(problems);
            part
        }
    };
    let quarantined = store.is_some_and(|store| pins::check(&mut part, settings.pins, store));
    (part, quarantined)
}

async fn follow(
    host: Weak<Shared>,
    upstream: Arc<dyn Upstream>,
    secrets: SecretPolicy,
    store: Option<Arc<dyn PinStore>>,
) {
    let mut listing = upstream.listing();
    // What came between the first look and this one counts as a change.
    listing.mark_changed();
    let mut quarantined = false;
    let mut modified = None;
    loop {
        tokio::select! {
            changed = listing.changed() => if changed.is_err() { return },
            () = modified_since(store.as_deref(), upstream.name(), modified), if quarantined => {}
        }
        let current = listing.borrow_and_update().clone();
        let checked = Arc::clone(&current);
        let settings = upstream.settings();
        let name = upstream.name().to_owned();
        let (secrets, pins) = (secrets.clone(), store.clone());
        modified = pins.as_ref().and_then(|pins| pins.modified(&name));
        // Checking a long list takes milliseconds, which the tasks of calls should not wait for.
        let part = tokio::task::spawn_blocking(move || {
            trusted_part(&name, &settings, &checked, &secrets, pins.as_deref())
        });
        let part = match part.await {
            Ok((part, waits)) => {
                quarantined = waits;
                part
            }
            // Only a runtime that is shutting down cancels such a task, and then nobody is left to look.
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(server = upstream.name(), %error, "a list of tools cannot be read");
                let down =
                    Listing::without_tools(Health::Down("its list of tools cannot be read".to_owned()));
                external_part(upstream.name(), &upstream.settings(), &down)
            }
        };
        match host.upgrade() {
            Some(host) => host.replace(part, current),
            None => return,
        }
    }
}

/// Returns when the pins of a server are no longer those of that time.
async fn modified_since(store: Option<&dyn PinStore>, server: &str, modified: Option<SystemTime>) {
    loop {
        tokio::time::sleep(QUARANTINE_TICK).await;
        if store.and_then(|store| store.modified(server)) != modified {
            return;
        }
    }
}

/// Everything an agent's program holds: the merged catalogue, and sessions over it. Cheap to clone.
///
/// ```
/// use aster_runtime::{Host, Profile, catalogue, mcp_tool};
/// use serde_json::json;
///
/// /// Adds two whole numbers.
/// #[mcp_tool(tier = Standard)]
/// fn add(
///     /// The first summand.
///     a: i64,
///     /// The second summand.
///     b: i64,
/// ) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::builder().catalogue(catalogue![add::TOOL]).build().await?;
/// let session = host.session(Profile::new("assistant"))?;
///
/// let injection = session.injection().expect("there is a tool");
/// assert!(injection.prompt.contains("Adds two whole numbers."));
///
/// let name = host.catalogue().tools()[0].id().to_string();
/// let call = json!({"action": "execute", "name": name, "arguments": {"a": 2, "b": 3}});
/// assert_eq!(session.call(&call).await.to_text(), "5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("servers", &self.catalogue().servers().len()).finish_non_exhaustive()
    }
}

impl Host {
    /// Starts to put a host together.
    #[must_use]
    pub fn builder() -> HostBuilder {
        HostBuilder::new()
    }

    /// The catalogue as it is now.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        self.shared.catalogue.borrow().clone()
    }

    /// The catalogue, now and whenever it changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Catalogue> {
        self.shared.catalogue.subscribe()
    }

    /// Tells the clients that subscribed to it that the resource with this URI has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.shared.updates.notify(uri);
    }

    /// The resources that change from now on, whoever may see them: an edge asks its session's view.
    #[must_use]
    pub fn resource_updates(&self) -> &ResourceUpdates {
        &self.shared.updates
    }

    /// The budget of the manifest and the bounds of searches.
    #[must_use]
    pub fn config(&self) -> &ProgressiveConfig {
        &self.shared.config
    }

    /// Whose model calls the tools.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.shared.provider
    }

    /// The rules as they are now.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.shared.rules()
    }

    /// Waits until no server is starting any more, but no longer than `limit`. Says whether all have settled.
    pub async fn settle(&self, limit: Duration) -> bool {
        let mut changes = self.changes();
        let settled = changes.wait_for(|catalogue| {
            !catalogue.servers().iter().any(|server| server.health == Health::Starting)
        });
        matches!(tokio::time::timeout(limit, settled).await, Ok(Ok(_)))
    }

    /// A session of an agent.
    ///
    /// # Errors
    ///
    /// Where a glob of the profile cannot be used, and where it names a group, a server or a native server's tool that there
    /// is not: such an agent would see less, or be denied less, than is meant. Of an external server's tools nothing is held
    /// against it.
    pub fn session(&self, profile: Profile) -> Result<HostSession, SessionError> {
        let scope = Scope::new(&self.shared.filters, &profile)?;
        let mut found = Found::default();
        self.shared.names.profile(&profile, &mut found);
        if !found.errors.is_empty() {
            return Err(SessionError::DeadNames(found.errors));
        }
        found.warnings.iter().for_each(|name| tracing::warn!("{name}"));
        Ok(HostSession {
            shared: Arc::clone(&self.shared),
            session: Arc::new(Session::new(profile)),
            scope: Arc::new(scope),
            sight: Arc::default(),
        })
    }

    /// What the calls, searches and refusals of all sessions came to since the host was built.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.audit.stats()
    }

    /// A name that a caller wrote, as it is repeated to the caller: in a line, and without secrets, which may stand in a log
    /// that the caller keeps of answers.
    #[cfg(feature = "serve")]
    pub(crate) fn repeated(&self, name: &str) -> String {
        text::one_line(&self.shared.redactor.redact(name), 256)
    }

    /// Ends the connections to external servers, side by side, and what was started for them. The records of the audit are
    /// kept when it returns.
    pub async fn close(&self) {
        join_all(self.shared.routes.upstreams.values().map(|upstream| upstream.close())).await;
        self.shared.audit.flush().await;
    }
}

/// What one call brings with it besides its arguments.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// The way back to the client, for progress and log.
    pub client: Option<Arc<dyn ClientLink>>,
    /// Cancels the call.
    pub cancellation: CancellationToken,
    /// The name that the caller used, where that is not the id: the audit has both.
    pub requested: Option<String>,
    /// The server whose resources alone a URI can mean, where not those of all do.
    pub server: Option<String>,
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

impl CallOptions {
    fn client(&self) -> ClientInfo {
        self.client.as_ref().map(|client| client.client()).unwrap_or_default()
    }
}

/// What a session sees of one catalogue under the same rules, and the ranking over it.
struct Sight {
    catalogue: Catalogue,
    scope: Scope,
    view: View,
    ranker: Current,
}

/// One agent's run on a host.
pub struct HostSession {
    shared: Arc<Shared>,
    session: Arc<Session>,
    scope: Arc<Scope>,
    sight: Arc<Mutex<Option<Arc<Sight>>>>,
}

impl fmt::Debug for HostSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSession").field("session", &self.session).finish_non_exhaustive()
    }
}

/// What an execute, a read or a get wants to have called.
enum Target<'a> {
    Tool(&'a ExecuteRequest),
    Resource { uri: &'a str, server: Option<&'a str> },
    Prompt(&'a str, &'a JsonObject),
}

impl Target<'_> {
    /// The method of MCP that asks for it.
    fn method(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tools/call",
            Self::Resource { .. } => "resources/read",
            Self::Prompt(..) => "prompts/get",
        }
    }

    /// What the caller wrote.
    fn requested(&self) -> &str {
        match self {
            Self::Tool(request) => &request.name,
            Self::Resource { uri: requested, .. } | Self::Prompt(requested, _) => requested,
        }
    }

    /// What it means in this session's view and, where they cannot be wrong yet, the arguments.
    fn resolve<'s>(&self, sight: &'s Sight) -> Result<(&'s Arc<Tool>, Option<JsonObject>), Ended> {
        let unknown = |what: &str, name: &str| {
            let message = format!("no {what} `{}` is known", text::one_line(name, 256));
            Ended::Denied(Denied::new(Check::Scope, message))
        };
        match self {
            Self::Tool(request) => Ok((bridge::resolve(&sight.view, &sight.ranker, &request.name)?, None)),
            Self::Resource { uri, server } => {
                let resource =
                    sight.view.resource_on(*server, uri).ok_or_else(|| unknown("resource", uri))?;
                Ok((resource.callable(), resource.arguments(uri)))
            }
            Self::Prompt(name, arguments) => {
                let prompt = ToolId::parse(name).and_then(|id| sight.view.prompt(&id));
                let prompt = prompt.ok_or_else(|| unknown("prompt", name))?;
                Ok((prompt.callable(), Some(prompt.arguments(arguments))))
            }
        }
    }

    /// The result with what the function itself does not know.
    fn complete(&self, callable: &Tool, result: ToolResult) -> ToolResult {
        if result.is_error() {
            return result;
        }
        let mut value = result.into_value();
        match self {
            Self::Tool(_) => {}
            Self::Resource { uri, .. } => {
                let contents = value.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten();
                for contents in contents.filter_map(Value::as_object_mut) {
                    if !contents.contains_key("uri") {
                        contents.shift_insert(0, "uri".to_owned(), Value::from(*uri));
                    }
                }
            }
            Self::Prompt(..) => {
                if let Some(prompt) = value.as_object_mut().filter(|got| !got.contains_key("description")) {
                    prompt.shift_insert(0, "description".to_owned(), Value::from(callable.description()));
                }
            }
        }
        ToolResult::from_value(value)
    }
}

/// What an argument is completed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// The resource template with this text.
    Resource(&'a str),
    /// The prompt with this id.
    Prompt(&'a str),
}

/// What is suggested for an argument (MCP `CompleteResult`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suggested {
    /// At most [`MAX_SUGGESTIONS`] values of [`MAX_SUGGESTED_BYTES`] together.
    pub values: Vec<String>,
    /// How many there are.
    pub total: usize,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// How many values a completion may have.
///
/// Source: MCP 2025-11-25, completion.
pub const MAX_SUGGESTIONS: usize = 100;

/// How many bytes the values of a completion may have together. A value that is longer alone is never suggested.
pub const MAX_SUGGESTED_BYTES: usize = 64 << 10;

/// How a call ends that was not sent, or that nobody waits for any more.
enum Ended {
    Denied(Denied),
    Cancelled,
}

/// What came of a call that was sent.
struct Ran {
    outcome: Outcome,
    /// How it failed, and why.
    error: Option<(&'static str, String)>,
    /// What the caller is told.
    result: ToolResult,
}

impl Ran {
    fn new(dispatched: Result<ToolResult, DispatchError>, redactor: &Redactor) -> Self {
        let error = match dispatched {
            Ok(result) => {
                let outcome = if result.is_error() { Outcome::ToolError } else { Outcome::Ok };
                return Self { outcome, error: None, result };
            }
            Err(error) => error,
        };
        let (outcome, kind) = match error {
            DispatchError::Unavailable { .. } => (Outcome::Failed, "unavailable"),
            DispatchError::TimedOut { .. } => (Outcome::TimedOut, "timed_out"),
            DispatchError::Cancelled => (Outcome::Cancelled, "cancelled"),
            DispatchError::Panicked => (Outcome::Panicked, "panicked"),
            DispatchError::Protocol { .. } => (Outcome::ToolError, "protocol"),
        };
        let message = redactor.redact(&error.to_string()).into_owned();
        Self { outcome, error: Some((kind, message.clone())), result: refusal(message) }
    }

    /// The same for whoever waits no more: what no hook has judged to the end, nobody is told.
    fn given_up(self) -> Self {
        let told = "the call was cancelled when it had run, and its result is withheld".to_owned();
        Self { result: refusal(told), ..self }
    }
}

impl From<BridgeError> for Ended {
    fn from(error: BridgeError) -> Self {
        let check = match error {
            BridgeError::UnknownTool { .. } => Check::Scope,
            BridgeError::NotDescribed(_) => Check::Describe,
            BridgeError::InvalidArguments(error) => return Self::Denied(error.into()),
            _ => Check::Request,
        };
        Self::Denied(Denied::new(check, error.to_string()))
    }
}

impl From<Denied> for Ended {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl HostSession {
    /// Another run of the same profile. The two share what they see, and nothing of what they have done.
    #[must_use]
    pub fn another(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            session: Arc::new(Session::new(self.session.profile().clone())),
            scope: Arc::clone(&self.scope),
            sight: Arc::clone(&self.sight),
        }
    }

    /// Another run of the same profile that shares the limits of this one.
    #[cfg(feature = "serve-http")]
    pub(crate) fn sharing(&self) -> Self {
        Self { session: Arc::new(self.session.sharing()), ..self.another() }
    }

    /// The session: identity and what it has described.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the session sees now.
    #[must_use]
    pub fn view(&self) -> View {
        self.sight().view.clone()
    }

    /// Whether the session may see this tool, under the rules as they are now.
    #[must_use]
    pub fn shows(&self, tool: &Tool) -> bool {
        self.scope.under(self.shared.rules()).shows(tool)
    }

    /// Whether the session may ever see resources, and prompts, whose ids pass: their servers may withhold them now.
    #[cfg(feature = "serve")]
    pub(crate) fn may_see(&self, passes: impl Fn(&ToolId) -> bool) -> (bool, bool) {
        let scope = self.scope.under(self.shared.rules());
        let parts = self.shared.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let may_see = |callable: &Tool| passes(callable.id()) && scope.shows(callable);
        let resources = parts.values().flat_map(|part| &part.resources).any(|one| may_see(one.callable()));
        let prompts = parts.values().flat_map(|part| &part.prompts).any(|one| may_see(one.callable()));
        // What a mounted server has is not known before it has started.
        let starts = |server: &crate::catalogue::Server| server.native && server.health == Health::Starting;
        let starting =
            parts.values().any(|part| starts(&part.server) && passes(&ToolId::new(&part.server.name, "")));
        (resources || starting, prompts || starting)
    }

    /// What to add to a model request; `None` where the session sees nothing.
    #[must_use]
    pub fn injection(&self) -> Option<Injection> {
        inject::inject(&self.sight().view, &self.shared.config)
    }

    /// Answers what a model called the bridge with. Refusals and failures are answers too, with `isError`.
    pub async fn call(&self, arguments: &Value) -> ToolResult {
        self.call_with(arguments, CallOptions::default()).await
    }

    /// The same, with a way back to the client and a way to cancel.
    pub async fn call_with(&self, arguments: &Value, options: CallOptions) -> ToolResult {
        let answer = match bridge::parse(arguments) {
            Ok(Request::Execute(request)) => return self.run(Target::Tool(&request), options).await.result,
            Ok(Request::Search(request)) => {
                let sight = self.sight();
                let answer = bridge::search(&sight.view, &sight.ranker, &request, &self.shared.config);
                let ids = |tool: &Value| {
                    let also = tool["also"].as_array().into_iter().flatten();
                    let ids = [&tool["id"]].into_iter().chain(also).filter_map(Value::as_str);
                    ids.map(str::to_owned).collect()
                };
                let hits: Vec<Vec<String>> =
                    answer["tools"].as_array().into_iter().flatten().map(ids).collect();
                if !request.query.is_empty() {
                    // A page after the last has none, which does not mean that there is none.
                    let total = answer["total"].as_u64().unwrap_or_default() as usize;
                    self.shared.audit.searched(&self.session, options.client(), hits.len().max(total));
                }
                self.session.note_search(&request.query, request.server.as_deref(), request.offset, hits);
                Ok(answer)
            }
            Ok(Request::Describe(names)) => {
                self.started(&names).await;
                let sight = self.sight();
                let mut described = Vec::new();
                let answer =
                    bridge::describe_all(&sight.view, &sight.ranker, &names, self.shared.provider, |tool| {
                        self.session.mark_described(tool.id(), tool.digest());
                        self.session.note_described(tool.id());
                        described.push(tool.id().to_string());
                    });
                if !described.is_empty() {
                    self.shared.audit.described(&self.session, options.client(), described);
                }
                answer
            }
            Err(error) if bridge::is_execute(arguments) => {
                return self.refuse(arguments, error, &options).await;
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => ToolResult::text(answer.to_string()),
            Err(error) => refusal(error.to_string()),
        }
    }

    /// Calls a tool by its id.
    pub async fn execute(&self, id: &str, arguments: JsonObject, options: CallOptions) -> Completed {
        let request = ExecuteRequest {
            name: id.to_owned(),
            arguments: Some(Value::Object(arguments)),
            ..ExecuteRequest::default()
        };
        self.run(Target::Tool(&request), options).await
    }

    /// Reads the resource that a URI means. The result's value is `{"contents": […]}` (MCP `ReadResourceResult`).
    ///
    /// A URI that means nothing, or nothing that the session may see, is denied by [`Check::Scope`].
    pub async fn read_resource(&self, uri: &str, options: CallOptions) -> Completed {
        let server = options.server.clone();
        self.run(Target::Resource { uri, server: server.as_deref() }, options).await
    }

    /// Gets a prompt by its id. The result's value is `{"description": …, "messages": […]}` (MCP `GetPromptResult`). Text
    /// among the arguments is read as JSON where the prompt does not take text.
    ///
    /// A prompt that does not exist, or that the session may not see, is denied by [`Check::Scope`].
    pub async fn get_prompt(&self, id: &str, arguments: JsonObject, options: CallOptions) -> Completed {
        self.run(Target::Prompt(id, &arguments), options).await
    }

    /// What the rules as they are now make of a call, and those of them that match it. Nothing is called; where a rule is
    /// about paths, the file system is asked where they lead.
    #[must_use]
    pub fn ruling(&self, tool: &Tool, arguments: &JsonObject) -> (Ruling, Vec<Rule>) {
        gate::explain(&self.shared.gate, &self.shared.rules(), &self.session, tool, arguments)
    }

    /// Suggests values for an argument of which this has been typed; `None` where the session knows no such resource or
    /// prompt. Nothing is called but what `#[arg(complete = …)]` names, which may block; secrets in what it suggests are
    /// replaced as in a result.
    #[must_use]
    pub fn complete(&self, of: Reference<'_>, argument: &str, typed: &str) -> Option<Suggested> {
        let sight = self.sight();
        let mut values = match of {
            Reference::Resource(template) => {
                let has = |resource: &&Arc<Resource>| resource.template().as_str() == template;
                sight.view.resources().iter().find(has)?.suggest(argument, typed)
            }
            Reference::Prompt(id) => sight.view.prompt(&ToolId::parse(id)?)?.suggest(argument, typed),
        };
        let total = values.len();
        values.retain(|value| value.len() <= MAX_SUGGESTED_BYTES);
        values.truncate(MAX_SUGGESTIONS);
        let mut values = gate::withhold_suggested(&self.shared.gate.secrets, values);
        let mut bytes = 0;
        let fitting = values.iter().take_while(|value| {
            bytes += value.len();
            bytes <= MAX_SUGGESTED_BYTES
        });
        let fitting = fitting.count();
        values.truncate(fitting);
        Some(Suggested { has_more: total > values.len(), values, total })
    }

    /// Records a call of what the caller itself knows to be nothing: of a name that stands for no `tool`. It reports it, so
    /// that this is in the audit like the call of an unknown id, as one of this client.
    pub async fn refuse_unknown(&self, requested: &str, client: ClientInfo) -> Completed {
        let message = format!("no tool `{}` is known", text::one_line(requested, 128));
        let trail = self.trail(client, &uuid::Uuid::now_v7().to_string(), requested);
        self.end(trail, Err(Denied::new(Check::Scope, message).into())).await
    }

    /// The whole way of a call: resolved in the session's scope, admitted by the gate, recorded, dispatched, recorded.
    async fn run(&self, target: Target<'_>, options: CallOptions) -> Completed {
        let call_id: Arc<str> = uuid::Uuid::now_v7().to_string().into();
        let shared = &*self.shared;
        let requested = options.requested.as_deref().unwrap_or_else(|| target.requested());
        let mut trail = self.trail(options.client(), &call_id, requested);
        let cancellation = options.cancellation.clone();
        let span = self.span(&target, &call_id);
        let has_run = AtomicBool::new(false);
        let way = async {
            self.started(&[target.requested()]).await;
            let sight = self.sight();
            let (tool, arguments) = target.resolve(&sight)?;
            trail.resolved(tool);
            Span::current().record("gen_ai.tool.name", tool.id().as_str());
            let arguments = match (&target, arguments) {
                (Target::Tool(request), _) => {
                    self.check_described(tool)?;
                    let mut arguments = bridge::arguments(tool, request)?;
                    self.session.fill(tool.id(), &mut arguments);
                    arguments
                }
                (_, arguments) => arguments.unwrap_or_default(),
            };
            trail.arguments(&arguments);
            let proposed = Proposed {
                call_id: Arc::clone(&call_id),
                session: Arc::clone(&self.session),
                tool: Arc::clone(tool),
                arguments,
            };
            let client = options.client.as_ref();
            let mut admitted =
                gate::admit(&shared.gate, &sight.scope, proposed, client, trail.heard()).await?;
            // Only now is a server started that is down: it may come back as another, which is then seen.
            if self.ready(tool.id().server()).await {
                admitted.check_same_rules(&shared.gate).await?;
            }
            let listing = self.check_unchanged(&admitted)?;
            trail.intent(&admitted).await?;
            self.session.note_executed(tool.id());
            let context = ToolContext::new(Arc::clone(&self.session), call_id)
                .with_cancellation(options.cancellation.child_token())
                .with_client(options.client.map(|client| gate::discreet(&shared.gate.secrets, client)))
                .with_updates(shared.updates.clone())
                .with_availability(Availability::new(tool.id().server(), Arc::clone(&shared.moments)));
            let notes = admitted.take_context();
            let sent = (!shared.gate.hooks.is_empty()).then(|| admitted.call().clone());
            let dispatched = Instant::now();
            let ended = dispatch::dispatch(&shared.routes, admitted, listing, context).await;
            has_run.store(true, Ordering::Relaxed);
            let mut ran = Ran::new(ended, &shared.redactor);
            trail.ran(ran.outcome, ran.error.clone());
            if let Some(call) = &sent {
                let done = Done {
                    call,
                    result: &ran.result,
                    failed: ran.outcome != Outcome::Ok,
                    duration: dispatched.elapsed(),
                };
                let judged = hooks::after(&shared.gate.hooks, done, &mut trail.heard().said);
                let judged = tokio::select! {
                    biased;
                    () = cancellation.cancelled() => None,
                    judged = judged => Some(judged),
                };
                let Some(judged) = judged else { return Ok(ran.given_up()) };
                ran.result = judged;
            }
            let result = target.complete(tool, ran.result.with_notes(notes));
            let result = gate::bound(&shared.gate.limits, tool.id(), result);
            ran.result = match trail.keeps_whole(&result) {
                true => result,
                false => gate::withhold(&shared.gate.secrets, result),
            };
            Ok(ran)
        };
        let cancelled = async {
            cancellation.cancelled().await;
            // What has run is not undone, and must not be recorded as if it had not.
            if has_run.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let ended = {
            // Where it is: it is large, and would be copied into whatever it is handed to.
            let way = pin!(way);
            tokio::select! {
                biased;
                () = cancelled => Err(Ended::Cancelled),
                ended = way.instrument(span.clone()) => ended,
            }
        };
        if let Some(tier) = trail.tier() {
            span.record("aster.tier", tier.name());
        }
        let completed = self.end(trail, ended).instrument(span.clone()).await;
        span.record("aster.outcome", completed.outcome.name());
        span.record(
            "aster.decision",
            if completed.outcome == Outcome::Denied { "denied" } else { "admitted" },
        );
        if let Some(check) = completed.denied {
            span.record("aster.check", check.name());
        }
        if completed.outcome != Outcome::Ok {
            span.record("error.type", completed.outcome.name());
            span.record("otel.status_code", "ERROR");
        }
        completed
    }

    /// The call as a span, with the names that OpenTelemetry gives its parts, and no more of it than who, what and what came
    /// of it: arguments and results are for the audit alone.
    ///
    /// Source: OpenTelemetry's semantic conventions for generative AI, MCP server spans.
    fn span(&self, target: &Target<'_>, call_id: &str) -> Span {
        tracing::info_span!(
            target: CALL_SPAN,
            "call",
            "otel.kind" = "server",
            "otel.name" = target.method(),
            "otel.status_code" = field::Empty,
            "mcp.method.name" = target.method(),
            "gen_ai.operation.name" = "execute_tool",
            "gen_ai.tool.name" = field::Empty,
            "gen_ai.tool.call.id" = call_id,
            "gen_ai.agent.name" = self.session.agent(),
            "session.id" = self.session.id(),
            "error.type" = field::Empty,
            "aster.tier" = field::Empty,
            "aster.decision" = field::Empty,
            "aster.check" = field::Empty,
            "aster.outcome" = field::Empty,
        )
    }

    /// Writes the outcome and words the answer.
    async fn end(&self, trail: Trail, ended: Result<Ran, Ended>) -> Completed {
        let redactor = &self.shared.redactor;
        match ended {
            Ok(ran) => trail.complete(ran.outcome, None, ran.error, ran.result).await,
            Err(Ended::Denied(denied)) => {
                let told = refusal(redactor.redact(&denied.told()).into_owned());
                trail.complete(Outcome::Denied, Some(&denied), None, told).await
            }
            Err(Ended::Cancelled) => {
                let Ran { outcome, error, result } = Ran::new(Err(DispatchError::Cancelled), redactor);
                trail.complete(outcome, None, error, result).await
            }
        }
    }

    /// Waits for the servers of these ids, where the session knows of them and they are still starting: a client that asks
    /// at once is not told that there is no such tool.
    async fn started<S: AsRef<str>>(&self, ids: &[S]) {
        let starting = |sight: &Sight| {
            let mut servers = sight.view.servers().iter().filter(|server| server.health == Health::Starting);
            servers.any(|server| {
                let mut ids = ids.iter().filter_map(|id| ToolId::parse(id.as_ref()));
                ids.any(|id| id.server() == server.name)
            })
        };
        if !starting(&self.sight()) {
            return;
        }
        let mut changes = self.shared.catalogue.subscribe();
        let settled = async { while starting(&self.sight()) && changes.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(START_PATIENCE, settled).await;
    }

    /// Makes an external server ready and waits until the catalogue is of what it lists then: one that was down may come back
    /// with other tools, which are compared with their pins before any of them is called. Why it cannot be called, dispatch
    /// will say. Gives back whether there was anything to wait for.
    async fn ready(&self, server: &str) -> bool {
        let Some(upstream) = self.shared.routes.upstreams.get(server) else { return false };
        let ready = upstream.ready();
        let was_down = ready.is_some();
        if let Some(ready) = ready {
            let _ = ready.await;
        }
        let listing = upstream.listing();
        let is_followed =
            |followed: &HashMap<String, Arc<Listing>>| followed[server].offers_as(&listing.borrow());
        // So it is nearly always, and then nothing need be set up to wait.
        if is_followed(&self.shared.followed.borrow()) {
            return was_down;
        }
        let mut followed = self.shared.followed.subscribe();
        let caught_up = followed.wait_for(is_followed);
        let _ = tokio::time::timeout(START_PATIENCE, caught_up).await;
        true
    }

    /// What a session has to look at before it calls it, where its profile says so.
    fn check_described(&self, tool: &Tool) -> Result<(), BridgeError> {
        let described = || self.session.has_described(tool.id(), &tool.digest());
        if !self.session.profile().require_describe || described() {
            return Ok(());
        }
        Err(BridgeError::NotDescribed(tool.id().clone()))
    }

    /// A human may take minutes, and a hook its time: what they looked at must still be what would be called. Gives back the
    /// listing that has it, where its server is not native.
    fn check_unchanged(&self, admitted: &Admitted) -> Result<Option<Arc<Listing>>, Denied> {
        let tool = &admitted.call().tool;
        let server = tool.id().server();
        // Before the view, which is then never behind it.
        let listing = self.shared.followed.borrow().get(server).cloned();
        let upstream = self.shared.routes.upstreams.get(server);
        let is_current = upstream
            .zip(listing.as_ref())
            .is_none_or(|(upstream, listing)| listing.offers_as(&upstream.listing().borrow()));
        let same = is_current
            && self.sight().view.callable(tool.id()).is_some_and(|now| {
                Arc::ptr_eq(now, tool) || (now.tier() == tool.tier() && now.definition() == tool.definition())
            });
        if same {
            return Ok(listing);
        }
        let message = format!(
            "`{}` changed while the call was decided; nothing was called. Describe it again",
            tool.id()
        );
        Err(Denied::new(Check::Changed, message))
    }

    /// An execute that cannot be read is a refused call like any other.
    async fn refuse(&self, arguments: &Value, error: BridgeError, options: &CallOptions) -> ToolResult {
        let requested = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
        let trail = self.trail(options.client(), &uuid::Uuid::now_v7().to_string(), requested);
        self.end(trail, Err(error.into())).await.result
    }

    fn trail(&self, client: ClientInfo, call_id: &str, requested: &str) -> Trail {
        let (recorder, redactor) = (Arc::clone(&self.shared.audit), self.shared.redactor.clone());
        Trail::start(recorder, redactor, &self.session, client, call_id, requested)
    }

    /// What the session sees of the catalogue as it is now, under the rules as they are now. It is made where no lock is held:
    /// who wants what has come since does not wait for a ranking of what was there before.
    fn sight(&self) -> Arc<Sight> {
        let is_current = |sight: &&Arc<Sight>| {
            sight.catalogue.is_same(&self.shared.catalogue.borrow())
                && Arc::ptr_eq(sight.scope.rules(), &self.shared.rules())
        };
        let last = || self.sight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = last().as_ref().filter(is_current) {
            return Arc::clone(current);
        }
        let catalogue = self.shared.catalogue.borrow().clone();
        let scope = self.scope.under(self.shared.rules());
        let view = scope.view(&catalogue);
        // Under other rules the session may see less, of which the last ranking knows nothing.
        let before = last().as_ref().filter(|last| Arc::ptr_eq(last.scope.rules(), scope.rules())).cloned();
        let ranker = self.shared.indexes.ranker(&view, before.as_ref().map(|before| &before.ranker));
        let fresh = Arc::new(Sight { catalogue, scope, view, ranker });
        // What is outdated by now takes nothing's place.
        if is_current(&&fresh) {
            *last() = Some(Arc::clone(&fresh));
        }
        fresh
    }
}

/// A refusal as the answer to a call.
fn refusal(message: String) -> ToolResult {
    crate::tool::ToolError::new(message).into()
}
