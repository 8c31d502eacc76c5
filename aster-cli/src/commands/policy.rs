//! `aster policy`: what the rules make of a call, and what is wrong with them.

use std::path::PathBuf;
use std::sync::Arc;

use aster_runtime::catalogue::{TierSource, Tool, native_parts};
use aster_runtime::config::Problem;
use aster_runtime::gate::rules::{Caller, Landscape, Requirement, Rule, lint};
use aster_runtime::gate::secrets::Outgoing;
use aster_runtime::text::one_line;
use aster_runtime::{Catalogue, JsonObject, Profile, Tier, ToolId};
use serde::Serialize;

use super::call::misfit;
use super::describe::resolve;
use crate::args::{Global, PolicyTest};
use crate::compose::{self, Running};
use crate::exit::{Exit, Failure, count};
use crate::render::{Output, Report};

/// The shape of `aster policy test --json`.
#[derive(Serialize)]
struct Tested {
    id: String,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    team: Option<String>,
    decision: Decision,
    /// Why a human is asked or the call is denied, or the reason of the rule that allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// Where the rule stands that decides, unless it is the tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    tier: Tier,
    /// Whose word the tier is.
    tier_source: &'static str,
    /// All rules that match, those that count more first.
    matching: Vec<Matching>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    /// It runs, as far as rules and tier are concerned.
    Run,
    /// A human is asked.
    Ask,
    /// It is denied, with its reason.
    Deny,
    /// The tool does not exist for the agent.
    Hidden,
}

#[derive(Serialize)]
struct Matching {
    action: &'static str,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What becomes of secrets in the arguments, where the rule says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    secrets: Option<&'static str>,
}

impl From<&Rule> for Matching {
    fn from(rule: &Rule) -> Self {
        Self {
            action: rule.action().name(),
            rule: rule.place().to_owned(),
            reason: rule.why().map(str::to_owned),
            secrets: rule.outgoing().map(Outgoing::name),
        }
    }
}

pub(crate) fn test(
    running: &Running,
    arguments: &PolicyTest,
    input: &JsonObject,
    output: Output,
) -> Result<Exit, Failure> {
    let mut profile = Profile::new(&arguments.agent);
    if let Some(team) = &arguments.team {
        profile = profile.team(team);
    }
    let session = running
        .host
        .session(profile)
        .map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?;
    let id = &arguments.call.id;
    let tool = match find(&running.host.catalogue(), id) {
        Some(tool) => tool,
        // The way to say why there is none is that of the other commands.
        None => resolve(&session, id)?,
    };
    if let Some(failure) = misfit(&tool, input) {
        return Err(failure);
    }
    let rules = running.host.rules();
    let caller = Caller { agent: &arguments.agent, team: arguments.team.as_deref() };
    let (ruling, matching) = session.ruling(&tool, input);
    let mut tested = Tested {
        id: tool.id().to_string(),
        agent: arguments.agent.clone(),
        team: arguments.team.clone(),
        decision: Decision::Run,
        why: None,
        rule: ruling.rule.map(|place| place.to_string()),
        tier: tool.tier(),
        tier_source: match tool.tier_source() {
            TierSource::Declared => "declared",
            TierSource::Annotation => "annotation",
            TierSource::Default => "default",
        },
        matching: matching.iter().map(Matching::from).collect(),
    };
    (tested.decision, tested.why) = match ruling.requirement {
        Requirement::Run => {
            let lifting = matching.first().and_then(Rule::why);
            (Decision::Run, lifting.map(str::to_owned))
        }
        Requirement::Ask(why) => (Decision::Ask, Some(why.into_owned())),
        Requirement::Deny(why) => (Decision::Deny, Some(why)),
    };
    if let Some(rule) = rules.hiding(caller, &tool) {
        tested.decision = Decision::Hidden;
        tested.why = rule.why().map(str::to_owned);
        tested.rule = Some(rule.place().to_owned());
    } else if !session.shows(&tool) {
        tested.decision = Decision::Hidden;
        tested.why = Some("`mcp.tools` in aster.yaml leaves it out".to_owned());
        tested.rule = None;
    }
    output.report(&tested)?;
    Ok(match tested.decision {
        Decision::Run | Decision::Ask => Exit::Success,
        Decision::Deny | Decision::Hidden => Exit::Denied,
    })
}

/// What can be called under this id.
fn find(catalogue: &Catalogue, id: &str) -> Option<Arc<Tool>> {
    let id = ToolId::parse(id)?;
    let resource = || catalogue.resources().iter().map(|resource| resource.callable());
    let prompt = || catalogue.prompts().iter().map(|prompt| prompt.callable());
    catalogue.get(&id).or_else(|| resource().chain(prompt()).find(|callable| *callable.id() == id)).cloned()
}

impl Report for Tested {
    fn human(&self) -> String {
        let id = one_line(&self.id, 330);
        let mut lines = vec![match self.decision {
            Decision::Run => format!("{id} runs"),
            Decision::Ask => format!("{id} asks a human"),
            Decision::Deny => format!("{id} is denied"),
            Decision::Hidden => format!("{id} does not exist for {}", one_line(&self.agent, 80)),
        }];
        lines.extend(self.rule.iter().map(|rule| format!("  by the rule at {rule}")));
        lines.extend(self.why.iter().map(|why| format!("  why: {}", one_line(why, 1000))));
        lines.push(match self.tier_source {
            "declared" => format!("  tier: {}, as it was declared", self.tier),
            "annotation" => format!("  tier: {}, since it says so of itself", self.tier),
            _ => format!("  tier: {}, since nobody says otherwise", self.tier),
        });
        let others = self.matching.iter().filter(|matching| self.rule.as_ref() != Some(&matching.rule));
        lines.extend(others.map(|other| format!("  also matching: {} at {}", other.action, other.rule)));
        let secrets = self.matching.iter().filter_map(|rule| Some((rule.secrets?, &rule.rule)));
        lines.extend(
            secrets.map(|(secrets, rule)| format!("  secrets in it: {secrets}, by the rule at {rule}")),
        );
        lines.join("\n")
    }
}

/// The shape of `aster policy lint --json`.
#[derive(Serialize)]
struct Linted {
    files: Vec<PathBuf>,
    /// How many rules there are.
    rules: usize,
    /// What has to be mended.
    problems: Vec<Mend>,
    /// What was left out.
    warnings: Vec<Mend>,
}

#[derive(Serialize)]
struct Mend {
    place: String,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    help: String,
}

impl From<&Problem> for Mend {
    fn from(problem: &Problem) -> Self {
        Self { place: problem.place(), message: problem.message.clone(), help: problem.help.clone() }
    }
}

pub(crate) fn check(global: &Global, output: Output) -> Result<Exit, Failure> {
    let config = compose::load(global)?;
    let read = compose::rule_files(global).read();
    let externals = config.servers.iter().map(|server| server.name.as_str());
    let landscape = externals.fold(natives()?, Landscape::external);
    let mut problems: Vec<Mend> = read.problems.iter().map(Mend::from).collect();
    problems.extend(lint(&read.rules, &landscape).into_iter().map(|finding| Mend {
        place: finding.place,
        message: one_line(&finding.message, 1000),
        help: finding.help,
    }));
    let linted = Linted {
        files: read.files,
        rules: read.rules.rules().len(),
        problems,
        warnings: read.warnings.iter().map(Mend::from).collect(),
    };
    output.report(&linted)?;
    Ok(if linted.problems.is_empty() { Exit::Success } else { Exit::Configuration })
}

/// The native servers, with everything on them that a rule can name.
fn natives() -> Result<Landscape, Failure> {
    let parts = native_parts(compose::NATIVE.entries)
        .map_err(|error| Failure::new(Exit::Configuration, error.to_string()))?;
    Ok(parts.iter().fold(Landscape::default(), Landscape::part))
}

impl Report for Linted {
    fn human(&self) -> String {
        let line = |kind: &str, mend: &Mend| {
            let help = if mend.help.is_empty() { String::new() } else { format!("\n  help: {}", mend.help) };
            format!("{kind}: {}: {}{help}", mend.place, mend.message)
        };
        let files = self.files.iter();
        let mut lines: Vec<String> =
            files.map(|file| format!("read {}", one_line(&file.display().to_string(), 4096))).collect();
        lines.extend(self.problems.iter().map(|mend| line("problem", mend)));
        lines.extend(self.warnings.iter().map(|mend| line("warning", mend)));
        lines.push(format!(
            "{}, {}, {}",
            count(self.rules, "rule"),
            count(self.problems.len(), "problem"),
            count(self.warnings.len(), "warning"),
        ));
        lines.join("\n")
    }
}
