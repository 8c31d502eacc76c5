//! The requests of a connection that wait for their replies.
//!
//! Once the handshake is done they go past the SDK, straight to the pipe and from it to whoever waits: through its
//! service loop each would be handed on between tasks twice and read into its closed types, which costs a call as much as
//! all checks of the gate.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rmcp::model::ErrorData;
use serde_json::Value;

/// The first id: above those of the handshake, which the SDK counts from 0, and small enough for any server's integers.
const FIRST: i64 = 1_000_000;

/// How many reports of progress of one request may wait to be handed on.
const MAX_REPORTS: usize = 32;

/// Progress of one request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    pub(super) done: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// What a request comes to: its result, or the server's error.
pub(super) type Reply = Result<Value, ErrorData>;

/// What is heard of a request.
#[derive(Debug)]
pub(super) enum Heard {
    /// It goes on.
    Progress(Progress),
    /// It is over.
    Reply(Reply),
    /// The connection has ended.
    Ended,
}

/// The requests that are open on one connection.
#[derive(Debug)]
pub(super) struct Requests(Mutex<Open>);

#[derive(Debug)]
struct Open {
    next: i64,
    waiting: HashMap<i64, Arc<Mutex<Slot>>>,
    ended: bool,
}

/// What has been heard of one request and not been taken yet.
#[derive(Debug, Default)]
struct Slot {
    reports: VecDeque<Progress>,
    reply: Option<Reply>,
    ended: bool,
    waker: Option<Waker>,
}

/// A request that is open until it is dropped. Its id is the token of its progress too.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) id: i64,
    slot: Arc<Mutex<Slot>>,
    requests: &'a Requests,
}

impl Default for Requests {
    fn default() -> Self {
        Self(Mutex::new(Open { next: FIRST, waiting: HashMap::new(), ended: false }))
    }
}

impl Requests {
    /// Another request, which is to be sent under its id.
    pub(super) fn open(&self) -> Request<'_> {
        let mut open = locked(&self.0);
        let id = open.next;
        open.next += 1;
        let slot = Arc::new(Mutex::new(Slot { ended: open.ended, ..Slot::default() }));
        if !open.ended {
            open.waiting.insert(id, Arc::clone(&slot));
        }
        Request { id, slot, requests: self }
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        locked(&self.0).waiting.len()
    }

    /// Hands a reply to its request; gives it back where none waits for it.
    pub(super) fn reply(&self, id: i64, reply: Reply) -> Result<(), Reply> {
        let Some(slot) = locked(&self.0).waiting.remove(&id) else { return Err(reply) };
        tell(&slot, |slot| slot.reply = Some(reply));
        Ok(())
    }

    /// A request that is behind loses reports, not its reply.
    pub(super) fn report(&self, id: i64, report: Progress) {
        let Some(slot) = locked(&self.0).waiting.get(&id).cloned() else { return };
        tell(&slot, |slot| {
            if slot.reports.len() < MAX_REPORTS {
                slot.reports.push_back(report);
            }
        });
    }

    /// No more replies come.
    pub(super) fn end(&self) {
        let waiting = {
            let mut open = locked(&self.0);
            open.ended = true;
            std::mem::take(&mut open.waiting)
        };
        waiting.values().for_each(|slot| tell(slot, |slot| slot.ended = true));
    }
}

impl Request<'_> {
    /// What is heard next: its reports in their order and then, once, how it ended.
    pub(super) async fn heard(&self) -> Heard {
        poll_fn(|context| self.poll(context)).await
    }

    /// How it ended; its progress is passed over.
    pub(super) async fn ended(&self) -> Option<Reply> {
        loop {
            match self.heard().await {
                Heard::Progress(_) => {}
                Heard::Reply(reply) => return Some(reply),
                Heard::Ended => return None,
            }
        }
    }

    /// Whether a reply to it may still come.
    pub(super) fn is_open(&self) -> bool {
        locked(&self.requests.0).waiting.contains_key(&self.id)
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Heard> {
        let mut slot = locked(&self.slot);
        if let Some(report) = slot.reports.pop_front() {
            return Poll::Ready(Heard::Progress(report));
        }
        if let Some(reply) = slot.reply.take() {
            return Poll::Ready(Heard::Reply(reply));
        }
        if slot.ended {
            return Poll::Ready(Heard::Ended);
        }
        match &mut slot.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        locked(&self.requests.0).waiting.remove(&self.id);
    }
}

fn tell(slot: &Mutex<Slot>, what: impl FnOnce(&mut Slot)) {
    let waker = {
        let mut slot = locked(slot);
        what(&mut slot);
        slot.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
