//! A server that was written with the official SDK's macros is mounted as it is, and its calls pass the gate.

use std::time::Duration;

use aster_runtime::call::{Check, Outcome};
use aster_runtime::catalogue::{ExternalSettings, Health};
use aster_runtime::dispatch::Upstream;
use aster_runtime::testing::{Answer, TestHost};
use aster_runtime::upstream::MountedServer;
use aster_runtime::{Host, Profile, Tier};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, tool, tool_router};
use serde_json::json;

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
    let settings = ExternalSettings { tier: Some(Tier::Standard), ..ExternalSettings::default() };
    let host = host(settings, []).await;
    assert_eq!(host.host().catalogue().tools()[0].tier(), Tier::Standard);
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
        _: rmcp::service::RequestContext<RoleServer>,
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
