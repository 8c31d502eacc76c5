//! The runtime of Aster, a compile-time framework for agent tools.
//!
//! Annotate a function with [`mcp_tool`], [`mcp_resource`] or [`mcp_prompt`], or a group of them with [`mcp_server`], list them with [`catalogue!`], and a
//! [`Host`] offers them to a language model together with the tools of external MCP servers: as one function and a
//! budgeted manifest ([`Injection`]), with every call through one [`gate`] and into one [`audit`].
//!
//! ```
//! use aster_runtime::{Host, Profile, catalogue, mcp_tool};
//!
//! /// Adds two whole numbers.
//! #[mcp_tool(tier = Standard, server = "calculator")]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = Host::builder().catalogue(catalogue![add::TOOL]).build().await?;
//! let session = host.session(Profile::new("assistant"))?;
//! assert!(session.injection().is_some_and(|injection| injection.prompt.contains("calculator/add")));
//! # Ok(())
//! # }
//! ```
//!
//! A host that has only a list of tools, and wants nothing but progressive disclosure of it, uses [`Injector`] alone.
//!
//! # Features
//!
//! A crate that only publishes tools needs none of them.
//!
//! | feature | what it adds |
//! |---|---|
//! | `inventory` (default) | collects the tools that are linked into the binary: [`NativeCatalogue::registered`] |
//! | `words` (default) | the word table of the search, 1.7 MB: words of like meaning, and where each lies among meanings |
//! | `serve` | MCP in, over standard input and output: the module `serve`, and `serve_main!` |
//! | `serve-http` | MCP in over HTTP too, mountable or with a listener of its own: the module `serve::http` |
//! | `hooks` | hooks that are programs: `gate::hooks::ProgramHook` |
//! | `upstream` | MCP out, to external servers that are programs: the module `upstream` |
//! | `http` | the guarded HTTP client of native servers: the module `net` |
//! | `config` | `aster.yaml`, the user's and the project's, and consent: the module `config` |
//! | `scan` | a look through the lists of external servers for what should make a human look twice: the module `scan` |
//! | `sql` | a database for the audit, SQLite or PostgreSQL: `audit::Sql` |
//! | `otel` | calls as OpenTelemetry spans, sent to a collector: the module `otel` |
//! | `testing` | for tests: `catalogue_tests!`, and the module `testing`, which calls tools through the real gate |

pub mod audit;
pub mod boot;
pub mod bridge;
pub mod call;
pub mod canonical;
pub mod catalogue;
#[cfg(feature = "config")]
pub mod config;
mod destination;
pub mod dispatch;
pub mod gate;
mod glob;
pub mod host;
pub mod id;
pub mod inject;
mod injector;
pub mod lint;
#[cfg(feature = "http")]
pub mod net;
#[cfg(feature = "otel")]
pub mod otel;
pub mod pins;
mod pointer;
#[cfg(any(feature = "hooks", feature = "upstream"))]
pub mod process;
pub mod provider;
#[cfg(feature = "scan")]
pub mod scan;
pub mod schema;
pub mod scope;
pub mod search;
#[cfg(feature = "serve")]
pub mod serve;
pub mod session;
pub mod spec;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod tool;
#[cfg(feature = "upstream")]
pub mod upstream;
pub mod uri;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

/// Publishes a function as a prompt: a template of messages that a user chooses, free or on a server like a tool.
///
/// The options are `tier`, which must be there, `group`, `name`, `title`, `timeout`, `server` and `crate`, as for
/// [`mcp_tool`](macro@mcp_tool). The doc comment is the description. The parameters are the prompt's arguments. A client
/// sends them as text; what the type of a parameter does not take as text is read as JSON. In `#[arg(…)]`, beside what
/// tools have, `complete = path` names a function from what has been typed to suggestions, and `complete = ["a", "b"]` lists
/// them; a parameter whose type is an enum of texts is completed without it. Suggestions are not calls: they are given
/// without a record, and without approval.
///
/// The result is anything that is [`IntoPrompt`]: text, [`PromptMessage`], several of these, or a `Result`.
///
/// A prompt is called through the same gate as a tool and has an id in the same space of names, `server/prompt`, by which a
/// session's groups and globs hide it. It is never offered among tools.
///
/// ```
/// use aster_runtime::{Host, Profile, PromptMessage, catalogue, mcp_prompt};
/// use serde_json::json;
///
/// fn languages(typed: &str) -> Vec<&'static str> {
///     if typed.is_empty() { vec!["English"] } else { vec!["English", "French", "Finnish"] }
/// }
///
/// /// Asks for a translation.
/// #[mcp_prompt(tier = Standard, server = "language")]
/// fn translate(
///     /// What to translate.
///     text: String,
///     /// Into which language.
///     #[arg(complete = languages)]
///     into: Option<String>,
/// ) -> PromptMessage {
///     PromptMessage::user(format!("Translate into {}: {text}", into.as_deref().unwrap_or("English")))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::builder().catalogue(catalogue![translate::PROMPT]).build().await?;
/// let session = host.session(Profile::new("assistant"))?;
/// let arguments = json!({"text": "Baum"}).as_object().cloned().unwrap_or_default();
/// let prompt = session.get_prompt("language/translate", arguments, Default::default()).await.result.into_value();
/// assert_eq!(prompt["messages"][0]["content"]["text"], "Translate into English: Baum");
/// # Ok(())
/// # }
/// ```
pub use aster_macros::mcp_prompt;
/// Publishes a function as a resource, which a client reads by its URI: free, or on a server like a tool.
///
/// | option | value | without it |
/// |---|---|---|
/// | `uri` | a URI, or a template of URIs | does not compile |
/// | `tier` | `Standard`, `Elevated` or `Restricted`, see [`Tier`] | does not compile |
/// | `mime_type` | the type of contents that do not name their own | none |
/// | `size` | the size in bytes, where it is fixed | none |
/// | `group`, `name`, `title`, `timeout`, `server`, `crate` | as for [`mcp_tool`](macro@mcp_tool) | |
///
/// In a template (RFC 6570) `{name}` is one segment and `{+name}` may contain `/`; the variables are the function's
/// parameters. Values come percent-decoded, and what a parameter's type does not take as text is read as JSON. They are a
/// client's data: `{name}` is `..` where a client says so, and a function that opens files has to look. Of several resources
/// that a URI could mean, it is the one without variables, then the one with the most text around them. For `#[arg(complete =
/// …)]` see [`mcp_prompt`](macro@mcp_prompt).
///
/// The result is anything that is [`IntoResource`]: text, `Vec<u8>`, [`Json`], [`ResourceContents`], several of these,
/// `Option`, where `None` says that there is no such resource, or a `Result`. Whoever knows that a resource has changed says
/// so with [`ToolContext::resource_updated`] or [`Host::resource_updated`].
///
/// A resource is called through the same gate as a tool and has an id in the same space of names, `server/resource`, by which
/// a session's groups and globs hide it. It is never offered among tools.
///
/// ```
/// use aster_runtime::{Host, Profile, catalogue, mcp_resource};
///
/// /// One day's notes.
/// #[mcp_resource(uri = "notes://{year}/{month}", mime_type = "text/markdown", tier = Standard, server = "notes")]
/// fn month(year: u16, month: u8) -> Option<String> {
///     (1..=12).contains(&month).then(|| format!("# {month}/{year}"))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::builder().catalogue(catalogue![month::RESOURCE]).build().await?;
/// let session = host.session(Profile::new("assistant"))?;
/// let read = session.read_resource("notes://2026/11", Default::default()).await.result.into_value();
/// assert_eq!(read["contents"][0]["text"], "# 11/2026");
/// # Ok(())
/// # }
/// ```
pub use aster_macros::mcp_resource;
/// Publishes the tools of an `impl` or of a module as a server.
///
/// | option | value | without it |
/// |---|---|---|
/// | `name` | the server's name, `[a-z][a-z0-9_-]*` | the type's in snake case, the module's as it is |
/// | `group` | a path to a [`Group`] that [`groups!`] declared | a group named like the server |
/// | `title` | the name to show to people | none |
/// | `instructions` | what a client should know to use it well | none |
/// | `crate` | the path under which a facade re-exports this crate | `::aster_runtime` |
///
/// The doc comment is the server's description. The functions that carry [`mcp_tool`](macro@mcp_tool) are its tools, those
/// with [`mcp_resource`](macro@mcp_resource) and [`mcp_prompt`](macro@mcp_prompt) its resources and prompts; all others stay
/// what they are. A type is one server: all of its tools stand in one block.
///
/// On `impl Web` the server's state is a value of `Web`: tools take `&self`, or nothing of it. A server that can make its
/// own state implements [`McpServer`]; any other is handed to the host, live. A running server takes tools off the list, and
/// says why, by its [`Availability`]. `Web::SERVER` is the constant for [`catalogue!`], and `enum WebTool` names the tools, in
/// the order of `Web::TIERS` and `Web::GROUPS`. These names are the server's own: nothing else of the type has them.
///
/// ```
/// use aster_runtime::{Json, NativeCatalogue, ToolContext, catalogue, groups, mcp_server, mcp_tool};
///
/// groups! { pub RESEARCH }
///
/// struct Web {
///     pages: Vec<String>,
/// }
///
/// /// Looks things up.
/// #[mcp_server(group = RESEARCH)]
/// impl Web {
///     /// Searches the pages and returns those that match.
///     ///
///     /// Use it when no address is known yet.
///     #[mcp_tool(tier = Elevated, read_only, timeout = "30s")]
///     async fn search(
///         &self,
///         ctx: &ToolContext,
///         /// What to look for, in plain words.
///         query: String,
///         /// How many results to return.
///         #[arg(default = 5, range(1..=20))]
///         limit: u8,
///     ) -> Result<Json<Vec<String>>, std::io::Error> {
///         ctx.progress(0.0, None, None);
///         let hits = self.pages.iter().filter(|page| page.contains(&query));
///         Ok(Json(hits.take(limit.into()).cloned().collect()))
///     }
/// }
///
/// const CATALOGUE: NativeCatalogue = catalogue![Web::SERVER];
///
/// # fn main() {
/// assert_eq!(Web::GROUPS[WebTool::Search as usize], "research");
/// # assert_eq!(CATALOGUE.entries.len(), 1);
/// # }
/// ```
///
/// On `mod clock` there is no state; the constant is `clock::SERVER`, the enum `clock::Tool`. Four names are thus taken in
/// the module: `SERVER`, `TIERS`, `GROUPS` and `Tool`.
///
/// ```
/// use aster_runtime::mcp_server;
///
/// /// Tells the time.
/// #[mcp_server]
/// mod clock {
///     use aster_runtime::mcp_tool;
///
///     /// Tells how many seconds a day has.
///     #[mcp_tool(tier = Standard, read_only)]
///     pub fn day() -> u32 {
///         86_400
///     }
/// }
///
/// # fn main() {
/// assert_eq!(clock::day(), 86_400);
/// assert_eq!(clock::SERVER.tools[clock::Tool::Day as usize].name, "day");
/// # }
/// ```
pub use aster_macros::mcp_server;
/// Publishes a function as a tool: a free one on its own, a method as a tool of the server around it.
///
/// | option | value | without it |
/// |---|---|---|
/// | `tier` | `Standard`, `Elevated` or `Restricted`, see [`Tier`] | does not compile |
/// | `group` | a path to a [`Group`] that [`groups!`] declared | the server's |
/// | `name` | the tool's name, `[a-z][a-z0-9_-]*` | the function's |
/// | `title` | the name to show to people | none |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | alone, or `= false`, see [`Annotations`] | unsaid |
/// | `timeout` | `"500ms"`, `"30s"`, `"2m"` | the host's |
/// | `hot` | listed first in a manifest, with its signature | listed in its turn |
/// | `alias` | a name that the tool had before: calls by it arrive, and rules that name it hold | none |
/// | `egress("…", …)` | the hosts that its URLs may name, `*.` before one for all below it | those of the host's policy |
/// | `schema` | the path of a constant `&'static str`: the input schema as JSON, sent as the same JSON, in the same order, on one line; see below | made of the parameters |
/// | `server` | the server of a free function | the package's name, with `_` for `-` |
/// | `crate` | the path under which a facade re-exports this crate, for a free function | `::aster_runtime` |
///
/// The doc comment is the tool's description, which a model chooses it by; it must not be missing. The function itself
/// stays as it is and can be called and tested as before. Sections headed `Errors`, `Panics`, `Safety` or `Examples` are for
/// its callers in Rust, and are not shown to the model. A section headed `Arguments` that lists them (`` * `name` - what it
/// is``) describes the parameters in place of doc comments of their own; a paragraph after the list is part of the description.
///
/// Beside a free function `add` stands a type `add`, which holds `add::TOOL`. So the function cannot be called like a type,
/// a module or an import of one that is in scope there; `name = "…"` gives the tool a name that the function cannot have.
///
/// Each parameter is a property of the tool's input: its type is the schema, its doc comment the description, and a type
/// that accepts an absent value, such as `Option`, makes it optional. Any type with `serde::Deserialize` and
/// `schemars::JsonSchema` will do. `ctx: &ToolContext`, before the others, is the caller's side of the call and no part
/// of the input. More can be said in `#[arg(…)]`:
///
/// | option | value |
/// |---|---|
/// | `default = …` | the value where none is given, shown in the schema; the type is `serde::Serialize` as well. A literal text stands for a `String`, `Cow<'static, str>`, `Box<str>`, `Arc<str>`, `PathBuf`, or an `Option` of one |
/// | `range(a..=b)` | the bounds of a number, whole ones also of an `f64`; one of them may be left out |
/// | `length(a..=b)` | the bounds of a text's characters, a list's things, a map's entries; one of them may be left out |
/// | `pattern = "…"` | the regular expression that the text, or each text of a list, matches somewhere |
/// | `example = …` | a value, shown in the schema; a literal text as for `default` |
/// | `name = "…"` | the property's name, where it is not the parameter's |
/// | `url` | the text, or each text of a list, is a URL and stands under egress; so does a `Url`, and a text (`String`, `Cow<'static, str>`, `Box<str>`, `Arc<str>`) whose name ends in the word `url` or `uri` (`page_url`, `pageUrl`), unless it says `url = false` |
/// | `path` | the text names a file or folder, which a host's hooks may ask ([`ToolSpec::path_arguments`]) |
/// | `secret` | the value is replaced in the audit and where a human is asked (`writeOnly` in the schema) |
/// | `flatten` | the one parameter, a struct, is the whole object of arguments, see below |
/// | `header = "…"` | clients send a text, integer or `bool` in this HTTP header too (`x-mcp-header`, MCP 2026-07-28) |
///
/// The fields of a flattened struct are the arguments. Those that take a URL, by the format of their schema or as texts that
/// are called so, stand under egress, unless their schema says `x-egress: false`
/// (`#[schemars(extend("x-egress" = false))]`). What is inside of them stands under egress no more than inside of any
/// argument: `catalogue_tests!` names it.
///
/// With `schema = SCHEMA` the tool has one parameter, which is the whole object of arguments: a [`JsonObject`], or a struct
/// that derives `serde::Deserialize` and `schemars::JsonSchema`. Arguments are checked against the constant, and a schema
/// that is none, or with a property outside `[A-Za-z0-9_.-]{1,64}`, is a problem of the catalogue at start-up. Egress is as
/// for a flattened struct.
///
/// The result is anything that is [`IntoToolResult`]: text, numbers, `bool`, `()`, [`Json`] of any serialisable value,
/// [`Image`], [`Audio`], [`Resource`], a list of [`Content`], or a `Result` of these.
///
/// An `async fn` runs on the caller's task and is dropped when the call is cancelled. A plain `fn` may block: it runs on
/// tokio's pool for that, and goes on there when its call has been given up, unless it looks at
/// [`ToolContext::is_cancelled`].
///
/// ```
/// use aster_runtime::{NativeCatalogue, catalogue, mcp_tool};
///
/// /// Adds two whole numbers.
/// #[mcp_tool(tier = Standard, read_only, server = "calculator")]
/// fn add(
///     /// The first summand.
///     a: i64,
///     /// The second summand.
///     b: i64,
/// ) -> i64 {
///     a + b
/// }
///
/// const CATALOGUE: NativeCatalogue = catalogue![add::TOOL];
///
/// # fn main() {
/// assert_eq!(add(1, 2), 3);
/// assert_eq!(add::TOOL.description, "Adds two whole numbers.");
/// # assert_eq!(CATALOGUE.entries[0].server(), "calculator");
/// # }
/// ```
///
/// A method that takes `&self` needs its server around it:
///
/// ```compile_fail
/// struct Web;
///
/// impl Web {
///     /// Fetches a page.
///     #[aster_runtime::mcp_tool(tier = Elevated)]
///     async fn fetch(&self, page: String) -> String {
///         page
///     }
/// }
/// ```
pub use aster_macros::mcp_tool;
pub use bridge::{BridgeError, ToolMatch};
pub use catalogue::{Catalogue, NativeCatalogue};
pub use host::{CallOptions, Host, HostBuilder, HostError, HostSession, Reference, SessionError, Suggested};
pub use id::ToolId;
pub use inject::{ConfigError, Injection, Inventory, ProgressiveConfig};
pub use injector::{AsyncMcpInvoker, BridgeAction, Injector, McpCatalog, McpInvoker, McpTool};
pub use scope::{Agent, Filter, FilterError, Scope, View};
pub use session::{Profile, SearchCounts, Session};
pub use spec::{
    Annotations, Entry, Group, Location, NativeServer, PromptSpec, Raise, ResourceSpec, ServerSpec, Tier,
    ToolSpec,
};
pub use tool::{
    Audio, Availability, Content, Image, IntoPrompt, IntoResource, IntoToolError, IntoToolResult, Invocation,
    Json, JsonObject, LogLevel, McpServer, PromptMessage, Resource, ResourceContents, ResourceUpdates,
    ServerEnv, StartError, ToolArg, ToolContext, ToolError, ToolOutput, ToolResult,
};

#[cfg(doctest)]
#[path = "../../docs/errors/pages.rs"]
mod error_pages;

/// The README's programs, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The page for those who come from the official SDK; its programs too.
#[cfg(all(doctest, feature = "serve", feature = "upstream", feature = "testing"))]
#[doc = include_str!("../../docs/from-rmcp.md")]
struct FromRmcp;
