//! What properties are called inside of arguments.

use super::{Finding, Rule, fields};
use crate::catalogue::NativeCatalogue;
use crate::id;
use crate::spec::ToolSpec;

/// The properties below an argument whose names are outside of `[A-Za-z0-9_.-]{1,64}`. An argument itself cannot have such a
/// name: Anthropic [refuses the whole request][arguments], and there is no catalogue. Below it the name is taken, but it becomes
/// an argument's where a profile writes the choices at the root as one object, or where a caller flattens the type; and models
/// write plain names without mistakes.
///
/// [arguments]: https://github.com/aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws/issues/709
#[must_use]
pub fn names(list: &NativeCatalogue) -> Vec<Finding> {
    let tools = list.entries.iter().flat_map(|entry| entry.tools());
    let of_tool = |tool: &ToolSpec| {
        let schema = (tool.input_schema)();
        let odd = |field: &super::Field<'_>| field.depth > 1 && !id::is_argument_name(field.name);
        let finding = |field: &super::Field<'_>| {
            let message = "its name is not one that every provider takes of an argument";
            let help =
                "rename the field with `#[serde(rename = \"…\")]`: `[A-Za-z0-9_.-]`, at most 64 characters";
            Finding::of(Rule::Name, tool, message, help).parameter(&field.path)
        };
        fields(&schema).iter().filter(|field| odd(field)).map(finding).collect::<Vec<_>>()
    };
    tools.flat_map(of_tool).collect()
}
