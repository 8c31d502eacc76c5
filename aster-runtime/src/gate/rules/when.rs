//! When a rule applies.

use std::borrow::Cow;
use std::fmt;

use super::path::Site;
use super::test::{Argument, Globs, Place, Reading, Test, some};
use super::{Caller, Rule, RuleError};
use crate::catalogue::{Server, Tool};
use crate::gate::secrets::Outgoing;
use crate::glob::IdGlobs;
use crate::id::ToolId;
use crate::spec::Tier;
use crate::tool::JsonObject;

/// An annotation: what a tool says of itself (MCP `ToolAnnotations`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// It changes nothing.
    ReadOnly,
    /// It may destroy something.
    Destructive,
    /// Calling it twice is like calling it once.
    Idempotent,
    /// It reaches the world outside.
    OpenWorld,
}

impl Hint {
    /// The name that the protocol has for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnlyHint",
            Self::Destructive => "destructiveHint",
            Self::Idempotent => "idempotentHint",
            Self::OpenWorld => "openWorldHint",
        }
    }
}

/// What a rule wants of a call; what is not there is no matter.
#[derive(Debug, Clone, Default)]
pub(super) struct When {
    pub(super) tools: Option<ToolGlobs>,
    pub(super) servers: Option<Globs>,
    pub(super) groups: Option<Globs>,
    pub(super) agents: Option<Globs>,
    pub(super) teams: Option<Globs>,
    pub(super) tiers: Option<Vec<Tier>>,
    pub(super) hints: Vec<(Hint, Vec<Option<bool>>)>,
    pub(super) native: Option<bool>,
    pub(super) arguments: Vec<Argument>,
}

/// Globs over ids, and over the names of direct mode.
#[derive(Clone)]
pub(super) struct ToolGlobs {
    pub(super) texts: Vec<String>,
    ids: IdGlobs,
    names: Option<Globs>,
}

impl fmt::Debug for ToolGlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(f)
    }
}

impl ToolGlobs {
    fn new<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        let texts = some(globs.into_iter().map(|glob| glob.as_ref().to_owned()).collect::<Vec<_>>())?;
        let is_name = |text: &&String| text.contains("__") && !text.contains('/');
        let names: Vec<&String> = texts.iter().filter(is_name).collect();
        // As an id, `a__b` without a `/` could match nothing but with a wildcard.
        let ids: Vec<&String> =
            texts.iter().filter(|text| !is_name(text) || text.contains(['*', '?', '[', '{'])).collect();
        let mut bad = Vec::new();
        let ids = IdGlobs::new(&ids, &mut bad);
        if let Some((glob, why)) = bad.first() {
            return Err(RuleError::new(format!("the glob `{glob}` does not work: {why}"), ""));
        }
        let names = if names.is_empty() { None } else { Some(Globs::new(names)?) };
        Ok(Self { texts, ids, names })
    }

    fn is_match(&self, id: &ToolId) -> bool {
        self.ids.is_match(id.as_str())
            || self.names.as_ref().is_some_and(|names| names.is_match(&id.direct_name()))
    }

    fn covers_server(&self, server: &str) -> bool {
        let all_named = |globs: &Globs| {
            globs
                .texts()
                .iter()
                .filter_map(|text| text.split_once("__"))
                .any(|(of, tool)| of == server && tool == "*")
        };
        self.ids.cover(server) || self.names.as_ref().is_some_and(all_named)
    }
}

impl When {
    pub(super) fn matches_caller(&self, caller: Caller<'_>) -> bool {
        let agent = self.agents.as_ref().is_none_or(|globs| globs.is_match(caller.agent));
        let team = |globs: &Globs| caller.team.is_some_and(|team| globs.is_match(team));
        agent && self.teams.as_ref().is_none_or(team)
    }

    pub(super) fn matches_tool(&self, tool: &Tool) -> bool {
        self.native.is_none_or(|wanted| wanted == tool.is_native())
            && self.tiers.as_ref().is_none_or(|tiers| tiers.contains(&tool.tier()))
            && self.servers.as_ref().is_none_or(|globs| globs.is_match(tool.id().server()))
            && self.groups.as_ref().is_none_or(|globs| globs.is_match(tool.group()))
            && self.tools.as_ref().is_none_or(|globs| tool.ids().any(|id| globs.is_match(id)))
            && self.hints.iter().all(|(hint, wanted)| wanted.contains(&tool.hint(hint.name())))
    }

    pub(super) fn matches_arguments(
        &self,
        arguments: &JsonObject,
        reading: Reading,
        site: &Site<'_>,
    ) -> bool {
        self.arguments.iter().all(|argument| argument.matches(arguments, reading, site))
    }

    /// Whether it matches all tools of a server whose tools are not known, whatever they are. They are in its group.
    pub(super) fn covers_server(&self, server: &Server) -> bool {
        self.native.is_none_or(|wanted| wanted == server.native)
            && self.tiers.is_none()
            && self.hints.is_empty()
            && self.servers.as_ref().is_none_or(|globs| globs.is_match(&server.name))
            && self.groups.as_ref().is_none_or(|globs| globs.is_match(&server.group))
            && self.tools.as_ref().is_none_or(|globs| globs.covers_server(&server.name))
    }

    /// Whether whatever matches the other matches this one too, as far as can be told. `reading` is that of this one.
    pub(super) fn covers(&self, other: &Self, reading: Reading) -> bool {
        let globs = |own: &Option<Globs>, others: &Option<Globs>| match (own, others) {
            (None, _) => true,
            (Some(own), Some(others)) => own.covers(others),
            (Some(_), None) => false,
        };
        let tools = match (&self.tools, &other.tools) {
            (None, _) => true,
            (Some(own), Some(others)) => {
                others.texts.iter().all(|other| own.texts.iter().any(|own| super::test::covers(own, other)))
            }
            (Some(_), None) => false,
        };
        let tiers = match (&self.tiers, &other.tiers) {
            (None, _) => true,
            (Some(own), Some(others)) => others.iter().all(|tier| own.contains(tier)),
            (Some(_), None) => false,
        };
        let hints = self.hints.iter().all(|(hint, wanted)| {
            other
                .hints
                .iter()
                .any(|(of, narrow)| of == hint && narrow.iter().all(|said| wanted.contains(said)))
        });
        let arguments = self
            .arguments
            .iter()
            .all(|argument| other.arguments.iter().any(|narrow| argument.covers(narrow, reading)));
        tools
            && tiers
            && hints
            && arguments
            && globs(&self.servers, &other.servers)
            && globs(&self.groups, &other.groups)
            && globs(&self.agents, &other.agents)
            && globs(&self.teams, &other.teams)
            && (self.native.is_none() || self.native == other.native)
    }
}

/// Each says one thing more of when the rule applies.
impl Rule {
    /// Why, for the model and the record.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// What becomes of secrets in the arguments of these calls, instead of what the policy on secrets says. It takes nothing
    /// from the rule's action, and of several rules that match a call the strictest counts.
    #[must_use]
    pub fn secrets(mut self, what: impl Into<Option<Outgoing>>) -> Self {
        self.outgoing = what.into();
        self
    }

    /// To tools whose id, or plain name in direct mode (`server__tool`), one of these globs matches.
    ///
    /// # Errors
    ///
    /// Where one does not parse or can match nothing, or there are none.
    pub fn tools<S: AsRef<str>>(mut self, globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.when.tools = Some(ToolGlobs::new(globs)?);
        Ok(self)
    }

    /// To tools of servers whose name one of these globs matches.
    ///
    /// # Errors
    ///
    /// Where one does not parse, or there are none.
    pub fn servers<S: AsRef<str>>(mut self, globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.when.servers = Some(Globs::new(globs)?);
        Ok(self)
    }

    /// To tools of groups whose name one of these globs matches.
    ///
    /// # Errors
    ///
    /// Where one does not parse, or there are none.
    pub fn groups<S: AsRef<str>>(mut self, globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.when.groups = Some(Globs::new(globs)?);
        Ok(self)
    }

    /// To agents whose name one of these globs matches.
    ///
    /// # Errors
    ///
    /// Where one does not parse, or there are none.
    pub fn agents<S: AsRef<str>>(mut self, globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.when.agents = Some(Globs::new(globs)?);
        Ok(self)
    }

    /// To agents of a team whose name one of these globs matches.
    ///
    /// # Errors
    ///
    /// Where one does not parse, or there are none.
    pub fn teams<S: AsRef<str>>(mut self, globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        self.when.teams = Some(Globs::new(globs)?);
        Ok(self)
    }

    /// To tools of these tiers.
    ///
    /// # Errors
    ///
    /// Where there are none.
    pub fn tiers(mut self, tiers: impl IntoIterator<Item = Tier>) -> Result<Self, RuleError> {
        self.when.tiers = Some(some(tiers.into_iter().collect())?);
        Ok(self)
    }

    /// To tools that say one of these of themselves; `None` is to say nothing. No rule that allows can go by what a tool
    /// says of itself.
    ///
    /// # Errors
    ///
    /// Where the rule allows, or nothing is said.
    pub fn hint(
        mut self,
        hint: Hint,
        said: impl IntoIterator<Item = Option<bool>>,
    ) -> Result<Self, RuleError> {
        if self.action == super::Action::Allow {
            return Err(RuleError::new(
                "a rule cannot allow by what a tool says of itself",
                "name the tools or the server",
            ));
        }
        self.when.hints.push((hint, some(said.into_iter().collect())?));
        Ok(self)
    }

    /// To native tools, or to external ones.
    #[must_use]
    pub fn native(mut self, native: bool) -> Self {
        self.when.native = Some(native);
        self
    }

    /// To calls whose argument at this place passes all these tests. The place is a JSON pointer (RFC 6901) in which `*`
    /// stands for every member or item, or `any`. Of a list or an object, what is in it is meant.
    ///
    /// # Errors
    ///
    /// Where the place is none, or there are no tests.
    pub fn argument(mut self, place: &str, tests: impl IntoIterator<Item = Test>) -> Result<Self, RuleError> {
        let tests = some(tests.into_iter().collect())?;
        self.when.arguments.push(Argument { place: Place::parse(place)?, tests });
        Ok(self)
    }
}

impl ToolGlobs {
    /// The part of each glob that is the server's, where a glob has it.
    pub(super) fn servers(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.texts.iter().map(|text| match text.split_once('/').or_else(|| text.split_once("__")) {
            Some((server, _)) => Cow::Borrowed(server),
            None => Cow::Borrowed("*"),
        })
    }
}
