//! What a caller is not shown of a call: secrets that the tool put into its result, its progress or its log.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::secrets::{Incoming, Place, Redactor, SecretPolicy};
use crate::tool::{
    AskError, ClientAnswer, ClientInfo, ClientLink, ClientRequest, JsonObject, LogLevel, ToolResult,
};

/// The member of a result's `_meta` that says what was withheld: a list of `{"pointer", "kind"}`.
pub const WITHHELD: &str = "aster/withheld";

/// How many places the note to the model names.
const NAMED: usize = 10;

/// The result with every secret replaced, in whatever part of it, and a note that says so: without one a model takes the
/// replacement for what is there, and writes it back.
pub(crate) fn withhold(policy: &SecretPolicy, result: ToolResult) -> ToolResult {
    if policy.incoming == Incoming::Allow {
        return result;
    }
    let redacted = policy.redact(result.as_object());
    let (mut object, mut places) = match redacted {
        Some(redacted) => redacted,
        None if !has_blobs(result.as_object()) => return result,
        None => (result.as_object().clone(), Vec::new()),
    };
    for list in ["content", "contents"] {
        let blocks = object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().enumerate();
        for (at, block) in blocks {
            for (path, inner) in [("/blob", "/blob"), ("/resource/blob", "/resource/blob")] {
                let Some(Value::String(blob)) = block.pointer_mut(inner) else { continue };
                places.extend(clean_blob(policy.redactor(), blob, format!("/{list}/{at}{path}")));
            }
        }
    }
    if places.is_empty() {
        return result;
    }
    if object.contains_key("content") || object.contains_key("structuredContent") {
        let note = json!({"type": "text", "text": note(&places)});
        match object.entry("content").or_insert_with(|| json!([])) {
            Value::Array(blocks) => blocks.push(note),
            other => *other = json!([other.take(), note]),
        }
    }
    let places: Vec<Value> =
        places.iter().map(|place| json!({"pointer": place.pointer, "kind": place.kind})).collect();
    match object.entry("_meta").or_insert_with(|| json!({})) {
        Value::Object(meta) => {
            meta.insert(WITHHELD.to_owned(), Value::Array(places));
        }
        other => *other = json!({ WITHHELD: places }),
    }
    ToolResult::from_value(Value::Object(object))
}

fn has_blobs(object: &JsonObject) -> bool {
    ["content", "contents"].iter().any(|list| {
        let blocks = object.get(*list).and_then(Value::as_array).into_iter().flatten();
        blocks.into_iter().any(|block| block.get("blob").or(block.pointer("/resource/blob")).is_some())
    })
}

/// The bytes of a resource may be text, which base64 hides.
fn clean_blob(redactor: &Redactor, blob: &mut String, pointer: String) -> Vec<Place> {
    let text = STANDARD.decode(blob.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text else { return Vec::new() };
    let found = redactor.find(&text);
    if !found.is_empty() {
        *blob = STANDARD.encode(redactor.redact(&text).as_bytes());
    }
    found.into_iter().map(|finding| finding.at(pointer.clone())).collect()
}

fn note(places: &[Place]) -> String {
    let named: Vec<String> =
        places.iter().take(NAMED).map(|place| format!("{} at {}", place.kind, place.pointer)).collect();
    let more = if places.len() > NAMED { ", …" } else { "" };
    format!(
        "[Aster replaced secrets in this result by `[redacted]`: {}{more}. They are not shown to models; do not ask for \
         them, and do not write `[redacted]` back over them.]",
        named.join(", ")
    )
}

/// The way back to a client, on which no secret goes into its log. Questions are asked as they are: whether to answer is
/// the client's user's to decide.
struct Discreet {
    client: Arc<dyn ClientLink>,
    redactor: Redactor,
}

/// The same way back, without secrets.
pub(crate) fn discreet(policy: &SecretPolicy, client: Arc<dyn ClientLink>) -> Arc<dyn ClientLink> {
    match policy.incoming {
        Incoming::Allow => client,
        Incoming::Redact => Arc::new(Discreet { client, redactor: policy.redactor().clone() }),
    }
}

impl ClientLink for Discreet {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(|message| self.redactor.redact(message));
        self.client.progress(done, total, message.as_deref());
    }

    fn log(&self, level: LogLevel, message: &str) {
        self.client.log(level, &self.redactor.redact(message));
    }

    fn client(&self) -> ClientInfo {
        self.client.client()
    }

    fn ask(&self, requests: Vec<ClientRequest>) -> BoxFuture<'_, Vec<Result<ClientAnswer, AskError>>> {
        self.client.ask(requests)
    }
}
