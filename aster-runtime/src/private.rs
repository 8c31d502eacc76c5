//! What the macros' expansions use. Outside semantic versioning: it may change in any release.
//!
//! Everything an expansion names is here, so that it compiles in a crate that has no dependency but this one, under
//! `#![no_implicit_prelude]` and beside types that are called `Option` or `Box`. Whatever can be a function is one:
//! generated code stays short, and is read and tested here.

use std::any::type_name;
use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::id::{self, MAX_NATIVE_ID, NameError, str_eq};
use crate::session::Running;
use crate::spec::{StartFuture, ToolFuture, share_a_name};
use crate::tool::{
    INVALID_ARGUMENTS, IntoPrompt, IntoResource, IntoToolError, IntoToolResult, Invocation, Json, McpServer,
    Ranged, ServerEnv, ServerState, StartError, Suggestions, TextDefault, ToolArg, ToolContext, ToolError,
    ToolOutput, ToolResult,
};
use crate::uri;

pub use core::option::Option::{self, None, Some};
pub use core::prelude::v1::{Clone, Copy, Debug, Eq, PartialEq, derive};
pub use core::time::Duration;
pub use core::{concat, env, file, line};

#[cfg(feature = "testing")]
pub use core::{convert::Into, prelude::v1::test};
#[cfg(feature = "testing")]
pub use insta;
#[cfg(feature = "inventory")]
pub use inventory;

pub use crate::schema::{InputSchema, Property};
pub use crate::spec::{
    Annotations, Completion, Entry, Group, Location, NativeServer, PromptSpec, Raise, ResourceSpec,
    ServerSpec, Tier, ToolSpec,
};
pub use crate::{__package_server as package_server, __submit as submit};
pub use aster_macros::beside;

/// Puts an entry into the inventory of linked tools, where there is one. The macros cannot see this crate's features.
#[cfg(feature = "inventory")]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($entry:expr) => {
        $crate::__private::inventory::submit! { $entry }
    };
}

/// There is no inventory without the feature of that name.
#[cfg(not(feature = "inventory"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($entry:expr) => {};
}

/// The server of a free tool: its package's name in lower case, with `_` for `-`. `env!` is read where the tool is
/// compiled, and rustc tracks it; a macro that read the variable itself would be right only as long as both run in one
/// process.
#[doc(hidden)]
#[macro_export]
macro_rules! __package_server {
    () => {{
        const PACKAGE: &str = $crate::__private::env!("CARGO_PKG_NAME");
        const NAME: [u8; PACKAGE.len()] = $crate::__private::underscored(PACKAGE);
        $crate::__private::ascii(&NAME)
    }};
}

/// One call on its way from JSON into a function: hands out the arguments and collects what is wrong with them, so
/// that a model hears of all mistakes at once.
#[derive(Debug)]
pub struct Call {
    invocation: Invocation,
    problems: Vec<String>,
}

impl Call {
    /// Begins with a call that the gate admitted.
    #[must_use]
    pub fn open(invocation: Invocation) -> Self {
        Self { invocation, problems: Vec::new() }
    }

    /// The server's state.
    pub fn state<S: NativeServer>(&mut self) -> Option<Arc<S>> {
        let state = Arc::clone(&self.invocation.state).downcast().ok();
        if state.is_none() {
            self.problems.push(format!("the server runs on another state than `{}`", short_name::<S>()));
        }
        state
    }

    /// An argument that its type may let be absent.
    pub fn argument<T: ToolArg>(&mut self, name: &'static str) -> Option<T> {
        self.take(name, T::__missing)
    }

    /// An argument with a default.
    pub fn argument_or<T: ToolArg>(&mut self, name: &'static str, default: fn() -> T) -> Option<T> {
        self.take(name, || Some(default()))
    }

    fn take<T: ToolArg>(&mut self, name: &'static str, absent: impl FnOnce() -> Option<T>) -> Option<T> {
        let value = self.invocation.arguments.shift_remove(name);
        let error = match value.as_ref().map(T::__decode) {
            Some(Ok(argument)) => return Some(argument),
            Some(Err(error)) => error,
            None => {
                let argument = absent();
                if argument.is_none() {
                    self.problems.push(format!("`{name}` is missing"));
                }
                return argument;
            }
        };
        // Models write null for "nothing", and the schema of an optional argument no longer says that they may not.
        if value.is_some_and(|value| value.is_null())
            && let Some(argument) = absent()
        {
            return Some(argument);
        }
        self.problems.push(format!("`{name}{}`: {}", error.path, error.reason));
        None
    }

    /// All arguments as one value, of a tool with a schema of its own.
    pub fn whole<T: ToolArg>(&mut self) -> Option<T> {
        let arguments = serde_json::Value::Object(std::mem::take(&mut self.invocation.arguments));
        match T::__decode(&arguments) {
            Ok(decoded) => Some(decoded),
            Err(error) => {
                let place = error.path.trim_start_matches('.');
                let place = if place.is_empty() { String::new() } else { format!("`{place}`: ") };
                self.problems.push(format!("{place}{}", error.reason));
                None
            }
        }
    }

    /// Refuses a number out of bounds.
    pub fn within<T: Ranged>(
        &mut self,
        name: &'static str,
        argument: &Option<T>,
        minimum: Option<T::Number>,
        maximum: Option<T::Number>,
    ) {
        let Some(number) = argument.as_ref().and_then(T::number) else { return };
        // Not "below or above": that would let NaN through.
        let inside =
            minimum.is_none_or(|bound| number >= bound) && maximum.is_none_or(|bound| number <= bound);
        if !inside {
            self.problems.push(format!("`{name}` must be {}", range_text(minimum, maximum)));
        }
    }

    /// The caller's side, where every argument was right and none was left over.
    pub fn finish(&mut self) -> Option<ToolContext> {
        for name in self.invocation.arguments.keys() {
            self.problems.push(format!("there is no argument `{}`", crate::text::one_line(name, 64)));
        }
        self.problems.is_empty().then(|| self.invocation.context.clone())
    }

    /// The answer to a call with wrong arguments.
    #[must_use]
    pub fn refuse(self) -> ToolFuture {
        let message = format!("the arguments are not right: {}", self.problems.join("; "));
        Box::pin(std::future::ready(Err(ToolError::new(message).with_code(INVALID_ARGUMENTS))))
    }
}

/// An argument whose type holds another: what is not met is told where that one is written.
#[derive(Debug)]
pub struct Argument<T>(PhantomData<T>);

impl<T> Argument<T> {
    /// As [`InputSchema::argument`].
    pub fn describe<'a>(
        schema: &'a mut InputSchema,
        name: &'static str,
        description: &'static str,
    ) -> Property<'a>
    where
        T: ToolArg,
    {
        schema.argument::<T>(name, description)
    }

    /// As [`Call::argument`].
    pub fn take(call: &mut Call, name: &'static str) -> Option<T>
    where
        T: ToolArg,
    {
        call.argument(name)
    }

    /// As [`Call::argument_or`].
    pub fn take_or(call: &mut Call, name: &'static str, default: fn() -> T) -> Option<T>
    where
        T: ToolArg,
    {
        call.argument_or(name, default)
    }
}

/// Reads a number's bounds, for the message of a refused argument.
fn range_text(minimum: Option<impl Display>, maximum: Option<impl Display>) -> String {
    match (minimum, maximum) {
        (Some(minimum), Some(maximum)) => format!("from {minimum} to {maximum}"),
        (Some(minimum), None) => format!("at least {minimum}"),
        (None, Some(maximum)) => format!("at most {maximum}"),
        (None, None) => "any number".to_owned(),
    }
}

/// The future of an `async fn`.
pub fn run<F>(future: F) -> ToolFuture
where
    F: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    Box::pin(future)
}

/// The future of a plain `fn`, which may block: it runs on tokio's pool for that. Dropping the future does not stop
/// the thread; a panic goes on where the future is awaited.
pub fn run_blocking<F>(function: F) -> ToolFuture
where
    F: FnOnce() -> Result<ToolResult, ToolError> + Send + 'static,
{
    let span = tracing::Span::current();
    Box::pin(async move {
        let running = Running::current();
        let function = move || span.in_scope(|| Running::blocking_within(running, function));
        match tokio::task::spawn_blocking(function).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ToolError::new("the process is shutting down")),
            },
        }
    })
}

/// Runs the methods of a server, whose state they borrow.
#[derive(Debug)]
pub struct With<S>(PhantomData<S>);

impl<S: Send + Sync> With<S> {
    /// As [`run`].
    pub fn run<F>(future: F) -> ToolFuture
    where
        F: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        run(future)
    }

    /// As [`run_blocking`].
    pub fn run_blocking<F>(function: F) -> ToolFuture
    where
        F: FnOnce() -> Result<ToolResult, ToolError> + Send + 'static,
    {
        run_blocking(function)
    }
}

/// What stands in for the functions of [`With`] where the state cannot be shared: its server has been told, and what follows
/// from it is not told again. An inherent function wins over a trait's.
pub trait Unshared {
    /// Never called: it does not compile.
    fn run<F>(_: F) -> ToolFuture {
        Box::pin(std::future::ready(Err(ToolError::new("the state cannot be shared between threads"))))
    }

    /// Never called: it does not compile.
    fn run_blocking<F>(_: F) -> ToolFuture {
        Box::pin(std::future::ready(Err(ToolError::new("the state cannot be shared between threads"))))
    }
}

impl<S> Unshared for With<S> {}

/// A function's value as a result.
///
/// # Errors
///
/// Where the tool failed.
pub fn result<R: IntoToolResult>(value: R) -> Result<ToolResult, ToolError> {
    value.into_tool_result()
}

/// What a function returns, as far as its type shows the parts: `error`, `value` and `json` judge them where they are
/// written, and what follows from a part that is not right is not told again. An inherent function wins over a trait's.
#[derive(Debug)]
pub struct Returned<R>(PhantomData<R>);

impl<R: IntoToolResult> Returned<R> {
    /// As [`result`].
    ///
    /// # Errors
    ///
    /// Where the tool failed.
    pub fn result(value: R) -> Result<ToolResult, ToolError> {
        value.into_tool_result()
    }

    /// As [`output_schema`].
    #[must_use]
    pub fn output_schema() -> Option<serde_json::Value> {
        R::output_schema()
    }
}

impl<T, E> Returned<Result<T, E>> {
    /// Judges the error.
    pub const fn error()
    where
        E: IntoToolError,
    {
    }

    /// Judges the value.
    pub const fn value()
    where
        T: IntoToolResult,
    {
    }
}

impl<T> Returned<Json<T>> {
    /// Judges what is inside.
    pub const fn json()
    where
        T: ToolOutput,
    {
    }
}

/// What stands in for the functions of [`Returned`]: where a part is not right, and where a type only has the name of
/// `Result` or `Json` and is judged as a whole.
pub trait Judged<R> {
    /// Never called: it does not compile.
    ///
    /// # Errors
    ///
    /// Always.
    fn result(_: R) -> Result<ToolResult, ToolError> {
        Err(ToolError::new("the function returns what is no result"))
    }

    /// Never called: it does not compile.
    #[must_use]
    fn output_schema() -> Option<serde_json::Value> {
        None
    }

    /// There is no error to be seen.
    fn error() {}

    /// Judges the whole.
    fn value()
    where
        R: IntoToolResult,
    {
    }

    /// Judges the whole.
    fn json()
    where
        R: IntoToolResult,
    {
    }
}

impl<R> Judged<R> for Returned<R> {}

/// A resource's value as a result: `{"contents": […]}`.
///
/// # Errors
///
/// Where it cannot be read.
pub fn contents<R: IntoResource>(value: R, mime_type: Option<&str>) -> Result<ToolResult, ToolError> {
    let contents = value.into_contents()?.into_iter().map(|contents| contents.into_value(mime_type));
    let contents = contents.collect::<serde_json::Value>();
    Ok(ToolResult::from_value(serde_json::json!({ "contents": contents })))
}

/// A prompt's value as a result: `{"messages": […]}`.
///
/// # Errors
///
/// Where it cannot be made.
pub fn messages<R: IntoPrompt>(value: R) -> Result<ToolResult, ToolError> {
    let messages = value.into_messages()?.into_iter().map(crate::tool::PromptMessage::into_value);
    let messages = messages.collect::<serde_json::Value>();
    Ok(ToolResult::from_value(serde_json::json!({ "messages": messages })))
}

/// A literal text as a default or an example of a parameter's own type.
pub fn text<T: TextDefault>(text: &'static str) -> T {
    T::from_literal(text)
}

/// The values that are suggested for an argument.
pub fn suggestions<S: Suggestions>(suggestions: S) -> Vec<String> {
    suggestions.into_values()
}

/// What `schema = …` can name.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no schema",
    label = "not a text",
    note = "`schema = …` names a constant with the text of the JSON: `const SCHEMA: &str = …`, or `include_str!(…)` in it",
    note = "[A0229] see docs/errors/A0229.md"
)]
pub trait SchemaText {
    /// The text.
    fn text(self) -> &'static str;
}

impl SchemaText for &'static str {
    fn text(self) -> &'static str {
        self
    }
}

/// A schema that the author wrote; where it is no JSON, what is wrong with it, as a text, which is no schema.
#[must_use]
pub fn own_schema<S: SchemaText>(schema: S) -> serde_json::Value {
    match serde_json::from_str(schema.text()) {
        Ok(schema @ serde_json::Value::Object(_)) => schema,
        Ok(_) => "it is not an object".into(),
        Err(error) => format!("it is not JSON: {error}").into(),
    }
}

/// The output schema of what has none.
#[must_use]
pub fn no_output_schema() -> Option<serde_json::Value> {
    None
}

/// The schema of a function's structured result.
#[must_use]
pub fn output_schema<R: IntoToolResult>() -> Option<serde_json::Value> {
    R::output_schema()
}

/// Chooses how a server of type `S` starts: by [`McpServer::start`] where the type implements it, for an inherent
/// constant wins over a trait's.
#[derive(Debug)]
pub struct Start<S>(PhantomData<S>);

impl<S: McpServer> Start<S> {
    /// Makes the state.
    pub const FUNCTION: fn(ServerEnv) -> StartFuture = |env| {
        Box::pin(async move {
            let state = S::start(&env).await?;
            Ok(Arc::new(state) as ServerState)
        })
    };
}

/// The start of a type that does not make its own state.
pub trait HandedIn {
    /// Says what to do.
    const FUNCTION: fn(ServerEnv) -> StartFuture;
}

impl<S> HandedIn for Start<S> {
    const FUNCTION: fn(ServerEnv) -> StartFuture = |_| {
        let server = short_name::<S>();
        let reason = format!(
            "it has no state to run on: hand the server in with `HostBuilder::with_server`, or implement `McpServer` \
             for `{server}`"
        );
        Box::pin(std::future::ready(Err(StartError::new(reason))))
    };
}

/// The group of a module's server, which is written outside of the module.
pub trait ServerGroup {
    /// The group.
    const GROUP: Group;
}

/// The tiers of the server that an `impl` is. By a trait, so that of two blocks rustc says once that there are two; and not by
/// [`NativeServer`], whose bounds would then be told for each use.
pub trait ServerTiers {
    /// The tier of each tool.
    const TIERS: &'static [Tier];
}

/// The start of a module's server, and of free functions: there is no state to make.
#[must_use]
pub fn start_stateless(_: ServerEnv) -> StartFuture {
    Box::pin(std::future::ready(Ok(Arc::new(()) as ServerState)))
}

fn short_name<T>() -> &'static str {
    let name = type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}

/// The tiers of a server's tools, in the order of its tool enum.
#[must_use]
pub const fn tiers<const N: usize>(server: &ServerSpec) -> [Tier; N] {
    let mut tiers = [Tier::Restricted; N];
    let mut at = 0;
    while at < N {
        tiers[at] = server.tools[at].tier;
        at += 1;
    }
    tiers
}

/// The names of the groups of a server's tools, in the order of its tool enum.
#[must_use]
pub const fn groups<const N: usize>(server: &ServerSpec) -> [&'static str; N] {
    let mut groups = [""; N];
    let mut at = 0;
    while at < N {
        groups[at] = match (server.tools[at].group, server.group) {
            (Some(group), _) | (None, Some(group)) => group.name(),
            (None, None) => server.name,
        };
        at += 1;
    }
    groups
}

/// The tool that stands where `#[mcp_tool]` reported an error, so that whatever refers to it does not fail as well.
pub static BROKEN_TOOL: ToolSpec = BROKEN;

const BROKEN: ToolSpec = ToolSpec {
    server: "broken",
    name: "broken",
    title: None,
    description: "",
    tier: Tier::Restricted,
    group: None,
    annotations: Annotations::NONE,
    timeout: None,
    hot: false,
    alias: None,
    egress: &[],
    url_arguments: &[],
    free_arguments: &[],
    path_arguments: &[],
    secret_arguments: &[],
    whole: false,
    input_schema: || serde_json::Value::Null,
    output_schema: || None,
    call: |invocation| Call::open(invocation).refuse(),
    location: Location { file: "", line: 0, package: "" },
};

/// The server that stands where `#[mcp_server]` reported an error.
pub static BROKEN_SERVER: ServerSpec = ServerSpec {
    name: "broken",
    title: None,
    description: "",
    instructions: None,
    group: None,
    tools: &[],
    tiers: || &[],
    resources: &[],
    prompts: &[],
    start: start_stateless,
    location: Location { file: "", line: 0, package: "" },
};

/// The resource that stands where `#[mcp_resource]` reported an error.
pub static BROKEN_RESOURCE: ResourceSpec =
    ResourceSpec { callable: BROKEN, uri: "broken:", mime_type: None, size: None, completions: &[] };

/// The prompt that stands where `#[mcp_prompt]` reported an error.
pub static BROKEN_PROMPT: PromptSpec = PromptSpec { callable: BROKEN, completions: &[] };

/// The ASCII lower case of a constant's name.
#[must_use]
pub const fn lowercase<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut lower = [0; N];
    let mut at = 0;
    while at < N {
        lower[at] = bytes[at].to_ascii_lowercase();
        at += 1;
    }
    lower
}

/// A package's name in lower case, with `_` for `-`.
#[must_use]
pub const fn underscored<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = lowercase(text);
    let mut at = 0;
    while at < N {
        if bytes[at] == b'-' {
            bytes[at] = b'_';
        }
        at += 1;
    }
    bytes
}

/// Bytes that [`lowercase`] or [`underscored`] made, as text.
#[must_use]
pub const fn ascii(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("the name is not UTF-8"),
    }
}

// The checks are `#[track_caller]` so that rustc shows the caller's line and not the inside of this file.

/// Checks the names of a tool, which its macro could not read: the package's name is known to rustc alone.
///
/// # Panics
///
/// In a `const`, as a compile error that names the tool.
#[track_caller]
pub const fn check_tool(tool: &ToolSpec) {
    check_name("server", tool.server);
    check_name("tool", tool.name);
    // The two underscores between them count as well.
    let length = tool.server.len() + 2 + tool.name.len();
    if length > MAX_NATIVE_ID {
        Sentence::new()
            .text("the id of tool `")
            .text(tool.server)
            .text("/")
            .text(tool.name)
            .text("` counts ")
            .number(length)
            .text(" characters as `server__tool`; the limit is ")
            .number(MAX_NATIVE_ID)
            .help("shorten one of the names with `name = \"…\"`")
            .panic("A0402");
    }
}

#[track_caller]
const fn check_name(what: &str, name: &str) {
    if let Err(error) = id::check_native_name(name) {
        Sentence::new()
            .text("the ")
            .text(what)
            .text(" `")
            .text(name)
            .text("`: ")
            .text(error.message())
            .help("set `")
            .text(if str_eq(what, "tool") { "name" } else { what })
            .text(" = \"…\"` to one of `[a-z][a-z0-9_-]*`")
            .panic(match error {
                NameError::Character => "A0401",
                NameError::Empty | NameError::TooLong => "A0402",
                NameError::Start | NameError::DoubleUnderscore | NameError::Reserved => "A0403",
            });
    }
}

/// The tool of this name, on a server that has it.
///
/// # Panics
///
/// Where the server does not have it.
#[must_use]
pub const fn tool_of(server: &'static ServerSpec, name: &str) -> &'static ToolSpec {
    let mut at = 0;
    while at < server.tools.len() {
        if str_eq(server.tools[at].name, name) {
            return &server.tools[at];
        }
        at += 1;
    }
    panic!("the server has no tool of this name")
}

/// What `catalogue!` can list.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in a catalogue",
    label = "neither a server, nor a tool, a resource or a prompt",
    note = "list a server by its `SERVER`, and a free function by its `TOOL`, `RESOURCE` or `PROMPT`: `catalogue![Web::SERVER, \
            clock::SERVER, add::TOOL]`",
    note = "[A0608] see docs/errors/A0608.md"
)]
pub trait Listed {}

impl Listed for ServerSpec {}
impl Listed for ToolSpec {}
impl Listed for ResourceSpec {}
impl Listed for PromptSpec {}
impl<T: Listed> Listed for &T {}

/// Holds an entry to it.
pub const fn listed<T: Listed>(_: &T) {}

/// What stands in for the function of an entry that is none: it has been told. An inherent function wins over a trait's.
pub trait Unlisted {
    /// Never called: it does not compile.
    fn entry(&self) -> Entry {
        Entry::Tool(&BROKEN_TOOL)
    }
}

impl<T> Unlisted for T {}

/// How many callables a list has.
#[must_use]
pub const fn count(entries: &[Entry]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < entries.len() {
        let entry = &entries[at];
        count += entry.tools().len() + entry.resources().len() + entry.prompts().len();
        at += 1;
    }
    count
}

/// Checks a list of servers and free functions: names, that each stands there once, and that each URI is one resource's.
/// `N` is their [`count`].
///
/// Everything is compared with its neighbours in an order by hash: a comparison of each with each would be more than rustc
/// evaluates in a constant without a lint.
///
/// # Panics
///
/// In a `const`, as a compile error that names the server and both places.
#[track_caller]
pub const fn check_catalogue<const N: usize>(entries: &[Entry]) {
    let mut at = 0;
    while at < entries.len() {
        let entry = &entries[at];
        check_name("server", entry.server());
        let mut own = 0;
        while let Some(callable) = entry.callable(own) {
            check_tool(callable);
            check_alias(entry, callable, own);
            own += 1;
        }
        check_uris(entries, at);
        at += 1;
    }
    let callables = by_hash::<N>(entries);
    let mut second = 1;
    while second < N {
        check_neighbours(entries, callables[second - 1], callables[second]);
        second += 1;
    }
    check_servers(entries);
}

/// A callable of a list, by the hash of its id.
#[derive(Clone, Copy)]
struct Hashed {
    hash: u64,
    entry: usize,
    callable: usize,
}

/// All callables of a list.
const fn by_hash<const N: usize>(entries: &[Entry]) -> [Hashed; N] {
    let mut callables = [Hashed { hash: 0, entry: 0, callable: 0 }; N];
    let (mut entry, mut all) = (0, 0);
    while entry < entries.len() {
        let mut callable = 0;
        while let Some(spec) = entries[entry].callable(callable) {
            callables[all] = Hashed { hash: hash(spec.server, spec.name), entry, callable };
            callable += 1;
            all += 1;
        }
        entry += 1;
    }
    sort(&mut callables);
    callables
}

/// FNV-1a over `server/name`.
const fn hash(server: &str, name: &str) -> u64 {
    const fn add(mut hash: u64, text: &str) -> u64 {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        hash
    }
    add(add(add(0xcbf2_9ce4_8422_2325, server), "/"), name)
}

/// Whether something only stands where a mistake has been reported, about which there is nothing more to say. The rest stands
/// in a package, which has a name.
const fn stand_in(location: Location) -> bool {
    location.package.is_empty()
}

/// Heapsort, which needs no recursion and no memory.
const fn sort(items: &mut [Hashed]) {
    let mut start = items.len() / 2;
    while start > 0 {
        start -= 1;
        sink(items, start, items.len());
    }
    let mut end = items.len();
    while end > 1 {
        end -= 1;
        items.swap(0, end);
        sink(items, 0, end);
    }
}

const fn sink(items: &mut [Hashed], mut at: usize, end: usize) {
    while at * 2 + 1 < end {
        let mut child = at * 2 + 1;
        if child + 1 < end && items[child].hash < items[child + 1].hash {
            child += 1;
        }
        if items[at].hash >= items[child].hash {
            return;
        }
        items.swap(at, child);
        at = child;
    }
}

/// Two with one hash are one id, but for a chance of 1 in 10¹⁴ at 500 tools: the names decide.
#[track_caller]
const fn check_neighbours(entries: &[Entry], first: Hashed, second: Hashed) {
    if first.hash != second.hash {
        return;
    }
    if let (Some(one), Some(two)) =
        (entries[first.entry].callable(first.callable), entries[second.entry].callable(second.callable))
        && str_eq(one.server, two.server)
        && str_eq(one.name, two.name)
        && !stand_in(one.location)
        && !stand_in(two.location)
        // Of two servers of one name the servers are told, and not their tools.
        && (first.entry == second.entry
            || (entries[first.entry].free().is_some() && entries[second.entry].free().is_some()))
    {
        let code = if first.entry == second.entry { "A0407" } else { "A0603" };
        match first.entry < second.entry || (first.entry == second.entry && first.callable < second.callable)
        {
            true => twice(one, two, code),
            false => twice(two, one, code),
        }
    }
}

/// An old name is nobody's name now. The macro sees those of one block; aliases are few.
#[track_caller]
const fn check_alias(entry: &Entry, callable: &'static ToolSpec, at: usize) {
    if callable.alias.is_none() {
        return;
    }
    let mut other = 0;
    while let Some(first) = entry.callable(other) {
        if other != at && share_a_name(first, callable) {
            twice(first, callable, "A0407");
        }
        other += 1;
    }
}

/// A server's name is its own; free functions share one.
#[track_caller]
const fn check_servers(entries: &[Entry]) {
    let mut at = 0;
    while at < entries.len() {
        let mut other = 0;
        // Two free functions have been compared; of the rest there are few.
        while other < at {
            let (first, second) = (&entries[other], &entries[at]);
            let both_free = first.free().is_some() && second.free().is_some();
            let neither_broken = !stand_in(first.location()) && !stand_in(second.location());
            if !both_free && neither_broken && str_eq(first.server(), second.server()) {
                same_server(first, second);
            }
            other += 1;
        }
        at += 1;
    }
}

/// Checks that every group which a tool or server was given is one of these.
///
/// # Panics
///
/// In a `const`, as a compile error that names the tool or server, its group and the others.
#[track_caller]
pub const fn check_groups(entries: &[Entry], declared: &[Group]) {
    let mut at = 0;
    while at < entries.len() {
        if let Entry::Server(server) = &entries[at]
            && let Some(group) = server.group
        {
            check_group("server `", server.name, "", group, declared);
        }
        let mut own = 0;
        while let Some(callable) = entries[at].callable(own) {
            if let Some(group) = callable.group {
                check_group(callable.server, "/", callable.name, group, declared);
            }
            own += 1;
        }
        at += 1;
    }
}

#[track_caller]
const fn check_group(first: &str, second: &str, third: &str, group: Group, declared: &[Group]) {
    let mut at = 0;
    while at < declared.len() {
        if str_eq(declared[at].name(), group.name()) {
            return;
        }
        at += 1;
    }
    let is_server = third.is_empty();
    let mut sentence = Sentence::new();
    sentence = sentence.text(if is_server { "" } else { "`" }).text(first).text(second).text(third);
    sentence =
        sentence.text("` is in the group `").text(group.name()).text("`, which `groups { … }` does not name");
    let mut at = 0;
    while at < declared.len() {
        sentence = sentence.text(if at == 0 { "; it names " } else { ", " });
        sentence = sentence.text("`").text(declared[at].name()).text("`");
        at += 1;
    }
    sentence.help("add the group there, or take its servers out of the list").panic("A0505")
}

/// Checks that what is raised stands in the list, and that nothing is lowered. `N` is the list's [`count`].
///
/// # Panics
///
/// In a `const`, as a compile error that names the tool.
#[track_caller]
pub const fn check_raises<const N: usize>(entries: &[Entry], raises: &[Raise]) {
    let callables = by_hash::<N>(entries);
    let mut at = 0;
    while at < raises.len() {
        let Raise { tool, tier } = raises[at];
        at += 1;
        if stand_in(tool.location) {
            continue;
        }
        let sentence = Sentence::new().text("`").text(tool.server).text("/").text(tool.name).text("` ");
        if !is_listed(entries, &callables, tool) {
            sentence
                .text("is raised, but does not stand in this catalogue")
                .help("add its server to the list, or remove the line")
                .panic("A0607");
        }
        if (tier as u8) < tool.tier as u8 {
            sentence
                .text("is ")
                .text(tool.tier.name())
                .text(" and cannot be lowered to ")
                .text(tier.name())
                .help("name a stricter tier, or remove the line: `raise` only tightens")
                .panic("A0504");
        }
    }
}

const fn is_listed(entries: &[Entry], callables: &[Hashed], tool: &ToolSpec) -> bool {
    let sought = hash(tool.server, tool.name);
    let (mut low, mut high) = (0, callables.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if callables[middle].hash < sought {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while low < callables.len() && callables[low].hash == sought {
        if let Some(listed) = entries[callables[low].entry].callable(callables[low].callable)
            && str_eq(listed.server, tool.server)
            && str_eq(listed.name, tool.name)
        {
            return true;
        }
        low += 1;
    }
    false
}

/// No resource of an entry has the URI of an earlier one.
#[track_caller]
const fn check_uris(entries: &[Entry], at: usize) {
    let own = entries[at].resources();
    if stand_in(entries[at].location()) {
        return;
    }
    let mut resource = 0;
    while resource < own.len() {
        let mut other = 0;
        while other <= at {
            let firsts = entries[other].resources();
            let mut first = 0;
            while first < firsts.len() && (other < at || first < resource) {
                if uri::is_same(firsts[first].uri, own[resource].uri) {
                    Sentence::new()
                        .text("two resources have the URI `")
                        .text(own[resource].uri)
                        .text("`: ")
                        .places(firsts[first].callable.location, own[resource].callable.location)
                        .help("give one of them another URI, or leave it out of the list")
                        .panic("A0604");
                }
                first += 1;
            }
            other += 1;
        }
        resource += 1;
    }
}

#[track_caller]
const fn same_server(first: &Entry, second: &Entry) {
    let both = if first.free().is_none() && second.free().is_none() {
        "` stands twice in the catalogue: "
    } else {
        "` is both a server and the server of a free tool: "
    };
    let sentence = Sentence::new().text("server `").text(first.server()).text(both);
    sentence
        .places(first.location(), second.location())
        .help("list it once, or give one of them another name")
        .panic("A0603")
}

#[track_caller]
const fn twice(first: &ToolSpec, second: &ToolSpec, code: &'static str) {
    Sentence::new()
        .text("`")
        .text(first.server)
        .text("/")
        .text(first.name)
        .text("` stands twice in the catalogue: ")
        .places(first.location, second.location)
        .help("list it once, or give one of them another name")
        .panic(code)
}

/// What is wrong with a list, put together in a `const`, where there is no `format!`, and in the form of the macros' errors.
/// What does not fit is cut off.
struct Sentence {
    bytes: [u8; 1024],
    length: usize,
}

impl Sentence {
    const fn new() -> Self {
        Self { bytes: [0; 1024], length: 0 }
    }

    const fn text(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        // All or nothing, so that no character is cut in two.
        if self.length + text.len() > self.bytes.len() {
            return self;
        }
        let mut at = 0;
        while at < text.len() {
            self.bytes[self.length] = text[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    const fn number(self, number: usize) -> Self {
        let this = if number >= 10 { self.number(number / 10) } else { self };
        let digit = [b'0' + (number % 10) as u8];
        this.text(ascii_digit(&digit))
    }

    const fn places(self, first: Location, second: Location) -> Self {
        self.place(first).text(" and ").place(second)
    }

    const fn place(self, location: Location) -> Self {
        self.text(location.file)
            .text(":")
            .number(location.line as usize)
            .text(" (package ")
            .text(location.package)
            .text(")")
    }

    const fn help(self, help: &str) -> Self {
        self.text("\nhelp: ").text(help)
    }

    #[track_caller]
    const fn panic(self, code: &'static str) -> ! {
        let this = self.text("\nnote: [").text(code).text("] see docs/errors/").text(code).text(".md");
        match std::str::from_utf8(this.bytes.split_at(this.length).0) {
            Ok(sentence) => panic!("{}", sentence),
            Err(_) => panic!("a name in the catalogue is not UTF-8"),
        }
    }
}

const fn ascii_digit(digit: &[u8; 1]) -> &str {
    match std::str::from_utf8(digit) {
        Ok(digit) => digit,
        Err(_) => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of a check that fails.
    fn panic_of(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
        let panic = std::panic::catch_unwind(check).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    const fn named(server: &'static str, name: &'static str) -> ToolSpec {
        let location = Location { file: "src/web.rs", line: 42, package: "tools" };
        ToolSpec { server, name, location, ..BROKEN_TOOL }
    }

    static SEARCH: ToolSpec = named("web", "search");
    static FETCH: ToolSpec = named("web", "fetch");
    static CAPITAL: ToolSpec = named("Web", "search");
    static LONG: ToolSpec = named("a_server_with_a_long_name_for_a_server", "and_a_tool_whose_name_is_long");
    const SERVER: ServerSpec = ServerSpec {
        name: "web",
        title: None,
        description: "",
        instructions: None,
        group: None,
        tools: &[],
        tiers: || &[],
        resources: &[],
        prompts: &[],
        start: start_stateless,
        location: Location { file: "src/other.rs", line: 7, package: "other" },
    };

    #[test]
    fn a_catalogue_names_both_places() {
        check_catalogue::<2>(&[Entry::Tool(&SEARCH), Entry::Tool(&FETCH)]);
        assert_eq!(
            panic_of(|| check_catalogue::<3>(&[
                Entry::Tool(&SEARCH),
                Entry::Tool(&FETCH),
                Entry::Tool(&SEARCH)
            ])),
            "`web/search` stands twice in the catalogue: src/web.rs:42 (package tools) and src/web.rs:42 \
             (package tools)\nhelp: list it once, or give one of them another name\nnote: [A0603] see \
             docs/errors/A0603.md"
        );
        static TWINS: [ToolSpec; 2] = [named("web", "search"), named("web", "search")];
        static OF_TWINS: ServerSpec = ServerSpec { tools: &TWINS, ..SERVER };
        assert!(
            panic_of(|| check_catalogue::<2>(&[Entry::Server(&OF_TWINS)]))
                .starts_with("`web/search` stands twice")
        );
        assert_eq!(
            panic_of(|| check_catalogue::<0>(&[Entry::Server(&SERVER), Entry::Server(&SERVER)])),
            "server `web` stands twice in the catalogue: src/other.rs:7 (package other) and src/other.rs:7 (package \
             other)\nhelp: list it once, or give one of them another name\nnote: [A0603] see docs/errors/A0603.md"
        );
        assert_eq!(
            panic_of(|| check_catalogue::<1>(&[Entry::Tool(&SEARCH), Entry::Server(&SERVER)])),
            "server `web` is both a server and the server of a free tool: src/web.rs:42 (package tools) and \
             src/other.rs:7 (package other)\nhelp: list it once, or give one of them another name\nnote: [A0603] see \
             docs/errors/A0603.md"
        );
    }

    #[test]
    fn what_stands_for_something_broken_is_not_told_again() {
        const ENTRIES: &[Entry] = &[
            Entry::Server(&BROKEN_SERVER),
            Entry::Tool(&BROKEN_TOOL),
            Entry::Resource(&BROKEN_RESOURCE),
            Entry::Server(&BROKEN_SERVER),
            Entry::Prompt(&BROKEN_PROMPT),
            Entry::Tool(&BROKEN_TOOL),
            Entry::Resource(&BROKEN_RESOURCE),
        ];
        check_catalogue::<{ count(ENTRIES) }>(ENTRIES);
        let raise = Raise { tool: &BROKEN_TOOL, tier: Tier::Standard };
        check_raises::<0>(&[Entry::Server(&BROKEN_SERVER)], &[raise]);
        let lowered = Raise { tool: &SEARCH, tier: Tier::Standard };
        assert!(panic_of(|| check_raises::<0>(&[], &[raise, lowered])).contains("A0607"));
    }

    #[test]
    fn a_name_that_only_rustc_knew_is_checked_in_a_const() {
        assert_eq!(
            panic_of(|| check_tool(&CAPITAL)),
            "the server `Web`: the name has a character that is not allowed in it\nhelp: set `server = \"…\"` to one of \
             `[a-z][a-z0-9_-]*`\nnote: [A0401] see docs/errors/A0401.md"
        );
        assert_eq!(
            panic_of(|| check_tool(&LONG)),
            "the id of tool `a_server_with_a_long_name_for_a_server/and_a_tool_whose_name_is_long` counts 69 characters \
             as `server__tool`; the limit is 64\nhelp: shorten one of the names with `name = \"…\"`\nnote: [A0402] see \
             docs/errors/A0402.md"
        );
    }

    #[test]
    fn a_sentence_that_is_too_long_is_cut_between_its_parts() {
        let long = "ä".repeat(400);
        let sentence = Sentence::new().text(&long).text(&long).text("end").number(0).number(1234);
        let text = std::str::from_utf8(&sentence.bytes[..sentence.length]).unwrap();
        assert_eq!(text, format!("{long}end01234"));
    }

    #[test]
    fn a_package_is_a_server() {
        const NAME: [u8; 8] = underscored("My-Tools");
        assert_eq!(std::str::from_utf8(&NAME), Ok("my_tools"));
    }
}
