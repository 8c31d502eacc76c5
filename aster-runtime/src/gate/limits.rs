//! Limits: how many calls may run at once and how many may start in a minute, for each session, server and tool; and how
//! large a result may be.
//!
//! The last check of the gate, so that nobody waits for a decision with a place that others could use. Who starts a server
//! that is down has one meanwhile: a call for which there is none starts nothing. A call beyond a rate is refused at
//! once, and told when to try again; one that is refused or given up after all counts for no rate. What counts is that a call is sent, also
//! to a server that turns out to be down: each such call tries to start it. One beyond a number at once waits, in
//! a queue that is bounded in length and in time.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use globset::GlobMatcher;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::call::{Check, Denied, Proposed};
use crate::session::Session;

/// How many calls wait for one place at most, unless said otherwise.
pub const MAX_WAITING: usize = 64;

/// How long a call waits for its place at most, unless said otherwise.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// How large a result may be, as JSON in bytes, unless said otherwise: as large as what an external server may send.
pub const MAX_RESULT: usize = 16 << 20;

/// How many meters are kept before those that stand still are dropped.
const METERS: usize = 1024;

const MINUTE: f64 = 60.0;

/// How much of one thing there may be; nothing said is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// How many calls may run at once.
    pub concurrent: Option<usize>,
    /// How many may start in a minute: as many at once after a pause, and evenly from then on.
    pub per_minute: Option<u32>,
}

impl Limit {
    /// At most so many calls at once.
    #[must_use]
    pub fn concurrent(mut self, calls: usize) -> Self {
        self.concurrent = Some(calls);
        self
    }

    /// At most so many calls in a minute.
    #[must_use]
    pub fn per_minute(mut self, calls: u32) -> Self {
        self.per_minute = Some(calls);
        self
    }

    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The limits of a host.
///
/// ```
/// use aster_runtime::gate::limits::{Limit, Limits};
///
/// let limits = Limits::default()
///     .session(Limit::default().per_minute(600))
///     .server("files", Limit::default().concurrent(4));
/// ```
#[derive(Debug, Clone)]
pub struct Limits {
    session: Limit,
    servers: HashMap<String, Limit>,
    tools: Vec<(GlobMatcher, Limit)>,
    max_waiting: usize,
    max_wait: Duration,
    max_result: usize,
    meters: Arc<Mutex<HashMap<Measured, Arc<Meter>>>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session: Limit::default(),
            servers: HashMap::new(),
            tools: Vec::new(),
            max_waiting: MAX_WAITING,
            max_wait: MAX_WAIT,
            max_result: MAX_RESULT,
            meters: Arc::default(),
        }
    }
}

impl Limits {
    /// The limit of every session. Callers over HTTP whom nobody can tell apart have one together.
    #[must_use]
    pub fn session(mut self, limit: Limit) -> Self {
        self.session = limit;
        self
    }

    /// The limit of one server, of all sessions together.
    #[must_use]
    pub fn server(mut self, name: impl Into<String>, limit: Limit) -> Self {
        self.servers.insert(name.into(), limit);
        self
    }

    /// The limit of each tool whose id this glob matches, of all sessions together. The first that matches counts.
    #[must_use]
    pub fn tool(mut self, glob: GlobMatcher, limit: Limit) -> Self {
        self.tools.push((glob, limit));
        self
    }

    /// How many calls may wait for one place. [`MAX_WAITING`] unless set.
    #[must_use]
    pub fn max_waiting(mut self, calls: usize) -> Self {
        self.max_waiting = calls;
        self
    }

    /// How long one may wait. [`MAX_WAIT`] unless set.
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// How large a result may be that is passed on, as JSON in bytes. A larger one is withheld, and the model told so.
    /// [`MAX_RESULT`] unless set.
    #[must_use]
    pub fn max_result(mut self, bytes: usize) -> Self {
        self.max_result = bytes;
        self
    }

    /// How large one may be.
    pub(super) fn largest_result(&self) -> usize {
        self.max_result
    }

    /// The servers that have a limit.
    pub(crate) fn named_servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The tools that have one, as globs over ids.
    pub(crate) fn named_tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|(glob, _)| glob.glob().glob())
    }

    /// Waits for a place for the call, which it has until the slot is dropped.
    pub(super) async fn enter(&self, call: &Proposed) -> Result<Slot, Denied> {
        let meters = self.meters_of(call);
        if meters.is_empty() {
            return Ok(Slot::default());
        }
        // Who would be refused in the end need not wait.
        turns(&meters, Turns::Look)?;
        let until = Instant::now() + self.max_wait;
        let mut places = Vec::with_capacity(meters.len());
        // In one order for all, so that no two calls wait for each other.
        for (measured, meter) in &meters {
            let Some(running) = meter.running.clone() else { continue };
            let at_once = meter.limit.concurrent.unwrap_or_default();
            let place = match Arc::clone(&running).try_acquire_owned() {
                Ok(place) => place,
                Err(_) => {
                    let Some(_waiting) = Waiting::join(meter, self.max_waiting) else {
                        let message = format!(
                            "{measured} may have {at_once} calls at once, and {} wait already",
                            self.max_waiting
                        );
                        return Err(refusal(message, 1.0));
                    };
                    match timeout_at(until, running.acquire_owned()).await {
                        Ok(Ok(place)) => place,
                        _ => {
                            let wait = self.max_wait;
                            let message = format!(
                                "{measured} may have {at_once} calls at once, and none has ended for {wait:?}"
                            );
                            return Err(refusal(message, wait.as_secs_f64().ceil().max(1.0)));
                        }
                    }
                }
            };
            places.push(place);
        }
        // Last, so that a call that finds no place uses up none of the rate.
        turns(&meters, Turns::Take)?;
        let turns = meters.into_iter().map(|(_, meter)| meter).collect();
        Ok(Slot { places, turns, counted: None })
    }

    /// Refuses a call whose rate is used up as it is now, before anybody is asked about it.
    pub(super) fn look(&self, call: &Proposed) -> Result<(), Denied> {
        turns(&self.meters_of(call), Turns::Look)
    }

    /// What measures a call, in the order in which places are taken.
    fn meters_of(&self, call: &Proposed) -> Vec<(Measured, Arc<Meter>)> {
        let id = call.tool.id();
        let tool = self.tools.iter().find(|(glob, _)| call.tool.ids().any(|id| glob.is_match(id.as_str())));
        let limits = [
            (!self.session.is_none())
                .then(|| (Measured::Session(call.session.share().key.clone()), self.session)),
            self.servers.get(id.server()).map(|limit| (Measured::Server(id.server().to_owned()), *limit)),
            tool.map(|(_, limit)| (Measured::Tool(id.as_str().to_owned()), *limit)),
        ];
        let limits = limits.into_iter().flatten().filter(|(_, limit)| !limit.is_none());
        let limits: Vec<_> = limits.collect();
        if limits.is_empty() {
            return Vec::new();
        }
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        if meters.len() >= METERS {
            meters.retain(|_, meter| !meter.stands_still());
        }
        let meter = |(measured, limit): (Measured, Limit)| {
            let meter = meters.entry(measured.clone()).or_insert_with(|| Arc::new(Meter::new(limit)));
            (measured, Arc::clone(meter))
        };
        limits.into_iter().map(meter).collect()
    }
}

fn refusal(message: String, seconds: f64) -> Denied {
    Denied::new(Check::Limit, format!("{message}. Nothing was called; try again in {seconds:.0} s"))
}

/// The places of a running call. Dropped before the call is sent, it gives back what it took of the rates and of the session's
/// number of calls.
#[derive(Debug, Default)]
pub struct Slot {
    #[expect(dead_code, reason = "held until the call is over")]
    places: Vec<OwnedSemaphorePermit>,
    turns: Vec<Arc<Meter>>,
    /// Whose call it is, where its calls are counted.
    counted: Option<Arc<Session>>,
}

impl Slot {
    /// Counts the call, if its session has one left.
    pub(super) fn take_call(&mut self, session: &Arc<Session>) -> bool {
        if session.profile().max_calls.is_none() {
            return true;
        }
        let has_one = session.take_call();
        self.counted = has_one.then(|| Arc::clone(session));
        has_one
    }

    /// The call is about to be sent, and counts.
    pub(super) fn sent(&mut self) {
        self.turns.drain(..).for_each(|meter| meter.sent());
        self.counted = None;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.turns.iter().for_each(|meter| meter.give_back());
        if let Some(session) = &self.counted {
            session.give_back_call();
        }
    }
}

/// What a limit is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Measured {
    Session(String),
    Server(String),
    Tool(String),
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(_) => f.write_str("this session"),
            Self::Server(name) => write!(f, "the server `{name}`"),
            Self::Tool(id) => write!(f, "`{id}`"),
        }
    }
}

#[derive(Debug)]
struct Meter {
    limit: Limit,
    running: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    bucket: Mutex<Bucket>,
}

/// The calls that may still start, which fill up evenly.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    /// The turns of calls that are not sent yet. Nothing fills their room, so that they can be given back.
    held: u32,
    at: Instant,
}

impl Bucket {
    /// What it has at this time.
    fn filled(self, per_minute: u32, now: Instant) -> Self {
        let most = f64::from(per_minute);
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        let left = (self.left + since * most / MINUTE).min(most - f64::from(self.held));
        Self { left, at: now, ..self }
    }

    /// How long until there is a whole call in it.
    fn wait(self, per_minute: u32) -> Duration {
        let missing = (1.0 - self.left).max(0.0);
        Duration::try_from_secs_f64(missing * MINUTE / f64::from(per_minute)).unwrap_or(Duration::MAX)
    }
}

impl Meter {
    fn new(limit: Limit) -> Self {
        let left = f64::from(limit.per_minute.unwrap_or_default());
        Self {
            limit,
            running: limit
                .concurrent
                .map(|calls| Arc::new(Semaphore::new(calls.min(Semaphore::MAX_PERMITS)))),
            waiting: AtomicUsize::new(0),
            bucket: Mutex::new(Bucket { left, held: 0, at: Instant::now() }),
        }
    }

    /// A call that had its turn is made.
    fn sent(&self) {
        self.end_turn(0.0);
    }

    /// A call that had its turn is not made.
    fn give_back(&self) {
        self.end_turn(1.0);
    }

    fn end_turn(&self, given_back: f64) {
        let Some(most) = self.limit.per_minute else { return };
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        // There is more room from now on only.
        *bucket = bucket.filled(most, Instant::now());
        bucket.held -= 1;
        bucket.left += given_back;
    }

    /// Whether nothing would be lost with it: nobody uses it, and its bucket is full.
    fn stands_still(self: &Arc<Self>) -> bool {
        let bucket = *self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let full = self
            .limit
            .per_minute
            .is_none_or(|most| bucket.filled(most, Instant::now()).left >= f64::from(most));
        let idle = self.running.as_ref().is_none_or(|running| {
            Some(running.available_permits()) == self.limit.concurrent && Arc::strong_count(running) == 1
        });
        full && idle && Arc::strong_count(self) == 1
    }
}

/// What is done with the calls that may still start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turns {
    Look,
    Take,
}

/// Whether every bucket has a call left. Takes it from all of them, or from none: what is refused by one shall not use up
/// another.
fn turns(meters: &[(Measured, Arc<Meter>)], turns: Turns) -> Result<(), Denied> {
    let now = Instant::now();
    // Locked in the order of the meters, the same for all.
    let mut buckets: Vec<_> = meters
        .iter()
        .filter_map(|(measured, meter)| {
            let most = meter.limit.per_minute?;
            let mut bucket = meter.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            *bucket = bucket.filled(most, now);
            Some((measured, most, bucket))
        })
        .collect();
    let short = buckets.iter().filter(|(.., bucket)| bucket.left < 1.0);
    if let Some((measured, most, bucket)) = short.max_by_key(|(_, most, bucket)| bucket.wait(*most)) {
        let message = format!("{measured} may make {most} calls a minute, and they are used up");
        return Err(refusal(message, bucket.wait(*most).as_secs_f64().ceil()));
    }
    if turns == Turns::Take {
        for (.., bucket) in &mut buckets {
            bucket.left -= 1.0;
            bucket.held += 1;
        }
    }
    Ok(())
}

/// A place in the queue.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn join(meter: &'a Meter, most: usize) -> Option<Self> {
        let waiting = &meter.waiting;
        let joined = waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| (count < most).then_some(count + 1));
        // Not made where it has no place: dropping it gives one back.
        joined.is_ok().then(|| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
