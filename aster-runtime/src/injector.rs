//! Progressive disclosure for a host of one's own: a strict list of tools, what to inject, and the bridge over it.
//!
//! Pure: it starts nothing, calls nothing but the host's own invoker, and keeps no state between calls. The gate, the
//! audit and external servers are `Host`'s.

use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bridge::{self, BridgeError, Request, SearchRequest, ToolMatch};
use crate::catalogue::{
    Catalogue, CatalogueError, ExternalSettings, Health, Listing, Part, Problem, Reason, external_part,
};
use crate::id::{self, ToolId};
use crate::inject::{self, ConfigError, Injection, ProgressiveConfig};
use crate::provider::Provider;
use crate::scope::{Scope, View};
use crate::search::{MAX_QUERY_BYTES, Ranker, default_ranker};
use crate::tool::kind;

/// One tool of a host's own list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct McpTool {
    /// The server it is on.
    pub server: String,
    /// Its name there.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments: of an object.
    pub input_schema: Value,
}

impl McpTool {
    /// The id, `server/name`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }
}

/// A host's own list of tools, checked.
#[derive(Debug, Clone)]
pub struct McpCatalog {
    tools: Arc<[McpTool]>,
    view: View,
    ranker: Arc<dyn Ranker>,
}

impl McpCatalog {
    /// Checks a list: no field may be empty, names must fit their grammar, schemas must be valid and of objects, ids
    /// must differ.
    ///
    /// # Errors
    ///
    /// Every problem of every tool at once. Nothing is left out in silence: the list is the host's own.
    pub fn new(tools: impl IntoIterator<Item = McpTool>) -> Result<Self, CatalogueError> {
        let mut tools: Vec<McpTool> = tools.into_iter().collect();
        let mut problems = problems(&tools);
        tools.sort_by(|a, b| (&a.server, &a.name).cmp(&(&b.server, &b.name)));
        let parts: Vec<_> = tools.chunk_by(|a, b| a.server == b.server).map(part).collect();
        // What the catalogue would leave out of a stranger's list is a mistake in a host's own.
        for problem in parts.iter().flat_map(|part| &part.problems) {
            let named = |known: &Problem| (&known.server, &known.tool) == (&problem.server, &problem.tool);
            // One without a name has its place for a name, which is another in the parts.
            let nameless = tools.iter().all(|tool| Some(&tool.name) != problem.tool.as_ref());
            if !nameless && !problems.iter().any(named) {
                problems.push(problem.clone());
            }
        }
        CatalogueError::check(problems)?;
        let view = Scope::default().view(&Catalogue::merge(&parts));
        let ranker = default_ranker(&view);
        Ok(Self { tools: tools.into(), view, ranker })
    }

    /// The tool with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&McpTool> {
        let id = ToolId::parse(id)?;
        let found = self.tools.binary_search_by(|tool| {
            (tool.server.as_str(), tool.name.as_str()).cmp(&(id.server(), id.tool()))
        });
        found.ok().map(|at| &self.tools[at])
    }

    /// The tools that match a query, best first; for an empty one all, by id. Of a query that is longer than
    /// [`MAX_QUERY_BYTES`] the start is read.
    #[must_use]
    pub fn search(&self, query: &str, limit: usize) -> Vec<ToolMatch> {
        let tools = self.view.tools();
        if query.trim().is_empty() {
            return tools.iter().take(limit).map(|tool| ToolMatch::new(tool, None)).collect();
        }
        let mut end = query.len().min(MAX_QUERY_BYTES);
        while !query.is_char_boundary(end) {
            end -= 1;
        }
        let hits = self.ranker.rank(&query[..end], None, limit);
        hits.iter().map(|hit| ToolMatch::new(&tools[hit.position], None)).collect()
    }

    /// All tools, by id.
    #[must_use]
    pub fn tools(&self) -> &[McpTool] {
        &self.tools
    }
}

/// The tools of one server, as a server would list them.
fn part(tools: &[McpTool]) -> Part {
    let definitions = tools.iter().map(|tool| {
        serde_json::json!({
            "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema,
        })
    });
    let listing = Listing { tools: definitions.collect(), ..Listing::without_tools(Health::Ready) };
    external_part(&tools[0].server, &ExternalSettings::default(), &listing)
}

/// What only a host's own list is held to: it can be mended.
fn problems(tools: &[McpTool]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = HashMap::new();
    for (at, tool) in tools.iter().enumerate() {
        let name = if tool.name.is_empty() { format!("#{}", at + 1) } else { tool.name.clone() };
        let mut add = |reason| {
            problems.push(Problem { server: tool.server.clone(), tool: Some(name.clone()), reason });
        };
        for (field, value) in
            [("server", &tool.server), ("name", &tool.name), ("description", &tool.description)]
        {
            if value.trim().is_empty() {
                add(Reason::Missing(field));
            }
        }
        if !tool.server.trim().is_empty()
            && (tool.server.contains('/') || id::check_external_name(&tool.server).is_err())
        {
            add(Reason::Name(id::NameError::Character));
        }
        if let Some(error) =
            id::check_external_name(&tool.name).err().filter(|_| !tool.name.trim().is_empty())
        {
            add(Reason::Name(error));
        }
        if tool.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            let found = tool.input_schema.get("type").map_or_else(
                || format!("{} without `\"type\": \"object\"`", kind(&tool.input_schema)),
                Value::to_string,
            );
            add(Reason::SchemaNotObject(found));
        }
        if let Some(first) = seen.insert(tool.id(), at) {
            let place = |at: usize| Some(format!("#{}", at + 1));
            add(Reason::DuplicateTool { first: place(first), second: place(at) });
        }
    }
    problems
}

/// What a model asked of the bridge, resolved: nothing in it needs another look-up.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BridgeAction<'a> {
    /// Find tools.
    Search(SearchRequest),
    /// Show the arguments of these tools; the names as they were asked for.
    Describe(Vec<String>),
    /// Call this tool with these arguments, which fit its schema.
    Execute {
        /// The tool.
        tool: &'a McpTool,
        /// An object.
        arguments: Value,
    },
}

/// Calls a tool for [`Injector::handle`]. Any function of the same shape is one.
pub trait McpInvoker {
    /// Calls the tool with arguments that fit its schema.
    ///
    /// # Errors
    ///
    /// Whatever went wrong; the model is shown its message.
    fn invoke(&mut self, tool: &McpTool, arguments: &Value) -> Result<Value, Box<dyn Error + Send + Sync>>;
}

impl<F> McpInvoker for F
where
    F: FnMut(&McpTool, &Value) -> Result<Value, Box<dyn Error + Send + Sync>>,
{
    fn invoke(&mut self, tool: &McpTool, arguments: &Value) -> Result<Value, Box<dyn Error + Send + Sync>> {
        self(tool, arguments)
    }
}

/// Calls a tool for [`Injector::handle_async`].
pub trait AsyncMcpInvoker {
    /// Calls the tool with arguments that fit its schema.
    fn invoke(
        &mut self,
        tool: &McpTool,
        arguments: &Value,
    ) -> impl Future<Output = Result<Value, Box<dyn Error + Send + Sync>>> + Send;
}

/// Progressive disclosure over one catalogue: what to inject, and the bridge.
///
/// ```
/// use aster_runtime::{Injector, McpCatalog, McpTool, ProgressiveConfig};
/// use serde_json::{Value, json};
///
/// let catalog = McpCatalog::new([McpTool {
///     server: "math".into(),
///     name: "add".into(),
///     description: "Adds two numbers.".into(),
///     input_schema: json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
///         "required": ["a", "b"]}),
/// }])?;
/// let injector = Injector::new(catalog, ProgressiveConfig::default())?;
///
/// let injection = injector.inject().expect("the catalogue is not empty");
/// assert!(injection.prompt.contains("- math/add: Adds two numbers."));
///
/// // What the model calls `aster_mcp` with goes in, what it is to be told comes out.
/// let call = json!({"action": "execute", "name": "math/add", "arguments": {"a": 2, "b": 3}});
/// let mut invoker = |_: &McpTool, arguments: &Value| {
///     Ok(json!(arguments["a"].as_f64().unwrap() + arguments["b"].as_f64().unwrap()))
/// };
/// assert_eq!(injector.handle(&call, &mut invoker)?, json!(5.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Injector {
    catalog: McpCatalog,
    config: ProgressiveConfig,
    provider: Provider,
}

impl Injector {
    /// Progressive disclosure of `catalog` within the budget of `config`.
    ///
    /// # Errors
    ///
    /// Where a value of `config` is out of its range.
    pub fn new(catalog: McpCatalog, config: ProgressiveConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self { catalog, config, provider: Provider::Plain })
    }

    /// Describes tools with their schemas as this provider takes them; [`Injection::tool`] writes the bridge so.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// What to add to a model request; `None` for an empty catalogue.
    #[must_use]
    pub fn inject(&self) -> Option<Injection> {
        inject::inject(&self.catalog.view, &self.config)
    }

    /// The catalogue.
    #[must_use]
    pub fn catalog(&self) -> &McpCatalog {
        &self.catalog
    }

    /// Reads what a model called the bridge with, resolves it, and checks the arguments of an execute.
    ///
    /// # Errors
    ///
    /// Where the request cannot be read, names no known tool, or its arguments do not fit.
    pub fn route(&self, arguments: &Value) -> Result<BridgeAction<'_>, BridgeError> {
        match bridge::parse(arguments)? {
            Request::Search(request) => Ok(BridgeAction::Search(request)),
            Request::Describe(names) => Ok(BridgeAction::Describe(names)),
            Request::Execute(request) => {
                let tool = bridge::resolve(&self.catalog.view, &*self.catalog.ranker, &request.name)?;
                let arguments = bridge::arguments(tool, &request)?;
                tool.check(&arguments)?;
                let original = self.catalog.get(tool.id().as_str()).ok_or_else(|| {
                    BridgeError::UnknownTool { name: tool.id().to_string(), candidates: Vec::new() }
                })?;
                Ok(BridgeAction::Execute { tool: original, arguments: Value::Object(arguments) })
            }
        }
    }

    /// Answers what a model called the bridge with, calling `invoker` for an execute.
    ///
    /// # Errors
    ///
    /// As [`route`](Self::route), and where the invoker fails. [`BridgeError::to_value`] is what to tell the model.
    pub fn handle<I: McpInvoker + ?Sized>(
        &self,
        arguments: &Value,
        invoker: &mut I,
    ) -> Result<Value, BridgeError> {
        match self.route(arguments)? {
            BridgeAction::Execute { tool, arguments } => {
                invoker.invoke(tool, &arguments).map_err(|source| invoke_error(tool, source))
            }
            BridgeAction::Search(request) => Ok(self.search(&request)),
            BridgeAction::Describe(names) => self.describe(&names),
        }
    }

    /// The same for an asynchronous host.
    ///
    /// # Errors
    ///
    /// As [`handle`](Self::handle).
    pub async fn handle_async<I: AsyncMcpInvoker>(
        &self,
        arguments: &Value,
        invoker: &mut I,
    ) -> Result<Value, BridgeError> {
        match self.route(arguments)? {
            BridgeAction::Execute { tool, arguments } => {
                invoker.invoke(tool, &arguments).await.map_err(|source| invoke_error(tool, source))
            }
            BridgeAction::Search(request) => Ok(self.search(&request)),
            BridgeAction::Describe(names) => self.describe(&names),
        }
    }

    fn search(&self, request: &SearchRequest) -> Value {
        bridge::search(&self.catalog.view, &*self.catalog.ranker, request, &self.config)
    }

    fn describe(&self, names: &[String]) -> Result<Value, BridgeError> {
        bridge::describe_all(&self.catalog.view, &*self.catalog.ranker, names, self.provider, |_| ())
    }
}

fn invoke_error(tool: &McpTool, source: Box<dyn Error + Send + Sync>) -> BridgeError {
    BridgeError::Invoke { id: ToolId::new(&tool.server, &tool.name), source }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(server: &str, name: &str) -> McpTool {
        McpTool {
            server: server.into(),
            name: name.into(),
            description: format!("Does {name}."),
            input_schema: json!({"type": "object"}),
        }
    }

    #[test]
    fn a_list_is_refused_with_every_problem() {
        let mut no_schema = tool("a", "untyped");
        no_schema.input_schema = json!({});
        let mut scalar = tool("a", "scalar");
        scalar.input_schema = json!({"type": "string"});
        let mut silent = tool("a", "silent");
        silent.description = " ".into();
        let list = [
            no_schema,
            scalar,
            silent,
            tool("a", "x"),
            tool("a", "x"),
            tool("", "y"),
            tool("a/b", "z"),
            tool("a", "b\tc"),
        ];
        insta::assert_snapshot!(McpCatalog::new(list).unwrap_err());
    }

    /// What is left out of a stranger's list must not shift the host's own.
    #[test]
    fn a_list_that_is_too_large_is_refused() {
        let mut huge = tool("s", "a_huge");
        huge.description = "x".repeat(300_000);
        let error = McpCatalog::new([huge, tool("s", "b_read"), tool("s", "c_delete")]).unwrap_err();
        assert!(error.to_string().contains("s/a_huge: the definition has"), "{error}");
        let mut marked = tool("s", "#a");
        marked.input_schema = json!({"type": "object", "properties": {"required": ["a"]}});
        let error = McpCatalog::new([marked, tool("s", "b")]).unwrap_err();
        assert!(error.to_string().contains("s/#a: the input schema is not valid"), "{error}");
    }

    #[test]
    fn the_end_of_an_endless_query_is_not_read() {
        let catalog = McpCatalog::new([tool("a", "zebra"), tool("a", "x")]).unwrap();
        let padded = |bytes: usize| format!("{}zebra", "ö ".repeat(bytes / 3));
        assert_eq!(catalog.search(&padded(30), 5)[0].id, "a/zebra");
        assert!(catalog.search(&padded(300), 5).is_empty());
    }

    #[test]
    fn an_empty_catalogue_injects_nothing() {
        let injector = Injector::new(McpCatalog::new([]).unwrap(), ProgressiveConfig::default()).unwrap();
        assert!(injector.inject().is_none());
    }

    #[test]
    fn an_execute_carries_the_resolved_tool() {
        let injector = Injector::new(
            McpCatalog::new([tool("b", "y"), tool("a-b", "x"), tool("a", "x")]).unwrap(),
            ProgressiveConfig::default(),
        )
        .unwrap();
        let call = json!({"action": "execute", "name": "a-b/x", "arguments": "{}"});
        let BridgeAction::Execute { tool, arguments } = injector.route(&call).unwrap() else {
            panic!("an execute")
        };
        assert_eq!((tool.id().as_str(), arguments), ("a-b/x", json!({})));
        assert_eq!(injector.catalog().get("b/y").unwrap().name, "y");
        assert_eq!(injector.catalog().search("a b x", 5)[0].id, "a-b/x");

        let mut failing = |_: &McpTool, _: &Value| Err("no network".into());
        let error = injector.handle(&call, &mut failing).unwrap_err();
        assert_eq!(error.to_value(), json!({"error": "the call of `a-b/x` failed: no network"}));
    }

    #[tokio::test]
    async fn the_asynchronous_form_answers_the_same() {
        struct Echo;
        impl AsyncMcpInvoker for Echo {
            async fn invoke(
                &mut self,
                tool: &McpTool,
                _: &Value,
            ) -> Result<Value, Box<dyn Error + Send + Sync>> {
                Ok(json!(tool.id()))
            }
        }
        let injector =
            Injector::new(McpCatalog::new([tool("a", "x")]).unwrap(), ProgressiveConfig::default()).unwrap();
        let call = json!({"action": "execute", "name": "a/x"});
        assert_eq!(injector.handle_async(&call, &mut Echo).await.unwrap(), json!("a/x"));
        let search = json!({"action": "search", "query": "x"});
        let mut never = |_: &McpTool, _: &Value| panic!("a search calls nothing");
        assert_eq!(
            injector.handle_async(&search, &mut Echo).await.unwrap(),
            injector.handle(&search, &mut never).unwrap()
        );
    }
}
