//! What is wrong with a catalogue, or with the binary around it, that the compiler does not see.
//!
//! Constraints it imposes on itself: it starts no server and calls no tool, and [`packages`](unlinked) alone starts a program,
//! which is cargo. `catalogue_tests!` makes a test of each check; `check` of the `aster` command and
//! of a binary that `serve_main!` made prints what [`binary`] finds.

mod linked;
mod manifest;
mod names;
mod packages;
mod schemas;
mod urls;
mod words;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde_json::Value;

pub use linked::listed;
pub use manifest::{agents, manifest};
pub use names::names;
pub use packages::unlinked;
pub use schemas::schemas;
pub use urls::urls;
pub use words::descriptions;

use crate::catalogue::{NativeCatalogue, native_parts};
use crate::pointer;
pub use crate::spec::MAX_DESCRIPTION;
use crate::spec::{Location, ToolSpec};

/// A rule that a catalogue or a binary breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// The list is no catalogue: two servers of one name, a name outside the grammar, a schema that is none.
    Catalogue,
    /// What is linked into the binary stands in its list, and the other way round.
    Listed,
    /// A server crate that a package depends on is linked into its binary.
    Linked,
    /// A tool or prompt has a description.
    Described,
    /// A description is no placeholder.
    Placeholder,
    /// A description says more than the name.
    RepeatsName,
    /// A description has at most [`MAX_DESCRIPTION`] characters.
    Length,
    /// No two tools say the same of themselves.
    Same,
    /// A parameter has a description.
    Parameter,
    /// What is inside of a parameter has names that providers take of parameters.
    Name,
    /// Arguments are held to all that a schema says.
    Schema,
    /// A parameter that takes a URL stands under egress.
    Egress,
    /// The tools of the list, those that can be called and those that the manifest names are the same.
    Manifest,
    /// Every group is given to an agent, and every agent is given something.
    Agents,
}

/// One thing that is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What breaks it: the id of a tool, or the name of a server, package, group or agent.
    pub subject: String,
    /// The parameter that is meant, with dots where it is nested.
    pub parameter: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// The places that are to do with it, `file:line` and the package.
    pub places: Vec<String>,
}

impl Finding {
    fn new(
        rule: Rule,
        subject: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (subject, message, help) = (subject.into(), message.into(), help.into());
        Self { rule, subject, parameter: None, message, help, places: Vec::new() }
    }

    fn of(rule: Rule, tool: &ToolSpec, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(rule, id(tool), message, help).at(Some(tool.location))
    }

    fn at(mut self, location: Option<Location>) -> Self {
        self.places.extend(location.map(|location| location.to_string()));
        self
    }

    fn parameter(mut self, path: &str) -> Self {
        self.parameter = Some(path.to_owned());
        self
    }

    /// What [`Accepted`] names it by: the subject and, after a space, the parameter.
    #[must_use]
    pub fn key(&self) -> String {
        match &self.parameter {
            Some(parameter) => format!("{} {parameter}", self.subject),
            None => self.subject.clone(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.subject)?;
        if let Some(parameter) = &self.parameter {
            write!(f, ", parameter `{parameter}`")?;
        }
        write!(f, ": {}", self.message)?;
        if !self.places.is_empty() {
            write!(f, "\n  at {}", self.places.join(" and "))?;
        }
        write!(f, "\n  help: {}", self.help)
    }
}

/// A finding that is right as it is, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The rule that is broken on purpose.
    pub rule: Rule,
    /// The finding's [`key`](Finding::key).
    pub key: &'static str,
    /// Why that is right.
    pub why: &'static str,
}

/// The findings that are not accepted. What is accepted for one of `rules` and does not occur is a finding as well: the
/// reason has gone, or the name was mistyped.
#[must_use]
pub fn without(mut findings: Vec<Finding>, rules: &[Rule], accepted: &[Accepted]) -> Vec<Finding> {
    let mut needed = BTreeSet::new();
    findings.retain(|finding| {
        let key = finding.key();
        let at = accepted.iter().position(|accepted| accepted.rule == finding.rule && accepted.key == key);
        needed.extend(at);
        at.is_none()
    });
    let idle = accepted
        .iter()
        .enumerate()
        .filter(|(at, accepted)| rules.contains(&accepted.rule) && !needed.contains(at));
    findings.extend(idle.map(|(_, Accepted { rule, key, why })| {
        Finding::new(
            *rule,
            *key,
            format!("is accepted ({why}), but nothing is wrong with it"),
            "remove it from `accept`",
        )
    }));
    findings
}

/// What keeps the list from being a catalogue: what start-up refuses, before it.
#[must_use]
pub fn problems(list: &NativeCatalogue) -> Vec<Finding> {
    let Err(error) = native_parts(list.entries) else { return Vec::new() };
    let finding = |problem: &crate::catalogue::Problem| {
        let subject = match &problem.tool {
            Some(tool) => format!("{}/{tool}", problem.server),
            None => problem.server.clone(),
        };
        Finding::new(
            Rule::Catalogue,
            subject,
            problem.reason.to_string(),
            "nothing starts with this; mend it",
        )
        .at(list.location)
    };
    error.problems().iter().map(finding).collect()
}

/// What is wrong with the binary that this code runs in: a list that is no catalogue, servers that are linked and not
/// listed or the other way round and, where `package` is the folder of its `Cargo.toml` and cargo started it, server crates
/// that it depends on and that are not linked. A second copy of this runtime is cargo's to refuse, by `links` in its `Cargo.toml`.
///
/// # Errors
///
/// Where the dependencies were not looked at, with what was found without them and the reason.
pub fn binary(
    list: &NativeCatalogue,
    package: Option<&Path>,
) -> Result<Vec<Finding>, (Vec<Finding>, String)> {
    let mut findings = problems(list);
    findings.extend(unlisted(list));
    let unlinked = match package {
        Some(package) => unlinked(package, &[*list, registered(list)]),
        None => Err("its sources are not here".to_owned()),
    };
    match unlinked {
        Ok(unlinked) => {
            findings.extend(unlinked);
            Ok(findings)
        }
        Err(why) => Err((findings, why)),
    }
}

/// What is linked and not listed, and the other way round: whether `list` is that of the whole binary. It asks nobody, and
/// costs a comparison of each entry with each.
#[must_use]
pub fn unlisted(list: &NativeCatalogue) -> Vec<Finding> {
    listed(list, &registered(list))
}

/// What is linked. Without the inventory that is what is listed, and there is nothing to compare.
#[cfg(feature = "inventory")]
fn registered(_: &NativeCatalogue) -> NativeCatalogue {
    NativeCatalogue::registered()
}

#[cfg(not(feature = "inventory"))]
fn registered(list: &NativeCatalogue) -> NativeCatalogue {
    *list
}

fn id(tool: &ToolSpec) -> String {
    format!("{}/{}", tool.server, tool.name)
}

/// The lower-case letters and digits of a text: what it says, however it is punctuated.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// One property of an input schema, at whatever depth.
struct Field<'a> {
    /// With dots, from the arguments down.
    path: String,
    name: &'a str,
    /// 1 is an argument.
    depth: usize,
    /// Itself, with the definition behind it where it is a reference.
    schemas: Vec<&'a Value>,
}

/// How deep properties are looked for.
const MAX_DEPTH: usize = 16;

/// All properties of a schema. References are followed inside the document, each once on a way down.
fn fields(schema: &Value) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    collect(schema, schema, "", 1, &mut Vec::new(), &mut found);
    found
}

fn collect<'a>(
    root: &'a Value,
    schema: &'a Value,
    above: &str,
    depth: usize,
    followed: &mut Vec<&'a str>,
    found: &mut Vec<Field<'a>>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some((reference, target)) = pointer::followed(root, schema)
        && !followed.contains(&reference)
    {
        followed.push(reference);
        collect(root, target, above, depth, followed, found);
        followed.pop();
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        let mut schemas = vec![property];
        schemas.extend(pointer::followed(root, property).map(|(_, target)| target));
        found.push(Field { path: path.clone(), name, depth, schemas });
        collect(root, property, &path, depth + 1, followed, found);
    }
    let parts = ["anyOf", "oneOf", "allOf", "prefixItems"].into_iter();
    let parts = parts.filter_map(|key| schema.get(key)?.as_array()).flatten();
    for part in parts.chain(["items", "additionalProperties"].into_iter().filter_map(|key| schema.get(key))) {
        collect(root, part, above, depth, followed, found);
    }
}
