//! The serving edge: MCP in. A client speaks either protocol era; what it sees is one session of a host.
//!
//! The edge translates and nothing more: every call goes through [`HostSession`], so that no shape of serving leads
//! around the gate.
#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and older clients still show it")]

pub mod binary;
#[cfg(feature = "serve-http")]
pub mod http;
mod interrupt;
mod lines;
mod link;
mod names;
mod offer;
mod parent;
mod prompts;
mod raw;
mod resources;
mod rounds;
mod stdio;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::{join, join_all};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, CompleteRequestParams,
    CompleteResult, ConstString, GetPromptRequestParams, GetPromptResponse, Implementation, InputResponses,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    LoggingLevel, PaginatedRequestParams, PromptsCapability, ReadResourceRequestParams, ReadResourceResponse,
    ResourcesCapability, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext, SubscriptionSink,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use self::interrupt::Interrupt;
use self::link::Front;
use self::offer::{Changes, Offer, Offered, Target};
pub use self::parent::Parent;
use self::resources::Followed;
use self::rounds::{Asking, Rounds, Turn};
pub use self::stdio::{over, stdio};
use crate::call::Check;
use crate::host::{CallOptions, Host, HostSession, START_PATIENCE, SessionError};
use crate::session::Profile;
use crate::text;
use crate::tool::{ClientInfo, JsonObject, ToolResult};

/// How long the first answer waits for servers that are still starting.
const FIRST_ANSWER: Duration = Duration::from_secs(1);

/// How long telling one client of a changed list may take.
const TELLING: Duration = Duration::from_secs(5);

/// What a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// One tool, `aster_mcp`.
    Bridge,
    /// Every tool in scope, as its server defined it, named `server__tool`.
    ///
    /// Where such a name would be too long, is not unique, or reads as if it were another server's, it ends in `_` and
    /// digits of the id's digest. Names depend on the tools in scope and on nothing else.
    Direct,
    /// The tools of one native server, under their own names.
    Server(String),
}

/// Why serving could not begin, or broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The profile cannot be used.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// There is no such native server in the session's scope.
    #[error("no native server `{0}` is known; `aster mcp list` shows them all")]
    UnknownServer(String),
    /// The client never began a session.
    #[error("the client did not begin an MCP session: {0}")]
    Handshake(String),
    /// The system gives no random numbers.
    #[error("there are no random numbers to seal the state of questions with: {0}")]
    Random(String),
    /// An option of serving cannot be used.
    #[error("{0}")]
    Options(String),
    /// Others than this machine could reach the address, and would not be asked who they are.
    #[error(
        "`{0}` can be reached from other machines: demand a token (`--token-env`), or listen on 127.0.0.1"
    )]
    TokenRequired(SocketAddr),
    /// The address cannot be listened at.
    #[error("cannot listen on {address}: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The serving task failed.
    #[error("serving broke off: {0}")]
    Broken(String),
}

/// One host as served to one or many clients: what they all share.
struct Service {
    host: Host,
    shape: Shape,
    /// Looks and never calls: sessions of one profile see the same.
    viewer: HostSession,
    offer: watch::Sender<Arc<Offer>>,
    /// Held while the offer is made anew.
    renewing: Mutex<()>,
    listeners: Mutex<Listeners>,
    next_number: AtomicU64,
    /// Whether there may be a resource, when serving begins: what was not declared then cannot be asked for later.
    has_resources: bool,
    /// Whether there may be a prompt.
    has_prompts: bool,
    rounds: Arc<Rounds>,
    /// Cancelled when nobody is served any more.
    ended: CancellationToken,
}

/// Who is to hear of a changed list: connections of the legacy era, and subscriptions of the modern one.
#[derive(Default)]
struct Listeners {
    peers: Vec<Peer<RoleServer>>,
    sinks: HashMap<u64, SubscriptionSink>,
}

impl Service {
    fn new(
        host: Host,
        profile: Profile,
        shape: Shape,
        ended: CancellationToken,
    ) -> Result<Arc<Self>, ServeError> {
        let viewer = host.session(profile)?;
        let (has_resources, has_prompts) = viewer.may_see(|id| shape.offers(id));
        if let Shape::Server(name) = &shape {
            let view = viewer.view();
            let has_tools = view.servers().iter().any(|server| server.native && server.name == *name);
            if !has_tools && !has_resources && !has_prompts {
                return Err(ServeError::UnknownServer(name.clone()));
            }
        }
        let offer = watch::Sender::new(Arc::new(Offer::new(&host, &viewer, &shape)));
        let rounds = Rounds::new(ended.clone()).map_err(|error| ServeError::Random(error.to_string()))?;
        Ok(Arc::new(Self {
            host,
            has_resources,
            has_prompts,
            shape,
            viewer,
            offer,
            renewing: Mutex::default(),
            listeners: Mutex::default(),
            next_number: AtomicU64::new(0),
            rounds,
            ended,
        }))
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.borrow())
    }

    /// A number that nothing else has.
    fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    /// What a client means by the name of a tool. Waits for the tool's server where that is still starting: a client may
    /// remember tools from before, and call one at once.
    async fn target(&self, name: &str, cancelled: &CancellationToken) -> Option<Target> {
        let decided = |offer: &Arc<Offer>| !offer.awaits(name) || offer.target(name).is_some();
        if !decided(&self.offer()) {
            let mut offers = self.offer.subscribe();
            let waiting = timeout(START_PATIENCE, offers.wait_for(decided));
            let _ = cancelled.run_until_cancelled(waiting).await;
        }
        self.offer().target(name)
    }

    /// Follows the catalogue, and tells the listeners where what is offered has changed.
    async fn follow(self: Arc<Self>) {
        let mut changes = self.host.changes();
        changes.mark_changed();
        while changes.changed().await.is_ok() {
            changes.borrow_and_update();
            self.renew().await;
        }
    }

    /// Offers what there is now, and tells the listeners where that is something else.
    async fn renew(&self) {
        let (fresh, known) = {
            // What was looked at later must not be replaced by what was looked at before it.
            let _one = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = Arc::new(Offer::new(&self.host, &self.viewer, &self.shape));
            let known = self.offer.send_replace(Arc::clone(&fresh));
            (fresh, known)
        };
        let changes = fresh.changes_since(&known);
        let (peers, sinks) = {
            let listeners = self.listeners();
            (listeners.peers.clone(), listeners.sinks.values().cloned().collect::<Vec<_>>())
        };
        // One that has gone is no reason not to tell the others, and one that does not read holds up nobody for long.
        let peers = peers.iter().map(|peer| timeout(TELLING, tell(peer, changes)));
        let sinks = sinks.iter().map(|sink| timeout(TELLING, tell_subscriber(sink, changes)));
        join(join_all(peers), join_all(sinks)).await;
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells a client of the legacy era. Whether it still listens is its own affair.
async fn tell(peer: &Peer<RoleServer>, changes: Changes) {
    if changes.tools {
        let _ = peer.notify_tool_list_changed().await;
    }
    if changes.resources {
        let _ = peer.notify_resource_list_changed().await;
    }
    if changes.prompts {
        let _ = peer.notify_prompt_list_changed().await;
    }
}

/// Tells a subscriber of the modern era what it subscribed to: the sink holds the rest back.
async fn tell_subscriber(sink: &SubscriptionSink, changes: Changes) {
    if changes.tools {
        let _ = sink.notify_tool_list_changed().await;
    }
    if changes.resources {
        let _ = sink.notify_resource_list_changed().await;
    }
    if changes.prompts {
        let _ = sink.notify_prompt_list_changed().await;
    }
}

/// One connection, as an MCP server: a client on standard input, or a session over HTTP.
#[derive(Clone)]
struct Server {
    service: Arc<Service>,
    connection: Arc<Connection>,
}

/// What belongs to one connection.
struct Connection {
    number: u64,
    /// Made when it is first needed.
    session: OnceLock<Arc<HostSession>>,
    log_level: AtomicU8,
    /// Whether it is among the listeners.
    listens: AtomicBool,
    /// The resources that a client of the legacy era subscribed to.
    followed: Mutex<Option<Followed>>,
    /// What was offered when it began: a change that comes before it is among the listeners is told then.
    offer: Arc<Offer>,
    /// Whether the user started the client, which started this process.
    local: bool,
}

impl Server {
    fn new(service: Arc<Service>, local: bool) -> Self {
        let connection = Connection {
            number: service.number(),
            session: OnceLock::new(),
            log_level: AtomicU8::new(LoggingLevel::Info as u8),
            listens: AtomicBool::new(false),
            followed: Mutex::default(),
            offer: service.offer(),
            local,
        };
        Self { service, connection: Arc::new(connection) }
    }

    /// The session that a request belongs to.
    fn session(&self, context: &RequestContext<RoleServer>) -> Arc<HostSession> {
        let session = self.connection.session.get_or_init(|| {
            http::modern_session(context).unwrap_or_else(|| Arc::new(self.service.viewer.another()))
        });
        Arc::clone(session)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        if self.service.has_resources {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = Some(true);
            resources.list_changed = Some(true);
            capabilities.resources = Some(resources);
        }
        if self.service.has_prompts {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        if self.service.has_resources || self.service.has_prompts {
            capabilities.completions = Some(JsonObject::new());
        }
        let mut config = ServerConfig::new(capabilities);
        let name = match &self.service.shape {
            Shape::Bridge | Shape::Direct => "aster".to_owned(),
            Shape::Server(name) => name.clone(),
        };
        config.server_info = Implementation::new(name, env!("CARGO_PKG_VERSION"));
        config.instructions = Some(self.service.offer().instructions.clone()).filter(|text| !text.is_empty());
        config
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.session(&context);
        let offer = self.service.offer();
        let cursor = request.and_then(|request| request.cursor);
        let (page, next) = offer
            .page(cursor.as_deref())
            .map_err(|unknown| ErrorData::invalid_params(unknown.to_string(), None))?;
        if session.session().profile().require_describe {
            // Whoever was shown the definition needs no other description.
            for tool in page.iter().filter_map(Offered::tool) {
                session.session().mark_described(tool.id(), tool.digest());
            }
        }
        Ok(raw::list(page.iter().map(|tool| offer.definition(tool)).collect(), next))
    }

    /// Asked for by rmcp's HTTP server, which checks a call's headers against the schema.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let schema = self.service.offer().schema_with_headers(name)?;
        Some(Tool::new_with_raw(name.to_owned(), None, schema))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context);
        let arguments = request.arguments.unwrap_or_default();
        let (service, name) = (Arc::clone(&self.service), request.name.clone());
        let again = (request.input_responses, request.request_state);
        let asking = self.asking(&context, ("tools/call", &request.name), &arguments, again)?;
        let start = |options| async move { call(&service, &session, &name, arguments, options).await };
        let failure = |result: &Result<ToolResult, _>| result.as_ref().ok().and_then(ToolResult::failure);
        match self.service.rounds.answer(&context, asking, start, failure).await? {
            Turn::InputRequired(questions) => Ok(questions.into()),
            Turn::Done(result) => Ok(raw::result(result?).into()),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        declared::<ListResourcesRequestMethod>(self.service.has_resources)?;
        let resources = self.service.resources(|resource| resource.template().is_plain());
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        declared::<ListResourceTemplatesRequestMethod>(self.service.has_resources)?;
        let templates = self.service.resources(|resource| !resource.template().is_plain());
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.read(request, context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.follow_resource(request.uri, &context)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.forget_resource(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        declared::<ListPromptsRequestMethod>(self.service.has_prompts)?;
        Ok(ListPromptsResult::with_all_items(self.service.prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.get(request, context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.suggest(request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.log_level.store(request.level as u8, Ordering::Relaxed);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        // A client that says it again is told no more often.
        if self.connection.listens.swap(true, Ordering::Relaxed) {
            return;
        }
        {
            let mut listeners = self.service.listeners();
            listeners.peers.retain(|peer| !peer.is_transport_closed());
            listeners.peers.push(context.peer.clone());
        }
        tell(&context.peer, self.missed_changes()).await;
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        if let Some(id) = cancelled.request_id {
            self.service.rounds.give_up(&(self.connection.number, id));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| self.service.offers_resource(uri));
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.service.number();
        self.service.listeners().sinks.insert(key, context.sink().clone());
        let _gone = Gone { service: &self.service, key };
        let tell = async {
            tell_subscriber(context.sink(), self.missed_changes()).await;
            std::future::pending().await
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = self.service.follow_resources(context.sink()) => {}
            () = self.service.ended.cancelled() => {}
            () = tell => {}
        }
        Ok(())
    }
}

/// Takes a subscription off the list, also where its task is dropped.
struct Gone<'a> {
    service: &'a Service,
    key: u64,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.service.listeners().sinks.remove(&self.key);
    }
}

/// A method of a capability that was not declared is none.
fn declared<M: ConstString>(has: bool) -> Result<(), ErrorData> {
    if has { Ok(()) } else { Err(ErrorData::method_not_found::<M>()) }
}

async fn call(
    service: &Service,
    session: &HostSession,
    name: &str,
    arguments: JsonObject,
    options: CallOptions,
) -> Result<ToolResult, ErrorData> {
    // An unknown tool is a protocol error, by the specification; it is recorded all the same.
    let unknown = || {
        let message = format!("no tool `{}` is known", service.host.repeated(name));
        ErrorData::invalid_params(message, None)
    };
    match service.target(name, &options.cancellation).await {
        None => {
            let client = options.client.map(|client| client.client()).unwrap_or_default();
            session.refuse_unknown(name, client).await;
            Err(unknown())
        }
        Some(Target::Bridge) => Ok(session.call_with(&Value::Object(arguments), options).await),
        Some(Target::Tool(id)) => {
            let options = CallOptions { requested: Some(name.to_owned()), ..options };
            let completed = session.execute(id.as_str(), arguments, options).await;
            if completed.denied == Some(Check::Scope) { Err(unknown()) } else { Ok(completed.result) }
        }
    }
}

impl Server {
    /// A request that may have to ask its client.
    fn asking<'a>(
        &self,
        context: &RequestContext<RoleServer>,
        (method, name): (&'static str, &'a str),
        arguments: &JsonObject,
        (responses, state): (Option<InputResponses>, Option<String>),
    ) -> Result<Asking<'a>, ErrorData> {
        http::check_era(context)?;
        Ok(Asking {
            method,
            name,
            arguments: Value::Object(arguments.clone()),
            responses,
            state,
            origin: (self.connection.number, context.id.clone()),
            front: Front { level: self.level(context), client: self.client(context) },
            legacy: is_legacy(context),
        })
    }

    /// Who the client of a request says it is, and what it can be asked: in the modern era each request says so.
    fn client(&self, context: &RequestContext<RoleServer>) -> ClientInfo {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let mut client = ClientInfo::default();
        let name = context.client_info().map(|client| client.name);
        // Made fit to be shown, it might be the name of another, which the user trusts.
        client.name = name.filter(|name| text::one_line(name, 100) == *name);
        client.principal = http::principal(context);
        client.vouched = self.connection.local || client.principal.is_some();
        if let Some(elicitation) = &capabilities.elicitation {
            client.urls = elicitation.url.is_some();
            // An empty object is forms alone: urls came later.
            client.forms = elicitation.form.is_some() || !client.urls;
        }
        client.sampling = capabilities.sampling.is_some();
        client.sampling_tools = capabilities.sampling.is_some_and(|sampling| sampling.tools.is_some());
        client.roots = capabilities.roots.is_some();
        client
    }

    fn missed_changes(&self) -> Changes {
        self.service.offer().changes_since(&self.connection.offer)
    }

    /// The least grave message that the client wants to hear of, if any: in the modern era only one that asks, per
    /// request, gets messages at all.
    fn level(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        let legacy = is_legacy(context);
        let asked = context.meta.log_level().map(|level| level as u8);
        asked.or_else(|| legacy.then(|| self.connection.log_level.load(Ordering::Relaxed)))
    }
}

/// Over standard input nobody has to prove who it is, and there is one session.
#[cfg(not(feature = "serve-http"))]
mod http {
    use super::{Arc, ErrorData, HostSession, RequestContext, RoleServer};

    pub(super) fn principal(_: &RequestContext<RoleServer>) -> Option<String> {
        None
    }

    pub(super) fn modern_session(_: &RequestContext<RoleServer>) -> Option<Arc<HostSession>> {
        None
    }

    #[expect(clippy::unnecessary_wraps, reason = "over HTTP it can be wrong")]
    pub(super) fn check_era(_: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn is_legacy(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.has_initialize())
}
