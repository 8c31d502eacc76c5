//! A tool's parameters: which one is the context, and what the others are called on the wire.

use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::{Expr, ExprCall, ExprLit, ExprUnary, Ident, Lifetime, Lit, Pat, Type, TypeReference, UnOp};

use super::name;
use super::signature::impl_trait;
use crate::diag::{Errors, codes};
use crate::model::Argument;
use crate::parse::attr::{ArgOptions, Range};
use crate::parse::item::{Function, Parameter, bare};

/// More than this, and a model fills them in badly.
const MAX_ARGUMENTS: usize = 16;

/// Whether the tool takes the context, and its arguments, unless one of them is wrong.
pub(crate) fn check(function: &Function, errors: &mut Errors) -> (bool, Option<Vec<Argument>>) {
    let (contexts, parameters): (Vec<_>, Vec<_>) =
        function.parameters.iter().enumerate().partition(|(_, parameter)| is_context(&parameter.ty));
    context(&contexts, errors);

    if let Some((_, first_too_many)) = parameters.get(MAX_ARGUMENTS) {
        let what = format!(
            "tool `{}` takes {} arguments, and {MAX_ARGUMENTS} are the most",
            function.signature.ident,
            parameters.len()
        );
        errors.push(&first_too_many.pattern, &codes::TOO_MANY, what);
    }

    // Every parameter is looked at, also after one that is wrong.
    let judged: Vec<Option<(Argument, Wire<'_>)>> = parameters
        .iter()
        .map(|(position, parameter)| {
            let may_be_context = *position == 0 && contexts.is_empty();
            argument(parameter, may_be_context, errors)
        })
        .collect();
    let named: Vec<&(Argument, Wire<'_>)> = judged.iter().flatten().collect();
    for (at, (second, wire)) in named.iter().enumerate() {
        if let Some((_, first)) = named[..at].iter().find(|(first, _)| first.name == second.name) {
            let what = format!("two arguments are called `{}` on the wire", second.name);
            errors.push_pair(wire, first, &codes::SAME_ARGUMENT, what);
        }
    }
    let arguments = judged.into_iter().map(|judged| judged.map(|(argument, _)| argument)).collect();
    (!contexts.is_empty(), arguments)
}

/// What an argument's name on the wire was read from.
enum Wire<'a> {
    Pattern(&'a Pat),
    Literal(syn::LitStr),
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
    parameter: &'a Parameter,
    may_be_context: bool,
    errors: &mut Errors,
) -> Option<(Argument, Wire<'a>)> {
    let options = ArgOptions::parse(&parameter.options, errors);
    if let Some(range) = &options.range {
        numbers(range, options.default.as_ref(), errors);
    }
    for condition in &parameter.conditions {
        errors.push(condition, &codes::CONDITIONAL, "an argument cannot have a condition");
    }
    let is_owned = owned(&parameter.ty, may_be_context, errors);
    let (name, wire) = match &options.name {
        Some(literal) => (literal.value(), Wire::Literal(literal.clone())),
        None => (identifier(&parameter.pattern, errors)?, Wire::Pattern(&parameter.pattern)),
    };
    if options.name.is_some() && !matches!(parameter.pattern, Pat::Ident(_) | Pat::Wild(_)) {
        errors.push(&parameter.pattern, &codes::PATTERN, "an argument cannot be taken apart");
        return None;
    }
    let is_named = name::argument(&name, &wire, errors);
    (is_owned && is_named).then(|| {
        let argument = Argument {
            name,
            ty: parameter.ty.clone(),
            description: (&parameter.doc).into(),
            default: options.default,
            range: options.range,
            url: options.url,
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
fn owned(ty: &Type, may_be_context: bool, errors: &mut Errors) -> bool {
    if let Some(ty) = impl_trait(ty) {
        errors.push(&ty, &codes::GENERIC, "a tool cannot be generic");
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
