//! The audit: for every call one id, an intent before it is dispatched, and exactly one outcome, whatever happens.
//!
//! A `Trail` follows one call. It writes the outcome when the call completes, or, where the caller drops the call,
//! when it is itself dropped: no path leads around it.

mod jsonl;

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use jsonl::JsonLines;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::call::{Check, Completed, Denied, Outcome};
use crate::catalogue::Tool;
use crate::gate::Admitted;
use crate::gate::hooks::Said;
use crate::gate::secrets::Redactor;
use crate::session::Session;
use crate::spec::Tier;
use crate::text;
use crate::tool::{ClientInfo, JsonObject, ToolResult};

/// How much of a name that a caller made up is recorded, in characters.
const NAME: usize = 300;

/// Whether a record says what is about to happen or what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The call was admitted and is about to be dispatched.
    Intent,
    /// The call is over.
    Outcome,
}

/// One line of the audit. Of a Standard call it has no arguments and no result; secrets are replaced in all of it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// When, as RFC 3339 in UTC.
    pub time: String,
    /// Intent or outcome.
    pub stage: Stage,
    /// The call's id, the same in both records.
    pub call_id: String,
    /// The session.
    pub session: String,
    /// The agent.
    pub agent: String,
    /// The project, where the host named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The client: as the host named it, or else as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Who the client has proved to be, as the label of its token or of another authentication; of a call over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The name as the caller wrote it, made safe to show: the id, or in direct mode the name that stands for it.
    pub requested: String,
    /// The id of the tool, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the hooks said, in the order in which they answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Said>,
    /// By what the call was admitted, or which check refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
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
    /// The size of the result as JSON; of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// How long the call took, the gate included; of an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// What the gate decided, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Admitted by this.
    Admitted(String),
    /// Refused by this check.
    Denied(Check),
}

/// Where records go. A sink writes a record whole or fails.
pub trait AuditSink: Send + Sync {
    /// Writes one record.
    ///
    /// # Errors
    ///
    /// Where it cannot be written; an Elevated or Restricted call is then denied.
    fn write(&self, record: &Record) -> io::Result<()>;
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

/// Follows one call from its first check to its outcome.
pub(crate) struct Trail {
    sink: Arc<dyn AuditSink>,
    redactor: Redactor,
    record: Record,
    /// What is called, where it has been found.
    tool: Option<Arc<Tool>>,
    /// The values of its secret arguments, which its result may repeat.
    own_secrets: Redactor,
    started: Instant,
    complete: bool,
}

impl Trail {
    pub(crate) fn start(
        sink: Arc<dyn AuditSink>,
        redactor: Redactor,
        session: &Session,
        client: ClientInfo,
        call_id: &str,
        requested: &str,
    ) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let record = Record {
            time: String::new(),
            stage: Stage::Outcome,
            call_id: call_id.to_owned(),
            session: session.id().to_owned(),
            agent: session.agent().to_owned(),
            project: owned(session.project()),
            client: owned(session.client()).or(client.name),
            principal: client.principal,
            requested: text::one_line(&redactor.redact(requested), NAME),
            tool: None,
            tier: None,
            group: None,
            hooks: Vec::new(),
            decision: None,
            arguments_digest: None,
            arguments: None,
            outcome: None,
            result: None,
            error: None,
            bytes: None,
            duration_ms: None,
        };
        Self {
            sink,
            redactor,
            record,
            tool: None,
            own_secrets: Redactor::default(),
            started: Instant::now(),
            complete: false,
        }
    }

    /// The tool has been found.
    pub(crate) fn resolved(&mut self, tool: &Arc<Tool>) {
        self.tool = Some(Arc::clone(tool));
        self.record.tool = Some(tool.id().to_string());
        self.record.tier = Some(tool.tier());
        self.record.group = Some(tool.group().to_owned());
    }

    /// The arguments are known: those that the caller gave and, where a hook gave others, those.
    pub(crate) fn arguments(&mut self, arguments: &JsonObject) {
        let mut shown = Cow::Borrowed(arguments);
        if let Some(tool) = self.tool.as_ref().filter(|tool| !tool.secret_arguments().is_empty()) {
            shown = Cow::Owned(tool.shown(arguments));
            let values = tool.secret_arguments().iter().filter_map(|name| arguments.get(*name));
            self.own_secrets = Redactor::of_values(values);
        }
        let arguments = &*shown;
        // Of what is shown: the digest of a short secret gives it away.
        let json = written(arguments);
        self.record.arguments_digest = Some(blake3::hash(json.get().as_bytes()).to_hex().to_string());
        self.record.arguments = self.in_full().then(|| self.redacted(arguments, json));
    }

    /// Takes in what hooks say.
    pub(crate) fn hooks(&mut self) -> &mut Vec<Said> {
        &mut self.record.hooks
    }

    /// A hook may repeat what it was given.
    fn hide_in_hooks(&mut self) {
        for reason in self.record.hooks.iter_mut().filter_map(|said| said.reason.as_mut()) {
            *reason = self.redactor.redact(&self.own_secrets.redact(reason)).into_owned();
        }
    }

    /// The gate has admitted the call, which is about to be dispatched.
    pub(crate) fn intent(&mut self, admitted: &Admitted) -> Result<(), Denied> {
        if admitted.is_rewritten() {
            self.arguments(&admitted.call().arguments);
        }
        // A rule may have raised this one call, which is then recorded in full.
        if self.record.tier.replace(admitted.tier()) != Some(admitted.tier()) {
            self.arguments(&admitted.call().arguments);
        }
        self.record.decision = Some(Decision::Admitted(admitted.by().to_owned()));
        self.hide_in_hooks();
        self.record.time = now();
        self.record.stage = Stage::Intent;
        match self.sink.write(&self.record) {
            Ok(()) => Ok(()),
            Err(error) if self.in_full() => {
                tracing::error!(%error, "the audit cannot be written; the call is denied");
                Err(Denied::new(
                    Check::Audit,
                    "the record of the call cannot be written, and without it nothing beyond Standard is called; the \
                     user has to mend the audit's file or disk",
                ))
            }
            Err(error) => {
                tracing::error!(%error, "the audit cannot be written");
                Ok(())
            }
        }
    }

    /// The call is over; writes its outcome.
    pub(crate) fn complete(
        mut self,
        outcome: Outcome,
        denied: Option<&Denied>,
        error: Option<String>,
        result: ToolResult,
    ) -> Completed {
        let denied_by = denied.map(|denied| denied.check);
        let completed = Completed { outcome, denied: denied_by, result, duration: self.started.elapsed() };
        if let Some(denied) = denied {
            self.record.decision = Some(Decision::Denied(denied.check));
        }
        self.record.error =
            error.map(|error| self.redactor.redact(&self.own_secrets.redact(&error)).into_owned());
        let result = completed.result.as_object();
        if self.in_full() && matches!(outcome, Outcome::Ok | Outcome::ToolError) {
            let json = written(result);
            self.record.bytes = Some(json.get().len());
            self.record.result = Some(self.redacted(result, json));
        } else {
            let mut bytes = Count(0);
            let _ = serde_json::to_writer(&mut bytes, result);
            self.record.bytes = Some(bytes.0);
        }
        self.write_outcome(outcome, completed.duration);
        completed
    }

    /// Whether the tier asks for arguments and result.
    fn in_full(&self) -> bool {
        self.record.tier.is_some_and(|tier| tier >= Tier::Elevated)
    }

    /// What may be recorded of an object, of which `json` is all.
    fn redacted(&self, object: &JsonObject, json: Box<RawValue>) -> Box<RawValue> {
        if !self.redactor.finds_any(object) && !self.own_secrets.finds_any(object) {
            return json;
        }
        // The longer first: an argument may hold a configured secret, of which only a part would be left to find.
        let safe = self.own_secrets.redact_value(&Value::Object(object.clone()));
        to_raw_value(&self.redactor.redact_value(&safe)).unwrap_or_default()
    }

    fn write_outcome(&mut self, outcome: Outcome, duration: Duration) {
        self.complete = true;
        self.hide_in_hooks();
        self.record.stage = Stage::Outcome;
        self.record.time = now();
        self.record.outcome = Some(outcome);
        self.record.duration_ms = Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        if let Err(error) = self.sink.write(&self.record) {
            tracing::error!(%error, call_id = %self.record.call_id, "the outcome of a call cannot be written");
        }
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if !self.complete {
            let (outcome, error) = match std::thread::panicking() {
                true => (Outcome::Panicked, "the host panicked"),
                false => (Outcome::Cancelled, "the caller dropped the call"),
            };
            self.record.error = Some(error.to_owned());
            self.write_outcome(outcome, self.started.elapsed());
        }
    }
}

/// An object as JSON; one is always writable.
fn written(object: &JsonObject) -> Box<RawValue> {
    to_raw_value(object).unwrap_or_default()
}

/// Counts what is written: a result may have megabytes, of which only the number is kept.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}
