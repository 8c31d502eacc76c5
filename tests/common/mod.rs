//! What several tests have in common.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;

use aster_runtime::catalogue::{ExternalSettings, Health, Listing};
use aster_runtime::dispatch::{DispatchError, Upstream};
use aster_runtime::{JsonObject, ToolContext, ToolResult};
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::Value;
use tokio::sync::watch;

type Answer = dyn Fn(&str, JsonObject) -> Result<ToolResult, DispatchError> + Send + Sync;

/// An external server that lists what it is told to, and answers a call with what a function makes of it.
pub(crate) struct Scripted {
    name: String,
    settings: ExternalSettings,
    endpoint: Option<String>,
    listing: watch::Sender<Arc<Listing>>,
    answer: Box<Answer>,
    start: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Scripted {
    /// A server that is still starting.
    pub(crate) fn new(
        name: impl Into<String>,
        answer: impl Fn(&str, JsonObject) -> Result<ToolResult, DispatchError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            settings: ExternalSettings::default(),
            endpoint: None,
            listing: watch::Sender::new(Arc::new(Listing::without_tools(Health::Starting))),
            answer: Box::new(answer),
            start: None,
        }
    }

    /// The same, down before every call, with what happens while it starts for it.
    pub(crate) fn down(self, start: impl Fn() + Send + Sync + 'static) -> Self {
        Self { start: Some(Box::new(start)), ..self }
    }

    pub(crate) fn with_settings(self, settings: ExternalSettings) -> Self {
        Self { settings, ..self }
    }

    pub(crate) fn at(self, endpoint: &str) -> Self {
        Self { endpoint: Some(endpoint.to_owned()), ..self }
    }

    /// The server, started, with these tools.
    pub(crate) fn ready(self, tools: Vec<Value>) -> Arc<Self> {
        self.list(tools);
        Arc::new(self)
    }

    /// From now on it has these tools.
    pub(crate) fn list(&self, tools: Vec<Value>) {
        self.report(Listing { tools, ..Listing::without_tools(Health::Ready) });
    }

    /// From now on it says this of itself.
    pub(crate) fn report(&self, listing: impl Into<Arc<Listing>>) {
        self.listing.send_replace(listing.into());
    }
}

impl Upstream for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self) -> ExternalSettings {
        self.settings.clone()
    }

    fn endpoint(&self) -> Option<String> {
        self.endpoint.clone()
    }

    fn listing(&self) -> watch::Receiver<Arc<Listing>> {
        self.listing.subscribe()
    }

    fn ready(&self) -> Option<BoxFuture<'_, Result<(), DispatchError>>> {
        let start = self.start.as_ref()?;
        Some(
            async move {
                start();
                Ok(())
            }
            .boxed(),
        )
    }

    fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        _: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        ready((self.answer)(tool, arguments)).boxed()
    }

    fn read(&self, uri: String, _: ToolContext) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        ready((self.answer)(&uri, JsonObject::new())).boxed()
    }

    fn get(
        &self,
        prompt: &str,
        arguments: JsonObject,
        _: ToolContext,
    ) -> BoxFuture<'_, Result<ToolResult, DispatchError>> {
        ready((self.answer)(prompt, arguments)).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}
