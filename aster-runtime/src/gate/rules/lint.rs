//! What is wrong with rules that can be read: one that can never match, one that another already decides, one that
//! allows what nobody asks about.
//!
//! It says only what is certain. Whether one glob matches all that another matches is told for those that are equal, plain
//! or end in `*`; for the rest nothing is said.

use super::test::Reading;
use super::{Action, Rule, Rules};
use crate::glob::is_plain;
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

    /// Adds an external server, whose tools may be any.
    #[must_use]
    pub fn external(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.servers.push(Known { groups: vec![name.clone()], name, native: false, tools: None });
        self
    }
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
    let here = || {
        landscape.servers.iter().filter(|known| rule.when.native.is_none_or(|native| native == known.native))
    };
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
        let Some((server, tool)) = text.split_once('/').or_else(|| text.split_once("__")) else { continue };
        if !is_plain(server) {
            continue;
        }
        match here().find(|known| known.name == server) {
            None => found
                .push((format!("`{text}` matches nothing: no {kind}server is called `{server}`"), SERVERS)),
            Some(Known { tools: Some(tools), .. })
                if is_plain(tool) && !tools.iter().any(|known| known == tool) =>
            {
                let message = format!("`{text}` matches nothing: server `{server}` has no `{tool}`");
                found.push((message, "`aster mcp list --tools` shows what there is"));
            }
            Some(_) => {}
        }
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
