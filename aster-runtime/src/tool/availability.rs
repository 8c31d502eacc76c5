//! What a native server does not offer at the moment, and what it says of what it offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::id::ToolId;
use crate::text;

/// What all servers of a host say of theirs at the moment.
pub(crate) type Moments = BTreeMap<ToolId, Moment>;

/// Where they say it, and where it is heard.
pub(crate) type SharedMoments = Arc<watch::Sender<Moments>>;

/// What is said of one callable at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Why it is withheld, where it is.
    pub(crate) withheld: Option<String>,
    /// What its description has besides.
    pub(crate) note: Option<String>,
}

/// How long a reason or a note may be, in characters.
const SAID: usize = 200;

/// Where a native server says which of its tools, resources and prompts are offered: all, until it withholds some. What is
/// withheld answers like what does not exist. A note is added to a description, such as which provider answers at the moment. Of
/// either clients hear that the list has changed. Cheap to clone.
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
    moments: SharedMoments,
}

impl Availability {
    /// That of one server; without a host nobody hears of it.
    #[must_use]
    pub(crate) fn new(server: &str, moments: SharedMoments) -> Self {
        Self { server: server.into(), moments }
    }

    /// Takes the tool, resource or prompt of this name off the list, and says why for those who look at what is missing.
    pub fn withhold(&self, name: &str, reason: &str) {
        let reason = text::one_line(reason, SAID);
        self.change(name, |moment| moment.withheld = Some(reason));
    }

    /// Puts it back.
    pub fn offer(&self, name: &str) {
        self.change(name, |moment| moment.withheld = None);
    }

    /// Adds a note to the description of the tool, resource or prompt of this name, in place of the one before; an empty one takes
    /// it away. It is one line of at most 200 characters; where there is no room for both, the description is cut. A tool stays the
    /// one that was reviewed: its [digest](crate::catalogue::Tool::digest) is of what it says of itself without the note.
    pub fn note(&self, name: &str, note: &str) {
        let note = Some(text::one_line(note, SAID)).filter(|note| !note.is_empty());
        self.change(name, |moment| moment.note = note);
    }

    /// Whether it is on the list.
    #[must_use]
    pub fn is_offered(&self, name: &str) -> bool {
        let moments = self.moments.borrow();
        moments.get(&ToolId::new(&self.server, name)).is_none_or(|moment| moment.withheld.is_none())
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Moment)) {
        let id = ToolId::new(&self.server, name);
        self.moments.send_if_modified(|moments| {
            let before = moments.remove(&id).unwrap_or_default();
            let mut moment = before.clone();
            change(&mut moment);
            let changed = moment != before;
            if moment != Moment::default() {
                moments.insert(id, moment);
            }
            changed
        });
    }
}
