//! Aster's runtime.

pub mod catalogue;
#[cfg(feature = "config")]
pub mod config;
pub mod dispatch;
pub mod id;
pub mod schema;
pub mod session;
pub mod spec;
pub mod text;
pub mod tool;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use aster_macros::{mcp_server, mcp_tool};
pub use catalogue::NativeCatalogue;
pub use id::ToolId;
pub use session::{Profile, Session};
pub use spec::{Annotations, Entry, Group, Location, NativeServer, ServerSpec, Tier, ToolSpec};
pub use tool::{
    Audio, Content, Image, IntoToolError, IntoToolResult, Invocation, Json, JsonObject, LogLevel, McpServer,
    Resource, ServerEnv, StartError, ToolArg, ToolContext, ToolError, ToolOutput, ToolResult,
};
