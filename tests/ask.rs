//! Questions to the client, line by line: what a tool asks, and what the gate asks for an approval, in both eras.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aster_runtime::audit::{AuditSink, Record};
use aster_runtime::serve::{ServeError, Shape, over};
use aster_runtime::tool::{AskError, ClientAnswer, ClientRequest, Elicitation, Elicited, Sampling};
use aster_runtime::{Host, Profile, ToolContext, catalogue, mcp_server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take before the test fails; nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(3600);

#[derive(Debug, Deserialize, JsonSchema)]
struct Person {
    name: String,
    #[schemars(range(min = 0))]
    age: i32,
}

/// Asks.
#[mcp_server]
mod asks {
    use super::*;
    use aster_runtime::mcp_tool;

    /// Asks who is there.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn who(ctx: &ToolContext) -> Result<String, AskError> {
        ctx.progress(1.0, None, None);
        let answer = ctx.elicit_as::<Person>("Who are you?").await;
        ctx.progress(2.0, None, None);
        match answer {
            Ok(Elicited::Accepted(person)) => Ok(format!("{} is {}", person.name, person.age)),
            Ok(other) => Ok(format!("{other:?}")),
            Err(error) => Err(error),
        }
    }

    /// Asks twice, the second time about the first answer.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn twice(
        ctx: &ToolContext,
        /// What to ask first.
        first: String,
    ) -> Result<String, AskError> {
        let mut text = first;
        for _ in 0..2 {
            let schema =
                json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]});
            let form = Elicitation::form(text, schema)?.key("word");
            let answer = ctx.elicit(form).await?.accepted().unwrap_or_default();
            text = answer["word"].as_str().unwrap_or_default().to_owned();
        }
        Ok(text)
    }

    /// Asks three things at once.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn everything(ctx: &ToolContext) -> Result<String, AskError> {
        let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
        let form = Elicitation::form("Well?", schema)?;
        let question = Sampling::new(50).user("Greet them.");
        let answers = ctx.ask_all(vec![form.into(), question.into(), ClientRequest::roots()]).await;
        let mut text = Vec::new();
        for answer in answers {
            text.push(match answer? {
                ClientAnswer::Form(answer) => {
                    format!("{:?}", answer.accepted().unwrap_or_default().get("ok"))
                }
                ClientAnswer::Sampled(answer) => answer.text(),
                ClientAnswer::Roots(roots) => roots[0].uri.clone(),
                _ => "?".to_owned(),
            });
        }
        Ok(text.join(", "))
    }

    /// Asks for an answer of the model, and has another way.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn perhaps(ctx: &ToolContext) -> Result<String, AskError> {
        match ctx.sample(Sampling::new(10).user("Well?")).await {
            Ok(answer) => Ok(answer.text()),
            Err(AskError::Unsupported(_)) => Ok("no model".to_owned()),
            Err(error) => Err(error),
        }
    }

    /// Has ten seconds, and asks.
    #[mcp_tool(tier = Standard, timeout = "10s")]
    pub(super) async fn hurry(ctx: &ToolContext) -> Result<String, AskError> {
        ctx.elicit_as::<Person>("Who are you?").await?;
        std::future::pending().await
    }

    /// Deletes a thing.
    #[mcp_tool(tier = Restricted)]
    pub(super) async fn delete(
        ctx: &ToolContext,
        /// Which.
        what: String,
    ) -> String {
        ctx.progress(1.0, None, None);
        format!("{what} is deleted")
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Value>>);

impl Recorder {
    fn outcomes(&self) -> Vec<Value> {
        let records = self.0.lock().unwrap();
        records.iter().filter(|record| record["stage"] == "outcome").cloned().collect()
    }

    /// The outcome of the one call there was.
    fn only(&self) -> Value {
        let outcomes = self.outcomes();
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        outcomes[0].clone()
    }
}

impl AuditSink for Recorder {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

/// A client that writes lines and reads lines.
struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    modern: bool,
    capabilities: Value,
    next: i64,
    audit: Arc<Recorder>,
    served: JoinHandle<Result<(), ServeError>>,
    stop: CancellationToken,
}

fn everything() -> Value {
    json!({"elicitation": {}, "sampling": {}, "roots": {}})
}

impl Client {
    async fn start(modern: bool, capabilities: Value) -> Self {
        Self::of(Host::builder(), modern, capabilities).await
    }

    async fn of(builder: aster_runtime::HostBuilder, modern: bool, capabilities: Value) -> Self {
        let audit = Arc::new(Recorder::default());
        let host = builder.catalogue(catalogue![asks::SERVER]).audit(audit.clone()).build().await.unwrap();
        let (near, far) = tokio::io::duplex(1 << 16);
        let stop = CancellationToken::new();
        let shape = Shape::Server("asks".to_owned());
        let served = over(tokio::io::split(far), host, Profile::new("test"), shape, stop.clone());
        let served = tokio::spawn(served);
        let (input, output) = tokio::io::split(near);
        let lines = BufReader::new(input).lines();
        let mut client = Self { lines, output, modern, capabilities, next: 0, audit, served, stop };
        if !modern {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": client.capabilities, "clientInfo": {"name": "tester", "version": "1"}});
            client.ask("initialize", hello).await;
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
        client
    }

    async fn send(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, mut params: Value) -> i64 {
        self.next += 1;
        if self.modern {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "tester", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    async fn receive(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The next message that is no notification.
    async fn message(&mut self) -> Value {
        loop {
            let message = self.receive().await;
            if !message["id"].is_null() {
                return message;
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let message = self.message().await;
        assert_eq!(message["id"], id);
        message
    }

    /// Begins a call, and returns the questions: by their keys, and by the id of a request in the legacy era.
    async fn begin(&mut self, params: &Value, questions: usize) -> (Vec<(Value, Value)>, Value) {
        self.request("tools/call", params.clone()).await;
        self.questions(questions).await
    }

    async fn questions(&mut self, questions: usize) -> (Vec<(Value, Value)>, Value) {
        if self.modern {
            let answer = self.message().await;
            let result = &answer["result"];
            assert_eq!(result["resultType"], "input_required", "{answer}");
            let all = result["inputRequests"].as_object().unwrap();
            assert_eq!(all.len(), questions);
            let all = all.iter().map(|(key, request)| (json!(key), request.clone())).collect();
            return (all, result["requestState"].clone());
        }
        let mut all = Vec::new();
        for _ in 0..questions {
            let message = self.message().await;
            assert!(message["method"].is_string(), "{message}");
            all.push((message["id"].clone(), message));
        }
        (all, Value::Null)
    }

    /// Answers the questions, whatever the era.
    async fn answer(&mut self, params: &Value, state: &Value, answers: &[(Value, Value)]) {
        if !self.modern {
            for (id, answer) in answers {
                self.send(&json!({"jsonrpc": "2.0", "id": id, "result": answer})).await;
            }
            return;
        }
        let mut params = params.clone();
        let responses =
            answers.iter().map(|(key, answer)| (key.as_str().unwrap().to_owned(), answer.clone()));
        params["inputResponses"] = Value::Object(responses.collect());
        if !state.is_null() {
            params["requestState"] = state.clone();
        }
        self.request("tools/call", params).await;
    }

    /// Closes the input and waits for the server.
    async fn end(mut self) -> Arc<Recorder> {
        self.output.shutdown().await.unwrap();
        tokio::time::timeout(PATIENCE, self.served).await.unwrap().unwrap().unwrap();
        self.audit
    }
}

fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn text(message: &Value) -> &str {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"))
}

#[tokio::test]
async fn a_form_is_answered_declined_or_closed() {
    for modern in [false, true] {
        for (answer, told) in [
            (accept(json!({"name": "Ann", "age": 7})), "Ann is 7"),
            (json!({"action": "decline"}), "Declined"),
            (json!({"action": "cancel"}), "Cancelled"),
        ] {
            let mut client = Client::start(modern, everything()).await;
            let call = json!({"name": "who", "arguments": {}});
            let (questions, state) = client.begin(&call, 1).await;
            let (key, request) = &questions[0];
            assert_eq!(request["method"], "elicitation/create");
            assert_eq!(request["params"]["message"], "Who are you?");
            assert_eq!(request["params"]["requestedSchema"]["properties"]["name"], json!({"type": "string"}));
            client.answer(&call, &state, &[(key.clone(), answer)]).await;
            assert_eq!(text(&client.message().await), told);
            assert_eq!(client.end().await.only()["outcome"], "ok");
        }
    }
}
