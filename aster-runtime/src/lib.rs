//! Aster's runtime.

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

pub use aster_macros::{mcp_server, mcp_tool};
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
    Resource, ServerEnv, StartError, ToolArg, ToolContext, ToolError, ToolResult,
};
