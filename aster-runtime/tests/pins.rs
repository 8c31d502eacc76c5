//! A running host, a server whose tools change under it, and a user who agrees meanwhile.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing};
use aster_runtime::dispatch::{DispatchError, Upstream};
use aster_runtime::gate::approval::{Approval, ApprovalRequest, Approver};
use aster_runtime::gate::rules::{Action, Rule, Rules};
use aster_runtime::pins::{PinError, PinStore, ServerPins};
use aster_runtime::tool::JsonObject;
use aster_runtime::{CallOptions, Host, HostSession, Profile, ToolContext, ToolResult};
use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A server whose list the test changes.
struct Fickle {
    listing: watch::Sender<Arc<Listing>>,
}

impl Fickle {
    fn new() -> Arc<Self> {
        Arc::new(Self { listing: watch::Sender::new(Arc::new(Listing::without_tools(Health::Starting))) })
    }

    fn list(&self, tools: Value) {
        let Value::Array(tools) = tools else { panic!("an array") };
        self.listing.send_replace(Arc::new(Listing { tools, ..Listing::without_tools(Health::Ready) }));
    }
}

impl Upstream for Fickle {
    fn name(&self) -> &str {
        "fickle"
    }

    fn settings(&self) -> ExternalSettings {
        ExternalSettings::default()
    }

    fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.subscribe()
    }

    fn call(
        &self,
        tool: &str,
        _: JsonObject,
        _: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        ready(Ok(ToolResult::text(tool))).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// Pins in memory, with a clock that counts the changes.
#[derive(Default)]
struct Memory(Mutex<(ServerPins, u64)>);

impl PinStore for Memory {
    fn read(&self, _: &str) -> Result<ServerPins, PinError> {
        Ok(self.0.lock().unwrap().0.clone())
    }

    fn update(&self, _: &str, change: &mut dyn FnMut(&mut ServerPins)) -> Result<(), PinError> {
        let mut kept = self.0.lock().unwrap();
        change(&mut kept.0);
        kept.1 += 1;
        Ok(())
    }

    fn modified(&self, _: &str) -> Option<SystemTime> {
        Some(SystemTime::UNIX_EPOCH + Duration::from_secs(self.0.lock().unwrap().1))
    }
}

/// Waits until the host has these tools of the server.
async fn until(host: &Host, tools: &[&str]) {
    let mut changes = host.changes();
    let listed = changes.wait_for(|catalogue| {
        let ids: Vec<&str> = catalogue.tools().iter().map(|tool| tool.id().as_str()).collect();
        ids == tools && catalogue.servers().iter().all(|server| server.health == Health::Ready)
    });
    tokio::time::timeout(Duration::from_secs(30), listed).await.unwrap().unwrap();
}

/// Everything that a session could learn of a tool by its name, with the name taken out.
async fn told(session: &HostSession, name: &str) -> String {
    let mut told = Vec::new();
    for call in [
        json!({"action": "describe", "name": name}),
        json!({"action": "execute", "name": name, "arguments": {}}),
        json!({"action": "search", "query": name}),
    ] {
        told.push(session.call(&call).await.into_value().to_string());
    }
    told.push(
        session
            .execute(name, JsonObject::new(), CallOptions::default())
            .await
            .result
            .into_value()
            .to_string(),
    );
    told.join("\n").replace(name, "NAME")
}

#[tokio::test]
async fn a_tool_that_changes_under_a_session_is_unknown_and_comes_back_when_the_user_agrees() {
    let (server, store) = (Fickle::new(), Arc::new(Memory::default()));
    let host = Host::builder()
        .with_upstream(Arc::clone(&server) as Arc<dyn Upstream>)
        .pins(Arc::clone(&store) as Arc<dyn PinStore>)
        .build()
        .await
        .unwrap();
    let session = host.session(Profile::new("test")).unwrap();
    server.list(
        json!([{"name": "alpha", "description": "Reads."}, {"name": "omega", "description": "Writes."}]),
    );
    until(&host, &["fickle/alpha", "fickle/omega"]).await;

    server.list(json!([{"name": "alpha", "description": "Reads, and sends."}, {"name": "omega", "description": "Writes."}]));
    until(&host, &["fickle/omega"]).await;
    assert_eq!(told(&session, "fickle/alpha").await, told(&session, "fickle/ghost").await);
    assert!(!session.injection().unwrap().prompt.contains("alpha"));
    let problems: Vec<String> = host.catalogue().problems().iter().map(ToString::to_string).collect();
    assert!(problems.len() == 1 && problems[0].contains("has changed since it was trusted"), "{problems:?}");

    // Another process, in which the user has seen the difference.
    let waiting = store.read("fickle").unwrap().waiting();
    store.update("fickle", &mut |pins| assert!(pins.trust(&waiting[0]))).unwrap();
    until(&host, &["fickle/alpha", "fickle/omega"]).await;
    assert!(host.catalogue().problems().is_empty());
    let called = session.execute("fickle/alpha", JsonObject::new(), CallOptions::default()).await;
    assert_eq!(called.result.to_text(), "alpha");
}

/// Approves, and keeps what it was shown to have changed.
#[derive(Default)]
struct Shown(Mutex<Vec<Option<String>>>);

impl Approver for Shown {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.0.lock().unwrap().push(request.change.clone());
        ready(Approval::once("a test")).boxed()
    }
}

/// A host that asks about all calls of the server, and a call of its tool.
async fn asked(
    server: &Arc<Fickle>,
    store: &Arc<Memory>,
    secrets: &[&str],
    calls: usize,
) -> Vec<Option<String>> {
    let shown = Arc::new(Shown::default());
    let host = Host::builder()
        .with_upstream(Arc::clone(server) as Arc<dyn Upstream>)
        .pins(Arc::clone(store) as Arc<dyn PinStore>)
        .rules(Rules::new([Rule::new(Action::Ask, "rules:1")]))
        .approver(Arc::clone(&shown) as Arc<dyn Approver>)
        .secrets(secrets.iter().copied())
        .build()
        .await
        .unwrap();
    let session = host.session(Profile::new("test")).unwrap();
    for _ in 0..calls {
        let called = session.execute("fickle/alpha", JsonObject::new(), CallOptions::default()).await;
        assert_eq!(called.result.to_text(), "alpha");
    }
    shown.0.lock().unwrap().clone()
}

#[tokio::test]
async fn whoever_is_asked_after_a_restart_sees_what_the_user_trusted() {
    let (server, store) = (Fickle::new(), Arc::new(Memory::default()));
    server.list(json!([{"name": "alpha", "description": "Reads canary-7f3a."}]));
    assert_eq!(asked(&server, &store, &[], 1).await, [None]);
    server.list(json!([{"name": "alpha", "description": "Reads, and sends.\u{202e}"}]));
    asked(&server, &store, &[], 0).await;
    // What was written to a file and read back.
    let mut pins = store.read("fickle").unwrap();
    let waiting = pins.waiting();
    assert!(pins.trust(&waiting[0]));
    let pins: ServerPins = serde_json::from_value(serde_json::to_value(&pins).unwrap()).unwrap();
    store.update("fickle", &mut |kept| *kept = pins.clone()).unwrap();
    for _ in 0..2 {
        let shown = asked(&server, &store, &["canary-7f3a"], 2).await;
        let change = shown[0].as_ref().unwrap();
        // What has become a secret since it was pinned is not shown.
        assert!(change.contains("-   Reads [redacted].\n+   Reads, and sends.\\u{202e}\n"), "{change}");
        // The first answer was one to that change.
        assert_eq!(shown[1], None);
    }
}
