//! Aster's runtime.

pub mod catalogue;
#[cfg(feature = "config")]
pub mod config;
pub mod dispatch;
pub mod gate;
pub mod id;
#[cfg(feature = "http")]
pub mod net;
pub mod schema;
pub mod session;
pub mod spec;
pub mod text;
pub mod tool;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

pub use id::ToolId;
pub use session::{Profile, Session};
pub use spec::{Annotations, Entry, Group, Location, ServerSpec, Tier, ToolSpec};
pub use tool::{
    Audio, Content, Image, IntoToolError, IntoToolResult, Invocation, Json, JsonObject, LogLevel, McpServer,
    Resource, ServerEnv, StartError, ToolContext, ToolError, ToolResult,
};
