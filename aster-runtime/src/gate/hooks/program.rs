//! A hook that is a program: one JSON object on its standard input, one on its standard output, and an exit code.
//!
//! The protocol is the one that hook authors know from the Claude Agent SDK (its types `PreToolUseHookInput`,
//! `SyncHookJSONOutput`); `docs/hooks.md` has it whole. Unlike there, whatever is not understood is a failure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use globset::{Glob, GlobMatcher};
use process_wrap::tokio::ChildWrapper;
use regex::Regex;
use regex_syntax::hir::literal::Extractor;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Done, Event, Failure, Hook, OnFailure, Review, Verdict, Wish};
use crate::call::Proposed;
use crate::id::ToolId;
use crate::process::{contained, environment, program, spawn_failure};
use crate::text::one_line;
use crate::tool::{JsonObject, ToolResult};

/// How much a hook may write to its standard output, in bytes.
const MAX_OUTPUT: u64 = 4 << 20;

/// How much of its standard error is read, in bytes.
const MAX_STDERR: u64 = 64 << 10;

/// How much of what a hook says is told, in characters.
const MAX_REASON: usize = 2000;

/// The exit code by which a hook refuses.
const REFUSED: i32 = 2;

/// Which tools a hook looks at.
#[derive(Debug, Clone)]
pub struct Matcher {
    pattern: Pattern,
    by_name: bool,
}

#[derive(Debug, Clone)]
enum Pattern {
    All,
    Glob(GlobMatcher),
    Regex(Regex),
}

/// Why a matcher cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no {kind}: {reason}")]
pub struct InvalidMatcher {
    pattern: String,
    kind: &'static str,
    reason: String,
}

impl Matcher {
    /// Every tool.
    #[must_use]
    pub fn all() -> Self {
        Self { pattern: Pattern::All, by_name: false }
    }

    /// The tools whose id, `server/tool`, this glob matches.
    ///
    /// # Errors
    ///
    /// Where it is no glob.
    pub fn glob(glob: &str) -> Result<Self, InvalidMatcher> {
        let compiled = Glob::new(glob).map_err(|error| InvalidMatcher {
            pattern: one_line(glob, 128),
            kind: "glob",
            reason: one_line(&error.kind().to_string(), 300),
        })?;
        Ok(Self { pattern: Pattern::Glob(compiled.compile_matcher()), by_name: false })
    }

    /// The tools whose whole id this regular expression matches.
    ///
    /// ```
    /// use aster_runtime::gate::hooks::Matcher;
    ///
    /// assert!(Matcher::regex("files/(read|write)_.*").is_ok());
    /// assert!(Matcher::regex("files/(read").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Where it is no regular expression.
    pub fn regex(regex: &str) -> Result<Self, InvalidMatcher> {
        let invalid = |error: regex::Error| InvalidMatcher {
            pattern: one_line(regex, 128),
            kind: "regular expression",
            // The last line says what; the others draw it.
            reason: one_line(
                error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: "),
                300,
            ),
        };
        // By itself first: what is no expression alone must not become one between brackets.
        Regex::new(regex).map_err(invalid)?;
        let anchored = Regex::new(&format!("^(?:{regex})$")).map_err(invalid)?;
        Ok(Self { pattern: Pattern::Regex(anchored), by_name: false })
    }

    /// Matches the name that direct mode gives the tool, `server__tool`, instead of its id.
    #[must_use]
    pub fn by_name(mut self) -> Self {
        self.by_name = true;
        self
    }

    fn matches(&self, id: &ToolId) -> bool {
        let text: Cow<'_, str> = if self.by_name { id.direct_name().into() } else { id.as_str().into() };
        match &self.pattern {
            Pattern::All => true,
            Pattern::Glob(glob) => glob.is_match(&*text),
            Pattern::Regex(regex) => regex.is_match(&text),
        }
    }
}

/// A program that looks at calls.
///
/// ```
/// use aster_runtime::gate::hooks::{Event, Matcher, ProgramHook};
///
/// let hook = ProgramHook::new(Event::PreToolUse, "/usr/local/bin/no-fridays").matcher(Matcher::glob("mail/*")?);
/// # Ok::<(), aster_runtime::gate::hooks::InvalidMatcher>(())
/// ```
#[derive(Clone)]
pub struct ProgramHook {
    event: Event,
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    matcher: Matcher,
    timeout: Duration,
    changes: bool,
    on_failure: OnFailure,
}

// Arguments and variables may hold secrets.
impl fmt::Debug for ProgramHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramHook")
            .field("event", &self.event)
            .field("command", &self.command)
            .field("matcher", &self.matcher)
            .finish_non_exhaustive()
    }
}

impl ProgramHook {
    /// A hook that runs `command`, a path or a name on `PATH`, at this event; for every tool, within 30 seconds.
    #[must_use]
    pub fn new(event: Event, command: impl Into<String>) -> Self {
        Self {
            event,
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            matcher: Matcher::all(),
            timeout: Duration::from_secs(30),
            changes: false,
            on_failure: OnFailure::Block,
        }
    }

    /// Adds arguments; there is no shell that would read them.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment, beside [`INHERITED_VARIABLES`](crate::process::INHERITED_VARIABLES).
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The directory it starts in; that of this process unless set.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Limits it to some tools.
    #[must_use]
    pub fn matcher(mut self, matcher: Matcher) -> Self {
        self.matcher = matcher;
        self
    }

    /// How long it may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Lets it change arguments or results.
    #[must_use]
    pub fn changes(mut self, on: bool) -> Self {
        self.changes = on;
        self
    }

    /// What happens where it fails.
    #[must_use]
    pub fn on_failure(mut self, what: OnFailure) -> Self {
        self.on_failure = what;
        self
    }

    fn input(&self, call: &Proposed, event: Event) -> JsonObject {
        let id = call.tool.id();
        let value = json!({
            "hook_event_name": event.name(),
            "session_id": call.session.id(),
            "cwd": std::env::current_dir().unwrap_or_default(),
            "agent_type": call.session.agent(),
            "project": call.session.project(),
            "tool_use_id": &*call.call_id,
            "tool_name": format!("mcp__{}", id.direct_name()),
            "tool_id": id.as_str(),
            "mcp_server": {"name": id.server()},
            "tier": call.tool.tier().name(),
            "group": call.tool.group(),
            "tool_input": &call.arguments,
        });
        match value {
            Value::Object(input) => input,
            _ => JsonObject::new(),
        }
    }

    /// Runs it, and reads its answer as `read` does.
    async fn said<T>(&self, input: JsonObject, read: fn(Output) -> Result<T, Failure>) -> Result<T, Failure> {
        match timeout(self.timeout, self.run(&input)).await {
            Ok(said) => said.and_then(read),
            Err(_) => Err(format!("it did not answer within {:?}", self.timeout)),
        }
    }

    async fn run(&self, input: &JsonObject) -> Result<Output, Failure> {
        let environment = environment(std::env::vars_os(), &self.env);
        let mut command = Command::new(program(&self.command, &environment));
        command.args(&self.args).env_clear().envs(&environment);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = contained(command).spawn().map_err(|error| spawn_failure(&self.command, &error))?;
        let mut child = Running(child);
        let pipes = (child.0.stdin().take(), child.0.stdout().take(), child.0.stderr().take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("its standard streams are no pipes".to_owned());
        };
        let bytes = serde_json::to_vec(input).map_err(|error| error.to_string())?;
        let write = async {
            // One that does not care for its input need not read it.
            let _ = stdin.write_all(&bytes).await;
            drop(stdin);
        };
        let ((), stdout, stderr) = tokio::join!(write, read(stdout, MAX_OUTPUT), read(stderr, MAX_STDERR));
        let status =
            child.0.inner_mut().wait().await.map_err(|error| format!("it cannot be waited for: {error}"))?;
        let stdout = stdout.map_err(|error| format!("its output cannot be read: {error}"))?;
        match status.code() {
            Some(code @ (0 | REFUSED)) => read_output(self.event, code, &stdout, &stderr.unwrap_or_default()),
            _ => Err(format!("it ended with {status}")),
        }
    }
}

/// What a program answers by ending with this code and saying this.
fn read_output(event: Event, code: i32, stdout: &[u8], stderr: &[u8]) -> Result<Output, Failure> {
    if code == REFUSED {
        let said = one_line(&String::from_utf8_lossy(stderr), MAX_REASON);
        let why = if said.is_empty() { "it does not say why".to_owned() } else { said };
        return Ok(Output { decision: Some("block".to_owned()), reason: Some(why), ..Output::default() });
    }
    if u64::try_from(stdout.len()).is_ok_and(|length| length >= MAX_OUTPUT) {
        return Err(format!("it said more than {} MiB", MAX_OUTPUT >> 20));
    }
    if stdout.trim_ascii().is_empty() {
        return Ok(Output::default());
    }
    // What is passed over is not decoded otherwise.
    let text = str::from_utf8(stdout).map_err(|_| "its output is not UTF-8".to_owned())?;
    let Named(output): Named<Output> = serde_json::from_str(text)
        // The message of the reader may quote what it read.
        .map_err(|error| {
            format!("its output is no answer of a hook, at line {} column {}", error.line(), error.column())
        })?;
    match &output.specific {
        Some(Named(specific)) if specific.event.as_deref().is_some_and(|said| said != event.name()) => {
            Err(format!("its answer is for another event than {}", event.name()))
        }
        _ if output.is_async => {
            Err("it answers later (`async`), and a call cannot be judged later".to_owned())
        }
        _ => Ok(output),
    }
}

/// What a program says of a call by its output, where it refuses nothing by its exit code: for those who throw junk at it.
///
/// # Errors
///
/// Where it is no answer.
#[doc(hidden)]
pub fn verdict_of(stdout: &[u8]) -> Result<Verdict, Failure> {
    read_output(Event::PreToolUse, 0, stdout, &[]).and_then(Output::verdict)
}

/// What it says of a result.
///
/// # Errors
///
/// Where it is no answer.
#[doc(hidden)]
pub fn review_of(event: Event, stdout: &[u8]) -> Result<Review, Failure> {
    read_output(event, 0, stdout, &[]).and_then(Output::review)
}

/// Reads to the end, and keeps no more than the limit: whoever still writes to a pipe that is closed is ended by a signal.
async fn read(pipe: impl AsyncRead + Unpin, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut kept = pipe.take(limit);
    kept.read_to_end(&mut bytes).await?;
    tokio::io::copy(&mut kept.into_inner(), &mut tokio::io::sink()).await?;
    Ok(bytes)
}

/// Ends the whole group of a hook that nobody waits for any more.
struct Running(Box<dyn ChildWrapper>);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.start_kill();
    }
}

/// What a hook answers. A word that is not known is one that was meant to do something.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    #[serde(rename = "stopReason")]
    stop_reason: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    #[serde(rename = "async", default)]
    is_async: bool,
    #[serde(rename = "hookSpecificOutput")]
    specific: Option<Named<Specific>>,
    /// For the screen of a client, which there is not.
    #[serde(rename = "systemMessage", default)]
    _message: IgnoredAny,
    #[serde(rename = "suppressOutput", default)]
    _suppress: IgnoredAny,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Specific {
    #[serde(rename = "hookEventName")]
    event: Option<String>,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<JsonObject>,
    #[serde(alias = "updatedMCPToolOutput")]
    updated_tool_output: Option<Value>,
    additional_context: Option<String>,
}

/// What is read from an object alone: `serde` takes a list in the order of the fields too, which nobody documents.
#[derive(Debug, Default)]
struct Named<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        deserializer.deserialize_map(Members(PhantomData)).map(Named)
    }
}

fn reason(said: Option<String>) -> String {
    let said = said.map(|said| one_line(&said, MAX_REASON)).filter(|said| !said.is_empty());
    said.unwrap_or_else(|| "it does not say why".to_owned())
}

impl Output {
    /// Why it blocks, in the words that every event has.
    fn blocks(&mut self) -> Result<Option<String>, Failure> {
        if self.goes_on == Some(false) {
            return Ok(Some(reason(self.stop_reason.take())));
        }
        match self.decision.as_deref() {
            Some("block" | "deny") => Ok(Some(reason(self.reason.take()))),
            None | Some("approve" | "allow") => Ok(None),
            Some(_) => Err("its `decision` is neither `approve` nor `block`".to_owned()),
        }
    }

    fn verdict(mut self) -> Result<Verdict, Failure> {
        if let Some(why) = self.blocks()? {
            return Ok(Verdict::deny(why));
        }
        let approves = self.decision.is_some();
        let Named(specific) = self.specific.unwrap_or_default();
        let why = || reason(specific.permission_decision_reason.clone());
        let wish = match specific.permission_decision.as_deref() {
            Some("deny") => Some(Wish::Deny(why())),
            Some("ask") => Some(Wish::Ask(why())),
            Some("allow") => Some(Wish::Allow(why())),
            Some("defer") => None,
            None => approves.then(|| Wish::Allow(reason(self.reason))),
            Some(_) => {
                return Err(
                    "its `permissionDecision` is none of `allow`, `ask`, `deny` and `defer`".to_owned()
                );
            }
        };
        if specific.updated_tool_output.is_some() {
            return Err("it has another result for a call that has not run".to_owned());
        }
        Ok(Verdict { wish, arguments: specific.updated_input, context: specific.additional_context })
    }

    fn review(mut self) -> Result<Review, Failure> {
        if let Some(why) = self.blocks()? {
            return Ok(Review::withhold(why));
        }
        let Named(specific) = self.specific.unwrap_or_default();
        if specific.updated_input.is_some() || specific.permission_decision.is_some() {
            return Err("it judges a call that has already run".to_owned());
        }
        let result = match specific.updated_tool_output {
            Some(Value::Array(blocks)) => Some(ToolResult::from_value(json!({ "content": blocks }))),
            other => other.map(ToolResult::from_value),
        };
        Ok(Review { result, withhold: None, context: specific.additional_context })
    }
}

/// What a regular expression matches, as a glob, where that are a few texts. Of one that goes on as it likes nobody can say
/// whether it matches anything.
fn spelled(regex: &Regex) -> Option<String> {
    let parsed = regex_syntax::parse(regex.as_str()).ok()?;
    let matched = Extractor::new().extract(&parsed);
    let texts = matched.literals().filter(|_| matched.is_exact())?;
    let texts: Vec<&str> =
        texts.iter().map(|text| str::from_utf8(text.as_bytes()).ok()).collect::<Option<_>>()?;
    let is_plain = |text: &&str| !text.contains(['*', '?', '[', ']', '{', '}', ',', '\\']);
    match texts.as_slice() {
        [text] if is_plain(text) => Some((*text).to_owned()),
        [_, ..] if texts.iter().all(is_plain) => Some(format!("{{{}}}", texts.join(","))),
        _ => None,
    }
}

impl Hook for ProgramHook {
    fn name(&self) -> Cow<'_, str> {
        let file = std::path::Path::new(&self.command).file_name().and_then(|name| name.to_str());
        file.unwrap_or(&self.command).into()
    }

    fn changes(&self) -> bool {
        self.changes
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn looks_at(&self, event: Event, call: &Proposed) -> bool {
        event == self.event && call.tool.ids().any(|id| self.matcher.matches(id))
    }

    fn named_tools(&self) -> Vec<String> {
        match &self.matcher.pattern {
            Pattern::Glob(glob) => vec![glob.glob().glob().to_owned()],
            Pattern::Regex(regex) => spelled(regex).into_iter().collect(),
            Pattern::All => Vec::new(),
        }
    }

    fn before<'a>(&'a self, call: &'a Proposed) -> BoxFuture<'a, Result<Verdict, Failure>> {
        let input = self.input(call, Event::PreToolUse);
        self.said(input, Output::verdict).boxed()
    }

    fn after<'a>(&'a self, done: Done<'a>) -> BoxFuture<'a, Result<Review, Failure>> {
        let mut input = self.input(done.call, done.event());
        input.insert(
            "duration_ms".to_owned(),
            json!(u64::try_from(done.duration.as_millis()).unwrap_or(u64::MAX)),
        );
        if done.failed {
            input.insert("error".to_owned(), Value::String(done.result.to_text()));
        }
        input.insert("tool_response".to_owned(), Value::Object(done.result.as_object().clone()));
        self.said(input, Output::review).boxed()
    }
}
