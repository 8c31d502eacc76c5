//! The serving edge: MCP in. A client speaks either protocol era; what it sees is one session of a host.
//!
//! The edge translates and nothing more: every call goes through [`HostSession`], so that no shape of serving leads
//! around the gate.
#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and older clients still show it")]

pub mod binary;
#[cfg(feature = "serve-http")]
pub mod http;
mod link;
mod offer;
mod parent;
mod stdio;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::{join, join_all};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    LoggingLevel, PaginatedRequestParams, ResultType, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext, SubscriptionSink,
};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::link::Link;
use self::offer::{Offer, Target};
pub use self::parent::Parent;
pub use self::stdio::stdio;
use crate::call::Check;
use crate::host::{CallOptions, Host, HostSession};
use crate::scope::FilterError;
use crate::session::Profile;
use crate::text;
use crate::tool::{JsonObject, ToolResult};

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
    offer: RwLock<Arc<Offer>>,
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
        let offer = RwLock::new(Arc::new(Offer::new(&host, &viewer, &shape)));
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
        Arc::clone(&self.offer.read().unwrap_or_else(PoisonError::into_inner))
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
        let changed = {
            let fresh = Offer::new(&self.host, &self.viewer, &self.shape);
            let mut offer = self.offer.write().unwrap_or_else(PoisonError::into_inner);
            let changed = fresh.tools != offer.tools;
            *offer = Arc::new(fresh);
            changed
        };
        if changed {
            self.tell().await;
        }
    }

    async fn tell(&self) {
        let (peers, sinks) = {
            let listeners = self.listeners();
            (listeners.peers.clone(), listeners.sinks.values().cloned().collect::<Vec<_>>())
        };
        // One that has gone is no reason not to tell the others, and one that does not read holds up nobody for long.
        let peers = peers.iter().map(|peer| timeout(TELLING, peer.notify_tool_list_changed()));
        let sinks = sinks.iter().map(|sink| timeout(TELLING, sink.notify_tool_list_changed()));
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
    /// What was offered when it began: a change that comes before it is among the listeners is told then.
    offer: Arc<Offer>,
}

impl Server {
    fn new(service: Arc<Service>) -> Self {
        let connection = Connection {
            session: OnceLock::new(),
            log_level: AtomicU8::new(LoggingLevel::Info as u8),
            offer: service.offer(),
        };
        Self { service, connection: Arc::new(connection) }
    }

    /// The session that a request belongs to.
    fn session(&self, context: &RequestContext<RoleServer>) -> Arc<HostSession> {
        let session = self.connection.session.get_or_init(|| {
            #[cfg(feature = "serve-http")]
            if let Some(session) = http::modern_session(context) {
                return session;
            }
            Arc::new(self.service.viewer.another())
        });
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
            Shape::Bridge => "aster".to_owned(),
            Shape::Server(name) => name.clone(),
        };
        config.server_info = Implementation::new(name, env!("CARGO_PKG_VERSION"));
        config.instructions = Some(self.service.offer().instructions.clone()).filter(|text| !text.is_empty());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.service.offer().tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.service.offer().tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = self.session(&context);
        let arguments = request.arguments.unwrap_or_default();
        let (link, messages) = Link::new(self.level(&context));
        let options = CallOptions { client: Some(link), cancellation: context.ct.clone() };
        let call = self.call(&session, &request.name, arguments, options);
        let result = messages.forward_during(&context, call).await?;
        Ok(typed_result(result).into())
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
        {
            let mut listeners = self.service.listeners();
            listeners.peers.retain(|peer| !peer.is_transport_closed());
            listeners.peers.push(context.peer.clone());
        }
        if self.missed_a_change() {
            let _ = context.peer.notify_tool_list_changed().await;
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.service.next_listener.fetch_add(1, Ordering::Relaxed);
        self.service.listeners().sinks.insert(key, context.sink().clone());
        let _gone = Gone { service: &self.service, key };
        let tell = async {
            if self.missed_a_change() {
                let _ = context.sink().notify_tool_list_changed().await;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = context.cancelled() => {}
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
        match self.service.offer().target(name).ok_or_else(unknown)? {
            Target::Bridge => Ok(session.call_with(&Value::Object(arguments), options).await),
            Target::Tool(id) => {
                let completed = session.execute(&id, arguments, options).await;
                if completed.denied == Some(Check::Scope) { Err(unknown()) } else { Ok(completed.result) }
            }
        }
    }

    fn missed_a_change(&self) -> bool {
        let now = self.service.offer();
        !Arc::ptr_eq(&now, &self.connection.offer) && now.tools != self.connection.offer.tools
    }

    /// The least grave message that the client wants to hear of, if any: in the modern era only one that asks, per
    /// request, gets messages at all.
    fn level(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        let legacy = context.protocol_version().is_some_and(|version| version.has_initialize());
        let asked = context.meta.log_level().map(|level| level as u8);
        asked.or_else(|| legacy.then(|| self.connection.log_level.load(Ordering::Relaxed)))
    }
}

/// A result in the protocol's types. A block that they do not know becomes text, and never costs the others.
fn typed_result(result: ToolResult) -> CallToolResult {
    let value = result.into_value();
    if let Ok(mut result) = serde_json::from_value::<CallToolResult>(value.clone()) {
        // The modern era demands it, and for older clients the SDK takes it off again.
        result.result_type = Some(ResultType::COMPLETE);
        return result;
    }
    let blocks = match &value["content"] {
        Value::Array(blocks) => blocks.iter().map(typed_block).collect(),
        Value::String(text) => vec![ContentBlock::text(text.clone())],
        _ => Vec::new(),
    };
    let mut typed = CallToolResult::success(blocks);
    typed.structured_content = value.get("structuredContent").cloned();
    typed.is_error = value.get("isError").and_then(Value::as_bool);
    typed
}

fn typed_block(block: &Value) -> ContentBlock {
    serde_json::from_value(block.clone()).unwrap_or_else(|_| {
        let text = block.get("text").and_then(Value::as_str).map_or_else(|| block.to_string(), str::to_owned);
        ContentBlock::text(text)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_result_says_that_it_is_complete() {
        for result in [
            ToolResult::text("a"),
            ToolResult::from_value(json!({"content": [{"type": "hologram"}]})),
            ToolResult::from_value(json!({"content": [], "resultType": "input_required"})),
        ] {
            assert_eq!(serde_json::to_value(typed_result(result)).unwrap()["resultType"], "complete");
        }
    }

    #[test]
    fn a_block_that_nobody_knows_costs_only_itself() {
        let result = ToolResult::from_value(json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "hologram", "data": 1},
            {"type": "text", "text": "b", "annotations": {"audience": ["system"]}},
        ], "isError": true}));
        let typed = serde_json::to_value(typed_result(result)).unwrap();
        assert_eq!(typed["content"].as_array().unwrap().len(), 3);
        assert_eq!(typed["content"][2]["text"], "b");
        assert!(typed["content"][1]["text"].as_str().unwrap().contains("hologram"));
        assert_eq!(typed["isError"], true);
    }
}
