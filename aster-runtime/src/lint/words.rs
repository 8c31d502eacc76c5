//! What tools say of themselves: a model chooses by nothing else.

use serde_json::Value;

use super::{Field, Finding, Rule, fields, id, letters};
use crate::catalogue::NativeCatalogue;
use crate::spec::{Entry, MAX_DESCRIPTION, ToolSpec};

/// What stands where a description is still to be written, and how a longer one begins that says so, unless a sentence begins
/// with it. The macros have the same words.
const PLACEHOLDERS: &[&str] = &["todo", "fixme", "tbd", "xxx", "description", "loremipsum"];
const MARKS: &[&str] = &["TODO", "FIXME", "TBD", "XXX"];

/// The descriptions of tools, resources, prompts and parameters that are missing, are placeholders, repeat a name, are too
/// long, or are another tool's. The macros refuse the first of these at compile time where they can read the text, which
/// they cannot in `#[doc = include_str!(…)]`, in a type of a parameter, or in a specification that no macro wrote.
#[must_use]
pub fn descriptions(list: &NativeCatalogue) -> Vec<Finding> {
    let callables = list.entries.iter().flat_map(|entry| {
        let tools = entry.tools().iter().chain(entry.prompts().iter().map(|prompt| &prompt.callable));
        // The variables of a URI have no descriptions in the protocol.
        let resources = entry.resources().iter().map(|resource| &resource.callable);
        tools.map(|tool| (tool, true)).chain(resources.map(|resource| (resource, false)))
    });
    let mut found: Vec<Finding> = callables
        .flat_map(|(tool, has_parameters)| {
            let schema = if has_parameters { (tool.input_schema)() } else { Value::Null };
            let parameters: Vec<Finding> =
                fields(&schema).iter().filter_map(|field| parameter(tool, field)).collect();
            description(tool).into_iter().chain(parameters)
        })
        .collect();
    found.extend(twins(list.entries));
    found
}

fn description(tool: &ToolSpec) -> Option<Finding> {
    let said = letters(tool.description);
    let finding = |rule, message: &str| {
        let help = "say in its doc comment what it does and when to use it: models choose tools by this text";
        Some(Finding::of(rule, tool, message, help))
    };
    if tool.description.trim().is_empty() {
        return finding(Rule::Described, "it has no description");
    }
    if is_placeholder(tool.description) {
        return finding(Rule::Placeholder, "its description is a placeholder");
    }
    let names = [tool.name, tool.title.unwrap_or_default(), &id(tool)].map(letters);
    if names.contains(&said) {
        return finding(Rule::RepeatsName, "its description says no more than its name");
    }
    let length = tool.description.chars().count();
    if length > MAX_DESCRIPTION {
        let message = format!("its description has {length} characters, and {MAX_DESCRIPTION} are the most");
        return Some(Finding::of(
            Rule::Length,
            tool,
            message,
            "say the rest where the arguments are described",
        ));
    }
    None
}

fn parameter(tool: &ToolSpec, field: &Field<'_>) -> Option<Finding> {
    // What has one value, such as the tag of a variant, explains itself.
    if field.schemas.iter().any(|schema| schema.get("const").is_some()) {
        return None;
    }
    let said =
        field.schemas.iter().find_map(|schema| schema.get("description")?.as_str()).unwrap_or_default();
    let finding = |rule, message: String| {
        let help = "write `///` above the parameter, or above the field of its type";
        Some(Finding::of(rule, tool, message, help).parameter(&field.path))
    };
    if said.trim().is_empty() {
        return finding(Rule::Parameter, "it has no description".to_owned());
    }
    if is_placeholder(said) {
        return finding(Rule::Placeholder, "its description is a placeholder".to_owned());
    }
    if letters(said) == letters(field.name) {
        return finding(Rule::RepeatsName, "its description says no more than its name".to_owned());
    }
    let length = said.chars().count();
    if length > MAX_DESCRIPTION {
        let message = format!("its description has {length} characters, and {MAX_DESCRIPTION} are the most");
        return finding(Rule::Length, message);
    }
    None
}

/// Tools of one description: a model cannot choose between them.
fn twins(entries: &[Entry]) -> impl Iterator<Item = Finding> {
    let tools: Vec<(&ToolSpec, String)> = entries
        .iter()
        .flat_map(Entry::tools)
        .map(|tool| (tool, letters(tool.description)))
        .filter(|(_, said)| !said.is_empty() && !is_placeholder(said))
        .collect();
    let twin = |at: usize| {
        let (tool, said) = &tools[at];
        let (first, _) = tools[..at].iter().find(|(_, first)| first == said)?;
        let message = format!("it says the same of itself as `{}`", id(first));
        let help = "say in each what the other does not do, or make one tool of them";
        Some(Finding::of(Rule::Same, tool, message, help).at(Some(first.location)))
    };
    (0..tools.len()).filter_map(twin).collect::<Vec<_>>().into_iter()
}

fn is_placeholder(text: &str) -> bool {
    let start = text.trim_start();
    let (first, rest) = start.split_at(start.find(|c: char| !c.is_alphanumeric()).unwrap_or(start.len()));
    let goes_on = rest.trim_start().starts_with(char::is_alphanumeric);
    let said = letters(text);
    PLACEHOLDERS.contains(&said.as_str())
        || (MARKS.contains(&first) && !goes_on)
        || (said.is_empty() && !text.trim().is_empty())
}
