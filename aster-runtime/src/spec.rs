//! What the macros write down about a tool and a server at compile time: constant data without interior mutability,
//! so that a `const` catalogue may refer to it and `cargo check` may compare it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::str_eq;
use crate::tool::{Invocation, ServerEnv, ServerState, StartError, ToolError, ToolResult};

/// How far the effects of a call reach, and so what the gate asks of it.
///
/// The order is the order of strictness: a tier may be raised, never lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Runs at once, with a brief audit record.
    Standard,
    /// Runs at once, with arguments and result in the audit record. What an external tool is unless configured.
    Elevated,
    /// Stops for a human.
    Restricted,
}

impl Tier {
    /// The tier's name, lowercase, as it stands in `aster.yaml` and in the audit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Elevated => "elevated",
            Self::Restricted => "restricted",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The named family a tool belongs to: the unit in which agents are given tools. Made by [`groups!`](crate::groups)
/// alone, so that a group which nobody declared does not compile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(&'static str);

impl Group {
    /// The group's name: the constant's, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }

    #[doc(hidden)]
    #[must_use]
    pub const fn __declare(name: &'static str) -> Self {
        Self(name)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Declares groups as constants, to be used by path in `#[mcp_server(group = …)]` and `#[mcp_tool(group = …)]`.
///
/// ```
/// aster_runtime::groups! {
///     /// Finding things out.
///     pub RESEARCH,
///     pub DESKTOP,
/// }
/// assert_eq!(RESEARCH.name(), "research");
/// ```
#[macro_export]
macro_rules! groups {
    ($($(#[$meta:meta])* $vis:vis $name:ident),* $(,)?) => {$(
        $(#[$meta])*
        #[doc = concat!("The group `", stringify!($name), "`.")]
        $vis const $name: $crate::Group = {
            const LOWER: [u8; stringify!($name).len()] = $crate::__private::lowercase(stringify!($name));
            $crate::Group::__declare($crate::__private::ascii(&LOWER))
        };
    )*};
}

/// Hints about a tool's behaviour (MCP `ToolAnnotations`). `None` means unsaid, for which the specification's defaults
/// hold; they are claims for a client to show, and no substitute for the tier.
///
/// Source: MCP 2025-11-25, schema, `ToolAnnotations`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Does not change its environment.
    pub read_only: Option<bool>,
    /// May destroy something; meaningful where `read_only` is not `true`.
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// Reaches beyond a closed set of things, for example the public web.
    pub open_world: Option<bool>,
}

impl Annotations {
    /// Nothing said.
    pub const NONE: Self = Self { read_only: None, destructive: None, idempotent: None, open_world: None };
}

/// Where something was declared, for messages that name both ends of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The source file, as rustc names it.
    pub file: &'static str,
    /// The line, from 1.
    pub line: u32,
    /// The Cargo package.
    pub package: &'static str,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} (package {})", self.file, self.line, self.package)
    }
}

/// The future of a native call.
pub type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolResult, ToolError>> + Send>>;

/// The future that makes a native server's state.
pub type StartFuture = Pin<Box<dyn Future<Output = Result<ServerState, StartError>> + Send>>;

/// The most characters that a description may have: providers cut it off there, and all of it may stand in a manifest.
pub const MAX_DESCRIPTION: usize = 1024;

/// One native tool, as `#[mcp_tool]` writes it down.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    /// The server's name.
    pub server: &'static str,
    /// The tool's name on its server.
    pub name: &'static str,
    /// The name to show to people.
    pub title: Option<&'static str>,
    /// What it does and when to use it: the function's doc comment.
    pub description: &'static str,
    /// How far its effects reach.
    pub tier: Tier,
    /// The tool's own group; `None` is the server's.
    pub group: Option<Group>,
    /// Behaviour hints.
    pub annotations: Annotations,
    /// How long a call may take; `None` is the host's default.
    pub timeout: Option<Duration>,
    /// Listed first in a manifest, with its signature.
    pub hot: bool,
    /// A name that it had before: a call by it arrives, and rules that name it hold.
    pub alias: Option<&'static str>,
    /// The hosts that its URLs may name, `*.` before one for all below it; none is no limit of its own.
    pub egress: &'static [&'static str],
    /// The arguments that name a URL and so stand under egress.
    pub url_arguments: &'static [&'static str],
    /// The arguments that are called like a URL and are none.
    pub free_arguments: &'static [&'static str],
    /// The arguments that name a file or folder, for a host's hooks.
    pub path_arguments: &'static [&'static str],
    /// The arguments that no record shows.
    pub secret_arguments: &'static [&'static str],
    /// Whether one value is all arguments: which of them name a URL is then for its schema to say.
    pub whole: bool,
    /// Generates the input schema: an object, after the schema pass.
    pub input_schema: fn() -> Value,
    /// Generates the output schema, where the result has one.
    pub output_schema: fn() -> Option<Value>,
    /// Decodes the arguments and calls the function.
    pub call: fn(Invocation) -> ToolFuture,
    /// Where the function stands.
    pub location: Location,
}

impl ToolSpec {
    #[doc(hidden)]
    #[must_use]
    pub const fn entry(&'static self) -> Entry {
        Entry::Tool(self)
    }

    /// Itself: a free tool's constant stands wherever a variant of a server's tool enum does.
    #[must_use]
    pub const fn spec(&'static self) -> &'static Self {
        self
    }
}

/// Whether two of one server have a name in common, now or before.
pub(crate) const fn share_a_name(first: &ToolSpec, second: &ToolSpec) -> bool {
    const fn is_old(alias: Option<&str>, name: &str) -> bool {
        match alias {
            Some(alias) => str_eq(alias, name),
            None => false,
        }
    }
    str_eq(first.name, second.name)
        || is_old(first.alias, second.name)
        || is_old(second.alias, first.name)
        || match second.alias {
            Some(alias) => is_old(first.alias, alias),
            None => false,
        }
}

/// Suggests values for one argument of a resource template or prompt.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// The argument's name.
    pub argument: &'static str,
    /// The values for what has been typed.
    pub values: fn(&str) -> Vec<String>,
}

/// One native resource, as `#[mcp_resource]` writes it down: a callable like a tool, so that scope, gate and audit are the
/// same, which a client reads by URI.
#[derive(Debug, Clone, Copy)]
pub struct ResourceSpec {
    /// Id, tier, group, arguments and function. The arguments are the variables of the URI.
    pub callable: ToolSpec,
    /// The URI, or a template of URIs (RFC 6570).
    pub uri: &'static str,
    /// The type of what does not name its own.
    pub mime_type: Option<&'static str>,
    /// The size in bytes, where it is fixed.
    pub size: Option<u64>,
    /// What is suggested for variables.
    pub completions: &'static [Completion],
}

impl ResourceSpec {
    #[doc(hidden)]
    #[must_use]
    pub const fn entry(&'static self) -> Entry {
        Entry::Resource(self)
    }

    /// What it calls: where a tool is named by its path, such as in `raise { … }`, a resource is by its constant.
    #[must_use]
    pub const fn spec(&'static self) -> &'static ToolSpec {
        &self.callable
    }
}

/// One native prompt, as `#[mcp_prompt]` writes it down: a callable like a tool, which a user chooses.
#[derive(Debug, Clone, Copy)]
pub struct PromptSpec {
    /// Id, tier, group, arguments and function.
    pub callable: ToolSpec,
    /// What is suggested for arguments.
    pub completions: &'static [Completion],
}

impl PromptSpec {
    #[doc(hidden)]
    #[must_use]
    pub const fn entry(&'static self) -> Entry {
        Entry::Prompt(self)
    }

    /// What it calls; see [`ResourceSpec::spec`].
    #[must_use]
    pub const fn spec(&'static self) -> &'static ToolSpec {
        &self.callable
    }
}

/// One native server, as `#[mcp_server]` writes it down.
#[derive(Debug, Clone, Copy)]
pub struct ServerSpec {
    /// The server's name.
    pub name: &'static str,
    /// The name to show to people.
    pub title: Option<&'static str>,
    /// What it is for, in a line: the doc comment of the `impl` or `mod`.
    pub description: &'static str,
    /// What a client should know to use it well.
    pub instructions: Option<&'static str>,
    /// The group of what it has; `None` is a group named like the server.
    pub group: Option<Group>,
    /// Its tools, in source order.
    pub tools: &'static [ToolSpec],
    /// The tier of each of them, by its place: the server's `TIERS`, which is where a catalogue takes them from.
    pub tiers: fn() -> &'static [Tier],
    /// Its resources, in source order.
    pub resources: &'static [ResourceSpec],
    /// Its prompts, in source order.
    pub prompts: &'static [PromptSpec],
    /// Makes the state.
    pub start: fn(ServerEnv) -> StartFuture,
    /// Where it stands.
    pub location: Location,
}

impl ServerSpec {
    #[doc(hidden)]
    #[must_use]
    pub const fn entry(&'static self) -> Entry {
        Entry::Server(self)
    }
}

/// A type whose `impl` is a native server. `#[mcp_server]` implements it, and nothing else can; `HostBuilder` takes
/// such a value as the live state of its server.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a native server",
    label = "no `impl` of this type carries `#[mcp_server]`",
    note = "put `#[mcp_server]` on the inherent `impl` that holds the tools"
)]
pub trait NativeServer: Send + Sync + 'static {
    /// The server.
    const SPEC: &'static ServerSpec;

    #[doc(hidden)]
    fn __implemented_by_the_macro();
}

/// A tier that a catalogue raises, as `catalogue![…; raise { … }]` writes it down.
#[derive(Debug, Clone, Copy)]
pub struct Raise {
    /// The tool.
    pub tool: &'static ToolSpec,
    /// Its tier in this binary: not below the one that its attribute gives.
    pub tier: Tier,
}

/// One line of `catalogue![…]`, and one item of the inventory: a server, or what one free function is.
#[derive(Debug, Clone, Copy)]
pub enum Entry {
    /// A server and all that it has.
    Server(&'static ServerSpec),
    /// One free function that is a tool; free functions with the same server name make up that server.
    Tool(&'static ToolSpec),
    /// One that is a resource.
    Resource(&'static ResourceSpec),
    /// One that is a prompt.
    Prompt(&'static PromptSpec),
}

impl Entry {
    /// The server's name.
    #[must_use]
    pub const fn server(&self) -> &'static str {
        match self {
            Self::Server(server) => server.name,
            Self::Tool(tool) => tool.server,
            Self::Resource(resource) => resource.callable.server,
            Self::Prompt(prompt) => prompt.callable.server,
        }
    }

    /// Where it stands.
    #[must_use]
    pub const fn location(&self) -> Location {
        match self {
            Self::Server(server) => server.location,
            Self::Tool(tool) => tool.location,
            Self::Resource(resource) => resource.callable.location,
            Self::Prompt(prompt) => prompt.callable.location,
        }
    }

    /// What a free function is as a callable; `None` for a server.
    #[must_use]
    pub const fn free(&self) -> Option<&'static ToolSpec> {
        match self {
            Self::Server(_) => None,
            Self::Tool(tool) => Some(tool),
            Self::Resource(resource) => Some(&resource.callable),
            Self::Prompt(prompt) => Some(&prompt.callable),
        }
    }

    /// Whether both are the same declaration. Constants have no address to compare: each use may be a copy.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |entry: &Self| (entry.server(), entry.free().map(|free| free.name), entry.location());
        key(self) == key(other)
    }

    /// The tools it brings.
    #[must_use]
    pub const fn tools(&self) -> &'static [ToolSpec] {
        match self {
            Self::Server(server) => server.tools,
            Self::Tool(tool) => std::slice::from_ref(tool),
            _ => &[],
        }
    }

    /// The tier of the tool at this place of [`tools`](Self::tools): of a server `TIERS[at]`.
    #[must_use]
    pub fn tier(&self, at: usize) -> Option<Tier> {
        match self {
            Self::Server(server) => (server.tiers)().get(at).copied(),
            _ => self.tools().get(at).map(|tool| tool.tier),
        }
    }

    /// The resources it brings.
    #[must_use]
    pub const fn resources(&self) -> &'static [ResourceSpec] {
        match self {
            Self::Server(server) => server.resources,
            Self::Resource(resource) => std::slice::from_ref(resource),
            _ => &[],
        }
    }

    /// The prompts it brings.
    #[must_use]
    pub const fn prompts(&self) -> &'static [PromptSpec] {
        match self {
            Self::Server(server) => server.prompts,
            Self::Prompt(prompt) => std::slice::from_ref(prompt),
            _ => &[],
        }
    }

    /// The tools it brings, and what its resources and prompts call.
    pub(crate) fn callables(&self) -> impl Iterator<Item = &'static ToolSpec> {
        (0..).map_while(|at| self.callable(at))
    }

    /// One of the callables it brings, counted through tools, resources and prompts. They share one space of names.
    pub(crate) const fn callable(&self, at: usize) -> Option<&'static ToolSpec> {
        let (tools, resources, prompts) = (self.tools(), self.resources(), self.prompts());
        if at < tools.len() {
            Some(&tools[at])
        } else if at < tools.len() + resources.len() {
            Some(&resources[at - tools.len()].callable)
        } else if at < tools.len() + resources.len() + prompts.len() {
            Some(&prompts[at - tools.len() - resources.len()].callable)
        } else {
            None
        }
    }
}

#[cfg(feature = "inventory")]
inventory::collect!(Entry);
