//! The bridge: what a model may ask of `aster_mcp`, and what it is answered.
//!
//! Reading a request and answering search and describe happen here, over a [`View`] and nothing else: what a view does
//! not show cannot influence an answer. Executing is the caller's, once [`resolve`] and [`arguments`] have made the
//! request into a tool and its arguments. Answers are written to be acted upon: a refusal holds what the next try
//! needs.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::catalogue::schema::properties;
use crate::catalogue::{InvalidArguments, Tool};
use crate::id::ToolId;
use crate::inject::{ProgressiveConfig, unavailable};
use crate::pointer;
use crate::provider::Provider;
use crate::scope::View;
use crate::search::{MAX_QUERY_BYTES, Ranker, bare};
use crate::spec::Tier;
use crate::text;
use crate::tool::{JsonObject, kind};

/// How many tools one describe may name.
pub const MAX_DESCRIBED: usize = 5;

/// How much of a description an answer shows, in characters. The longest real one has 13 000.
const DESCRIPTION: usize = 16_000;

/// The keys of the bridge's own arguments.
const KEYS: [&str; 9] =
    ["action", "query", "server", "limit", "offset", "explain", "name", "names", "arguments"];

/// Those of an execute.
const EXECUTE_KEYS: [&str; 3] = ["action", "name", "arguments"];

/// What a model asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Find tools.
    Search(SearchRequest),
    /// Show the arguments of tools, by id.
    Describe(Vec<String>),
    /// Call a tool.
    Execute(ExecuteRequest),
}

/// A search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchRequest {
    /// What the tool should do; empty to list the tools.
    pub query: String,
    /// Only tools of this server.
    pub server: Option<String>,
    /// How many to find, before it is clamped.
    pub limit: Option<usize>,
    /// How many to skip.
    pub offset: usize,
    /// Whether to say why each was found.
    pub explain: bool,
}

/// A call, not yet resolved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecuteRequest {
    /// The id as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them.
    pub arguments: Option<Value>,
    /// What stood beside `name` and is no key of the bridge.
    pub beside: JsonObject,
    /// The keys that stood there and are the bridge's own, though not of an execute.
    pub strays: Vec<&'static str>,
}

/// Why the bridge refuses a request. The text is for the model: it says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The arguments of the bridge are not an object.
    #[error(
        "the arguments of aster_mcp are {0}; pass an object such as {{\"action\": \"search\", \"query\": \"…\"}}"
    )]
    NotAnObject(&'static str),
    /// `action` is missing or unknown.
    #[error("`action` is {0}; it must be \"search\", \"describe\" or \"execute\"")]
    Action(String),
    /// A field has the wrong type or is missing.
    #[error("`{field}` {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong with it, and what to write.
        problem: String,
    },
    /// No such tool is known to this session.
    #[error("no tool `{name}` is known{}; find tools with {{\"action\": \"search\", \"query\": \"…\"}}", did_you_mean(.candidates))]
    UnknownTool {
        /// The name, made safe to show.
        name: String,
        /// The ids it could have meant.
        candidates: Vec<String>,
    },
    /// The session has to look at the tool's schema first.
    #[error("describe the tool before you execute it: {{\"action\": \"describe\", \"name\": \"{0}\"}}")]
    NotDescribed(ToolId),
    /// The arguments do not fit the tool's schema.
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The host's invoker failed.
    #[error("the call of `{id}` failed: {source}")]
    Invoke {
        /// The tool.
        id: ToolId,
        /// The invoker's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn did_you_mean(candidates: &[String]) -> String {
    match candidates {
        [] => String::new(),
        [one] => format!("; did you mean `{one}`?"),
        several => format!("; did you mean one of `{}`?", several.join("`, `")),
    }
}

impl BridgeError {
    fn field(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Field { field, problem: problem.into() }
    }

    /// The refusal as JSON, for hosts that answer a model in JSON: `{"error": …}`, with the violations and the schema
    /// where arguments did not fit.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::InvalidArguments(error) => json!({
                "error": format!("the arguments do not fit the schema of `{}`; nothing was called", error.id),
                "violations": error.violations,
                "input_schema": error.schema,
            }),
            other => json!({ "error": other.to_string() }),
        }
    }
}

/// Reads the arguments of the bridge.
///
/// What models often get slightly wrong is read as it was meant: the whole object as JSON text, numbers as text, one
/// name where a list is due.
///
/// # Errors
///
/// Where the action or one of its fields is missing or of the wrong kind.
pub fn parse(arguments: &Value) -> Result<Request, BridgeError> {
    let repaired;
    let fields = match arguments {
        Value::Object(fields) => fields,
        Value::String(text) => {
            repaired =
                serde_json::from_str::<JsonObject>(text).map_err(|_| BridgeError::NotAnObject("a string"))?;
            &repaired
        }
        other => return Err(BridgeError::NotAnObject(kind(other))),
    };
    match fields.get("action") {
        None => Err(BridgeError::Action("missing".to_owned())),
        Some(Value::String(action)) => match action.trim().to_ascii_lowercase().as_str() {
            "search" => search_request(fields).map(Request::Search),
            "describe" => describe_request(fields).map(Request::Describe),
            "execute" => execute_request(fields).map(Request::Execute),
            _ => Err(BridgeError::Action(format!("{:?}", text::one_line(action, 40)))),
        },
        Some(other) => Err(BridgeError::Action(kind(other).to_owned())),
    }
}

/// Whether a request that cannot be read was to call a tool.
pub(crate) fn is_execute(arguments: &Value) -> bool {
    let written;
    let fields = match arguments {
        Value::String(text) => {
            written = serde_json::from_str(text).unwrap_or_default();
            &written
        }
        other => other,
    };
    let action = fields.get("action").and_then(Value::as_str).unwrap_or_default();
    action.trim().eq_ignore_ascii_case("execute")
}

fn search_request(fields: &JsonObject) -> Result<SearchRequest, BridgeError> {
    let query = string(fields, "query")?.unwrap_or_default();
    if query.len() > MAX_QUERY_BYTES {
        let problem = format!(
            "has {} bytes, the limit is {MAX_QUERY_BYTES}; name the task in a few words",
            query.len()
        );
        return Err(BridgeError::field("query", problem));
    }
    Ok(SearchRequest {
        query: query.trim().to_owned(),
        server: string(fields, "server")?.filter(|server| !server.is_empty()).map(str::to_owned),
        limit: count(fields, "limit")?,
        offset: count(fields, "offset")?.unwrap_or_default(),
        explain: match fields.get("explain") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(on)) => *on,
            Some(Value::String(text)) if text == "true" || text == "false" => text == "true",
            Some(_) => return Err(BridgeError::field("explain", "must be true or false")),
        },
    })
}

fn describe_request(fields: &JsonObject) -> Result<Vec<String>, BridgeError> {
    let mut names: Vec<String> = string(fields, "name")?.map(str::to_owned).into_iter().collect();
    match fields.get("names") {
        None | Some(Value::Null) => {}
        Some(Value::String(name)) => names.push(name.clone()),
        Some(Value::Array(items)) => {
            for item in items {
                let name =
                    item.as_str().ok_or_else(|| BridgeError::field("names", "must be a list of strings"))?;
                names.push(name.to_owned());
            }
        }
        Some(_) => return Err(BridgeError::field("names", "must be a list of strings")),
    }
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    match distinct.len() {
        0 => Err(BridgeError::field("name", "is missing; name a tool as server/tool")),
        1..=MAX_DESCRIBED => Ok(distinct),
        more => Err(BridgeError::field("names", format!("has {more} tools, the limit is {MAX_DESCRIBED}"))),
    }
}

fn execute_request(fields: &JsonObject) -> Result<ExecuteRequest, BridgeError> {
    let name = string(fields, "name")?.filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| BridgeError::field("name", "is missing; name the tool as server/tool"))?;
    let beside = fields.iter().filter(|(key, _)| !KEYS.contains(&key.as_str()));
    Ok(ExecuteRequest {
        name: name.trim().to_owned(),
        arguments: fields.get("arguments").filter(|arguments| !arguments.is_null()).cloned(),
        beside: beside.map(|(key, value)| (key.clone(), value.clone())).collect(),
        strays: KEYS
            .into_iter()
            .filter(|key| !EXECUTE_KEYS.contains(key) && fields.contains_key(*key))
            .collect(),
    })
}

fn string<'a>(fields: &'a JsonObject, field: &'static str) -> Result<Option<&'a str>, BridgeError> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(BridgeError::field(field, format!("is {} where a string is due", kind(other)))),
    }
}

/// A whole number that is not negative; one below 0 counts as 0.
fn count(fields: &JsonObject, field: &'static str) -> Result<Option<usize>, BridgeError> {
    let number = match fields.get(field) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    match number {
        // The cast saturates, which is the clamping that is wanted.
        Some(number) if number.is_finite() => Ok(Some(number.max(0.0) as usize)),
        _ => Err(BridgeError::field(field, "must be a whole number")),
    }
}

/// The tool that a name means. Only an id does; a bare name is refused with the ids it could have meant, so that a
/// call never goes to a server that was not named.
///
/// # Errors
///
/// Where the view shows no such tool.
pub fn resolve<'a>(view: &'a View, ranker: &dyn Ranker, name: &str) -> Result<&'a Arc<Tool>, BridgeError> {
    if let Some(tool) = ToolId::parse(name.trim()).and_then(|id| view.get(&id)) {
        return Ok(tool);
    }
    // A name can be as long as a request; a slip is looked for in names only.
    let shown = text::one_line(name, 128);
    let wanted = bare(&shown);
    let distance = |text: &str| strsim::osa_distance(&bare(text), &wanted);
    let mut candidates: Vec<(usize, &ToolId)> = view
        .tools()
        .iter()
        .map(|tool| (distance(tool.id().tool()).min(distance(tool.id().as_str())), tool.id()))
        .collect();
    // Names that read the same; else slips of the hand; else what the words could mean.
    let slip = if wanted.chars().count() > 4 { 2 } else { 1 };
    let nearest = candidates.iter().map(|(distance, _)| *distance).min().filter(|nearest| *nearest <= slip);
    candidates.retain(|(distance, _)| Some(*distance) == nearest);
    let mut candidates: Vec<String> = candidates.into_iter().map(|(_, id)| id.to_string()).collect();
    if candidates.is_empty() {
        let hits = ranker.rank(&text::one_line(&shown, MAX_QUERY_BYTES / 4), None, 3);
        candidates = hits.iter().map(|hit| view.tools()[hit.position].id().to_string()).collect();
    }
    candidates.truncate(10);
    Err(BridgeError::UnknownTool { name: shown, candidates })
}

/// The arguments that a call means: an object, an object as JSON text, or what stands beside `name`.
///
/// A `null` where none fits and nothing is required is left out: models write it for "nothing". JSON text where an object or a
/// list is due is read as such, which some models write and some [providers](crate::provider) ask for. Either happens only
/// where the whole then fits.
///
/// Arguments beside `name` are taken where there are none in `arguments`, and only where the tool has no argument that is
/// also a key of the bridge: `query` could be either's. What cannot be told is refused, never dropped: a call without
/// the argument that narrows it may do far more.
///
/// # Errors
///
/// Where they are no object, or cannot be told from the bridge's own.
pub fn arguments(tool: &Tool, request: &ExecuteRequest) -> Result<JsonObject, BridgeError> {
    let arguments = written(tool, request)?;
    Ok(if arguments.values().any(may_be_meant) { as_meant(tool, arguments) } else { arguments })
}

/// Whether there is a `null`, or a text that may be meant as an object or a list.
fn may_be_meant(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim_start().starts_with(['{', '[']),
        Value::Array(items) => items.iter().any(may_be_meant),
        Value::Object(fields) => fields.values().any(may_be_meant),
        _ => false,
    }
}

/// The arguments without each `null` that does not fit where it stands, and with what each text says that does not, if they
/// then fit.
fn as_meant(tool: &Tool, arguments: JsonObject) -> JsonObject {
    let misplaced = tool.misplaced(&arguments, |value| value.is_null() || value.is_string());
    if misplaced.is_empty() {
        return arguments;
    }
    let mut repaired = Value::Object(arguments.clone());
    for place in misplaced {
        match repaired.pointer_mut(&place) {
            Some(Value::Null) => {
                let Some((parent, key)) = place.rsplit_once('/') else { continue };
                if let Some(Value::Object(parent)) = repaired.pointer_mut(parent) {
                    parent.shift_remove(&pointer::name(key));
                }
            }
            Some(found @ Value::String(_)) => {
                let read = found.as_str().and_then(|text| serde_json::from_str(text).ok());
                if let Some(read @ (Value::Object(_) | Value::Array(_))) = read {
                    *found = read;
                }
            }
            _ => {}
        }
    }
    match repaired {
        Value::Object(repaired) if tool.check(&repaired).is_ok() => repaired,
        _ => arguments,
    }
}

fn written(tool: &Tool, request: &ExecuteRequest) -> Result<JsonObject, BridgeError> {
    let arguments = match &request.arguments {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::String(text)) => serde_json::from_str(text).map_err(|_| {
            BridgeError::field("arguments", "is a string that is not the JSON of an object; pass an object")
        })?,
        Some(other) => {
            return Err(BridgeError::field("arguments", format!("is {}; pass an object", kind(other))));
        }
    };
    let is_property = |key: &str| properties(tool.input_schema()).any(|(name, _)| name == key);
    let scattered = |key: &str| {
        let problem = format!(
            "does not hold `{key}`, which stands beside `name` where it could be the bridge's own; pass it as \
             {{\"action\": \"execute\", \"name\": \"{}\", \"arguments\": {{\"{key}\": …}}}}",
            tool.id()
        );
        BridgeError::field("arguments", problem)
    };
    if let Some(key) = request.strays.iter().find(|key| is_property(key) && !arguments.contains_key(**key)) {
        return Err(scattered(key));
    }
    if request.beside.is_empty() {
        return Ok(arguments);
    }
    if arguments.is_empty() {
        return match KEYS.into_iter().find(|key| is_property(key)) {
            None => Ok(request.beside.clone()),
            Some(_) => {
                let first = request.beside.keys().next().map_or("…", String::as_str);
                Err(scattered(&text::one_line(first, 64)))
            }
        };
    }
    match request.beside.keys().find(|key| is_property(key) && !arguments.contains_key(*key)) {
        Some(key) => Err(scattered(&text::one_line(key, 64))),
        // What is neither the bridge's nor the tool's means nothing.
        None => Ok(arguments),
    }
}

/// One tool that a search found, without its schema.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolMatch {
    /// The id.
    pub id: String,
    /// What the tool does, in a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The tool in a line: `search(query: string, limit?: integer)`.
    pub signature: String,
    /// The tier where it is not Standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The same tool on other servers, by id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// The words of the query that were found, where the search asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<Vec<String>>,
}

impl ToolMatch {
    pub(crate) fn new(tool: &Tool, matched: Option<Vec<String>>) -> Self {
        Self::brief(tool, matched, DETAILS[0])
    }

    fn brief(tool: &Tool, matched: Option<Vec<String>>, (description, signature): (usize, usize)) -> Self {
        Self {
            id: tool.id().to_string(),
            description: text::one_line(tool.summary(), description),
            signature: text::one_line(&tool.signature(), signature),
            tier: (tool.tier() != Tier::Standard).then(|| tool.tier()),
            also: Vec::new(),
            matched,
        }
    }
}

/// How long the description and the signature of a hit may be, in characters: as long as the answer has room, then less.
const DETAILS: [(usize, usize); 4] = [(200, 300), (120, 160), (60, 80), (0, 40)];

/// How many bytes of JSON an answer to a search may have, unless its first hit alone has more.
pub const MAX_SEARCH_BYTES: usize = 4 * 1024;

/// How many other servers a hit names that have the same tool.
const MAX_ALSO: usize = 5;

/// How many of the tools' words an answer names that found nothing.
const MAX_NEAREST: usize = 6;

/// One hit: the tool's place, those of the same tool on other servers, and why it was found.
struct Found {
    position: usize,
    also: Vec<usize>,
    matched: Option<Vec<String>>,
}

impl Found {
    fn alone(position: usize) -> Self {
        Self { position, also: Vec::new(), matched: None }
    }
}

/// Answers a search: `{"tools": […]}`, with `total` where it is known, `next_offset` where there is more, and where nothing
/// was found a `message`, the `nearest_words` of the tools, and the servers that offer no tools now.
///
/// The same tool on several servers is one hit, which names the others. The answer has at most [`MAX_SEARCH_BYTES`]: where
/// there is too much to say, first the descriptions and signatures become shorter, then the hits fewer.
#[must_use]
pub fn search(
    view: &View,
    ranker: &dyn Ranker,
    request: &SearchRequest,
    config: &ProgressiveConfig,
) -> Value {
    let limit = config.search_limit(request.limit);
    let (found, total) = if request.query.is_empty() {
        listed(view, request.server.as_deref())
    } else {
        let wanted = request.offset.saturating_add(limit).saturating_add(1);
        ranked(view, ranker, request, wanted.min(view.tools().len()))
    };
    let left = found.len().saturating_sub(request.offset);
    let mut page: Vec<Found> = found.into_iter().skip(request.offset).take(limit).collect();
    if request.explain && !request.query.is_empty() {
        for found in &mut page {
            found.matched = Some(ranker.explain(&request.query, found.position));
        }
    }
    let mut answer = fitting(view, request, &page, left, total);
    if total == Some(0) {
        answer["message"] = json!(nothing_found(view, request));
        let nearest = ranker.nearest(&request.query, request.server.as_deref(), MAX_NEAREST);
        if !nearest.is_empty() {
            answer["nearest_words"] = json!(nearest);
        }
        let mut unavailable = unavailable_servers(view, request.server.as_deref());
        // There may be hundreds: as many as there is room for.
        while !unavailable.is_empty() {
            answer["unavailable_servers"] = json!(unavailable);
            if answer.to_string().len() <= MAX_SEARCH_BYTES {
                break;
            }
            answer.as_object_mut().map(|answer| answer.remove("unavailable_servers"));
            let half = unavailable.len() / 2;
            unavailable = unavailable.into_iter().take(half).collect();
        }
    }
    answer
}

/// All tools, by server; the same of several servers once, where the first has it.
fn listed(view: &View, server: Option<&str>) -> (Vec<Found>, Option<usize>) {
    let tools = view.tools().iter().enumerate();
    let found = match server {
        Some(server) => {
            let on_server = tools.filter(|(_, tool)| tool.id().server() == server);
            on_server.map(|(position, _)| Found::alone(position)).collect()
        }
        None => distinct(view, tools.map(|(position, _)| position)),
    };
    let total = found.len();
    (found, Some(total))
}

/// At least the first `wanted` hits if there are as many, and how many there are if they are all.
fn ranked(
    view: &View,
    ranker: &dyn Ranker,
    request: &SearchRequest,
    wanted: usize,
) -> (Vec<Found>, Option<usize>) {
    // Some may be one tool on several servers.
    let mut depth = wanted.saturating_add(8);
    loop {
        let hits = ranker.rank(&request.query, request.server.as_deref(), depth);
        let positions = hits.iter().map(|hit| hit.position);
        let found = match request.server {
            Some(_) => positions.map(Found::alone).collect(),
            None => distinct(view, positions),
        };
        let all = hits.len() < depth;
        if all || found.len() >= wanted {
            let total = all.then_some(found.len());
            return (found, total);
        }
        depth = depth.saturating_mul(2);
    }
}

/// Each tool once, with all other servers that offer the very same.
fn distinct(view: &View, positions: impl Iterator<Item = usize>) -> Vec<Found> {
    let mut said: HashSet<usize> = HashSet::new();
    let mut found = Vec::new();
    for position in positions {
        if said.contains(&position) {
            continue;
        }
        let mut also = view.copies(position);
        if also.len() > 1 {
            said.extend(&also);
        }
        also.retain(|&other| other != position);
        found.push(Found { also, ..Found::alone(position) });
    }
    found
}

/// The answer with as much of `page` as has room in it.
fn fitting(view: &View, request: &SearchRequest, page: &[Found], left: usize, total: Option<usize>) -> Value {
    let answer = |count: usize, detail| {
        let tools: Vec<ToolMatch> = page[..count]
            .iter()
            .map(|found| {
                let id = |&position: &usize| view.tools()[position].id().to_string();
                let also = found.also.iter().take(MAX_ALSO).map(id).collect();
                ToolMatch {
                    also,
                    ..ToolMatch::brief(&view.tools()[found.position], found.matched.clone(), detail)
                }
            })
            .collect();
        let mut answer = json!({ "tools": tools });
        if let Some(total) = total {
            answer["total"] = json!(total);
        }
        if count < left {
            answer["next_offset"] = json!(request.offset.saturating_add(count));
        }
        answer
    };
    let fits = |answer: &Value| answer.to_string().len() <= MAX_SEARCH_BYTES;
    let whole = DETAILS.into_iter().map(|detail| answer(page.len(), detail)).find(fits);
    let briefest = DETAILS[DETAILS.len() - 1];
    whole
        .or_else(|| (1..page.len()).rev().map(|count| answer(count, briefest)).find(fits))
        .unwrap_or_else(|| answer(page.len().min(1), briefest))
}

fn nothing_found(view: &View, request: &SearchRequest) -> String {
    let servers: Vec<&str> = view.servers().iter().map(|server| server.name.as_str()).collect();
    let named = || text::one_line(&servers.join(", "), 600);
    match &request.server {
        Some(server) if !servers.contains(&server.as_str()) => {
            format!("no server `{}` is known; the servers are: {}", text::one_line(server, 64), named())
        }
        Some(server) if request.query.is_empty() => {
            format!("`{}` offers no tools now; the servers are: {}", text::one_line(server, 64), named())
        }
        None if request.query.is_empty() => "there are no tools".to_owned(),
        _ => format!(
            "no tool matches; try other or fewer words, or list the tools of a server with an empty query. The \
             servers are: {}",
            named()
        ),
    }
}

/// The servers that offer no tools now, each with the reason in a word.
fn unavailable_servers(view: &View, only: Option<&str>) -> Map<String, Value> {
    view.servers()
        .iter()
        .filter(|server| only.is_none_or(|only| server.name == only))
        .filter_map(|server| Some((server.name.clone(), json!(unavailable(&server.health)?))))
        .collect()
}

/// Answers a describe for one tool: its id, description, tier, annotations and, as JSON text, its schemas: its own, or the
/// provider's export of what it takes.
///
/// Text, because providers refuse some of the keywords of real schemas even inside a result.
#[must_use]
pub fn describe(tool: &Tool, provider: Provider) -> Value {
    let definition = tool.definition();
    let mut answer = json!({
        "id": tool.id().as_str(),
        "description": text::block(tool.description(), DESCRIPTION),
        "tier": tool.tier(),
    });
    if let Some(Value::String(title)) = definition.get("title") {
        answer["title"] = json!(text::one_line(title, 200));
    }
    if let Some(annotations @ Value::Object(_)) = definition.get("annotations") {
        answer["annotations"] = json!(text::visible_json(annotations));
    }
    answer["input_schema"] = json!(text::visible_json(&tool.export(provider).schema));
    if let Some(output @ Value::Object(_)) = definition.get("outputSchema") {
        answer["output_schema"] = json!(text::visible_json(output));
    }
    answer
}

/// Answers a describe: for one name that tool, for several `{"tools": […]}` with an `error` in place of each that is
/// not known.
///
/// # Errors
///
/// Where no name is known; the first one's refusal.
pub fn describe_all(
    view: &View,
    ranker: &dyn Ranker,
    names: &[String],
    provider: Provider,
    mut described: impl FnMut(&Tool),
) -> Result<Value, BridgeError> {
    let mut answers = Vec::new();
    let mut refusal = None;
    let mut any = false;
    for name in names {
        match resolve(view, ranker, name) {
            Ok(tool) => {
                described(tool);
                any = true;
                answers.push(describe(tool, provider));
            }
            Err(error) => {
                answers.push(error.to_value());
                refusal.get_or_insert(error);
            }
        }
    }
    match (refusal, any) {
        (Some(error), false) => Err(error),
        _ if names.len() == 1 => Ok(answers.swap_remove(0)),
        _ => Ok(json!({ "tools": answers })),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::{Catalogue, ExternalSettings, Health, Listing, external_part};
    use crate::scope::Scope;
    use crate::search::{Hit, default_ranker};

    fn view() -> View {
        let part = |name: &str, tools: Value| {
            let listing =
                Listing { tools: tools.as_array().unwrap().clone(), ..Listing::without_tools(Health::Ready) };
            external_part(name, &ExternalSettings::default(), &listing)
        };
        let down = Listing::without_tools(Health::Down("secret stack trace".into()));
        Scope::default().view(&Catalogue::merge(&[
            part("hub", json!([
                {"name": "create_issue", "description": "Opens an issue.", "inputSchema": {"type": "object",
                    "properties": {"title": {"type": "string"}, "labels": {"type": "array"}}, "required": ["title"]}},
                {"name": "read_file", "description": "Reads a file of a repository."},
                {"name": "find", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"},
                    "filter": {"type": "object", "properties": {"n": {"type": "integer"}}},
                    "shape": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}},
            ])),
            part("disk", json!([{"name": "read_file", "description": "Reads a file of the disk.\u{202e}"}])),
            external_part("mail", &ExternalSettings::default(), &down),
        ]))
    }

    fn execute(arguments: Value) -> Result<JsonObject, BridgeError> {
        let view = view();
        let Request::Execute(request) = parse(&arguments)? else { panic!("an execute") };
        let tool = resolve(&view, &*default_ranker(&view), &request.name)?;
        let arguments = super::arguments(tool, &request)?;
        tool.check(&arguments)?;
        Ok(arguments)
    }

    fn run_search(arguments: Value) -> Value {
        let view = view();
        let Request::Search(request) = parse(&arguments).unwrap() else { panic!("a search") };
        search(&view, &*default_ranker(&view), &request, &ProgressiveConfig::default())
    }

    #[test]
    fn arguments_are_read_as_they_were_meant() {
        let wanted = json!({"title": "t"});
        for arguments in [
            json!({"action": "execute", "name": "hub/create_issue", "arguments": {"title": "t"}}),
            json!({"action": "execute", "name": "hub/create_issue", "arguments": "{\"title\": \"t\"}"}),
            json!({"action": "execute", "name": "hub/create_issue", "title": "t"}),
            json!(
                "{\"action\": \"Execute\", \"name\": \" hub/create_issue \", \"arguments\": {\"title\": \"t\"}}"
            ),
        ] {
            assert_eq!(Value::Object(execute(arguments.clone()).unwrap()), wanted, "{arguments}");
        }
        assert!(execute(json!({"action": "execute", "name": "disk/read_file"})).unwrap().is_empty());
        let nothing = json!({"title": "t", "labels": null});
        let arguments = json!({"action": "execute", "name": "hub/create_issue", "arguments": nothing});
        assert_eq!(Value::Object(execute(arguments).unwrap()), wanted);
        let nested = json!({"action": "execute", "name": "hub/find", "arguments": {"filter": {"n": null, "m": 1}, "shape": null}});
        assert_eq!(Value::Object(execute(nested).unwrap()), json!({"filter": {"m": 1}}));
        let required = json!({"action": "execute", "name": "hub/create_issue", "arguments": {"title": null}});
        assert!(execute(required).unwrap_err().to_string().contains("/title"));
    }

    #[test]
    fn what_could_be_the_bridges_own_is_not_guessed() {
        for call in [
            json!({"action": "execute", "name": "hub/find", "query": "x"}),
            json!({"action": "execute", "name": "hub/find", "query": "x", "depth": 1}),
            json!({"action": "execute", "name": "hub/find", "arguments": {}, "query": "x"}),
            json!({"action": "execute", "name": "hub/find", "depth": 1}),
            json!({"action": "execute", "name": "hub/create_issue", "arguments": {"title": "t"}, "labels": []}),
        ] {
            let error = execute(call.clone()).unwrap_err().to_string();
            assert!(error.contains("where it could be the bridge's own; pass it as"), "{call}: {error}");
        }
        let stray =
            json!({"action": "execute", "name": "hub/create_issue", "title": "t", "query": "x", "limit": 3});
        assert_eq!(execute(stray).unwrap().len(), 1);
    }

    #[test]
    fn a_bare_name_is_refused_with_what_it_could_mean() {
        let error = execute(json!({"action": "execute", "name": "read_file"})).unwrap_err();
        insta::assert_snapshot!(error, @r#"no tool `read_file` is known; did you mean one of `disk/read_file`, `hub/read_file`?; find tools with {"action": "search", "query": "…"}"#);
        let error = execute(json!({"action": "execute", "name": "hub__create_issue"})).unwrap_err();
        assert!(error.to_string().contains("did you mean `hub/create_issue`?"), "{error}");
        let error = execute(json!({"action": "execute", "name": "hub/craete_issue"})).unwrap_err();
        assert!(error.to_string().contains("did you mean `hub/create_issue`?"), "{error}");
    }

    #[test]
    fn arguments_that_do_not_fit_come_back_with_every_place_and_the_schema() {
        let error =
            execute(json!({"action": "execute", "name": "hub/create_issue", "arguments": {"labels": "x"}}))
                .unwrap_err();
        insta::assert_snapshot!(error);
        assert_eq!(error.to_value()["violations"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn searches_find_list_and_clamp() {
        let found = run_search(json!({"action": "search", "query": "open issue", "explain": true}));
        assert_eq!(found["tools"][0]["id"], "hub/create_issue");
        assert_eq!(found["tools"][0]["matched"], json!(["open", "issue"]));
        assert_eq!(found["tools"][0]["signature"], "create_issue(title: string, labels?: any[])");
        assert!(found["tools"][0].get("input_schema").is_none());

        let page = run_search(json!({"action": "search", "limit": "2", "offset": 1}));
        assert_eq!(page["tools"].as_array().unwrap().len(), 2);
        assert_eq!((&page["total"], &page["next_offset"]), (&json!(4), &json!(3)));
        let one = run_search(json!({"action": "search", "limit": -5}));
        assert_eq!(one["tools"].as_array().unwrap().len(), 1);
        let beyond = run_search(json!({"action": "search", "offset": 1e300}));
        assert_eq!(beyond["tools"], json!([]));
    }

    #[test]
    fn the_same_tool_on_several_servers_is_one_hit_and_the_answer_has_a_size() {
        let long = "Reads and writes the thing. ".repeat(40);
        let tool = json!({"name": "get_thing", "description": long});
        let many: Vec<Value> = (0..30)
            .map(|at| json!({"name": format!("thing_{at}"), "description": format!("{at} {long}")}))
            .collect();
        let part = |name: &str, tools: Vec<Value>| {
            let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
            external_part(name, &ExternalSettings::default(), &listing)
        };
        let parts = [part("a", vec![tool.clone()]), part("b", vec![tool]), part("c", many)];
        let view = Scope::default().view(&Catalogue::merge(&parts));
        let ranker = default_ranker(&view);
        let config = ProgressiveConfig::default();
        let ask = |query: &str, offset| {
            let request = SearchRequest {
                query: query.to_owned(),
                limit: Some(20),
                offset,
                ..SearchRequest::default()
            };
            search(&view, &*ranker, &request, &config)
        };
        let found = ask("get thing", 0);
        let first = &found["tools"][0];
        let mut same = [first["id"].as_str().unwrap(), first["also"][0].as_str().unwrap()];
        same.sort_unstable();
        assert_eq!(same, ["a/get_thing", "b/get_thing"]);
        let browsed = ask("", 0);
        assert_eq!((&browsed["total"], &browsed["tools"][0]["also"]), (&json!(31), &json!(["b/get_thing"])));
        let mut ids: Vec<String> = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let page = ask("thing reads writes", offset as usize);
            assert!(page.to_string().len() <= MAX_SEARCH_BYTES);
            ids.extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["id"].to_string()));
            next = page["next_offset"].as_u64();
        }
        assert_eq!(ids.len(), 31, "every tool once");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 31);
    }

    /// However far down the others are, and whatever a ranking finds of them.
    #[test]
    fn a_hit_names_all_servers_that_have_the_tool() {
        #[derive(Debug)]
        struct First;
        impl Ranker for First {
            fn rank(&self, _: &str, _: Option<&str>, limit: usize) -> Vec<Hit> {
                [0, 2]
                    .map(|position| Hit { position, score: 1.0, exact: false })
                    .into_iter()
                    .take(limit)
                    .collect()
            }
        }
        let part = |name: &str, description: &str| {
            let tools = vec![json!({"name": "search", "description": description})];
            let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
            external_part(name, &ExternalSettings::default(), &listing)
        };
        let parts = [part("a", "Finds."), part("b", "Finds."), part("c", "Seeks."), part("d", "Finds.")];
        let catalogue = Catalogue::merge(&parts);
        let ask = |view: &View, server: Option<&str>| {
            let request = SearchRequest {
                query: "find".to_owned(),
                server: server.map(str::to_owned),
                ..SearchRequest::default()
            };
            search(view, &First, &request, &ProgressiveConfig::default())
        };
        let all = ask(&Scope::default().view(&catalogue), None);
        assert_eq!((&all["tools"][0]["also"], &all["total"]), (&json!(["b/search", "d/search"]), &json!(2)));
        let rules = crate::Profile::new("a").allow(["a/*", "c/*", "d/*"]);
        let some = ask(&Scope::new(&[], &rules).unwrap().view(&catalogue), None);
        assert_eq!(some["tools"][0]["also"], json!(["d/search"]), "what is hidden is none");
        assert!(ask(&Scope::default().view(&catalogue), Some("a"))["tools"][0].get("also").is_none());
    }

    #[test]
    fn a_search_that_finds_nothing_says_what_is_away() {
        let none = run_search(json!({"action": "search", "server": "mail"}));
        assert_eq!(none["message"], "`mail` offers no tools now; the servers are: disk, hub, mail");
        assert_eq!(none["unavailable_servers"], json!({"mail": "down"}));
        let nearest =
            |server: &str| run_search(json!({"action": "search", "query": "isue", "server": server}));
        assert!(nearest("disk").get("nearest_words").is_none(), "{}", nearest("disk"));
        let nothing = run_search(json!({"action": "search", "query": "zzz"}));
        assert_eq!(nothing["unavailable_servers"], json!({"mail": "down"}));
        assert!(nothing["message"].as_str().unwrap().contains("disk, hub, mail"), "{nothing}");
        assert!(!nothing.to_string().contains("stack trace"));
        let unknown = run_search(json!({"action": "search", "server": "nope"}));
        assert!(unknown["message"].as_str().unwrap().contains("no server `nope`"));
    }

    #[test]
    fn requests_that_cannot_be_read() {
        let text = |arguments: Value| parse(&arguments).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                text(json!([])),
                text(json!({})),
                text(json!({"action": "delete"})),
                text(json!({"action": "search", "query": "x".repeat(257)})),
                text(json!({"action": "search", "limit": "many"})),
                text(json!({"action": "describe"})),
                text(json!({"action": "describe", "names": ["a", "b", "c", "d", "e", "f"]})),
                text(json!({"action": "execute", "name": 3})),
            ]
            .join("\n")
        );
    }

    #[test]
    fn describe_shows_the_schema_as_text() {
        let view = view();
        let ranker = default_ranker(&view);
        let names = ["hub/create_issue".to_owned()];
        let mut seen = Vec::new();
        let answer =
            describe_all(&view, &*ranker, &names, Provider::Plain, |tool| seen.push(tool.id().to_string()))
                .unwrap();
        let schema: Value = serde_json::from_str(answer["input_schema"].as_str().unwrap()).unwrap();
        assert_eq!(schema["required"], json!(["title"]));
        assert_eq!(seen, names);

        let names = ["disk/read_file".to_owned(), "nope/x".to_owned()];
        let answer = describe_all(&view, &*ranker, &names, Provider::Plain, |_| ()).unwrap();
        assert_eq!(answer["tools"][0]["description"], "Reads a file of the disk.");
        assert!(answer["tools"][1]["error"].as_str().unwrap().contains("nope/x"));
        assert!(describe_all(&view, &*ranker, &names[1..], Provider::Plain, |_| ()).is_err());
    }

    proptest! {
        #[test]
        fn nothing_that_a_model_sends_panics(action in "search|describe|execute|x", name in any::<String>(), query in any::<String>(), number in any::<f64>()) {
            let view = view();
            let ranker = default_ranker(&view);
            let arguments = json!({"action": action, "name": name, "query": query, "limit": number, "offset": number});
            match parse(&arguments) {
                Ok(Request::Search(request)) => {
                    let limit = search(&view, &*ranker, &request, &ProgressiveConfig::default());
                    prop_assert!(limit["tools"].as_array().unwrap().len() <= 20);
                }
                Ok(Request::Describe(names)) => drop(describe_all(&view, &*ranker, &names, Provider::Plain, |_| ())),
                Ok(Request::Execute(request)) => {
                    if let Err(error) = resolve(&view, &*ranker, &request.name) {
                        prop_assert!(!error.to_string().contains(text::is_unsafe));
                    }
                }
                Err(error) => prop_assert!(!error.to_string().contains(text::is_unsafe)),
            }
        }
    }
}
