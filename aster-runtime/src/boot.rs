//! What a host finds out before it starts anything: names that its own prompts, profiles, rules, hooks and limits say and
//! that stand for nothing, and tools that a prompt promises to an agent which does not see them.
//!
//! Of native servers everything is known, and a wrong name is an error. What an external server has is not known before it
//! has listed its tools: what stands for one of those is a warning in a profile, and elsewhere not looked at. What stands for
//! no server or group at all is a warning, since rules and hooks are often shared by hosts with different servers; it is an
//! error where a rule is about native tools alone, and in a profile, which is written for one host.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::catalogue::Part;
use crate::gate::Gate;
use crate::gate::rules::{Landscape, Missing, is_name};
use crate::glob::alternatives;
use crate::id::ToolId;
use crate::scope::View;
use crate::session::Profile;
use crate::text::one_line;

/// A name that stands for nothing, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadName {
    /// What says it: a rule's place in its file, a hook, an agent's profile or prompt.
    pub place: String,
    /// What is wrong, as a fragment.
    pub message: String,
}

impl fmt::Display for DeadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// An agent of the host's, and what the host's own prompt tells it.
pub(crate) struct Promise {
    pub(crate) profile: Profile,
    pub(crate) prompt: String,
}

/// What there is to be named.
pub(crate) struct Names(Landscape);

/// What was found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) errors: Vec<DeadName>,
    pub(crate) warnings: Vec<DeadName>,
}

impl Names {
    /// Of native servers, and of the names of others with their groups.
    pub(crate) fn new<'n>(
        natives: impl IntoIterator<Item = &'n Arc<Part>>,
        externals: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let natives = natives.into_iter().fold(Landscape::default(), |all, part| all.part(part));
        Self(externals.into_iter().fold(natives, |all, (name, group)| all.external_in(name, group)))
    }

    /// Everything that is named in vain. With each promise comes what its agent sees of the native tools.
    pub(crate) fn check(&self, gate: &Gate, promises: &[(&Promise, View)]) -> Found {
        let mut found = Found::default();
        for rule in gate.rules.borrow().rules() {
            let place = format!("the rule at {}", rule.place());
            for glob in rule.named_tools() {
                self.id(glob, &place, &mut found);
            }
            // One of several is enough: a rule may be shared by hosts with different servers.
            let groups: Vec<String> = rule.named_groups().collect();
            let is_dead = |group: &String| is_name(group) && !self.0.has_group(group);
            if !groups.is_empty() && groups.iter().all(is_dead) {
                let to = if rule.is_of_natives() { &mut found.errors } else { &mut found.warnings };
                let named: Vec<_> = groups.iter().map(|group| format!("`{}`", shown(group))).collect();
                to.push(dead(&place, format!("no tool has the group {}", named.join(" or "))));
            }
        }
        for hook in &gate.hooks {
            for glob in hook.named_tools() {
                self.id(&glob, &format!("the hook `{}`", shown(&hook.name())), &mut found);
            }
        }
        for server in gate.limits.named_servers().filter(|server| !self.0.has_server(server)) {
            found.warnings.push(dead("the limits", format!("no server is called `{}`", shown(server))));
        }
        for glob in gate.limits.named_tools() {
            self.id(glob, "the limits", &mut found);
        }
        for (promise, view) in promises {
            self.profile(&promise.profile, &mut found);
            self.prompt(promise, view, &mut found);
        }
        found
    }

    /// A glob over ids, as far as it is none. Of alternatives one is enough that there is, or that may be there.
    fn id(&self, text: &str, place: &str, found: &mut Found) {
        let each = alternatives(text);
        let missing: Option<Vec<_>> =
            each.iter().map(|one| Some((one, self.0.missing(one, None)?))).collect();
        for (one, missing) in missing.into_iter().flatten() {
            let (to, what) = match missing {
                Missing::Tool { server, tool } => {
                    (&mut found.errors, format!("server `{server}` has no `{}`", shown(tool)))
                }
                Missing::Server(server) => {
                    (&mut found.warnings, format!("no server is called `{}`", shown(server)))
                }
            };
            to.push(dead(place, format!("`{}` stands for nothing: {what}", shown(one))));
        }
    }

    /// What a profile names in vain, and what nobody can say of yet.
    pub(crate) fn profile(&self, profile: &Profile, found: &mut Found) {
        let place = format!("the profile of `{}`", shown(&profile.agent));
        for group in profile.groups.iter().flatten().filter(|group| !self.0.has_group(group)) {
            found.errors.push(dead(&place, format!("no tool has the group `{}`", shown(group))));
        }
        let ids = profile.tools.iter().chain(&profile.control).chain(profile.defaults.keys());
        let globs = profile.allow.iter().chain(&profile.deny).map(String::as_str);
        let mut own = Found::default();
        for text in ids.map(ToolId::as_str).chain(globs) {
            self.id(text, &place, &mut own);
            if let Some((server, tool)) = text.split_once('/')
                && is_name(server)
                && is_name(tool)
                && self.0.has_server(server)
                && self.0.names_on(server).is_none()
            {
                let message = format!("whether server `{server}` has `{}` is not known yet", shown(tool));
                found.warnings.push(dead(&place, message));
            }
        }
        found.errors.extend(own.errors.into_iter().chain(own.warnings));
    }

    /// The ids in a prompt: what is written as one and whose server there is. Anything else with a slash is a path or a date.
    fn prompt(&self, promise: &Promise, view: &View, found: &mut Found) {
        let place = format!("the prompt of `{}`", shown(&promise.profile.agent));
        let mut seen = BTreeSet::new();
        for word in promise
            .prompt
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '*')))
        {
            let word = word.trim_matches(['.', '-', '*']);
            let Some((server, tool)) = word.split_once('/').or_else(|| word.split_once("__")) else {
                continue;
            };
            let Some(own) = self.0.names_on(server).filter(|_| is_name(tool) && seen.insert(word)) else {
                continue;
            };
            let id = ToolId::new(server, tool);
            if !own.iter().any(|known| known == tool) {
                let message =
                    format!("it speaks of `{}`, and server `{server}` has no `{}`", shown(word), shown(tool));
                found.errors.push(dead(&place, message));
            } else if view.callable(&id).is_none() {
                let message = format!("it promises `{}`, which this agent does not see", shown(word));
                found.errors.push(dead(&place, message));
            }
        }
    }
}

fn dead(place: &str, message: String) -> DeadName {
    DeadName { place: place.to_owned(), message }
}

fn shown(text: &str) -> String {
    one_line(text, 128)
}
