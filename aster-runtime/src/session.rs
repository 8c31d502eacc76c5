//! Who calls: the identity and the inputs of the scope of one agent's or client's run.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::id::ToolId;

/// What a host says of an agent before it runs: its name and what it may see.
///
/// ```
/// use aster_runtime::Profile;
///
/// let profile = Profile::new("researcher").groups(["research"]).deny(["web/post_*"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub(crate) agent: String,
    pub(crate) project: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) groups: Option<Vec<String>>,
    pub(crate) tools: Vec<ToolId>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) require_describe: bool,
}

impl Profile {
    /// A profile for the agent of this name that sees every tool the host's own filter leaves.
    #[must_use]
    pub fn new(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), ..Self::default() }
    }

    /// Limits the agent to tools of these groups.
    #[must_use]
    pub fn groups<I, G>(mut self, groups: I) -> Self
    where
        I: IntoIterator<Item = G>,
        G: Into<String>,
    {
        self.groups = Some(groups.into_iter().map(Into::into).collect());
        self
    }

    /// Gives the agent these tools too, whatever their group.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolId>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Limits the agent to tools whose id one of these globs matches.
    #[must_use]
    pub fn allow<I, G>(mut self, globs: I) -> Self
    where
        I: IntoIterator<Item = G>,
        G: Into<String>,
    {
        self.allow.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Hides the tools whose id one of these globs matches. Deny wins over allow.
    #[must_use]
    pub fn deny<I, G>(mut self, globs: I) -> Self
    where
        I: IntoIterator<Item = G>,
        G: Into<String>,
    {
        self.deny.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Names the project the agent works in, for the audit.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Names the client that the agent connects with, for the audit.
    #[must_use]
    pub fn client(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Refuses to execute a tool that the session has not described before. Off by default.
    #[must_use]
    pub fn require_describe(mut self, on: bool) -> Self {
        self.require_describe = on;
        self
    }
}

/// One agent's or client's run: its identity, what it may see, and what it has described so far.
#[derive(Debug)]
pub struct Session {
    id: String,
    profile: Profile,
    described: Mutex<HashSet<(ToolId, String)>>,
}

impl Session {
    /// A new run of `profile` under a fresh id.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self { id: uuid::Uuid::now_v7().to_string(), profile, described: Mutex::default() }
    }

    /// The run's id, a UUID of version 7.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The agent's name.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.profile.agent
    }

    /// The project, where the host named one.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.profile.project.as_deref()
    }

    /// The client, where the host named one.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.profile.client.as_deref()
    }

    /// The profile the run was made from.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Remembers that the session has been shown the definition of this digest.
    pub fn mark_described(&self, id: &ToolId, digest: String) {
        self.described().insert((id.clone(), digest));
    }

    /// Whether the session has been shown the definition of this digest: a tool that changed is one it has not seen.
    #[must_use]
    pub fn has_described(&self, id: &ToolId, digest: &str) -> bool {
        self.described().contains(&(id.clone(), digest.to_owned()))
    }

    fn described(&self) -> MutexGuard<'_, HashSet<(ToolId, String)>> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
