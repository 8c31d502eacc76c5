//! The way back to the client of one call: progress, log and questions, in order, and none of it after the answer.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use futures_util::future::{BoxFuture, join_all};
use rmcp::model::{
    CustomRequest, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::text;
use crate::tool::{AskError, AskKind, ClientAnswer, ClientInfo, ClientLink, ClientRequest, LogLevel};

/// How many messages may wait; a tool that reports faster than its client reads loses the surplus.
const WAITING: usize = 256;

/// What a call has to say to its client.
pub(super) enum Event {
    Progress { done: f64, total: Option<f64>, message: Option<String> },
    Log { level: LoggingLevel, text: String },
    Ask(Vec<Asked>),
}

/// A question, and where its answer goes. Whoever asked may have gone meanwhile.
pub(super) struct Asked {
    pub(super) request: ClientRequest,
    pub(super) answer: oneshot::Sender<Result<ClientAnswer, AskError>>,
}

/// The request that a call answers to at the moment.
#[derive(Clone, Default)]
pub(super) struct Front {
    /// The least grave message that the client wants to hear of.
    pub(super) level: Option<u8>,
    pub(super) client: ClientInfo,
}

/// The tool's end.
pub(super) struct Link {
    sender: mpsc::Sender<Event>,
    /// `None` between two requests of one call.
    front: RwLock<Option<Front>>,
    client: RwLock<ClientInfo>,
    unsupported: Mutex<Vec<AskKind>>,
}

impl Link {
    pub(super) fn new(front: Front) -> (Arc<Self>, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let client = RwLock::new(front.client.clone());
        let front = RwLock::new(Some(front));
        (Arc::new(Self { sender, front, client, unsupported: Mutex::default() }), receiver)
    }

    /// Takes up another request, or none.
    pub(super) fn face(&self, front: Option<Front>) {
        if let Some(front) = &front {
            *self.client.write().unwrap_or_else(PoisonError::into_inner) = front.client.clone();
        }
        *self.front.write().unwrap_or_else(PoisonError::into_inner) = front;
    }

    /// What was asked of a client that cannot be asked it.
    pub(super) fn unsupported(&self) -> Vec<AskKind> {
        self.unsupported.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientLink for Link {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        // What nobody waits for at the moment is old news when somebody does.
        if self.front.read().unwrap_or_else(PoisonError::into_inner).is_some() {
            let message = message.map(str::to_owned);
            let _ = self.sender.try_send(Event::Progress { done, total, message });
        }
    }

    fn log(&self, level: LogLevel, message: &str) {
        let level = match level {
            LogLevel::Debug => LoggingLevel::Debug,
            LogLevel::Info => LoggingLevel::Info,
            LogLevel::Warning => LoggingLevel::Warning,
            LogLevel::Error => LoggingLevel::Error,
        };
        let front = self.front.read().unwrap_or_else(PoisonError::into_inner);
        let least = front.as_ref().and_then(|front| front.level);
        if least.is_some_and(|least| level as u8 >= least) {
            let _ = self.sender.try_send(Event::Log { level, text: message.to_owned() });
        }
    }

    fn client(&self) -> ClientInfo {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask(&self, requests: Vec<ClientRequest>) -> BoxFuture<'_, Vec<Result<ClientAnswer, AskError>>> {
        let client = self.client();
        Box::pin(async move {
            let mut asked = Vec::new();
            let mut answers = Vec::new();
            for request in requests {
                let kind = request.kind();
                let (answer, receiver) = oneshot::channel();
                if client.can(kind) {
                    asked.push(Asked { request, answer });
                } else {
                    let mut unsupported = self.unsupported.lock().unwrap_or_else(PoisonError::into_inner);
                    if !unsupported.contains(&kind) {
                        unsupported.push(kind);
                    }
                    let _ = answer.send(Err(AskError::Unsupported(kind)));
                }
                answers.push(receiver);
            }
            if !asked.is_empty() {
                // Where nobody listens any more, the questions are dropped, and that is the answer.
                let _ = self.sender.send(Event::Ask(asked)).await;
            }
            let answers = join_all(answers).await.into_iter();
            answers.map(|answer| answer.unwrap_or(Err(AskError::Closed))).collect()
        })
    }
}

/// Sends progress and log to the client; `last` is how far the call has come.
pub(super) async fn tell(context: &RequestContext<RoleServer>, event: Event, last: &mut f64) {
    // A client that has gone does not hear of it; the call ends by its own cancellation.
    match event {
        Event::Progress { done, total, message } => {
            if !done.is_finite() {
                return;
            }
            // It must increase (MCP, basic, progress); but a client takes any report for a sign of life, so that none is lost
            // for saying what an earlier one has said.
            let done = if done > *last { done } else { last.next_up() };
            *last = done;
            let Some(token) = context.meta.get_progress_token() else { return };
            let mut progress = ProgressNotificationParam::new(token, done);
            progress.total = total.filter(|total| total.is_finite());
            progress.message = message;
            let _ = context.peer.notify_progress(progress).await;
        }
        Event::Log { level, text } => {
            let message = LoggingMessageNotificationParam::new(level, text.into());
            let _ = context.peer.notify_logging_message(message).await;
        }
        Event::Ask(_) => {}
    }
}

/// Asks a client of the legacy era, which is a request to it. Where nobody wants the answer any more, or it is `over`, the
/// client is told so.
pub(super) async fn put(peer: Peer<RoleServer>, asked: Asked, over: CancellationToken) {
    let Asked { request, mut answer } = asked;
    let params = (!request.params().is_empty()).then(|| Value::Object(request.params().clone()));
    // In the question's own words: the SDK's types would drop what they do not know.
    let message = ServerRequest::CustomRequest(CustomRequest::new(request.method(), params));
    let sent = peer.send_cancellable_request(message, PeerRequestOptions::no_options()).await;
    let Ok(mut handle) = sent else {
        let _ = answer.send(Err(AskError::Closed));
        return;
    };
    let response = tokio::select! {
        response = &mut handle.rx => response,
        () = answer.closed() => return drop(handle.cancel(None).await),
        () = over.cancelled() => {
            let _ = answer.send(Err(AskError::Closed));
            return drop(handle.cancel(None).await);
        }
    };
    let _ = answer.send(match response {
        Ok(Ok(result)) => match serde_json::to_value(result) {
            Ok(result) => request.read(&result),
            Err(error) => Err(AskError::Invalid(error.to_string())),
        },
        Ok(Err(ServiceError::McpError(error))) => {
            Err(AskError::Refused { code: error.code.0.into(), message: text::one_line(&error.message, 500) })
        }
        Ok(Err(_)) | Err(_) => Err(AskError::Closed),
    });
}
