//! Approval by a human: whom the gate asks about a Restricted call, what they are shown, and how far an answer goes.
//!
//! An answer is one to a question: about this tool with this pin, for this reason, asked by these rules. One that is to hold
//! for longer than a call is remembered in the session, and what differs in any of that asks again. Nothing that comes with
//! a call is ever read as an answer.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;

mod client;
mod desk;
mod race;

pub use client::{ClientApprover, TRUST};
pub use desk::{Desk, Waiting};
pub use race::Race;

pub use crate::session::MAX_WAITING_OF_SESSION;

use super::Gate;
use super::rules::Rules;
use super::secrets::Redactor;
use crate::call::Proposed;
use crate::canonical;
use crate::catalogue::{Origin, Tool};
use crate::id::ToolId;
use crate::pins::difference;
use crate::spec::Tier;
use crate::text;
use crate::tool::ClientLink;

/// What a human is asked to approve: exactly what will be sent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The agent that wants to call.
    pub agent: String,
    /// The tool.
    pub tool: ToolId,
    /// Its tier.
    pub tier: Tier,
    /// What its server is, where it is an external one: the command or the URL, without secrets.
    pub endpoint: Option<String>,
    /// What it says it does, as one safe line.
    pub summary: String,
    /// The arguments, whole but for the values of those that the tool declares secret.
    pub arguments: Value,
    /// What is different about the tool, line by line and safe to show: since a human approved a call of it last, or else
    /// when the user trusted it last. `None` where it is what it was.
    pub change: Option<String>,
    /// Why a human is asked.
    pub why: String,
    /// Whether an answer can hold for more than this call.
    pub remembers: bool,
}

/// How many calls wait for a human at most; one more is denied.
pub const MAX_WAITING: usize = 64;

/// Who answers on a terminal, as it stands in the audit.
const AT_TERMINAL: &str = "the user at the terminal";

/// How much of a change of a tool is shown, in bytes and in lines.
const MAX_CHANGE: usize = 8 << 10;
const MAX_CHANGE_LINES: usize = 100;

/// How often the client of a call hears that it waits for a human.
const TICK: Duration = Duration::from_secs(5);

/// When a call may be tried again for which there was no place.
const BUSY: Duration = Duration::from_secs(30);

/// What one tick counts: a tool reports in ones after this, and progress must not go back.
const STEP: f64 = 1e-6;

impl fmt::Display for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments = serde_json::to_string_pretty(&self.arguments).unwrap_or_default();
        writeln!(f, "{} wants to call {} ({})", text::one_line(&self.agent, 80), self.tool, self.tier)?;
        // Where a client reads Markdown, what stands after an empty line and four spaces is shown letter for letter
        // (CommonMark 4.4): without them a `<!--` in the summary or in a value would hide the rest.
        writeln!(f, "\n    why you are asked: {}", text::one_line(&self.why, 500))?;
        writeln!(f, "    it says it does:   {}", self.summary)?;
        match &self.endpoint {
            Some(endpoint) => writeln!(f, "    its server is:     {}", text::visible(endpoint))?,
            None => writeln!(f, "    its server is:     {}", self.tool.server())?,
        }
        if let Some(change) = &self.change {
            writeln!(f, "    it has changed, from what you approved or trusted before:")?;
            for line in change.lines() {
                writeln!(f, "    {}", text::visible(line))?;
            }
        }
        writeln!(f, "    arguments:")?;
        // Line by line, so that nothing in a value can move the cursor; nothing is cut.
        for line in arguments.lines() {
            writeln!(f, "    {}", text::visible(line))?;
        }
        writeln!(f)
    }
}

/// How far an approval goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// Calls of this tool with exactly these arguments, in this session.
    Arguments,
    /// All calls of this tool in this session.
    Session,
}

/// A human's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The call may run.
    Approved {
        /// Who or what approved, for the audit.
        by: String,
        /// Which others may too. Only what is asked again for the same reason: the tool has its pin still, and the same
        /// rules and hooks ask with the same words.
        scope: ApprovalScope,
    },
    /// It may not.
    Denied {
        /// Who or what denied it, for the audit; nobody, where none that was asked said so.
        by: Option<String>,
        /// Why, and what to do, for the model.
        reason: String,
    },
    /// There is nobody to ask, so that it may not.
    Unasked {
        /// What the user can do about it, where the approver knows more than the gate: it ends a sentence.
        hint: Option<String>,
    },
}

impl Approval {
    /// The call may run, once.
    #[must_use]
    pub fn once(by: impl Into<String>) -> Self {
        Self::Approved { by: by.into(), scope: ApprovalScope::Once }
    }

    /// The call may not run.
    #[must_use]
    pub fn denied(by: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Denied { by: Some(by.into()), reason: reason.into() }
    }

    /// The call may not run, though nobody has said so.
    fn unanswered(reason: impl Into<String>) -> Self {
        Self::Denied { by: None, reason: reason.into() }
    }

    /// What the user says who denies a call.
    pub(crate) fn denied_by_user(by: impl Into<String>) -> Self {
        Self::denied(by, "the user denied the call; nothing was called")
    }
}

/// Asks a human.
pub trait Approver: Send + Sync {
    /// Asks about one call. Whatever takes longer than the gate's window counts as a denial.
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval>;

    /// The same, with the way back to the client that the call came from: it may be able to ask its user.
    fn ask_through<'a>(
        &'a self,
        request: &'a ApprovalRequest,
        client: Option<&'a Arc<dyn ClientLink>>,
    ) -> BoxFuture<'a, Approval> {
        let _ = client;
        self.ask(request)
    }

    /// Whether the client hears by progress that the call waits, so that it does not give up. Not where the question
    /// stands on the client's own terminal.
    fn keeps_client_waiting(&self) -> bool {
        true
    }
}

/// Why a human is asked.
pub(super) struct Cause<'a> {
    /// In words.
    pub(super) why: &'a str,
    /// What the rules say that ask.
    pub(super) asking: &'a [Arc<str>],
    /// The rules that they are among.
    pub(super) rules: &'a Arc<Rules>,
}

/// A question as an answer to it is remembered: by all that was asked, with the arguments or without.
fn question(call: &Proposed, cause: &Cause<'_>, scope: ApprovalScope) -> String {
    let arguments = (scope == ApprovalScope::Arguments).then_some(&call.arguments);
    let asked = json!({
        "tool": call.tool.id().as_str(),
        "pin": call.tool.digest(),
        "why": cause.why,
        "asking": cause.asking.iter().map(|rule| &**rule).collect::<Vec<&str>>(),
        "arguments": arguments,
    });
    blake3::hash(canonical::to_string(&asked).as_bytes()).to_string()
}

/// Whether a human approves: one who is asked now, or one who was asked the same in this session and said that it holds.
pub(super) async fn ask(
    gate: &Gate,
    call: &Proposed,
    cause: &Cause<'_>,
    client: Option<&Arc<dyn ClientLink>>,
) -> Approval {
    // Whoever has not proved who it is may share what counts as its session with anybody.
    let remembers = client.is_none_or(|client| client.client().vouched);
    if !remembers {
        return ask_now(gate, call, cause, client, false).await;
    }
    let rules = Arc::downgrade(cause.rules) as Weak<dyn Any + Send + Sync>;
    for (scope, what) in [
        (ApprovalScope::Session, "this session"),
        (ApprovalScope::Arguments, "these arguments in this session"),
    ] {
        if let Some(by) = call.session.approval(&question(call, cause, scope), &rules) {
            return Approval::once(format!("{by} (remembered for {what})"));
        }
    }
    let answer = ask_now(gate, call, cause, client, true).await;
    if let Approval::Approved { by, scope } = &answer
        && *scope != ApprovalScope::Once
    {
        call.session.remember_approval(question(call, cause, *scope), rules, by.clone());
    }
    answer
}

/// The tools as a human approved calls of them last, by id.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<StdMutex<HashMap<ToolId, Arc<Tool>>>>);

impl Seen {
    /// What is different about a tool, without secrets: what was pinned may hold one that was configured later.
    fn change(&self, tool: &Tool, redactor: &Redactor) -> Option<String> {
        let approved = self.tools().get(tool.id()).map(Arc::clone);
        let before = match approved {
            Some(before) if before.digest() == tool.digest() => return None,
            Some(before) => redactor.redact_value(&before.pinned()),
            None => redactor.redact_value(tool.replaced()?),
        };
        Some(bounded(difference(Some(&before), &redactor.redact_value(&tool.pinned()))))
    }

    fn approved(&self, tool: &Arc<Tool>) {
        self.tools().insert(tool.id().clone(), Arc::clone(tool));
    }

    fn tools(&self) -> MutexGuard<'_, HashMap<ToolId, Arc<Tool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A change, or its beginning and how much more there is: a stranger must not be able to bury the question.
fn bounded(mut change: String) -> String {
    let lines = change.match_indices('\n').nth(MAX_CHANGE_LINES - 1).map_or(change.len(), |(end, _)| end + 1);
    let mut end = lines.min(MAX_CHANGE);
    while !change.is_char_boundary(end) {
        end -= 1;
    }
    if end < change.len() {
        let more = change[end..].chars().count();
        change.truncate(end);
        let cut = if change.ends_with('\n') { "" } else { "…\n" };
        change.push_str(&format!("{cut}… and {more} characters more, which are not shown\n"));
    }
    change
}

async fn ask_now(
    gate: &Gate,
    call: &Proposed,
    cause: &Cause<'_>,
    client: Option<&Arc<dyn ClientLink>>,
    remembers: bool,
) -> Approval {
    let (id, why) = (call.tool.id(), cause.why);
    let Some(approver) = &gate.approver else {
        return Approval::unanswered(nobody_to_ask(call, why, None));
    };
    let full = |waiting: fmt::Arguments<'_>| {
        Approval::unanswered(format!(
            "{waiting} wait for a human already; nothing was called. Try again in {} s",
            gate.approval_timeout.min(BUSY).as_secs().max(1)
        ))
    };
    let Ok(_share) = call.session.share().questions.try_acquire() else {
        return full(format_args!("{MAX_WAITING_OF_SESSION} calls of this session"));
    };
    let Ok(_place) = gate.questions.try_acquire() else {
        return full(format_args!("{MAX_WAITING} calls"));
    };
    let request = ApprovalRequest {
        call_id: Arc::clone(&call.call_id),
        agent: call.session.agent().to_owned(),
        tool: id.clone(),
        tier: call.tool.tier(),
        endpoint: gate.endpoints.get(id.server()).cloned(),
        summary: call.tool.summary().to_owned(),
        arguments: Value::Object(call.tool.shown(&call.arguments)),
        change: gate.approved.change(&call.tool, gate.secrets.redactor()),
        why: why.to_owned(),
        remembers,
    };
    let ask = AssertUnwindSafe(ask_and_tell(&**approver, &request, client)).catch_unwind();
    match tokio::time::timeout(gate.approval_timeout, ask).await {
        Ok(Ok(Approval::Unasked { hint })) => Approval::unanswered(nobody_to_ask(call, why, hint.as_deref())),
        Ok(Ok(approval)) => {
            if matches!(approval, Approval::Approved { .. }) {
                gate.approved.approved(&call.tool);
            }
            approval
        }
        Ok(Err(_)) => Approval::unanswered("nobody could be asked; nothing was called"),
        Err(_) => Approval::unanswered(format!(
            "nobody approved the call of `{id}` within {:?}; nothing was called",
            gate.approval_timeout
        )),
    }
}

/// Asks, and lets the client hear meanwhile that the call waits.
async fn ask_and_tell(
    approver: &dyn Approver,
    request: &ApprovalRequest,
    client: Option<&Arc<dyn ClientLink>>,
) -> Approval {
    let mut answer = approver.ask_through(request, client);
    let Some(told) = client.filter(|_| approver.keeps_client_waiting()) else { return answer.await };
    let mut ticks = tokio::time::interval(TICK);
    let mut progress = 0.0;
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            _ = ticks.tick() => {
                progress += STEP;
                told.progress(progress, None, Some("waiting for a human to approve the call"));
            }
        }
    }
}

/// What to do where nobody can be asked. The name of a stranger's tool becomes part of a command or of a setting only
/// where it is plain: somebody may copy it into a shell.
fn nobody_to_ask(call: &Proposed, why: &str, hint: Option<&str>) -> String {
    let id = call.tool.id();
    let named = if text::is_plain(id.as_str()) { format!(" {id}") } else { String::new() };
    let mut reason = format!(
        "`{id}` needs a human's approval ({why}), and nobody can be asked here. Nothing was called. The user can call \
         it from a terminal with `aster mcp call{named}`"
    );
    let by_tier = call.tool.tier() == Tier::Restricted;
    if matches!(call.tool.origin(), Origin::External) && by_tier && !named.is_empty() {
        reason.push_str(&format!(
            ", or lower its tier in aster.yaml: `mcp.servers.{}.tiers: {{\"{}\": elevated}}` with `annotations: ignore`",
            id.server(),
            id.tool()
        ));
    }
    if let Some(hint) = hint {
        reason.push_str(", or ");
        reason.push_str(hint);
    }
    reason
}

/// Asks on the terminal the process was started from: shows the call and reads `y` for this call, `a` for these arguments,
/// `s` for the session, or anything else for no.
///
/// Only for programs whose standard input is the user's: a server on stdio must not use it.
#[derive(Debug, Default)]
pub struct Terminal {
    /// One question at a time, in an order a human can follow.
    turn: Arc<Mutex<()>>,
}

impl Terminal {
    /// An approver on standard input and error; `None` where either is no terminal, so that nobody could answer.
    #[must_use]
    pub fn new() -> Option<Self> {
        (io::stdin().is_terminal() && io::stderr().is_terminal()).then(Self::default)
    }
}

impl Approver for Terminal {
    fn keeps_client_waiting(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        let turn = Arc::clone(&self.turn);
        let request = request.clone();
        Box::pin(async move {
            // Not on a thread: there are only so many, and others need them.
            let turn = turn.lock_owned().await;
            // A thread that waits for a line cannot be taken back. What is no longer asked meanwhile is said to be over:
            // whatever is typed then answers nothing.
            let asked = Asked(Arc::default());
            let open = Arc::downgrade(&asked.0);
            let answer = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                let put = open.upgrade().inspect(|put| put.store(true, Ordering::Relaxed)).is_some();
                if put { decide(&request, request.remembers) } else { Ok(None) }
            })
            .await;
            asked.0.store(false, Ordering::Relaxed);
            match answer {
                Ok(Ok(Some(scope))) => Approval::Approved { by: AT_TERMINAL.to_owned(), scope },
                Ok(Ok(None)) => Approval::denied_by_user(AT_TERMINAL),
                Ok(Err(_)) | Err(_) => {
                    let hint = "mend the terminal that Aster was started from, which cannot be read";
                    Approval::Unasked { hint: Some(hint.to_owned()) }
                }
            }
        })
    }
}

/// A question on the terminal, and whether it stands there.
struct Asked(Arc<AtomicBool>);

impl Drop for Asked {
    fn drop(&mut self) {
        if self.0.load(Ordering::Relaxed) {
            let _ = writeln!(io::stderr(), "\n(This is no longer asked; press Enter.)");
        }
    }
}

/// Asks whoever sits at the terminal about a call, as [`confirm`] does; `None` is no. Without `remembers` an answer holds
/// for one call.
///
/// # Errors
///
/// Where the terminal cannot be written or read.
pub fn decide(call: impl fmt::Display, remembers: bool) -> io::Result<Option<ApprovalScope>> {
    discard_typed();
    put_call(&call, remembers, &mut io::stdin().lock(), &mut io::stderr())
}

fn put_call(
    call: &dyn fmt::Display,
    remembers: bool,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<Option<ApprovalScope>> {
    let choices = match remembers {
        true => {
            " y: yes, once; a: and whenever it has exactly these arguments; s: for the whole session [y/a/s/N] "
        }
        false => " [y/N] ",
    };
    let typed = read_answer(&format_args!("\n{call}Allow this call?{choices}"), input, output)?;
    Ok(match typed.as_str() {
        "y" | "yes" => Some(ApprovalScope::Once),
        "a" if remembers => Some(ApprovalScope::Arguments),
        "s" if remembers => Some(ApprovalScope::Session),
        _ => None,
    })
}

/// Asks whoever sits at the terminal, on standard input and error, and takes only what is typed after the question for
/// an answer. Anything but a clear yes is a no, and so is the end of the input.
///
/// # Errors
///
/// Where the terminal cannot be written or read.
pub fn confirm(question: impl fmt::Display) -> io::Result<bool> {
    discard_typed();
    // Standard error stays unlocked: a program that is interrupted meanwhile must be able to say so.
    let question = format_args!("{question} [y/N] ");
    let typed = read_answer(&question, &mut io::stdin().lock(), &mut io::stderr())?;
    Ok(matches!(typed.as_str(), "y" | "yes"))
}

/// Forgets what was typed before anything was asked.
#[cfg(unix)]
fn discard_typed() {
    // What is no terminal has nothing typed.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}

fn read_answer(
    question: &dyn fmt::Display,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<String> {
    write!(output, "{question}")?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line.trim().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_change_says_that_it_is_cut() {
        let all = "é".repeat(MAX_CHANGE / 2);
        assert_eq!(bounded(all.clone()), all);
        let cut = bounded(format!("{all}\nxyz"));
        assert_eq!(cut, format!("{all}…\n… and 4 characters more, which are not shown\n"));
        let lines = "+\n".repeat(MAX_CHANGE_LINES);
        assert_eq!(bounded(lines.clone()), lines);
        let cut = bounded(format!("{lines}+ x"));
        assert_eq!(cut, format!("{lines}… and 3 characters more, which are not shown\n"));
    }

    #[test]
    fn only_a_clear_yes_is_a_yes_and_nothing_hides() {
        let request = ApprovalRequest {
            call_id: "1".into(),
            agent: "agent".into(),
            tool: ToolId::new("shell", "run"),
            tier: Tier::Restricted,
            endpoint: Some("sh -c \u{202e}x".into()),
            summary: "Runs a command.".into(),
            arguments: json!({"command": "ls\u{1b}[2K\n\u{202e}rm -rf /"}),
            change: Some("+   Runs\u{1b}[2K all of it.\n".into()),
            why: "the tool is Restricted".into(),
            remembers: true,
        };
        use ApprovalScope::{Arguments, Once, Session};
        for (typed, longer, answer) in [
            ("y\n", true, Some(Once)),
            (" Yes\r\n", true, Some(Once)),
            ("YES\n", false, Some(Once)),
            ("a\n", true, Some(Arguments)),
            ("S\n", true, Some(Session)),
            ("a\n", false, None),
            ("s\n", false, None),
            ("\n", true, None),
            ("", true, None),
            ("yep\n", true, None),
            ("all\n", true, None),
            ("y y\n", true, None),
            ("\u{202e}y\n", true, None),
        ] {
            let mut shown = Vec::new();
            let given = put_call(&request, longer, &mut typed.as_bytes(), &mut shown).unwrap();
            assert_eq!(given, answer, "{typed:?}");
            let shown = String::from_utf8(shown).unwrap();
            assert!(shown.contains("    +   Runs\\u{1b}[2K all of it.\n"), "{shown}");
            assert!(shown.contains("rm -rf /") && !shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
            // As Markdown it is a paragraph, a code block with all that strangers wrote, and the question.
            let (_, block) = shown.trim_start().split_once("\n\n").unwrap();
            let (block, question) = block.split_once("\n\n").unwrap();
            assert!(block.lines().all(|line| line.starts_with("    ")), "{shown}");
            assert!(question.starts_with("Allow this call? ") && question.ends_with("/N] "), "{question}");
            assert_eq!(question.contains("[y/a/s/N]"), longer);
        }
    }
}
