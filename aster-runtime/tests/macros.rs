//! The macros from end to end: annotate, list, describe, call.

use std::sync::Arc;

use aster_runtime::{
    Invocation, Json, McpServer, NativeCatalogue, NativeServer, Profile, ServerEnv, ServerSpec, Session,
    StartError, Tier, ToolContext, ToolError, ToolResult, ToolSpec, catalogue, groups, mcp_server, mcp_tool,
};
use serde_json::{Value, json};

groups! {
    /// Finding things out.
    pub RESEARCH,
    pub DESKTOP,
}

/// Adds two whole numbers.
#[mcp_tool(tier = Standard)]
fn add(
    /// The first summand.
    a: i64,
    /// The second summand.
    b: i64,
) -> i64 {
    a + b
}

struct Web {
    prefix: String,
}

#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
struct Hit {
    title: String,
}

/// Looks things up.
#[mcp_server(group = RESEARCH, title = "The web")]
impl Web {
    /// Searches the web.
    ///
    /// Use it when no URL is known.
    #[mcp_tool(tier = Elevated, read_only, destructive = false, timeout = "30s")]
    async fn search(
        &self,
        ctx: &ToolContext,
        /// What to look for.
        query: String,
        /// How many.
        #[arg(default = 5, range(1..=20))]
        limit: u8,
        since: Option<String>,
    ) -> Result<Json<Vec<Hit>>, std::io::Error> {
        if query == "fail" {
            return Err(std::io::Error::other("no network"));
        }
        let title = format!("{}{query} {limit} {since:?} for {}", self.prefix, ctx.session().agent());
        Ok(Json(vec![Hit { title }]))
    }

    /// Reads a page.
    #[mcp_tool(tier = Restricted, group = DESKTOP, name = "get", hot)]
    fn fetch(&self, #[arg(url, name = "address")] page: String) -> String {
        format!("{}{page}", self.prefix)
    }

    /// Names the version.
    #[mcp_tool(tier = Standard)]
    fn version() -> &'static str {
        Self::VERSION
    }

    /// Shows the prefix.
    #[mcp_tool(tier = Standard)]
    fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Shows the prefix, or fails with it.
    #[mcp_tool(tier = Standard)]
    async fn prefix_or_failure<'a>(&'a self, fail: bool) -> Result<std::borrow::Cow<'a, str>, &'a str> {
        if fail { Err(&self.prefix) } else { Ok((&*self.prefix).into()) }
    }

    const VERSION: &'static str = "1";
}

#[mcp_server]
mod clock {
    //! Tells the time.

    use aster_runtime::mcp_tool;

    /// Tells the number of seconds in so many days.
    #[mcp_tool(tier = Standard)]
    pub(super) fn seconds(days: u32) -> u32 {
        days * DAY
    }

    const DAY: u32 = 86_400;
}

const CATALOGUE: NativeCatalogue = catalogue![add::TOOL, Web::SERVER, clock::SERVER];

fn tool(server: &'static ServerSpec, name: &str) -> &'static ToolSpec {
    let tool = server.tools.iter().find(|tool| tool.name == name);
    tool.unwrap_or_else(|| panic!("there is no tool `{name}`"))
}

async fn call(
    tool: &ToolSpec,
    state: impl Send + Sync + 'static,
    arguments: Value,
) -> Result<ToolResult, ToolError> {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let context = ToolContext::new(Arc::new(Session::new(Profile::new("tester"))), "1");
    (tool.call)(Invocation { state: Arc::new(state), context, arguments }).await
}

#[tokio::test]
async fn a_function_is_still_a_function_and_a_tool() {
    assert_eq!(add(1, 2), 3);
    assert_eq!(add::TOOL.server, "aster_runtime");
    assert_eq!(add::TOOL.description, "Adds two whole numbers.");
    let result = call(add::TOOL, (), json!({"a": 1, "b": 2})).await.unwrap();
    assert_eq!(result.to_text(), "3");
    assert_eq!(
        (add::TOOL.input_schema)(),
        json!({
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first summand."},
                "b": {"type": "integer", "description": "The second summand."},
            },
            "required": ["a", "b"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn a_server_runs_on_its_state() {
    let web = || Web { prefix: "> ".to_owned() };
    let result = call(tool(Web::SERVER, "search"), web(), json!({"query": "x"})).await.unwrap();
    assert_eq!(result.structured_content(), Some(&json!({"result": [{"title": "> x 5 None for tester"}]})));
    let error = call(tool(Web::SERVER, "search"), web(), json!({"query": "fail"})).await.unwrap_err();
    assert_eq!(error.message(), "no network");
    let result = call(tool(Web::SERVER, "get"), web(), json!({"address": "y"})).await.unwrap();
    assert_eq!(result.to_text(), "> y");
    assert_eq!(call(tool(Web::SERVER, "version"), web(), json!({})).await.unwrap().to_text(), "1");
    assert_eq!(call(tool(Web::SERVER, "prefix"), web(), json!({})).await.unwrap().to_text(), "> ");
    let either = tool(Web::SERVER, "prefix_or_failure");
    assert_eq!(call(either, web(), json!({"fail": false})).await.unwrap().to_text(), "> ");
    assert_eq!(call(either, web(), json!({"fail": true})).await.unwrap_err().message(), "> ");
    let result = call(tool(clock::SERVER, "seconds"), (), json!({"days": 2})).await.unwrap();
    assert_eq!(result.to_text(), "172800");
}

#[test]
fn the_constants_say_what_was_written() {
    let server = Web::SERVER;
    assert_eq!((server.name, server.title, server.description), ("web", Some("The web"), "Looks things up."));
    assert_eq!(clock::SERVER.description, "Tells the time.");
    let search = tool(server, "search");
    assert_eq!(search.description, "Searches the web.\n\nUse it when no URL is known.");
    assert_eq!(search.annotations.read_only, Some(true));
    assert_eq!(search.annotations.destructive, Some(false));
    assert_eq!(search.annotations.open_world, None);
    assert_eq!(search.timeout, Some(std::time::Duration::from_secs(30)));
    assert!(search.location.file.ends_with("macros.rs") && search.location.line > server.location.line);
    assert_eq!(tool(server, "get").url_arguments, ["address"]);
    assert_eq!(Web::TIERS[WebTool::Search as usize], Tier::Elevated);
    assert_eq!(Web::GROUPS, ["research", "desktop", "research", "research", "research"]);
    assert_eq!(clock::GROUPS[clock::Tool::Seconds as usize], "clock");
    assert_eq!(CATALOGUE.entries.len(), 3);
}

/// The arguments of `search` and what the call answers when they are wrong.
async fn refused(arguments: Value) -> String {
    let web = Web { prefix: String::new() };
    let Err(error) = call(tool(Web::SERVER, "search"), web, arguments).await else {
        panic!("it was accepted")
    };
    assert_eq!(error.code(), Some("invalid_arguments"));
    error.message().to_owned()
}

#[tokio::test]
async fn all_wrong_arguments_are_told_at_once_and_without_their_values() {
    assert_eq!(
        refused(json!({"limit": 21, "since": ["hunter2"], "qery": "hunter2"})).await,
        "the arguments are not right: `query` is missing; `limit` must be from 1 to 20; `since`: expected a string, \
         found an array; there is no argument `qery`"
    );
    assert_eq!(
        refused(json!({"query": "x", "limit": "hunter2"})).await,
        "the arguments are not right: `limit`: expected u8, found a string"
    );
}

#[tokio::test]
async fn null_is_no_argument() {
    let web = Web { prefix: String::new() };
    let result =
        call(tool(Web::SERVER, "search"), web, json!({"query": "x", "limit": null, "since": null})).await;
    assert!(result.unwrap().to_text().contains("x 5 None"));
    assert_eq!(
        refused(json!({"query": null})).await,
        "the arguments are not right: `query`: expected a string, found null"
    );
}

#[tokio::test]
async fn a_wrong_state_is_an_error_and_no_panic() {
    let error = call(tool(Web::SERVER, "get"), (), json!({"address": "y"})).await.unwrap_err();
    assert!(error.message().contains("the server runs on another state than `Web`"), "{error}");
}

struct Own(u8);

impl McpServer for Own {
    async fn start(_: &ServerEnv) -> Result<Self, StartError> {
        Ok(Self(7))
    }
}

#[mcp_server]
impl Own {
    /// Tells its number.
    #[mcp_tool(tier = Standard)]
    async fn number(&self) -> u8 {
        self.0
    }

    /// Fails as no tool should.
    #[mcp_tool(tier = Standard)]
    fn panics() {
        panic!("on purpose")
    }

    /// Names its thread.
    #[mcp_tool(tier = Standard)]
    fn thread() -> String {
        format!("{:?}", std::thread::current().id())
    }
}

#[tokio::test]
async fn a_server_starts_itself_or_says_how_to_hand_it_in() {
    let state = (Own::SERVER.start)(ServerEnv::default()).await.unwrap();
    let state = state.downcast::<Own>().unwrap();
    assert_eq!(call(tool(Own::SERVER, "number"), Own(state.0), json!({})).await.unwrap().to_text(), "7");

    let error = (Web::SERVER.start)(ServerEnv::default()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "it has no state to run on: hand the server in with `HostBuilder::with_server`, or implement `McpServer` for \
         `Web`"
    );
    assert!((clock::SERVER.start)(ServerEnv::default()).await.unwrap().is::<()>());
    assert_eq!(<Web as NativeServer>::SPEC.name, "web");
}

#[tokio::test]
async fn a_plain_function_runs_on_another_thread_and_its_panic_arrives() {
    let here = format!("{:?}", std::thread::current().id());
    let there = call(tool(Own::SERVER, "thread"), Own(0), json!({})).await.unwrap().to_text();
    assert_ne!(here, there);

    let panicking = tokio::spawn(call(tool(Own::SERVER, "panics"), Own(0), json!({})));
    assert!(panicking.await.unwrap_err().is_panic());
}

type Maybe = Option<u8>;

/// Tells what may be left out.
#[mcp_tool(tier = Standard, server = "free", title = "Optional things")]
async fn optional(
    hidden: Maybe,
    #[arg(default = vec!["a".to_owned()])] list: Vec<String>,
    #[arg(range(0.5..))] ratio: Option<f64>,
    required: Value,
) -> String {
    format!("{hidden:?} {list:?} {ratio:?} {required}")
}

#[tokio::test]
async fn what_is_required_is_decided_by_the_type() {
    let schema = (optional::TOOL.input_schema)();
    assert_eq!(schema["required"], json!(["required"]));
    assert_eq!(schema["properties"]["list"]["default"], json!(["a"]));
    assert_eq!(schema["properties"]["ratio"], json!({"type": "number", "minimum": 0.5}));
    assert_eq!(schema["properties"]["required"], json!({}));
    let result = call(optional::TOOL, (), json!({"required": {"x": 1}})).await.unwrap();
    assert_eq!(result.to_text(), r#"None ["a"] None {"x":1}"#);
    assert!(call(optional::TOOL, (), json!({"required": 1, "ratio": 0.4})).await.is_err());
}

#[cfg(feature = "inventory")]
#[test]
fn the_inventory_has_everything_in_order() {
    let names: Vec<(&str, usize)> = NativeCatalogue::registered()
        .entries
        .iter()
        .map(|entry| (entry.server(), entry.tools().len()))
        .collect();
    assert_eq!(names, [("aster_runtime", 1), ("clock", 1), ("free", 1), ("own", 3), ("web", 5)]);
}
