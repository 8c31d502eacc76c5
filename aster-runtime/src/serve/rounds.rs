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
    ClientCapabilities, InputRequest, InputRequiredResult, InputResponses, RequestStateCodec, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::link::{Asked, Event, Front, Link, put, tell};
use crate::host::CallOptions;
use crate::tool::{AskError, AskKind};

/// How long a parked call waits for its client. Whatever asked has gone on before that by its own limit.
const PARKED: Duration = Duration::from_secs(600);

/// How many calls may be parked, of one caller and in all; the oldest is cancelled.
const PARKED_OF_ONE: usize = 32;
const PARKED_IN_ALL: usize = 512;

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
fn missing_capability(unsupported: &[AskKind]) -> ErrorData {
    let mut required = json!({});
    for kind in unsupported {
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
    principal: Option<String>,
    exchange: Exchange,
    _expiry: AbortOnDropHandle<()>,
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
    /// A call that `failed` because its client cannot be asked something is an error of the protocol in the modern era; in
    /// the legacy one it is the call's.
    pub(super) async fn answer<T, F>(
        self: &Arc<Self>,
        context: &RequestContext<RoleServer>,
        mut request: Asking<'_>,
        start: impl FnOnce(CallOptions) -> F,
        failed: impl FnOnce(&T) -> bool,
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
        let done = tokio::select! {
            done = exchange.go_on(context, request.legacy, &self.ended) => done,
            () = given_up => None,
        };
        match done {
            None => Ok(Turn::InputRequired(self.park(exchange, &request))),
            Some(Ok(output)) => {
                let unsupported = exchange.link.unsupported();
                let output = output.downcast().map_err(|_| broken("the call became another"))?;
                if !request.legacy && !unsupported.is_empty() && failed(&output) {
                    return Err(missing_capability(&unsupported));
                }
                Ok(Turn::Done(*output))
            }
            Some(Err(_)) => Err(broken("the call could not be finished")),
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

    /// Puts a call aside, and says what the client has to answer.
    fn park(self: &Arc<Self>, mut exchange: Exchange, request: &Asking<'_>) -> InputRequiredResult {
        exchange.link.face(None);
        exchange.early.clear();
        let questions = exchange.open.iter().map(|open| (open.key.clone(), open.wire.clone())).collect();
        let id = uuid::Uuid::now_v7().into_bytes();
        let bound_to = request.bound_to();
        let options = SealOptions::new().associated_data(&bound_to).ttl(PARKED);
        let state = self.codec.seal_with(&id, &options);
        let principal = request.front.client.principal.clone();
        let expiry = expire(Arc::downgrade(self), id, self.ended.clone());
        // It may be over at once, and must find the call on the table then.
        let mut parked = self.parked();
        let expiry = AbortOnDropHandle::new(tokio::spawn(expiry));
        let of_one = |one: &Parked| one.principal == request.front.client.principal;
        parked.push_back(Parked { id, principal, exchange, _expiry: expiry });
        if parked.iter().filter(|one| of_one(one)).count() > PARKED_OF_ONE
            && let Some(oldest) = parked.iter().position(of_one)
        {
            parked.remove(oldest);
        }
        if parked.len() > PARKED_IN_ALL {
            parked.pop_front();
        }
        InputRequiredResult::new(Some(questions), Some(state))
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

fn broken(what: &'static str) -> ErrorData {
    ErrorData::internal_error(what, None)
}
