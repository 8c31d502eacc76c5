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

/// The first id: above those of the handshake, a handful that the SDK counts from 0.
const FIRST: i64 = 1_000;

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
pub(super) enum Event {
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
    waiting: HashMap<i64, Arc<Mutex<Mailbox>>>,
    ended: bool,
}

/// What has been heard of one request and not been taken yet.
#[derive(Debug, Default)]
struct Mailbox {
    reports: VecDeque<Progress>,
    reply: Option<Reply>,
    ended: bool,
    waker: Option<Waker>,
}

/// A request that is open until it is dropped. Its id is the token of its progress too.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) id: i64,
    mailbox: Arc<Mutex<Mailbox>>,
    requests: &'a Requests,
}

impl Default for Requests {
    fn default() -> Self {
        Self(Mutex::new(Open { next: FIRST, waiting: HashMap::new(), ended: false }))
    }
}

impl Requests {
    /// Another request, which is to be sent under its id; none once the connection has ended: what is written after that
    /// may be run, and nobody would hear of it.
    pub(super) fn open(&self) -> Option<Request<'_>> {
        let mut open = locked(&self.0);
        if open.ended {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let mailbox = Arc::default();
        open.waiting.insert(id, Arc::clone(&mailbox));
        Some(Request { id, mailbox, requests: self })
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        locked(&self.0).waiting.len()
    }

    /// Hands a reply to its request; gives it back where none waits for it.
    pub(super) fn reply(&self, id: i64, reply: Reply) -> Result<(), Reply> {
        let Some(mailbox) = locked(&self.0).waiting.remove(&id) else { return Err(reply) };
        tell(&mailbox, |mailbox| mailbox.reply = Some(reply));
        Ok(())
    }

    /// A request that is behind loses reports, not its reply.
    pub(super) fn report(&self, id: i64, report: Progress) {
        let Some(mailbox) = locked(&self.0).waiting.get(&id).cloned() else { return };
        tell(&mailbox, |mailbox| {
            if mailbox.reports.len() < MAX_REPORTS {
                mailbox.reports.push_back(report);
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
        waiting.values().for_each(|mailbox| tell(mailbox, |mailbox| mailbox.ended = true));
    }
}

impl Request<'_> {
    /// What is heard next: its reports in their order and then, once, how it ended.
    pub(super) async fn heard(&self) -> Event {
        poll_fn(|context| self.poll(context)).await
    }

    /// How it ended; its progress is passed over.
    pub(super) async fn ended(&self) -> Option<Reply> {
        loop {
            match self.heard().await {
                Event::Progress(_) => {}
                Event::Reply(reply) => return Some(reply),
                Event::Ended => return None,
            }
        }
    }

    /// Whether a reply to it may still come.
    pub(super) fn is_open(&self) -> bool {
        locked(&self.requests.0).waiting.contains_key(&self.id)
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Event> {
        let mut mailbox = locked(&self.mailbox);
        if let Some(report) = mailbox.reports.pop_front() {
            return Poll::Ready(Event::Progress(report));
        }
        if let Some(reply) = mailbox.reply.take() {
            return Poll::Ready(Event::Reply(reply));
        }
        if mailbox.ended {
            return Poll::Ready(Event::Ended);
        }
        match &mut mailbox.waker {
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

fn tell(mailbox: &Mutex<Mailbox>, what: impl FnOnce(&mut Mailbox)) {
    let waker = {
        let mut mailbox = locked(mailbox);
        what(&mut mailbox);
        mailbox.waker.take()
    };
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
