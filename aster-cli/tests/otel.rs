//! With the feature `otel` the command tells a collector of each call: who, what and what came of it, and no more.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests have one configuration, and no project's")]
mod common;

use std::collections::BTreeMap;

use common::Sandbox;
use insta::assert_snapshot;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use prost::Message as _;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// What no collector is to be told.
const CANARIES: [&str; 4] = ["canary-argument", "hunter2-and-more", "heard", "it cannot be done"];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let peer = sandbox.peer(", env: {SECRET: hunter2-and-more}");
    sandbox.user(&format!("mcp:\n  servers:\n    peer: {peer}\n"));
    sandbox
}

fn text(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|attribute| (&*attribute.key, text(&attribute.value))).collect()
}

/// The spans that a command leads to, one line for each attribute.
async fn told(sandbox: &Sandbox, arguments: &[&str], code: i32) -> String {
    let collector = MockServer::start().await;
    let traces = Mock::given(method("POST")).and(path("/v1/traces"));
    let traces = traces.and(header("content-type", "application/x-protobuf"));
    traces.respond_with(ResponseTemplate::new(200)).mount(&collector).await;
    let mut command = sandbox.command();
    command
        .args(arguments)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.uri())
        .env("ASTER_LOG", "trace,rmcp=trace");
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = Vec::new();
    for request in collector.received_requests().await.unwrap() {
        for canary in CANARIES {
            let said = request.body.windows(canary.len()).any(|window| window == canary.as_bytes());
            assert!(!said, "`{canary}` in {}", String::from_utf8_lossy(&request.body));
        }
        let request = ExportTraceServiceRequest::decode(&*request.body).unwrap();
        for of in request.resource_spans {
            let resource = of.resource.unwrap();
            lines.push(format!("service.name: {}", text(&resource.attributes)["service.name"]));
            for span in of.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                assert!(span.parent_span_id.is_empty() && span.events.is_empty(), "{span:?}");
                lines.push(format!(
                    "{}, kind {}, status {}",
                    span.name,
                    span.kind,
                    span.status.unwrap_or_default().code
                ));
                let attributes = text(&span.attributes);
                lines.extend(attributes.iter().map(|(name, value)| match *name {
                    "gen_ai.tool.call.id" | "session.id" => format!("  {name}: {} characters", value.len()),
                    _ => format!("  {name}: {value}"),
                }));
            }
        }
    }
    lines.join("\n")
}

#[tokio::test]
async fn one_call_is_one_span_and_says_nothing_of_what_was_said() {
    let sandbox = sandbox();
    assert_snapshot!(told(&sandbox, &["mcp", "call", "peer/echo", "--arg", "text=canary-argument"], 0).await, @r"
    service.name: aster
    tools/call, kind 2, status 0
      aster.decision: admitted
      aster.outcome: ok
      aster.tier: elevated
      gen_ai.agent.name: aster
      gen_ai.operation.name: execute_tool
      gen_ai.tool.call.id: 36 characters
      gen_ai.tool.name: peer/echo
      mcp.method.name: tools/call
      session.id: 36 characters
    ");
    assert_snapshot!(told(&sandbox, &["mcp", "call", "peer/fail", "{}"], 1).await, @r"
    service.name: aster
    tools/call, kind 2, status 2
      aster.decision: admitted
      aster.outcome: tool_error
      aster.tier: elevated
      error.type: tool_error
      gen_ai.agent.name: aster
      gen_ai.operation.name: execute_tool
      gen_ai.tool.call.id: 36 characters
      gen_ai.tool.name: peer/fail
      mcp.method.name: tools/call
      session.id: 36 characters
    ");
    assert_snapshot!(told(&sandbox, &["mcp", "call", "peer/wipe", "{}"], 4).await, @r"
    service.name: aster
    tools/call, kind 2, status 2
      aster.check: approval
      aster.decision: denied
      aster.outcome: denied
      aster.tier: restricted
      error.type: denied
      gen_ai.agent.name: aster
      gen_ai.operation.name: execute_tool
      gen_ai.tool.call.id: 36 characters
      gen_ai.tool.name: peer/wipe
      mcp.method.name: tools/call
      session.id: 36 characters
    ");
    assert_eq!(told(&sandbox, &["mcp", "list"], 0).await, "");
}
