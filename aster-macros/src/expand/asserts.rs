//! The calls through which a user's types meet their bounds, written at the type's own place, so that a bound that is
//! not met is an error there.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, GenericArgument, Lit, PathArguments, PathSegment, Token, Type, parse_quote_spanned};

use crate::model::{Argument, Callable, Role};
use crate::parse::attr::Range;
use crate::parse::item::bare;

/// The same tokens, resolved as before, at another place.
pub(super) fn respan(tokens: &TokenStream, at: Span) -> TokenStream {
    let respan = |tree: TokenTree| {
        let span = tree.span().located_at(at);
        let mut tree = match tree {
            TokenTree::Group(group) => Group::new(group.delimiter(), respan(&group.stream(), at)).into(),
            other => other,
        };
        tree.set_span(span);
        tree
    };
    tokens.clone().into_iter().map(respan).collect()
}

/// Where a type's errors belong, with the names of generated code.
fn at(tokens: &impl ToTokens) -> Span {
    Span::mixed_site().located_at(tokens.to_token_stream().span())
}

/// A type as an argument of a generic one. Of a name that is not there, rustc proposes a type parameter where it is such an
/// argument, and not where it is a parameter's type, unless it has arguments of its own; with the same words in both places it
/// shows them once.
fn as_argument(ty: &Type, in_impl: bool) -> Type {
    let mut ty = ty.clone();
    match &mut ty {
        Type::Group(inner) => *inner.elem = as_argument(&inner.elem, in_impl),
        Type::Paren(inner) => *inner.elem = as_argument(&inner.elem, in_impl),
        Type::Array(array) => *array.elem = as_argument(&array.elem, in_impl),
        Type::Tuple(tuple) => {
            tuple.elems.iter_mut().for_each(|element| *element = as_argument(element, in_impl))
        }
        Type::Path(path)
            if path.path.get_ident().is_some_and(|name| !is_proposed(name, in_impl) && !is_generic(name)) =>
        {
            // Of the user's own tokens, so that what is wrong with the type is told without a word of an expansion.
            let spot = path.span();
            if let Some(last) = path.path.segments.last_mut() {
                last.arguments = PathArguments::AngleBracketed(parse_quote_spanned!(spot=> <>));
            }
        }
        _ => {}
    }
    ty
}

/// Whether a type of this name wants arguments, which it may have been left without: rustc says so, and of `Vec<>` once more.
fn is_generic(name: &Ident) -> bool {
    const GENERIC: [&str; 14] = [
        "Arc", "BTreeMap", "BTreeSet", "Box", "Cow", "HashMap", "HashSet", "IndexMap", "Json", "Option",
        "Rc", "Result", "Vec", "VecDeque",
    ];
    GENERIC.iter().any(|generic| name == generic)
}

/// Whether rustc proposes a name as that of a type parameter wherever it stands: one capital letter is, of a function. `Self` is
/// no name.
fn is_proposed(name: &Ident, in_impl: bool) -> bool {
    let name = name.to_string();
    name == "Self" || (!in_impl && name.chars().count() == 1 && name.chars().all(char::is_uppercase))
}

/// Adds an argument to the schema.
pub(super) fn describe(
    private: &TokenStream,
    schema: &Ident,
    argument: &Argument,
    in_impl: bool,
) -> TokenStream {
    let Argument { name, ty, default, example, range, length, pattern, url, secret, header, .. } = argument;
    let description = super::description(private, &argument.description);
    let (spot, named) = (at(ty), &as_argument(ty, in_impl));
    let value = |option: &str, value: &Option<Expr>| {
        let option = Ident::new(option, spot);
        value.as_ref().map(|value| {
            let value = closure(private, ty, value);
            quote_spanned!(spot=> .#option::<#named>(#value))
        })
    };
    let bounds = |option: &str, bounds: &Option<Range>| {
        let option = Ident::new(option, spot);
        bounds.as_ref().map(|bounds| {
            let (minimum, maximum) = limits(private, bounds);
            quote_spanned!(spot=> .#option::<#named>(#minimum, #maximum))
        })
    };
    let (default, example) = (value("default", default), value("example", example));
    let (range, length) = (bounds("range", range), bounds("length", length));
    let pattern = pattern.as_ref().map(|pattern| quote_spanned!(spot=> .pattern::<#named>(#pattern)));
    let url = url.then(|| quote_spanned!(spot=> .url::<#named>()));
    let secret = secret.then(|| quote_spanned!(spot=> .secret()));
    let header = header.as_ref().map(|header| quote_spanned!(spot=> .header::<#named>(#header)));
    let options = quote!(#default #example #range #length #pattern #url #secret #header);
    match part(ty) {
        Some(part) => {
            let values = quote_spanned!(spot=> &mut #schema, #name, #description);
            let described = call_at(private, ("Argument", ty, "describe"), &values, part);
            quote_spanned!(spot=> #described #options;)
        }
        None => quote_spanned!(spot=> #schema.argument::<#named>(#name, #description) #options;),
    }
}

/// The part of an argument's type that would have to change where it is none, if that is not the whole and may well be the
/// author's own.
fn part(ty: &Type) -> Option<&Type> {
    let part = innermost(ty);
    let is_known = matches!(
        bare(part),
        Type::Path(path) if path.path.get_ident().is_some_and(|name| {
            let name = name.to_string();
            ["String", "bool", "char"].contains(&name.as_str()) || name.starts_with(|c: char| c.is_lowercase())
        })
    );
    (!is_known && !std::ptr::eq(part, ty)).then_some(part)
}

fn limits(private: &TokenStream, bounds: &Range) -> (TokenStream, TokenStream) {
    (super::option(private, bounds.minimum.as_ref()), super::option(private, bounds.maximum.as_ref()))
}

/// The schema of an argument that is the whole object.
pub(super) fn flattened(private: &TokenStream, argument: &Argument, in_impl: bool) -> TokenStream {
    let (spot, ty) = (at(&argument.ty), as_argument(&argument.ty, in_impl));
    quote_spanned!(spot=> || #private::InputSchema::flattened::<#ty>())
}

/// What is suggested for an argument, given what has been typed.
pub(super) fn suggestions(private: &TokenStream, typed: &Ident, complete: &Expr) -> TokenStream {
    let spot = at(complete);
    match complete {
        Expr::Array(list) => quote_spanned!(spot=> |_| #private::suggestions(#list)),
        path => {
            // Its name is the expansion's, its place the user's: that is where rustc points if the function takes no text.
            let typed = Ident::new(&typed.to_string(), typed.span().located_at(spot));
            quote_spanned!(spot=> |#typed| #private::suggestions(#path(#typed)))
        }
    }
}

/// Reads all arguments out of a call as one value.
pub(super) fn decode_whole(call: &Ident, local: &Ident, argument: &Argument, in_impl: bool) -> TokenStream {
    let (spot, ty) = (at(&argument.ty), as_argument(&argument.ty, in_impl));
    quote_spanned!(spot=> let #local = #call.whole::<#ty>();)
}

/// Reads an argument out of a call.
pub(super) fn decode(
    private: &TokenStream,
    call: &Ident,
    local: &Ident,
    argument: &Argument,
    in_impl: bool,
) -> TokenStream {
    let Argument { name, ty, default, range, .. } = argument;
    let (spot, named) = (at(ty), as_argument(ty, in_impl));
    let default = default.as_ref().map(|default| closure(private, ty, default));
    let decoded = match (part(ty), default) {
        (Some(part), Some(default)) => {
            let given = quote_spanned!(spot=> &mut #call, #name, #default);
            call_at(private, ("Argument", ty, "take_or"), &given, part)
        }
        (Some(part), None) => {
            call_at(private, ("Argument", ty, "take"), &quote_spanned!(spot=> &mut #call, #name), part)
        }
        (None, Some(default)) => quote_spanned!(spot=> #call.argument_or::<#named>(#name, #default)),
        (None, None) => quote_spanned!(spot=> #call.argument::<#named>(#name)),
    };
    let range = range.as_ref().map(|range| {
        let (minimum, maximum) = limits(private, range);
        quote_spanned!(spot=> #call.within::<#named>(#name, &#local, #minimum, #maximum);)
    });
    quote_spanned!(spot=> let #local = #decoded; #range)
}

/// A default as it stands both in the schema and in the call: word for word the same, so that rustc reports a default of
/// the wrong type once. A literal text is one for every type that owns a text.
fn closure(private: &TokenStream, ty: &Type, default: &Expr) -> TokenStream {
    let spot = at(default);
    if is_text(default) {
        // Where it is none of the type's, the text is what is wrong; the type itself is told at its own place.
        let inferred = Token![_](default.span());
        return quote_spanned!(spot=> || -> #ty { #private::text::<#inferred>(#default) });
    }
    quote_spanned!(spot=> || -> #ty { #default })
}

/// Whether an expression is a text, also in the invisible brackets of a `macro_rules!`.
fn is_text(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(literal) => matches!(literal.lit, Lit::Str(_)),
        Expr::Group(group) => is_text(&group.expr),
        _ => false,
    }
}

/// The generator of the output schema. Of a result whose parts can be seen, each part is judged at its own place.
pub(super) fn output_schema(private: &TokenStream, callable: &Callable) -> TokenStream {
    let (ty, spot) = output(callable);
    match callable.role {
        Role::Tool => match callable.output.as_ref().map(|ty| parts(private, ty)).unwrap_or_default() {
            parts if parts.is_empty() => quote_spanned!(spot=> #private::output_schema::<#ty>),
            parts => quote_spanned! {spot=>
                || {
                    use #private::Judged as _;
                    #(#parts)*
                    #private::Returned::<#ty>::output_schema()
                }
            },
        },
        Role::Resource { .. } | Role::Prompt => {
            quote_spanned!(Span::mixed_site()=> #private::no_output_schema)
        }
    }
}

/// Turns what the function returned into a result.
pub(super) fn result(private: &TokenStream, callable: &Callable, value: TokenStream) -> TokenStream {
    let (ty, spot) = output(callable);
    match &callable.role {
        Role::Tool => match callable.output.as_ref().map(|ty| parts(private, ty)).unwrap_or_default() {
            parts if parts.is_empty() => quote_spanned!(spot=> #private::result::<#ty>(#value)),
            _ => quote_spanned! {spot=>
                { use #private::Judged as _; #private::Returned::<#ty>::result(#value) }
            },
        },
        Role::Resource { mime_type, .. } => {
            let mime_type = super::option(private, mime_type.as_ref());
            quote_spanned!(spot=> #private::contents::<#ty>(#value, #mime_type))
        }
        Role::Prompt => quote_spanned!(spot=> #private::messages::<#ty>(#value)),
    }
}

/// What judges the parts of a `Result<T, E>` and a `Json<T>`, each written at its part. Whether these are what their names say
/// is known to rustc alone.
fn parts(private: &TokenStream, ty: &Type) -> Vec<TokenStream> {
    let judge = |whole: &Type, part: &Type, method: &str| {
        let judged = call_at(private, ("Returned", whole, method), &TokenStream::new(), innermost(part));
        quote!(#judged;)
    };
    let of_json = |ty: &Type| match arguments(ty, "Json").as_slice() {
        [part] => Some(judge(ty, part, "json")),
        _ => None,
    };
    match arguments(ty, "Result").as_slice() {
        [value, error] => {
            let of_value = of_json(value).unwrap_or_else(|| judge(ty, value, "value"));
            vec![judge(ty, error, "error"), of_value]
        }
        _ => of_json(ty).into_iter().collect(),
    }
}

/// A call of an associated function, which rustc will say to stand at a part of the type. The type itself keeps its place, so
/// that what is wrong with its names is told once.
fn call_at(
    private: &TokenStream,
    (holder, whole, function): (&str, &Type, &str),
    given: &TokenStream,
    part: &Type,
) -> TokenStream {
    let first = at(part);
    let last = part.to_token_stream().into_iter().last().map_or(first, |tree| at(&tree));
    let private = respan(private, first);
    let (holder, function) = (Ident::new(holder, first), Ident::new(function, last));
    let mut given = Group::new(Delimiter::Parenthesis, given.clone());
    given.set_span(last);
    quote_spanned!(first=> #private::#holder::<#whole>::#function #given)
}

/// What stands inside of types that can be what they hold.
fn innermost(ty: &Type) -> &Type {
    let inner = ["Option", "Vec", "VecDeque", "Box", "Arc"].into_iter().find_map(|name| {
        match arguments(ty, name).as_slice() {
            [inner] => Some(*inner),
            _ => None,
        }
    });
    inner.map_or(ty, innermost)
}

/// The type arguments of a type that has this name; none of any other.
fn arguments<'a>(ty: &'a Type, name: &str) -> Vec<&'a Type> {
    let Type::Path(path) = bare(ty) else { return Vec::new() };
    match path.path.segments.last() {
        Some(PathSegment { ident, arguments: PathArguments::AngleBracketed(arguments) }) if ident == name => {
            let types = arguments.args.iter().map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            types.collect::<Option<_>>().unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn output(callable: &Callable) -> (TokenStream, Span) {
    match &callable.output {
        Some(ty) => (as_argument(ty, callable.in_impl).to_token_stream(), at(ty)),
        None => (quote!(()), at(&callable.ident)),
    }
}
