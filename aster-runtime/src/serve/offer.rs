//! What a client is offered: the tools of a shape, in the protocol's types.

use rmcp::model::Tool;
use serde_json::{Value, json};

use super::Shape;
use crate::host::{Host, HostSession};
use crate::id::BRIDGE_NAME;
use crate::inject;

/// What is offered of one catalogue.
pub(super) struct Offer {
    pub(super) tools: Vec<Tool>,
    pub(super) instructions: String,
    shape: Shape,
}

/// What a called name stands for.
pub(super) enum Target {
    Bridge,
    /// The id of a tool, which may not exist: whoever calls it finds out.
    Tool(String),
}

impl Offer {
    pub(super) fn new(host: &Host, session: &HostSession, shape: &Shape) -> Self {
        let (tools, instructions) = match shape {
            Shape::Bridge => bridge(host, session),
            Shape::Server(name) => server(session, name),
        };
        Self { tools, instructions, shape: shape.clone() }
    }

    /// What a client means by the name of a tool; `None` where it was never offered.
    pub(super) fn target(&self, name: &str) -> Option<Target> {
        match &self.shape {
            Shape::Bridge => (name == BRIDGE_NAME).then_some(Target::Bridge),
            Shape::Server(server) => Some(Target::Tool(format!("{server}/{name}"))),
        }
    }
}

fn bridge(host: &Host, session: &HostSession) -> (Vec<Tool>, String) {
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
    (typed(tool).into_iter().collect(), instructions)
}

fn server(session: &HostSession, name: &str) -> (Vec<Tool>, String) {
    let view = session.view();
    let tools = view
        .tools()
        .iter()
        .filter(|tool| tool.id().server() == name)
        .filter_map(|tool| typed(tool.definition().clone()))
        .collect();
    let server = view.servers().iter().find(|server| server.name == name);
    let instructions = server.and_then(|server| server.description.clone()).unwrap_or_default();
    (tools, instructions)
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
