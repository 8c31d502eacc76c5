//! Approval by a human: whom the gate asks about a Restricted call, and what they are shown.

use std::fmt;
use std::io::{self, BufRead, IsTerminal, Write};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

mod client;

pub use client::{ClientApprover, TRUST};

use super::Gate;
use crate::call::Proposed;
use crate::catalogue::Origin;
use crate::id::ToolId;
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
    /// What it says it does, as one safe line.
    pub summary: String,
    /// The arguments, whole but for the values of those that the tool declares secret.
    pub arguments: Value,
    /// Why a human is asked.
    pub why: String,
}

impl fmt::Display for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments = serde_json::to_string_pretty(&self.arguments).unwrap_or_default();
        writeln!(f, "{} wants to call {} ({})", text::one_line(&self.agent, 80), self.tool, self.tier)?;
        // Where a client reads Markdown, what stands after an empty line and four spaces is shown letter for letter
        // (CommonMark 4.4): without them a `<!--` in the summary or in a value would hide the rest.
        writeln!(f, "\n    why you are asked: {}", text::one_line(&self.why, 500))?;
        writeln!(f, "    it says it does:   {}", self.summary)?;
        writeln!(f, "    arguments:")?;
        // Line by line, so that nothing in a value can move the cursor; nothing is cut.
        for line in arguments.lines() {
            writeln!(f, "    {}", text::visible(line))?;
        }
        writeln!(f)
    }
}

/// A human's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// The call may run, once.
    Approved {
        /// Who or what approved, for the audit.
        by: String,
    },
    /// It may not.
    Denied {
        /// Why, and what to do, for the model.
        reason: String,
    },
    /// There is nobody to ask, so that it may not.
    Unasked {
        /// What the user can do about it, where the approver knows more than the gate: it ends a sentence.
        hint: Option<String>,
    },
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
}

pub(super) async fn ask(
    gate: &Gate,
    call: &Proposed,
    why: &str,
    client: Option<&Arc<dyn ClientLink>>,
) -> Approval {
    let id = call.tool.id();
    let Some(approver) = &gate.approver else {
        return Approval::Denied { reason: nobody_to_ask(call, why, None) };
    };
    let request = ApprovalRequest {
        call_id: Arc::clone(&call.call_id),
        agent: call.session.agent().to_owned(),
        tool: id.clone(),
        tier: call.tool.tier(),
        summary: call.tool.summary().to_owned(),
        arguments: Value::Object(call.tool.shown(&call.arguments)),
        why: why.to_owned(),
    };
    let ask = AssertUnwindSafe(async { approver.ask_through(&request, client).await }).catch_unwind();
    match tokio::time::timeout(gate.approval_timeout, ask).await {
        Ok(Ok(Approval::Unasked { hint })) => {
            Approval::Denied { reason: nobody_to_ask(call, why, hint.as_deref()) }
        }
        Ok(Ok(approval)) => approval,
        Ok(Err(_)) => Approval::Denied { reason: "nobody could be asked; nothing was called".to_owned() },
        Err(_) => Approval::Denied {
            reason: format!(
                "nobody approved the call of `{id}` within {:?}; nothing was called",
                gate.approval_timeout
            ),
        },
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

/// Asks on the terminal the process was started from: shows the call and reads `y` or `n`.
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
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        let turn = Arc::clone(&self.turn);
        let request = request.clone();
        Box::pin(async move {
            let answer = tokio::task::spawn_blocking(move || {
                let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                confirm(format_args!("\n{request}Allow this call?"))
            });
            match answer.await {
                Ok(Ok(true)) => Approval::Approved { by: "the user at the terminal".to_owned() },
                Ok(Ok(false)) => {
                    Approval::Denied { reason: "the user denied the call; nothing was called".to_owned() }
                }
                Ok(Err(_)) | Err(_) => {
                    Approval::Denied { reason: "the terminal cannot be read; nothing was called".to_owned() }
                }
            }
        })
    }
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
    put(&question, &mut io::stdin().lock(), &mut io::stderr())
}

/// Forgets what was typed before anything was asked.
#[cfg(unix)]
fn discard_typed() {
    // What is no terminal has nothing typed.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}

fn put(question: &dyn fmt::Display, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<bool> {
    write!(output, "{question} [y/N] ")?;
    output.flush()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_clear_yes_is_a_yes_and_nothing_hides() {
        let request = ApprovalRequest {
            call_id: "1".into(),
            agent: "agent".into(),
            tool: ToolId::new("shell", "run"),
            tier: Tier::Restricted,
            summary: "Runs a command.".into(),
            arguments: json!({"command": "ls\u{1b}[2K\n\u{202e}rm -rf /"}),
            why: "the tool is Restricted".into(),
        };
        for (typed, yes) in [
            ("y\n", true),
            (" Yes\r\n", true),
            ("YES\n", true),
            ("\n", false),
            ("", false),
            ("yep\n", false),
            ("y y\n", false),
            ("\u{202e}y\n", false),
        ] {
            let mut shown = Vec::new();
            assert_eq!(put(&request, &mut typed.as_bytes(), &mut shown).unwrap(), yes, "{typed:?}");
            let shown = String::from_utf8(shown).unwrap();
            assert!(shown.contains("rm -rf /") && !shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
            // As Markdown it is a paragraph, a code block with all that strangers wrote, and the question.
            let (_, block) = shown.split_once("\n\n").unwrap();
            let (block, question) = block.split_once("\n\n").unwrap();
            assert!(block.lines().all(|line| line.starts_with("    ")), "{shown}");
            assert_eq!(question, " [y/N] ");
        }
    }
}
