//! The runtime of Aster, a compile-time framework for agent tools.
//!
//! Annotate a function with [`mcp_tool`], or a group of them with [`mcp_server`], list them with [`catalogue!`], and a
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
//! | `serve` | MCP in, over standard input and output: the module `serve`, and `serve_main!` |
//! | `serve-http` | MCP in over HTTP too, mountable or with a listener of its own: the module `serve::http` |
//! | `upstream` | MCP out, to external servers that are programs: the module `upstream` |
//! | `http` | the guarded HTTP client of native servers: the module `net` |
//! | `config` | `aster.yaml`, the user's and the project's, and consent: the module `config` |

pub mod audit;
pub mod bridge;
pub mod call;
pub mod catalogue;
#[cfg(feature = "config")]
pub mod config;
pub mod dispatch;
pub mod gate;
pub mod host;
pub mod id;
pub mod inject;
mod injector;
#[cfg(feature = "http")]
pub mod net;
pub mod schema;
pub mod scope;
pub mod search;
#[cfg(feature = "serve")]
pub mod serve;
pub mod session;
pub mod spec;
pub mod text;
pub mod tool;
#[cfg(feature = "upstream")]
pub mod upstream;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

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
/// The doc comment is the server's description. The functions that carry [`mcp_tool`](macro@mcp_tool) are its tools; all
/// others stay what they are. A type is one server: all of its tools stand in one block.
///
/// On `impl Web` the server's state is a value of `Web`: tools take `&self`, or nothing of it. A server that can make its
/// own state implements [`McpServer`]; any other is handed to the host, live. `Web::SERVER` is the constant for
/// [`catalogue!`], and `enum WebTool` names the tools, in the order of `Web::TIERS` and `Web::GROUPS`.
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
/// | `server` | the server of a free function | the package's name, with `_` for `-` |
/// | `crate` | the path under which a facade re-exports this crate, for a free function | `::aster_runtime` |
///
/// The doc comment is the tool's description, which a model chooses it by; it must not be missing. The function itself
/// stays as it is and can be called and tested as before. Sections headed `Errors`, `Panics`, `Safety` or `Examples` are for
/// its callers in Rust, and are not shown to the model.
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
/// | `default = …` | the value where none is given, shown in the schema; the type is `serde::Serialize` as well |
/// | `range(a..=b)` | the bounds of a number; one of them may be left out |
/// | `name = "…"` | the property's name, where it is not the parameter's |
/// | `url` | the text, or each text of a list, is a URL and stands under egress |
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
pub use host::{CallOptions, Host, HostBuilder, HostError, HostSession};
pub use id::ToolId;
pub use inject::{ConfigError, Injection, Inventory, ProgressiveConfig};
pub use injector::{AsyncMcpInvoker, BridgeAction, Injector, McpCatalog, McpInvoker, McpTool};
pub use scope::{Filter, FilterError, Scope, View};
pub use session::{Profile, Session};
pub use spec::{Annotations, Entry, Group, Location, NativeServer, ServerSpec, Tier, ToolSpec};
pub use tool::{
    Audio, Content, Image, IntoToolError, IntoToolResult, Invocation, Json, JsonObject, LogLevel, McpServer,
    Resource, ServerEnv, StartError, ToolArg, ToolContext, ToolError, ToolOutput, ToolResult,
};

/// The README's programs, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
