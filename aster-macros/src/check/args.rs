//! The parameters of what is published: which one is the context, and what the others are called on the wire.

use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::{Expr, ExprCall, ExprLit, ExprUnary, Ident, Lifetime, Lit, LitStr, Pat, Type, TypeReference, UnOp};

use super::name;
use super::signature::impl_trait;
use crate::diag::{Errors, codes};
use crate::model::Argument;
use crate::parse::attr::{ArgOptions, Kind, Range};
use crate::parse::item::{Function, Parameter, bare};

/// More than this, and a model fills them in badly.
const MAX_ARGUMENTS: usize = 16;

/// An argument with the tokens that its name was read from.
pub(super) type Judged<'a> = (Argument, Wire<'a>);

/// Whether the function takes the context, and its arguments, unless one of them is wrong.
pub(super) fn check<'a>(
    kind: Kind,
    function: &'a Function,
    has_schema: bool,
    errors: &mut Errors,
) -> (bool, Option<Vec<Judged<'a>>>) {
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

    // Every parameter is looked at, also after one that is wrong.
    let judged: Vec<Option<Judged<'_>>> = parameters
        .iter()
        .map(|(position, parameter)| {
            let may_be_context = *position == 0 && contexts.is_empty();
            argument(kind, parameter, may_be_context, has_schema, errors)
        })
        .collect();
    let named: Vec<&Judged<'_>> = judged.iter().flatten().collect();
    for (at, (second, wire)) in named.iter().enumerate() {
        if let Some((_, first)) = named[..at].iter().find(|(first, _)| first.name == second.name) {
            let what = format!("two arguments are called `{}` on the wire", second.name);
            errors.push_pair(wire, first, &codes::SAME_ARGUMENT, what);
        }
    }
    same_headers(&parameters, errors);
    (!contexts.is_empty(), judged.into_iter().collect())
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
    Literal(LitStr),
}

impl ToTokens for Wire<'_> {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        match self {
            Self::Pattern(pattern) => pattern.to_tokens(tokens),
            Self::Literal(literal) => literal.to_tokens(tokens),
        }
    }
}

/// Whether a type is `ToolContext`, however it is taken.
fn is_context(ty: &Type) -> bool {
    match bare(ty) {
        Type::Reference(reference) => is_context(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "ToolContext"),
        _ => false,
    }
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
                if reference.mutability.is_none() && matches!(bare(&reference.elem), Type::Path(_))
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
    has_schema: bool,
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
    ] {
        if let Some(written) = options.keys.get(key).filter(|_| !owners.contains(&kind)) {
            let what = format!("`{key}` is no option of the arguments of a {}", kind.noun());
            errors.push_with_help(written, &codes::OTHER_ATTRIBUTE, what, help);
        }
    }
    if let Some(range) = &options.range {
        numbers(range, options.default.as_ref(), errors);
    }
    for condition in &parameter.conditions {
        errors.push(condition, &codes::CONDITIONAL, "an argument cannot have a condition");
    }
    let is_owned = owned(kind, &parameter.ty, may_be_context, errors);
    let (name, wire) = match &options.name {
        Some(literal) => (literal.value(), Wire::Literal(literal.clone())),
        None => (identifier(&parameter.pattern, errors)?, Wire::Pattern(&parameter.pattern)),
    };
    if options.name.is_some() && !matches!(parameter.pattern, Pat::Ident(_) | Pat::Wild(_)) {
        errors.push(&parameter.pattern, &codes::PATTERN, "an argument cannot be taken apart");
        return None;
    }
    // The one parameter of a tool with its own schema has no name on the wire.
    let is_named = has_schema || name::argument(&name, &wire, errors);
    (is_owned && is_named).then(|| {
        let argument = Argument {
            name,
            ty: parameter.ty.clone(),
            description: (&parameter.doc).into(),
            default: options.default,
            range: options.range,
            url: options.url,
            header: options.header.as_ref().map(LitStr::value),
            complete: options.complete,
        };
        (argument, wire)
    })
}

/// Judges a range and a default that are written as numbers; what else they may be is known to rustc alone.
fn numbers(range: &Range, default: Option<&Expr>, errors: &mut Errors) {
    let bound = |bound: &Option<Expr>| bound.as_ref().and_then(number);
    let (minimum, maximum) = (bound(&range.minimum), bound(&range.maximum));
    if let (Some(minimum), Some(maximum)) = (minimum, maximum)
        && minimum > maximum
    {
        let (from, to) = (&range.minimum, &range.maximum);
        errors.push(quote!(#from..=#to), &codes::EMPTY_RANGE, "no number is in this range");
        return;
    }
    let Some(default) = default else { return };
    let Some(value) = number(default) else { return };
    if minimum.is_some_and(|minimum| value < minimum) || maximum.is_some_and(|maximum| value > maximum) {
        errors.push(default, &codes::DEFAULT_OUTSIDE, "the default is outside of the range");
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

fn identifier(pattern: &Pat, errors: &mut Errors) -> Option<String> {
    use syn::ext::IdentExt as _;

    let reserved = |ident: &Ident| name::is_reserved_argument(&ident.to_string());
    match pattern {
        Pat::Ident(pattern) if pattern.subpat.is_none() => {
            let name = pattern.ident.unraw().to_string();
            if name.starts_with('_') && !reserved(&pattern.ident) {
                let what = format!("argument `{name}` is named as if it had no name");
                errors.push(pattern, &codes::UNNAMED, what);
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
        let owned = match bare(&reference.elem) {
            Type::Path(path) if path.path.is_ident("str") => "use `String`".to_owned(),
            Type::Slice(slice) => format!("use `Vec<{}>`", slice.elem.to_token_stream()),
            other @ Type::Path(_) if may_be_context => {
                let ty = other.to_token_stream();
                format!("use `{ty}`; if it is the context, write `&ToolContext` under its own name")
            }
            other => format!("use `{}`", other.to_token_stream()),
        };
        errors.push_with_help(&reference, &codes::BORROWED, "an argument cannot be borrowed", owned);
        return false;
    }
    if let Some(lifetime) = search.lifetime {
        errors.push(&lifetime, &codes::BORROWED, "an argument cannot be borrowed");
        return false;
    }
    true
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
