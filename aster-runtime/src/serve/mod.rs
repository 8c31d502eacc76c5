//! The serving edge: MCP in. A client speaks either protocol era; what it sees is one session of a host.
//!
//! The edge translates and nothing more: every call goes through [`HostSession`], so that no shape of serving leads
//! around the gate.
#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and older clients still show it")]

pub mod binary;
mod link;
mod names;
mod offer;
mod raw;
mod stdio;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::{join, join_all};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscriptionFilter,
    Tool,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext, SubscriptionSink,
};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::link::Link;
use self::offer::{Offer, Offered, Target};
pub use self::stdio::{over, stdio};
use crate::call::Check;
use crate::host::{CallOptions, Host, HostSession, START_PATIENCE};
use crate::scope::FilterError;
use crate::session::Profile;
use crate::text;
use crate::tool::{JsonObject, ToolResult};

/// How long the first answer waits for servers that are still starting.
const FIRST_ANSWER: Duration = Duration::from_secs(1);

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
    /// A glob of the profile cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// There is no such native server in the session's scope.
    #[error("no native server `{0}` is known; `aster mcp list` shows them all")]
    UnknownServer(String),
    /// The client never began a session.
    #[error("the client did not begin an MCP session: {0}")]
    Handshake(String),
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
    listeners: Mutex<Listeners>,
    next_listener: AtomicU64,
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
        if let Shape::Server(name) = &shape
            && !viewer.view().servers().iter().any(|server| server.native && server.name == *name)
        {
            return Err(ServeError::UnknownServer(name.clone()));
        }
        let offer = watch::Sender::new(Arc::new(Offer::new(&host, &viewer, &shape)));
        Ok(Arc::new(Self {
            host,
            shape,
            viewer,
            offer,
            listeners: Mutex::default(),
            next_listener: AtomicU64::new(0),
            ended,
        }))
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.borrow())
    }

    /// What a client means by the name of a tool. Waits for the tool's server where that is still starting: a client may
    /// remember tools from before, and call one at once.
    async fn target(&self, name: &str) -> Option<Target> {
        let decided = |offer: &Arc<Offer>| !offer.awaits(name) || offer.target(name).is_some();
        if !decided(&self.offer()) {
            let mut offers = self.offer.subscribe();
            let _ = tokio::time::timeout(START_PATIENCE, offers.wait_for(decided)).await;
        }
        self.offer().target(name)
    }

    /// Follows the catalogue, and tells the listeners where what is offered has changed.
    async fn follow(self: Arc<Self>) {
        let mut changes = self.host.changes();
        changes.mark_changed();
        while changes.changed().await.is_ok() {
            changes.borrow_and_update();
            let fresh = Offer::new(&self.host, &self.viewer, &self.shape);
            let known = self.offer.send_replace(Arc::new(fresh));
            if !known.has_same_tools(&self.offer()) {
                self.tell().await;
            }
        }
    }

    async fn tell(&self) {
        let (peers, sinks) = {
            let listeners = self.listeners();
            (listeners.peers.clone(), listeners.sinks.values().cloned().collect::<Vec<_>>())
        };
        // One that has gone is no reason not to tell the others, and neither is one that does not read.
        let peers = peers.iter().map(|peer| async { drop(peer.notify_tool_list_changed().await) });
        let sinks = sinks.iter().map(|sink| async { drop(sink.notify_tool_list_changed().await) });
        join(join_all(peers), join_all(sinks)).await;
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Made when it is first needed.
    session: OnceLock<Arc<HostSession>>,
    log_level: AtomicU8,
}

impl Server {
    fn new(service: Arc<Service>) -> Self {
        let connection =
            Connection { session: OnceLock::new(), log_level: AtomicU8::new(LoggingLevel::Info as u8) };
        Self { service, connection: Arc::new(connection) }
    }

    /// The session that a request belongs to.
    fn session(&self, context: &RequestContext<RoleServer>) -> Arc<HostSession> {
        let session = self.connection.session.get_or_init(|| Arc::new(self.service.viewer.another()));
        // Who the client says it is, for the audit.
        if let Some(client) = context.client_info() {
            session.session().introduce(&client.name);
        }
        Arc::clone(session)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
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
        Ok(raw::list(page.iter().map(Offered::definition).collect(), next))
    }

    /// Asked for by rmcp's HTTP server, which checks a call's headers against the schema.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let schema = self.service.offer().schema_with_headers(name)?.clone();
        Some(Tool::new_with_raw(name.to_owned(), None, schema))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context);
        let arguments = request.arguments.unwrap_or_default();
        let (link, messages) = Link::new(self.level(&context));
        let options =
            CallOptions { client: Some(link), cancellation: context.ct.clone(), ..CallOptions::default() };
        let call = self.call(&session, &request.name, arguments, options);
        let result = messages.forward_during(&context, call).await?;
        Ok(raw::result(result).into())
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
        let mut listeners = self.service.listeners();
        listeners.peers.retain(|peer| !peer.is_transport_closed());
        listeners.peers.push(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.service.next_listener.fetch_add(1, Ordering::Relaxed);
        self.service.listeners().sinks.insert(key, context.sink().clone());
        let _gone = Gone { service: &self.service, key };
        tokio::select! {
            () = context.cancelled() => {}
            () = self.service.ended.cancelled() => {}
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

impl Server {
    async fn call(
        &self,
        session: &HostSession,
        name: &str,
        arguments: JsonObject,
        options: CallOptions,
    ) -> Result<ToolResult, ErrorData> {
        // An unknown tool is a protocol error, by the specification; it is recorded all the same.
        let unknown = || {
            let message = format!("no tool `{}` is known", text::one_line(name, 128));
            ErrorData::invalid_params(message, None)
        };
        match self.service.target(name).await {
            None => {
                session.refuse_unknown(name);
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

    /// The least grave message that the client wants to hear of, if any: in the modern era only one that asks, per
    /// request, gets messages at all.
    fn level(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        let legacy = context.protocol_version().is_some_and(|version| version.has_initialize());
        let asked = context.meta.log_level().map(|level| level as u8);
        asked.or_else(|| legacy.then(|| self.connection.log_level.load(Ordering::Relaxed)))
    }
}
