//! What a native server does not offer at the moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::id::ToolId;
use crate::text;

/// What all servers of a host withhold, each with the reason.
pub(crate) type Withheld = Arc<watch::Sender<BTreeMap<ToolId, String>>>;

/// Where a native server says which of its tools, resources and prompts are offered: all, until it withholds some. What is
/// withheld answers like what does not exist, and clients hear that the list has changed. What a tool says of itself stays as
/// it was reviewed: what differs from run to run belongs into its results. Cheap to clone.
///
/// A server gets it in its [`ServerEnv`](super::ServerEnv), a tool by
/// [`ToolContext::availability`](super::ToolContext::availability).
///
/// ```
/// use aster_runtime::{Availability, McpServer, ServerEnv, StartError};
///
/// struct Printer {
///     availability: Availability,
/// }
///
/// impl McpServer for Printer {
///     async fn start(env: &ServerEnv) -> Result<Self, StartError> {
///         env.availability.withhold("print", "no printer is connected");
///         Ok(Self { availability: env.availability.clone() })
///     }
/// }
///
/// impl Printer {
///     fn connected(&self) {
///         self.availability.offer("print");
///     }
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Availability {
    server: Arc<str>,
    withheld: Withheld,
}

impl Availability {
    /// That of one server; without a host nobody hears of it.
    #[must_use]
    pub(crate) fn new(server: &str, withheld: Withheld) -> Self {
        Self { server: server.into(), withheld }
    }

    /// Takes the tool, resource or prompt of this name off the list, and says why for those who look at what is missing.
    pub fn withhold(&self, name: &str, reason: &str) {
        let reason = text::one_line(reason, 200);
        let id = ToolId::new(&self.server, name);
        self.withheld.send_if_modified(|withheld| {
            withheld.insert(id, reason.clone()).is_none_or(|before| before != reason)
        });
    }

    /// Puts it back.
    pub fn offer(&self, name: &str) {
        let id = ToolId::new(&self.server, name);
        self.withheld.send_if_modified(|withheld| withheld.remove(&id).is_some());
    }

    /// Whether it is on the list.
    #[must_use]
    pub fn is_offered(&self, name: &str) -> bool {
        !self.withheld.borrow().contains_key(&ToolId::new(&self.server, name))
    }
}
