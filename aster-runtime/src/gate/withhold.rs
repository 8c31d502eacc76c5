//! What a caller is not shown of a call: secrets that the tool put into its result, its progress or its log.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::limits::Limits;
use super::secrets::{Incoming, Places, Redactor, SecretPolicy};
use crate::id::ToolId;
use crate::tool::{
    AskError, ClientAnswer, ClientInfo, ClientLink, ClientRequest, LogLevel, ToolError, ToolResult,
};

/// The member of a result's `_meta` that says what was withheld: a list of `{"pointer", "kind"}`, of which
/// there are a hundred at most; then `{"more"}` says how many it leaves out.
pub const WITHHELD: &str = "aster/withheld";

/// How many places the note to the model names.
const NAMED: usize = 10;

/// The result, or, where it is too large, why there is none. Not cut: half of a JSON text or of an image is of
/// no use, and half of a secret would not be found.
pub(crate) fn bound(limits: &Limits, id: &ToolId, result: ToolResult) -> ToolResult {
    let (size, max) = (result.size(), limits.largest_result());
    if size <= max {
        return result;
    }
    let ran = if result.is_error() { "failed" } else { "ran" };
    let text = format!(
        "`{id}` {ran}, and what it answered is withheld: it has {size} bytes, and more than {max} are not passed on. It has \
         had whatever effect it has: do not call it again with the same arguments; ask for less at once"
    );
    ToolError::new(text).into()
}

/// The result with every secret replaced, in whatever part of it, and a note that says so: without one a model takes the
/// replacement for what is there, and writes it back.
pub(crate) fn withhold(policy: &SecretPolicy, result: ToolResult) -> ToolResult {
    if policy.incoming == Incoming::Allow {
        return result;
    }
    let Some((mut object, places)) = policy.redact(result.as_object()) else { return result };
    if object.contains_key("content") || object.contains_key("structuredContent") {
        let note = json!({"type": "text", "text": note(&places)});
        match object.entry("content").or_insert_with(|| json!([])) {
            Value::Array(blocks) => blocks.push(note),
            other => *other = json!([other.take(), note]),
        }
    }
    let listed = places.listed.iter().map(|place| json!({"pointer": place.pointer, "kind": place.kind}));
    let more = (places.more > 0).then(|| json!({"more": places.more}));
    let places: Vec<Value> = listed.chain(more).collect();
    match object.entry("_meta").or_insert_with(|| json!({})) {
        Value::Object(meta) => {
            meta.insert(WITHHELD.to_owned(), Value::Array(places));
        }
        other => *other = json!({ WITHHELD: places }),
    }
    ToolResult::from_value(Value::Object(object))
}

/// What is suggested for an argument, with every secret replaced.
pub(crate) fn withhold_suggested(policy: &SecretPolicy, values: Vec<String>) -> Vec<String> {
    if policy.incoming == Incoming::Allow {
        return values;
    }
    // Together: a secret may be cut in pieces.
    match policy.redactor().redact_value(&Value::from(values)) {
        Value::Array(values) => values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

fn note(places: &Places) -> String {
    let named = places.listed.iter().take(NAMED).map(|place| format!("{} at {}", place.kind, place.pointer));
    let named: Vec<String> = named.collect();
    let more = match places.listed.len() - named.len() + places.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "[Aster replaced secrets in this result by `[redacted]`: {}{more}. They are not shown to models; do not ask for \
         them, and do not write `[redacted]` back over them.]",
        named.join(", ")
    )
}

/// The way back to a client, on which no secret goes into its log or into the words of a question to its user.
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
        let discreet =
            |request: ClientRequest| request.reworded(|text| self.redactor.redact(text).into_owned());
        self.client.ask(requests.into_iter().map(discreet).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::tool::Elicitation;

    /// Keeps what it is asked.
    #[derive(Default)]
    struct Keeps(Mutex<Vec<ClientRequest>>);

    impl ClientLink for Keeps {
        fn progress(&self, _: f64, _: Option<f64>, _: Option<&str>) {}

        fn log(&self, _: LogLevel, _: &str) {}

        fn ask(&self, requests: Vec<ClientRequest>) -> BoxFuture<'_, Vec<Result<ClientAnswer, AskError>>> {
            self.0.lock().unwrap().extend(requests);
            Box::pin(std::future::ready(Vec::new()))
        }
    }

    #[tokio::test]
    async fn no_question_says_a_secret() {
        let (kept, policy) = (Arc::new(Keeps::default()), SecretPolicy::default());
        let client = discreet(&policy.known(["hunter2hunter2"]), kept.clone());
        let form = |text: &str| {
            Elicitation::form(text, json!({"type": "object", "properties": {"a": {"type": "string"}}}))
                .unwrap()
        };
        client.ask(vec![form("Is hunter2hunter2 right?").into(), form("Is it?").into()]).await;
        let asked = kept.0.lock().unwrap().clone();
        assert_eq!(asked, [form("Is [redacted] right?").into(), form("Is it?").into()]);
    }
}
