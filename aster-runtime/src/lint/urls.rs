//! Parameters that take a URL and that the gate does not look at.

use super::{Field, Finding, Rule, fields};
use crate::catalogue::{NativeCatalogue, url_arguments};
use crate::destination::takes_url;
use crate::spec::ToolSpec;

/// The parameters of tools that take a URL, by the format of their schema or by their name, and do not stand under egress.
/// The gate looks at arguments, and not into them: a URL inside of a struct is nobody's to judge, unless the struct is all
/// arguments.
#[must_use]
pub fn urls(list: &NativeCatalogue) -> Vec<Finding> {
    let tools = list.entries.iter().flat_map(|entry| entry.tools());
    tools
        .flat_map(|tool| {
            let schema = (tool.input_schema)();
            let governed = url_arguments(tool, &schema);
            fields(&schema).iter().filter_map(|field| outside(tool, &governed, field)).collect::<Vec<_>>()
        })
        .collect()
}

fn outside(tool: &ToolSpec, governed: &[String], field: &Field<'_>) -> Option<Finding> {
    let takes_url = field.schemas.iter().any(|schema| takes_url(field.name, schema));
    if !takes_url || (field.depth == 1 && governed.iter().any(|name| name == field.name)) {
        return None;
    }
    let help = match field.depth {
        1 => "write `#[arg(url)]` on the parameter, or accept it with the reason",
        _ => {
            "make it a parameter of the tool, or let the tool ask `ServerEnv::egress` and accept it with the reason"
        }
    };
    let message = "it takes a URL and does not stand under egress";
    Some(Finding::of(Rule::Egress, tool, message, help).parameter(&field.path))
}
