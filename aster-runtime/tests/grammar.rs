//! What the options of the attributes do, seen from a session.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use aster_runtime::audit::{AuditSink, Record};
use aster_runtime::{
    Audio, CallOptions, Host, IntoToolError, JsonObject, NativeCatalogue, Profile, Tier, ToolError, agent,
    catalogue, groups, mcp_server, mcp_tool,
};
use serde_json::{Value, json};

groups! { pub RESEARCH, pub DESKTOP }

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Selection {
    /// What they are called.
    names: Vec<String>,
    limit: Option<u8>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Links {
    start_url: String,
    #[serde(default)]
    others: Vec<url::Url>,
    /// Where they were found, which nobody visits.
    #[serde(default)]
    #[schemars(extend("x-egress" = false))]
    #[expect(dead_code, reason = "it is not visited")]
    source_url: String,
    /// What they are about.
    #[serde(default)]
    #[expect(dead_code, reason = "it is no URL")]
    title: String,
}

struct Gone;

impl IntoToolError for Gone {
    fn into_tool_error(self) -> ToolError {
        ToolError::new("the page is gone").with_code("gone").with_data(json!({"since": 2020}))
    }
}

/// Looks things up.
#[mcp_server(group = RESEARCH)]
mod web {
    use super::*;

    /// Looks a country up.
    #[mcp_tool(tier = Standard, alias = "land", title = "Country", idempotent, open_world = false)]
    pub(super) fn country(
        #[arg(pattern = "^[A-Z]{2}$", example = String::from("AT"))] code: String,
        #[arg(length(1..=2))] tags: Vec<String>,
        #[arg(length(..=3))] note: Option<String>,
    ) -> String {
        format!("{code} {} {note:?}", tags.join("+"))
    }

    /// Lists pages.
    #[mcp_tool(tier = Standard)]
    pub(super) fn list(#[arg(flatten)] selection: Selection) -> String {
        format!("{} {:?}", selection.names.join("+"), selection.limit)
    }

    /// Fetches a page.
    #[mcp_tool(tier = Standard, egress("example.com", "*.example.org"))]
    pub(super) fn fetch(page_url: String, #[arg(url = false)] template_url: Option<String>) -> String {
        format!("{page_url} {template_url:?}")
    }

    /// Follows links.
    #[mcp_tool(tier = Standard)]
    pub(super) fn follow(#[arg(flatten)] links: Links) -> String {
        format!("{} {}", links.start_url, links.others.len())
    }

    /// Fails.
    #[mcp_tool(tier = Standard, group = DESKTOP)]
    pub(super) fn fail() -> Result<(), Gone> {
        Err(Gone)
    }

    /// Logs in.
    #[mcp_tool(tier = Elevated)]
    pub(super) fn log_in(#[arg(secret)] password: String, #[arg(path)] file: String) -> String {
        format!("{password} {file}")
    }
}

/// Counts.
#[mcp_tool(tier = Standard, server = "free")]
fn count(
    a: u8,
    b: (u8, bool),
    c: BTreeMap<String, u8>,
    d: [u8; 2],
    e: Option<u8>,
    f: u8,
    g: u8,
    h: u8,
    i: u8,
    j: u8,
    k: u8,
    l: u8,
    m: u8,
    n: u8,
    o: u8,
    p: u8,
) -> u64 {
    let rest = [f, g, h, i, j, k, l, m, n, o, p].into_iter().map(u64::from).sum::<u64>();
    u64::from(a)
        + u64::from(b.0)
        + c.values().copied().map(u64::from).sum::<u64>()
        + u64::from(d[1] + e.unwrap_or(1))
        + rest
}

const CATALOGUE: NativeCatalogue = catalogue![
    web::SERVER, count::TOOL;
    groups { RESEARCH, DESKTOP };
    raise { web::Tool::Fail => Elevated, count::TOOL => Standard }
];

agent! {
    /// Looks things up.
    RESEARCHER = { groups: [RESEARCH], tools: [count::TOOL] }
    /// Does one thing.
    CLERK = { tools: [web::Tool::Country] }
}

#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl AuditSink for Kept {
    fn write(&self, record: &Record) -> std::io::Result<()> {
        self.0.lock().unwrap().push(serde_json::to_string(record)?);
        Ok(())
    }
}

async fn call(name: &str, arguments: Value) -> String {
    let host = Host::builder().catalogue(CATALOGUE).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    session.call(&json!({"action": "execute", "name": name, "arguments": arguments})).await.to_text()
}

#[tokio::test]
async fn bounds_of_texts_and_lists_hold() {
    assert_eq!(call("web/country", json!({"code": "AT", "tags": ["a"]})).await, "AT a None");
    assert_eq!(
        call("web/country", json!({"code": "AT", "tags": ["a"], "note": "äöü"})).await,
        r#"AT a Some("äöü")"#
    );
    for bad in [
        json!({"code": "Austria", "tags": ["a"]}),
        json!({"code": "AT", "tags": []}),
        json!({"code": "AT", "tags": ["a", "b", "c"]}),
        json!({"code": "AT", "tags": ["a"], "note": "long"}),
    ] {
        let told = call("web/country", bad.clone()).await;
        assert!(told.contains("do not fit the schema"), "{bad}: {told}");
    }
    assert_eq!(
        (web::Tool::Country.spec().input_schema)()["properties"],
        json!({
            "code": {"type": "string", "examples": ["AT"], "pattern": "^[A-Z]{2}$"},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            "note": {"type": "string", "maxLength": 3},
        })
    );
}

#[tokio::test]
async fn one_struct_may_be_all_arguments() {
    let schema = (web::Tool::List.spec().input_schema)();
    assert_eq!(schema["required"], json!(["names"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["names"]["description"], "What they are called.");
    assert_eq!(call("web/list", json!({"names": ["a", "b"], "limit": 2})).await, "a+b Some(2)");
    assert!(call("web/list", json!({"names": [], "depth": 2})).await.contains("do not fit the schema"));
}

#[tokio::test]
async fn an_old_name_arrives_and_its_rules_hold() {
    assert_eq!(call("web/land", json!({"code": "AT", "tags": ["a"]})).await, "AT a None");
    let host = Host::builder().catalogue(CATALOGUE).build().await.unwrap();
    let seen = |profile: Profile| {
        let session = host.session(profile).unwrap();
        session.injection().is_some_and(|injection| injection.prompt.contains("country"))
    };
    assert!(seen(Profile::new("tester").allow(["web/land"])));
    assert!(!seen(Profile::new("tester").deny(["web/land"])));
}

#[tokio::test]
async fn urls_stay_with_the_hosts_of_the_tool() {
    assert_eq!(web::Tool::Fetch.spec().url_arguments, ["page_url"]);
    for (url, arrives) in [
        ("https://example.com/a", true),
        ("https://a.example.org/", true),
        ("https://example.org/", false),
        ("https://notexample.com/", false),
        ("http://127.0.0.1/", false),
    ] {
        let told =
            call("web/fetch", json!({"page_url": url, "template_url": "http://169.254.169.254/"})).await;
        assert_eq!(told.starts_with(url), arrives, "{url}: {told}");
    }
}

/// The macro does not see the fields of a struct; its schema has them.
#[tokio::test]
async fn urls_among_the_fields_of_a_flattened_struct_are_under_egress() {
    let inside = "http://169.254.169.254/";
    let good = json!({"start_url": "https://example.com/", "others": ["https://example.org/"], "title": inside, "source_url": inside});
    assert_eq!(call("web/follow", good).await, "https://example.com/ 1");
    for (field, bad) in [
        ("start_url", json!({"start_url": inside})),
        ("others", json!({"start_url": "https://example.com/", "others": ["https://example.com/", inside]})),
    ] {
        let told = call("web/follow", bad).await;
        assert!(told.starts_with(&format!("argument `{field}`: ")), "{told}");
    }
}

type Id = String;

/// Takes an alias that hides what it is.
#[mcp_tool(tier = Standard, server = "wrong")]
fn hidden(#[arg(flatten)] id: Id) {
    let _ = id;
}

#[tokio::test]
async fn what_cannot_be_flattened_keeps_a_host_from_starting() {
    const WRONG: NativeCatalogue = catalogue![hidden::TOOL];
    let told = Host::builder().catalogue(WRONG).build().await.unwrap_err().to_string();
    assert!(
        told.contains("wrong/hidden") && told.contains("`alloc::string::String` is flattened, but"),
        "{told}"
    );
}

/// Greets.
#[mcp_tool(tier = Standard, server = "free")]
fn greet(
    #[arg(default = "hello", example = "servus", length(1..))] word: String,
    #[arg(default = "world")] whom: Option<String>,
    #[arg(default = "notes.txt")] file: std::path::PathBuf,
    #[arg(default = "!")] end: std::borrow::Cow<'static, str>,
) -> String {
    format!("{word}, {}{end} {}", whom.unwrap_or_default(), file.display())
}

#[tokio::test]
async fn a_literal_text_is_the_default_of_whatever_owns_a_text() {
    let host = Host::builder().catalogue(catalogue![greet::TOOL]).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    let greet = async |arguments| {
        session
            .call(&json!({"action": "execute", "name": "free/greet", "arguments": arguments}))
            .await
            .to_text()
    };
    assert_eq!(greet(json!({})).await, "hello, world! notes.txt");
    assert_eq!(greet(json!({"word": "servus", "end": "?"})).await, "servus, world? notes.txt");
    let schema = (greet::TOOL.input_schema)();
    assert_eq!(
        schema["properties"]["word"],
        json!({"type": "string", "default": "hello", "examples": ["servus"], "minLength": 1})
    );
    assert_eq!(schema["properties"]["whom"]["default"], "world");
    assert_eq!(schema.get("required"), None);
}

#[tokio::test]
async fn an_error_may_have_a_code_and_data() {
    let host = Host::builder().catalogue(CATALOGUE).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    let result = session.call(&json!({"action": "execute", "name": "web/fail"})).await;
    let error = json!({"error": {"message": "the page is gone", "code": "gone", "data": {"since": 2020}}});
    assert!(result.is_error() && result.structured_content() == Some(&error), "{result:?}");
}

#[tokio::test]
async fn a_secret_is_in_no_record() {
    assert_eq!(web::Tool::LogIn.spec().path_arguments, ["file"]);
    let kept = Arc::new(Kept::default());
    let host = Host::builder().catalogue(CATALOGUE).audit(kept.clone()).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    for password in ["hunter2", "correct horse battery"] {
        let arguments = json!({"password": password, "file": "/etc/hosts"});
        let told =
            session.call(&json!({"action": "execute", "name": "web/log_in", "arguments": arguments})).await;
        assert_eq!(told.to_text(), format!("{password} /etc/hosts"));
    }
    let records = kept.0.lock().unwrap().join("\n");
    assert!(records.contains("/etc/hosts") && records.contains(r#""password":"[redacted]""#), "{records}");
    assert!(!records.contains("correct horse"), "{records}");
    // A result that repeats a short one cannot be told from other words; the argument itself is never shown.
    assert!(!records.contains(r#""password":"hunter2""#), "{records}");
}

#[tokio::test]
async fn sixteen_arguments_of_many_types() {
    let mut arguments = json!({"a": 1, "b": [1, true], "c": {"x": 1}, "d": [0, 1]});
    for name in ["f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"] {
        arguments[name] = json!(1);
    }
    assert_eq!(call("free/count", arguments).await, "16");
}

#[tokio::test]
async fn tiers_are_those_of_the_static_map_unless_raised() {
    for (tool, tier) in [(web::Tool::Country, Tier::Standard), (web::Tool::LogIn, Tier::Elevated)] {
        assert_eq!((web::TIERS[tool as usize], tool.spec().tier), (tier, tier));
        assert_eq!(web::GROUPS[tool as usize], "research");
    }
    assert_eq!(web::TIERS[web::Tool::Fail as usize], Tier::Standard);
    let kept = Arc::new(Kept::default());
    let host = Host::builder().catalogue(CATALOGUE).audit(kept.clone()).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    session.call(&json!({"action": "execute", "name": "web/fail"})).await;
    assert!(kept.0.lock().unwrap()[0].contains(r#""tier":"elevated""#));
}

#[tokio::test]
async fn an_agent_sees_its_groups_and_its_tools() {
    let host = Host::builder().catalogue(CATALOGUE).build().await.unwrap();
    let tools = |profile: Profile| -> Vec<String> {
        let inventory = host.session(profile).unwrap().injection().unwrap().inventory;
        let servers = inventory.servers.into_iter();
        servers.flat_map(|server| server.tools).map(|tool| tool.name).collect()
    };
    let researcher = tools(RESEARCHER.profile());
    assert_eq!(researcher.len(), 6, "{researcher:?}");
    assert!(researcher.iter().all(|name| !name.contains("fail")));
    assert_eq!(tools(CLERK.profile()).len(), 1);
}

/// Says it aloud.
#[mcp_tool(tier = Standard, server = "voice")]
fn say() -> Result<Audio, ToolError> {
    Ok(Audio::new("audio/wav", *b"RIFF\xff"))
}

#[tokio::test]
async fn a_sound_is_one_block_of_its_type_in_base64() {
    assert_eq!((say::TOOL.output_schema)(), None);
    let host = Host::builder().catalogue(catalogue![say::TOOL]).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    let said = session.execute("voice/say", JsonObject::new(), CallOptions::default()).await;
    let block = json!({"type": "audio", "data": "UklGRv8=", "mimeType": "audio/wav"});
    assert_eq!(said.result.into_value(), json!({ "content": [block] }));
}

/// Draws.
#[mcp_server(instructions = "Draw before you read.", title = "Studio")]
mod studio {
    use aster_runtime::{Image, Resource};

    /// Draws a dot.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(super) fn draw() -> Image {
        Image::new("image/png", *b"\x89PNG")
    }

    /// Reads the plan.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(super) fn plan() -> Resource {
        Resource::text("studio://plan", "text/plain", "A dot.")
    }
}

#[tokio::test]
async fn an_image_and_a_resource_are_one_block_each() {
    assert_eq!((studio::Tool::Draw.spec().output_schema)(), None);
    let host = Host::builder().catalogue(catalogue![studio::SERVER]).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    let image = json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"});
    let plan = json!({"uri": "studio://plan", "mimeType": "text/plain", "text": "A dot."});
    let plan = json!({"type": "resource", "resource": plan});
    for (id, block) in [("studio/draw", image), ("studio/plan", plan)] {
        let given = session.execute(id, JsonObject::new(), CallOptions::default()).await;
        assert_eq!(given.result.into_value(), json!({ "content": [block] }), "{id}");
    }
}

#[tokio::test]
async fn a_server_has_its_title_and_its_instructions() {
    let host = Host::builder().catalogue(catalogue![studio::SERVER, count::TOOL]).build().await.unwrap();
    let catalogue = host.catalogue();
    let server = |name| catalogue.servers().iter().find(|server| &*server.name == name).unwrap();
    assert_eq!(server("studio").instructions.as_deref(), Some("Draw before you read."));
    assert_eq!(server("studio").title.as_deref(), Some("Studio"));
    assert_eq!((&server("free").instructions, &server("free").title), (&None, &None));
}

#[test]
fn every_text_that_is_called_url_stands_under_egress() {
    use std::borrow::Cow;
    use std::collections::{BTreeSet, VecDeque};

    /// Opens pages.
    #[mcp_tool(tier = Standard, server = "pages")]
    fn open(
        a_url: Cow<'static, str>,
        b_url: Option<Cow<'static, str>>,
        c_url: Box<str>,
        d_urls: Vec<Option<Arc<str>>>,
        e_urls: BTreeSet<String>,
        f_urls: VecDeque<String>,
        url_of_nothing: Box<str>,
        lines_of_url: u32,
    ) {
        let _ = (a_url, b_url, c_url, d_urls, e_urls, f_urls, url_of_nothing, lines_of_url);
    }
    assert_eq!(open::TOOL.url_arguments, ["a_url", "b_url", "c_url", "d_urls", "e_urls", "f_urls"]);
    let schema = (open::TOOL.input_schema)();
    for pointer in ["/a_url", "/b_url", "/c_url", "/e_urls/items", "/f_urls/items"] {
        let format = schema.pointer(&format!("/properties{pointer}/format"));
        assert_eq!(format, Some(&json!("uri")), "{pointer} in {schema}");
    }
}

#[test]
fn a_whole_number_bounds_a_fraction() {
    /// Mixes.
    #[mcp_tool(tier = Standard, server = "paint")]
    fn mix(#[arg(range(0..=1))] share: f64, #[arg(range(-1..))] shift: Option<f32>) -> f64 {
        share + f64::from(shift.unwrap_or_default())
    }
    let schema = (mix::TOOL.input_schema)();
    assert_eq!(schema["properties"]["share"]["maximum"], json!(1.0));
    assert_eq!(schema["properties"]["shift"]["minimum"], json!(-1.0));
}

/// A hot tool stands before the servers with its parameters, so that a model can call it unasked.
#[tokio::test]
async fn a_hot_tool_is_at_hand() {
    /// Notes a line.
    #[mcp_tool(tier = Standard, server = "pad", hot)]
    fn jot(
        /// What to note.
        line: String,
    ) -> String {
        line
    }

    /// Shows all lines.
    #[mcp_tool(tier = Standard, server = "pad")]
    fn lines() -> String {
        String::new()
    }

    let catalogue = catalogue![jot::TOOL, lines::TOOL];
    let host = Host::builder().catalogue(catalogue).build().await.unwrap();
    let prompt = host.session(Profile::new("writer")).unwrap().injection().unwrap().prompt;
    let at_hand = prompt.split_once("## At hand\n").and_then(|(_, rest)| rest.split_once("## Servers"));
    let (hot, others) = at_hand.unwrap_or_else(|| panic!("{prompt}"));
    assert!(hot.contains("jot(line: string)") && !hot.contains("lines"), "{prompt}");
    assert!(!others.contains("jot"), "what is at hand is not repeated: {prompt}");
}
