//! The options of the attributes. A new option is a key in the list, a field, and an arm that says how its value is
//! read.

use std::time::Duration;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::{ToTokens as _, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, ExprLit, ExprRange, Ident, Lit, LitStr, Meta, Path, RangeLimits, Token, parenthesized,
};

use crate::diag::codes::{self, Code};
use crate::diag::{Errors, suggest};
use crate::path::CratePath;

/// Options of `#[mcp_tool(…)]`.
pub(crate) const TOOL_KEYS: &[&str] = &[
    "tier",
    "group",
    "name",
    "title",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "timeout",
    "server",
    "hot",
    "alias",
    "egress",
    "schema",
    "crate",
];

/// Options of `#[mcp_resource(…)]`.
pub(crate) const RESOURCE_KEYS: &[&str] =
    &["uri", "tier", "group", "name", "title", "mime_type", "size", "timeout", "server", "crate"];

/// Options of `#[mcp_prompt(…)]`.
pub(crate) const PROMPT_KEYS: &[&str] = &["tier", "group", "name", "title", "timeout", "server", "crate"];

/// What a function is published as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Resource,
    Prompt,
}

impl Kind {
    /// The kind whose attribute has this name.
    pub(crate) fn of(attribute: &Ident) -> Option<Self> {
        [Self::Tool, Self::Resource, Self::Prompt].into_iter().find(|kind| attribute == kind.attribute())
    }

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "mcp_tool",
            Self::Resource => "mcp_resource",
            Self::Prompt => "mcp_prompt",
        }
    }

    /// The word for it in a sentence.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    /// The help where the attribute is on something else.
    pub(crate) fn on_a_function(self) -> String {
        let (own, noun) = (self.attribute(), self.noun());
        format!("put `#[{own}]` on a function; for a group of {noun}s put `#[mcp_server]` on the `impl`")
    }

    pub(crate) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Tool => TOOL_KEYS,
            Self::Resource => RESOURCE_KEYS,
            Self::Prompt => PROMPT_KEYS,
        }
    }
}

/// Options of `#[mcp_server(…)]`.
pub(crate) const SERVER_KEYS: &[&str] = &["name", "group", "title", "instructions", "crate"];

/// Options of `#[arg(…)]`.
pub(crate) const ARG_KEYS: &[&str] = &[
    "default", "range", "length", "pattern", "example", "name", "url", "path", "secret", "header",
    "complete", "flatten",
];

/// One option as it was written.
#[derive(Debug)]
pub(crate) struct Written {
    pub key: Ident,
    pub value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    /// `key`
    Absent,
    /// `key = …`
    Equals(Expr),
    /// `key(…)`
    List(TokenStream),
    /// What follows the key is no value.
    Unread { at: TokenStream, why: String },
}

/// Which keys an attribute has, so that "absent" can be told from "there, but wrong".
#[derive(Debug, Default)]
pub(crate) struct Keys {
    given: Vec<Ident>,
    /// The words of what could not be read.
    lost: Vec<Ident>,
    /// Whether nothing of it could be read.
    unread: bool,
}

impl Keys {
    pub(crate) fn get(&self, key: &str) -> Option<&Ident> {
        self.given.iter().find(|ident| ident.unraw() == key)
    }

    /// All of them, in the order in which they were written.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Ident> {
        self.given.iter()
    }

    /// Whether a key is missing, and not merely misspelt, unreadable, or there by its value alone.
    pub(crate) fn lacks(&self, key: &str, known: &[&str]) -> bool {
        let means = |ident: &Ident| {
            let name = ident.unraw().to_string();
            suggest::closest(&name, known) == Some(key) || (key == "tier" && TIERS.contains(&name.as_str()))
        };
        !self.unread && !self.given.iter().chain(&self.lost).any(means)
    }
}

/// The values of `tier`.
const TIERS: [&str; 3] = ["Standard", "Elevated", "Restricted"];

/// What follows an attribute's name where it is written as it should be.
fn example(attribute: &str) -> &'static str {
    match attribute {
        "mcp_resource" => "uri = \"notes://today\", tier = Standard",
        "mcp_server" => "name = \"web\"",
        "arg" => "default = 5",
        _ => "tier = Standard",
    }
}

/// Options of what is published: of `#[mcp_tool(…)]`, `#[mcp_resource(…)]` or `#[mcp_prompt(…)]`.
#[derive(Debug, Default)]
pub(crate) struct CallableOptions {
    pub keys: Keys,
    /// All of them, to point at.
    pub tokens: TokenStream,
    pub tier: Option<Ident>,
    pub group: Option<Path>,
    pub name: Option<LitStr>,
    pub title: Option<LitStr>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
    pub timeout: Option<Duration>,
    pub server: Option<LitStr>,
    pub hot: bool,
    pub alias: Option<LitStr>,
    pub egress: Vec<LitStr>,
    pub schema: Option<Path>,
    pub uri: Option<LitStr>,
    pub mime_type: Option<LitStr>,
    pub size: Option<u64>,
    pub krate: Option<Path>,
}

impl CallableOptions {
    pub(crate) fn parse(kind: Kind, tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self { tokens: tokens.clone(), ..Self::default() };
        for written in written(kind.attribute(), kind.keys(), tokens, &mut options.keys, errors) {
            let Written { key, value } = written;
            match key.unraw().to_string().as_str() {
                key_of_others if !kind.keys().contains(&key_of_others) => match tier_of(&value) {
                    // What is called otherwise is not missing as well.
                    Some(tier) if !is_of_another(kind.attribute(), key_of_others) => {
                        options.keys.lost.push(Ident::new(tier, key.span()));
                        let what = format!("unknown option `{key_of_others}` for `#[{}]`", kind.attribute());
                        let help = format!("write `tier = {tier}`");
                        errors.push_with_help(&key, &codes::UNKNOWN_OPTION, what, help);
                    }
                    _ => unknown(kind.attribute(), kind.keys(), &key, errors),
                },
                "tier" => options.tier = word(&key, value, errors),
                "group" => options.group = path(&key, value, "groups::RESEARCH", &codes::WRONG_VALUE, errors),
                "name" => options.name = text(&key, value, "fetch_page", errors),
                "title" => options.title = text(&key, value, "Fetch a page", errors),
                "read_only" => options.read_only = flag(&key, value, errors),
                "destructive" => options.destructive = flag(&key, value, errors),
                "idempotent" => options.idempotent = flag(&key, value, errors),
                "open_world" => options.open_world = flag(&key, value, errors),
                "timeout" => options.timeout = duration(&key, value, errors),
                "server" => options.server = text(&key, value, "calculator", errors),
                "hot" => options.hot = flag(&key, value, errors).unwrap_or_default(),
                "alias" => options.alias = text(&key, value, "fetch", errors),
                "egress" => options.egress = hosts(&key, value, errors),
                "schema" => options.schema = path(&key, value, "SCHEMA", &codes::WRONG_VALUE, errors),
                "uri" => options.uri = text(&key, value, "notes://{id}", errors),
                "mime_type" => options.mime_type = text(&key, value, "text/plain", errors),
                "size" => options.size = size(&key, value, errors),
                "crate" => options.krate = crate_path(&key, value, errors),
                _ => unknown(kind.attribute(), kind.keys(), &key, errors),
            }
        }
        options
    }

    /// The options of a method's own attribute.
    pub(crate) fn of(kind: Kind, attribute: &Attribute, errors: &mut Errors) -> Self {
        match list(attribute, kind.attribute(), errors) {
            Some(tokens) => Self::parse(kind, tokens, errors),
            None => Self { keys: Keys { unread: true, ..Keys::default() }, ..Self::default() },
        }
    }

    pub(crate) fn krate(&self) -> CratePath {
        CratePath::new(self.krate.as_ref())
    }
}

#[derive(Debug, Default)]
pub(crate) struct ServerOptions {
    pub keys: Keys,
    pub name: Option<LitStr>,
    pub group: Option<Path>,
    pub title: Option<LitStr>,
    pub instructions: Option<LitStr>,
    pub krate: Option<Path>,
}

impl ServerOptions {
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        for written in written("mcp_server", SERVER_KEYS, tokens, &mut options.keys, errors) {
            let Written { key, value } = written;
            match key.unraw().to_string().as_str() {
                "name" => options.name = text(&key, value, "web", errors),
                "group" => options.group = path(&key, value, "groups::RESEARCH", &codes::WRONG_VALUE, errors),
                "title" => options.title = text(&key, value, "The web", errors),
                "instructions" => {
                    options.instructions = text(&key, value, "Search first, then read.", errors);
                }
                "crate" => options.krate = crate_path(&key, value, errors),
                _ => unknown("mcp_server", SERVER_KEYS, &key, errors),
            }
        }
        options
    }

    pub(crate) fn krate(&self) -> CratePath {
        CratePath::new(self.krate.as_ref())
    }

    /// The same inside of the server's module, and what must stand there for it.
    pub(crate) fn krate_inside(&self) -> (CratePath, TokenStream) {
        CratePath::inside(self.krate.as_ref())
    }
}

/// `#[arg(…)]` on a parameter.
#[derive(Debug, Default)]
pub(crate) struct ArgOptions {
    pub keys: Keys,
    pub default: Option<Expr>,
    pub range: Option<Range>,
    pub length: Option<Range>,
    pub pattern: Option<LitStr>,
    pub example: Option<Expr>,
    pub name: Option<LitStr>,
    /// `None` leaves it to the parameter's name and type.
    pub url: Option<bool>,
    pub path: bool,
    pub secret: bool,
    pub header: Option<LitStr>,
    pub complete: Option<Expr>,
    pub flatten: bool,
}

/// The bounds of `range(a..=b)`.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub minimum: Option<Expr>,
    pub maximum: Option<Expr>,
}

impl ArgOptions {
    pub(crate) fn parse(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut options = Self::default();
        for attribute in attributes {
            let Some(tokens) = list(attribute, "arg", errors) else { continue };
            for written in written("arg", ARG_KEYS, tokens, &mut options.keys, errors) {
                let Written { key, value } = written;
                match key.unraw().to_string().as_str() {
                    "default" => options.default = expression(&key, value, errors),
                    "range" => options.range = range(&key, value, "range(1..=20)", errors),
                    "length" => options.length = range(&key, value, "length(1..=200)", errors),
                    "pattern" => options.pattern = text(&key, value, "^[A-Z]{2}$", errors),
                    "example" => options.example = expression(&key, value, errors),
                    "name" => options.name = text(&key, value, "query", errors),
                    "url" => options.url = flag(&key, value, errors),
                    "path" => options.path = flag(&key, value, errors).unwrap_or_default(),
                    "secret" => options.secret = flag(&key, value, errors).unwrap_or_default(),
                    "header" => options.header = text(&key, value, "Region", errors),
                    "complete" => options.complete = suggestions(&key, value, errors),
                    "flatten" => options.flatten = flag(&key, value, errors).unwrap_or_default(),
                    _ => unknown("arg", ARG_KEYS, &key, errors),
                }
            }
        }
        options
    }
}

/// The tokens inside an attribute's parentheses.
fn list(attribute: &Attribute, name: &str, errors: &mut Errors) -> Option<TokenStream> {
    match &attribute.meta {
        Meta::Path(_) => Some(TokenStream::new()),
        Meta::List(list) => Some(list.tokens.clone()),
        Meta::NameValue(pair) => {
            let what = format!("the options of `#[{name}]` stand in parentheses");
            let help = format!("write `#[{name}({})]`", example(name));
            errors.push_with_help(pair.eq_token, &codes::SYNTAX, what, help);
            None
        }
    }
}

/// Splits the options, and reports those that are given twice. What cannot be read costs only itself.
fn written(
    attribute: &str,
    known: &[&str],
    tokens: TokenStream,
    keys: &mut Keys,
    errors: &mut Errors,
) -> Vec<Written> {
    let mut all = Vec::new();
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            all.extend(one(attribute, known, input, keys, errors)?);
            separator(known, input, keys, errors)?;
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        errors.syntax(error);
    }
    all.retain(|written: &Written| {
        let name = written.key.unraw().to_string();
        let Some(first) = keys.get(&name).cloned() else {
            keys.given.push(written.key.clone());
            return true;
        };
        if known.contains(&name.as_str()) {
            let what = format!("`{name}` is given twice");
            errors.push_pair(&written.key, first, &codes::GIVEN_TWICE, what);
        } else {
            unknown(attribute, known, &written.key, errors);
        }
        false
    });
    all
}

/// Reads one option. What stands where its name should be is reported here; what stands where its value should be, with
/// what the value would have been, by whoever knows the key.
fn one(
    attribute: &str,
    known: &[&str],
    input: ParseStream<'_>,
    keys: &mut Keys,
    errors: &mut Errors,
) -> syn::Result<Option<Written>> {
    if !input.peek(Ident::peek_any) {
        let found = input.fork().parse::<TokenTree>()?;
        let what = format!("expected an option, found {}", quoted(&found));
        let help = match (&found, attribute) {
            (TokenTree::Literal(_), "mcp_tool" | "mcp_resource" | "mcp_prompt" | "mcp_server") => {
                format!("write `{}`; a description is a doc comment: `/// …`", example(attribute))
            }
            _ => format!("write `{}`", example(attribute)),
        };
        errors.push_with_help(&found, &codes::SYNTAX, what, help);
        lose(input, keys);
        return Ok(None);
    }
    let key = input.call(Ident::parse_any)?;
    let name = key.unraw();
    let value = if input.peek(Token![=]) {
        let equals: Token![=] = input.parse()?;
        value(&name, equals, input, keys)
    } else if input.peek(syn::token::Paren) {
        let content;
        parenthesized!(content in input);
        Value::List(content.parse()?)
    } else if input.is_empty() || input.peek(Token![,]) || input.peek(Token![;]) || is_known(input, known) {
        Value::Absent
    } else {
        let found = input.parse::<TokenTree>()?;
        let why = format!("expected `=` after `{name}`, found {}", quoted(&found));
        lose(input, keys);
        Value::Unread { at: found.into(), why }
    };
    Ok(Some(Written { key, value }))
}

fn value(name: &Ident, equals: Token![=], input: ParseStream<'_>, keys: &mut Keys) -> Value {
    if input.is_empty() || input.peek(Token![,]) || input.peek(Token![;]) {
        return Value::Unread { at: equals.to_token_stream(), why: format!("`{name}` has no value") };
    }
    let start = input.fork();
    let error = match input.parse::<Expr>() {
        Ok(value) => return Value::Equals(value),
        Err(error) => error,
    };
    lose(input, keys);
    // Where it breaks off there is no token to point at but the last one.
    let breaks_off = error.to_string().starts_with("unexpected end of input");
    let at = match tokens_to_comma(&start).pop().filter(|_| breaks_off) {
        Some(last) => last.into(),
        None => quote_spanned!(error.span()=> _),
    };
    Value::Unread { at, why: format!("the value of `{name}` cannot be read: {error}") }
}

/// Reads the comma between two options, or reports what stands in its place.
fn separator(
    known: &[&str],
    input: ParseStream<'_>,
    keys: &mut Keys,
    errors: &mut Errors,
) -> syn::Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        input.parse::<Option<Token![,]>>()?;
        return Ok(());
    }
    let follows = is_known(input, known);
    let found = if follows { input.fork().parse::<TokenTree>()? } else { input.parse::<TokenTree>()? };
    let what = format!("expected `,` between two options, found {}", quoted(&found));
    errors.push(&found, &codes::SYNTAX, what);
    if !follows && !matches!(&found, TokenTree::Punct(punct) if punct.as_char() == ';') {
        lose(input, keys);
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(())
}

/// Whether the next word is an option's name.
fn is_known(input: ParseStream<'_>, known: &[&str]) -> bool {
    let key = input.fork().call(Ident::parse_any);
    key.is_ok_and(|key| known.contains(&key.unraw().to_string().as_str()))
}

/// Passes over what cannot be read, up to the next comma, and keeps its words: what they were meant for is not missing.
fn lose(input: ParseStream<'_>, keys: &mut Keys) {
    for tree in tokens_to_comma(input) {
        if let TokenTree::Ident(word) = tree {
            keys.lost.push(word);
        }
    }
}

fn tokens_to_comma(input: ParseStream<'_>) -> Vec<TokenTree> {
    let mut tokens = Vec::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        let Ok(tree) = input.parse() else { break };
        tokens.push(tree);
    }
    tokens
}

/// A token as it is quoted in an error. A group is its brackets.
fn quoted(tree: &TokenTree) -> String {
    let text = match tree {
        TokenTree::Group(group) => match group.delimiter() {
            Delimiter::Parenthesis => "(…)".to_owned(),
            Delimiter::Brace => "{ … }".to_owned(),
            Delimiter::Bracket => "[…]".to_owned(),
            Delimiter::None => group.stream().to_string(),
        },
        other => other.to_string(),
    };
    format!("`{text}`")
}

/// Whether an option is known elsewhere, so that there is more to say of it than that it is unknown.
fn is_of_another(attribute: &str, name: &str) -> bool {
    [TOOL_KEYS, RESOURCE_KEYS, SERVER_KEYS, ARG_KEYS].iter().any(|keys| keys.contains(&name))
        || of_others(attribute, name).is_some()
}

fn unknown(attribute: &str, known: &[&str], key: &Ident, errors: &mut Errors) {
    let name = key.unraw().to_string();
    let of_other = match attribute {
        "mcp_tool" if SERVER_KEYS.contains(&name.as_str()) => {
            Some(("`#[mcp_server]`", "write what the tool does in its doc comment"))
        }
        "mcp_resource" | "mcp_prompt" if TOOL_KEYS.contains(&name.as_str()) => {
            Some(("`#[mcp_tool]`", "remove it, or make the function a tool"))
        }
        "mcp_tool" | "mcp_prompt" if RESOURCE_KEYS.contains(&name.as_str()) => {
            Some(("`#[mcp_resource]`", "remove it, or make the function a resource"))
        }
        "mcp_tool" | "mcp_resource" | "mcp_prompt" if ARG_KEYS.contains(&name.as_str()) => {
            Some(("`#[arg]`", "put `#[arg(…)]` on the parameter that it is about"))
        }
        "mcp_server" if TOOL_KEYS.contains(&name.as_str()) => {
            Some(("`#[mcp_tool]`", "put it on the tools that it is true of"))
        }
        _ => None,
    };
    if let Some((owner, help)) = of_other {
        errors.push_with_help(key, &codes::OTHER_ATTRIBUTE, format!("`{name}` belongs to {owner}"), help);
        return;
    }
    let what = format!("unknown option `{name}` for `#[{attribute}]`");
    if let Some(help) = of_others(attribute, &name) {
        errors.push_with_help(key, &codes::UNKNOWN_OPTION, what, help);
        return;
    }
    if known.contains(&"tier") && TIERS.contains(&name.as_str()) {
        errors.push_with_help(key, &codes::UNKNOWN_OPTION, what, format!("write `tier = {name}`"));
        return;
    }
    let legal = known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let mut help = format!("expected one of: {legal}");
    if let Some(meant) = suggest::closest(&name, known) {
        help.push_str(&format!("; did you mean `{meant}`?"));
    }
    errors.push_with_help(key, &codes::UNKNOWN_OPTION, what, help);
}

/// What other frameworks write as an option has its place in this one.
fn of_others(attribute: &str, name: &str) -> Option<&'static str> {
    if suggest::closest(name, &["description", "desc", "doc"]).is_some() {
        return Some("the description is the doc comment: write `/// …`");
    }
    match name {
        "min" | "max" | "minimum" | "maximum" if attribute == "arg" => {
            Some("write `range(1..=20)`, or `range(1..)` where one end is open")
        }
        "min_length" | "max_length" | "min_len" | "max_len" | "min_items" | "max_items"
            if attribute == "arg" =>
        {
            Some("write `length(1..=200)`, or `length(1..)` where one end is open")
        }
        "required" | "optional" if attribute == "arg" => {
            Some("remove it: an argument is required unless its type is an `Option` or it has a `default`")
        }
        "rename" if attribute == "arg" => Some("write `name = \"…\"`"),
        _ => None,
    }
}

/// Reports a value of the wrong kind, or none: at the value, or at the key where nothing follows it.
fn wrong(key: &Ident, value: &Value, code: &Code, takes: &str, example: &str, errors: &mut Errors) {
    let name = key.unraw();
    let (what, help) = (format!("`{name}` takes {takes}"), format!("write `{example}`"));
    match value {
        Value::Absent => errors.push_with_help(key, code, what, help),
        Value::Equals(value) => errors.push_with_help(value, code, what, help),
        Value::List(tokens) if tokens.is_empty() => errors.push_with_help(key, code, what, help),
        Value::List(tokens) => errors.push_with_help(tokens, code, what, help),
        Value::Unread { at, why } => errors.push_with_help(at, &codes::SYNTAX, why, help),
    }
}

/// An expression without the invisible groups that `macro_rules!` puts around what it was given.
pub(super) fn ungroup(mut expression: Expr) -> Expr {
    while let Expr::Group(group) = expression {
        expression = *group.expr;
    }
    expression
}

fn text(key: &Ident, value: Value, example: &str, errors: &mut Errors) -> Option<LitStr> {
    let value = match value {
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => return Some(text),
            other => Value::Equals(other),
        },
        other => other,
    };
    let example = format!("{} = \"{example}\"", key.unraw());
    wrong(key, &value, &codes::WRONG_VALUE, "a string literal", &example, errors);
    None
}

fn flag(key: &Ident, value: Value, errors: &mut Errors) -> Option<bool> {
    let value = match value {
        Value::Absent => return Some(true),
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Lit(ExprLit { lit: Lit::Bool(flag), .. }) => return Some(flag.value),
            other => Value::Equals(other),
        },
        other => other,
    };
    let example = format!("{0}` or `{0} = false", key.unraw());
    wrong(key, &value, &codes::WRONG_VALUE, "`true` or `false`", &example, errors);
    None
}

fn word(key: &Ident, value: Value, errors: &mut Errors) -> Option<Ident> {
    let value = match value {
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Path(path) if path.qself.is_none() && path.path.get_ident().is_some() => {
                return path.path.get_ident().cloned();
            }
            other => Value::Equals(other),
        },
        other => other,
    };
    let takes = "one of the words `Standard`, `Elevated`, `Restricted`";
    let meant = tier_of(&value).unwrap_or("Standard");
    wrong(key, &value, &codes::WRONG_VALUE, takes, &format!("tier = {meant}"), errors);
    None
}

/// The tier that a value is meant to be, in whatever form.
fn tier_of(value: &Value) -> Option<&'static str> {
    let meant = match value {
        Value::Equals(Expr::Path(path)) => path.path.segments.last()?.ident.to_string(),
        Value::Equals(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => text.value(),
        Value::List(tokens) => tokens.to_string().trim_matches('"').to_owned(),
        _ => return None,
    };
    TIERS.into_iter().find(|tier| meant.eq_ignore_ascii_case(tier))
}

fn path(key: &Ident, value: Value, example: &str, code: &Code, errors: &mut Errors) -> Option<Path> {
    let value = match value {
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Path(path) if path.qself.is_none() => return Some(path.path),
            other => Value::Equals(other),
        },
        other => other,
    };
    wrong(key, &value, code, "a path", &format!("{} = {example}", key.unraw()), errors);
    None
}

/// As [`path`], with an error of its own: whoever writes this option is writing a facade.
fn crate_path(key: &Ident, value: Value, errors: &mut Errors) -> Option<Path> {
    path(key, value, "my_facade::aster", &codes::CRATE_NOT_A_PATH, errors)
}

fn expression(key: &Ident, value: Value, errors: &mut Errors) -> Option<Expr> {
    match value {
        Value::Equals(expression) => Some(expression),
        other => {
            let example = format!("{} = 5", key.unraw());
            wrong(key, &other, &codes::WRONG_VALUE, "an expression", &example, errors);
            None
        }
    }
}

/// What is suggested for an argument: a function by its path, or a list.
fn suggestions(key: &Ident, value: Value, errors: &mut Errors) -> Option<Expr> {
    let value = match value {
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Array(list) if !list.elems.is_empty() => return Some(Expr::Array(list)),
            Expr::Path(path) => return Some(Expr::Path(path)),
            other => Value::Equals(other),
        },
        other => other,
    };
    let takes = "the path of a function, or a list of texts";
    wrong(key, &value, &codes::WRONG_VALUE, takes, "complete = [\"draft\", \"final\"]", errors);
    None
}

/// Hosts, each in quotes.
fn hosts(key: &Ident, value: Value, errors: &mut Errors) -> Vec<LitStr> {
    let example = "egress(\"api.example.com\", \"*.example.org\")";
    let takes = "the hosts that its URLs may name";
    let list = match &value {
        Value::List(tokens) => Punctuated::<LitStr, Token![,]>::parse_terminated.parse2(tokens.clone()).ok(),
        _ => None,
    };
    match list.filter(|hosts| !hosts.is_empty()) {
        Some(hosts) => hosts.into_iter().collect(),
        None => {
            wrong(key, &value, &codes::WRONG_VALUE, takes, example, errors);
            Vec::new()
        }
    }
}

fn size(key: &Ident, value: Value, errors: &mut Errors) -> Option<u64> {
    let value = match value {
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Lit(ExprLit { attrs, lit: Lit::Int(number) }) => {
                if let Ok(size) = number.base10_parse() {
                    return Some(size);
                }
                Value::Equals(Expr::Lit(ExprLit { attrs, lit: Lit::Int(number) }))
            }
            other => Value::Equals(other),
        },
        other => other,
    };
    wrong(key, &value, &codes::WRONG_VALUE, "a number of bytes", "size = 1024", errors);
    None
}

fn duration(key: &Ident, value: Value, errors: &mut Errors) -> Option<Duration> {
    let value = match value {
        Value::Equals(expression) => match ungroup(expression) {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                if let Some(duration) = read_duration(&text.value()) {
                    return Some(duration);
                }
                Value::Equals(Expr::Lit(ExprLit { attrs: Vec::new(), lit: Lit::Str(text) }))
            }
            other => Value::Equals(other),
        },
        other => other,
    };
    let takes = "a whole number above zero with the unit `ms`, `s` or `m`";
    wrong(key, &value, &codes::WRONG_VALUE, takes, "timeout = \"30s\"", errors);
    None
}

fn read_duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..unit].parse().ok().filter(|number| *number > 0)?;
    match &text[unit..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => number.checked_mul(1000).map(Duration::from_millis),
        "m" => number.checked_mul(60_000).map(Duration::from_millis),
        _ => None,
    }
}

fn range(key: &Ident, value: Value, example: &str, errors: &mut Errors) -> Option<Range> {
    if let Value::List(tokens) = &value
        && let Ok(Expr::Range(ExprRange { start, limits, end, .. })) =
            syn::parse2(tokens.clone()).map(ungroup)
    {
        // `1..20` would leave 20 out, which a reader of a schema's `maximum` does not expect.
        let open_end = matches!(limits, RangeLimits::HalfOpen(_)) && end.is_some();
        if !open_end && (start.is_some() || end.is_some()) {
            return Some(Range { minimum: start.map(|bound| *bound), maximum: end.map(|bound| *bound) });
        }
    }
    wrong(key, &value, &codes::WRONG_VALUE, "an inclusive range", example, errors);
    None
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    #[test]
    fn every_listed_key_is_read() {
        for kind in [Kind::Tool, Kind::Resource, Kind::Prompt] {
            for key in kind.keys() {
                let key = syn::parse_str::<TokenStream>(key).unwrap();
                let mut errors = Errors::default();
                CallableOptions::parse(kind, key, &mut errors);
                assert!(errors.into_vec().iter().all(|error| !error.to_string().contains("unknown option")));
            }
        }
        for key in SERVER_KEYS {
            let key = syn::parse_str::<TokenStream>(key).unwrap();
            let mut errors = Errors::default();
            ServerOptions::parse(key, &mut errors);
            assert!(errors.into_vec().iter().all(|error| !error.to_string().contains("unknown option")));
        }
    }

    #[test]
    fn what_cannot_be_read_costs_only_itself() {
        let mut errors = Errors::default();
        let options = CallableOptions::parse(
            Kind::Tool,
            quote!(tier = Standard, name = 3, 7 = 8, title = "T", timeout = "1h"),
            &mut errors,
        );
        assert_eq!(options.tier.unwrap(), "Standard");
        assert_eq!(options.title.unwrap().value(), "T");
        assert_eq!(errors.into_vec().len(), 3);
    }

    #[test]
    fn durations() {
        assert_eq!(read_duration("30s"), Some(Duration::from_secs(30)));
        assert_eq!(read_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(read_duration("2m"), Some(Duration::from_secs(120)));
        for bad in ["", "30", "s", "0s", "1.5s", "30 s", "-1s", "99999999999999999999s", "1h"] {
            assert_eq!(read_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_range_may_come_out_of_a_macro() {
        let range = TokenTree::Group(proc_macro2::Group::new(Delimiter::None, quote!(1..=5)));
        let mut errors = Errors::default();
        let options = ArgOptions::parse(&[syn::parse_quote!(#[arg(range(#range))])], &mut errors);
        assert!(errors.is_empty() && options.range.is_some());
    }
}
