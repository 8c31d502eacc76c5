//! What a correct use of the macros means. Every value here has passed its checks.

use std::time::Duration;

use proc_macro2::Ident;
use syn::{Attribute, Expr, Path, Type, Visibility};

use crate::parse::attr::Range;
use crate::parse::doc::Doc;

/// A tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub ident: Ident,
    pub visibility: Visibility,
    /// The `cfg`s under which it exists.
    pub conditions: Vec<Attribute>,
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
    pub is_async: bool,
    pub takes_self: bool,
    pub takes_context: bool,
    pub arguments: Vec<Argument>,
    /// `None` is `()`.
    pub output: Option<Type>,
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
    pub url: bool,
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
    pub tools: Vec<Tool>,
}

/// Where a server's tools stand.
#[derive(Debug)]
pub(crate) enum ServerHome {
    /// `impl` of this type, whose last segment is the identifier.
    Impl(Box<Type>, Ident),
    /// In this module.
    Module(Ident),
}
