//! Results and definitions as they came, through a server whose types know less.
//!
//! rmcp's types are closed: what they do not know, they drop, and a number that they read as `f32` changes. So what the
//! handler gives to rmcp is a *carrier*: a result of the right type without content, whose `_meta` holds the raw one. rmcp
//! does with it what the client's era demands, and the edge, as the last step before the bytes, puts the raw one in its
//! place: `Restoring` on standard output, `body` on HTTP.
//!
//! Constraints it imposes on itself: only the handler makes carriers, whose mark is this process's own, and what stands
//! inside one is never looked for another; a raw result is changed only where the era or MCP's schema demands it, and then
//! at that place alone.

#[cfg(feature = "serve-http")]
pub(super) mod body;

use std::sync::LazyLock;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolResult, ClientRequest, GetMeta as _, JsonRpcMessage, ListToolsResult, MetaObject,
    ProtocolVersion, ServerResult,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::lines::Unreadable;
use crate::tool::{JsonObject, ToolResult};

/// Where a carrier has what it carries. No stranger can know it, so that nothing of theirs is taken for a carrier.
fn key() -> &'static str {
    static KEY: LazyLock<String> = LazyLock::new(|| format!("aster/raw-{}", uuid::Uuid::now_v7().simple()));
    &KEY
}

/// The carrier of a call's result.
pub(super) fn result(result: ToolResult) -> CallToolResult {
    let mut carrier = CallToolResult::success(Vec::new());
    carrier.meta = Some(meta(result.into_value()));
    carrier
}

/// The carrier of a page of definitions.
pub(super) fn list(definitions: Vec<Value>, next_cursor: Option<String>) -> ListToolsResult {
    let mut carrier = ListToolsResult::with_all_items(Vec::new());
    carrier.next_cursor = next_cursor;
    carrier.meta = Some(meta(Value::Array(definitions)));
    carrier
}

fn meta(raw: Value) -> MetaObject {
    MetaObject(Map::from_iter([(key().to_owned(), raw)]))
}

/// A transport that puts what carriers carry in their place.
///
/// It answers the lines that were not even JSON, and keeps from rmcp what comes before a session begins and is no request:
/// rmcp would take a notification there, such as the one that cancels a probe which took too long, for the end of the
/// connection.
///
/// And it lets what was just sent come to its end before it says that the input has: rmcp would otherwise not tell its sender,
/// which waits for it, and hold the process for seconds.
pub(super) struct Restoring<T> {
    transport: T,
    unreadable: mpsc::Receiver<Unreadable>,
    /// The answer to such a line, while it is sent: reading is broken off and taken up again at any time.
    answer: Option<BoxFuture<'static, ()>>,
    begun: bool,
    /// When the end of the input is told, once it has come.
    end: Option<Instant>,
}

/// How long after the input the connection ends.
const FAREWELL: Duration = Duration::from_millis(100);

impl<T> Restoring<T> {
    /// Over a transport, whose input tells what was unreadable.
    pub(super) fn new(transport: T, unreadable: mpsc::Receiver<Unreadable>) -> Self {
        Self { transport, unreadable, answer: None, begun: false, end: None }
    }
}

/// Whether a session begins with this message: with `initialize`, or with the first request of the modern era that is more
/// than a probe.
fn begins(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let known = |version| ProtocolVersion::KNOWN_VERSIONS.contains(&version);
            meta.protocol_version().is_some_and(known)
                && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Restoring<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        if let JsonRpcMessage::Response(response) = &mut message {
            restore_typed(&mut response.result);
        }
        self.transport.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answer) = &mut self.answer {
                answer.await;
                self.answer = None;
            }
            if let Some(end) = self.end {
                sleep_until(end).await;
                return None;
            }
            let message = tokio::select! {
                biased;
                Some(unreadable) = self.unreadable.recv() => {
                    tracing::debug!("{unreadable}");
                    let sent = self.transport.send(JsonRpcMessage::error(unreadable.into(), None));
                    // Where nobody reads, the input's end comes next.
                    self.answer = Some(Box::pin(async { drop(sent.await) }));
                    continue;
                }
                message = self.transport.receive() => message,
            };
            let Some(message) = message else {
                self.end = Some(Instant::now() + FAREWELL);
                continue;
            };
            self.begun = self.begun || begins(&message);
            if self.begun || matches!(message, JsonRpcMessage::Request(_)) {
                return Some(message);
            }
            tracing::debug!("a message before the session's beginning is left out");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        // One that nobody reads would hold what the transport closes.
        self.answer = None;
        self.transport.close()
    }
}

fn restore_typed(result: &mut ServerResult) {
    let meta = match result {
        ServerResult::CallToolResult(carrier) => &mut carrier.meta,
        ServerResult::ListToolsResult(carrier) => &mut carrier.meta,
        _ => return,
    };
    let Some(raw) = meta.as_mut().and_then(|meta| meta.0.shift_remove(key())) else { return };
    meta.take_if(|meta| meta.0.is_empty());
    // Without what it carried, a carrier has a handful of fields.
    let Ok(Value::Object(carrier)) = serde_json::to_value(&*result) else { return };
    *result = ServerResult::CustomResult(rmcp::model::CustomResult(restored(carrier, raw)));
}

/// What takes a carrier's place. The carrier has been through rmcp, and so tells the era.
fn restored(mut carrier: JsonObject, raw: Value) -> Value {
    let modern = carrier.contains_key("resultType");
    match raw {
        Value::Array(mut definitions) => {
            if !modern {
                definitions.iter_mut().for_each(make_legacy_definition);
            }
            carrier.insert("tools".to_owned(), Value::Array(definitions));
            Value::Object(carrier)
        }
        Value::Object(mut result) => {
            complete(&mut result);
            if modern {
                // Whatever an upstream's hop was: this one is complete.
                result.insert("resultType".to_owned(), json!("complete"));
            } else {
                result.shift_remove("resultType");
                make_legacy_result(&mut result);
            }
            Value::Object(result)
        }
        other => other,
    }
}

/// `content` is due in every result, and is a list of objects; servers forget it, or write a text for it.
fn complete(result: &mut JsonObject) {
    let text = |text: String| json!({"type": "text", "text": text});
    match result.get_mut("content") {
        Some(Value::Array(blocks)) => {
            for block in blocks.iter_mut().filter(|block| !block.is_object()) {
                *block = match block.take() {
                    Value::String(words) => text(words),
                    other => text(other.to_string()),
                };
            }
        }
        Some(content @ Value::String(_)) => {
            let Value::String(words) = content.take() else { return };
            *content = Value::Array(vec![text(words)]);
        }
        Some(content @ Value::Object(_)) => *content = Value::Array(vec![content.take()]),
        _ => {
            result.insert("content".to_owned(), Value::Array(Vec::new()));
        }
    }
}

/// Before 2026-07-28 an output schema describes an object (SEP-2106).
fn make_legacy_definition(definition: &mut Value) {
    let Value::Object(definition) = definition else { return };
    let describes_object = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
    if definition.get("outputSchema").is_some_and(|schema| !describes_object(schema)) {
        definition.shift_remove("outputSchema");
    }
}

/// Before 2026-07-28 structured content is an object (SEP-2106). Any other goes into the content as text, unless it is
/// there already; of a `null`, with which some libraries write that there is none, there is nothing to tell.
fn make_legacy_result(result: &mut JsonObject) {
    let Some(structured) = result.get("structuredContent").filter(|value| !value.is_object()) else { return };
    let structured = structured.clone();
    result.shift_remove("structuredContent");
    let Some(Value::Array(blocks)) = result.get_mut("content") else { return };
    let first =
        blocks.first().filter(|block| block["type"] == "text").and_then(|block| block["text"].as_str());
    let told = first
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .is_some_and(|told| told == structured);
    if !told && !structured.is_null() {
        blocks.insert(0, json!({"type": "text", "text": structured.to_string()}));
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ResultType;

    use super::*;

    /// What comes out of the edge for a result, the way rmcp treats it for an era.
    fn served(raw: Value, modern: bool) -> Value {
        let mut carrier = ServerResult::CallToolResult(result(ToolResult::from_value(raw)));
        through_rmcp(&mut carrier, modern);
        serde_json::to_value(carrier).unwrap()
    }

    fn through_rmcp(carrier: &mut ServerResult, modern: bool) {
        match modern {
            true => carrier.fill_missing_cache_hints(),
            false => {
                carrier.strip_result_type_for_legacy_peer();
                carrier.strip_non_object_output_for_legacy_peer();
            }
        }
        restore_typed(carrier);
    }

    #[test]
    fn a_result_is_complete_in_the_modern_era_alone() {
        let raw = json!({"vendor": 0.1, "resultType": "task", "content": [{"type": "hologram", "x": 18446744073709551615u64}], "_meta": {"aster/raw": 1}});
        let modern = served(raw.clone(), true);
        assert_eq!(modern.to_string(), raw.to_string().replace("task", "complete"));
        let legacy = served(raw, false);
        assert_eq!(
            legacy.to_string(),
            r#"{"vendor":0.1,"content":[{"type":"hologram","x":18446744073709551615}],"_meta":{"aster/raw":1}}"#
        );
        assert_eq!(served(json!({"content": []}), true)["resultType"], json!(ResultType::COMPLETE));
    }

    #[test]
    fn content_that_is_no_list_becomes_one() {
        let content = |raw: Value| served(raw, false)["content"].clone();
        assert_eq!(content(json!({})), json!([]));
        assert_eq!(content(json!({"content": null})), json!([]));
        assert_eq!(content(json!({"content": "a"})), json!([{"type": "text", "text": "a"}]));
        assert_eq!(content(json!({"content": {"type": "x"}})), json!([{"type": "x"}]));
        assert_eq!(
            content(json!({"content": ["a", 1, {"type": "x"}]})),
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "1"}, {"type": "x"}])
        );
    }

    /// Where rmcp knows all the fields, the raw way and its own come to the same.
    #[test]
    fn older_clients_get_what_rmcp_would_give_them() {
        for structured in [json!([1, 2]), json!("a"), json!(7), json!({"a": 1})] {
            for text in ["[1,2]", " [1, 2] ", "words"] {
                let raw =
                    json!({"content": [{"type": "text", "text": text}], "structuredContent": structured});
                let mut typed = ServerResult::CallToolResult(serde_json::from_value(raw.clone()).unwrap());
                typed.strip_non_object_output_for_legacy_peer();
                assert_eq!(served(raw, false), serde_json::to_value(typed).unwrap());
            }
        }
        let nothing = json!({"content": [], "structuredContent": null});
        assert_eq!(served(nothing, false), json!({"content": []}));
    }

    #[test]
    fn a_list_keeps_its_definitions_and_what_rmcp_says_of_it() {
        let definitions = vec![
            json!({"name": "a", "x": 1, "outputSchema": {"type": "array"}, "execution": {}}),
            json!({"name": "b", "outputSchema": {"properties": {}, "type": "object"}}),
        ];
        let served = |modern| {
            let mut carrier =
                ServerResult::ListToolsResult(list(definitions.clone(), Some("next".to_owned())));
            through_rmcp(&mut carrier, modern);
            serde_json::to_value(carrier).unwrap()
        };
        assert_eq!(
            served(true),
            json!({"resultType": "complete", "nextCursor": "next", "ttlMs": 0, "cacheScope": "private", "tools": definitions})
        );
        assert_eq!(
            served(false).to_string(),
            r#"{"nextCursor":"next","tools":[{"name":"a","x":1,"execution":{}},{"name":"b","outputSchema":{"properties":{},"type":"object"}}]}"#
        );
    }
}
