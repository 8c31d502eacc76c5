//! The options of the attributes. A new option is a key in the list, a field, and an arm that says how its value is
//! read.

use std::time::Duration;

use proc_macro2::{TokenStream, TokenTree};
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
}

/// Which keys an attribute has, so that "absent" can be told from "there, but wrong".
#[derive(Debug, Default)]
pub(crate) struct Keys(Vec<Ident>);

impl Keys {
    pub(crate) fn get(&self, key: &str) -> Option<&Ident> {
        self.0.iter().find(|ident| *ident == key)
    }

    /// All of them, in the order in which they were written.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Ident> {
        self.0.iter()
    }

    /// Whether a key is missing, and not merely misspelt.
    pub(crate) fn lacks(&self, key: &str, known: &[&str]) -> bool {
        let means = |ident: &Ident| suggest::closest(&ident.unraw().to_string(), known) == Some(key);
        !self.0.iter().any(means)
    }
}

/// Options of what is published: of `#[mcp_tool(…)]`, `#[mcp_resource(…)]` or `#[mcp_prompt(…)]`.
#[derive(Debug, Default)]
pub(crate) struct CallableOptions {
    pub keys: Keys,
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
        let mut options = Self::default();
        for written in written(kind.attribute(), kind.keys(), tokens, &mut options.keys, errors) {
            let Written { key, value } = written;
            match key.unraw().to_string().as_str() {
                key_of_others if !kind.keys().contains(&key_of_others) => {
                    unknown(kind.attribute(), kind.keys(), &key, errors);
                }
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
        Self::parse(kind, list(attribute, errors), errors)
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
            for written in written("arg", ARG_KEYS, list(attribute, errors), &mut options.keys, errors) {
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
fn list(attribute: &Attribute, errors: &mut Errors) -> TokenStream {
    match &attribute.meta {
        Meta::Path(_) => TokenStream::new(),
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) => {
            errors.syntax(syn::Error::new(pair.eq_token.span, "expected options in parentheses"));
            TokenStream::new()
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
            match one(input) {
                Ok(written) => all.push(written),
                Err(error) => {
                    errors.syntax(error);
                    skip_to_comma(input);
                }
            }
            if input.is_empty() {
                break;
            }
            if let Err(error) = input.parse::<Token![,]>() {
                errors.syntax(error);
                skip_to_comma(input);
                let _ = input.parse::<Token![,]>();
            }
        }
        Ok(())
    };
    if let Err(error) = parser.parse2(tokens) {
        errors.syntax(error);
    }
    all.retain(|written: &Written| {
        let name = written.key.unraw().to_string();
        let Some(first) = keys.get(&name).cloned() else {
            keys.0.push(written.key.clone());
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

fn one(input: ParseStream<'_>) -> syn::Result<Written> {
    let key = input.call(Ident::parse_any)?;
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        return Ok(Written { key, value: Value::Equals(input.parse()?) });
    }
    if input.peek(syn::token::Paren) {
        let content;
        parenthesized!(content in input);
        return Ok(Written { key, value: Value::List(content.parse()?) });
    }
    Ok(Written { key, value: Value::Absent })
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
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
    let legal = known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let mut help = format!("expected one of: {legal}");
    if let Some(meant) = suggest::closest(&name, known) {
        help.push_str(&format!("; did you mean `{meant}`?"));
    }
    let what = format!("unknown option `{name}` for `#[{attribute}]`");
    errors.push_with_help(key, &codes::UNKNOWN_OPTION, what, help);
}

/// Reports a value of the wrong kind: at the value, or at the key where there is none.
fn wrong(key: &Ident, value: &Value, code: &Code, takes: &str, example: &str, errors: &mut Errors) {
    let name = key.unraw();
    let (what, help) = (format!("`{name}` takes {takes}"), format!("write `{example}`"));
    match value {
        Value::Absent => errors.push_with_help(key, code, what, help),
        Value::Equals(value) => errors.push_with_help(value, code, what, help),
        Value::List(tokens) if tokens.is_empty() => errors.push_with_help(key, code, what, help),
        Value::List(tokens) => errors.push_with_help(tokens, code, what, help),
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
    wrong(key, &value, &codes::WRONG_VALUE, takes, "tier = Standard", errors);
    None
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
        let range = TokenTree::Group(proc_macro2::Group::new(proc_macro2::Delimiter::None, quote!(1..=5)));
        let mut errors = Errors::default();
        let options = ArgOptions::parse(&[syn::parse_quote!(#[arg(range(#range))])], &mut errors);
        assert!(errors.is_empty() && options.range.is_some());
    }
}
