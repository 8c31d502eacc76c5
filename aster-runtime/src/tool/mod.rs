//! A native tool's side of a call: what goes into the function, what comes out, what it may ask of its caller.

mod argument;
mod ask;
mod availability;
mod context;
mod limit;
mod prompt;
mod resource;
mod result;

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::gate::egress::EgressPolicy;
pub use argument::ToolArg;
pub(crate) use argument::{
    HeaderValue, Measured, PatternText, Ranged, TextDefault, ToolDefault, UrlText, kind,
};
pub use ask::{
    AskError, AskKind, ClientAnswer, ClientInfo, ClientRequest, Elicitation, Elicited, Root, Sampled,
    Sampling,
};
pub use availability::Availability;
pub(crate) use availability::{Moments, SharedMoments};
pub use context::{ASK_LIMIT, ASK_TIMEOUT, ClientLink, LogLevel, ResourceUpdates, ToolContext};
pub(crate) use limit::TimeLimit;
pub use prompt::{IntoPrompt, PromptMessage, Suggestions};
pub use resource::{IntoResource, NOT_FOUND, ResourceContents};
pub use result::{
    Audio, Content, Image, IntoToolError, IntoToolResult, Json, Resource, ToolError, ToolOutput, ToolResult,
};

/// The code of the error that says that what fits the schema of the arguments does not fit their types.
pub(crate) const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// A JSON object: the arguments of a call.
pub type JsonObject = Map<String, Value>;

/// The state a native server runs on: the `Self` of its `impl`, `()` for a module or a free function.
pub type ServerState = Arc<dyn Any + Send + Sync>;

/// One admitted call on its way into a native function.
#[derive(Debug)]
pub struct Invocation {
    /// The server's state.
    pub state: ServerState,
    /// The caller's side of the call.
    pub context: ToolContext,
    /// The arguments that the gate admitted.
    pub arguments: JsonObject,
}

/// What a native server may use while it starts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerEnv {
    /// Which destinations the host lets calls name: the policy for a server's own connections too.
    pub egress: EgressPolicy,
    /// Where to say that a resource has changed.
    pub updates: ResourceUpdates,
    /// Which of the server's tools, resources and prompts are offered while it runs.
    pub availability: Availability,
}

/// Why a native server cannot run here; shown beside it in listings.
#[derive(Debug)]
pub struct StartError(String);

impl StartError {
    /// A reason, for people: what is missing and what to do.
    #[must_use]
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// A native server that makes its own state. One that is handed in live needs no such implementation: see
/// `HostBuilder::with_server`.
///
/// ```
/// use aster_runtime::{McpServer, ServerEnv, StartError};
///
/// struct Desktop;
///
/// impl McpServer for Desktop {
///     async fn start(_: &ServerEnv) -> Result<Self, StartError> {
///         if cfg!(target_os = "macos") { Ok(Self) } else { Err(StartError::new("there is no desktop here")) }
///     }
/// }
/// ```
pub trait McpServer: Sized + Send + Sync + 'static {
    /// Makes the state, or says why the server cannot run here; it is then left out, with that reason.
    fn start(env: &ServerEnv) -> impl Future<Output = Result<Self, StartError>> + Send;
}
