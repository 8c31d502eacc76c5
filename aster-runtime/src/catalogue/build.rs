//! From what was declared or listed to a checked part of the catalogue.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::external::{AnnotationTrust, ExternalSettings, Health, Listing};
use super::problem::{CatalogueError, Problem, Reason};
use super::{
    Asks, Origin, Prompt, Resource, Server, TierSource, Tool, said_to_be_none, schema, url_arguments,
};
use crate::gate::egress::Governed;
use crate::id::{self, ToolId};
use crate::spec::{self, Annotations, Entry, Raise, ResourceSpec, ServerSpec, Tier, ToolSpec};
use crate::text;
use crate::tool::{Moments, kind};
use crate::uri::{self, Template};

/// The largest definition of one external tool, in bytes of JSON. The largest real one seen has 82 000.
pub const MAX_TOOL_BYTES: usize = 256 * 1024;

/// The most that the definitions of one external server may have together, in bytes of JSON.
pub const MAX_EXTERNAL_TOOL_BYTES: usize = 16 * 1024 * 1024;

/// How long a summary may be, in characters.
pub(super) const SUMMARY: usize = 500;

/// How long a server's own line may be, in characters.
const SERVER_LINE: usize = 200;

/// One server's share of a catalogue.
#[derive(Debug, Clone)]
pub struct Part {
    /// The server.
    pub server: Server,
    /// Its tools that can be used.
    pub tools: Vec<Arc<Tool>>,
    /// Its resources.
    pub resources: Vec<Arc<Resource>>,
    /// Its prompts.
    pub prompts: Vec<Arc<Prompt>>,
    /// Why the others cannot.
    pub problems: Vec<Problem>,
}

impl Part {
    fn empty(server: Server) -> Self {
        Self { server, tools: Vec::new(), resources: Vec::new(), prompts: Vec::new(), problems: Vec::new() }
    }

    /// Takes everything off the server, which is not there.
    pub(crate) fn clear(&mut self) {
        self.tools.clear();
        self.resources.clear();
        self.prompts.clear();
        self.server.tools = 0;
    }

    /// Takes tools off the list for which there is a reason, which goes among the problems.
    pub(crate) fn leave_out(&mut self, why: impl Fn(&Tool) -> Option<Reason>) {
        let Self { server, tools, problems, .. } = self;
        tools.retain(|tool| {
            let Some(reason) = why(tool) else { return true };
            let tool = Some(tool.id.tool().to_owned());
            problems.push(Problem { server: server.name.clone(), tool, reason });
            false
        });
        server.tools = tools.len();
    }

    /// Notes of tools what they were before the change that the user trusted last.
    pub(crate) fn note_replaced(&mut self, replaced: &BTreeMap<String, Arc<Value>>) {
        for tool in &mut self.tools {
            if let Some(before) = replaced.get(tool.id.tool()) {
                Arc::make_mut(tool).replaced = Some(Arc::clone(before));
            }
        }
    }

    /// Leaves out what the server says of itself, with the reason.
    pub(crate) fn silence(&mut self, reason: Reason) {
        self.server.description = None;
        self.server.instructions = None;
        self.problems.push(Problem { server: self.server.name.clone(), tool: None, reason });
    }

    /// The part as its server offers it at the moment: with its notes, and without what it withholds, the reasons for which
    /// are among the problems.
    pub(crate) fn at_the_moment(&self, moments: &Moments) -> Cow<'_, Self> {
        let moment = |callable: &Tool| moments.get(&callable.id);
        let missing = |callable: &Tool| moment(callable)?.withheld.as_ref();
        if !self.callables().any(|callable| moment(callable).is_some()) {
            return Cow::Borrowed(self);
        }
        let mut part = self.clone();
        let problems = self.callables().filter_map(|callable| {
            Some(Problem {
                server: self.server.name.clone(),
                tool: Some(callable.id.tool().to_owned()),
                reason: Reason::Withheld(missing(callable)?.clone()),
            })
        });
        part.problems.extend(problems);
        part.tools.retain(|tool| missing(tool).is_none());
        part.resources.retain(|resource| missing(&resource.callable).is_none());
        part.prompts.retain(|prompt| missing(&prompt.callable).is_none());
        let note = |callable: &Tool| moment(callable)?.note.as_deref();
        for tool in &mut part.tools {
            if let Some(note) = note(tool) {
                *tool = Arc::new(tool.with_note(note));
            }
        }
        for resource in &mut part.resources {
            if let Some(note) = note(&resource.callable) {
                *resource = Arc::new(resource.with_note(note));
            }
        }
        for prompt in &mut part.prompts {
            if let Some(note) = note(&prompt.callable) {
                *prompt = Arc::new(prompt.with_note(note));
            }
        }
        part.server.tools = part.tools.len();
        Cow::Owned(part)
    }

    /// Its tools, and what resources and prompts call.
    pub(crate) fn callables(&self) -> impl Iterator<Item = &Arc<Tool>> {
        let resources = self.resources.iter().map(|resource| &resource.callable);
        let prompts = self.prompts.iter().map(|prompt| &prompt.callable);
        self.tools.iter().chain(resources).chain(prompts)
    }

    /// The [`callables`](Self::callables) that nobody else has.
    fn callables_mut(&mut self) -> impl Iterator<Item = &mut Tool> {
        let resources = self.resources.iter_mut().filter_map(Arc::get_mut);
        let prompts = self.prompts.iter_mut().filter_map(Arc::get_mut);
        let inside = resources.map(|resource| &mut resource.callable);
        let inside = inside.chain(prompts.map(|prompt| &mut prompt.callable));
        self.tools.iter_mut().chain(inside).filter_map(Arc::get_mut)
    }
}

/// The parts of the native servers, ready.
///
/// Two servers of one name, a server and a free function under one name, two callables of one id, and two resources of one
/// URI are problems; the macros and `catalogue!` see most of them earlier.
///
/// # Errors
///
/// Every problem at once.
pub fn native_parts(entries: &[Entry]) -> Result<Vec<Part>, CatalogueError> {
    let mut parts: Vec<Part> = Vec::new();
    let mut firsts: Vec<&Entry> = Vec::new();
    let mut problems = Vec::new();
    for entry in entries {
        let name = entry.server();
        if let Some(at) = firsts.iter().position(|first| first.server() == name) {
            if firsts[at].free().is_some() && entry.free().is_some() {
                add_native(&mut parts[at], entry, &mut problems);
            } else {
                problems.push(Problem {
                    server: name.to_owned(),
                    tool: None,
                    reason: Reason::DuplicateServer {
                        first: Some(firsts[at].location().to_string()),
                        second: Some(entry.location().to_string()),
                    },
                });
            }
            continue;
        }
        if let Err(error) = id::check_native_name(name) {
            problems.push(Problem { server: name.to_owned(), tool: None, reason: Reason::Name(error) });
        }
        let mut part = Part::empty(native_server(entry));
        add_native(&mut part, entry, &mut problems);
        parts.push(part);
        firsts.push(entry);
    }
    same_uris(&parts, &mut problems);
    CatalogueError::check(problems)?;
    Ok(parts)
}

/// Gives callables the stricter tier that a catalogue says. What is shared already keeps its own.
pub(crate) fn raise(parts: &mut [Part], raises: &[Raise]) {
    for Raise { tool, tier } in raises {
        let of_server = parts.iter_mut().filter(|part| part.server.name == tool.server);
        for found in of_server.flat_map(Part::callables_mut).filter(|found| found.id.tool() == tool.name) {
            found.tier = found.tier.max(*tier);
        }
    }
}

/// A URI is one resource's, whichever server it is on: a client reads by URI alone.
fn same_uris(parts: &[Part], problems: &mut Vec<Problem>) {
    let all: Vec<(&str, &ToolSpec)> = parts
        .iter()
        .flat_map(|part| &part.resources)
        .filter_map(|resource| match resource.callable.origin {
            Origin::Native(spec) => Some((resource.template.as_str(), spec)),
            _ => None,
        })
        .collect();
    for (at, (uri, second)) in all.iter().enumerate() {
        let Some((_, first)) = all[..at].iter().find(|(first, _)| uri::is_same(first, uri)) else {
            continue;
        };
        problems.push(Problem {
            server: second.server.to_owned(),
            tool: Some(second.name.to_owned()),
            reason: Reason::DuplicateUri {
                uri: (*uri).to_owned(),
                first: first.location.to_string(),
                second: second.location.to_string(),
            },
        });
    }
}

fn native_server(entry: &Entry) -> Server {
    let spec: Option<&ServerSpec> = match entry {
        Entry::Server(spec) => Some(spec),
        _ => None,
    };
    let name = entry.server();
    Server {
        name: name.to_owned(),
        title: spec.and_then(|spec| spec.title).map(str::to_owned),
        description: spec
            .map(|spec| text::one_line(spec.description, SERVER_LINE))
            .filter(|line| !line.is_empty()),
        native: true,
        health: Health::Ready,
        group: spec.and_then(|spec| spec.group).map_or(name, |group| group.name()).to_owned(),
        version: None,
        protocol: None,
        tools: 0,
        instructions: spec.and_then(|spec| spec.instructions).map(str::to_owned),
    }
}

/// Adds what an entry brings.
fn add_native(part: &mut Part, entry: &Entry, problems: &mut Vec<Problem>) {
    for (at, spec) in entry.tools().iter().enumerate() {
        let tier = entry.tier(at);
        if tier != Some(spec.tier) {
            problems.push(Problem {
                server: spec.server.to_owned(),
                tool: Some(spec.name.to_owned()),
                reason: Reason::OtherTier { said: spec.tier, listed: tier },
            });
        }
        if let Some(tool) = native_callable(part, spec, tier.unwrap_or(spec.tier), problems) {
            part.tools.push(tool);
            part.server.tools += 1;
        }
    }
    for spec in entry.resources() {
        let Some(callable) = native_callable(part, &spec.callable, spec.callable.tier, problems) else {
            continue;
        };
        match native_template(spec, &callable) {
            Ok(template) => part.resources.push(Arc::new(Resource::native(callable, spec, template))),
            Err(why) => problems.push(Problem {
                server: spec.callable.server.to_owned(),
                tool: Some(spec.callable.name.to_owned()),
                reason: Reason::Uri(why),
            }),
        }
    }
    for spec in entry.prompts() {
        if let Some(callable) = native_callable(part, &spec.callable, spec.callable.tier, problems) {
            part.prompts.push(Arc::new(Prompt::native(callable, spec)));
        }
    }
}

/// The URI of a resource, whose variables are its arguments. The macro has seen to it; a spec may be written by hand.
fn native_template(spec: &ResourceSpec, callable: &Tool) -> Result<Template, String> {
    let template = Template::parse(spec.uri).map_err(|error| error.to_string())?;
    let arguments: Vec<&str> = schema::properties(callable.input_schema()).map(|(name, _)| name).collect();
    let mut variables: Vec<&str> = template.variables().collect();
    if let Some(variable) = variables.iter().find(|variable| !arguments.contains(variable)) {
        return Err(format!("the variable `{variable}` is no argument"));
    }
    variables.sort_unstable();
    match arguments.iter().find(|argument| variables.binary_search(argument).is_err()) {
        Some(argument) => Err(format!("the argument `{argument}` is no variable of it")),
        None => Ok(template),
    }
}

fn native_callable(
    part: &Part,
    spec: &'static ToolSpec,
    tier: Tier,
    problems: &mut Vec<Problem>,
) -> Option<Arc<Tool>> {
    let mut problem = |reason| {
        problems.push(Problem { server: spec.server.to_owned(), tool: Some(spec.name.to_owned()), reason });
        None
    };
    for name in [Some(spec.name), spec.alias].into_iter().flatten() {
        if let Err(error) = id::check_native_name(name) {
            return problem(Reason::Name(error));
        }
    }
    let duplicate = part.callables().find_map(|callable| match callable.origin {
        Origin::Native(first) if spec::share_a_name(first, spec) => Some(first),
        _ => None,
    });
    if let Some(first) = duplicate {
        return problem(Reason::DuplicateTool {
            first: Some(first.location.to_string()),
            second: Some(spec.location.to_string()),
        });
    }
    let (schema, checker) = match (spec.input_schema)() {
        // A schema that the author wrote, and which is none.
        Value::String(why) => return problem(Reason::SchemaInvalid(why)),
        schema => match schema::normalise(Some(&schema)) {
            Ok(normalised) => normalised,
            Err(reason) => return problem(reason),
        },
    };
    // The macro has seen to those that it reads; a flattened struct and a schema of one's own have theirs elsewhere.
    let unusable = schema::properties(&schema).map(|(name, _)| name).find(|name| !id::is_argument_name(name));
    if let Some(name) = unusable.map(str::to_owned) {
        return problem(Reason::ArgumentName(name));
    }
    let governed = Governed::of(&schema)
        .with(spec.url_arguments.iter().copied())
        .without(spec.free_arguments.iter().copied().chain(said_to_be_none(&schema)))
        .open_world(spec.annotations.open_world == Some(true));
    let group = spec.group.map_or(part.server.group.as_str(), |group| group.name());
    let urls = url_arguments(spec, &schema);
    let definition = native_definition(spec, schema);
    Some(Arc::new(Tool {
        id: ToolId::new(spec.server, spec.name),
        alias: spec.alias.map(|alias| ToolId::new(spec.server, alias)),
        origin: Origin::Native(spec),
        asks: Asks::Tool,
        tier,
        tier_source: TierSource::Declared,
        group: group.into(),
        summary: text::one_line(spec.description, SUMMARY),
        hot: spec.hot,
        timeout: spec.timeout,
        urls,
        pin: super::pin(spec.server, &definition),
        replaced: None,
        definition,
        checker: Arc::new(checker),
        governed,
    }))
}

/// The MCP `Tool` of a native tool, in the specification's order of fields.
fn native_definition(spec: &ToolSpec, schema: Value) -> Value {
    let mut definition = Map::new();
    definition.insert("name".to_owned(), json!(spec.name));
    if let Some(title) = spec.title {
        definition.insert("title".to_owned(), json!(title));
    }
    definition.insert("description".to_owned(), json!(spec.description));
    definition.insert("inputSchema".to_owned(), schema);
    if let Some(output) = (spec.output_schema)() {
        definition.insert("outputSchema".to_owned(), output);
    }
    let annotations = annotation_object(spec.annotations);
    if !annotations.is_empty() {
        definition.insert("annotations".to_owned(), Value::Object(annotations));
    }
    Value::Object(definition)
}

fn annotation_object(annotations: Annotations) -> Map<String, Value> {
    [
        ("readOnlyHint", annotations.read_only),
        ("destructiveHint", annotations.destructive),
        ("idempotentHint", annotations.idempotent),
        ("openWorldHint", annotations.open_world),
    ]
    .into_iter()
    .filter_map(|(name, hint)| Some((name.to_owned(), json!(hint?))))
    .collect()
}

/// The part of an external server. A tool that cannot be used is left out with its reason; it never costs the others.
#[must_use]
pub fn external_part(name: &str, settings: &ExternalSettings, listing: &Listing) -> Part {
    let mut tools = Vec::new();
    let mut problems = Vec::new();
    let mut seen = HashSet::new();
    let mut bytes = 0;
    for (at, definition) in listing.tools.iter().enumerate() {
        match external_tool(name, settings, definition, &mut seen, &mut bytes) {
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(reason) => problems.push(left_out(name, "", at, definition, reason)),
        }
    }
    let line = |text: &Option<String>, max| {
        text.as_deref().map(|text| text::one_line(text, max)).filter(|line| !line.is_empty())
    };
    let server = Server {
        name: name.to_owned(),
        title: line(&listing.title, 100),
        description: line(&listing.instructions.as_deref().map(without_headings), SERVER_LINE),
        native: settings.native,
        health: listing.health.clone(),
        group: group(name, settings).to_owned(),
        version: line(&listing.version, 40),
        protocol: line(&listing.protocol, 20),
        tools: tools.len(),
        instructions: listing.instructions.clone(),
    };
    let mut part = Part { tools, problems, ..Part::empty(server) };
    for (at, definition) in listing.resources.iter().enumerate() {
        match external_resource(name, settings, definition, &mut seen, &mut bytes) {
            Ok(resource) => part.resources.push(Arc::new(resource)),
            Err(reason) => part.problems.push(left_out(name, "resource ", at, definition, reason)),
        }
    }
    for (at, definition) in listing.prompts.iter().enumerate() {
        match external_prompt(name, settings, definition, &mut seen, &mut bytes) {
            Ok(prompt) => part.prompts.push(Arc::new(prompt)),
            Err(reason) => part.problems.push(left_out(name, "prompt ", at, definition, reason)),
        }
    }
    part
}

fn group<'a>(server: &'a str, settings: &ExternalSettings) -> &'a str {
    settings.group.map_or(server, |group| group.name())
}

/// One thing of a list that is not taken; what has no name goes by its place.
fn left_out(server: &str, kind: &str, at: usize, definition: &Value, reason: Reason) -> Problem {
    let name = definition.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.map_or_else(|| format!("{kind}#{}", at + 1), str::to_owned);
    Problem { server: server.to_owned(), tool: Some(name), reason }
}

/// A resource or template as its server sent it. It goes by its name, or where another has that, by its URI.
fn external_resource(
    server: &str,
    settings: &ExternalSettings,
    definition: &Value,
    seen: &mut HashSet<String>,
    total: &mut usize,
) -> Result<Resource, Reason> {
    let said = |key| definition.get(key).and_then(Value::as_str).filter(|said| !said.is_empty());
    let uri = said("uri").or(said("uriTemplate")).ok_or(Reason::Missing("uri"))?;
    let template = Template::parse(uri).map_err(|error| Reason::Uri(error.to_string()))?;
    let name = said("name").filter(|name| id::check_external_name(name).is_ok() && !seen.contains(*name));
    let variables: Vec<Value> = template.variables().map(Value::from).collect();
    let properties: Map<String, Value> =
        template.variables().map(|name| (name.to_owned(), json!({"type": "string"}))).collect();
    let asks = Asks::Resource(template.clone());
    let inside = Inside { name: name.unwrap_or(uri), asks, properties, required: variables };
    let callable = external_callable(server, settings, definition, inside, seen, total)?;
    let definition = definition.clone();
    Ok(Resource { callable: Arc::new(callable), template, definition, completions: &[] })
}

/// A prompt as its server sent it.
fn external_prompt(
    server: &str,
    settings: &ExternalSettings,
    definition: &Value,
    seen: &mut HashSet<String>,
    total: &mut usize,
) -> Result<Prompt, Reason> {
    let name = definition.get("name").and_then(Value::as_str).ok_or(Reason::Missing("name"))?;
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for argument in definition.get("arguments").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = argument.get("name").and_then(Value::as_str) else { continue };
        let mut property = json!({"type": "string"});
        if let Some(description) = argument.get("description") {
            property["description"] = description.clone();
        }
        if argument.get("required") == Some(&Value::Bool(true)) {
            required.push(name.into());
        }
        properties.insert(name.to_owned(), property);
    }
    let inside = Inside { name, asks: Asks::Prompt, properties, required };
    let callable = external_callable(server, settings, definition, inside, seen, total)?;
    Ok(Prompt { callable: Arc::new(callable), definition: definition.clone(), completions: &[] })
}

/// What there is to be called in a resource or prompt.
struct Inside<'a> {
    name: &'a str,
    asks: Asks,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

fn external_callable(
    server: &str,
    settings: &ExternalSettings,
    definition: &Value,
    inside: Inside<'_>,
    seen: &mut HashSet<String>,
    total: &mut usize,
) -> Result<Tool, Reason> {
    let Inside { name, asks, properties, required } = inside;
    let mut tool = json!({"name": name});
    if let Some(description) = definition.get("description") {
        tool["description"] = description.clone();
    }
    tool["inputSchema"] = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let tool = external_tool(server, settings, &tool, seen, total)?;
    Ok(Tool { asks, ..tool })
}

/// Instructions without the lines that are Markdown headings, unless they are all there is: a server's line should say
/// what it is for.
fn without_headings(text: &str) -> String {
    let is_heading = |line: &&str| line.trim_start().starts_with('#');
    let body: Vec<&str> = text.lines().filter(|line| !is_heading(line)).collect();
    let body = body.join("\n");
    if body.trim().is_empty() { text.replace('#', "") } else { body }
}

fn external_tool(
    server: &str,
    settings: &ExternalSettings,
    definition: &Value,
    seen: &mut HashSet<String>,
    total: &mut usize,
) -> Result<Tool, Reason> {
    let Value::Object(fields) = definition else {
        return Err(Reason::NotAnObject(kind(definition)));
    };
    let name = match fields.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.as_str(),
        _ => return Err(Reason::Missing("name")),
    };
    id::check_external_name(name).map_err(Reason::Name)?;
    let bytes = definition.to_string().len();
    if bytes > MAX_TOOL_BYTES {
        return Err(Reason::TooLarge { bytes, limit: MAX_TOOL_BYTES });
    }
    if *total + bytes > MAX_EXTERNAL_TOOL_BYTES {
        return Err(Reason::ServerTooLarge { limit: MAX_EXTERNAL_TOOL_BYTES });
    }
    let (input_schema, checker) = schema::normalise(fields.get("inputSchema"))?;
    if !seen.insert(name.to_owned()) {
        return Err(Reason::DuplicateTool { first: None, second: None });
    }
    *total += bytes;
    let description = fields.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut summary = text::one_line(description, SUMMARY);
    if summary.is_empty() {
        summary = text::one_line(name, SUMMARY);
    }
    let hint = definition.pointer("/annotations/openWorldHint").and_then(Value::as_bool);
    // Only what says so: most servers say nothing, and a list of theirs that holds URLs is no call to them.
    let governed = Governed::of(&input_schema)
        .with(settings.url_arguments.iter().cloned())
        .without(settings.free_arguments.iter().cloned())
        .open_world(hint == Some(true));
    let mut fields = fields.clone();
    fields.insert("inputSchema".to_owned(), input_schema);
    let (tier, tier_source) = external_tier(name, settings, definition);
    Ok(Tool {
        id: ToolId::new(server, name),
        alias: None,
        origin: if settings.native { Origin::Mounted } else { Origin::External },
        asks: Asks::Tool,
        tier,
        tier_source,
        group: group(server, settings).into(),
        summary,
        hot: false,
        timeout: None,
        definition: Value::Object(fields),
        urls: Vec::new(),
        // Of what was sent, and not of what we fill in: a new version of Aster changes no pin.
        pin: super::pin(server, definition),
        replaced: None,
        checker: Arc::new(checker),
        governed,
    })
}

/// The tier that the configuration gives, else Elevated; the server's own annotations are claims by a stranger and
/// tighten at most, unless the user trusts them.
fn external_tier(name: &str, settings: &ExternalSettings, definition: &Value) -> (Tier, TierSource) {
    let configured =
        settings.tiers.iter().filter(|(glob, _)| glob.is_match(name)).map(|(_, tier)| *tier).max();
    let configured = configured.or(settings.tier);
    let hint = |key| definition.pointer(key).and_then(Value::as_bool) == Some(true);
    let destructive = hint("/annotations/destructiveHint") && settings.annotations != AnnotationTrust::Ignore;
    let harmless = hint("/annotations/readOnlyHint") && settings.annotations == AnnotationTrust::Trust;
    let annotated = if settings.native { TierSource::Declared } else { TierSource::Annotation };
    match configured {
        Some(tier) if tier == Tier::Restricted || !destructive => (tier, TierSource::Declared),
        _ if destructive => (Tier::Restricted, annotated),
        _ if harmless => (Tier::Standard, annotated),
        _ => (Tier::Elevated, TierSource::Default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use globset::Glob;

    fn listing(tools: Value) -> Listing {
        let Value::Array(tools) = tools else { panic!("an array") };
        Listing { tools, ..Listing::without_tools(Health::Ready) }
    }

    #[test]
    fn one_bad_tool_costs_only_itself() {
        let listing = listing(json!([
            {"name": "good", "description": "Does good.", "vendor": {"x": 1}},
            "junk",
            {"name": "", "inputSchema": {}},
            {"name": "text", "inputSchema": {"type": "string"}},
            {"name": "good"},
            {"name": "a\tb"},
            {"name": "large", "description": "x".repeat(MAX_TOOL_BYTES)},
            {"name": "last", "inputSchema": null},
        ]));
        let part = external_part("files", &ExternalSettings::default(), &listing);
        let ids: Vec<_> = part.tools.iter().map(|tool| tool.id.to_string()).collect();
        assert_eq!(ids, ["files/good", "files/last"]);
        assert_eq!(part.tools[0].definition["vendor"], json!({"x": 1}));
        assert_eq!(part.tools[1].summary(), "last");
        let problems: Vec<_> = part.problems.iter().map(Problem::to_string).collect();
        insta::assert_snapshot!(problems.join("\n"), @r#"
        files/#2: the tool is a string where an object is due
        files/#3: `name` is missing or not a non-empty string
        files/text: the input schema describes "string"; arguments are always an object
        files/good: another tool of the server has this name
        files/a b: the name has a character that is not allowed in it
        files/large: the definition has 262177 bytes, the limit is 262144
        "#);
    }

    #[test]
    fn tiers_of_external_tools() {
        let destroys = json!({"annotations": {"destructiveHint": true}});
        let reads = json!({"annotations": {"readOnlyHint": true}});
        let glob = |glob: &str| Glob::new(glob).unwrap().compile_matcher();
        let mut settings = ExternalSettings::default();
        assert_eq!(external_tier("a", &settings, &reads), (Tier::Elevated, TierSource::Default));
        assert_eq!(external_tier("a", &settings, &destroys), (Tier::Restricted, TierSource::Annotation));
        settings.annotations = AnnotationTrust::Trust;
        assert_eq!(external_tier("a", &settings, &reads), (Tier::Standard, TierSource::Annotation));
        settings.tier = Some(Tier::Standard);
        settings.tiers = vec![(glob("delete_*"), Tier::Restricted), (glob("*"), Tier::Standard)];
        assert_eq!(
            external_tier("delete_all", &settings, &json!({})),
            (Tier::Restricted, TierSource::Declared)
        );
        assert_eq!(external_tier("get", &settings, &destroys), (Tier::Restricted, TierSource::Annotation));
        settings.annotations = AnnotationTrust::Ignore;
        assert_eq!(external_tier("get", &settings, &destroys), (Tier::Standard, TierSource::Declared));
    }
}
