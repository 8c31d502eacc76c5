//! The audit: for every call one id, an intent before it is dispatched, and exactly one outcome, whatever happens.
//!
//! A `Trail` follows one call. It writes the outcome when the call completes, or, where the caller drops the call,
//! when it is itself dropped: no path leads around it.
//!
//! Records go to an [`AuditSink`]: [`JsonLines`] unless a host says otherwise, or a database (`Sql`, feature `sql`). Both
//! bind every record to the one before it, so that [`Store::verify`] finds what was changed, taken out or put in.

mod chain;
mod gather;
mod jsonl;
#[cfg(feature = "sql")]
mod sql;
mod stats;
mod store;
mod verify;

use std::borrow::Cow;
use std::fs::{self, File, Metadata, OpenOptions};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub use chain::Segments;
use futures_util::future::BoxFuture;
pub use jsonl::JsonLines;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;

use crate::call::{By, Check, Completed, Denied, Outcome};
use crate::catalogue::Tool;
use crate::gate::Admitted;
use crate::gate::hooks::Heard;
use crate::gate::hooks::Said;
use crate::gate::secrets::Redactor;
use crate::session::Session;
use crate::spec::Tier;
use crate::text;
use crate::tool::{ClientInfo, JsonObject, ToolResult};
#[cfg(feature = "sql")]
pub use sql::Sql;
pub use stats::{Counts, ServerStats, Stats};
pub use store::{Entry, Store};
pub use verify::{Fault, Finding, Verification, VerifiedChain};

/// How long a call waits for its record to be kept: longer than a database may take that answers at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of a name that a caller made up is recorded, in characters.
const NAME: usize = 300;

/// What a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// A call was admitted and is about to be dispatched.
    Intent,
    /// A call is over.
    Outcome,
    /// The session searched for tools, of which it did not call any yet. What it asked is not recorded.
    Search,
    /// The session was shown the definitions of tools.
    Describe,
}

impl Stage {
    /// The name that it has in a record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Intent => "intent",
            Self::Outcome => "outcome",
            Self::Search => "search",
            Self::Describe => "describe",
        }
    }
}

/// One line of the audit. Of a Standard call it has no arguments and no result; secrets are replaced in all of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// When, as RFC 3339 in UTC.
    pub time: String,
    /// What it tells of.
    pub stage: Stage,
    /// The call's id, the same in both records of it. Empty where there is no call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call_id: String,
    /// The session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// Its team, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The project, where the host named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The client: as the host named it, or else as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Who the client has proved to be, as the label of its token or of another authentication; of a call over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The name as the caller wrote it, made safe to show: the id, or in direct mode the name that stands for it. Empty
    /// where there is no call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub requested: String,
    /// The id of the tool, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The digest of its definition: [`Tool::digest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Its tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the hooks said, in the order in which they answered. Empty in a record that was read back.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Said>,
    /// By what the call was admitted, or which check refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Who had a say in it: the rule, the hook, the approver, by name.
    #[serde(default, skip_serializing_if = "By::is_empty")]
    pub by: By,
    /// BLAKE3 of the arguments as JSON, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<String>,
    /// The arguments, of an Elevated or Restricted call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<RawValue>>,
    /// What came of it; of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What the caller was told, of an Elevated or Restricted call that ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Why the call failed or was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In which way a call failed that did not end with an answer of its tool: `unavailable`, `protocol`, `timed_out`,
    /// `cancelled` or `panicked`. A refusal has a [decision](Self::decision) instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<Cow<'static, str>>,
    /// The size of the result as JSON; of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// How long the call took, the gate included; of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How many tools a search found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<usize>,
    /// The ids of the tools that were described.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub described: Vec<String>,
}

impl Record {
    fn new(stage: Stage, session: &Session, client: ClientInfo) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            time: String::new(),
            stage,
            call_id: String::new(),
            session: session.id().to_owned(),
            agent: session.agent().to_owned(),
            team: owned(session.team()),
            project: owned(session.project()),
            client: owned(session.client()).or(client.name),
            principal: client.principal,
            requested: String::new(),
            tool: None,
            pin: None,
            tier: None,
            group: None,
            hooks: Vec::new(),
            decision: None,
            by: By::default(),
            arguments_digest: None,
            arguments: None,
            outcome: None,
            result: None,
            error: None,
            error_kind: None,
            bytes: None,
            duration_ms: None,
            found: None,
            described: Vec::new(),
        }
    }

    /// Whether a call is only made if this is kept: the intent of one beyond Standard. All else may be kept later.
    #[must_use]
    pub fn is_condition(&self) -> bool {
        self.stage == Stage::Intent && self.is_in_full()
    }

    /// Whether the tier asks for arguments and result.
    fn is_in_full(&self) -> bool {
        self.tier.is_some_and(|tier| tier >= Tier::Elevated)
    }
}

/// What the gate decided, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Admitted by this.
    Admitted(String),
    /// Refused by this check.
    Denied(Check),
}

/// Where records go. A sink writes a record whole or fails; one that writes on the spot implements [`write`](Self::write)
/// alone.
pub trait AuditSink: Send + Sync {
    /// Writes one record, or takes it over for a caller that cannot wait.
    ///
    /// # Errors
    ///
    /// Where it cannot be written; an Elevated or Restricted call is then denied.
    fn write(&self, record: &Record) -> io::Result<()>;

    /// Writes one record for a caller that waits until it is kept, or, unless it [is a condition](Record::is_condition), until
    /// the sink answers for it. The record is taken over at once, in the order of the calls, also where nobody waits any more.
    fn commit(&self, record: &Record) -> Commit {
        Commit::Done(self.write(record))
    }

    /// Waits until all that was taken over is kept.
    fn flush(&self) -> Commit {
        Commit::Done(Ok(()))
    }

    /// How many records were taken over and could not be kept, when nobody waited any more who could have been told: a caller
    /// that has left, or has waited in vain for half a minute.
    fn lost(&self) -> u64 {
        0
    }
}

/// Whether a record is kept, as soon as that is known.
#[must_use = "a record may not be kept"]
pub enum Commit {
    /// It is known.
    Done(io::Result<()>),
    /// It will be.
    Pending(BoxFuture<'static, io::Result<()>>),
}

impl Future for Commit {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(done) => Poll::Ready(std::mem::replace(done, Ok(()))),
            Self::Pending(pending) => pending.as_mut().poll(context),
        }
    }
}

/// Why it cannot be relied on that something is kept.
#[derive(Debug, thiserror::Error)]
enum Unkept {
    /// It is not.
    #[error(transparent)]
    Failed(#[from] io::Error),
    /// It may be later. Where it is not, the sink counts it, since nobody waits for it any more.
    #[error("it is not kept within {} s", PATIENCE.as_secs())]
    Unknown,
}

/// Waits until it is known whether something is kept, but not for ever: a store that hangs keeps nothing.
async fn known(commit: Commit) -> Result<(), Unkept> {
    let done = match commit {
        Commit::Done(done) => done,
        pending => timeout(PATIENCE, pending).await.map_err(|_| Unkept::Unknown)?,
    };
    done.map_err(Unkept::Failed)
}

/// Writes records as events of `tracing`, target `aster::audit`: what a host gets that configures no sink.
#[derive(Debug, Default)]
pub struct Traced;

impl AuditSink for Traced {
    fn write(&self, record: &Record) -> io::Result<()> {
        // Without anyone who listens there is nothing to write it for.
        if !tracing::enabled!(target: "aster::audit", tracing::Level::INFO) {
            return Ok(());
        }
        let line = serde_json::to_string(record)?;
        tracing::info!(target: "aster::audit", "{line}");
        Ok(())
    }
}

/// The audit of one host: where its records go, and what they come to.
pub(crate) struct Recorder {
    sink: Arc<dyn AuditSink>,
    stats: Mutex<Stats>,
}

impl Recorder {
    pub(crate) fn new(sink: Arc<dyn AuditSink>) -> Self {
        Self { sink, stats: Mutex::default() }
    }

    /// What all records so far come to.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.counted().clone();
        stats.lost_records += self.sink.lost();
        stats
    }

    /// The session searched, and found so many tools.
    pub(crate) fn searched(&self, session: &Session, client: ClientInfo, found: usize) {
        self.event(Record { found: Some(found), ..Record::new(Stage::Search, session, client) });
    }

    /// The session was shown these tools.
    pub(crate) fn described(&self, session: &Session, client: ClientInfo, described: Vec<String>) {
        self.event(Record { described, ..Record::new(Stage::Describe, session, client) });
    }

    /// Waits until all records are kept.
    pub(crate) async fn flush(&self) {
        if let Err(error) = known(self.sink.flush()).await {
            tracing::error!(%error, "the last records of the audit are not kept");
        }
    }

    /// Looking is free, also where it cannot be recorded.
    fn event(&self, mut record: Record) {
        record.time = now();
        self.counted().add(&record);
        self.lament(&record, self.sink.write(&record).map_err(Unkept::from));
    }

    /// Says that a record is not written, where it is not, and counts it where it is lost.
    fn lament(&self, record: &Record, written: Result<(), Unkept>) {
        if let Err(error) = written {
            let Record { stage, call_id, .. } = record;
            tracing::error!(%error, ?stage, call_id, "a record of the audit cannot be written");
            self.counted().lost_records += u64::from(matches!(error, Unkept::Failed(_)));
        }
    }

    fn commit(&self, record: &Record) -> Commit {
        self.counted().add(record);
        self.sink.commit(record)
    }

    fn counted(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows one call from its first check to its outcome.
pub(crate) struct Trail {
    recorder: Arc<Recorder>,
    redactor: Redactor,
    record: Record,
    /// What is called, where it has been found.
    tool: Option<Arc<Tool>>,
    heard: Heard,
    /// The values of its secret arguments, those before a hook's rewrite too: hooks and its result may repeat them.
    own_values: Vec<Value>,
    own_secrets: Redactor,
    /// The result holds nothing that a record leaves out.
    whole_result: bool,
    started: Instant,
    /// What came of it, once it has run, and how it failed.
    ran: Option<(Outcome, Option<(&'static str, String)>)>,
    complete: bool,
}

impl Trail {
    pub(crate) fn start(
        recorder: Arc<Recorder>,
        redactor: Redactor,
        session: &Session,
        client: ClientInfo,
        call_id: &str,
        requested: &str,
    ) -> Self {
        let record = Record {
            call_id: call_id.to_owned(),
            requested: text::one_line(&redactor.redact(requested), NAME),
            ..Record::new(Stage::Outcome, session, client)
        };
        Self {
            recorder,
            redactor,
            record,
            tool: None,
            heard: Heard::default(),
            own_values: Vec::new(),
            own_secrets: Redactor::default(),
            whole_result: false,
            started: Instant::now(),
            ran: None,
            complete: false,
        }
    }

    /// The tool has been found.
    pub(crate) fn resolved(&mut self, tool: &Arc<Tool>) {
        self.tool = Some(Arc::clone(tool));
        self.record.tool = Some(tool.id().to_string());
        self.record.pin = Some(tool.digest());
        self.record.tier = Some(tool.tier());
        self.record.group = Some(tool.group().to_owned());
    }

    /// The arguments are known: those that the caller gave and, where a hook gave others, those.
    pub(crate) fn arguments(&mut self, arguments: &JsonObject) {
        let mut shown = Cow::Borrowed(arguments);
        if let Some(tool) = self.tool.as_ref().filter(|tool| !tool.secret_arguments().is_empty()) {
            shown = Cow::Owned(tool.shown(arguments));
            for value in tool.secret_arguments().iter().filter_map(|name| arguments.get(*name)) {
                if !self.own_values.contains(value) {
                    self.own_values.push(value.clone());
                }
            }
            self.own_secrets = Redactor::of_values(&self.own_values);
        }
        let arguments = &*shown;
        // Of what is shown: the digest of a short secret gives it away.
        let json = written(arguments);
        self.record.arguments_digest = Some(blake3::hash(json.get().as_bytes()).to_hex().to_string());
        self.record.arguments = self.record.is_in_full().then(|| match self.is_whole(arguments) {
            true => json,
            false => self.redacted(arguments),
        });
    }

    /// The tier of the call, where its tool has been found: that of the tool, or what a rule raised it to.
    pub(crate) fn tier(&self) -> Option<Tier> {
        self.heard.tier.or(self.record.tier)
    }

    /// Takes in what hooks say of the call, and what it is made with instead.
    pub(crate) fn heard(&mut self) -> &mut Heard {
        &mut self.heard
    }

    /// What was heard becomes part of the record.
    fn take_heard(&mut self) {
        if let Some(tier) = self.heard.tier.take() {
            self.record.tier = Some(tier);
        }
        if let Some(arguments) = self.heard.arguments.take() {
            self.arguments(&arguments);
        }
        // A hook may repeat what it was given.
        let hidden =
            |said: &Said| Said { reason: said.reason.as_deref().map(|why| self.safe(why)), ..said.clone() };
        self.record.hooks = self.heard.said.iter().map(hidden).collect();
        self.record.by = self.heard.by.renamed(|name| self.safe(name));
    }

    /// The gate has admitted the call, which is about to be dispatched.
    pub(crate) async fn intent(&mut self, admitted: &Admitted) -> Result<(), Denied> {
        self.take_heard();
        // A rule may have raised this one call, which is then recorded in full.
        if self.record.tier.replace(admitted.tier()) != Some(admitted.tier()) {
            self.arguments(&admitted.call().arguments);
        }
        // A hook or a human may have said why.
        self.record.decision = Some(Decision::Admitted(self.safe(admitted.by())));
        self.record.time = now();
        self.record.stage = Stage::Intent;
        match known(self.recorder.commit(&self.record)).await {
            Err(error) if self.record.is_condition() => {
                tracing::error!(%error, "the audit cannot be written; the call is denied");
                Err(Denied::new(
                    Check::Audit,
                    "the record of the call cannot be written, and without it nothing beyond Standard is called; the \
                     user has to mend the audit's file, disk or database",
                ))
            }
            written => {
                self.recorder.lament(&self.record, written);
                Ok(())
            }
        }
    }

    /// The tool has run, and this came of it: so it is recorded from here on, also where the caller does not wait for what
    /// hooks say of the result.
    pub(crate) fn ran(&mut self, outcome: Outcome, error: Option<(&'static str, String)>) {
        self.ran = Some((outcome, error));
    }

    /// The call is over; writes its outcome.
    pub(crate) async fn complete(
        mut self,
        outcome: Outcome,
        denied: Option<&Denied>,
        error: Option<(&'static str, String)>,
        result: ToolResult,
    ) -> Completed {
        self.take_heard();
        let denied_by = denied.map(|denied| denied.check);
        let completed = Completed { outcome, denied: denied_by, result, duration: self.started.elapsed() };
        if let Some(denied) = denied {
            self.record.decision = Some(Decision::Denied(denied.check));
            self.heard.by = denied.by.clone().or(std::mem::take(&mut self.heard.by));
            self.record.error = Some(self.safe(&denied.message));
        }
        if let Some((kind, error)) = error {
            self.record.error_kind = Some(kind.into());
            self.record.error = Some(self.safe(&error));
        }
        let result = completed.result.as_object();
        if self.record.is_in_full() && matches!(outcome, Outcome::Ok | Outcome::ToolError) {
            let json = written(result);
            self.record.bytes = Some(json.get().len());
            self.record.result = Some(if self.whole_result { json } else { self.redacted(result) });
        } else {
            self.record.bytes = Some(completed.result.size());
        }
        let written = known(self.outcome(outcome, completed.duration)).await;
        self.recorder.lament(&self.record, written);
        completed
    }

    /// A text without secrets.
    fn safe(&self, text: &str) -> String {
        self.redactor.redact(&self.own_secrets.redact(text)).into_owned()
    }

    /// Takes note of what the caller would be told. Whether it holds nothing that a record leaves out: then nothing of it
    /// need be kept from the caller either, from whom less is withheld.
    pub(crate) fn keeps_whole(&mut self, result: &ToolResult) -> bool {
        self.whole_result = self.is_whole(result.as_object());
        self.whole_result
    }

    fn is_whole(&self, object: &JsonObject) -> bool {
        !self.redactor.finds_any(object) && !self.own_secrets.finds_any(object)
    }

    /// What may be recorded of an object.
    fn redacted(&self, object: &JsonObject) -> Box<RawValue> {
        // The longer first: an argument may hold a configured secret, of which only a part would be left to find.
        let safe = self.own_secrets.redact_value(&Value::Object(object.clone()));
        to_raw_value(&self.redactor.redact_value(&safe)).unwrap_or_default()
    }

    /// Hands the outcome over: from here on it is written, whether anybody waits for that or not.
    fn outcome(&mut self, outcome: Outcome, duration: Duration) -> Commit {
        self.complete = true;
        self.take_heard();
        self.record.stage = Stage::Outcome;
        self.record.time = now();
        self.record.outcome = Some(outcome);
        self.record.duration_ms = Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        self.recorder.commit(&self.record)
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if !self.complete {
            let (outcome, kind, error) = match (std::thread::panicking(), self.ran.take()) {
                (true, _) => (Outcome::Panicked, Some("panicked"), "the host panicked".to_owned()),
                (false, None) => {
                    (Outcome::Cancelled, Some("cancelled"), "the caller dropped the call".to_owned())
                }
                (false, Some((outcome, Some((kind, error))))) => (outcome, Some(kind), self.safe(&error)),
                (false, Some((outcome, None))) => (
                    outcome,
                    None,
                    "the caller dropped the call when it had run; nobody was told its result".to_owned(),
                ),
            };
            self.record.error = Some(error);
            self.record.error_kind = kind.map(Into::into);
            // Nobody is left to wait.
            if let Commit::Done(written) = self.outcome(outcome, self.started.elapsed()) {
                self.recorder.lament(&self.record, written.map_err(Unkept::from));
            }
        }
    }
}

/// An object as JSON; one is always writable.
fn written(object: &JsonObject) -> Box<RawValue> {
    to_raw_value(object).unwrap_or_default()
}

/// Opens or makes a file, for its owner alone.
fn open_private(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).create(true);
    // Appended, a line is one write, whoever else has the file open.
    if append {
        options.append(true)
    } else {
        options.write(true).truncate(false)
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // One that was there before may have been open to others.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// What tells a file from another that later has its path.
#[cfg(unix)]
fn identity(file: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (file.dev(), file.ino())
}

/// Elsewhere it is not noticed that a path has another file.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// That of the file which has this path now; `None` where there is none.
fn identity_at(path: &Path) -> io::Result<Option<(u64, u64)>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        there => Ok(Some(identity(&there?))),
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}
