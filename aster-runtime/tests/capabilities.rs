//! Resources and prompts from end to end: annotate, list, read, get, complete; scope, gate and audit as for tools.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io;
use std::sync::{Arc, Mutex};

use aster_runtime::audit::{AuditSink, Record, Stage};
use aster_runtime::call::Proposed;
use aster_runtime::call::{Check, Completed, Outcome};
use aster_runtime::gate::hooks::{Failure, Hook, Verdict};
use aster_runtime::{
    CallOptions, Entry, Host, HostSession, Image, Json, JsonObject, NativeCatalogue, Profile, PromptMessage,
    Reference, ResourceContents, Tier, ToolContext, catalogue, groups, mcp_prompt, mcp_resource, mcp_server,
    mcp_tool,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

groups! { pub PRIVATE }

struct Notes {
    first: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Tone {
    Dry,
    Warm,
}

impl Notes {
    fn folders(typed: &str) -> impl Iterator<Item = String> {
        (0..200).map(|at| format!("folder{at}")).chain([format!("{typed}!"), "other".to_owned()])
    }
}

/// Keeps notes.
#[mcp_server]
impl Notes {
    /// Changes the first note.
    #[mcp_tool(tier = Standard)]
    fn touch(&self, ctx: &ToolContext) {
        ctx.resource_updated("notes://first");
    }

    /// The first note.
    #[mcp_resource(uri = "notes://first", tier = Standard, title = "First", mime_type = "text/plain", size = 5)]
    fn first(&self) -> &str {
        &self.first
    }

    /// Any note.
    #[mcp_resource(uri = "notes://{folder}/{number}", tier = Elevated)]
    async fn note(
        &self,
        ctx: &ToolContext,
        /// Where it lies.
        #[arg(complete = Self::folders)]
        folder: String,
        number: u8,
    ) -> Result<Option<Json<Vec<String>>>, io::Error> {
        match number {
            0 => Err(io::Error::other("it is burnt")),
            9 => Ok(None),
            _ => Ok(Some(Json(vec![folder, number.to_string(), ctx.session().agent().to_owned()]))),
        }
    }

    /// A diary.
    #[mcp_resource(uri = "notes://diary/{+path}", tier = Restricted, group = PRIVATE)]
    fn diary(path: String) -> Vec<ResourceContents> {
        vec![
            ResourceContents::text(path).mime_type("text/html"),
            ResourceContents::bytes([1, 2]).uri("notes://diary/picture"),
        ]
    }

    /// Asks for a summary.
    #[mcp_prompt(tier = Standard, title = "Sum up")]
    fn summary(
        &self,
        /// How it sounds.
        tone: Tone,
        /// How many words.
        #[arg(default = 3, range(1..=5))]
        words: u8,
        #[arg(complete = ["note", "Novel", "diary"])] of: Option<String>,
    ) -> Vec<PromptMessage> {
        let tone = match tone {
            Tone::Dry => "dry",
            Tone::Warm => "warm",
        };
        vec![
            PromptMessage::user(format!("{tone} {words} {of:?} {}", self.first)),
            PromptMessage::assistant(Image::new("image/png", [0_u8])),
        ]
    }
}

/// The icon.
#[mcp_resource(uri = "app://icon", tier = Standard, server = "app")]
fn icon() -> Vec<u8> {
    vec![0, 1]
}

/// Fails.
#[mcp_prompt(tier = Standard, server = "app")]
fn failing() -> Result<String, &'static str> {
    Err("out of ideas")
}

/// Is suggested by a function that panics.
#[mcp_prompt(tier = Standard, server = "app")]
fn broken(#[arg(complete = panics)] word: String) -> String {
    word
}

/// Is suggested what fills pages.
#[mcp_prompt(tier = Standard, server = "app")]
fn wordy(#[arg(complete = pages)] word: String) -> String {
    word
}

fn pages(_: &str) -> Vec<String> {
    [30, 65, 30, 30, 1].map(|kib| "x".repeat(kib << 10)).into()
}

fn panics(_: &str) -> Vec<String> {
    panic!("on purpose")
}

const SCHEMA: &str = r#"{"type":"object","$anchor":"root","properties":{"n":{"type":"integer","title":"N"}},"required":["n"]}"#;

/// Counts by a schema of its own.
#[mcp_tool(tier = Standard, server = "app", schema = SCHEMA)]
fn count(arguments: JsonObject) -> String {
    arguments.keys().cloned().collect::<Vec<_>>().join(",")
}

/// Runs somewhere.
#[mcp_tool(tier = Standard, server = "app")]
fn run_at(
    #[arg(header = "Region")] region: String,
    #[arg(header = "Try-Count")] tries: Option<u8>,
) -> String {
    format!("{region} {tries:?}")
}

const CATALOGUE: NativeCatalogue = catalogue![
    Notes::SERVER,
    icon::RESOURCE,
    failing::PROMPT,
    broken::PROMPT,
    wordy::PROMPT,
    count::TOOL,
    run_at::TOOL,
];

#[derive(Default)]
struct Records(Mutex<Vec<Record>>);

impl AuditSink for Records {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.0.lock().unwrap().push(record.clone());
        Ok(())
    }
}

impl Records {
    fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

async fn host() -> (Host, Arc<Records>) {
    let records = Arc::new(Records::default());
    let host = Host::builder()
        .catalogue(CATALOGUE)
        .with_server(Notes { first: "hello".to_owned() })
        .audit(records.clone())
        .build()
        .await
        .unwrap();
    (host, records)
}

async fn session() -> HostSession {
    host().await.0.session(Profile::new("tester")).unwrap()
}

async fn read(session: &HostSession, uri: &str) -> Completed {
    session.read_resource(uri, CallOptions::default()).await
}

async fn get(session: &HostSession, id: &str, arguments: Value) -> Completed {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    session.get_prompt(id, arguments, CallOptions::default()).await
}

#[tokio::test]
async fn definitions_are_those_of_the_protocol() {
    let view = session().await.view();
    let resources: Vec<Value> = view.resources().iter().map(|resource| resource.definition()).collect();
    assert_eq!(
        resources,
        [
            json!({"uri": "app://icon", "name": "icon", "description": "The icon."}),
            json!({"uriTemplate": "notes://diary/{+path}", "name": "diary", "description": "A diary."}),
            json!({"uri": "notes://first", "name": "first", "title": "First", "description": "The first note.",
                "mimeType": "text/plain", "size": 5}),
            json!({"uriTemplate": "notes://{folder}/{number}", "name": "note", "description": "Any note."}),
        ]
    );
    let summary = view.prompts().iter().find(|prompt| prompt.id().as_str() == "notes/summary").unwrap();
    assert_eq!(
        summary.definition(),
        json!({"name": "summary", "title": "Sum up", "description": "Asks for a summary.", "arguments": [
            {"name": "tone", "description": "How it sounds.", "required": true},
            {"name": "words", "description": "How many words.", "required": false},
            {"name": "of", "required": false},
        ]})
    );
}

#[tokio::test]
async fn they_are_never_among_tools() {
    let session = session().await;
    let ids: Vec<String> = session.view().tools().iter().map(|tool| tool.id().to_string()).collect();
    assert_eq!(ids, ["app/count", "app/run_at", "notes/touch"]);
    let injection = session.injection().unwrap();
    assert!(!injection.prompt.contains("summary") && !injection.prompt.contains("icon"));
    let found = session.call(&json!({"action": "search", "query": "note"})).await.to_text();
    assert!(found.contains("notes/touch") && !found.contains("notes/note"), "{found}");
    let unknown = |answer: String, id: &str| answer.replace(id, "X");
    for action in ["describe", "execute"] {
        let ask = |id: &str| json!({"action": action, "name": id});
        let prompt = session.call(&ask("notes/summary")).await.to_text();
        let nothing = session.call(&ask("notes/mummary")).await.to_text();
        assert_eq!(unknown(prompt, "notes/summary"), unknown(nothing, "notes/mummary"));
    }
    let completed = session.execute("app/icon", JsonObject::new(), CallOptions::default()).await;
    assert_eq!(completed.denied, Some(Check::Scope));
    assert_eq!(get(&session, "app/icon", json!({})).await.denied, Some(Check::Scope));
}

#[tokio::test]
async fn a_uri_is_read() {
    let session = session().await;
    let read = async |uri: &str| read(&session, uri).await.result.into_value();
    assert_eq!(
        read("notes://first").await,
        json!({"contents": [{"uri": "notes://first", "mimeType": "text/plain", "text": "hello"}]})
    );
    assert_eq!(read("app://icon").await, json!({"contents": [{"uri": "app://icon", "blob": "AAE="}]}));
    assert_eq!(
        read("notes://a%20b/7").await,
        json!({"contents": [{"uri": "notes://a%20b/7", "mimeType": "application/json",
            "text": r#"["a b","7","tester"]"#}]})
    );
}

#[tokio::test]
async fn what_cannot_be_read_says_so_and_is_recorded_once() {
    let (host, records) = host().await;
    let session = host.session(Profile::new("tester")).unwrap();
    for (uri, outcome, denied, told) in [
        ("notes://nothing", Outcome::Denied, Some(Check::Scope), "no resource `notes://nothing` is known"),
        ("notes://a/x", Outcome::Denied, Some(Check::Arguments), "/number"),
        ("notes://a/300", Outcome::Denied, Some(Check::Arguments), "/number"),
        ("notes://a/0", Outcome::ToolError, None, "it is burnt"),
        ("notes://a/9", Outcome::ToolError, None, "there is no such resource"),
        ("notes://diary/a/b", Outcome::Denied, Some(Check::Approval), "needs a human's approval"),
    ] {
        let completed = read(&session, uri).await;
        assert_eq!((completed.outcome, completed.denied), (outcome, denied), "{uri}");
        assert!(completed.result.is_error() && completed.result.to_text().contains(told), "{completed:?}");
        let outcomes = records.take().into_iter().filter(|record| record.stage == Stage::Outcome);
        let outcomes: Vec<Record> = outcomes.collect();
        assert_eq!(outcomes.len(), 1, "{uri}");
        assert_eq!((outcomes[0].requested.as_str(), outcomes[0].outcome), (uri, Some(outcome)));
    }
    read(&session, "notes://a/1").await;
    let [intent, outcome] = <[Record; 2]>::try_from(records.take()).unwrap();
    assert_eq!((intent.stage, intent.tool.as_deref()), (Stage::Intent, Some("notes/note")));
    assert_eq!(intent.arguments.unwrap().get(), r#"{"folder":"a","number":1}"#);
    assert_eq!((outcome.outcome, outcome.call_id), (Some(Outcome::Ok), intent.call_id));
    let result: Value = serde_json::from_str(outcome.result.unwrap().get()).unwrap();
    assert_eq!(result["contents"][0]["uri"], "notes://a/1");
}

#[tokio::test]
async fn a_prompt_reads_text_as_what_it_takes() {
    let session = session().await;
    let summary = async |arguments: Value| get(&session, "notes/summary", arguments).await;
    let completed = summary(json!({"tone": "warm", "words": "5", "of": "1"})).await;
    assert_eq!(
        completed.result.into_value(),
        json!({"description": "Asks for a summary.", "messages": [
            {"role": "user", "content": {"type": "text", "text": "warm 5 Some(\"1\") hello"}},
            {"role": "assistant", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}},
        ]})
    );
    assert!(
        summary(json!({"tone": "dry"})).await.result.into_value()["messages"][0]
            .to_string()
            .contains("dry 3 None")
    );
    // Clients whose forms have all fields write those that were left empty, too.
    for nothing in ["", " ", "null"] {
        let told = summary(json!({"tone": "dry", "words": nothing, "of": nothing})).await.result.into_value();
        assert!(told["messages"][0].to_string().contains(&format!(r#"dry 3 Some(\"{nothing}\")"#)), "{told}");
    }
    for wrong in [
        json!({}),
        json!({"tone": "loud"}),
        json!({"tone": ""}),
        json!({"tone": "dry", "words": "9"}),
        json!({"tone": "dry", "x": "1"}),
    ] {
        assert_eq!(summary(wrong.clone()).await.denied, Some(Check::Arguments), "{wrong}");
    }
    let failed = get(&session, "app/failing", json!({})).await;
    assert_eq!((failed.outcome, failed.result.to_text().as_str()), (Outcome::ToolError, "out of ideas"));
}

#[tokio::test]
async fn what_scope_hides_is_unknown() {
    let (host, _) = host().await;
    let hidden =
        host.session(Profile::new("tester").deny(["notes/first", "*/summary"]).groups(["notes"])).unwrap();
    let view = hidden.view();
    let ids: Vec<&str> = view.resources().iter().map(|resource| resource.id().as_str()).collect();
    assert_eq!(ids, ["notes/note"]);
    assert!(view.prompts().is_empty());
    for (uri, other) in [
        ("notes://first", "notes://third"),
        ("app://icon", "app://none"),
        ("notes://diary/a/b", "notes://b/a/b"),
    ] {
        let (known, unknown) = (read(&hidden, uri).await, read(&hidden, other).await);
        assert_eq!((known.denied, unknown.denied), (Some(Check::Scope), Some(Check::Scope)));
        assert_eq!(known.result.to_text().replace(uri, ""), unknown.result.to_text().replace(other, ""));
    }
    // The diary's own template is hidden, so that its URI is any note's.
    assert!(read(&hidden, "notes://diary/1").await.result.to_text().is_empty());
    assert_eq!(get(&hidden, "notes/summary", json!({})).await.denied, Some(Check::Scope));
    assert_eq!(hidden.complete(Reference::Prompt("notes/summary"), "tone", ""), None);
    assert_eq!(hidden.complete(Reference::Resource("notes://diary/{+path}"), "path", ""), None);
}

#[tokio::test]
async fn arguments_are_completed() {
    let session = session().await;
    let values = |of, argument, typed| session.complete(of, argument, typed).unwrap();
    let summary = Reference::Prompt("notes/summary");
    assert_eq!(values(summary, "of", "no").values, ["note", "Novel"]);
    assert_eq!(values(summary, "tone", "").values, ["dry", "warm"]);
    assert_eq!(values(summary, "tone", "W").values, ["warm"]);
    assert!(
        values(summary, "words", "").values.is_empty() && values(summary, "nothing", "").values.is_empty()
    );
    let note = Reference::Resource("notes://{folder}/{number}");
    let folders = values(note, "folder", "fold");
    assert_eq!((folders.values.len(), folders.total, folders.has_more), (100, 201, true));
    assert_eq!(values(note, "folder", "o").values, ["o!", "other"]);
    assert_eq!(session.complete(Reference::Resource("notes://other/7"), "folder", ""), None);
    assert!(values(Reference::Prompt("app/broken"), "word", "").values.is_empty());
    // What is too long alone is left out, and the others as soon as they are too long together.
    let long = values(Reference::Prompt("app/wordy"), "word", "");
    let sizes: Vec<usize> = long.values.iter().map(String::len).collect();
    assert_eq!((sizes, long.total, long.has_more), (vec![30 << 10, 30 << 10], 5, true));
}

/// Is suggested what holds a secret.
#[mcp_prompt(tier = Standard, server = "leaky")]
fn leaking(#[arg(complete = ["is hunter2hunter2", "is hunter3", "hunter3 too"])] word: String) -> String {
    word
}

#[tokio::test]
async fn no_suggestion_says_a_secret() {
    let host = Host::builder().catalogue(catalogue![leaking::PROMPT]);
    let host = host.secrets(["hunter2hunter2", "hunter3hunter3"]).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    let suggested = session.complete(Reference::Prompt("leaky/leaking"), "word", "").unwrap();
    // The second is cut in pieces.
    assert_eq!(suggested.values, ["is [redacted]", "is [redacted]", "[redacted] too"]);
    assert_eq!((suggested.total, suggested.has_more), (3, false));
}

#[tokio::test]
async fn an_update_reaches_who_listens() {
    let (host, _) = host().await;
    let session = host.session(Profile::new("tester")).unwrap();
    let mut updates = host.resource_updates().subscribe();
    session.execute("notes/touch", JsonObject::new(), CallOptions::default()).await;
    host.resource_updated("app://icon");
    assert_eq!(&*updates.recv().await.unwrap(), "notes://first");
    assert_eq!(&*updates.recv().await.unwrap(), "app://icon");
}

struct Deny;

impl Hook for Deny {
    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        Box::pin(std::future::ready(Ok(match call.tool.id().tool() {
            "note" => Verdict::deny("not today"),
            _ => Verdict::go_on(),
        })))
    }
}

#[tokio::test]
async fn hooks_see_reads_as_calls() {
    let host = Host::builder().catalogue(CATALOGUE).hook(Arc::new(Deny));
    let host = host.with_server(Notes { first: String::new() }).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    assert_eq!(read(&session, "notes://a/1").await.denied, Some(Check::Hook));
    assert_eq!(read(&session, "notes://first").await.outcome, Outcome::Ok);
}

#[tokio::test]
async fn a_schema_of_ones_own_stays_as_it_is_and_is_kept() {
    let session = session().await;
    let view = session.view();
    let schema = view.tools()[0].input_schema().to_string();
    assert_eq!(schema, SCHEMA);
    let call = async |arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        session.execute("app/count", arguments, CallOptions::default()).await
    };
    assert_eq!(call(json!({"n": 1, "other": true})).await.result.to_text(), "n,other");
    assert_eq!(call(json!({"n": "x"})).await.denied, Some(Check::Arguments));
    let region = &view.tools()[1].input_schema()["properties"];
    assert_eq!(region["region"], json!({"type": "string", "x-mcp-header": "Region"}));
    assert_eq!(region["tries"]["x-mcp-header"], "Try-Count");
}

mod wrong {
    use super::*;

    const NO_SCHEMA: &str = "{";

    /// Has the URI of another.
    #[mcp_resource(uri = "notes://{a}/{b}", tier = Standard, server = "wrong")]
    pub(crate) fn same_uri(a: String, b: String) -> String {
        a + &b
    }

    /// Has no schema.
    #[mcp_tool(tier = Standard, server = "wrong", schema = NO_SCHEMA)]
    pub(crate) fn no_schema(arguments: JsonObject) {
        drop(arguments);
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_list_is_told_with_both_places() {
    // `catalogue!` would not compile with the first of them.
    const ENTRIES: &[Entry] =
        &[Notes::SERVER.entry(), wrong::same_uri::RESOURCE.entry(), wrong::no_schema::TOOL.entry()];
    let catalogue = NativeCatalogue { entries: ENTRIES, ..NativeCatalogue::EMPTY };
    let error = Host::builder().catalogue(catalogue).build().await.unwrap_err().to_string();
    let (place, line) = ("aster-runtime/tests/capabilities.rs:", |of: &str| {
        of.lines().filter(|line| line.contains("same_uri") || line.contains("no_schema")).count()
    });
    assert!(error.contains("2 problems") && line(&error) == 2, "{error}");
    assert!(error.contains("another resource has the URI `notes://{a}/{b}`: first at "), "{error}");
    assert_eq!(error.matches(place).count(), 2, "{error}");
    assert!(error.contains("not valid JSON Schema: it is not JSON: "), "{error}");
}

mod shelf {
    use aster_runtime::{mcp_prompt, mcp_resource, mcp_tool};

    /// A book.
    #[mcp_resource(uri = "shelf://{title}", tier = Standard, server = "shelf")]
    pub(super) fn book(title: String) -> String {
        title
    }

    /// Asks for a review.
    #[mcp_prompt(tier = Standard, server = "shelf")]
    pub(super) fn review() -> &'static str {
        "Review it."
    }

    /// Puts a book back.
    #[mcp_tool(tier = Standard, server = "shelf")]
    pub(super) fn put() {}
}

#[tokio::test]
async fn resources_and_prompts_are_raised_like_tools() {
    use shelf::{book, put, review};

    const RAISED: NativeCatalogue = catalogue![
        book::RESOURCE, review::PROMPT, put::TOOL;
        raise { book::RESOURCE => Restricted, review::PROMPT => Elevated, put::TOOL => Elevated }
    ];
    let catalogue = Host::builder().catalogue(RAISED).build().await.unwrap().catalogue();
    assert_eq!(catalogue.resources()[0].callable().tier(), Tier::Restricted);
    assert_eq!(catalogue.prompts()[0].callable().tier(), Tier::Elevated);
    assert_eq!(catalogue.tools()[0].tier(), Tier::Elevated);
}
