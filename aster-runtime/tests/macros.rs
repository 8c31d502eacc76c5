//! The macros from end to end: annotate, list, describe, call.

use std::sync::Arc;

use aster_runtime::{
    Invocation, Json, NativeCatalogue, Profile, ServerSpec, Session, Tier, ToolContext, ToolError,
    ToolResult, ToolSpec, catalogue, groups, mcp_server, mcp_tool,
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
    server.tools.iter().find(|tool| tool.name == name).unwrap()
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
    assert_eq!(Web::GROUPS, ["research", "desktop", "research"]);
    assert_eq!(clock::GROUPS[clock::Tool::Seconds as usize], "clock");
    assert_eq!(CATALOGUE.entries.len(), 3);
}
