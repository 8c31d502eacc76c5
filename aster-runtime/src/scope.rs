//! What one session may see of the catalogue. What it does not see does not exist for it.
//!
//! A tool has to pass three layers, and the rules:
//!
//! 1. the agent's groups, and the tools that it is given by name, each of which brings its group for that tool alone. An
//!    agent that is given tools and no groups has the tools and nothing else;
//! 2. the agent's own globs, which a tool that it is given by name need not match, but no deny of which it escapes;
//! 3. the host's filters, one after the other: those of the user and of the project.
//!
//! What a rule denies whatever it is called with is hidden like the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalogue::{self, Catalogue, Copies, Health, Prompt, Resource, Server, Tool};
use crate::gate::rules::{Caller, Rules};
use crate::glob::IdGlobs;
use crate::id::ToolId;
use crate::session::Profile;
use crate::spec::{Group, ToolSpec};

/// Allow and deny globs over tool ids. Deny wins; an empty allow list means all.
///
/// In a glob `*` matches any characters, `/` included, `?` one character, `[a-z]` a range and `{a,b}` alternatives;
/// case counts.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    allow: Option<IdGlobs>,
    deny: IdGlobs,
}

/// Globs that cannot be used, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|(glob, why)| format!("glob `{glob}`: {why}")).collect::<Vec<_>>().join("\n"))]
pub struct FilterError(pub Vec<(String, String)>);

impl Filter {
    /// Compiles both lists.
    ///
    /// # Errors
    ///
    /// Every glob that does not parse, or that can match no id, at once.
    ///
    /// ```
    /// use aster_runtime::{Filter, ToolId};
    ///
    /// let filter = Filter::new(&["web/*", "files/read_*"], &["*/delete_*"]).unwrap();
    /// assert!(filter.allows(&ToolId::new("files", "read_file")));
    /// assert!(!filter.allows(&ToolId::new("web", "delete_cookies")));
    /// assert!(Filter::new(&["web"], &["["]).is_err());
    /// ```
    pub fn new<S: AsRef<str>>(allow: &[S], deny: &[S]) -> Result<Self, FilterError> {
        let mut bad = Vec::new();
        let (allowed, denied) = (IdGlobs::new(allow, &mut bad), IdGlobs::new(deny, &mut bad));
        if !bad.is_empty() {
            return Err(FilterError(bad));
        }
        Ok(Self { allow: (!allow.is_empty()).then_some(allowed), deny: denied })
    }

    /// Whether the filter lets this id through.
    #[must_use]
    pub fn allows(&self, id: &ToolId) -> bool {
        !self.deny.is_match(id.as_str())
            && self.allow.as_ref().is_none_or(|allow| allow.is_match(id.as_str()))
    }

    /// Whether the filter lets a tool through: what is denied under an old name stays denied, what was allowed stays allowed.
    fn shows(&self, tool: &Tool) -> bool {
        let allows = |allow: &IdGlobs| tool.ids().any(|id| allow.is_match(id.as_str()));
        !self.denies(tool) && self.allow.as_ref().is_none_or(allows)
    }

    fn denies(&self, tool: &Tool) -> bool {
        tool.ids().any(|id| self.deny.is_match(id.as_str()))
    }

    /// Whether some tool of this server could pass; a server that is down has none to ask.
    fn may_show(&self, server: &str) -> bool {
        !self.deny.cover(server) && self.allow.as_ref().is_none_or(|allow| allow.may_match_on(server))
    }
}

/// An agent that [`agent!`](crate::agent) names: the groups and single tools that it is given, as constants.
#[derive(Debug, Clone, Copy)]
pub struct Agent {
    /// Its name.
    pub name: &'static str,
    /// The groups whose tools it is given.
    pub groups: &'static [Group],
    /// The tools that it is given besides.
    pub tools: &'static [&'static ToolSpec],
}

impl Agent {
    /// What a host needs to know of it: it sees these groups and tools, and nothing else.
    #[must_use]
    pub fn profile(&self) -> Profile {
        Profile::new(self.name)
            .groups(self.groups.iter().map(|group| group.name()))
            .tools(self.tools.iter().map(|tool| ToolId::new(tool.server, tool.name)))
    }
}

/// Names agents with what they are given, by path: a group that was never declared, or a tool that is called otherwise now,
/// does not compile. A tool is a variant of its server's enum, or the constant of a free function.
///
/// ```
/// # mod groups { aster_runtime::groups! { pub TIME } }
/// # #[aster_runtime::mcp_server]
/// # mod web {
/// #     /// Searches the web.
/// #     #[aster_runtime::mcp_tool(tier = Standard)]
/// #     pub fn search() {}
/// # }
/// aster_runtime::agent! {
///     /// Looks things up.
///     pub RESEARCHER = { groups: [groups::TIME], tools: [web::Tool::Search] }
/// }
/// # fn main() {
/// assert_eq!(RESEARCHER.name, "researcher");
/// assert_eq!(RESEARCHER.tools[0].name, "search");
/// # let _ = RESEARCHER.profile();
/// # }
/// ```
#[macro_export]
macro_rules! agent {
    ($(
        $(#[$meta:meta])*
        $vis:vis $name:ident = {
            $(groups: [$($group:path),* $(,)?])? $(,)?
            $(tools: [$($tool:expr),* $(,)?])? $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[doc = concat!("The agent `", stringify!($name), "`.")]
        $vis const $name: $crate::Agent = {
            const LOWER: [u8; stringify!($name).len()] = $crate::__private::lowercase(stringify!($name));
            $crate::Agent {
                name: $crate::__private::ascii(&LOWER),
                groups: &[$($($group),*)?],
                tools: &[$($($tool.spec()),*)?],
            }
        };
    )*};
}

/// What narrows one session's sight: see the [module](self).
#[derive(Debug, Clone, Default)]
pub struct Scope {
    groups: Option<BTreeSet<String>>,
    tools: BTreeSet<ToolId>,
    control: BTreeSet<ToolId>,
    own: Filter,
    filters: Vec<Filter>,
    agent: String,
    team: Option<String>,
    rules: Arc<Rules>,
}

impl Scope {
    /// The host's filters, and what the profile adds to them.
    ///
    /// # Errors
    ///
    /// The profile's globs that cannot be used.
    pub fn new(filters: &[Filter], profile: &Profile) -> Result<Self, FilterError> {
        let groups = profile.groups.as_ref().map(|groups| groups.iter().cloned().collect());
        let only_tools = !profile.tools.is_empty() || !profile.control.is_empty();
        Ok(Self {
            groups: groups.or_else(|| only_tools.then(BTreeSet::new)),
            tools: profile.tools.iter().cloned().collect(),
            control: profile.control.iter().cloned().collect(),
            own: Filter::new(&profile.allow, &profile.deny)?,
            filters: filters.to_vec(),
            agent: profile.agent.clone(),
            team: profile.team.clone(),
            rules: Arc::default(),
        })
    }

    /// The same under these rules.
    #[must_use]
    pub fn under(&self, rules: Arc<Rules>) -> Self {
        Self { rules, ..self.clone() }
    }

    /// The rules that it is under.
    #[must_use]
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    /// Whether the session may see this tool.
    #[must_use]
    pub fn shows(&self, tool: &Tool) -> bool {
        self.gives(tool)
            && self.filters.iter().all(|filter| filter.shows(tool))
            && self.rules.hiding(self.caller(), tool).is_none()
    }

    /// The agent's own layers.
    fn gives(&self, tool: &Tool) -> bool {
        let named = |ids: &BTreeSet<ToolId>| tool.ids().any(|id| ids.contains(id));
        named(&self.control)
            || (!self.own.denies(tool)
                && (named(&self.tools) || (self.shows_group(tool.group()) && self.own.shows(tool))))
    }

    fn caller(&self) -> Caller<'_> {
        Caller { agent: &self.agent, team: self.team.as_deref() }
    }

    fn shows_group(&self, group: &str) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(group))
    }

    /// The part of the catalogue that the session sees.
    #[must_use]
    pub fn view(&self, catalogue: &Catalogue) -> View {
        let tools: Arc<[Arc<Tool>]> =
            catalogue.tools().iter().filter(|tool| self.shows(tool)).cloned().collect();
        let servers = catalogue
            .servers()
            .iter()
            .filter_map(|server| {
                let visible = tools_of(&tools, &server.name).len();
                (visible > 0 || self.shows_absent(server))
                    .then(|| Server { tools: visible, ..server.clone() })
            })
            .collect();
        let resources = catalogue.resources().iter().filter(|resource| self.shows(resource.callable()));
        let prompts = catalogue.prompts().iter().filter(|prompt| self.shows(prompt.callable()));
        View {
            tools,
            resources: resources.cloned().collect(),
            prompts: prompts.cloned().collect(),
            servers,
            copies: Arc::clone(catalogue.copies()),
        }
    }

    /// A server without visible tools is worth a word only where it is not ready, so that its tools are not known, and
    /// they might be seen. One that is down and whose last tools are all hidden is hidden with them.
    fn shows_absent(&self, server: &Server) -> bool {
        let name = server.name.as_str();
        let named = || self.control.iter().chain(&self.tools).any(|tool| tool.server() == name);
        server.health != Health::Ready
            && server.tools == 0
            && (named() || (self.shows_group(&server.group) && self.own.may_show(name)))
            && self.filters.iter().all(|filter| filter.may_show(name))
            && !self.rules.hide_server(self.caller(), server)
    }
}

/// What one session sees of one catalogue: the visible tools, resources and prompts, and the servers that tools are on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct View {
    tools: Arc<[Arc<Tool>]>,
    resources: Arc<[Arc<Resource>]>,
    prompts: Arc<[Arc<Prompt>]>,
    servers: Arc<[Server]>,
    copies: Arc<Copies>,
}

impl View {
    /// The visible tools, by server and name.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Whether both show the very same tools, on servers that say the same of themselves.
    #[must_use]
    pub(crate) fn shows_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools)
            || (self.tools.len() == other.tools.len()
                && self.tools.iter().zip(other.tools.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
                && self.servers.iter().map(Server::says).eq(other.servers.iter().map(Server::says)))
    }

    /// How many tools both show that are the very same.
    pub(crate) fn in_common(&self, other: &Self) -> usize {
        let mut others = other.tools.iter().peekable();
        let is_there = |tool: &&Arc<Tool>| {
            while others.next_if(|other| other.id() < tool.id()).is_some() {}
            others.next_if(|other| other.id() == tool.id()).is_some_and(|other| Arc::ptr_eq(other, tool))
        };
        self.tools.iter().filter(is_there).count()
    }

    /// The places of the visible tools that are the same as the one in this place, itself among them, by server.
    pub(crate) fn copies(&self, position: usize) -> Vec<usize> {
        let ids = self.copies.of_tool(self.tools[position].id());
        let place = |id: &ToolId| self.tools.binary_search_by(|tool| tool.id().cmp(id)).ok();
        if ids.is_empty() { vec![position] } else { ids.iter().filter_map(place).collect() }
    }

    /// The visible resources, by server and name.
    #[must_use]
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// The visible prompts, by server and name.
    #[must_use]
    pub fn prompts(&self) -> &[Arc<Prompt>] {
        &self.prompts
    }

    /// The visible resource that a URI means: the one whose URI it is, else the template that describes it most closely.
    #[must_use]
    pub fn resource(&self, uri: &str) -> Option<&Arc<Resource>> {
        self.resource_on(None, uri)
    }

    /// The same, where only those of one server are meant: another's may describe the URI more closely.
    pub(crate) fn resource_on(&self, server: Option<&str>, uri: &str) -> Option<&Arc<Resource>> {
        let here =
            self.resources.iter().filter(|resource| server.is_none_or(|on| resource.id().server() == on));
        let matching = here.filter(|resource| resource.template().matches(uri).is_some());
        // Of two that are equally close it is the first: `max_by_key` would take the last.
        matching.rev().max_by_key(|resource| resource.template().precision())
    }

    /// The visible prompt with this id.
    #[must_use]
    pub fn prompt(&self, id: &ToolId) -> Option<&Arc<Prompt>> {
        catalogue::find(&self.prompts, id)
    }

    /// What can be called under this id: a tool, or the inside of a resource or prompt.
    pub(crate) fn callable(&self, id: &ToolId) -> Option<&Arc<Tool>> {
        self.get(id)
            .or_else(|| catalogue::find(&self.resources, id).map(|resource| resource.callable()))
            .or_else(|| self.prompt(id).map(|prompt| prompt.callable()))
    }

    /// The servers with visible tools, and those that might have some but are down, starting or switched off. Their
    /// `tools` counts visible ones.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The visible tool with this id, or that once had it.
    #[must_use]
    pub fn get(&self, id: &ToolId) -> Option<&Arc<Tool>> {
        catalogue::find_tool(&self.tools, id)
    }

    /// What the definitions of the visible tools together cost in a model's context, in estimated tokens: what the
    /// manifest replaces.
    #[must_use]
    pub fn schema_tokens(&self) -> usize {
        catalogue::schema_tokens(&self.tools)
    }

    /// The visible tools of one server, by name.
    #[must_use]
    pub fn tools_of(&self, server: &str) -> &[Arc<Tool>] {
        tools_of(&self.tools, server)
    }
}

/// The run of one server's tools in a list that is sorted by server.
fn tools_of<'a>(tools: &'a [Arc<Tool>], server: &str) -> &'a [Arc<Tool>] {
    let start = tools.partition_point(|tool| tool.id().server() < server);
    let length = tools[start..].partition_point(|tool| tool.id().server() == server);
    &tools[start..start + length]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ExternalSettings, Listing, external_part};
    use serde_json::json;

    fn catalogue() -> Catalogue {
        let part = |name: &str, tools: &[&str]| {
            let tools = tools.iter().map(|tool| json!({ "name": tool })).collect();
            let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
            external_part(name, &ExternalSettings::default(), &listing)
        };
        let down = |name| {
            let listing = Listing::without_tools(Health::Down("gone".into()));
            external_part(name, &ExternalSettings::default(), &listing)
        };
        Catalogue::merge(&[
            part("files", &["read", "delete_all", "user-profile/update"]),
            part("web", &["search"]),
            down("mail"),
        ])
    }

    fn seen(profile: Profile) -> (Vec<String>, Vec<String>) {
        let view = Scope::new(&[], &profile).unwrap().view(&catalogue());
        (
            view.tools().iter().map(|tool| tool.id().to_string()).collect(),
            view.servers().iter().map(|server| server.name.clone()).collect(),
        )
    }

    #[test]
    fn globs_over_ids() {
        for (globs, id, matches) in [
            (&["files/*"][..], "files/user-profile/update", true),
            (&["*/delete_*"], "files/delete_all", true),
            (&["*/delete_*"], "files/read", false),
            (&["files/{read,write}"], "files/read", true),
            (&["file?/read"], "files/read", true),
            (&["FILES/*"], "files/read", false),
            (&["file*"], "files/read", true),
            (&["files/read"], "files/reader", false),
            (&["*"], "a/b", true),
        ] {
            let id = ToolId::parse(id).unwrap();
            assert_eq!(Filter::new(globs, &[]).unwrap().allows(&id), matches, "{globs:?} {id}");
            assert_eq!(Filter::new(&[], globs).unwrap().allows(&id), !matches, "deny {globs:?} {id}");
        }
    }

    #[test]
    fn bad_globs_are_all_named() {
        let error = Filter::new(&["web", "ok/*"], &["x/["]).unwrap_err();
        assert_eq!(error.0.len(), 2);
        assert!(error.to_string().contains("write `web/*`"), "{error}");
    }

    #[test]
    fn groups_and_filters_narrow_the_view() {
        assert_eq!(seen(Profile::new("a")).0.len(), 4);
        assert_eq!(seen(Profile::new("a").groups(["web"])).0, ["web/search"]);
        assert_eq!(seen(Profile::new("a").deny(["files/*"])).0, ["web/search"]);
        assert_eq!(
            seen(Profile::new("a").allow(["files/*"]).deny(["*/delete_*"])).0,
            ["files/read", "files/user-profile/update"]
        );
    }

    #[test]
    fn a_server_that_is_down_is_named_only_where_its_tools_might_be_seen() {
        let names = |profile| seen(profile).1;
        assert_eq!(names(Profile::new("a")), ["files", "mail", "web"]);
        assert_eq!(names(Profile::new("a").groups(["web"])), ["web"]);
        assert_eq!(names(Profile::new("a").deny(["mail/*"])), ["files", "web"]);
        assert_eq!(names(Profile::new("a").deny(["mail/send"])), ["files", "mail", "web"]);
        assert_eq!(names(Profile::new("a").allow(["web/*"])), ["web"]);
        assert_eq!(names(Profile::new("a").allow(["ma*/send"])), ["mail"]);
        assert_eq!(names(Profile::new("a").deny(["{mail/*,web/*}"])), ["files"]);
        assert_eq!(names(Profile::new("a").deny(["{mail,we{b,c}}/*"])), ["files"]);
    }
}
