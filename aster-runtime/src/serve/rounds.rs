//! A call and its client: the messages on the way, the questions, and, in the modern era, the rounds.
//!
//! A call runs once, on a task of its own. A client of the modern era is asked by the *end* of its request (SEP-2322): the
//! call is parked, and the client repeats the request with its answers and a sealed state, which is nothing but the call's
//! place in the table. What the state stands for never leaves this process, so there is nothing in it to forge, and a state
//! is good once.

use std::any::Any;
use std::collections::VecDeque;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses, RequestId,
    RequestStateCodec, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::link::{Asked, Event, Front, Link, put, tell};
use crate::host::CallOptions;
use crate::tool::{AskError, AskKind};

/// How long a parked call waits for its client. Whatever asked has gone on before that by its own limit.
const PARKED: Duration = Duration::from_secs(600);

/// How many calls may be parked, and how many bytes of arguments and questions these may hold. A call that finds no room
/// has no answer to its question: none makes another give way, since callers who have not proved who they are count as one.
const PARKED_OF_ONE: Room = Room { calls: 32, bytes: 8 << 20 };
const PARKED_IN_ALL: Room = Room { calls: 512, bytes: 64 << 20 };

/// How long the end of serving waits for calls to be recorded.
const GOODBYE: Duration = Duration::from_secs(2);

/// A request that may have to ask its client.
pub(super) struct Asking<'a> {
    /// The protocol's method.
    pub(super) method: &'static str,
    /// What is called.
    pub(super) name: &'a str,
    /// With what.
    pub(super) arguments: Value,
    /// The answers that it brings.
    pub(super) responses: Option<InputResponses>,
    /// What it repeats.
    pub(super) state: Option<String>,
    /// The request itself: the number of its connection, and its id there.
    pub(super) origin: (u64, RequestId),
    /// Whose it is.
    pub(super) front: Front,
    /// Whether the client is asked by requests of ours.
    pub(super) legacy: bool,
}

impl Asking<'_> {
    /// What a state is bound to: it resumes the same request of the same caller through the same client, or nothing.
    /// Whether a client's answers count, as an approval does, was decided for the one that was asked.
    fn bound_to(&self) -> Vec<u8> {
        let mut arguments = self.arguments.clone();
        arguments.sort_all_objects();
        let arguments = arguments.to_string();
        let client = &self.front.client;
        let mut hasher = blake3::Hasher::new();
        // Nobody is not somebody without a name.
        hasher.update(&[u8::from(client.principal.is_some())]);
        for part in [
            client.principal.as_deref().unwrap_or_default(),
            client.name.as_deref().unwrap_or_default(),
            self.method,
            self.name,
            &arguments,
        ] {
            hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().as_bytes().to_vec()
    }
}

/// What a request comes to.
pub(super) enum Turn<T> {
    Done(T),
    InputRequired(InputRequiredResult),
}

/// The protocol's error for a call that needs what its client does not have.
fn missing_capability(missing: &[AskKind]) -> ErrorData {
    let mut required = json!({});
    for kind in missing {
        for (name, capability) in kind.required().as_object().into_iter().flatten() {
            match &mut required[name] {
                Value::Object(known) => known.extend(capability.as_object().cloned().unwrap_or_default()),
                unknown => *unknown = capability.clone(),
            }
        }
    }
    let required = serde_json::from_value::<ClientCapabilities>(required).unwrap_or_default();
    ErrorData::missing_required_client_capability(required)
}

type Output = Box<dyn Any + Send>;

/// A call on its way. Dropping it cancels the call, which then records its own end.
struct Exchange {
    link: Arc<Link>,
    events: mpsc::Receiver<Event>,
    task: JoinHandle<Output>,
    cancellation: CancellationToken,
    /// The questions that the client of the modern era has not answered yet.
    open: Vec<Open>,
    /// Answers that came with the first request, for the first questions.
    early: InputResponses,
    /// How many questions of each method were named by us.
    named: [usize; 3],
    progress: f64,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.cancellation.cancel();
    }
}

struct Open {
    key: String,
    wire: InputRequest,
    asked: Asked,
}

impl Exchange {
    /// Takes a question of the modern era, or the answer to it that is already there.
    fn open(&mut self, asked: Vec<Asked>) {
        let mut early = InputResponses::new();
        if asked.iter().any(|asked| !asked.request.is_fresh()) {
            early = std::mem::take(&mut self.early);
        }
        for asked in asked {
            let key = self.key(&asked);
            // The schema was checked when the question was made; what is left is a sampling in a caller's own words.
            let message = json!({"method": asked.request.method(), "params": asked.request.params()});
            let wire = match serde_json::from_value(message) {
                Ok(wire) => wire,
                Err(error) => {
                    let error = AskError::Invalid(format!("the question cannot be put: {error}"));
                    let _ = asked.answer.send(Err(error));
                    continue;
                }
            };
            let answer = early.get(&key).filter(|_| !asked.request.is_fresh());
            match answer.map(|answer| asked.request.read(answer)) {
                Some(Ok(answer)) => drop(asked.answer.send(Ok(answer))),
                _ => self.open.push(Open { key, wire, asked }),
            }
        }
    }

    fn key(&mut self, asked: &Asked) -> String {
        let (base, count) = match asked.request.kind() {
            AskKind::Roots => ("roots", &mut self.named[0]),
            AskKind::Sampling | AskKind::SamplingTools => ("sampling", &mut self.named[1]),
            _ => ("elicitation", &mut self.named[2]),
        };
        let taken = |key: &str| self.open.iter().any(|open| open.key == key);
        if let Some(name) = asked.request.name()
            && !taken(name)
        {
            return name.to_owned();
        }
        loop {
            *count += 1;
            let key = format!("{base}_{count}");
            if !taken(&key) {
                return key;
            }
        }
    }

    /// Hands over the answers of a repeated request. What is missing, or no answer, stays open; what nobody asked is
    /// nothing.
    fn answer(&mut self, responses: &InputResponses) {
        for open in std::mem::take(&mut self.open) {
            match responses.get(&open.key).map(|answer| open.asked.request.read(answer)) {
                Some(Ok(answer)) => drop(open.asked.answer.send(Ok(answer))),
                _ => self.open.push(open),
            }
        }
    }

    /// Leaves the open questions without an answer.
    fn refuse(&mut self, error: &AskError) {
        for open in self.open.drain(..) {
            let _ = open.asked.answer.send(Err(error.clone()));
        }
    }

    /// Goes on until the call is done or, in the modern era, has questions for its client. `None` is the latter.
    async fn go_on(
        &mut self,
        context: &RequestContext<RoleServer>,
        legacy: bool,
        ended: &CancellationToken,
    ) -> Option<Result<Output, tokio::task::JoinError>> {
        let over = ended.child_token();
        let mut questions = FuturesUnordered::new();
        let done = loop {
            if !self.open.is_empty() {
                while let Ok(event) = self.events.try_recv() {
                    match event {
                        Event::Ask(asked) => self.open(asked),
                        event => self.tell(context, event, ended).await,
                    }
                }
                self.open.retain(|open| !open.asked.answer.is_closed());
                if !self.open.is_empty() && !self.task.is_finished() {
                    return None;
                }
            }
            tokio::select! {
                biased;
                done = &mut self.task => break done,
                Some(event) = self.events.recv() => match event {
                    Event::Ask(asked) if legacy => {
                        for asked in asked {
                            questions.push(put(context.peer.clone(), asked, over.clone()));
                        }
                    }
                    Event::Ask(asked) => self.open(asked),
                    event => self.tell(context, event, ended).await,
                },
                Some(()) = questions.next() => {}
            }
        };
        // What waits goes out before the answer; what a function that outlives its call says later does not.
        self.events.close();
        while let Some(event) = self.events.recv().await {
            self.tell(context, event, ended).await;
        }
        over.cancel();
        let taken_back = async { while questions.next().await.is_some() {} };
        let _ = ended.run_until_cancelled(taken_back).await;
        Some(done)
    }

    /// Tells the client, unless the end has come: then rmcp takes no message of ours any more but the answer, and sending
    /// another would never return.
    async fn tell(&mut self, context: &RequestContext<RoleServer>, event: Event, ended: &CancellationToken) {
        let _ = ended.run_until_cancelled(tell(context, event, &mut self.progress)).await;
    }
}

struct Parked {
    id: [u8; 16],
    origin: (u64, RequestId),
    principal: Option<String>,
    bytes: usize,
    until: Instant,
    exchange: Exchange,
    _expiry: AbortOnDropHandle<()>,
}

/// How much is parked, or may be.
#[derive(Clone, Copy, Default)]
struct Room {
    calls: usize,
    bytes: usize,
}

impl Room {
    /// What these take, and when the first of them goes.
    fn taken<'a>(parked: impl Iterator<Item = &'a Parked>) -> (Self, Option<Instant>) {
        parked.fold((Self::default(), None), |(room, first), parked| {
            let room = Self { calls: room.calls + 1, bytes: room.bytes + parked.bytes };
            (room, first.or(Some(parked.until)))
        })
    }

    /// Whether another call of so many bytes fits in beside what is taken.
    fn fits(self, taken: Self, bytes: usize) -> bool {
        taken.calls < self.calls && taken.bytes.saturating_add(bytes) <= self.bytes
    }
}

/// The calls of everybody who is served.
pub(super) struct Rounds {
    codec: RequestStateCodec,
    parked: Mutex<VecDeque<Parked>>,
    tasks: TaskTracker,
    ended: CancellationToken,
}

impl Rounds {
    /// No calls yet; `ended` is cancelled when nobody is there any more.
    pub(super) fn new(ended: CancellationToken) -> Result<Arc<Self>, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        let (parked, tasks) = (Mutex::default(), TaskTracker::new());
        Ok(Arc::new(Self { codec: RequestStateCodec::new(key), parked, tasks, ended }))
    }

    /// Answers a request: begins what `start` makes, or goes on with the parked call that the request repeats.
    ///
    /// A call that failed because its client cannot be asked something is an error of the protocol in the modern era; in
    /// the legacy one it is the call's. `failure` is what a call that failed says of it.
    pub(super) async fn answer<T, F>(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        mut request: Asking<'_>,
        start: impl FnOnce(CallOptions) -> F,
        failure: impl FnOnce(&T) -> Option<String>,
    ) -> Result<Turn<T>, ErrorData>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let responses = request.responses.take().unwrap_or_default();
        let state = request.state.take().filter(|_| !request.legacy);
        let front = request.front.clone();
        let mut exchange = match state {
            Some(state) => {
                let mut exchange = self.resume(&state, &request)?;
                exchange.link.face(Some(front));
                exchange.answer(&responses);
                exchange
            }
            None => {
                let mut exchange = self.begin(front, start);
                exchange.early = responses;
                exchange
            }
        };
        let cancellation = exchange.cancellation.clone();
        // A client that does not read holds up its own messages, and neither the end of the call nor its record.
        let given_up = async {
            context.ct.cancelled().await;
            cancellation.cancel();
            pending().await
        };
        tokio::pin!(given_up);
        let (done, link) = loop {
            let done = tokio::select! {
                done = exchange.go_on(context, request.legacy, &self.ended) => done,
                () = &mut given_up => None,
            };
            let link = Arc::clone(&exchange.link);
            match done {
                Some(done) => break (done, link),
                None => match self.park(exchange, &request, &context.ct) {
                    Ok(questions) => return Ok(Turn::InputRequired(questions)),
                    Err((why, refused)) => {
                        exchange = *refused;
                        exchange.refuse(&why);
                    }
                },
            }
        };
        match done {
            Ok(output) => {
                let mut missing = link.unsupported();
                let output = output.downcast().map_err(|_| broken("the call became another"))?;
                if !request.legacy && !missing.is_empty() {
                    // It may have found another way, and failed on that.
                    let told = failure(&output).unwrap_or_default();
                    missing.retain(|kind| told.contains(&AskError::Unsupported(*kind).to_string()));
                    if !missing.is_empty() {
                        return Err(missing_capability(&missing));
                    }
                }
                Ok(Turn::Done(*output))
            }
            Err(_) => Err(broken("the call could not be finished")),
        }
    }

    fn begin<T, F>(&self, front: Front, start: impl FnOnce(CallOptions) -> F) -> Exchange
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (link, events) = Link::new(front);
        let cancellation = CancellationToken::new();
        let options = CallOptions {
            client: Some(link.clone()),
            cancellation: cancellation.clone(),
            ..CallOptions::default()
        };
        let call = start(options);
        let task = self.tasks.spawn(async move { Box::new(call.await) as Output });
        let (open, early) = (Vec::new(), InputResponses::new());
        Exchange { link, events, task, cancellation, open, early, named: [0; 3], progress: f64::NEG_INFINITY }
    }

    /// Puts a call aside, and says what the client has to answer; or gives it back, where there is no room for it.
    fn park(
        self: &Arc<Self>,
        mut exchange: Exchange,
        request: &Asking<'_>,
        given_up: &CancellationToken,
    ) -> Result<InputRequiredResult, (AskError, Box<Exchange>)> {
        let id = uuid::Uuid::now_v7().into_bytes();
        let questions: InputRequests =
            exchange.open.iter().map(|open| (open.key.clone(), open.wire.clone())).collect();
        let bytes = size(&request.arguments) + size(&questions);
        if !PARKED_OF_ONE.fits(Room::default(), bytes) {
            let most = PARKED_OF_ONE.bytes >> 20;
            let long =
                format!("the call and its questions are too long to wait for the client: over {most} MiB");
            return Err((AskError::Invalid(long), Box::new(exchange)));
        }
        let mut parked = self.parked();
        if parked.len() >= PARKED_OF_ONE.calls {
            // Nobody has come for what they ended with.
            parked.retain(|parked| !parked.exchange.task.is_finished());
        }
        let of_caller = |one: &&Parked| one.principal == request.front.client.principal;
        for (most, (taken, first)) in [
            (PARKED_OF_ONE, Room::taken(parked.iter().filter(of_caller))),
            (PARKED_IN_ALL, Room::taken(parked.iter())),
        ] {
            if !most.fits(taken, bytes) {
                let retry_after = first.map(|first| first.duration_since(Instant::now())).unwrap_or_default();
                let full = AskError::Busy { retry_after: retry_after.max(Duration::from_secs(1)) };
                return Err((full, Box::new(exchange)));
            }
        }
        exchange.link.face(None);
        exchange.early.clear();
        let bound_to = request.bound_to();
        let options = SealOptions::new().associated_data(&bound_to).ttl(PARKED);
        let state = self.codec.seal_with(&id, &options);
        // Under the lock: whoever is told later that the request is cancelled finds the call on the table.
        if !given_up.is_cancelled() {
            // It may be over at once, and must find the call there too.
            let expiry = expire(Arc::downgrade(self), id, self.ended.clone());
            let expiry = AbortOnDropHandle::new(tokio::spawn(expiry));
            let (origin, principal) = (request.origin.clone(), request.front.client.principal.clone());
            let until = Instant::now() + PARKED;
            parked.push_back(Parked { id, origin, principal, bytes, until, exchange, _expiry: expiry });
        }
        Ok(InputRequiredResult::new(Some(questions), Some(state)))
    }

    /// Cancels the call that this request has left on the table: a client need not know, when it gives a request up, that
    /// it has just been asked.
    pub(super) fn give_up(&self, origin: &(u64, RequestId)) {
        let mut parked = self.parked();
        if let Some(at) = parked.iter().position(|parked| parked.origin == *origin) {
            parked.remove(at);
        }
    }

    fn resume(&self, state: &str, request: &Asking<'_>) -> Result<Exchange, ErrorData> {
        let unknown = || {
            let message = "this `requestState` is unknown here: it has been used, has expired, or belongs to another \
                           request. Nothing was called; repeat the request without it";
            ErrorData::invalid_params(message, None)
        };
        let id = self.codec.open_with(state, &request.bound_to()).map_err(|_| unknown())?;
        self.take(&id).map(|parked| parked.exchange).ok_or_else(unknown)
    }

    fn take(&self, id: &[u8]) -> Option<Parked> {
        let mut parked = self.parked();
        let at = parked.iter().position(|parked| parked.id == id)?;
        parked.remove(at)
    }

    fn parked(&self) -> MutexGuard<'_, VecDeque<Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels what is parked, and waits until every call has been recorded.
    pub(super) async fn close(&self) {
        self.ended.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(GOODBYE, self.tasks.wait()).await;
    }
}

/// Takes a call off the table when its time is up, or when nobody is there any more who could come back for it.
async fn expire(rounds: Weak<Rounds>, id: [u8; 16], ended: CancellationToken) {
    let _ = ended.run_until_cancelled(tokio::time::sleep(PARKED)).await;
    if let Some(rounds) = rounds.upgrade() {
        // Dropped, it is cancelled.
        drop(rounds.take(&id));
    }
}

/// How many bytes this is as JSON.
fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

fn broken(what: &'static str) -> ErrorData {
    ErrorData::internal_error(what, None)
}
