//! The catalogue: the immutable, sorted, validated set of all tools that are known now, and of the resources and prompts
//! of native servers.
//!
//! It is made of parts, one per server. A part is checked once, when its server lists its tools; a change of one
//! server makes one new part and a new catalogue that shares the others. Nothing edits a catalogue.

mod bounds;
mod build;
mod capability;
mod checker;
mod copies;
mod external;
mod native;
mod problem;
pub(crate) mod schema;
mod urls;

use std::collections::HashSet;
use std::fmt;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use build::raise;
pub use build::{MAX_EXTERNAL_TOOL_BYTES, MAX_TOOL_BYTES, Part, external_part, native_parts};
pub use capability::{Prompt, Resource};
pub use external::{AnnotationTrust, ExternalSettings, Health, Listing, Pinning};
pub use native::NativeCatalogue;
pub use problem::{CatalogueError, Problem, Reason};
pub(crate) use schema::unchecked;
pub use schema::{Violation, signature};
pub(crate) use urls::{said_to_be_none, url_arguments};

use self::checker::Checker;
pub(crate) use self::copies::Copies;
use crate::canonical;
use crate::gate::egress::Governed;
use crate::gate::secrets::REDACTED;
use crate::id::ToolId;
use crate::provider::{Export, Provider};
use crate::spec::{MAX_DESCRIPTION, Tier, ToolSpec};
use crate::text;
use crate::tool::JsonObject;
use crate::uri::Template;

/// The fields of a definition that its pin is over: what a model is told, and what decides how a call is treated. The
/// others, such as `icons` and `_meta`, are for programs.
pub const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Those fields of a definition.
fn pinned(definition: &Value) -> Value {
    let fields = PINNED.iter().filter_map(|name| Some(((*name).to_owned(), definition.get(name)?.clone())));
    Value::Object(fields.collect())
}

/// The pin of a definition as it was sent.
fn pin(server: &str, definition: &Value) -> String {
    let mut fields = pinned(definition);
    fields["server"] = server.into();
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"aster pin 1\n").update(canonical::to_string(&fields).as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Where a tool's code runs.
#[derive(Debug, Clone, Copy)]
pub enum Origin {
    /// In this process.
    Native(&'static ToolSpec),
    /// In this process too, in a server that was written with another library and is mounted.
    Mounted,
    /// On an MCP server.
    External,
}

/// What the server of a callable is asked for, where it is not native.
#[derive(Debug, Clone)]
pub(crate) enum Asks {
    /// To call a tool.
    Tool,
    /// To read a resource, whose variables are the arguments.
    Resource(Template),
    /// To get a prompt.
    Prompt,
}

/// Whose word a tool's tier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TierSource {
    /// That of the tool's author, of the catalogue that raised it, or of the configuration.
    Declared,
    /// Its own annotations', of an external tool.
    Annotation,
    /// Nobody's, of an external tool.
    Default,
}

/// One tool of the catalogue.
#[derive(Clone)]
pub struct Tool {
    id: ToolId,
    alias: Option<ToolId>,
    origin: Origin,
    asks: Asks,
    tier: Tier,
    tier_source: TierSource,
    group: Arc<str>,
    summary: String,
    hot: bool,
    timeout: Option<Duration>,
    definition: Value,
    /// The arguments that name a URL, of a native tool.
    urls: Vec<String>,
    pin: String,
    /// What it was before the change of it that the user trusted last.
    replaced: Option<Arc<Value>>,
    checker: Arc<Checker>,
    governed: Governed,
}

impl Tool {
    /// The same tool with a note at the end of its description, which is cut where there is no room for both. Its pin stays:
    /// that is of what was reviewed.
    fn with_note(&self, note: &str) -> Self {
        let mut noted = self.clone();
        let with_note = |cut: fn(&str, usize) -> String, description: &str, most: usize| {
            let room = most.saturating_sub(note.chars().count() + 1);
            let is_short = description.chars().count() <= room;
            let said = if is_short { description.to_owned() } else { cut(description, room) };
            format!("{said} {note}").trim_start().to_owned()
        };
        noted.summary = with_note(text::one_line, &self.summary, build::SUMMARY);
        noted.definition["description"] = with_note(text::block, self.description(), MAX_DESCRIPTION).into();
        noted
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &ToolId {
        &self.id
    }

    /// Where its code runs.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// Whether it counts as native: its code runs in this process.
    #[must_use]
    pub fn is_native(&self) -> bool {
        !matches!(self.origin, Origin::External)
    }

    /// What its server is asked for.
    pub(crate) fn asks(&self) -> &Asks {
        &self.asks
    }

    /// How far its effects reach.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Whose word the tier is.
    #[must_use]
    pub fn tier_source(&self) -> TierSource {
        self.tier_source
    }

    /// What the tool says of itself under this name (MCP `ToolAnnotations`), such as `readOnlyHint`.
    #[must_use]
    pub fn hint(&self, name: &str) -> Option<bool> {
        self.definition.get("annotations")?.get(name)?.as_bool()
    }

    /// The group it is given out with.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The description as one safe line of at most 500 characters.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Whether a manifest lists it first.
    #[must_use]
    pub fn is_hot(&self) -> bool {
        self.hot
    }

    /// How long a call may take, where the tool says so itself.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The whole definition (MCP `Tool`) as the server sent it, unknown fields and all; what the protocol leaves
    /// unsaid about the input schema is filled in.
    #[must_use]
    pub fn definition(&self) -> &Value {
        &self.definition
    }

    /// The description as the server sent it: data from a stranger where the tool is external.
    #[must_use]
    pub fn description(&self) -> &str {
        self.definition.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// The input schema: an object.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        &self.definition["inputSchema"]
    }

    /// The tool's pin: BLAKE3, in hexadecimal, of its server's name and of what it says of itself ([`PINNED`]), whatever
    /// the order of keys. Another digest is another tool.
    #[must_use]
    pub fn digest(&self) -> String {
        self.pin.clone()
    }

    /// What the digest is over, as far as the tool has it.
    #[must_use]
    pub fn pinned(&self) -> Value {
        pinned(&self.definition)
    }

    /// What it was before the change of it that the user trusted last, as [`pinned`](Self::pinned) has it; of an external tool
    /// that the user has trusted anew.
    #[must_use]
    pub fn replaced(&self) -> Option<&Value> {
        self.replaced.as_deref()
    }

    /// The input schema as a model provider takes it, with what that costs.
    #[must_use]
    pub fn export(&self, provider: Provider) -> Export {
        provider.export(self.input_schema())
    }

    /// The tool in a line: `search(query: string, limit?: integer)`.
    #[must_use]
    pub fn signature(&self) -> String {
        signature(self.id.tool(), self.input_schema())
    }

    /// The name that a native tool had before, as an id.
    #[must_use]
    pub fn alias(&self) -> Option<&ToolId> {
        self.alias.as_ref()
    }

    /// The names that it has and had: what is said of either is said of the tool.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &ToolId> {
        iter::once(&self.id).chain(&self.alias)
    }

    /// The arguments that name a URL, of a native tool.
    pub(crate) fn url_arguments(&self) -> &[String] {
        &self.urls
    }

    /// Which of its arguments name a destination, so that the egress governs them.
    #[must_use]
    pub fn governed(&self) -> &Governed {
        &self.governed
    }

    /// The arguments that no record shows.
    pub(crate) fn secret_arguments(&self) -> &'static [&'static str] {
        match self.origin {
            Origin::Native(spec) => spec.secret_arguments,
            Origin::Mounted | Origin::External => &[],
        }
    }

    /// Arguments as they may be shown: without the values of those that the tool declares secret.
    pub(crate) fn shown(&self, arguments: &JsonObject) -> JsonObject {
        let mut shown = arguments.clone();
        for name in self.secret_arguments() {
            if let Some(value) = shown.get_mut(*name) {
                *value = REDACTED.into();
            }
        }
        shown
    }

    /// The places of the values of one kind among the arguments that do not fit where they stand, as JSON pointers.
    pub(crate) fn misplaced(&self, arguments: &JsonObject, is: fn(&Value) -> bool) -> Vec<String> {
        self.checker.misplaced(self.input_schema(), arguments, is)
    }

    /// Checks arguments against the input schema. What cannot be followed in it, such as a reference to another
    /// document, constrains nothing: of that its server alone is the judge.
    ///
    /// # Errors
    ///
    /// Everything that does not fit, with the schema.
    pub fn check(&self, arguments: &JsonObject) -> Result<(), InvalidArguments> {
        let violations = self.checker.check(self.input_schema(), arguments);
        if violations.is_empty() {
            return Ok(());
        }
        let schema = text::visible_json(self.input_schema());
        Err(InvalidArguments { id: self.id.clone(), violations, schema })
    }
}

/// Arguments that do not fit a tool's schema. The text is for the model: with it the next call succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidArguments {
    /// The tool.
    pub id: ToolId,
    /// Everything that does not fit.
    pub violations: Vec<Violation>,
    /// The tool's input schema as JSON text.
    pub schema: String,
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.problem(), self.hint())
    }
}

impl InvalidArguments {
    /// What does not fit, without the schema.
    #[must_use]
    pub fn problem(&self) -> String {
        let mut problem = format!("the arguments do not fit the schema of `{}`:", self.id);
        for violation in &self.violations {
            let path = if violation.path.is_empty() { "the arguments" } else { &violation.path };
            problem.push_str(&format!("\n- {path}: {}", violation.message));
        }
        problem
    }

    /// What the next call needs: the schema.
    #[must_use]
    pub fn hint(&self) -> String {
        format!("Nothing was called. The input schema of `{}`: {}", self.id, self.schema)
    }
}

impl std::error::Error for InvalidArguments {}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("id", &self.id).field("tier", &self.tier).finish_non_exhaustive()
    }
}

/// One server of the catalogue.
#[derive(Debug, Clone, Serialize)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// The name it shows to people, as one safe line.
    pub title: Option<String>,
    /// What it is for, as one safe line of at most 200 characters.
    pub description: Option<String>,
    /// Whether it runs in this process.
    pub native: bool,
    /// How it is doing.
    #[serde(flatten)]
    pub health: Health,
    /// The group of its tools that have none of their own.
    pub group: String,
    /// Its version.
    pub version: Option<String>,
    /// The protocol revision it speaks.
    pub protocol: Option<String>,
    /// How many of its tools are in the catalogue.
    pub tools: usize,
    /// Its instructions as it sent them: data from a stranger where the server is external.
    #[serde(skip)]
    pub instructions: Option<String>,
}

impl Server {
    /// What it is called, and what it says of itself.
    pub(crate) fn says(&self) -> [Option<&str>; 3] {
        [Some(self.name.as_str()), self.title.as_deref(), self.description.as_deref()]
    }
}

/// The immutable, sorted set of all tools known now. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    tools: Arc<[Arc<Tool>]>,
    resources: Arc<[Arc<Resource>]>,
    prompts: Arc<[Arc<Prompt>]>,
    servers: Arc<[Server]>,
    problems: Arc<[Problem]>,
    copies: Arc<Copies>,
}

impl Catalogue {
    /// Merges parts, one per server. Of two with the same name the first stays; the other is left out with a problem.
    #[must_use]
    pub fn merge<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Self {
        let mut names = HashSet::new();
        let mut servers: Vec<Server> = Vec::new();
        let mut tools: Vec<Arc<Tool>> = Vec::new();
        let mut resources: Vec<Arc<Resource>> = Vec::new();
        let mut prompts: Vec<Arc<Prompt>> = Vec::new();
        let mut problems: Vec<Problem> = Vec::new();
        for part in parts {
            if !names.insert(part.server.name.as_str()) {
                problems.push(Problem {
                    server: part.server.name.clone(),
                    tool: None,
                    reason: Reason::DuplicateServer { first: None, second: None },
                });
                continue;
            }
            servers.push(part.server.clone());
            tools.extend(part.tools.iter().cloned());
            resources.extend(part.resources.iter().cloned());
            prompts.extend(part.prompts.iter().cloned());
            problems.extend(part.problems.iter().cloned());
        }
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        tools.sort_by(|a, b| a.id.cmp(&b.id));
        resources.sort_by(|a, b| a.id().cmp(b.id()));
        prompts.sort_by(|a, b| a.id().cmp(b.id()));
        problems.sort_by(|a, b| (&a.server, &a.tool).cmp(&(&b.server, &b.tool)));
        Self {
            copies: Arc::new(Copies::of(&tools)),
            tools: tools.into(),
            resources: resources.into(),
            prompts: prompts.into(),
            servers: servers.into(),
            problems: problems.into(),
        }
    }

    /// All tools, by server and name.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// All resources, by server and name.
    #[must_use]
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// All prompts, by server and name.
    #[must_use]
    pub fn prompts(&self) -> &[Arc<Prompt>] {
        &self.prompts
    }

    /// All servers, by name, those that are down included.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// What was left out, and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The tools that several servers offer.
    pub(crate) fn copies(&self) -> &Arc<Copies> {
        &self.copies
    }

    /// The tool with this id, or that once had it.
    #[must_use]
    pub fn get(&self, id: &ToolId) -> Option<&Arc<Tool>> {
        find_tool(&self.tools, id)
    }

    /// What all definitions together cost in a model's context, in estimated tokens: what progressive disclosure
    /// saves.
    #[must_use]
    pub fn schema_tokens(&self) -> usize {
        schema_tokens(&self.tools)
    }

    /// Whether both are the very same catalogue.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools) && Arc::ptr_eq(&self.servers, &other.servers)
    }
}

/// What the definitions of these tools together cost in a model's context.
pub(crate) fn schema_tokens(tools: &[Arc<Tool>]) -> usize {
    tools.iter().map(|tool| text::estimate_tokens(&function_form(tool).to_string())).sum()
}

/// A tool as a function of the model's own, the way it is offered without progressive disclosure.
fn function_form(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": format!("{}__{}", tool.id.server(), tool.id.tool()),
        "description": tool.description(),
        "parameters": tool.input_schema(),
    }})
}

/// What has this id in a list that is sorted by it.
pub(crate) fn find<'a, T: Identified>(list: &'a [Arc<T>], id: &ToolId) -> Option<&'a Arc<T>> {
    list.binary_search_by(|item| item.id().cmp(id)).ok().map(|at| &list[at])
}

/// As [`find`]; a name that a tool had before still finds it.
pub(crate) fn find_tool<'a>(tools: &'a [Arc<Tool>], id: &ToolId) -> Option<&'a Arc<Tool>> {
    find(tools, id).or_else(|| tools.iter().find(|tool| tool.alias() == Some(id)))
}

/// What lists are sorted by.
pub(crate) trait Identified {
    fn id(&self) -> &ToolId;
}

impl Identified for Tool {
    fn id(&self) -> &ToolId {
        &self.id
    }
}

impl Identified for Prompt {
    fn id(&self) -> &ToolId {
        self.callable.id()
    }
}

impl Identified for Resource {
    fn id(&self) -> &ToolId {
        self.callable.id()
    }
}
