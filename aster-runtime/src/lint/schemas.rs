//! Whether arguments are held to what their schemas say.

use super::{Finding, Rule};
use crate::catalogue::{NativeCatalogue, unchecked};
use crate::spec::ToolSpec;

/// The schemas of which a part is not checked before the function is called: a pattern that the engine of linear time does not
/// take, or a reference that leads nowhere. Of a stranger's tool its server judges that; behind a native one nobody does. What
/// is no schema at all is told by [`problems`](super::problems).
#[must_use]
pub fn schemas(list: &NativeCatalogue) -> Vec<Finding> {
    list.entries.iter().flat_map(|entry| entry.tools()).flat_map(of_tool).collect()
}

fn of_tool(tool: &ToolSpec) -> Vec<Finding> {
    match unchecked(&(tool.input_schema)()) {
        Ok(keywords) => {
            let finding = |keyword: String| {
                let message = format!("no argument is held to this part of its schema: {keyword}");
                let help = "write a pattern without look-around and back-references, or a reference to what the schema defines";
                Finding::of(Rule::Schema, tool, message, help)
            };
            keywords.into_iter().map(finding).collect()
        }
        Err(why) => {
            let message = format!("no argument can be checked by its schema: {why}");
            let help = "mend the schema, or the type that it is derived from";
            vec![Finding::of(Rule::Schema, tool, message, help)]
        }
    }
}
