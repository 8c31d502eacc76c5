//! Whether models are told of what can be called, and agents given what there is.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, Rule, id};
use crate::catalogue::{Catalogue, NativeCatalogue, Origin, native_parts, raise};
use crate::id::ToolId;
use crate::inject::{ProgressiveConfig, inject};
use crate::scope::{Agent, Scope, View};
use crate::spec::ToolSpec;

/// The tools of the list that a call does not arrive at, or that the manifest, with room for all of it, does not name; and the
/// names in the manifest that are none of them. The list is asked itself, the router for each of its names, and the manifest is
/// read as a model reads it. A list that is no catalogue has neither router nor manifest; see [`problems`](super::problems).
#[must_use]
pub fn manifest(list: &NativeCatalogue) -> Vec<Finding> {
    let Ok(mut parts) = native_parts(list.entries) else { return Vec::new() };
    raise(&mut parts, list.raises);
    let view = Scope::default().view(&Catalogue::merge(&parts));
    differences(list, &view, named(&view))
}

/// The tools that the manifest of a view names.
fn named(view: &View) -> BTreeSet<String> {
    let config =
        ProgressiveConfig { available_context_tokens: usize::MAX / 1024, ..ProgressiveConfig::default() };
    inject(view, &config).map(|injection| names_in(&injection.prompt)).unwrap_or_default()
}

fn differences(list: &NativeCatalogue, view: &View, mut named: BTreeSet<String>) -> Vec<Finding> {
    let finding = |id: &str, message: &str| {
        Finding::new(Rule::Manifest, id, message, "this is a mistake of Aster's; please report it")
    };
    let mut found = Vec::new();
    for tool in list.entries.iter().flat_map(|entry| entry.tools()) {
        let id = ToolId::new(tool.server, tool.name);
        let answers = view.get(&id).is_some_and(|routed| match routed.origin() {
            Origin::Native(spec) => spec.location == tool.location && spec.name == tool.name,
            Origin::Mounted | Origin::External => false,
        });
        match (answers, named.remove(id.as_str())) {
            (true, true) => {}
            (true, false) => {
                found.push(finding(id.as_str(), "it can be called, and the manifest does not name it"))
            }
            (false, true) => {
                found.push(finding(id.as_str(), "the manifest names it, and a call does not arrive at it"));
            }
            (false, false) => found.push(finding(id.as_str(), "it is listed, and cannot be called")),
        }
    }
    found.extend(named.iter().map(|id| finding(id, "the manifest names it, and it is not listed")));
    found
}

/// The tools in a manifest: lines that begin with `- ` and an id.
fn names_in(prompt: &str) -> BTreeSet<String> {
    let lines = prompt.lines().filter_map(|line| line.strip_prefix("- "));
    lines.filter_map(|line| line.split([':', '(', ' ']).next().map(str::to_owned)).collect()
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
    use crate::__private::Location;
    use crate::catalogue::Reason;
    use crate::spec::{Annotations, Entry, Tier};

    const fn tool(name: &'static str, line: u32) -> ToolSpec {
        ToolSpec {
            server: "web",
            name,
            title: None,
            description: "Reads the web.",
            tier: Tier::Standard,
            group: None,
            annotations: Annotations {
                read_only: None,
                destructive: None,
                idempotent: None,
                open_world: None,
            },
            timeout: None,
            hot: false,
            alias: None,
            egress: &[],
            url_arguments: &[],
            free_arguments: &[],
            path_arguments: &[],
            secret_arguments: &[],
            whole: false,
            input_schema: || serde_json::json!({"type": "object"}),
            output_schema: || None,
            call: |_| unreachable!("nothing is called"),
            location: Location { file: "web.rs", line, package: "web" },
        }
    }

    static FETCH: ToolSpec = tool("fetch", 1);
    static SEARCH: ToolSpec = tool("search", 2);
    static OTHER_FETCH: ToolSpec = tool("fetch", 3);
    const BOTH: NativeCatalogue =
        NativeCatalogue { entries: &[Entry::Tool(&FETCH), Entry::Tool(&SEARCH)], ..NativeCatalogue::EMPTY };

    fn told(list: &NativeCatalogue, catalogue: &Catalogue) -> Vec<String> {
        let view = Scope::default().view(catalogue);
        lines(&differences(list, &view, named(&view)))
    }

    fn lines(found: &[Finding]) -> Vec<String> {
        found.iter().map(|finding| format!("{} {}", finding.subject, finding.message)).collect()
    }

    #[test]
    fn a_list_a_router_and_a_manifest_that_differ_are_told_in_all_directions() {
        assert_eq!(manifest(&BOTH), []);
        let of = |entries| Catalogue::merge(&native_parts(entries).unwrap());
        const SEARCH_ALONE: NativeCatalogue =
            NativeCatalogue { entries: &[Entry::Tool(&SEARCH)], ..NativeCatalogue::EMPTY };
        assert_eq!(
            told(&SEARCH_ALONE, &of(BOTH.entries)),
            ["web/fetch the manifest names it, and it is not listed"]
        );
        assert_eq!(told(&BOTH, &of(SEARCH_ALONE.entries)), ["web/fetch it is listed, and cannot be called"]);
        let view = Scope::default().view(&of(BOTH.entries));
        assert_eq!(
            lines(&differences(&BOTH, &view, BTreeSet::from(["web/fetch".to_owned()]))),
            ["web/search it can be called, and the manifest does not name it"]
        );
        let of_others = of(&[Entry::Tool(&OTHER_FETCH), Entry::Tool(&SEARCH)]);
        assert_eq!(
            told(&BOTH, &of_others),
            ["web/fetch the manifest names it, and a call does not arrive at it"]
        );
        let mut parts = native_parts(BOTH.entries).unwrap();
        for part in &mut parts {
            part.leave_out(|tool| (tool.id().tool() == "search").then_some(Reason::Missing("name")));
        }
        assert_eq!(told(&BOTH, &Catalogue::merge(&parts)), ["web/search it is listed, and cannot be called"]);
    }

    #[test]
    fn a_manifest_is_read_as_a_model_reads_it() {
        let prompt =
            "# Tools\n\n## Servers\nweb (2 tools)\n- web/search(query: string): Searches.\n- web/old: Gone.";
        assert_eq!(names_in(prompt), ["web/old", "web/search"].map(str::to_owned).into());
    }
}
