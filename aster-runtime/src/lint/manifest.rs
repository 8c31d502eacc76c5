//! Whether models are told of what can be called, and agents given what there is.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Rule, id};
use crate::catalogue::{Catalogue, NativeCatalogue, native_parts, raise};
use crate::inject::{ProgressiveConfig, inject};
use crate::scope::{Agent, Scope};
use crate::spec::ToolSpec;

/// The tools that the manifest, with room for all of it, does not name, and the names in it that are no tools. A list that is
/// no catalogue has no manifest; see [`problems`](super::problems).
#[must_use]
pub fn manifest(list: &NativeCatalogue) -> Vec<Finding> {
    let Ok(mut parts) = native_parts(list.entries) else { return Vec::new() };
    raise(&mut parts, list.raises);
    let view = Scope::default().view(&Catalogue::merge(&parts));
    let config =
        ProgressiveConfig { available_context_tokens: usize::MAX / 1024, ..ProgressiveConfig::default() };
    let prompt = inject(&view, &config).map(|injection| injection.prompt).unwrap_or_default();
    let routable = view.tools().iter().map(|tool| tool.id().to_string()).collect();
    differences(&prompt, &routable)
}

/// A tool is a line that begins with `- ` and its id.
fn differences(prompt: &str, routable: &BTreeSet<String>) -> Vec<Finding> {
    let named: BTreeSet<String> = prompt
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split([':', '(', ' ']).next().map(str::to_owned))
        .collect();
    let finding = |id: &String, message: &str| {
        Finding::new(Rule::Manifest, id, message, "this is a mistake of Aster's; please report it")
    };
    let silent = routable
        .difference(&named)
        .map(|id| finding(id, "it can be called, and the manifest does not name it"));
    let dead = named
        .difference(routable)
        .map(|id| finding(id, "the manifest names it, and nothing can be called by it"));
    silent.chain(dead).collect()
}

/// What is given to no agent, and what an agent is given in vain: a group in which nothing stands, a tool that the list does not
/// have. Resources and prompts stand in groups as tools do.
/// Without agents there is nothing to compare.
#[must_use]
pub fn agents(list: &NativeCatalogue, agents: &[Agent]) -> Vec<Finding> {
    if agents.is_empty() {
        return Vec::new();
    }
    let callables: Vec<(&ToolSpec, &str)> = list
        .entries
        .iter()
        .flat_map(|entry| {
            let of_server = match entry {
                crate::spec::Entry::Server(server) => server.group,
                _ => None,
            };
            let group =
                move |tool: &ToolSpec| tool.group.or(of_server).map_or(tool.server, |group| group.name());
            entry.callables().map(move |callable| (callable, group(callable)))
        })
        .collect();
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (callable, group) in &callables {
        groups.entry(group).or_default().push(id(callable));
    }
    let names: Vec<String> = agents.iter().map(|agent| format!("`{}`", agent.name)).collect();
    let mut found = Vec::new();
    for (group, members) in &groups {
        let given = agents.iter().any(|agent| {
            let single = |id: &String| agent.tools.iter().any(|tool| super::id(tool) == *id);
            agent.groups.iter().any(|given| given.name() == *group) || members.iter().any(single)
        });
        if !given {
            let message = format!(
                "no agent is given this group, of `{}`; the agents are {}",
                members.join("`, `"),
                names.join(", ")
            );
            found.push(Finding::new(
                Rule::Agents,
                *group,
                message,
                "name it in `agent! { … }`, or leave it out",
            ));
        }
    }
    for agent in agents {
        for group in agent.groups.iter().filter(|group| !groups.contains_key(group.name())) {
            let known: Vec<&str> = groups.keys().copied().collect();
            let message = format!("it is given the group `{}`, in which there is nothing", group.name());
            let help = format!("list a server of that group, or give it one of `{}`", known.join("`, `"));
            found.push(Finding::new(Rule::Agents, agent.name, message, help).at(list.location));
        }
        for tool in
            agent.tools.iter().filter(|given| !callables.iter().any(|(listed, _)| id(listed) == id(given)))
        {
            let message = format!("it is given the tool `{}`, which the list does not have", id(tool));
            let help = "add its server to `catalogue![…]`";
            found.push(
                Finding::new(Rule::Agents, agent.name, message, help)
                    .at(Some(tool.location))
                    .at(list.location),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_differs_is_told_in_both_directions() {
        let routable = ["web/search", "web/fetch"].map(str::to_owned).into();
        let prompt =
            "# Tools\n\n## Servers\nweb (2 tools)\n- web/search(query: string): Searches.\n- web/old: Gone.";
        let told: Vec<String> = differences(prompt, &routable)
            .iter()
            .map(|finding| format!("{} {}", finding.subject, finding.message))
            .collect();
        assert_eq!(
            told,
            [
                "web/fetch it can be called, and the manifest does not name it",
                "web/old the manifest names it, and nothing can be called by it"
            ]
        );
    }
}
