//! What a tool's signature may look like, but for its parameters.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit::Visit;
use syn::{GenericParam, Ident, ReceiverKind, ReturnType, Safety, Signature, Type, TypeImplTrait};

use super::Home;
use crate::diag::{Errors, codes};
use crate::parse::item::{Function, bare};

pub(crate) fn check(function: &Function, home: &Home, errors: &mut Errors) {
    let signature = &function.signature;
    if !function.has_body() {
        let what = format!("`{}` has no body to call", signature.ident);
        errors.push(signature, &codes::NO_BODY, what);
    }
    qualifiers(signature, errors);
    generics(signature, errors);
    receiver(signature, home, errors);
    returned(signature, errors);
}

/// The return type; `None` is `()`.
pub(crate) fn output(signature: &Signature) -> Option<Type> {
    match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some((**ty).clone()),
    }
}

fn qualifiers(signature: &Signature, errors: &mut Errors) {
    let mut report = |at: TokenStream, qualifier: &str| {
        errors.push(at, &codes::QUALIFIED, format!("a tool cannot be {qualifier}"));
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
fn generics(signature: &Signature, errors: &mut Errors) {
    let generic =
        signature.generics.params.iter().find(|parameter| !matches!(parameter, GenericParam::Lifetime(_)));
    let what = "a tool cannot be generic";
    if let Some(parameter) = generic {
        errors.push(parameter, &codes::GENERIC, what);
    } else if let Some(clause) = &signature.generics.where_clause {
        errors.push(clause, &codes::GENERIC, what);
    }
}

fn receiver(signature: &Signature, home: &Home, errors: &mut Errors) {
    let Some(receiver) = signature.receiver() else {
        // Without a receiver, a method that lacks its server can only be told by its types.
        if let (Home::Package, Some(of_impl)) = (home, self_type(signature)) {
            let what = format!("`{}` names `Self`, but no server's `impl` is around it", signature.ident);
            errors.push(of_impl, &codes::NO_SERVER, what);
        }
        return;
    };
    let is_shared = match &receiver.kind {
        ReceiverKind::Reference(_, _, mutability) => mutability.is_none(),
        ReceiverKind::Typed(_, ty) => match bare(ty) {
            Type::Reference(reference) => {
                reference.mutability.is_none()
                    && matches!(bare(&reference.elem), Type::Path(path) if path.path.is_ident("Self"))
            }
            _ => false,
        },
        _ => false,
    };
    match home {
        Home::Package | Home::Module { .. } => {
            let what = format!("`{}` takes `self`, but no server's `impl` is around it", signature.ident);
            errors.push(receiver, &codes::NO_SERVER, what);
        }
        Home::Impl { .. } if !is_shared => {
            let what = format!("tool `{}` needs its server for itself", signature.ident);
            errors.push(receiver, &codes::RECEIVER, what);
        }
        Home::Impl { .. } => {}
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

fn returned(signature: &Signature, errors: &mut Errors) {
    let ReturnType::Type(_, ty) = &signature.output else { return };
    if let Type::Never(never) = bare(ty) {
        errors.push(never, &codes::OUTPUT, format!("tool `{}` returns nothing", signature.ident));
    }
    if let Some(ty) = impl_trait(ty) {
        let what = format!("tool `{}` does not name what it returns", signature.ident);
        errors.push(ty, &codes::OUTPUT, what);
    }
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
