//! Judges what was written. A check reports everything it knows and emits nothing; what passes becomes a value of
//! [`model`](crate::model).

mod args;
mod destination;
pub(crate) mod name;
pub(crate) mod server;
pub(crate) mod signature;
mod uri;

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens as _;
use syn::{Attribute, Meta};

use crate::diag::{Errors, codes};
use crate::model::{Callable, Description, Role, Whole};
use crate::parse::attr::{CallableOptions, Kind};
use crate::parse::item::{Function, hidden, kind};
use crate::parse::source::Place;

/// The longest description, in characters: what OpenAI takes of a function's.
const MAX_DESCRIPTION: usize = 1024;

/// Where something stands that is published.
#[derive(Debug)]
pub(crate) enum Home {
    /// On its own; its server is the package, unless it says otherwise.
    Package(Place),
    /// In an `impl` with `#[mcp_server]`.
    Impl { server: String },
    /// In a module with `#[mcp_server]`.
    Module { server: String },
}

impl Home {
    fn server(&self) -> Option<&str> {
        match self {
            Self::Package(_) => None,
            Self::Impl { server } | Self::Module { server } => Some(server),
        }
    }
}

/// Judges one function that is published. `None` where something is wrong, which has then been reported.
pub(crate) fn callable(
    kind: Kind,
    function: &Function,
    options: &CallableOptions,
    home: &Home,
    errors: &mut Errors,
) -> Option<Callable> {
    let ident = &function.signature.ident;
    attributes(kind, function, home, errors);
    signature::check(kind, function, home, errors);
    let (takes_context, arguments) = args::check(kind, function, options, errors);
    let role = role(kind, function, options, home, arguments.as_deref(), errors);
    let is_whole = args::are_whole(kind, function, options.schema.is_some());
    let description = description(kind, function, is_whole, errors);
    let name = name::callable(ident, options.name.as_ref(), errors);
    let alias = alias(name.as_deref(), options, errors);
    hints(options, errors);
    let egress = egress(options, arguments.as_deref(), errors);
    if let Home::Package(place) = home {
        beside(ident, place, errors);
    }
    let server = server(options, home, errors);
    if let (Some(server), Some(name)) = (&server, &name) {
        name::whole(server, name, options.name.as_ref(), ident, errors);
    }
    if options.keys.lacks("tier", kind.keys()) {
        let what = format!("{} `{ident}` has no tier", kind.noun());
        errors.push(at(function, options, home), &codes::NO_TIER, what);
    }

    Some(Callable {
        role: role?,
        ident: ident.clone(),
        visibility: function.visibility.clone(),
        conditions: function.conditions(),
        deprecated: is_deprecated(&function.attributes),
        server,
        name: name?,
        title: options.title.as_ref().map(syn::LitStr::value),
        description: description?,
        tier: options.tier.clone()?,
        group: options.group.clone(),
        read_only: options.read_only,
        destructive: options.destructive,
        idempotent: options.idempotent,
        open_world: options.open_world,
        timeout: options.timeout,
        hot: options.hot,
        alias,
        egress,
        is_async: function.signature.asyncness.is_some(),
        in_impl: matches!(home, Home::Impl { .. }),
        takes_self: function.signature.receiver().is_some(),
        takes_context,
        whole: whole(options, arguments.as_deref()?),
        arguments: arguments?.into_iter().map(|(argument, _)| argument).collect(),
        output: signature::output(&function.signature),
    })
}

/// Whether attributes say that something is deprecated, or that such a thing may be used.
pub(crate) fn is_deprecated(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("allow") || list.path.is_ident("expect") => {
            list.tokens.clone().into_iter().any(|tree| tree.to_string() == "deprecated")
        }
        meta => meta.path().is_ident("deprecated") || hidden(attribute, &["deprecated"]).is_some(),
    })
}

/// Beside a free function stands a type, which must not hide another.
fn beside(ident: &Ident, place: &Place, errors: &mut Errors) {
    if let Some(keyword) = &place.namesake {
        let what = format!("the {} `{ident}` stands beside this function", noun(keyword));
        errors.push(ident, &codes::NAMESAKE, what);
    } else if name::is_primitive(ident) {
        let what = format!("the type beside this function would hide the primitive `{ident}`");
        errors.push(ident, &codes::PRIMITIVE, what);
    }
}

/// The word for what a keyword makes.
fn noun(keyword: &str) -> &str {
    if keyword == "mod" { "module" } else { keyword }
}

fn whole(options: &CallableOptions, arguments: &[args::Judged<'_>]) -> Option<Whole> {
    let flattened =
        || arguments.iter().any(|(argument, _)| argument.flatten.is_some()).then_some(Whole::Flattened);
    options.schema.clone().map(Whole::Own).or_else(flattened)
}

/// The old name of a tool.
fn alias(name: Option<&str>, options: &CallableOptions, errors: &mut Errors) -> Option<String> {
    let literal = options.alias.as_ref()?;
    let alias = name::literal("alias", literal, errors)?;
    if name == Some(alias.as_str()) {
        errors.push(literal, &codes::ALIAS, format!("`{alias}` is the tool's own name"));
        return None;
    }
    Some(alias)
}

/// Hints that contradict each other.
fn hints(options: &CallableOptions, errors: &mut Errors) {
    if let (Some(true), Some(true)) = (options.read_only, options.destructive)
        && let (Some(first), Some(second)) = (options.keys.get("read_only"), options.keys.get("destructive"))
    {
        errors.push_pair(second, first, &codes::CONTRADICTION, "what only reads destroys nothing");
    }
}

/// The hosts that the URLs of a call may name.
fn egress(
    options: &CallableOptions,
    arguments: Option<&[args::Judged<'_>]>,
    errors: &mut Errors,
) -> Vec<String> {
    for host in &options.egress {
        let value = host.value();
        if !name::is_host(&value) {
            errors.push(host, &codes::HOST, format!("`{}` is no host", value.escape_debug()));
        }
    }
    // What a schema of its own, or that of a struct, says of URLs is read when the program runs.
    let may_be_url = |(argument, _): &args::Judged<'_>| argument.url || argument.flatten.is_some();
    let has_url =
        options.schema.is_some() || arguments.is_none_or(|arguments| arguments.iter().any(may_be_url));
    if let Some(key) = options.keys.get("egress").filter(|_| !has_url) {
        let (what, help) = ("`egress` limits URLs, and there are none", "mark the argument: `#[arg(url)]`");
        errors.push_with_help(key, &codes::HOST, what, help);
    }
    options.egress.iter().map(syn::LitStr::value).collect()
}

/// Where an option is missing: at the attribute's name, or at the options beside which it would stand, where the name is
/// not among a macro's input.
fn at(function: &Function, options: &CallableOptions, home: &Home) -> TokenStream {
    let attribute = function.published.first().filter(|_| !matches!(home, Home::Package(_)));
    match attribute.and_then(|attribute| attribute.path().segments.last()) {
        Some(name) => name.ident.to_token_stream(),
        None => options.tokens.clone(),
    }
}

/// What the kind alone has.
fn role(
    kind: Kind,
    function: &Function,
    options: &CallableOptions,
    home: &Home,
    arguments: Option<&[args::Judged<'_>]>,
    errors: &mut Errors,
) -> Option<Role> {
    match kind {
        Kind::Tool => Some(Role::Tool),
        Kind::Prompt => Some(Role::Prompt),
        Kind::Resource => {
            if options.keys.lacks("uri", kind.keys()) {
                let what = format!("resource `{}` has no URI", function.signature.ident);
                errors.push(at(function, options, home), &codes::NO_URI, what);
            }
            uri::mime_type(options, errors);
            let literal = options.uri.as_ref()?;
            let variables = uri::variables(literal, errors)?;
            uri::size(options, &variables, errors);
            let is_right = uri::agrees(literal, &variables, arguments?, errors);
            is_right.then(|| Role::Resource {
                uri: literal.value(),
                mime_type: options.mime_type.as_ref().map(syn::LitStr::value),
                size: options.size,
            })
        }
    }
}

/// Whether a function shows by itself that it stands in an `impl` or a `trait`.
pub(crate) fn is_method(function: &Function) -> bool {
    !function.has_body()
        || function.signature.receiver().is_some()
        || signature::self_type(&function.signature).is_some()
}

/// Attributes that cannot stand beside the one that publishes: another of its kind, and those that turn a function into
/// an entry point.
fn attributes(kind: Kind, function: &Function, home: &Home, errors: &mut Errors) {
    let own = kind.attribute();
    // A free function's first attribute is the one being expanded, and not among its attributes.
    let skipped = if matches!(home, Home::Package(_)) { 0 } else { 1 };
    for second in function.published.iter().skip(skipped) {
        let what = match self::kind(second).map(Kind::attribute) {
            Some(other) if other != own => format!("`#[{other}]` cannot stand beside `#[{own}]`"),
            _ => format!("`#[{own}]` is given twice"),
        };
        errors.push(second.path(), &codes::CONFLICTING, what);
    }
    for attribute in &function.attributes {
        let Some(last) = attribute.path().segments.last() else { continue };
        if last.ident == "test" || last.ident == "main" || last.ident == "bench" {
            let path = attribute.path().to_token_stream().to_string().replace(' ', "");
            let what = format!("`#[{path}]` cannot stand beside `#[{own}]`");
            errors.push(attribute.path(), &codes::CONFLICTING, what);
        }
    }
}

fn server(options: &CallableOptions, home: &Home, errors: &mut Errors) -> Option<String> {
    let Some(server) = home.server() else {
        return options.server.as_ref().and_then(|literal| name::literal("server", literal, errors));
    };
    for key in ["server", "crate"] {
        if let Some(key) = options.keys.get(key) {
            errors.push_with_help(
                key,
                &codes::OTHER_ATTRIBUTE,
                format!("`{key}` belongs to a free function"),
                "say it on the `#[mcp_server]` around this function",
            );
        }
    }
    Some(server.to_owned())
}

/// What the doc comment says. Where one value is all arguments, what it says of them is of the value's parts, and stays.
fn description(kind: Kind, function: &Function, is_whole: bool, errors: &mut Errors) -> Option<Description> {
    let noun = kind.noun();
    let (ident, doc) = (&function.signature.ident, &function.doc);
    let text = if is_whole { &doc.whole } else { &doc.text };
    if !doc.present {
        errors.push(ident, &codes::NO_DESCRIPTION, format!("{noun} `{ident}` has no description"));
        return None;
    }
    if doc.computed {
        return Some(doc.into());
    }
    if text.is_empty() {
        let what = format!("the description of {noun} `{ident}` is empty");
        errors.push(&doc.tokens, &codes::PLACEHOLDER, what);
        return None;
    }
    if letters(text) == letters(&ident.to_string()) || is_placeholder(text) {
        let what = format!("the description of {noun} `{ident}` says nothing");
        errors.push(&doc.tokens, &codes::PLACEHOLDER, what);
        return None;
    }
    let length = text.chars().count();
    if length > MAX_DESCRIPTION {
        let what = format!(
            "the description of {noun} `{ident}` has {length} characters, and {MAX_DESCRIPTION} are the most"
        );
        errors.push(&doc.tokens, &codes::LONG_DESCRIPTION, what);
        return None;
    }
    Some(Description::Text(text.clone()))
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// What stands where a description is still to be written, and how a longer one begins that says so, unless a sentence begins
/// with it. The runtime's lint has the same words.
const PLACEHOLDERS: &[&str] = &["todo", "fixme", "tbd", "xxx", "description", "loremipsum"];
const MARKS: &[&str] = &["TODO", "FIXME", "TBD", "XXX"];

/// Whether a text only holds the place of a description that is still to be written.
fn is_placeholder(text: &str) -> bool {
    let text = text.trim_start();
    let (first, rest) = text.split_at(text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len()));
    let goes_on = rest.trim_start().starts_with(char::is_alphanumeric);
    let said = letters(text);
    said.is_empty() || PLACEHOLDERS.contains(&said.as_str()) || (MARKS.contains(&first) && !goes_on)
}
