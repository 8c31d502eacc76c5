//! Hooks: what a host lets look at a call before anything else decides, and at its result before anyone sees it.
//!
//! A hook is Rust ([`Hook`]) or, with the feature `hooks`, a program (`ProgramHook`). Those that may change what they
//! look at run one after the other, in their order; the others then run side by side on what came of it. The strictest of their words counts: a refusal before a question, a question before an approval. One that fails,
//! by a panic, a crash or a silence, refuses the call, or withholds its result where it has already run, unless it is one whose
//! failure [lets it go on](OnFailure::Allow). Recorded is a failure either way.

#[cfg(feature = "hooks")]
mod program;

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all, ready};
use serde::Serialize;

#[cfg(feature = "hooks")]
pub use program::{InvalidMatcher, Matcher, ProgramHook};
#[cfg(feature = "hooks")]
#[doc(hidden)]
pub use program::{review_of, verdict_of};

use crate::call::{By, Check, Denied, Proposed};
use crate::spec::Tier;
use crate::tool::{JsonObject, ToolError, ToolResult};

/// When a hook is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Event {
    /// Before the call is decided.
    PreToolUse,
    /// After it, where the tool answered.
    PostToolUse,
    /// After it, where the tool or its server failed.
    PostToolUseFailure,
}

impl Event {
    /// Its name, as it stands in configurations and in what a program is given.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
        }
    }
}

/// What a hook wants of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// That nobody need be asked, where a rule or a claim of the tool's server is all that asks; why. It lifts nothing
    /// else.
    Allow(String),
    /// That a human is asked; why.
    Ask(String),
    /// That it does not run; why, for the model.
    Deny(String),
}

/// What a hook says of a call that has not run.
///
/// ```
/// use aster_runtime::gate::hooks::Verdict;
///
/// let verdict = Verdict::deny("not on a Friday");
/// assert_ne!(verdict, Verdict::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// What it wants; nothing said is nothing against it.
    pub wish: Option<Wish>,
    /// What the call shall be made with instead, checked against the schema again; of a hook that
    /// [may change it](Hook::changes).
    pub arguments: Option<JsonObject>,
    /// What the model is told besides, with the result.
    pub context: Option<String>,
}

impl Verdict {
    /// Nothing against the call.
    #[must_use]
    pub fn go_on() -> Self {
        Self::default()
    }

    /// It may run without a question that a rule or a stranger's claim asks for.
    #[must_use]
    pub fn allow(why: impl Into<String>) -> Self {
        Self { wish: Some(Wish::Allow(why.into())), ..Self::default() }
    }

    /// A human is to be asked.
    #[must_use]
    pub fn ask(why: impl Into<String>) -> Self {
        Self { wish: Some(Wish::Ask(why.into())), ..Self::default() }
    }

    /// It must not run.
    #[must_use]
    pub fn deny(why: impl Into<String>) -> Self {
        Self { wish: Some(Wish::Deny(why.into())), ..Self::default() }
    }

    /// It may run with these arguments.
    #[must_use]
    pub fn rewrite(arguments: JsonObject) -> Self {
        Self { arguments: Some(arguments), ..Self::default() }
    }

    /// Adds a text for the model, beside the result.
    #[must_use]
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.context = Some(text.into());
        self
    }
}

/// A call that has run, as hooks see it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Done<'a> {
    /// The call, as it was sent.
    pub call: &'a Proposed,
    /// What the caller would be told.
    pub result: &'a ToolResult,
    /// Whether the tool or its server failed.
    pub failed: bool,
    /// How long it took.
    pub duration: Duration,
}

impl Done<'_> {
    /// The event that this is.
    #[must_use]
    pub fn event(&self) -> Event {
        if self.failed { Event::PostToolUseFailure } else { Event::PostToolUse }
    }
}

/// What a hook says of a result.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Review {
    /// What the caller shall be told instead; of a hook that [may change it](Hook::changes).
    pub result: Option<ToolResult>,
    /// That the caller shall not be told; why, for the model.
    pub withhold: Option<String>,
    /// What the model is told besides.
    pub context: Option<String>,
}

impl Review {
    /// Nothing against the result.
    #[must_use]
    pub fn keep() -> Self {
        Self::default()
    }

    /// This instead.
    #[must_use]
    pub fn replace(result: ToolResult) -> Self {
        Self { result: Some(result), ..Self::default() }
    }

    /// Nobody is told; why.
    #[must_use]
    pub fn withhold(why: impl Into<String>) -> Self {
        Self { withhold: Some(why.into()), ..Self::default() }
    }
}

/// Why a hook has no answer, as a fragment: `it did not answer within 30s`.
pub type Failure = String;

/// What a hook that fails does to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// The call is refused, or its result withheld.
    #[default]
    Block,
    /// The call goes on, or its result is told, as though the hook had nothing against it. That it failed is recorded, and a
    /// warning is logged.
    Allow,
}

/// Looks at every call.
pub trait Hook: Send + Sync {
    /// Its name, for the audit and for whoever is told of a refusal.
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed("hook")
    }

    /// Whether it may change arguments and results. Such hooks run one after the other, before the rest.
    fn changes(&self) -> bool {
        false
    }

    /// What it does to the call where it fails.
    fn on_failure(&self) -> OnFailure {
        OnFailure::Block
    }

    /// Whether it wants to be asked of this call; what it does not look at is not recorded either.
    fn looks_at(&self, event: Event, call: &Proposed) -> bool {
        let _ = (event, call);
        true
    }

    /// The tools that it names, as globs over ids or over the names of direct mode: a host does not start where one of
    /// them stands for nothing.
    fn named_tools(&self) -> Vec<String> {
        Vec::new()
    }

    /// Judges a call that has not run.
    ///
    /// # Errors
    ///
    /// Where it cannot: the call is refused, unless the hook [says otherwise](Self::on_failure). So it is where it panics.
    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        let _ = call;
        Box::pin(ready(Ok(Verdict::go_on())))
    }

    /// Looks at the result of a call that has run.
    ///
    /// # Errors
    ///
    /// Where it cannot: the result is withheld, unless the hook [says otherwise](Self::on_failure). So it is where it panics.
    fn after<'a>(&'a self, done: Done<'a>) -> BoxFuture<'a, Result<Review, Failure>> {
        let _ = done;
        Box::pin(ready(Ok(Review::keep())))
    }
}

/// What a hook said, for the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Said {
    /// The hook.
    pub hook: String,
    /// When it was asked.
    pub event: Event,
    /// What it said: `go_on`, `allow`, `ask`, `deny`, `rewrite`, `keep`, `replace`, `withhold` or `failed`. Whether the call
    /// went on after `failed` is the hook's affair: the record's decision says it.
    pub verdict: &'static str,
    /// Why, where it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it gave the call other arguments, whatever else it said.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rewrote: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// What came of asking the hooks, for the audit: kept also where the call is then refused or dropped.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Heard {
    /// What they said, in the order in which they answered.
    pub said: Vec<Said>,
    /// The arguments that they, or the policy on secrets, gave the call.
    pub arguments: Option<JsonObject>,
    /// The tier of the call, where it is raised.
    pub tier: Option<Tier>,
    /// Who had a say in it besides who refused it.
    pub by: By,
}

/// What the hooks together say of a call that they do not refuse.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// Who wants that a human is asked, and why.
    pub(crate) ask: Option<Word>,
    /// Who says that nobody need be, and why.
    pub(crate) allow: Option<Word>,
    /// What the model is told besides.
    pub(crate) context: Vec<String>,
}

/// What one hook wants.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) hook: String,
    /// In words that name it.
    pub(crate) text: String,
}

/// Asks the hooks of a call. `check` judges rewritten arguments.
pub(crate) async fn before(
    hooks: &[Arc<dyn Hook>],
    call: &mut Proposed,
    heard: &mut Heard,
    check: impl Fn(&Proposed) -> Result<(), Denied>,
) -> Result<Judged, Denied> {
    let mut judged = Judged::default();
    for hook in hooks.iter().filter(|hook| hook.changes()) {
        if !hook.looks_at(Event::PreToolUse, call) {
            continue;
        }
        let answer = ask_before(&**hook, call).await;
        if let Some(arguments) = judged.take_in(answer, &mut heard.said)? {
            heard.arguments = Some(arguments.clone());
            call.arguments = arguments;
            check(call)?;
        }
    }
    let call = &*call;
    let others = hooks.iter().filter(|hook| !hook.changes() && hook.looks_at(Event::PreToolUse, call));
    // All are heard and recorded, though the first refusal decides.
    let answers = join_all(others.map(|hook| ask_before(&**hook, call))).await;
    let mut refused = None;
    for answer in answers {
        let answer = answer.only_judges();
        if let Err(denied) = judged.take_in(answer, &mut heard.said) {
            refused.get_or_insert(denied);
        }
    }
    refused.map_or(Ok(judged), Err)
}

/// Asks the hooks of a result and gives back what the caller is told.
pub(crate) async fn after(hooks: &[Arc<dyn Hook>], done: Done<'_>, said: &mut Vec<Said>) -> ToolResult {
    let event = done.event();
    let mut result = done.result.clone();
    let mut contexts = Vec::new();
    let mut withheld = None;
    for hook in hooks.iter().filter(|hook| hook.changes() && hook.looks_at(event, done.call)) {
        let answer = ask_after(&**hook, Done { result: &result, ..done }).await;
        let review = answer.review(said);
        result = review.result.unwrap_or(result);
        contexts.extend(review.context);
        withheld = withheld.or(review.withhold);
        if withheld.is_some() {
            break;
        }
    }
    if withheld.is_none() {
        let seen = Done { result: &result, ..done };
        let others = hooks.iter().filter(|hook| !hook.changes() && hook.looks_at(event, done.call));
        for answer in join_all(others.map(|hook| ask_after(&**hook, seen))).await {
            let review = answer.only_reviews().review(said);
            contexts.extend(review.context);
            withheld = withheld.or(review.withhold);
        }
    }
    if let Some(why) = withheld {
        let ran = if done.failed { "failed" } else { "ran" };
        let text = format!(
            "`{}` {ran}, and what it answered is withheld: {why}. It has had whatever effect it has: do not call it again",
            done.call.tool.id()
        );
        result = ToolError::new(text).into();
    }
    result.with_notes(contexts)
}

/// One hook's answer, and how long it took.
struct Answer<T> {
    hook: String,
    event: Event,
    said: Result<T, Failure>,
    on_failure: OnFailure,
    duration: Duration,
}

async fn answer<T>(
    hook: &dyn Hook,
    event: Event,
    said: impl Future<Output = Result<T, Failure>>,
) -> Answer<T> {
    let started = Instant::now();
    let said = AssertUnwindSafe(said).catch_unwind().await.unwrap_or_else(|_| Err("it panicked".to_owned()));
    let (name, on_failure) = (hook.name().into_owned(), hook.on_failure());
    Answer { hook: name, event, said, on_failure, duration: started.elapsed() }
}

async fn ask_before(hook: &dyn Hook, call: &Proposed) -> Answer<Verdict> {
    // In a block, so that what the hook does before its future is made is caught too.
    answer(hook, Event::PreToolUse, async { hook.before(call).await }).await
}

async fn ask_after(hook: &dyn Hook, done: Done<'_>) -> Answer<Review> {
    answer(hook, done.event(), async { hook.after(done).await }).await
}

impl<T> Answer<T> {
    fn record(&self, said: &mut Vec<Said>, verdict: &'static str, reason: Option<&str>) {
        said.push(Said {
            hook: self.hook.clone(),
            event: self.event,
            verdict,
            reason: reason.map(str::to_owned),
            rewrote: false,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        });
    }

    /// Records that it failed, and says whether the call goes on all the same.
    fn goes_on_failed(&self, said: &mut Vec<Said>, why: &str) -> bool {
        self.record(said, "failed", Some(why));
        let goes_on = self.on_failure == OnFailure::Allow;
        if goes_on {
            tracing::warn!(hook = %self.hook, %why, "a hook failed, and the call goes on as configured");
        }
        goes_on
    }

    /// Its word is one that it may not say, which no setting makes good: what it wants is done by nobody.
    fn oversteps(&mut self) {
        self.said = Err("it changes the call and is not declared as one that may".to_owned());
        self.on_failure = OnFailure::Block;
    }
}

impl Answer<Verdict> {
    fn only_judges(mut self) -> Self {
        if matches!(&self.said, Ok(verdict) if verdict.arguments.is_some()) {
            self.oversteps();
        }
        self
    }
}

impl Judged {
    /// Takes in what a hook said and gives back the arguments it wants.
    fn take_in(
        &mut self,
        answer: Answer<Verdict>,
        said: &mut Vec<Said>,
    ) -> Result<Option<JsonObject>, Denied> {
        let hook = &answer.hook;
        let refuse = |message: String| Err(Denied::new(Check::Hook, message).by(By::hook(hook)));
        let word = |text: String| Word { hook: hook.clone(), text };
        let verdict = match &answer.said {
            Ok(verdict) => verdict,
            Err(why) => {
                if answer.goes_on_failed(said, why) {
                    return Ok(None);
                }
                return refuse(format!(
                    "the hook `{hook}` failed ({why}), and without its word nothing is called; the user has to mend it"
                ));
            }
        };
        if verdict.arguments.is_some() {
            // Whoever allowed the call before has not seen what it is now.
            self.allow = None;
        }
        match &verdict.wish {
            Some(Wish::Deny(why)) => {
                answer.record(said, "deny", Some(why));
                return refuse(format!("the hook `{hook}` denied the call: {why}"));
            }
            Some(Wish::Ask(why)) => {
                answer.record(said, "ask", Some(why));
                self.ask.get_or_insert_with(|| word(format!("the hook `{hook}` asks for it: {why}")));
            }
            Some(Wish::Allow(why)) => {
                answer.record(said, "allow", Some(why));
                self.allow.get_or_insert_with(|| word(format!("the hook `{hook}`: {why}")));
            }
            None => {
                let verdict = if verdict.arguments.is_some() { "rewrite" } else { "go_on" };
                answer.record(said, verdict, None);
            }
        }
        if let Some(said) = said.last_mut() {
            said.rewrote = verdict.arguments.is_some();
        }
        self.context.extend(verdict.context.clone());
        Ok(verdict.arguments.clone())
    }
}

impl Answer<Review> {
    fn only_reviews(mut self) -> Self {
        if matches!(&self.said, Ok(review) if review.result.is_some()) {
            self.oversteps();
        }
        self
    }

    /// What it said; one that failed withholds, unless it is one that lets the call go on.
    fn review(self, said: &mut Vec<Said>) -> Review {
        match &self.said {
            Ok(review) => {
                let verdict = match review {
                    Review { withhold: Some(_), .. } => "withhold",
                    Review { result: Some(_), .. } => "replace",
                    _ => "keep",
                };
                self.record(said, verdict, review.withhold.as_deref());
                let withhold =
                    review.withhold.as_ref().map(|why| format!("the hook `{}` says: {why}", self.hook));
                Review { withhold, ..review.clone() }
            }
            Err(why) => match self.goes_on_failed(said, why) {
                true => Review::keep(),
                false => Review::withhold(format!("the hook `{}` failed ({why})", self.hook)),
            },
        }
    }
}
