//! What the gate does about secrets on the way of a call: none leaves, none is shown, and none stands in any log, record,
//! error or manifest.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use aster_runtime::audit::{AuditSink, Record, Traced};
use aster_runtime::call::{Check, Completed, Outcome, Proposed};
use aster_runtime::dispatch::DispatchError;
use aster_runtime::gate::WITHHELD;
use aster_runtime::gate::hooks::{Hook, Verdict, Wish};
use aster_runtime::gate::rules::{Action, Rule, Rules, Test};
use aster_runtime::gate::secrets::{Incoming, Outgoing, SecretPolicy, Severity};
use aster_runtime::tool::{ClientLink, LogLevel};
use aster_runtime::{
    CallOptions, Host, HostBuilder, HostSession, JsonObject, Profile, ToolContext, ToolResult, catalogue,
    mcp_server, mcp_tool,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use common::Scripted;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The one that is configured.
const CONFIGURED: &str = "hunter2-and-more";

/// One with a format, which stands in no source.
fn token() -> String {
    format!("ghp_{}", "Zk3Rj8Qm1Tz7Lw5Xv9BnC4Hd6Fg2Ks0PqAbY")
}

/// Two tools that say what they were given.
#[derive(Default)]
struct Vault {
    calls: AtomicUsize,
}

/// A vault.
#[mcp_server(name = "vault")]
impl Vault {
    /// Keeps a value.
    #[mcp_tool(tier = Elevated)]
    fn keep(&self, name: String, #[arg(secret)] value: String) -> String {
        self.calls.fetch_add(1, Ordering::SeqCst);
        format!("kept {} bytes as {name}", value.len())
    }

    /// Says something to the caller's log, and fails.
    #[mcp_tool(tier = Elevated)]
    async fn fail(&self, ctx: &ToolContext, kind: String) -> Result<String, String> {
        let secret = if kind == "configured" { CONFIGURED.to_owned() } else { token() };
        ctx.progress(1.0, None, Some(&format!("at {secret}")));
        ctx.log(LogLevel::Info, &format!("using {secret}"));
        Err(format!("cannot log in with {secret}"))
    }
}

/// An external server that answers with whatever it was told to.
struct Teller {
    answer: Arc<Mutex<Result<ToolResult, DispatchError>>>,
    seen: Arc<Mutex<Vec<JsonObject>>>,
    server: Arc<Scripted>,
}

impl Teller {
    fn new() -> Self {
        let answer = Arc::new(Mutex::new(Ok(ToolResult::text("nothing"))));
        let seen = Arc::<Mutex<Vec<JsonObject>>>::default();
        let (told, heard) = (Arc::clone(&answer), Arc::clone(&seen));
        let server = Scripted::new("teller", move |_, arguments| {
            heard.lock().unwrap().push(arguments);
            told.lock().unwrap().clone()
        });
        let server = server.ready(vec![json!({"name": "tell", "description": "Tells."})]);
        Self { answer, seen, server }
    }

    fn will_answer(&self, answer: Result<Value, DispatchError>) {
        *self.answer.lock().unwrap() = answer.map(ToolResult::from_value);
    }
}

/// Writes each record to a list, and to the log besides.
#[derive(Default)]
struct Recorder(Mutex<Vec<Value>>);

impl AuditSink for Recorder {
    fn write(&self, record: &Record) -> io::Result<()> {
        Traced.write(record)?;
        self.0.lock().unwrap().push(serde_json::to_value(record)?);
        Ok(())
    }
}

/// Remembers what a client would have in its log.
#[derive(Default)]
struct Client(Mutex<Vec<String>>);

impl ClientLink for Client {
    fn progress(&self, _: f64, _: Option<f64>, message: Option<&str>) {
        self.0.lock().unwrap().push(message.unwrap_or_default().to_owned());
    }

    fn log(&self, _: LogLevel, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// Everything that `tracing` wrote in this process, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log() -> &'static Log {
    static LOG: OnceLock<Log> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone());
        tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
        log
    })
}

struct Bench {
    session: HostSession,
    teller: Teller,
    audit: Arc<Recorder>,
    client: Arc<Client>,
}

async fn bench_with(more: impl FnOnce(HostBuilder) -> HostBuilder) -> Bench {
    log();
    let (teller, audit) = (Teller::new(), Arc::new(Recorder::default()));
    let builder = Host::builder()
        .catalogue(catalogue![Vault::SERVER])
        .with_server(Vault::default())
        .with_upstream(teller.server.clone())
        .secrets([CONFIGURED])
        .unrecorded(["/home/someone/notes"])
        .audit(Arc::clone(&audit) as Arc<dyn AuditSink>);
    let host = more(builder).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    Bench { session, teller, audit, client: Arc::default() }
}

async fn bench() -> Bench {
    bench_with(|builder| builder).await
}

impl Bench {
    async fn call(&self, id: &str, arguments: Value) -> Completed {
        let options = CallOptions { client: Some(Arc::clone(&self.client) as _), ..CallOptions::default() };
        self.session.execute(id, arguments.as_object().unwrap().clone(), options).await
    }

    fn records(&self) -> String {
        serde_json::to_string(&*self.audit.0.lock().unwrap()).unwrap()
    }
}

fn policy(outgoing: Outgoing) -> SecretPolicy {
    SecretPolicy::default().outgoing(outgoing)
}

#[tokio::test]
async fn a_call_with_a_secret_is_denied_and_told_where() {
    let bench = bench().await;
    let (token, encoded) = (token(), STANDARD.encode(format!("user:{CONFIGURED}")));
    for (arguments, told) in [
        (json!({"a": {"b": ["x", token]}}), "`/a/b/1` (github-token)"),
        (json!({"text": format!("it is {CONFIGURED}.")}), "`/text` (configured-secret)"),
        (json!({"header": format!("Basic {encoded}")}), "`/header` (configured-secret)"),
        (
            json!({"x": format!("https://evil.example/?q={}", CONFIGURED.replace('-', "%252D"))}),
            "`/x` (configured",
        ),
        (json!({"parts": ["hunter2-a", "nd-more"]}), "`/parts/0` (configured-secret), `/parts/1`"),
        (json!({ format!("a {token}"): 1 }), "`/a [redacted]` (github-token)"),
    ] {
        let ended = bench.call("teller/tell", arguments.clone()).await;
        assert_eq!((ended.outcome, ended.denied), (Outcome::Denied, Some(Check::Secrets)), "{arguments}");
        let said = ended.result.to_text();
        assert!(said.contains(told) && said.contains("Nothing was called"), "{said}");
        assert!(!said.contains(&token) && !said.contains("hunter2"), "{said}");
    }
    assert_eq!(bench.teller.seen.lock().unwrap().len(), 0);
    assert!(!bench.records().contains(&token) && !bench.records().contains("hunter2"), "{}", bench.records());
    // What a configuration says of paths is no secret, and no record has it.
    let ended = bench.call("teller/tell", json!({"path": "/home/someone/notes/a"})).await;
    assert_eq!(ended.outcome, Outcome::Ok);
    assert!(!bench.records().contains("someone"), "{}", bench.records());
}

#[tokio::test]
async fn a_policy_may_redact_or_allow() {
    let arguments = json!({"note": format!("key {}", token()), "other": 1});
    for (policy, sent) in [
        (policy(Outgoing::Redact), json!({"note": "key [redacted]", "other": 1})),
        (policy(Outgoing::Allow), arguments.clone()),
        (SecretPolicy::default().except(["github-token"]).unwrap(), arguments.clone()),
    ] {
        let bench = bench_with(|builder| builder.secret_policy(policy)).await;
        assert_eq!(bench.call("teller/tell", arguments.clone()).await.outcome, Outcome::Ok);
        assert_eq!(Value::Object(bench.teller.seen.lock().unwrap()[0].clone()), sent);
        // A record is no place for it whatever the policy.
        assert!(!bench.records().contains(&token()), "{}", bench.records());
    }
    assert!(SecretPolicy::default().except(["github"]).is_err());
}

#[tokio::test]
async fn a_rule_says_what_becomes_of_secrets_in_the_calls_that_it_matches() {
    use Outgoing::{Allow, Block, Redact};
    let matching = |secrets: Outgoing| {
        Rule::new(Action::Allow, secrets.name()).tools(["teller/*"]).unwrap().secrets(secrets)
    };
    let elsewhere =
        |secrets: Outgoing| Rule::new(Action::Allow, "else").agents(["other"]).unwrap().secrets(secrets);
    let with = json!({"note": format!("key {}", token())});
    let without = json!({"note": "key [redacted]"});
    for (at, (all, rules, sent)) in [
        (Block, vec![matching(Redact)], Some(&without)),
        (Block, vec![elsewhere(Redact)], None),
        (Block, vec![matching(Redact), matching(Block)], None),
        (Block, vec![matching(Block), matching(Redact)], None),
        (Redact, vec![matching(Block)], None),
        (Redact, vec![elsewhere(Block)], Some(&without)),
        (Allow, vec![matching(Redact)], Some(&without)),
        (Allow, vec![matching(Block), elsewhere(Redact)], None),
        (Allow, vec![elsewhere(Block)], Some(&with)),
    ]
    .into_iter()
    .enumerate()
    {
        let rules = Rules::new(rules);
        let bench = bench_with(|builder| builder.secret_policy(policy(all)).rules(rules)).await;
        let ended = bench.call("teller/tell", with.clone()).await;
        let seen = bench.teller.seen.lock().unwrap().first().cloned().map(Value::Object);
        assert_eq!(seen.as_ref(), sent, "row {at}");
        assert_eq!(ended.denied, sent.is_none().then_some(Check::Secrets), "row {at}");
        assert!(!bench.records().contains(&token()), "row {at}: {}", bench.records());
    }
}

/// What is sent is what rules and whoever is asked see, not what was proposed.
#[tokio::test]
async fn a_rule_judges_what_is_left_of_a_call_without_its_secrets() {
    let redacts = Rule::new(Action::Allow, "redacts").tools(["teller/*"]).unwrap().secrets(Outgoing::Redact);
    let denies =
        Rule::new(Action::Deny, "denies").argument("/note", [Test::glob(["*[[]redacted]*"]).unwrap()]);
    let rules = Rules::new([redacts, denies.unwrap()]);
    let bench = bench_with(|builder| builder.rules(rules)).await;
    let ended = bench.call("teller/tell", json!({ "note": token() })).await;
    assert_eq!(ended.denied, Some(Check::Rule));
    assert_eq!(bench.call("teller/tell", json!({"note": "nothing"})).await.outcome, Outcome::Ok);
}

#[tokio::test]
async fn what_a_tool_declares_secret_may_be_given_to_it() {
    for outgoing in [Outgoing::Block, Outgoing::Redact] {
        let bench = bench_with(|builder| builder.secret_policy(policy(outgoing))).await;
        let ended = bench.call("vault/keep", json!({"name": "x", "value": token()})).await;
        assert_eq!(ended.result.to_text(), "kept 40 bytes as x");
        assert!(!bench.records().contains(&token()), "{}", bench.records());
    }
}

#[tokio::test]
async fn a_result_is_shown_without_its_secrets_and_says_so() {
    let bench = bench().await;
    let token = token();
    bench.teller.will_answer(Ok(json!({
        "content": [
            {"type": "text", "text": format!("one {token} two")},
            {"type": "resource", "resource": {"uri": "file:///x", "text": CONFIGURED}},
            {"type": "resource", "resource": {"uri": "file:///y", "blob": STANDARD.encode(format!("x {token}"))}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "structuredContent": {"deep": [{"key": token}], &token: 1, "n": 1.5},
        "_meta": {"vendor": {"t": CONFIGURED}},
        "isError": true,
    })));
    let shown = bench.call("teller/tell", json!({})).await.result.into_value();
    let said = shown.to_string();
    assert!(!said.contains(&token) && !said.contains("hunter2"), "{said}");
    assert_eq!(shown["content"][0]["text"], "one [redacted] two");
    assert_eq!(shown["content"][3]["data"], "AAAA");
    assert_eq!(shown["structuredContent"]["n"], 1.5);
    let blob = shown["content"][2]["resource"]["blob"].as_str().unwrap();
    assert_eq!(STANDARD.decode(blob).unwrap(), b"x [redacted]");
    let note = shown["content"][4]["text"].as_str().unwrap();
    assert!(note.contains("github-token at /content/0/text") && note.contains("[redacted]"), "{note}");
    let withheld: Vec<&str> = shown["_meta"][WITHHELD]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(
        withheld,
        [
            "/content/0/text",
            "/content/1/resource/text",
            "/content/2/resource/blob",
            "/structuredContent/deep/0/key",
            "/structuredContent/[redacted]",
            "/_meta/vendor/t",
        ]
    );
    // Most results have none, and pass as they came.
    let clean = json!({"content": [{"type": "text", "text": "a"}], "x": 0.1});
    bench.teller.will_answer(Ok(clean.clone()));
    assert_eq!(bench.call("teller/tell", json!({})).await.result.into_value().to_string(), clean.to_string());
    let open =
        bench_with(|builder| builder.secret_policy(SecretPolicy::default().incoming(Incoming::Allow))).await;
    open.teller.will_answer(Ok(json!({"content": [{"type": "text", "text": token}]})));
    assert_eq!(open.call("teller/tell", json!({})).await.result.to_text(), token);
    assert!(!open.records().contains(&token), "{}", open.records());
}

#[tokio::test]
async fn base64_hides_nothing_from_callers_and_records() {
    let bench = bench().await;
    let token = token();
    // One stray byte, no padding, the other alphabet, lines: some client reads each of them.
    let bytes = [b"\xff?>".as_slice(), token.as_bytes(), b"?"].concat();
    let lines =
        STANDARD.encode(&bytes).as_bytes().chunks(12).map(|line| [line, b"\n"].concat()).collect::<Vec<_>>();
    let blobs = [
        STANDARD.encode(&bytes),
        STANDARD_NO_PAD.encode(&bytes),
        URL_SAFE_NO_PAD.encode(&bytes),
        String::from_utf8(lines.concat()).unwrap(),
    ];
    for blob in blobs {
        bench.teller.will_answer(Ok(json!({
            "contents": [{"uri": "file:///x", "blob": blob}],
            "messages": [{"role": "user", "content": {"type": "resource", "resource": {"blob": blob}}}],
        })));
        let shown = bench.call("teller/tell", json!({})).await.result.into_value();
        for pointer in ["/contents/0/blob", "/messages/0/content/resource/blob"] {
            let shown = STANDARD.decode(shown.pointer(pointer).unwrap().as_str().unwrap()).unwrap();
            assert_eq!(shown, b"\xff?>[redacted]?", "{pointer}: {blob}");
        }
    }
    // Nor does a record have it where the policy lets it through.
    let open =
        bench_with(|builder| builder.secret_policy(policy(Outgoing::Allow).incoming(Incoming::Allow))).await;
    let blob = STANDARD.encode(&bytes);
    let answer = json!({"content": [{"type": "resource", "resource": {"uri": "file:///x", "blob": blob}}]});
    open.teller.will_answer(Ok(answer));
    let shown = open.call("teller/tell", json!({"file": {"blob": blob}})).await.result.into_value();
    assert_eq!(shown["content"][0]["resource"]["blob"], blob);
    let records = open.records();
    assert!(records.contains("\"result\"") && records.contains("\"file\""), "{records}");
    assert!(!records.contains(&blob), "{records}");
}

#[tokio::test]
async fn a_result_of_nothing_but_secrets_is_told_in_a_hundred_places() {
    let bench = bench().await;
    let token = token();
    let keys: Vec<&str> = vec![&token; 20_000];
    bench.teller.will_answer(Ok(json!({"content": [], "structuredContent": {"keys": keys}})));
    let began = Instant::now();
    let shown = bench.call("teller/tell", json!({})).await.result.into_value();
    // Where every place is compared with all before it, these are minutes.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(!shown.to_string().contains(&token));
    let withheld = shown["_meta"][WITHHELD].as_array().unwrap();
    assert_eq!((withheld.len(), &withheld[100]), (101, &json!({"more": 19_900})));
    let note = shown["content"][0]["text"].as_str().unwrap();
    assert!(note.contains("/structuredContent/keys/9 and 19990 more."), "{note}");
}

#[tokio::test]
async fn a_record_has_no_secret_that_a_stricter_policy_knows_and_none_fewer_for_a_laxer_one() {
    let low = format!("sk_test_{}", "Zk3Rj8Qm1Tz7Lw5Xv9BnC4Hd");
    for (least, key, kept) in
        [(Severity::Low, &low, false), (Severity::Medium, &low, true), (Severity::High, &token(), false)]
    {
        let policy = policy(Outgoing::Allow).incoming(Incoming::Allow).least(least);
        let bench = bench_with(|builder| builder.secret_policy(policy)).await;
        assert_eq!(bench.call("teller/tell", json!({"note": key})).await.outcome, Outcome::Ok);
        assert_eq!(bench.records().contains(key.as_str()), kept, "{least:?}: {}", bench.records());
    }
}

/// Says what it was given, gives the call another secret, and wants this of it.
struct Talker(fn(Verdict, String) -> Verdict);

impl Hook for Talker {
    fn changes(&self) -> bool {
        true
    }

    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Result<Verdict, String>> {
        Box::pin(async {
            let mut arguments = call.arguments.clone();
            let old = arguments.insert("value".to_owned(), json!("the other word")).unwrap();
            arguments.insert("name".to_owned(), json!("renamed"));
            let why = format!("it was {} and {}", old.as_str().unwrap(), token());
            Ok((self.0)(Verdict::rewrite(arguments), why))
        })
    }
}

#[tokio::test]
async fn what_a_hook_says_and_makes_of_a_call_is_recorded_without_its_secrets() {
    fn with(mut verdict: Verdict, wish: Wish) -> Verdict {
        verdict.wish = Some(wish);
        verdict
    }
    for (talker, verdict) in [
        (Talker(|verdict, why| with(verdict, Wish::Allow(why))), "allow"),
        (Talker(|verdict, why| with(verdict, Wish::Ask(why))), "ask"),
        (Talker(|verdict, _| verdict), "rewrite"),
    ] {
        let rules = Rules::new([Rule::new(Action::Ask, "the test's rule")]);
        let bench = bench_with(|builder| builder.hook(Arc::new(talker)).rules(rules)).await;
        let ended = bench.call("vault/keep", json!({"name": "x", "value": "sesame"})).await;
        let records = bench.audit.0.lock().unwrap().clone();
        let last = records.last().unwrap();
        assert_eq!(
            (&last["hooks"][0]["verdict"], &last["hooks"][0]["rewrote"]),
            (&json!(verdict), &json!(true))
        );
        assert_eq!(last["arguments"]["name"], "renamed", "{verdict}: {last}");
        // Nobody can be asked here.
        let denied = (verdict != "allow").then_some(Check::Approval);
        assert_eq!(ended.denied, denied, "{last}");
        let text = bench.records();
        assert!(!text.contains("sesame") && !text.contains("the other word"), "{text}");
        assert!(!text.contains(&token()), "{text}");
    }
}

#[tokio::test]
async fn errors_progress_and_logs_have_none() {
    let bench = bench().await;
    for kind in ["configured", "format"] {
        let ended = bench.call("vault/fail", json!({"kind": kind})).await;
        assert!(
            ended.result.to_text().contains("cannot log in with [redacted]"),
            "{}",
            ended.result.to_text()
        );
    }
    bench.teller.will_answer(Err(DispatchError::Protocol { code: -1, message: format!("no {}", token()) }));
    let told = bench.call("teller/tell", json!({})).await.result.to_text();
    assert_eq!(told, "the server refused the call: no [redacted] (code -1)");
    let client = bench.client.0.lock().unwrap().clone();
    assert_eq!(client, ["at [redacted]", "using [redacted]", "at [redacted]", "using [redacted]"]);
}

/// Puts a text somewhere into a value.
fn placed(canary: &str, place: u8) -> Value {
    match place % 8 {
        0 => json!({ "a": canary }),
        1 => json!({ "a": [1, {"b": format!("x {canary} y")}] }),
        2 => json!({ canary: 1 }),
        3 => json!({ "a": STANDARD.encode(canary) }),
        4 => json!({ "a": json!({ "b": canary }).to_string() }),
        5 => json!({ "a": [&canary[..9], &canary[9..]] }),
        6 => json!({ "a": canary.replace('-', "%2D").replace('_', "%5f") }),
        _ => json!({ "one": &canary[..5], "two": &canary[5..11], "three": &canary[11..] }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever way a secret takes, from a caller, from a tool or from a server's failure, nobody finds it afterwards.
    #[test]
    fn no_canary_in_any_log_record_error_or_manifest(
        body in "[A-Za-z0-9]{36}", place in any::<u8>(), way in 0..5_u8, configured in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let canary = if configured { format!("canary-{body}") } else { format!("ghp_{body}") };
        // Of a format only what is not encoded can be told.
        let place = if configured || place % 8 != 3 { place } else { 0 };
        let log_before = log().0.lock().unwrap().len();
        let seen = runtime.block_on(async {
            let bench = bench_with(|builder| builder.secrets([format!("canary-{body}")])).await;
            let value = placed(&canary, place);
            let mut seen = vec![];
            let ended = match way {
                0 => bench.call("teller/tell", value.clone()).await,
                1 => {
                    bench.teller.will_answer(Ok(json!({
                        "content": [{"type": "text", "text": value.to_string()}], "structuredContent": value,
                    })));
                    bench.call("teller/tell", json!({})).await
                }
                2 => {
                    let reason = format!("it wrote: {value}");
                    bench.teller.will_answer(Err(DispatchError::Unavailable { server: "teller".into(), reason }));
                    bench.call("teller/tell", json!({})).await
                }
                3 => bench.call("vault/keep", json!({"name": "n", "value": value.to_string()})).await,
                _ => bench.call(&format!("teller/{canary}"), json!({})).await,
            };
            seen.push(ended.result.into_value().to_string());
            seen.push(bench.records());
            seen.push(bench.session.injection().unwrap().prompt);
            seen.extend(bench.client.0.lock().unwrap().iter().cloned());
            seen
        });
        let logged = String::from_utf8_lossy(&log().0.lock().unwrap()[log_before..]).into_owned();
        for text in seen.into_iter().chain([logged]) {
            for form in [canary.clone(), body.clone(), STANDARD.encode(&canary)] {
                prop_assert!(!text.contains(&form), "way {way}, place {}: {text}", place % 8);
            }
        }
    }
}
