//! The serving edge: MCP in. A client speaks either protocol era; what it sees is one session of a host.
//!
//! The edge translates and nothing more: every call goes through [`HostSession`], so that no shape of serving leads
//! around the gate.
#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and older clients still show it")]

pub mod binary;
mod link;
mod offer;
mod rounds;
mod stdio;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::{join, join_all};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, InputResponses,
    ListToolsResult, LoggingLevel, PaginatedRequestParams, ResultType, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{
    NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext, SubscriptionSink,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use self::link::Front;
use self::offer::{Offer, Target};
use self::rounds::{Asking, Rounds, Turn, missing_capability};
pub use self::stdio::{stdio, streams};
use crate::call::Check;
use crate::host::{CallOptions, Host, HostSession};
use crate::scope::FilterError;
use crate::session::Profile;
use crate::text;
use crate::tool::{ClientInfo, JsonObject, ToolResult};

/// How long the first answer waits for servers that are still starting.
const FIRST_ANSWER: Duration = Duration::from_secs(1);

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
    /// The system gives no random numbers.
    #[error("there are no random numbers to seal the state of questions with: {0}")]
    Random(String),
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
        if let Shape::Server(name) = &shape
            && !viewer.view().servers().iter().any(|server| server.native && server.name == *name)
        {
            return Err(ServeError::UnknownServer(name.clone()));
        }
        let offer = RwLock::new(Arc::new(Offer::new(&host, &viewer, &shape)));
        let rounds = Rounds::new(ended.clone()).map_err(|error| ServeError::Random(error.to_string()))?;
        Ok(Arc::new(Self {
            host,
            shape,
            viewer,
            offer,
            listeners: Mutex::default(),
            next_listener: AtomicU64::new(0),
            rounds,
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
            let fresh = Offer::new(&self.host, &self.viewer, &self.shape);
            let changed = fresh.tools != self.offer().tools;
            *self.offer.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
            if changed {
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
    /// Whom its parked calls belong to.
    caller: Vec<u8>,
    /// Whether the user started the client, or it has proved who it is.
    vouched: bool,
}

impl Server {
    /// A connection. What is parked for `caller` is resumed for the same caller only; no bytes are everybody.
    fn new(service: Arc<Service>, caller: Vec<u8>, vouched: bool) -> Self {
        let log_level = AtomicU8::new(LoggingLevel::Info as u8);
        let connection = Connection { session: OnceLock::new(), log_level, caller, vouched };
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
        let asking = self.asking(
            &context,
            "tools/call",
            &request.name,
            Value::Object(arguments.clone()),
            request.input_responses,
            request.request_state,
        );
        let (service, name) = (Arc::clone(&self.service), request.name.clone());
        let legacy = asking.legacy;
        let start = |options| async move { call(&service, &session, &name, arguments, options).await };
        match self.service.rounds.answer(&context, asking, start).await? {
            Turn::InputRequired(questions) => Ok(questions.into()),
            Turn::Done { output, unsupported } => {
                let result = output?;
                // The modern era has an error for it; in the legacy one it is the tool's.
                if result.is_error() && !unsupported.is_empty() && !legacy {
                    return Err(missing_capability(&unsupported));
                }
                Ok(typed_result(result).into())
            }
        }
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

async fn call(
    service: &Service,
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
    match service.offer().target(name).ok_or_else(unknown)? {
        Target::Bridge => Ok(session.call_with(&Value::Object(arguments), options).await),
        Target::Tool(id) => {
            let completed = session.execute(&id, arguments, options).await;
            if completed.denied == Some(Check::Scope) { Err(unknown()) } else { Ok(completed.result) }
        }
    }
}

impl Server {
    /// A request that may have to ask its client.
    fn asking<'a>(
        &self,
        context: &RequestContext<RoleServer>,
        method: &'static str,
        name: &'a str,
        arguments: Value,
        responses: Option<InputResponses>,
        state: Option<String>,
    ) -> Asking<'a> {
        let front = Front { level: self.level(context), client: self.client(context) };
        let (caller, legacy) = (self.connection.caller.clone(), is_legacy(context));
        Asking { method, name, arguments, responses, state, caller, front, legacy }
    }

    /// Who the client of a request says it is, and what it can be asked: in the modern era each request says so.
    fn client(&self, context: &RequestContext<RoleServer>) -> ClientInfo {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let mut client = ClientInfo::default();
        client.name = context.client_info().map(|client| text::one_line(&client.name, 100));
        client.vouched = self.connection.vouched;
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

    /// The least grave message that the client wants to hear of, if any: in the modern era only one that asks, per
    /// request, gets messages at all.
    fn level(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        let legacy = is_legacy(context);
        let asked = context.meta.log_level().map(|level| level as u8);
        asked.or_else(|| legacy.then(|| self.connection.log_level.load(Ordering::Relaxed)))
    }
}

fn is_legacy(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.has_initialize())
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
