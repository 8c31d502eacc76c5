//! Which arguments name a URL, and so stand under egress.

use serde_json::Value;

use super::schema::properties;
use crate::destination::takes_url;
use crate::pointer;
use crate::spec::ToolSpec;

/// The arguments of a native tool that name a URL: those that its attribute says and, where one value is all of them, those
/// whose schema says so.
pub(crate) fn url_arguments(tool: &ToolSpec, schema: &Value) -> Vec<String> {
    if !tool.whole {
        return tool.url_arguments.iter().map(|name| (*name).to_owned()).collect();
    }
    properties(schema)
        .filter(|(_, property)| !is_said_to_be_none(property))
        .filter(|(name, property)| {
            let definition = pointer::followed(schema, property).map(|(_, target)| target);
            takes_url(name, property) || definition.is_some_and(|target| takes_url(name, target))
        })
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// The arguments of a native tool whose schema says that they are no URLs. A stranger's schema says nothing of the kind.
pub(crate) fn said_to_be_none(schema: &Value) -> impl Iterator<Item = &str> {
    properties(schema).filter(|(_, property)| is_said_to_be_none(property)).map(|(name, _)| name)
}

fn is_said_to_be_none(property: &Value) -> bool {
    property.get("x-egress") == Some(&Value::Bool(false))
}
