//! A host for a test: the real pipeline, with a script in the human's place and an audit that stays in memory.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::audit::{AuditSink, Record, Stage};
use crate::call::{Completed, Outcome};
use crate::gate::approval::{Approval, ApprovalRequest, Approver};
use crate::host::{CallOptions, Host, HostBuilder, HostSession};
use crate::session::Profile;

/// What a human would answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, by `a test`.
    Approve,
    /// No, by `a test`, for this reason.
    Deny(&'static str),
    /// Nothing, for as long as anyone waits.
    Silence,
}

/// An approver that answers as it was told, in this order. A question beyond the last answer is denied.
#[derive(Debug, Default)]
pub struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Script {
    /// A script of these answers.
    #[must_use]
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    /// What was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Approver for Script {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move {
            match answer {
                Some(Answer::Approve) => Approval::once("a test"),
                Some(Answer::Deny(reason)) => Approval::denied("a test", reason),
                Some(Answer::Silence) => std::future::pending().await,
                None => Approval::denied("a test", "the script has no more answers"),
            }
        })
    }
}

/// An audit that keeps its records.
#[derive(Debug, Default)]
pub struct Recording(Mutex<Vec<Record>>);

impl Recording {
    /// All records so far.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What came of each call, in the order in which they ended.
    #[must_use]
    pub fn outcomes(&self) -> Vec<Outcome> {
        let ended = self.records().into_iter().filter(|record| record.stage == Stage::Outcome);
        ended.filter_map(|record| record.outcome).collect()
    }
}

impl AuditSink for Recording {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record.clone());
        Ok(())
    }
}

/// A host with one session, a [`Script`] for an approver and a [`Recording`] for an audit. Everything else is as in
/// production: scope, schema, hooks, egress, tiers.
///
/// ```
/// use aster_runtime::call::Outcome;
/// use aster_runtime::testing::{Answer, TestHost};
/// use aster_runtime::{Host, Profile, catalogue, mcp_tool};
/// use serde_json::json;
///
/// /// Opens a door.
/// #[mcp_tool(tier = Restricted, server = "house")]
/// fn open(door: String) -> String {
///     format!("the {door} is open")
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let builder = Host::builder().catalogue(catalogue![open::TOOL]);
/// let house = TestHost::start(builder, Profile::new("butler"), [Answer::Approve, Answer::Deny("not at night")]).await;
///
/// let first = house.call("house/open", json!({"door": "window"})).await;
/// assert_eq!(first.result.to_text(), "the window is open");
/// let second = house.call("house/open", json!({"door": "gate"})).await;
/// assert_eq!(second.outcome, Outcome::Denied);
///
/// assert_eq!(house.script().asked()[1].arguments, json!({"door": "gate"}));
/// assert_eq!(house.audit().outcomes(), [Outcome::Ok, Outcome::Denied]);
/// # }
/// ```
pub struct TestHost {
    host: Host,
    session: HostSession,
    script: Arc<Script>,
    audit: Arc<Recording>,
}

impl TestHost {
    /// Builds the host and a session of this profile; approver and audit are replaced.
    ///
    /// # Panics
    ///
    /// Where the host cannot be built, or a glob of the profile cannot be used.
    pub async fn start(
        builder: HostBuilder,
        profile: Profile,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let script = Arc::new(Script::new(answers));
        let audit = Arc::new(Recording::default());
        let builder =
            builder.approver(Arc::clone(&script) as Arc<dyn Approver>).audit(Arc::clone(&audit) as _);
        let host = builder.build().await.unwrap_or_else(|error| panic!("the host cannot be built: {error}"));
        let session =
            host.session(profile).unwrap_or_else(|error| panic!("the profile cannot be used: {error}"));
        Self { host, session, script, audit }
    }

    /// Calls a tool by its id.
    ///
    /// # Panics
    ///
    /// Where the arguments are no object.
    pub async fn call(&self, id: &str, arguments: Value) -> Completed {
        let Value::Object(arguments) = arguments else {
            panic!("the arguments of `{id}` are no object: {arguments}")
        };
        self.session.execute(id, arguments, CallOptions::default()).await
    }

    /// The host.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The session, for what is not a call of a tool.
    #[must_use]
    pub fn session(&self) -> &HostSession {
        &self.session
    }

    /// Who is asked.
    #[must_use]
    pub fn script(&self) -> &Script {
        &self.script
    }

    /// What was recorded.
    #[must_use]
    pub fn audit(&self) -> &Recording {
        &self.audit
    }
}

impl fmt::Debug for TestHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestHost").field("host", &self.host).finish_non_exhaustive()
    }
}
