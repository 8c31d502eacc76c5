//! Questions to the client, line by line: what a tool asks, and what the gate asks for an approval, in both eras.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aster_runtime::audit::{AuditSink, Record};
use aster_runtime::gate::approval::{Approval, ApprovalRequest, Approver, ClientApprover, Race};
use aster_runtime::serve::{ServeError, Shape, over};
use aster_runtime::tool::{AskError, ClientAnswer, ClientRequest, Elicitation, Elicited, LogLevel, Sampling};
use aster_runtime::{Host, Profile, ToolContext, catalogue, mcp_server};
use futures_util::future::BoxFuture;
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

    /// Wants a form, and fails on the other way that it has.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn stumble(ctx: &ToolContext) -> Result<String, &'static str> {
        match ctx.elicit_as::<Person>("Who are you?").await {
            Ok(_) => Ok("asked".to_owned()),
            Err(_) => Err("the disk is full"),
        }
    }

    /// Asks until it is told to stop, and never thinks of a limit.
    #[mcp_tool(tier = Standard, timeout = "10s")]
    pub(super) async fn nag(ctx: &ToolContext) -> Result<String, AskError> {
        loop {
            match ctx.elicit_as::<Person>("Who are you?").await {
                Ok(_) | Err(AskError::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reports what is no progress.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn dither(ctx: &ToolContext) -> &'static str {
        for done in [1.0, f64::NAN, 1.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, 2.0, 2.0, 3.0] {
            ctx.progress(done, Some(f64::NAN), None);
        }
        ctx.progress(4.0, Some(4.0), None);
        "done"
    }

    /// Asks more than anybody reads.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn ramble(ctx: &ToolContext) -> Result<String, AskError> {
        ctx.elicit_as::<Person>("x".repeat(8 << 20)).await?;
        Ok("asked".to_owned())
    }

    /// Has ten seconds, and asks.
    #[mcp_tool(tier = Standard, timeout = "10s")]
    pub(super) async fn hurry(ctx: &ToolContext) -> Result<String, AskError> {
        ctx.elicit_as::<Person>("Who are you?").await?;
        std::future::pending().await
    }

    /// Asks for the client's folders, and writes to its log that it has none.
    #[mcp_tool(tier = Standard)]
    pub(super) async fn sigh(ctx: &ToolContext) -> String {
        let error = ctx.roots().await.unwrap_err();
        ctx.log(LogLevel::Error, "no folders");
        error.to_string()
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
    name: &'static str,
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
        let (name, next) = ("tester", 0);
        let mut client = Self { lines, output, modern, name, capabilities, next, audit, served, stop };
        if !modern {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": client.capabilities, "clientInfo": {"name": name, "version": "1"}});
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
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "1"});
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

#[tokio::test]
async fn an_answer_that_does_not_fit_never_reaches_the_tool() {
    let call = json!({"name": "who", "arguments": {}});
    let wrong =
        [json!(12345), accept(json!({"name": "Ann", "age": -1})), accept(json!({"name": 7, "age": 7}))];

    let mut client = Client::start(false, everything()).await;
    let (questions, state) = client.begin(&call, 1).await;
    client.answer(&call, &state, &[(questions[0].0.clone(), wrong[1].clone())]).await;
    let answer = client.message().await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("/age: value is less than the minimum of 0"), "{answer}");
    assert_eq!(client.end().await.only()["outcome"], "tool_error");

    // The modern era asks again, and the call is still the same.
    let mut client = Client::start(true, everything()).await;
    let (mut questions, mut state) = client.begin(&call, 1).await;
    for wrong in wrong {
        client.answer(&call, &state, &[(questions[0].0.clone(), wrong)]).await;
        let (again, next) = client.questions(1).await;
        assert_eq!(again, questions);
        assert_ne!(next, state);
        (questions, state) = (again, next);
    }
    let unknown = (json!("unknown"), accept(json!({})));
    client.answer(&call, &state, std::slice::from_ref(&unknown)).await;
    let (questions, state) = client.questions(1).await;
    assert_eq!(client.audit.outcomes().len(), 0);
    let right = (questions[0].0.clone(), accept(json!({"name": "Ann", "age": 7})));
    client.answer(&call, &state, &[unknown, right]).await;
    assert_eq!(text(&client.message().await), "Ann is 7");
    assert_eq!(client.end().await.only()["outcome"], "ok");
}

#[tokio::test]
async fn a_call_may_take_several_rounds() {
    for modern in [false, true] {
        let mut client = Client::start(modern, everything()).await;
        let call = json!({"name": "twice", "arguments": {"first": "one"}});
        let (first, state) = client.begin(&call, 1).await;
        assert_eq!(first[0].1["params"]["message"], "one");
        client.answer(&call, &state, &[(first[0].0.clone(), accept(json!({"word": "two"})))]).await;
        let (second, next) = client.questions(1).await;
        assert_eq!(second[0].1["params"]["message"], "two");
        if modern {
            assert_eq!((&first[0].0, &second[0].0), (&json!("word"), &json!("word")));
            assert_ne!(state, next);
        }
        client.answer(&call, &next, &[(second[0].0.clone(), accept(json!({"word": "three"})))]).await;
        assert_eq!(text(&client.message().await), "three");
        assert_eq!(client.end().await.only()["outcome"], "ok");
    }
}

#[tokio::test]
async fn several_questions_are_one_round() {
    for modern in [false, true] {
        let mut client = Client::start(modern, everything()).await;
        let call = json!({"name": "everything", "arguments": {}});
        let (questions, state) = client.begin(&call, 3).await;
        let answers: Vec<_> = questions
            .into_iter()
            .map(|(key, request)| {
                let answer = match request["method"].as_str().unwrap() {
                    "elicitation/create" => accept(json!({"ok": true})),
                    "sampling/createMessage" => {
                        assert_eq!(request["params"]["maxTokens"], 50);
                        assert_eq!(request["params"]["messages"][0]["content"]["text"], "Greet them.");
                        json!({"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"})
                    }
                    "roots/list" => json!({"roots": [{"uri": "file:///a", "name": "A"}]}),
                    other => panic!("{other}"),
                };
                (key, answer)
            })
            .collect();
        let (state, answers) = if modern {
            // What was answered is not asked again.
            client.answer(&call, &state, &answers[1..]).await;
            let (questions, state) = client.questions(1).await;
            assert_eq!(questions[0].0, answers[0].0);
            (state, answers[..1].to_vec())
        } else {
            (state, answers)
        };
        client.answer(&call, &state, &answers).await;
        assert_eq!(text(&client.message().await), "Some(Bool(true)), Hello, file:///a");
        assert_eq!(client.end().await.only()["outcome"], "ok");
    }
}

#[tokio::test]
async fn a_client_is_asked_only_what_it_declared() {
    for modern in [false, true] {
        let mut client = Client::start(modern, json!({"elicitation": {"url": {}}})).await;
        let perhaps = client.ask("tools/call", json!({"name": "perhaps", "arguments": {}})).await;
        assert_eq!(text(&perhaps), "no model");
        let who = client.ask("tools/call", json!({"name": "who", "arguments": {}})).await;
        if modern {
            assert_eq!(who["error"]["code"], -32021);
            let required = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
            assert_eq!(who["error"]["data"], required);
        } else {
            assert_eq!(text(&who), "the client cannot be asked to fill in a form (`elicitation`)");
        }
        // One that cannot be asked is no reason where the tool fails for another.
        let stumble = client.ask("tools/call", json!({"name": "stumble", "arguments": {}})).await;
        assert_eq!(text(&stumble), "the disk is full");
        let outcomes = client.end().await.outcomes();
        assert_eq!(outcomes.len(), 3);
        assert_eq!(outcomes[1]["outcome"], "tool_error");
    }
}

#[tokio::test]
async fn answers_without_a_state_count_for_the_first_questions() {
    let mut client = Client::start(true, everything()).await;
    let call = json!({"name": "twice", "arguments": {"first": "one"}});
    client.answer(&call, &Value::Null, &[(json!("word"), accept(json!({"word": "two"})))]).await;
    let (questions, state) = client.questions(1).await;
    assert_eq!(questions[0].1["params"]["message"], "two");
    client.answer(&call, &state, &[(json!("word"), accept(json!({"word": "three"})))]).await;
    assert_eq!(text(&client.message().await), "three");
    client.end().await.only();
}

#[tokio::test]
async fn a_state_is_good_once_and_for_its_own_request() {
    let mut client = Client::start(true, everything()).await;
    let call = json!({"name": "twice", "arguments": {"first": "one"}});
    let (questions, state) = client.begin(&call, 1).await;
    let answers = [(questions[0].0.clone(), accept(json!({"word": "two"})))];
    let other_tool = json!({"name": "who", "arguments": {"first": "one"}});
    let other_arguments = json!({"name": "twice", "arguments": {"first": "two"}});
    let tampered = json!(format!("{}-TAMPERED", state.as_str().unwrap()));
    for (call, state) in
        [(&call, &tampered), (&call, &json!("")), (&other_tool, &state), (&other_arguments, &state)]
    {
        client.answer(call, state, &answers).await;
        let refused = client.message().await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    // None of that has cost the call anything, or has begun another.
    assert_eq!(client.audit.outcomes().len(), 0);
    client.answer(&call, &state, &answers).await;
    let (_, next) = client.questions(1).await;
    client.answer(&call, &state, &answers).await;
    assert_eq!(client.message().await["error"]["code"], -32602);
    client.answer(&call, &next, &answers).await;
    assert_eq!(text(&client.message().await), "two");
    client.end().await.only();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_is_waited_for_five_minutes() {
    for modern in [false, true] {
        let mut client = Client::start(modern, everything()).await;
        let call = json!({"name": "who", "arguments": {}});
        let (questions, state) = client.begin(&call, 1).await;
        let began = tokio::time::Instant::now();
        if modern {
            while client.audit.outcomes().is_empty() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            // The call is over, and its client may still learn what came of it.
            client.answer(&call, &state, &[]).await;
        } else {
            let cancelled = client.receive().await;
            assert_eq!(cancelled["method"], "notifications/cancelled");
            assert_eq!(cancelled["params"]["requestId"], questions[0].0);
        }
        assert!((299..=301).contains(&began.elapsed().as_secs()));
        assert_eq!(text(&client.message().await), AskError::TimedOut.to_string());
        assert_eq!(client.end().await.only()["outcome"], "tool_error");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_does_not_stay_for_ever() {
    let mut client = Client::start(true, everything()).await;
    let call = json!({"name": "who", "arguments": {}});
    let (_, state) = client.begin(&call, 1).await;
    tokio::time::sleep(Duration::from_secs(601)).await;
    client.answer(&call, &state, &[]).await;
    assert_eq!(client.message().await["error"]["code"], -32602);
    client.end().await.only();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_finds_no_room_leaves_the_others_theirs() {
    let mut client = Client::of(trusting(&["tester"]), true, everything()).await;
    let call = json!({"name": "who", "arguments": {}});
    let answer = accept(json!({"name": "Ann", "age": 7}));
    let mut parked = Vec::new();
    for _ in 0..32 {
        parked.push(client.begin(&call, 1).await);
    }
    tokio::time::sleep(Duration::from_secs(100)).await;
    let refused = client.ask("tools/call", call.clone()).await;
    let retry_after = Duration::from_secs(500);
    assert_eq!(text(&refused), AskError::Busy { retry_after }.to_string());
    assert!(text(&refused).ends_with("try again in 500 seconds"), "{refused}");
    // Nor is anything called without the approval that cannot be asked for.
    let delete = json!({"name": "delete", "arguments": {"what": "it"}});
    let refused = client.ask("tools/call", delete).await;
    assert!(text(&refused).contains("Nothing was called"), "{refused}");
    assert!(text(&refused).ends_with("try again in 500 seconds"), "{refused}");
    for (questions, state) in &parked[..31] {
        client.answer(&call, state, &[(questions[0].0.clone(), answer.clone())]).await;
        assert_eq!(text(&client.message().await), "Ann is 7");
    }
    // The last one goes by its time, and all the room is there again.
    tokio::time::sleep(Duration::from_secs(501)).await;
    for _ in 0..32 {
        client.begin(&call, 1).await;
    }
    client.end().await;
}

#[tokio::test]
async fn what_is_parked_holds_so_many_bytes() {
    let mut client = Client::start(true, everything()).await;
    // As it is asked in the tool's question too, one call holds twice that.
    let call = json!({"name": "twice", "arguments": {"first": "x".repeat(3 << 19)}});
    client.begin(&call, 1).await;
    let (questions, state) = client.begin(&call, 1).await;
    let refused = client.ask("tools/call", call.clone()).await;
    assert!(text(&refused).starts_with("too many calls wait for their clients' answers here"));
    // There is no use in coming back with what never fits.
    let refused = client.ask("tools/call", json!({"name": "ramble", "arguments": {}})).await;
    assert!(text(&refused).contains("too long to wait for the client: over 8 MiB"), "{refused}");
    let answers = [(questions[0].0.clone(), accept(json!({"word": "two"})))];
    client.answer(&call, &state, &answers).await;
    let (_, state) = client.questions(1).await;
    client.answer(&call, &state, &answers).await;
    assert_eq!(text(&client.message().await), "two");
    client.end().await;
}

#[tokio::test]
async fn a_call_that_is_cancelled_when_it_has_just_asked_is_given_up() {
    let mut client = Client::start(true, everything()).await;
    let call = json!({"name": "who", "arguments": {}});
    let (questions, state) = client.begin(&call, 1).await;
    let cancel =
        |id: i64| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    // No other request's call is.
    client.send(&cancel(client.next + 1)).await;
    client.send(&cancel(client.next)).await;
    let answers = [(questions[0].0.clone(), accept(json!({"name": "Ann", "age": 7})))];
    while client.audit.outcomes().is_empty() {
        tokio::task::yield_now().await;
    }
    client.answer(&call, &state, &answers).await;
    assert_eq!(client.message().await["error"]["code"], -32602);
    assert_eq!(client.end().await.only()["outcome"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_stands_still_while_the_client_is_asked() {
    for modern in [false, true] {
        let mut client = Client::start(modern, everything()).await;
        let call = json!({"name": "hurry", "arguments": {}});
        let (questions, state) = client.begin(&call, 1).await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        let answered = tokio::time::Instant::now();
        let answer = accept(json!({"name": "Ann", "age": 7}));
        client.answer(&call, &state, &[(questions[0].0.clone(), answer)]).await;
        assert!(text(&client.message().await).contains("took longer than its limit of 10s"));
        assert!((9..=10).contains(&answered.elapsed().as_secs()));
        assert_eq!(client.end().await.only()["outcome"], "timed_out");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_ask_for_half_an_hour_in_all() {
    for (modern, thinks) in [(false, 299), (true, 299), (false, 3600)] {
        let mut client = Client::start(modern, everything()).await;
        let call = json!({"name": "nag", "arguments": {}});
        let began = tokio::time::Instant::now();
        client.request("tools/call", call.clone()).await;
        let told = loop {
            let message = client.message().await;
            let (question, state) = match &message["result"]["inputRequests"] {
                Value::Object(all) => (json!(all.keys().next()), message["result"]["requestState"].clone()),
                _ if message["method"] == "elicitation/create" => (message["id"].clone(), Value::Null),
                _ => break message,
            };
            if thinks < 300 {
                tokio::time::sleep(Duration::from_secs(thinks)).await;
                let answer = accept(json!({"name": "Ann", "age": 7}));
                client.answer(&call, &state, &[(question, answer)]).await;
            }
        };
        assert_eq!(text(&told), AskError::Exhausted.to_string());
        assert!(text(&told).contains("30 minutes"), "{told}");
        let took = began.elapsed().as_secs();
        // A client that thinks over the last question learns of the end when it comes back.
        assert!((1790..=1801 + thinks % 300).contains(&took), "{took}");
        assert_eq!(client.end().await.only()["outcome"], "tool_error");
    }
}

#[tokio::test]
async fn progress_increases_whatever_a_tool_says() {
    for modern in [false, true] {
        let mut client = Client::start(modern, everything()).await;
        let call = json!({"name": "dither", "arguments": {}, "_meta": {"progressToken": "t"}});
        client.request("tools/call", call).await;
        let mut told = Vec::new();
        loop {
            let message = client.receive().await;
            if message["method"] != "notifications/progress" {
                break assert_eq!(text(&message), "done");
            }
            told.push((message["params"]["progress"].as_f64(), message["params"]["total"].as_f64()));
        }
        let (last, before) = told.split_last().unwrap();
        assert_eq!(*last, (Some(4.0), Some(4.0)));
        let [again, less, two_again] = [1_f64.next_up(), 1_f64.next_up().next_up(), 2_f64.next_up()];
        let told = [1.0, again, less, 2.0, two_again, 3.0].map(|done| (Some(done), None));
        assert_eq!(before, told);
        client.end().await;
    }
}

#[tokio::test]
async fn a_cancelled_call_takes_its_question_back() {
    let mut client = Client::start(false, everything()).await;
    let call = json!({"name": "who", "arguments": {}});
    let (questions, _) = client.begin(&call, 1).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client.next}});
    client.send(&cancel).await;
    let cancelled = client.receive().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], questions[0].0);
    assert_eq!(client.end().await.only()["outcome"], "cancelled");
}

#[tokio::test]
async fn the_end_ends_what_waits_for_the_client() {
    for modern in [false, true] {
        for by_signal in [false, true] {
            let mut client = Client::start(modern, everything()).await;
            client.begin(&json!({"name": "who", "arguments": {}}), 1).await;
            if by_signal {
                client.stop.cancel();
            }
            let outcome = client.end().await.only()["outcome"].clone();
            assert!(outcome == "cancelled" || outcome == "tool_error" && !modern, "{outcome}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_listens_any_more_gets_its_answer() {
    let mut client = Client::start(false, everything()).await;
    client.begin(&json!({"name": "sigh", "arguments": {}}), 1).await;
    client.output.shutdown().await.unwrap();
    assert_eq!(text(&client.message().await), AskError::Closed.to_string());
    assert_eq!(client.end().await.only()["outcome"], "ok");
}

fn trusting(clients: &[&str]) -> aster_runtime::HostBuilder {
    Host::builder().approver(Arc::new(ClientApprover::new(clients.iter().copied())))
}

#[tokio::test]
async fn a_trusted_client_is_asked_for_approval() {
    for modern in [false, true] {
        for (answer, outcome) in [
            (accept(json!({"approve": true})), "ok"),
            (accept(json!({"approve": false})), "denied"),
            (json!({"action": "decline"}), "denied"),
            (json!({"action": "cancel"}), "denied"),
        ] {
            let mut client = Client::of(trusting(&["tester"]), modern, everything()).await;
            let call = json!({"name": "delete", "arguments": {"what": "it\u{202e}all"}});
            // What was said before anybody was asked is no approval.
            let early = [(json!("approval"), accept(json!({"approve": true})))];
            let (questions, state) = if modern {
                client.answer(&call, &Value::Null, &early).await;
                client.questions(1).await
            } else {
                client.begin(&call, 1).await
            };
            let message = questions[0].1["params"]["message"].as_str().unwrap();
            assert!(message.contains("wants to call asks/delete (restricted)"), "{message}");
            assert!(message.contains(r#""what": "it\u{202e}all""#), "{message}");
            client.answer(&call, &state, &[(questions[0].0.clone(), answer)]).await;
            let told = client.message().await;
            let record = client.end().await.only();
            assert_eq!(record["outcome"], outcome, "{told}");
            if outcome == "ok" {
                assert_eq!(text(&told), "it\u{202e}all is deleted");
                assert_eq!(record["decision"], json!({"admitted": "the user of the client tester"}));
            } else {
                assert!(text(&told).ends_with("; nothing was called"), "{told}");
                assert_eq!(record["decision"], json!({"denied": "approval"}));
            }
            assert_eq!(record["by"], json!({"approver": "the user of the client tester"}));
        }
    }
}

#[tokio::test]
async fn a_trusted_client_can_say_how_far_its_approval_goes() {
    for (scope, again) in
        [(json!("session"), false), (json!("arguments"), false), (json!("once"), true), (json!("ever"), true)]
    {
        let mut client = Client::of(trusting(&["tester"]), false, everything()).await;
        let call = json!({"name": "delete", "arguments": {"what": "it"}});
        let (questions, state) = client.begin(&call, 1).await;
        let choices = &questions[0].1["params"]["requestedSchema"]["properties"]["scope"]["enum"];
        assert_eq!(*choices, json!(["once", "arguments", "session"]));
        let answer = accept(json!({"approve": true, "scope": scope}));
        client.answer(&call, &state, &[(questions[0].0.clone(), answer)]).await;
        let told = client.message().await;
        if scope == "ever" {
            // What is none of the choices answers nothing.
            assert!(text(&told).contains("Nothing was called"), "{told}");
        } else {
            assert_eq!(text(&told), "it is deleted");
        }
        if again {
            client.begin(&call, 1).await;
        } else {
            assert_eq!(text(&client.ask("tools/call", call).await), "it is deleted");
        }
    }
}

#[tokio::test]
async fn an_approval_is_the_answer_of_the_client_that_was_asked() {
    let mut client = Client::of(trusting(&["tester"]), true, everything()).await;
    let call = json!({"name": "delete", "arguments": {"what": "it"}});
    let (questions, state) = client.begin(&call, 1).await;
    let answers = [(questions[0].0.clone(), accept(json!({"approve": true})))];
    client.name = "another";
    client.answer(&call, &state, &answers).await;
    assert_eq!(client.message().await["error"]["code"], -32602);
    assert_eq!(client.audit.outcomes().len(), 0);
    client.name = "tester";
    client.answer(&call, &state, &answers).await;
    assert_eq!(text(&client.message().await), "it is deleted");
    client.end().await.only();
}

#[tokio::test]
async fn what_is_too_long_to_be_shown_whole_is_not_approved() {
    let mut client = Client::of(trusting(&["tester"]), true, everything()).await;
    let call = json!({"name": "delete", "arguments": {"what": "x".repeat(40_000)}});
    let told = client.ask("tools/call", call).await;
    assert!(text(&told).contains("nobody can be asked here. Nothing was called"), "{told}");
    assert!(text(&told).ends_with("the call is too long for a client to show it whole"), "{told}");
    assert_eq!(client.end().await.only()["decision"], json!({"denied": "approval"}));
}

/// Approves when it has been asked.
struct Approves;

impl Approver for Approves {
    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async {
            // The client's question fails at once.
            tokio::time::sleep(Duration::from_secs(1)).await;
            Approval::once("another human")
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_fails_leaves_the_answer_to_others() {
    let own = || ClientApprover::new(["tester"]);
    let race = Race::new([Arc::new(own()) as Arc<dyn Approver>, Arc::new(Approves)]);
    for approver in [Arc::new(race) as Arc<dyn Approver>, Arc::new(own().or(Arc::new(Approves)))] {
        let host = || Host::builder().approver(Arc::clone(&approver));
        let what = "x".repeat(40_000);
        let mut client = Client::of(host(), true, everything()).await;
        let told = client.ask("tools/call", json!({"name": "delete", "arguments": {"what": what}})).await;
        assert_eq!(text(&told), format!("{what} is deleted"));
        assert_eq!(client.end().await.only()["decision"], json!({"admitted": "another human"}));

        // One that goes while it is asked has said nothing.
        let mut client = Client::of(host(), false, everything()).await;
        client.begin(&json!({"name": "delete", "arguments": {"what": "it"}}), 1).await;
        client.output.shutdown().await.unwrap();
        assert_eq!(text(&client.message().await), "it is deleted");
    }
}

#[tokio::test]
async fn no_other_client_is_asked_for_approval() {
    for modern in [false, true] {
        for (trusted, capabilities, why) in [
            (&["another", "Tester", "tester "][..], everything(), "`mcp.approval.clients: [tester]`"),
            (&["tester"], json!({"sampling": {}}), "a client that can show forms"),
            (&["tester"], json!({"elicitation": {"url": {}}}), "a client that can show forms"),
        ] {
            let mut client = Client::of(trusting(trusted), modern, capabilities).await;
            let call = json!({"name": "delete", "arguments": {"what": "it"}});
            let told = client.ask("tools/call", call).await;
            assert!(text(&told).contains("nobody can be asked here") && text(&told).contains(why), "{told}");
            assert_eq!(client.end().await.only()["decision"], json!({"denied": "approval"}));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_that_its_user_is_being_asked() {
    let mut client = Client::of(trusting(&["tester"]), false, everything()).await;
    let call = json!({"name": "delete", "arguments": {"what": "it"}, "_meta": {"progressToken": "t"}});
    let id = client.request("tools/call", call).await;
    let (mut question, mut progress) = (Value::Null, Vec::new());
    while question.is_null() || progress.len() < 5 {
        let message = client.receive().await;
        match message["method"].as_str() {
            Some("elicitation/create") => question = message["id"].clone(),
            _ => progress.push(message["params"]["progress"].as_f64().unwrap()),
        }
    }
    client.answer(&Value::Null, &Value::Null, &[(question, accept(json!({"approve": true})))]).await;
    loop {
        let message = client.receive().await;
        if message["id"] == id {
            break assert_eq!(text(&message), "it is deleted");
        }
        progress.push(message["params"]["progress"].as_f64().unwrap());
    }
    assert!(progress.is_sorted_by(|left, right| left < right), "{progress:?}");
    assert_eq!(progress.last(), Some(&1.0));
    client.end().await.only();
}

#[tokio::test(start_paused = true)]
async fn silence_is_no_approval() {
    for modern in [false, true] {
        let builder = trusting(&["tester"]).approval_timeout(Duration::from_secs(30));
        let mut client = Client::of(builder, modern, everything()).await;
        let call = json!({"name": "delete", "arguments": {"what": "it"}});
        let (questions, state) = client.begin(&call, 1).await;
        if modern {
            tokio::time::sleep(Duration::from_secs(31)).await;
            let late = accept(json!({"approve": true}));
            client.answer(&call, &state, &[(questions[0].0.clone(), late)]).await;
        } else {
            assert_eq!(client.receive().await["method"], "notifications/cancelled");
        }
        assert!(
            text(&client.message().await).contains("nobody approved the call of `asks/delete` within 30s")
        );
        assert_eq!(client.end().await.only()["decision"], json!({"denied": "approval"}));
    }
}
