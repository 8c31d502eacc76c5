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
pub mod schema;
pub mod scope;
pub mod search;
pub mod session;
pub mod spec;
pub mod text;
pub mod tool;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use bridge::{BridgeError, ToolMatch};
pub use catalogue::Catalogue;
pub use host::{CallOptions, Host, HostBuilder, HostError, HostSession};
pub use id::ToolId;
pub use inject::{ConfigError, Injection, Inventory, ProgressiveConfig};
pub use injector::{AsyncMcpInvoker, BridgeAction, Injector, McpCatalog, McpInvoker, McpTool};
pub use scope::{Filter, FilterError, Scope, View};
pub use session::{Profile, Session};
pub use spec::{Annotations, Entry, Group, Location, ServerSpec, Tier, ToolSpec};
pub use tool::{
    Audio, Content, Image, IntoToolError, IntoToolResult, Invocation, Json, JsonObject, LogLevel, McpServer,
    Resource, ServerEnv, StartError, ToolContext, ToolError, ToolResult,
};
