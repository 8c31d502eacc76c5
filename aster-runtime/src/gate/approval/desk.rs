//! A place where calls wait for an answer that comes from elsewhere.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::{Approval, ApprovalRequest, Approver};

/// Where calls wait until someone who looks at it answers, or nobody asks any more.
///
/// ```
/// use aster_runtime::gate::approval::{Approval, Desk};
///
/// let desk = Desk::default();
/// for call in desk.waiting() {
///     println!("{}", call.request);
///     desk.answer(&call.request.call_id, Approval::once("the user at the desk"));
/// }
/// ```
#[derive(Debug, Default)]
pub struct Desk {
    calls: Mutex<BTreeMap<Arc<str>, Call>>,
}

/// A call that waits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Waiting {
    /// What is asked.
    pub request: ApprovalRequest,
    /// Since when.
    pub since: Timestamp,
}

#[derive(Debug)]
struct Call {
    waiting: Waiting,
    answer: oneshot::Sender<Approval>,
}

impl Desk {
    /// The calls that wait, those that have waited longest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        // Their ids are in the order of their time.
        self.calls().values().map(|call| call.waiting.clone()).collect()
    }

    /// One of them, where it still waits.
    #[must_use]
    pub fn find(&self, call_id: &str) -> Option<Waiting> {
        self.calls().get(call_id).map(|call| call.waiting.clone())
    }

    /// Answers a call. Says whether it was still waiting: each is answered once.
    pub fn answer(&self, call_id: &str, approval: Approval) -> bool {
        let call = self.calls().remove(call_id);
        call.is_some_and(|call| call.answer.send(approval).is_ok())
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for Desk {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let waiting = Waiting { request: request.clone(), since: Timestamp::now() };
            self.calls().insert(Arc::clone(&request.call_id), Call { waiting, answer });
            let _place = Place { desk: self, call_id: &request.call_id };
            // The sender is dropped only with an answer, or by another question about the same call.
            answered.await.unwrap_or(Approval::Unasked { hint: None })
        })
    }
}

/// A call's place at the desk: who asks no longer leaves it.
struct Place<'a> {
    desk: &'a Desk,
    call_id: &'a str,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.desk.calls().remove(self.call_id);
    }
}
