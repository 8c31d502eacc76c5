//! What is wrong with rules that can be read: one that can never match, one that another already decides, one that
//! allows what nobody asks about.
//!
//! It says only what is certain. Whether one glob matches all that another matches is told for those that are equal, plain
//! or end in `*`; for the rest nothing is said.

use super::test::Reading;
use super::{Action, Rule, Rules};
use crate::catalogue::Part;
use crate::glob::is_plain;
use crate::id::ToolId;
use crate::spec::Tier;

/// Something to mend in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where the rule stands.
    pub place: String,
    /// What is wrong, as a fragment.
    pub message: String,
    /// What to do; empty where the message says it.
    pub help: String,
}

/// What rules can speak of: the servers that there are.
#[derive(Debug, Clone, Default)]
pub struct Landscape {
    servers: Vec<Known>,
}

#[derive(Debug, Clone)]
struct Known {
    name: String,
    native: bool,
    groups: Vec<String>,
    /// `None` where they are not known.
    tools: Option<Vec<String>>,
}

impl Landscape {
    /// Adds a native server, with the names of its tools, resources and prompts, and their groups.
    #[must_use]
    pub fn native<T, G>(
        mut self,
        name: impl Into<String>,
        tools: impl IntoIterator<Item = T>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self
    where
        T: Into<String>,
        G: Into<String>,
    {
        self.servers.push(Known {
            name: name.into(),
            native: true,
            groups: groups.into_iter().map(Into::into).collect(),
            tools: Some(tools.into_iter().map(Into::into).collect()),
        });
        self
    }

    /// Adds a native server with everything on it that a rule can name.
    #[must_use]
    pub fn part(self, part: &Part) -> Self {
        let callables = || part.callables();
        self.native(
            &part.server.name,
            callables().flat_map(|callable| callable.ids()).map(ToolId::tool),
            callables().map(|callable| callable.group()),
        )
    }

    /// Adds an external server, whose tools may be any, in the group that is called like it.
    #[must_use]
    pub fn external(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.external_in(name.clone(), name)
    }

    /// Adds an external server whose tools are in this group.
    #[must_use]
    pub fn external_in(mut self, name: impl Into<String>, group: impl Into<String>) -> Self {
        self.servers.push(Known {
            groups: vec![group.into()],
            name: name.into(),
            native: false,
            tools: None,
        });
        self
    }

    /// What an id, or a glob over ids, names of what is not there; `native` where only such servers are meant, or only
    /// others. Of a pattern nothing is known, nor of the tools of an external server.
    pub(crate) fn missing<'t>(&self, text: &'t str, native: Option<bool>) -> Option<Missing<'t>> {
        let (server, tool) = text.split_once('/').or_else(|| text.split_once("__"))?;
        if !is_name(server) {
            return None;
        }
        let known = self.here(native).find(|known| known.name == server);
        let Some(known) = known else { return Some(Missing::Server(server)) };
        let tools = known.tools.as_ref().filter(|_| is_name(tool))?;
        (!tools.iter().any(|known| known == tool)).then_some(Missing::Tool { server, tool })
    }

    pub(crate) fn has_server(&self, name: &str) -> bool {
        self.servers.iter().any(|known| known.name == name)
    }

    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.servers.iter().any(|known| known.groups.iter().any(|group| group == name))
    }

    /// The names on a server, where they are known.
    pub(crate) fn names_on(&self, server: &str) -> Option<&[String]> {
        self.servers.iter().find(|known| known.name == server)?.tools.as_deref()
    }

    fn here(&self, native: Option<bool>) -> impl Iterator<Item = &Known> {
        self.servers.iter().filter(move |known| native.is_none_or(|native| native == known.native))
    }
}

/// What is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing<'t> {
    /// A server of this name.
    Server(&'t str),
    /// On a server that is there, a tool, resource or prompt of this name.
    Tool { server: &'t str, tool: &'t str },
}

/// Whether a part of a glob is a name, and no pattern.
pub(crate) fn is_name(part: &str) -> bool {
    !part.is_empty() && is_plain(part)
}

/// Finds what is wrong. With no server at all in the landscape, nothing is said of names.
#[must_use]
pub fn lint(rules: &Rules, landscape: &Landscape) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, rule) in rules.rules().iter().enumerate() {
        let mut find = |message: String, help: &str| {
            let (place, help) = (rule.place().to_owned(), help.to_owned());
            findings.push(Finding { place, message, help });
        };
        if let Some(contradiction) = contradiction(rule) {
            find(contradiction, "no call can match it");
            continue;
        }
        if !landscape.servers.is_empty() {
            let unknown = unknown(rule, landscape);
            if !unknown.is_empty() {
                unknown.into_iter().for_each(|(message, help)| find(message, help));
                continue;
            }
        }
        if rules.default_ask().is_none()
            && rule.outgoing.is_none()
            && let Some(why) = needless(rule)
        {
            find(format!("the rule allows what nobody asks about: {why}"), "leave it out");
            continue;
        }
        if let Some(other) = rules.rules()[..at].iter().find(|other| shadows(other, rule)) {
            let (place, wins) = (other.place(), other.action.name());
            let message = match other.action == rule.action {
                true => {
                    format!("the rule adds nothing: whatever it matches, the rule at {place} matches too")
                }
                false => format!(
                    "the rule never decides: whatever it matches, the rule at {place} matches too, and `{wins}` wins \
                     over `{}`",
                    rule.action.name()
                ),
            };
            find(message, "leave it out, or narrow the other");
        }
    }
    findings.sort_by_key(|finding| in_file(&finding.place));
    findings
}

/// File and line, to be sorted by.
fn in_file(place: &str) -> (String, u32) {
    let parted = place.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    parted.unwrap_or_else(|| (place.to_owned(), 0))
}

/// Whether no call that the rule matches is decided by it, since the other matches it too and counts as much or more, of
/// secrets as well.
fn shadows(other: &Rule, rule: &Rule) -> bool {
    if other.action != Action::Deny && other.outgoing < rule.outgoing {
        return false;
    }
    let reading = if other.action == Action::Allow { Reading::Strict } else { Reading::Loose };
    other.when.covers(&rule.when, reading)
}

/// What no call can be at once.
fn contradiction(rule: &Rule) -> Option<String> {
    let (tools, servers) = (rule.when.tools.as_ref()?, rule.when.servers.as_ref()?);
    let apart = tools.servers().all(|server| is_plain(&server) && !servers.is_match(&server));
    apart.then(|| "`tool` and `server` name different servers".to_owned())
}

/// Names that stand for nothing there is.
fn unknown(rule: &Rule, landscape: &Landscape) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let here = || landscape.here(rule.when.native);
    let kind = match rule.when.native {
        Some(true) => "native ",
        Some(false) => "external ",
        None => "",
    };
    if let Some(globs) = &rule.when.servers
        && !here().any(|known| globs.is_match(&known.name))
    {
        found.push((format!("no {kind}server is called `{}`", globs.texts().join("` or `")), SERVERS));
    }
    if let Some(globs) = &rule.when.groups
        && !here().any(|known| known.groups.iter().any(|group| globs.is_match(group)))
    {
        let help = "a group that is not named otherwise is called like its server";
        found.push((format!("no {kind}tool has the group `{}`", globs.texts().join("` or `")), help));
    }
    for text in rule.when.tools.iter().flat_map(|tools| &tools.texts) {
        found.extend(landscape.missing(text, rule.when.native).map(|missing| match missing {
            Missing::Server(server) => {
                (format!("`{text}` matches nothing: no {kind}server is called `{server}`"), SERVERS)
            }
            Missing::Tool { server, tool } => (
                format!("`{text}` matches nothing: server `{server}` has no `{tool}`"),
                "`aster mcp list --tools` shows what there is",
            ),
        }));
    }
    found
}

const SERVERS: &str = "`aster mcp list` shows the servers";

/// Why nobody would ask about what the rule allows, if it does, where the rules do not ask by default.
fn needless(rule: &Rule) -> Option<&'static str> {
    if rule.action != Action::Allow {
        return None;
    }
    let tiers = rule.when.tiers.as_deref();
    if tiers.is_some_and(|tiers| !tiers.contains(&Tier::Restricted)) {
        return Some("standard and elevated tools run without it");
    }
    (rule.when.native == Some(true))
        .then_some("a native tool is Restricted by declaration, which no rule lifts, or runs")
}
