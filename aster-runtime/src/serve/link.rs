//! The way back to the client of one call: progress and log, in order, and none of it after the answer.

use std::future::Future;
use std::sync::Arc;

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::tool::{ClientLink, LogLevel};

/// How many messages may wait; a tool that reports faster than its client reads loses the surplus.
const WAITING: usize = 256;

enum Message {
    Progress { done: f64, total: Option<f64>, message: Option<String> },
    Log { level: LoggingLevel, text: String },
}

/// The tool's end.
pub(super) struct Link {
    sender: mpsc::Sender<Message>,
    level: Option<u8>,
}

/// The client's end.
pub(super) struct Messages {
    receiver: mpsc::Receiver<Message>,
}

impl Link {
    /// Both ends; `level` is the least grave message that the client wants to hear of.
    pub(super) fn new(level: Option<u8>) -> (Arc<Self>, Messages) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Arc::new(Self { sender, level }), Messages { receiver })
    }
}

impl ClientLink for Link {
    fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let _ = self.sender.try_send(Message::Progress { done, total, message: message.map(str::to_owned) });
    }

    fn log(&self, level: LogLevel, message: &str) {
        let level = match level {
            LogLevel::Debug => LoggingLevel::Debug,
            LogLevel::Info => LoggingLevel::Info,
            LogLevel::Warning => LoggingLevel::Warning,
            LogLevel::Error => LoggingLevel::Error,
        };
        if self.level.is_some_and(|least| level as u8 >= least) {
            let _ = self.sender.try_send(Message::Log { level, text: message.to_owned() });
        }
    }
}

impl Messages {
    /// Runs a call and forwards what it reports; what is still waiting when it ends goes out before the answer.
    ///
    /// The two do not wait for each other: a client that does not read holds up its own messages, and neither the
    /// call's deadline nor its record.
    pub(super) async fn forward_during<F: Future>(
        mut self,
        context: &RequestContext<RoleServer>,
        call: F,
    ) -> F::Output {
        let over = CancellationToken::new();
        let call = async {
            let output = call.await;
            over.cancel();
            output
        };
        let forward = async {
            loop {
                tokio::select! {
                    biased;
                    () = over.cancelled() => break,
                    Some(message) = self.receiver.recv() => send(context, message).await,
                }
            }
            // What waits goes out before the answer; what a function that outlives its call says later does not.
            self.receiver.close();
            while let Some(message) = self.receiver.recv().await {
                send(context, message).await;
            }
        };
        tokio::join!(call, forward).0
    }
}

async fn send(context: &RequestContext<RoleServer>, message: Message) {
    // A client that has gone does not hear of it; the call ends by its own cancellation.
    match message {
        Message::Progress { done, total, message } => {
            let Some(token) = context.meta.get_progress_token() else { return };
            let mut progress = ProgressNotificationParam::new(token, done);
            progress.total = total;
            progress.message = message;
            let _ = context.peer.notify_progress(progress).await;
        }
        Message::Log { level, text } => {
            let message = LoggingMessageNotificationParam::new(level, text.into());
            let _ = context.peer.notify_logging_message(message).await;
        }
    }
}
