//! What a correct use of the macros means. Every value here has passed its checks.

use std::time::Duration;

use proc_macro2::Ident;
use syn::{Attribute, Expr, Path, Token, Type, Visibility};

use crate::parse::attr::{Kind, Range};
use crate::parse::doc::Doc;

/// A function as what it is published as: a tool, or a resource or prompt, which are called the same way.
#[derive(Debug)]
pub(crate) struct Callable {
    pub role: Role,
    pub ident: Ident,
    pub visibility: Visibility,
    /// The `cfg`s under which it exists.
    pub conditions: Vec<Attribute>,
    /// Whether it is deprecated, or what it takes and gives is and may be.
    pub deprecated: bool,
    /// Its server, where that is known here; otherwise it is the package.
    pub server: Option<String>,
    pub name: String,
    pub title: Option<String>,
    pub description: Description,
    pub tier: Ident,
    pub group: Option<Path>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
    pub timeout: Option<Duration>,
    pub hot: bool,
    pub alias: Option<String>,
    pub egress: Vec<String>,
    pub is_async: bool,
    pub takes_self: bool,
    /// Whether it stands in an `impl`.
    pub in_impl: bool,
    pub takes_context: bool,
    pub arguments: Vec<Argument>,
    /// Whether there is one argument, which is all of them.
    pub whole: Option<Whole>,
    /// `None` is `()`.
    pub output: Option<Type>,
}

/// How the schema of an argument comes about that is the whole object.
#[derive(Debug)]
pub(crate) enum Whole {
    /// The author wrote it, in this constant.
    Own(Path),
    /// It is the type's.
    Flattened,
}

/// What only one kind has.
#[derive(Debug)]
pub(crate) enum Role {
    Tool,
    Resource { uri: String, mime_type: Option<String>, size: Option<u64> },
    Prompt,
}

impl Role {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Tool => Kind::Tool,
            Self::Resource { .. } => Kind::Resource,
            Self::Prompt => Kind::Prompt,
        }
    }
}

/// A doc comment; empty where there is none.
#[derive(Debug)]
pub(crate) enum Description {
    Text(String),
    /// The values of doc attributes, of which one is a macro that only rustc can read.
    Computed(Vec<Expr>),
}

impl From<&Doc> for Description {
    fn from(doc: &Doc) -> Self {
        if doc.computed { Self::Computed(doc.parts.clone()) } else { Self::Text(doc.text.clone()) }
    }
}

/// A parameter that stands in the schema.
#[derive(Debug)]
pub(crate) struct Argument {
    pub name: String,
    pub ty: Type,
    pub description: Description,
    pub default: Option<Expr>,
    pub range: Option<Range>,
    pub length: Option<Range>,
    pub pattern: Option<String>,
    pub example: Option<Expr>,
    pub url: bool,
    /// Said to be no URL, though it is called like one.
    pub free: bool,
    pub path: bool,
    pub secret: bool,
    pub header: Option<String>,
    pub complete: Option<Expr>,
    /// The option that makes it the whole object.
    pub flatten: Option<Ident>,
}

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    pub home: ServerHome,
    pub name: String,
    pub title: Option<String>,
    pub description: Description,
    pub instructions: Option<String>,
    pub group: Option<Path>,
    /// Whether its type is deprecated, as far as its block says it.
    pub deprecated: bool,
    /// In source order, of all kinds.
    pub callables: Vec<Callable>,
}

/// Where a server's tools stand.
#[derive(Debug)]
pub(crate) enum ServerHome {
    /// `impl` of this type, whose last segment is the identifier.
    Impl(Token![impl], Box<Type>, Ident),
    /// In this module.
    Module(Ident),
}
