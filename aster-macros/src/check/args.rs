//! The parameters of what is published: which one is the context, and what the others are called on the wire.

use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprCall, ExprLit, ExprUnary, GenericArgument, Ident, Lifetime, Lit, LitFloat, LitStr,
    Meta, Pat, Path, PathArguments, PathSegment, Type, TypePath, TypeReference, UnOp, parse_quote,
};

use super::signature::impl_trait;
use super::{destination, is_placeholder, name};
use crate::diag::{Errors, codes};
use crate::model::{Argument, Description};
use crate::parse::attr::{ArgOptions, CallableOptions, Kind, Range};
use crate::parse::item::{Function, Parameter, bare};

/// More than this, and a model fills them in badly.
const MAX_ARGUMENTS: usize = 16;

/// An argument with the tokens that its name was read from.
pub(super) type Judged<'a> = (Argument, Wire<'a>);

/// Whether the function takes the context, and its arguments, unless one of them is wrong.
pub(super) fn check<'a>(
    kind: Kind,
    function: &'a Function,
    of_tool: &CallableOptions,
    errors: &mut Errors,
) -> (bool, Option<Vec<Judged<'a>>>) {
    let has_schema = of_tool.schema.is_some();
    let (contexts, parameters): (Vec<_>, Vec<_>) =
        function.parameters.iter().enumerate().partition(|(_, parameter)| is_context(&parameter.ty));
    context(&contexts, errors);

    if let Some((_, first_too_many)) = parameters.get(MAX_ARGUMENTS) {
        let what = format!(
            "{} `{}` takes {} arguments, and {MAX_ARGUMENTS} are the most",
            kind.noun(),
            function.signature.ident,
            parameters.len()
        );
        errors.push(&first_too_many.pattern, &codes::TOO_MANY, what);
    }
    if has_schema {
        whole(function, &parameters, errors);
    }
    for option in &function.options_of_self {
        errors.push(option, &codes::OTHER_ATTRIBUTE, "`#[arg]` belongs on an argument, not on `self`");
    }

    // Every parameter is looked at, also after one that is wrong.
    let mut judged: Vec<Option<Judged<'_>>> = parameters
        .iter()
        .map(|(position, parameter)| {
            let may_be_context = *position == 0 && contexts.is_empty();
            let argument = argument(kind, parameter, may_be_context, of_tool, errors);
            flattened(kind, parameter, &parameters, argument.as_ref(), has_schema, errors);
            argument
        })
        .collect();
    let is_whole = are_whole(kind, function, has_schema);
    described(kind, function, is_whole, &mut judged, errors);
    let is_named = |(argument, _): &&Judged<'_>| !has_schema && argument.flatten.is_none();
    let named: Vec<&Judged<'_>> = judged.iter().flatten().filter(is_named).collect();
    for (at, (second, wire)) in named.iter().enumerate() {
        if let Some((_, first)) = named[..at].iter().find(|(first, _)| first.name == second.name) {
            let what = format!("two arguments are called `{}` on the wire", second.name);
            errors.push_pair(wire, first, &codes::SAME_ARGUMENT, what);
        }
    }
    same_headers(&parameters, errors);
    (!contexts.is_empty(), judged.into_iter().collect())
}

/// Whether one parameter is all of the arguments, also where something about it is wrong.
pub(super) fn are_whole(kind: Kind, function: &Function, has_schema: bool) -> bool {
    let flattens = |option: &Attribute| match &option.meta {
        Meta::List(list) => list.tokens.clone().into_iter().any(|tree| tree.to_string() == "flatten"),
        _ => false,
    };
    let mut options = function.parameters.iter().flat_map(|parameter| &parameter.options);
    has_schema || (kind == Kind::Tool && options.any(flattens))
}

/// With a schema of its own, a tool has one parameter, of which the schema says everything.
fn whole(function: &Function, parameters: &[(usize, &Parameter)], errors: &mut Errors) {
    match parameters {
        [(_, only)] => {
            if let Some(option) = only.options.first() {
                errors.push(option, &codes::OWN_SCHEMA, "`#[arg]` stands beside a schema of one's own");
            }
        }
        several => {
            let what = format!(
                "tool `{}` has a schema of its own, and {} parameters",
                function.signature.ident,
                several.len()
            );
            match several.get(1) {
                Some((_, second)) => errors.push(&second.pattern, &codes::OWN_SCHEMA, what),
                None => errors.push(&function.signature.ident, &codes::OWN_SCHEMA, what),
            }
        }
    }
}

/// A parameter that is the whole object stands alone, and is a struct as far as can be seen.
fn flattened(
    kind: Kind,
    parameter: &Parameter,
    all: &[(usize, &Parameter)],
    argument: Option<&Judged<'_>>,
    has_schema: bool,
    errors: &mut Errors,
) {
    let Some(key) = argument.and_then(|(argument, _)| argument.flatten.as_ref()) else { return };
    if has_schema {
        return;
    }
    if kind != Kind::Tool {
        let what = format!("`flatten` is no option of the arguments of a {}", kind.noun());
        let help = "remove it: the arguments of resources and prompts are texts, each with its name";
        errors.push_with_help(key, &codes::OTHER_ATTRIBUTE, what, help);
        return;
    }
    let of_parameter = ArgOptions::parse(&parameter.options, &mut Errors::default());
    if let Some(other) = of_parameter.keys.all().find(|other| *other != key) {
        let what = format!("`{other}` stands beside `flatten`");
        errors.push_with_help(other, &codes::FLATTEN, what, "say it on the fields of the struct");
    }
    if let Some((_, other)) = all.iter().find(|(_, other)| !std::ptr::eq(*other, parameter)) {
        errors.push(&other.pattern, &codes::FLATTEN, "another argument stands beside a flattened one");
    }
    if let Some(what) = no_struct(&parameter.ty) {
        let what = format!("{what} is not a struct that could be flattened");
        errors.push(&parameter.ty, &codes::FLATTEN, what);
    }
}

/// What a type is, where it shows that it is no struct.
fn no_struct(ty: &Type) -> Option<&'static str> {
    const SCALARS: [&str; 17] = [
        "String", "bool", "char", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64",
        "u128", "usize", "f32", "f64",
    ];
    match bare(ty) {
        Type::Tuple(_) => Some("a tuple"),
        Type::Array(_) | Type::Slice(_) => Some("an array"),
        Type::Path(path) => match path.path.segments.last()?.ident.to_string().as_str() {
            scalar if path.path.get_ident().is_some() && SCALARS.contains(&scalar) => Some("a single value"),
            "Vec" | "VecDeque" | "HashSet" | "BTreeSet" => Some("a list"),
            "Option" => Some("an `Option`"),
            _ => None,
        },
        _ => None,
    }
}

/// Gives the arguments what the doc comment's own section says of them.
fn described(
    kind: Kind,
    function: &Function,
    is_whole: bool,
    judged: &mut [Option<Judged<'_>>],
    errors: &mut Errors,
) {
    let is_parameter = |name: &str| {
        function.parameters.iter().any(|parameter| match &parameter.pattern {
            Pat::Ident(pattern) => pattern.ident == name,
            _ => false,
        })
    };
    // The parts of a value that is all arguments are not known here.
    if is_whole {
        return;
    }
    for item in &function.doc.arguments {
        let named = judged.iter_mut().flatten().find(|(argument, wire)| {
            argument.name == item.name || matches!(wire.parameter(), Some(ident) if *ident == item.name)
        });
        match named {
            Some((argument, wire)) => match &argument.description {
                Description::Text(text) if text.is_empty() => {
                    argument.description = Description::Text(item.text.clone());
                }
                _ => {
                    let what = format!("argument `{}` is described twice", item.name);
                    errors.push_at(item.at, &codes::DESCRIBED_TWICE, what);
                    errors.point(&*wire, "it has a doc comment of its own here");
                }
            },
            // The context, `self`, or an argument of which something else is wrong.
            None if is_parameter(&item.name) || item.name == "self" => {}
            None => {
                let what = format!(
                    "{} `{}` has no argument `{}`, which its doc comment describes",
                    kind.noun(),
                    function.signature.ident,
                    item.name
                );
                errors.push_at(item.at, &codes::DESCRIBED_NOTHING, what);
            }
        }
    }
}

/// Two arguments in one header.
fn same_headers(parameters: &[(usize, &Parameter)], errors: &mut Errors) {
    let headers: Vec<LitStr> = parameters
        .iter()
        // What is wrong with the options has been said.
        .filter_map(|(_, parameter)| ArgOptions::parse(&parameter.options, &mut Errors::default()).header)
        .collect();
    for (at, second) in headers.iter().enumerate() {
        let name = second.value();
        if let Some(first) = headers[..at].iter().find(|first| first.value().eq_ignore_ascii_case(&name)) {
            let what = format!("two arguments stand in the header `{}`", name.escape_debug());
            errors.push_pair(second, first, &codes::SAME_HEADER, what);
        }
    }
}

/// What an argument's name on the wire was read from.
pub(super) enum Wire<'a> {
    Pattern(&'a Pat),
    Literal(LitStr, &'a Pat),
}

impl Wire<'_> {
    /// The parameter's own name.
    fn parameter(&self) -> Option<&Ident> {
        match self {
            Self::Pattern(Pat::Ident(pattern)) | Self::Literal(_, Pat::Ident(pattern)) => {
                Some(&pattern.ident)
            }
            _ => None,
        }
    }
}

impl ToTokens for Wire<'_> {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        match (self, self.parameter()) {
            (Self::Literal(literal, _), _) => literal.to_tokens(tokens),
            // Without the `mut` before it.
            (Self::Pattern(_), Some(ident)) => ident.to_tokens(tokens),
            (Self::Pattern(pattern), None) => pattern.to_tokens(tokens),
        }
    }
}

/// Whether a type is `ToolContext`, however it is taken. By a path that says nothing of Aster's it is so where it is borrowed,
/// which an argument cannot be.
fn is_context(ty: &Type) -> bool {
    struct Search(bool);
    impl Visit<'_> for Search {
        fn visit_path(&mut self, path: &Path) {
            let is_own = |segment: &PathSegment| segment.ident.to_string().starts_with("aster");
            let is_it = path.segments.last().is_some_and(|last| last.ident == "ToolContext");
            self.0 |= is_it && (path.segments.len() == 1 || path.segments.iter().any(is_own));
            visit::visit_path(self, path);
        }
    }
    if let Type::Reference(reference) = bare(ty)
        && let Type::Path(path) = bare(&reference.elem)
        && path.path.segments.last().is_some_and(|last| last.ident == "ToolContext")
    {
        return true;
    }
    let mut search = Search(false);
    search.visit_type(ty);
    search.0
}

fn context(contexts: &[(usize, &Parameter)], errors: &mut Errors) {
    for (at, (position, parameter)) in contexts.iter().enumerate() {
        if at > 0 {
            let first = &contexts[0].1.ty;
            errors.push_pair(&parameter.ty, first, &codes::TWO_CONTEXTS, "a second `ToolContext`");
            continue;
        }
        let shared = matches!(
            bare(&parameter.ty),
            Type::Reference(reference)
                if reference.mutability.is_none()
                    && reference.lifetime.as_ref().is_none_or(|lifetime| lifetime.ident != "static")
                    && matches!(bare(&reference.elem), Type::Path(path)
                        if path.path.segments.last().is_some_and(|last| last.ident == "ToolContext"))
        );
        if !shared {
            errors.push(&parameter.ty, &codes::CONTEXT_OWNED, "the context is shared with the host");
        } else if *position > 0 {
            errors.push(&parameter.ty, &codes::CONTEXT_NOT_FIRST, "`&ToolContext` stands after an argument");
        }
        if let Some(option) = parameter.options.first() {
            errors.push(
                option,
                &codes::OTHER_ATTRIBUTE,
                "`#[arg]` belongs on an argument, not on the context",
            );
        }
    }
}

fn argument<'a>(
    kind: Kind,
    parameter: &'a Parameter,
    may_be_context: bool,
    of_tool: &CallableOptions,
    errors: &mut Errors,
) -> Option<Judged<'a>> {
    let options = ArgOptions::parse(&parameter.options, errors);
    if let Some(header) = options.header.as_ref().filter(|header| !name::is_header(&header.value())) {
        let what = format!("`{}` cannot be the name of a header", header.value().escape_debug());
        errors.push(header, &codes::HEADER, what);
    }
    for (key, owners, help) in [
        ("header", &[Kind::Tool][..], "remove it: only the arguments of tools are sent in headers"),
        ("complete", &[Kind::Resource, Kind::Prompt], "remove it: only resources and prompts are completed"),
        ("secret", &[Kind::Tool, Kind::Prompt], "make it a tool: a URI is shown and recorded as it is"),
    ] {
        if let Some(written) = options.keys.get(key).filter(|_| !owners.contains(&kind)) {
            let what = format!("`{key}` is no option of the arguments of a {}", kind.noun());
            errors.push_with_help(written, &codes::OTHER_ATTRIBUTE, what, help);
        }
    }
    shown(&options, errors);
    bounds(&parameter.ty, &options, errors);
    path(&parameter.ty, &options, errors);
    if !parameter.doc.text.is_empty() && is_placeholder(&parameter.doc.text) {
        let (what, help) = ("the description of this argument says nothing", "say what it is for");
        errors.push_with_help(&parameter.doc.tokens, &codes::PLACEHOLDER, what, help);
    }
    if let Some(pattern) = &options.pattern
        && let Err(error) = regex_syntax::ast::parse::Parser::new().parse(&pattern.value())
    {
        let what = format!("`{}` is no regular expression: {}", pattern.value().escape_debug(), error.kind());
        errors.push(pattern, &codes::REGEX, what);
    }
    for condition in &parameter.conditions {
        errors.push(condition, &codes::CONDITIONAL, "an argument cannot have a condition");
    }
    for attribute in &parameter.of_fields {
        let name = attribute.path().to_token_stream();
        let what = format!("`#[{name}]` belongs on the field of a struct, not on an argument");
        let help = "say it in `#[arg(…)]`, or flatten a struct: `#[arg(flatten)] page: Page`";
        errors.push_with_help(attribute, &codes::OTHER_ATTRIBUTE, what, help);
    }
    let is_owned = owned(kind, &parameter.ty, may_be_context, errors);
    // What is all arguments has no name on the wire, and may be bound to anything.
    let is_whole = of_tool.schema.is_some() || (kind == Kind::Tool && options.flatten);
    let (name, wire) = match &options.name {
        Some(literal) => (literal.value(), Wire::Literal(literal.clone(), &parameter.pattern)),
        None if is_whole => (own_name(&parameter.pattern), Wire::Pattern(&parameter.pattern)),
        None => (identifier(&parameter.pattern, errors)?, Wire::Pattern(&parameter.pattern)),
    };
    if options.name.is_some() && !matches!(parameter.pattern, Pat::Ident(_) | Pat::Wild(_)) {
        errors.push(&parameter.pattern, &codes::PATTERN, "an argument cannot be taken apart");
        return None;
    }
    let is_named = is_whole || name::argument(&name, &wire, errors);
    let is_url = !is_whole && url(&parameter.ty, &name, &options, of_tool, errors);
    // Among floating-point numbers, a whole one may be written as it is read.
    let in_numbers = |value: Expr| match Numbers::of(&parameter.ty) {
        Some(Numbers::Float) => with_fraction(value),
        _ => value,
    };
    (is_owned && is_named).then(|| {
        let argument = Argument {
            name,
            ty: parameter.ty.clone(),
            description: (&parameter.doc).into(),
            default: options.default.map(in_numbers),
            range: options.range.map(|Range { minimum, maximum }| Range {
                minimum: minimum.map(in_numbers),
                maximum: maximum.map(in_numbers),
            }),
            length: options.length,
            pattern: options.pattern.as_ref().map(LitStr::value),
            example: options.example.map(in_numbers),
            url: is_url,
            free: options.url == Some(false),
            path: options.path,
            secret: options.secret,
            header: options.header.as_ref().map(LitStr::value),
            complete: options.complete,
            flatten: options.keys.get("flatten").filter(|_| options.flatten).cloned(),
        };
        (argument, wire)
    })
}

/// A secret that stands in a schema or a header is none.
fn shown(options: &ArgOptions, errors: &mut Errors) {
    if !options.secret {
        return;
    }
    for key in ["default", "example", "header"] {
        if let Some(key) = options.keys.get(key) {
            errors.push(key, &codes::SECRET_SHOWN, format!("`{key}` would show a secret"));
        }
    }
}

/// Whether an argument is declared a URL: as its option says, or as its name and type do.
fn url(ty: &Type, name: &str, options: &ArgOptions, of_tool: &CallableOptions, errors: &mut Errors) -> bool {
    let innermost = innermost(ty);
    let is_text = ["String", "str"].contains(&innermost.as_str());
    let like_url = innermost == "Url" || (is_text && destination::is_url(name));
    // Of a tool in an open world every text may name a destination, and of a type that is not known its schema may say so.
    let may_name = match innermost.as_str() {
        "bool" | "char" => false,
        name if Numbers::named(name).is_some() => false,
        "String" | "str" => destination::is_any(name) || of_tool.open_world == Some(true),
        _ => true,
    };
    if let (false, Some(false), Some(key)) = (may_name, options.url, options.keys.get("url")) {
        errors.push(key, &codes::NO_URL, format!("argument `{name}` is not taken for a destination"));
    }
    options.url.unwrap_or(like_url)
}

/// The last word of a type, past what holds a value and past lists.
fn innermost(ty: &Type) -> String {
    const AROUND: [&str; 8] = ["Option", "Box", "Arc", "Cow", "Vec", "VecDeque", "HashSet", "BTreeSet"];
    let Type::Path(path) = bare(ty) else { return String::new() };
    let Some(last) = path.path.segments.last() else { return String::new() };
    let types = |argument: &GenericArgument| match argument {
        GenericArgument::Type(inner) => Some(innermost(inner)),
        _ => None,
    };
    match &last.arguments {
        PathArguments::AngleBracketed(inner) if AROUND.iter().any(|around| last.ident == around) => {
            inner.args.iter().find_map(types).unwrap_or_default()
        }
        _ => last.ident.to_string(),
    }
}

/// A type of numbers, as far as its name shows.
#[derive(Clone, Copy)]
enum Numbers {
    Float,
    /// From the smallest to the largest, both within.
    Integer(i128, i128),
}

impl Numbers {
    /// Those of a type, or of an `Option` of it.
    fn of(ty: &Type) -> Option<Self> {
        let Type::Path(path) = bare(ty) else { return None };
        let last = path.path.segments.last()?;
        if let (true, PathArguments::AngleBracketed(inner)) = (last.ident == "Option", &last.arguments) {
            return match inner.args.first()? {
                GenericArgument::Type(inner) => Self::of(inner),
                _ => None,
            };
        }
        Self::named(&last.ident.to_string())
    }

    /// Those of the type of this name.
    fn named(name: &str) -> Option<Self> {
        let bits =
            |name: &str| name.get(1..)?.parse::<u32>().ok().filter(|bits| [8, 16, 32, 64].contains(bits));
        match name {
            "f32" | "f64" => Some(Self::Float),
            "isize" => Some(Self::Integer(i64::MIN.into(), i64::MAX.into())),
            "usize" => Some(Self::Integer(0, u64::MAX.into())),
            name if name.starts_with('u') => Some(Self::Integer(0, (1 << bits(name)?) - 1)),
            name if name.starts_with('i') => {
                let half = 1 << (bits(name)? - 1);
                Some(Self::Integer(-half, half - 1))
            }
            _ => None,
        }
    }

    /// What is wrong with a literal as one of these.
    fn refuses(self, literal: &Expr) -> Option<&'static str> {
        match (self, literal_of(literal)?) {
            (_, (_, Lit::Str(_) | Lit::ByteStr(_) | Lit::Char(_) | Lit::Bool(_))) => Some("not a number"),
            (Self::Integer(..), (_, Lit::Float(_))) => Some("not a whole number"),
            (Self::Integer(smallest, largest), (is_negative, Lit::Int(number))) => {
                let value: i128 = number.base10_digits().parse().unwrap_or(i128::MAX);
                let value = if is_negative { -value } else { value };
                if value < 0 && smallest == 0 {
                    return Some("below zero");
                }
                (value < smallest || value > largest).then_some("outside of its type")
            }
            _ => None,
        }
    }
}

/// The same number as a literal of floating point.
fn with_fraction(mut expression: Expr) -> Expr {
    match &mut expression {
        Expr::Group(group) => *group.expr = with_fraction((*group.expr).clone()),
        Expr::Paren(paren) => *paren.expr = with_fraction((*paren.expr).clone()),
        Expr::Unary(unary) => *unary.expr = with_fraction((*unary.expr).clone()),
        Expr::Lit(ExprLit { lit, .. }) => {
            if let Lit::Int(number) = lit
                && number.suffix().is_empty()
            {
                *lit = Lit::Float(LitFloat::new(&format!("{}.0", number.base10_digits()), number.span()));
            }
        }
        _ => {}
    }
    expression
}

/// A literal, and whether it has a minus before it.
fn literal_of(expression: &Expr) -> Option<(bool, &Lit)> {
    match expression {
        Expr::Group(group) => literal_of(&group.expr),
        Expr::Paren(paren) => literal_of(&paren.expr),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => {
            literal_of(expr).map(|(is_negative, literal)| (!is_negative, literal))
        }
        Expr::Lit(ExprLit { lit, .. }) => Some((false, lit)),
        _ => None,
    }
}

/// The name of a file is a text, which no number is.
fn path(ty: &Type, options: &ArgOptions, errors: &mut Errors) {
    let Some(key) = options.keys.get("path").filter(|_| options.path) else { return };
    let name = innermost(ty);
    if Numbers::of(ty).is_some() || ["bool", "char", "Url"].contains(&name.as_str()) {
        errors.push(key, &codes::NO_PATH, "this argument is no text, and names no file or folder");
    }
}

/// Judges bounds, and the default and example within them, where they are written as literals; what else they may be is
/// known to rustc alone.
fn bounds(ty: &Type, options: &ArgOptions, errors: &mut Errors) {
    let values = [("default", &options.default), ("example", &options.example)];
    let mut of_type = true;
    for (key, value) in values {
        let Some(value) = value else { continue };
        let Some(why) = Numbers::of(ty).filter(|_| number(value).is_some()).and_then(|of| of.refuses(value))
        else {
            continue;
        };
        let help = "write a number that the argument can be";
        errors.push_with_help(value, &codes::DEFAULT_OUTSIDE, format!("this {key} is {why}"), help);
        of_type = false;
    }
    let lengths = Some(Numbers::Integer(0, u64::MAX.into()));
    for (what, bounds, numbers, measure) in [
        ("bound", &options.range, Numbers::of(ty), number as fn(&Expr) -> _),
        ("length", &options.length, lengths, length),
    ] {
        let Some(Range { minimum, maximum }) = bounds else { continue };
        let mut is_right = true;
        for bound in minimum.iter().chain(maximum) {
            // Of an unknown type it can still be told that a text is no bound.
            if let Some(why) = numbers.unwrap_or(Numbers::Float).refuses(bound) {
                errors.push(bound, &codes::BOUND, format!("this {what} is {why}"));
                is_right = false;
            }
        }
        if !is_right {
            continue;
        }
        let (from, to) = (minimum.as_ref().and_then(number), maximum.as_ref().and_then(number));
        if let (Some(from), Some(to)) = (from, to)
            && from > to
        {
            errors.push(quote!(#minimum..=#maximum), &codes::EMPTY_RANGE, "no number is in this range");
            continue;
        }
        for (key, value) in values.into_iter().filter(|_| of_type) {
            let Some(value) = value else { continue };
            let Some(measured) = measure(value) else { continue };
            if from.is_some_and(|from| measured < from) || to.is_some_and(|to| measured > to) {
                let what = format!("the {key} is outside of the range");
                errors.push(value, &codes::DEFAULT_OUTSIDE, what);
            }
        }
    }
}

/// The number of characters of a text that is written as a literal.
fn length(expression: &Expr) -> Option<f64> {
    match expression {
        Expr::Group(group) => length(&group.expr),
        Expr::Paren(paren) => length(&paren.expr),
        Expr::MethodCall(call)
            if ["to_owned", "to_string", "into"].iter().any(|name| call.method == name) =>
        {
            length(&call.receiver)
        }
        Expr::Call(ExprCall { func, args, .. }) if args.len() == 1 => match &**func {
            Expr::Path(path)
                if ["Some", "from"]
                    .iter()
                    .any(|name| path.path.segments.last().is_some_and(|last| last.ident == name)) =>
            {
                length(&args[0])
            }
            _ => None,
        },
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().chars().count() as f64),
        _ => None,
    }
}

/// The number that a literal, or `Some` of one, stands for.
fn number(expression: &Expr) -> Option<f64> {
    match expression {
        Expr::Group(group) => number(&group.expr),
        Expr::Paren(paren) => number(&paren.expr),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|number| -number),
        Expr::Call(ExprCall { func, args, .. }) if args.len() == 1 => match &**func {
            Expr::Path(path) if path.path.is_ident("Some") => number(&args[0]),
            _ => None,
        },
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) => literal.base10_digits().parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(literal), .. }) => literal.base10_digits().parse().ok(),
        _ => None,
    }
}

/// The name that a pattern binds; none where it takes a value apart.
fn own_name(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(pattern) => pattern.ident.unraw().to_string(),
        _ => String::new(),
    }
}

fn identifier(pattern: &Pat, errors: &mut Errors) -> Option<String> {
    let reserved = |ident: &Ident| name::is_reserved_argument(&ident.to_string());
    match pattern {
        Pat::Ident(bound) if bound.subpat.is_none() => {
            let name = own_name(pattern);
            if name.starts_with('_') && !reserved(&bound.ident) {
                let what = format!("argument `{name}` is named as if it had no name");
                errors.push(&bound.ident, &codes::UNNAMED, what);
                return None;
            }
            Some(name)
        }
        Pat::Wild(_) => {
            errors.push(pattern, &codes::UNNAMED, "an argument has no name");
            None
        }
        _ => {
            errors.push(pattern, &codes::PATTERN, "an argument cannot be taken apart");
            None
        }
    }
}

/// Reports what an argument's type borrows or leaves open.
fn owned(kind: Kind, ty: &Type, may_be_context: bool, errors: &mut Errors) -> bool {
    if let Some(ty) = impl_trait(ty) {
        errors.push(&ty, &codes::GENERIC, format!("a {} cannot be generic", kind.noun()));
        return false;
    }
    let mut search = Borrowed::default();
    search.visit_type(ty);
    if let Some(reference) = search.reference {
        let mut help = owned_help(&reference.elem);
        if may_be_context && is_plain(&reference.elem) {
            help.push_str("; if it is the context, write `&ToolContext` under its own name");
        }
        errors.push_with_help(&reference, &codes::BORROWED, "an argument cannot be borrowed", help);
        return false;
    }
    if let Some(lifetime) = search.lifetime {
        let what = "an argument cannot be borrowed";
        errors.push_with_help(&lifetime, &codes::BORROWED, what, owned_help(ty));
        return false;
    }
    true
}

/// Whether a type may be the context under another name: a path to what is not known.
fn is_plain(ty: &Type) -> bool {
    match bare(ty) {
        Type::Path(path) => {
            let is_known = standard_owner(path).is_some();
            !is_known && path.path.segments.iter().all(|segment| segment.arguments.is_none())
        }
        _ => false,
    }
}

/// What to write for what is borrowed, as far as it is true.
fn owned_help(ty: &Type) -> String {
    let mut guessed = None;
    match (owned_form(ty, &mut guessed), guessed) {
        (Some(owned), None) => format!("use `{}`", written(owned)),
        (Some(owned), Some(name)) => {
            format!("use `{}`, if `{name}` is the standard library's", written(owned))
        }
        (None, _) => codes::BORROWED.help.to_owned(),
    }
}

/// The type that owns what this one borrows; `None` where no such type is known. A name that is only taken for the standard
/// library's is noted.
fn owned_form(ty: &Type, guessed: &mut Option<&'static str>) -> Option<Type> {
    match bare(ty) {
        Type::Reference(reference) => owned_form(&reference.elem, guessed),
        Type::Slice(slice) => {
            let element = owned_form(&slice.elem, guessed)?;
            Some(parse_quote!(Vec<#element>))
        }
        Type::Path(path) => match standard_owner(path) {
            Some((name, owner, is_certain)) => {
                if !is_certain {
                    *guessed = Some(name);
                }
                let mut path = path.clone();
                let last = path.path.segments.last_mut()?;
                last.ident = Ident::new(owner, last.ident.span());
                Some(Type::Path(path))
            }
            None => of_owned(path, guessed),
        },
        other if is_owned(other) => Some(other.clone()),
        _ => None,
    }
}

/// Whether a type borrows nothing, and is no trait's.
fn is_owned(ty: &Type) -> bool {
    let mut search = Borrowed::default();
    search.visit_type(ty);
    search.reference.is_none() && search.lifetime.is_none() && !matches!(bare(ty), Type::TraitObject(_))
}

/// A type of types, each of which owns what it has.
fn of_owned(path: &TypePath, guessed: &mut Option<&'static str>) -> Option<Type> {
    let mut path = path.clone();
    let last = path.path.segments.last_mut()?;
    let is_cow = last.ident == "Cow";
    // These own what they point to, a text as well as a path.
    let is_owner = ["Box", "Rc", "Arc"].iter().any(|owner| last.ident == owner);
    let PathArguments::AngleBracketed(arguments) = &mut last.arguments else { return Some(Type::Path(path)) };
    for argument in &mut arguments.args {
        match argument {
            GenericArgument::Type(inner) if is_cow => return owned_form(inner, guessed),
            GenericArgument::Type(inner) if is_owner && is_owned(inner) => {}
            GenericArgument::Type(inner) => *inner = owned_form(inner, guessed)?,
            GenericArgument::Lifetime(lifetime) if !is_cow && lifetime.ident != "static" => return None,
            _ => {}
        }
    }
    Some(Type::Path(path))
}

/// The type that owns one of the standard library's that have no size, and whether it is that one for certain. Others have
/// types of these names, too.
fn standard_owner(path: &TypePath) -> Option<(&'static str, &'static str, bool)> {
    const UNSIZED: [(&str, &str, &str); 3] =
        [("path", "Path", "PathBuf"), ("ffi", "OsStr", "OsString"), ("ffi", "CStr", "CString")];
    let segments = &path.path.segments;
    if segments.iter().any(|segment| !segment.arguments.is_none()) {
        return None;
    }
    let names: Vec<String> = segments.iter().map(|segment| segment.ident.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names == ["str"] {
        return Some(("str", "String", true));
    }
    UNSIZED.into_iter().find_map(|(module, name, owner)| match names.as_slice() {
        [only] if *only == name => Some((name, owner, false)),
        [within, last] if (*within, *last) == (module, name) => Some((name, owner, false)),
        ["std" | "core" | "alloc", within, last] if (*within, *last) == (module, name) => {
            Some((name, owner, true))
        }
        _ => None,
    })
}

/// A type as one writes it.
fn written(ty: impl ToTokens) -> String {
    let text = ty.to_token_stream().to_string();
    text.replace(" :: ", "::").replace(" < ", "<").replace(" >", ">").replace(" ,", ",")
}

#[derive(Default)]
struct Borrowed {
    reference: Option<TypeReference>,
    lifetime: Option<Lifetime>,
}

impl Visit<'_> for Borrowed {
    fn visit_type_reference(&mut self, reference: &TypeReference) {
        self.reference.get_or_insert_with(|| reference.clone());
    }

    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        // `Cow<'static, str>` is owned where it is read.
        if lifetime.ident != "static" {
            self.lifetime.get_or_insert_with(|| lifetime.clone());
        }
    }

    fn visit_type_fn_ptr(&mut self, function: &syn::TypeFnPtr) {
        // Its references are its own; that it cannot be read from JSON is told by its bound.
        let _ = function;
    }
}
