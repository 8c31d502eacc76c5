//! Resources: listed, read, and followed. In the legacy era a connection subscribes to URIs one by one, in the modern one a
//! subscription names them all.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{
    ErrorCode, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceUpdatedNotificationParam, ResultType,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionSink};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;

use super::rounds::Turn;
use super::{Server, Service, Shape};
use crate::call::{Check, Completed};
use crate::catalogue::Resource;
use crate::host::{CallOptions, Host};
use crate::id::ToolId;
use crate::tool::{INVALID_ARGUMENTS, JsonObject, NOT_FOUND};

/// How many resources one connection may follow.
const MAX_SUBSCRIPTIONS: usize = 1_000;

impl Shape {
    /// The server whose resources and prompts alone are offered, where there is one.
    fn only(&self) -> Option<&str> {
        match self {
            Self::Server(server) => Some(server),
            Self::Bridge | Self::Direct => None,
        }
    }

    /// Whether resources and prompts with this id are offered.
    pub(super) fn offers(&self, id: &ToolId) -> bool {
        self.only().is_none_or(|server| id.server() == server)
    }
}

impl Service {
    /// The definitions that pass, in the protocol's types.
    pub(super) fn resources<T: DeserializeOwned>(&self, wanted: impl Fn(&Resource) -> bool) -> Vec<T> {
        let view = self.viewer.view();
        let offered = view.resources().iter().filter(|resource| self.shape.offers(resource.id()));
        offered
            .filter(|resource| wanted(resource))
            .filter_map(|resource| typed(resource.definition()))
            .collect()
    }

    /// Whether a client may know of the resource with this URI.
    pub(super) fn offers_resource(&self, uri: &str) -> bool {
        self.viewer.view().resource_on(self.shape.only(), uri).is_some()
    }

    /// Tells a subscription of the modern era of each change, for as long as it is polled.
    pub(super) async fn follow_resources(&self, sink: &SubscriptionSink) {
        let mut updates = self.host.resource_updates().subscribe();
        let followed: HashSet<String> =
            sink.accepted().resource_subscriptions.iter().flatten().cloned().collect();
        loop {
            let Some(changed) = next(&mut updates, || followed.clone()).await else {
                // The host has gone, and this subscription ends with it.
                return std::future::pending().await;
            };
            for uri in changed.into_iter().filter(|uri| followed.contains(uri) && self.offers_resource(uri)) {
                let _ = sink.notify_resource_updated(uri).await;
            }
        }
    }
}

/// What has changed. A reader that lagged behind does not know, so that all it follows may have.
async fn next(
    updates: &mut broadcast::Receiver<Arc<str>>,
    followed: impl Fn() -> HashSet<String>,
) -> Option<HashSet<String>> {
    match updates.recv().await {
        Ok(uri) => Some(HashSet::from([uri.to_string()])),
        Err(RecvError::Lagged(_)) => Some(followed()),
        Err(RecvError::Closed) => None,
    }
}

/// What one connection of the legacy era follows, and the task that tells it.
pub(super) struct Followed {
    uris: Arc<Mutex<HashSet<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Followed {
    fn new(service: Arc<Service>, peer: Peer<RoleServer>) -> Self {
        let uris = Arc::<Mutex<HashSet<String>>>::default();
        // Before the answer to the client, so that no change after it is lost.
        let mut updates = service.host.resource_updates().subscribe();
        let followed = Arc::clone(&uris);
        let task = tokio::spawn(async move {
            let now = || followed.lock().unwrap_or_else(PoisonError::into_inner).clone();
            while let Some(changed) = next(&mut updates, now).await {
                let followed = now();
                for uri in changed {
                    if followed.contains(&uri) && service.offers_resource(&uri) {
                        let _ =
                            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await;
                    }
                }
            }
        });
        Self { uris, _task: AbortOnDropHandle::new(task) }
    }
}

impl Server {
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&context);
        let uri = request.uri.clone();
        let again = (request.input_responses, request.request_state);
        let asking = self.asking(&context, ("resources/read", &request.uri), &JsonObject::new(), again)?;
        // What a shape leaves out is unknown like what scope hides.
        let server = self.service.shape.only().map(str::to_owned);
        let start =
            |options| async move { session.read_resource(&uri, CallOptions { server, ..options }).await };
        let failure = |read: &Completed| read.result.failure();
        match self.service.rounds.answer(&context, asking, start, failure).await? {
            Turn::InputRequired(questions) => Ok(questions.into()),
            Turn::Done(read) => {
                let mut result: ReadResourceResult =
                    result(read, || unknown(&self.service.host, &request.uri))?;
                result.result_type = Some(ResultType::COMPLETE);
                Ok(result.into())
            }
        }
    }

    pub(super) fn follow_resource(
        &self,
        uri: String,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.service.offers_resource(&uri) {
            return Err(unknown(&self.service.host, &uri));
        }
        let mut followed = self.connection.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let followed =
            followed.get_or_insert_with(|| Followed::new(Arc::clone(&self.service), context.peer.clone()));
        let mut uris = followed.uris.lock().unwrap_or_else(PoisonError::into_inner);
        if uris.len() >= MAX_SUBSCRIPTIONS && !uris.contains(&uri) {
            let message =
                format!("a connection may follow {MAX_SUBSCRIPTIONS} resources; unsubscribe from one first");
            return Err(ErrorData::invalid_request(message, None));
        }
        uris.insert(uri);
        Ok(())
    }

    pub(super) fn forget_resource(&self, uri: &str) {
        let followed = self.connection.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followed) = &*followed {
            followed.uris.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        }
    }
}

fn unknown(host: &Host, uri: &str) -> ErrorData {
    let uri = host.repeated(uri);
    ErrorData::resource_not_found(format!("no resource `{uri}` is known"), Some(json!({ "uri": uri })))
}

/// What came of a call, in the protocol's types. There is no result that says that it is an error, so it is a protocol error
/// with the message.
pub(super) fn result<T: DeserializeOwned>(
    completed: Completed,
    unknown: impl FnOnce() -> ErrorData,
) -> Result<T, ErrorData> {
    let result = completed.result;
    if completed.denied == Some(Check::Scope) || error_code(result.structured_content()) == Some(NOT_FOUND) {
        return Err(unknown());
    }
    if result.is_error() {
        let code = match completed.denied {
            Some(Check::Arguments | Check::Request) => ErrorCode::INVALID_PARAMS,
            Some(_) => ErrorCode::INVALID_REQUEST,
            // What fits the schema need not fit the type.
            None if error_code(result.structured_content()) == Some(INVALID_ARGUMENTS) => {
                ErrorCode::INVALID_PARAMS
            }
            None => ErrorCode::INTERNAL_ERROR,
        };
        return Err(ErrorData::new(code, result.to_text(), None));
    }
    serde_json::from_value(result.into_value())
        .map_err(|error| ErrorData::internal_error(format!("the result cannot be sent: {error}"), None))
}

fn error_code(content: Option<&Value>) -> Option<&str> {
    content?.pointer("/error/code")?.as_str()
}

/// A definition in the protocol's types. One that they do not know is left out.
pub(super) fn typed<T: DeserializeOwned>(definition: Value) -> Option<T> {
    serde_json::from_value(definition)
        .inspect_err(|error| tracing::error!(%error, "a resource or prompt cannot be offered"))
        .ok()
}
