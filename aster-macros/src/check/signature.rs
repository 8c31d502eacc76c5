//! What a tool's signature may look like, but for its parameters.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{
    GenericParam, Ident, ReceiverKind, ReturnType, Safety, Signature, Type, TypeImplTrait, TypeParamBound,
    TypeTraitObject, WherePredicate,
};

use super::Home;
use crate::diag::{Errors, codes};
use crate::parse::attr::Kind;
use crate::parse::item::{Function, bare};
use crate::parse::source::Around;

pub(crate) fn check(kind: Kind, function: &Function, home: &Home, errors: &mut Errors) {
    let noun = kind.noun();
    let signature = &function.signature;
    if !function.has_body() {
        let what = format!("`{}` has no body to call", signature.ident);
        errors.push(signature, &codes::NO_BODY, what);
    }
    qualifiers(noun, signature, errors);
    generics(noun, signature, errors);
    // Of a declaration outside of a server it is enough to know that it cannot be called: it is most often a trait's.
    if !function.has_body() && matches!(home, Home::Package(_)) {
        return;
    }
    receiver(noun, signature, home, errors);
    returned(noun, signature, errors);
}

/// The return type; `None` is `()`. The lifetimes of the function are left open in it, for outside they have no name.
pub(crate) fn output(signature: &Signature) -> Option<Type> {
    let ReturnType::Type(_, ty) = &signature.output else { return None };
    let named: Vec<&Ident> = signature.generics.lifetimes().map(|named| &named.lifetime.ident).collect();
    if named.is_empty() {
        return Some((**ty).clone());
    }
    let open = syn::parse2(without_names(ty.to_token_stream(), &named));
    Some(open.unwrap_or_else(|_| (**ty).clone()))
}

/// The tokens with `'_` in the place of these lifetimes.
fn without_names(tokens: TokenStream, named: &[&Ident]) -> TokenStream {
    let mut after_quote = false;
    let replace = |tree: TokenTree| {
        let is_name = std::mem::replace(
            &mut after_quote,
            matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '\''),
        );
        match tree {
            TokenTree::Ident(ident) if is_name && named.contains(&&ident) => {
                Ident::new("_", ident.span()).into()
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_names(group.stream(), named));
                inner.set_span(group.span());
                inner.into()
            }
            other => other,
        }
    };
    tokens.into_iter().map(replace).collect()
}

fn qualifiers(noun: &str, signature: &Signature, errors: &mut Errors) {
    let mut report = |at: TokenStream, qualifier: &str| {
        errors.push(at, &codes::QUALIFIED, format!("a {noun} cannot be {qualifier}"));
    };
    if let Some(token) = &signature.constness {
        report(token.to_token_stream(), "`const`");
    }
    if let Safety::Unsafe(token) = &signature.safety {
        report(token.to_token_stream(), "`unsafe`");
    }
    if let Some(abi) = &signature.abi {
        report(abi.to_token_stream(), "`extern`");
    }
    if let Some(variadic) = &signature.variadic {
        report(variadic.to_token_stream(), "variadic");
    }
}

/// Types and constants make a schema depend on the caller; a lifetime does not.
fn generics(noun: &str, signature: &Signature, errors: &mut Errors) {
    let generic =
        signature.generics.params.iter().find(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
    let what = format!("a {noun} cannot be generic");
    if let Some(parameter) = generic {
        errors.push(parameter, &codes::GENERIC, what);
    } else if let Some(clause) = &signature.generics.where_clause
        && let Some(bound) =
            clause.predicates.iter().find(|bound| !matches!(bound, WherePredicate::Lifetime(_)))
    {
        errors.push(bound, &codes::GENERIC, what);
    }
}

fn receiver(noun: &str, signature: &Signature, home: &Home, errors: &mut Errors) {
    let Some(receiver) = signature.receiver() else {
        // Without a receiver, a method that lacks its server can only be told by its types.
        let Home::Package(place) = home else { return };
        if let Some(of_impl) = self_type(signature) {
            let what = format!("`{}` names `Self`, but no server's `impl` is around it", signature.ident);
            errors.push(of_impl, &codes::NO_SERVER, what);
        } else if place.around == Around::Impl {
            let what = format!("`{}` stands in an `impl` that is no server", signature.ident);
            errors.push(&signature.ident, &codes::ASSOCIATED, what);
        } else if place.around == Around::Trait {
            let what = format!("`{}` stands in a trait", signature.ident);
            let help = "move it out of the trait, or call it from a function that is published";
            errors.push_with_help(&signature.ident, &codes::ASSOCIATED, what, help);
        }
        return;
    };
    // Under whatever name: what is none of the server's rustc refuses.
    let is_plain = |ty: &Type| {
        matches!(bare(ty), Type::Path(path)
            if path.path.segments.iter().all(|segment| segment.arguments.is_none()))
    };
    let (is_shared, lifetime) = match &receiver.kind {
        ReceiverKind::Reference(_, lifetime, mutability) => (mutability.is_none(), lifetime.as_ref()),
        ReceiverKind::Typed(_, ty) => match bare(ty) {
            Type::Reference(reference) => {
                (reference.mutability.is_none() && is_plain(&reference.elem), reference.lifetime.as_ref())
            }
            _ => (false, None),
        },
        _ => (false, None),
    };
    match home {
        Home::Module { .. } => {
            let what = format!("`{}` takes `self`, and a module has none", signature.ident);
            let help = "remove `self`; for tools that share a state put `#[mcp_server]` on an `impl`";
            errors.push_with_help(receiver, &codes::NO_SERVER, what, help);
        }
        Home::Package(place) => {
            let what = format!("`{}` takes `self`, but no server's `impl` is around it", signature.ident);
            let mut help = codes::NO_SERVER.help.to_owned();
            // There may be one after all.
            if place.around == Around::Unknown {
                help.push_str(
                    "; where it is, write this attribute under its own name, and outside of a `macro_rules!`",
                );
            }
            errors.push_with_help(receiver, &codes::NO_SERVER, what, help);
        }
        Home::Impl { .. } if !is_shared => {
            let what = format!("{noun} `{}` needs its server for itself", signature.ident);
            errors.push(receiver, &codes::RECEIVER, what);
        }
        Home::Impl { .. } => {
            if let Some(lifetime) = lifetime.filter(|lifetime| lifetime.ident == "static") {
                let what = format!("{noun} `{}` has its server for one call", signature.ident);
                errors.push_with_help(lifetime, &codes::RECEIVER, what, "take `&self`");
            }
        }
    }
}

/// The first `Self` in a signature.
pub(crate) fn self_type(signature: &Signature) -> Option<Ident> {
    struct Search(Option<Ident>);
    impl Visit<'_> for Search {
        fn visit_ident(&mut self, ident: &Ident) {
            if ident == "Self" {
                self.0.get_or_insert_with(|| ident.clone());
            }
        }
    }
    let mut search = Search(None);
    search.visit_signature(signature);
    search.0
}

fn returned(noun: &str, signature: &Signature, errors: &mut Errors) {
    let ReturnType::Type(_, ty) = &signature.output else { return };
    if let Type::Never(never) = bare(ty) {
        errors.push(never, &codes::OUTPUT, format!("{noun} `{}` never returns", signature.ident));
    }
    if let Some(future) = boxed_future(ty) {
        let what = format!("{noun} `{}` returns a future, and not what it gives", signature.ident);
        errors.push_with_help(future, &codes::OUTPUT, what, ASYNC);
    }
    if let Some(ty) = impl_trait(ty) {
        let what = format!("{noun} `{}` does not name what it returns", signature.ident);
        let help = if ty.bounds.iter().any(is_future) { ASYNC } else { codes::OUTPUT.help };
        errors.push_with_help(ty, &codes::OUTPUT, what, help);
    }
}

const ASYNC: &str = "write `async fn`, and what it gives";

fn is_future(bound: &TypeParamBound) -> bool {
    match bound {
        TypeParamBound::Trait(bound) => {
            bound.path.segments.last().is_some_and(|segment| segment.ident == "Future")
        }
        _ => false,
    }
}

/// The first `dyn Future` inside a type.
fn boxed_future(ty: &Type) -> Option<TypeTraitObject> {
    struct Search(Option<TypeTraitObject>);
    impl Visit<'_> for Search {
        fn visit_type_trait_object(&mut self, ty: &TypeTraitObject) {
            if ty.bounds.iter().any(is_future) {
                self.0.get_or_insert_with(|| ty.clone());
            }
        }
    }
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}

/// The first `impl Trait` inside a type.
pub(crate) fn impl_trait(ty: &Type) -> Option<TypeImplTrait> {
    struct Search(Option<TypeImplTrait>);
    impl Visit<'_> for Search {
        fn visit_type_impl_trait(&mut self, ty: &TypeImplTrait) {
            self.0.get_or_insert_with(|| ty.clone());
        }
    }
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}
