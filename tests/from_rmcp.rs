//! A server that was written with the official SDK's macros is mounted as it is, and its calls pass the gate.

use std::time::Duration;

use aster_runtime::call::{Check, Outcome};
use aster_runtime::catalogue::{ExternalSettings, Health};
use aster_runtime::dispatch::Upstream;
use aster_runtime::gate::rules::{Action, Rule, Rules};
use aster_runtime::serve::{self, Shape};
use aster_runtime::testing::{Answer, TestHost};
use aster_runtime::upstream::MountedServer;
use aster_runtime::{CallOptions, Host, HostBuilder, Profile, Tier, groups};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, Prompt, PromptArgument, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, Role, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, ServiceExt as _, tool, tool_router};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Clone)]
struct Calculator;

#[tool_router(server_handler)]
impl Calculator {
    #[tool(description = "Adds two whole numbers.", annotations(read_only_hint = true))]
    fn add(&self, Parameters(Sum { a, b }): Parameters<Sum>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Forgets everything.", annotations(destructive_hint = true))]
    fn forget(&self) -> Result<String, ErrorData> {
        Err(ErrorData::internal_error("there is nothing to forget", None))
    }

    #[tool(description = "Says that its list of tools has changed.")]
    async fn change(&self, peer: Peer<RoleServer>) -> String {
        peer.notify_tool_list_changed().await.map_or_else(|error| error.to_string(), |()| "told".to_owned())
    }
}

groups! { ARITHMETIC, READING }

async fn host(settings: ExternalSettings, answers: impl IntoIterator<Item = Answer>) -> TestHost {
    let builder = Host::builder().with_upstream(MountedServer::mount("calculator", Calculator, settings));
    let host = TestHost::start(builder, Profile::new("agent"), answers).await;
    assert!(host.host().settle(Duration::from_secs(20)).await);
    host
}

#[tokio::test]
async fn its_tools_stand_in_the_catalogue_and_are_called_through_the_gate() {
    let host = host(ExternalSettings::default(), [Answer::Deny("never"), Answer::Approve]).await;
    let catalogue = host.host().catalogue();
    let tiers: Vec<_> = catalogue.tools().iter().map(|tool| (tool.id().as_str(), tool.tier())).collect();
    assert_eq!(
        tiers,
        [
            ("calculator/add", Tier::Elevated),
            ("calculator/change", Tier::Elevated),
            ("calculator/forget", Tier::Restricted)
        ]
    );
    assert!(host.session().injection().unwrap().prompt.contains("- calculator/add: Adds two whole numbers."));

    let added = host.call("calculator/add", json!({"a": 2, "b": 3})).await;
    assert_eq!((added.outcome, added.result.to_text().as_str()), (Outcome::Ok, "5"));
    let wrong = host.call("calculator/add", json!({"a": 2})).await;
    assert_eq!(wrong.denied, Some(Check::Arguments));
    assert_eq!(host.call("calculator/forget", json!({})).await.denied, Some(Check::Approval));
    let failed = host.call("calculator/forget", json!({})).await;
    assert!(failed.result.to_text().contains("there is nothing to forget"), "{}", failed.result.to_text());
    assert_eq!(host.audit().outcomes(), [Outcome::Ok, Outcome::Denied, Outcome::Denied, Outcome::ToolError]);
}

#[tokio::test]
async fn the_host_says_what_its_tiers_are() {
    let settings = ExternalSettings::default()
        .tier(Tier::Standard)
        .tier_of("ch*", Tier::Elevated)
        .unwrap()
        .group(ARITHMETIC);
    let host = host(settings, []).await;
    let catalogue = host.host().catalogue();
    let said: Vec<_> =
        catalogue.tools().iter().map(|tool| (tool.tier(), tool.group(), tool.is_native())).collect();
    // What it says of itself tightens all the same.
    assert_eq!(
        said,
        [Tier::Standard, Tier::Elevated, Tier::Restricted].map(|tier| (tier, "arithmetic", true))
    );
    assert!(catalogue.servers()[0].native);
    assert_eq!(host.call("calculator/change", json!({})).await.result.to_text(), "told");
}

#[tokio::test]
async fn one_that_was_closed_says_so() {
    let server = MountedServer::mount("calculator", Calculator, ExternalSettings::default());
    let upstream: std::sync::Arc<dyn Upstream> = server.clone();
    let host = TestHost::start(Host::builder().with_upstream(upstream), Profile::new("agent"), []).await;
    host.host().settle(Duration::from_secs(20)).await;
    server.close().await;
    let Health::Down(reason) = server.listing().borrow().health.clone() else { panic!("it is not down") };
    assert_eq!(reason, "it has been closed");
    let called = host.call("calculator/add", json!({"a": 2, "b": 3})).await;
    assert_eq!(called.outcome, Outcome::Failed);
    assert!(called.result.to_text().contains("it has been closed"), "{}", called.result.to_text());
}

/// Of another implementation of the handler than the macros': it cannot even be initialised.
struct Broken;

impl ServerHandler for Broken {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::default())
    }

    async fn initialize(
        &self,
        _: rmcp::model::InitializeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::InitializeResult, ErrorData> {
        Err(ErrorData::internal_error("the licence has run out", None))
    }
}

#[tokio::test]
async fn one_that_cannot_start_costs_itself_alone() {
    let builder = Host::builder()
        .with_upstream(MountedServer::mount("broken", Broken, ExternalSettings::default()))
        .with_upstream(MountedServer::mount("calculator", Calculator, ExternalSettings::default()));
    let host = TestHost::start(builder, Profile::new("agent"), []).await;
    assert!(host.host().settle(Duration::from_secs(20)).await);
    let catalogue = host.host().catalogue();
    let health = &catalogue.servers().iter().find(|server| server.name == "broken").unwrap().health;
    assert!(health.to_string().contains("the licence has run out"), "{health}");
    assert_eq!(host.call("calculator/add", json!({"a": 2, "b": 3})).await.result.to_text(), "5");
}

/// All that a handler can offer, written without the macros.
struct Library;

/// `Resource` and `Prompt` as the SDK's macros would list them.
impl ServerHandler for Library {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![rmcp::model::Tool::new("rules", "Tells the rules.", schema)]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("be quiet")]).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let opening = Resource::new("library://hours", "hours").with_mime_type("text/plain");
        // A tool has that name already.
        let rules = Resource::new("library://rules", "rules");
        Ok(ListResourcesResult::with_all_items(vec![opening, rules, Resource::new("no uri", "broken")]))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let book = ResourceTemplate::new("library://books/{title}", "book");
        Ok(ListResourceTemplatesResult::with_all_items(vec![book]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri.ends_with("/lost") {
            return Err(ErrorData::resource_not_found("it is lost", None));
        }
        let text = format!("read at {}", request.uri);
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = vec![
            PromptArgument::new("book").with_description("Which one.").with_required(true),
            PromptArgument::new("words"),
        ];
        let prompt = Prompt::new("summary", Some("Sums up a book."), Some(arguments));
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = serde_json::Value::Object(request.arguments.unwrap_or_default());
        let message = PromptMessage::new_text(Role::User, format!("Sum up {arguments}."));
        Ok(GetPromptResult::new(vec![message]).with_description("As asked.").into())
    }
}

async fn library(builder: HostBuilder, settings: ExternalSettings) -> TestHost {
    let builder = builder.with_upstream(MountedServer::mount("library", Library, settings));
    let host = TestHost::start(builder, Profile::new("reader").groups(["reading"]), []).await;
    assert!(host.host().settle(Duration::from_secs(20)).await);
    host
}

#[tokio::test]
async fn its_resources_and_prompts_are_read_through_the_gate_as_well() {
    let settings = ExternalSettings::default().group(READING).tier_of("book", Tier::Restricted).unwrap();
    let host = library(Host::builder(), settings).await;
    let (session, catalogue) = (host.session(), host.host().catalogue());
    let ids: Vec<_> = catalogue.resources().iter().map(|resource| resource.id().as_str()).collect();
    assert_eq!(ids, ["library/book", "library/hours", "library/library://rules"]);
    let problems: Vec<String> = catalogue.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["library/broken: the URI cannot be used: it does not begin with a scheme"]);

    let hours = session.read_resource("library://hours", CallOptions::default()).await;
    assert_eq!(
        hours.result.into_value()["contents"][0],
        json!({"uri": "library://hours", "mimeType": "text/plain", "text": "read at library://hours"})
    );
    // The tier that was declared for it, and nobody to approve.
    let book = session.read_resource("library://books/a%20b", CallOptions::default()).await;
    assert_eq!(book.denied, Some(Check::Approval));

    let arguments = json!({"book": "Emma"}).as_object().cloned().unwrap_or_default();
    let summary = session.get_prompt("library/summary", arguments, CallOptions::default()).await;
    let value = summary.result.into_value();
    assert_eq!(value["description"], "As asked.");
    assert_eq!(value["messages"][0]["content"]["text"], r#"Sum up {"book":"Emma"}."#);
    let nameless =
        session.get_prompt("library/summary", serde_json::Map::new(), CallOptions::default()).await;
    assert_eq!(nameless.denied, Some(Check::Arguments));
    let outcomes = [Outcome::Ok, Outcome::Denied, Outcome::Ok, Outcome::Denied];
    assert_eq!(host.audit().outcomes(), outcomes);

    // It is native: what is said of others is not said of it.
    let rules = |native| Rules::new([Rule::new(Action::Deny, "a rule").native(native)]);
    for (native, denied) in [(false, None), (true, Some(Check::Scope))] {
        let settings = ExternalSettings::default().group(READING);
        let host = library(Host::builder().rules(rules(native)), settings).await;
        let hours = host.session().read_resource("library://hours", CallOptions::default()).await;
        assert_eq!(hours.denied, denied, "{native}");
    }
}

#[tokio::test]
async fn clients_find_all_of_it() {
    let server = MountedServer::mount("library", Library, ExternalSettings::default());
    let host = Host::builder().with_upstream(server).build().await.unwrap();
    // Not settled: what it has is offered when it has started.
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let stop = CancellationToken::new();
    let shape = Shape::Server("library".to_owned());
    let serving =
        serve::over(tokio::io::split(theirs), host.clone(), Profile::new("a client"), shape, stop.clone());
    let serving = tokio::spawn(serving);
    let client = ().serve(tokio::io::split(ours)).await.unwrap();
    assert!(host.settle(Duration::from_secs(20)).await);

    let resources = client.list_all_resources().await.unwrap();
    let uris: Vec<_> =
        resources.iter().map(|resource| (resource.uri.as_str(), resource.name.as_str())).collect();
    assert_eq!(uris, [("library://hours", "hours"), ("library://rules", "rules")]);
    let templates = client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "library://books/{title}");
    let prompts = client.list_all_prompts().await.unwrap();
    assert_eq!((prompts[0].name.as_str(), prompts[0].arguments.as_ref().map(Vec::len)), ("summary", Some(2)));

    let book =
        client.read_resource(ReadResourceRequestParams::new("library://books/a%20b%2Fc")).await.unwrap();
    let text = serde_json::to_value(&book.contents[0]).unwrap()["text"].clone();
    assert_eq!(text, "read at library://books/a%20b%2Fc");
    let lost =
        client.read_resource(ReadResourceRequestParams::new("library://books/lost")).await.unwrap_err();
    assert!(lost.to_string().contains("no resource `library://books/lost` is known"), "{lost}");
    client.cancel().await.unwrap();
    stop.cancel();
    serving.await.unwrap().unwrap();
}
