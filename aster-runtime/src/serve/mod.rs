//! The serving edge: MCP in. A client speaks either protocol era; what it sees is one session of a host.
//!
//! The edge translates and nothing more: every call goes through [`HostSession`], so that no shape of serving leads
//! around the gate.
#![expect(deprecated, reason = "logging is deprecated from 2026-07-28 on, and older clients still show it")]

pub mod binary;
mod link;
mod stdio;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

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
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::link::Link;
pub use self::stdio::{ServeError, stdio};
use crate::call::Check;
use crate::host::{CallOptions, Host, HostSession};
use crate::id::BRIDGE_NAME;
use crate::inject;
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
    /// The tools of one native server, under their own names.
    Server(String),
}

/// What is offered of one catalogue.
struct Offer {
    tools: Vec<Tool>,
    instructions: String,
}

/// One session of a host, as an MCP server.
#[derive(Clone)]
struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    session: HostSession,
    host: Host,
    shape: Shape,
    offer: RwLock<Arc<Offer>>,
    listeners: Mutex<Listeners>,
    next_listener: AtomicU64,
    log_level: AtomicU8,
    /// Cancelled when the client's input has ended.
    ended: CancellationToken,
}

/// Who is to hear of a changed list: connections of the legacy era, and subscriptions of the modern one.
#[derive(Default)]
struct Listeners {
    peers: Vec<Peer<RoleServer>>,
    sinks: HashMap<u64, SubscriptionSink>,
}

impl Server {
    fn new(host: Host, session: HostSession, shape: Shape, ended: CancellationToken) -> Self {
        let offer = RwLock::new(Arc::new(offer(&host, &session, &shape)));
        Self {
            inner: Arc::new(Inner {
                session,
                host,
                shape,
                offer,
                listeners: Mutex::default(),
                next_listener: AtomicU64::new(0),
                log_level: AtomicU8::new(LoggingLevel::Info as u8),
                ended,
            }),
        }
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.inner.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Follows the catalogue, and tells the listeners where what is offered has changed.
    async fn follow(self) {
        let mut changes = self.inner.host.changes();
        changes.mark_changed();
        while changes.changed().await.is_ok() {
            changes.borrow_and_update();
            let fresh = offer(&self.inner.host, &self.inner.session, &self.inner.shape);
            let changed = fresh.tools != self.offer().tools;
            *self.inner.offer.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
            if changed {
                self.tell().await;
            }
        }
    }

    async fn tell(&self) {
        let (peers, sinks) = {
            let listeners = self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            (listeners.peers.clone(), listeners.sinks.values().cloned().collect::<Vec<_>>())
        };
        // One that has gone is no reason not to tell the others.
        for peer in peers {
            let _ = peer.notify_tool_list_changed().await;
        }
        for sink in sinks {
            let _ = sink.notify_tool_list_changed().await;
        }
    }
}

fn offer(host: &Host, session: &HostSession, shape: &Shape) -> Offer {
    match shape {
        Shape::Bridge => bridge_offer(host, session),
        Shape::Server(name) => server_offer(session, name),
    }
}

fn bridge_offer(host: &Host, session: &HostSession) -> Offer {
    let (function, instructions) = match session.injection() {
        Some(injection) => (injection.bridge_tool, injection.prompt),
        None => (inject::bridge_tool(&session.view(), host.config()), String::new()),
    };
    let function = &function["function"];
    // What the bridge calls may destroy and may reach anywhere: a client must not be told less.
    let tool = json!({
        "name": function["name"],
        "title": "Tools behind Aster",
        "description": function["description"],
        "inputSchema": function["parameters"],
        "annotations": {"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true},
    });
    Offer { tools: typed(tool).into_iter().collect(), instructions }
}

fn server_offer(session: &HostSession, name: &str) -> Offer {
    let view = session.view();
    let tools = view
        .tools()
        .iter()
        .filter(|tool| tool.id().server() == name)
        .filter_map(|tool| typed(tool.definition().clone()))
        .collect();
    let server = view.servers().iter().find(|server| server.name == name);
    let instructions = server.and_then(|server| server.description.clone()).unwrap_or_default();
    Offer { tools, instructions }
}

fn typed(tool: Value) -> Option<Tool> {
    match serde_json::from_value(tool) {
        Ok(tool) => Some(tool),
        Err(error) => {
            tracing::error!(%error, "a tool cannot be offered");
            None
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
        let mut config = ServerConfig::new(capabilities);
        let name = match &self.inner.shape {
            Shape::Bridge => "aster".to_owned(),
            Shape::Server(name) => name.clone(),
        };
        config.server_info = Implementation::new(name, env!("CARGO_PKG_VERSION"));
        config.instructions = Some(self.offer().instructions.clone()).filter(|text| !text.is_empty());
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.introduce(&context);
        Ok(ListToolsResult::with_all_items(self.offer().tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.offer().tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.introduce(&context);
        let arguments = request.arguments.unwrap_or_default();
        let (link, messages) = Link::new(self.level(&context));
        let options = CallOptions { client: Some(link), cancellation: context.ct.clone() };
        let call = self.dispatch(&request.name, arguments, options);
        let result = messages.forward_during(&context, call).await?;
        Ok(typed_result(result).into())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.inner.log_level.store(request.level as u8, Ordering::Relaxed);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner).peers.push(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.inner.next_listener.fetch_add(1, Ordering::Relaxed);
        let listeners = || self.inner.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners().sinks.insert(key, context.sink().clone());
        tokio::select! {
            () = context.cancelled() => {}
            () = self.inner.ended.cancelled() => {}
        }
        listeners().sinks.remove(&key);
        Ok(())
    }
}

impl Server {
    async fn dispatch(
        &self,
        name: &str,
        arguments: JsonObject,
        options: CallOptions,
    ) -> Result<ToolResult, ErrorData> {
        let session = &self.inner.session;
        // An unknown tool is a protocol error, by the specification; it is recorded all the same.
        let unknown = || {
            let message = format!("no tool `{}` is known", text::one_line(name, 128));
            ErrorData::invalid_params(message, None)
        };
        match &self.inner.shape {
            Shape::Bridge if name == BRIDGE_NAME => {
                Ok(session.call_with(&Value::Object(arguments), options).await)
            }
            Shape::Bridge => Err(unknown()),
            Shape::Server(server) => {
                let completed = session.execute(&format!("{server}/{name}"), arguments, options).await;
                if completed.denied == Some(Check::Scope) { Err(unknown()) } else { Ok(completed.result) }
            }
        }
    }

    /// Remembers who the client says it is, for the audit.
    fn introduce(&self, context: &RequestContext<RoleServer>) {
        if let Some(client) = context.client_info() {
            self.inner.session.session().introduce(&client.name);
        }
    }

    /// The least grave message that the client wants to hear of, if any: in the modern era only one that asks, per
    /// request, gets messages at all.
    fn level(&self, context: &RequestContext<RoleServer>) -> Option<u8> {
        let legacy = context.protocol_version().is_some_and(|version| version.has_initialize());
        let asked = context.meta.log_level().map(|level| level as u8);
        asked.or_else(|| legacy.then(|| self.inner.log_level.load(Ordering::Relaxed)))
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
