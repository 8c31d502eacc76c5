//! Resources and prompts: callables that are no tools. They stand beside the tools of a catalogue and never among them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Tool, schema};
use crate::id::ToolId;
use crate::spec::{Completion, PromptSpec, ResourceSpec};
use crate::text;
use crate::tool::JsonObject;
use crate::uri::Template;

/// One resource, or one template of resources.
#[derive(Debug)]
pub struct Resource {
    pub(super) callable: Arc<Tool>,
    pub(super) template: Template,
    pub(super) definition: Value,
    pub(super) completions: &'static [Completion],
}

impl Resource {
    /// As `#[mcp_resource]` wrote it down.
    pub(super) fn native(callable: Arc<Tool>, spec: &'static ResourceSpec, template: Template) -> Self {
        let key = if template.is_plain() { "uri" } else { "uriTemplate" };
        let mut definition = named(&callable, spec.callable.title);
        definition.shift_insert(0, key.to_owned(), json!(spec.uri));
        definition.extend(spec.mime_type.map(|mime_type| ("mimeType".to_owned(), json!(mime_type))));
        if template.is_plain() {
            definition.extend(spec.size.map(|size| ("size".to_owned(), json!(size))));
        }
        Self { callable, template, definition: Value::Object(definition), completions: spec.completions }
    }

    /// The same resource with a note at the end of its description.
    pub(super) fn with_note(&self, note: &str) -> Self {
        let (callable, definition) = noted(&self.callable, &self.definition, note);
        Self { callable, definition, template: self.template.clone(), completions: self.completions }
    }

    /// The id, in the same space of names as those of tools.
    #[must_use]
    pub fn id(&self) -> &ToolId {
        self.callable.id()
    }

    /// What a read of it calls; the gate and the audit know it by this.
    #[must_use]
    pub fn callable(&self) -> &Arc<Tool> {
        &self.callable
    }

    /// The URI, or the template of URIs.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The definition: MCP `Resource`, or `ResourceTemplate` where the URI has variables.
    #[must_use]
    pub fn definition(&self) -> Value {
        self.definition.clone()
    }

    /// The arguments that a URI means, where it is one of this resource's.
    pub(crate) fn arguments(&self, uri: &str) -> Option<JsonObject> {
        let values = self.template.matches(uri)?;
        let written =
            values.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect();
        Some(schema::from_strings(self.callable.input_schema(), written))
    }

    /// What is suggested for a variable of which this has been typed.
    pub(crate) fn suggest(&self, variable: &str, typed: &str) -> Vec<String> {
        suggest(&self.callable, self.completions, variable, typed)
    }
}

/// One prompt.
#[derive(Debug)]
pub struct Prompt {
    pub(super) callable: Arc<Tool>,
    pub(super) definition: Value,
    pub(super) completions: &'static [Completion],
}

impl Prompt {
    /// As `#[mcp_prompt]` wrote it down.
    pub(super) fn native(callable: Arc<Tool>, spec: &'static PromptSpec) -> Self {
        let mut definition = named(&callable, spec.callable.title);
        let schema = callable.input_schema();
        let arguments: Vec<Value> = schema::properties(schema)
            .map(|(name, property)| {
                let mut argument = Map::from_iter([("name".to_owned(), json!(name))]);
                let description = property.get("description").cloned();
                argument.extend(description.map(|text| ("description".to_owned(), text)));
                argument.insert("required".to_owned(), json!(schema::requires(schema, name)));
                Value::Object(argument)
            })
            .collect();
        if !arguments.is_empty() {
            definition.insert("arguments".to_owned(), Value::Array(arguments));
        }
        Self { callable, definition: Value::Object(definition), completions: spec.completions }
    }

    /// The same prompt with a note at the end of its description.
    pub(super) fn with_note(&self, note: &str) -> Self {
        let (callable, definition) = noted(&self.callable, &self.definition, note);
        Self { callable, definition, completions: self.completions }
    }

    /// The id, in the same space of names as those of tools.
    #[must_use]
    pub fn id(&self) -> &ToolId {
        self.callable.id()
    }

    /// What getting it calls; the gate and the audit know it by this.
    #[must_use]
    pub fn callable(&self) -> &Arc<Tool> {
        &self.callable
    }

    /// The definition (MCP `Prompt`), with its bare name.
    #[must_use]
    pub fn definition(&self) -> Value {
        self.definition.clone()
    }

    /// The arguments that a client means, which has nothing but text to write them in.
    pub(crate) fn arguments(&self, written: &JsonObject) -> JsonObject {
        schema::from_strings(self.callable.input_schema(), written.clone())
    }

    /// What is suggested for an argument of which this has been typed.
    pub(crate) fn suggest(&self, argument: &str, typed: &str) -> Vec<String> {
        suggest(&self.callable, self.completions, argument, typed)
    }
}

/// Name, title and description, as all definitions have them.
fn named(callable: &Tool, title: Option<&str>) -> JsonObject {
    let mut definition = Map::from_iter([("name".to_owned(), json!(callable.id().tool()))]);
    definition.extend(title.map(|title| ("title".to_owned(), json!(title))));
    definition.insert("description".to_owned(), json!(callable.description()));
    definition
}

/// A callable and the definition that is made of it, with a note.
fn noted(callable: &Tool, definition: &Value, note: &str) -> (Arc<Tool>, Value) {
    let (callable, mut definition) = (callable.with_note(note), definition.clone());
    definition["description"] = callable.description().into();
    (Arc::new(callable), definition)
}

/// What the author's own function says, or the values that the schema lists; of these what begins with what was typed,
/// whatever its case.
fn suggest(callable: &Tool, completions: &[Completion], argument: &str, typed: &str) -> Vec<String> {
    let own = completions.iter().find(|completion| completion.argument == argument);
    let all = match own {
        // A function that panics costs its suggestions and nothing else.
        Some(completion) => std::panic::catch_unwind(|| (completion.values)(typed)).unwrap_or_else(|_| {
            let id = text::one_line(callable.id().as_str(), 128);
            tracing::error!(%id, argument, "the suggestions for an argument panicked");
            Vec::new()
        }),
        None => schema::listed(callable.input_schema(), argument),
    };
    let typed = typed.to_lowercase();
    all.into_iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect()
}
