//! What stands in for a tool or server that was not right: enough for everything that refers to it.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, FnArg, ReturnType, parse_quote};

use super::callable::{located, names};
use super::server::{enum_of, tool_enum};
use crate::check::server::{OWN, last_segment, lifetime};
use crate::check::signature::impl_trait;
use crate::check::{is_method, name};
use crate::parse::attr::Kind;
use crate::parse::item::{Function, ServerItem, is_server};
use crate::parse::source::{Around, Place};
use crate::path::CratePath;

/// The function, and its constant. A method stays alone: nothing but methods may stand beside it. So does a function whose
/// type would hide another.
pub(crate) fn callable(kind: Kind, mut function: Function, place: &Place, krate: &CratePath) -> TokenStream {
    let is_free = match place.around {
        Around::Module => place.namesake.is_none() && !place.is_again,
        Around::Unknown => !is_method(&function),
        Around::Impl | Around::Trait | Around::Extern => false,
    };
    repair(&mut function, place.around);
    if !is_free || name::is_primitive(&function.signature.ident) {
        return quote!(#function);
    }
    let private = krate.private();
    let place = located(&function.signature.ident, &function.signature.ident);
    let visibility = &function.visibility;
    let (constant, ty, _) = names(kind);
    let broken = format_ident!("BROKEN_{constant}", span = Span::mixed_site());
    quote_spanned! {Span::mixed_site()=>
        #function
        #[doc = "Not right."]
        #[#private::beside(
            impl #place {
                #[doc = "Not right."]
                #visibility const #constant: &'static #private::#ty = &#private::#broken;
            }
        )]
        #visibility enum #place {}
    }
}

/// Repairs what a server publishes, and takes a second `#[mcp_server]` from it, which would be expanded as well.
pub(crate) fn repair_all(item: &mut ServerItem) {
    let around = match item {
        ServerItem::Impl(_) => Around::Impl,
        ServerItem::Module(_) => Around::Module,
    };
    item.published_mut().for_each(|function| repair(function, around));
    item.attributes_mut().retain(|attribute| !is_server(attribute));
}

/// Takes from a function what has been reported and rustc would report once more: `self` where there is none, `...`, and that
/// it has no body. A body that may use what is gone goes with it.
pub(crate) fn repair(function: &mut Function, around: Around) {
    let has_no_self = around == Around::Module && function.signature.receiver().is_some();
    let needs_body = !function.has_body() && matches!(around, Around::Module | Around::Impl);
    let is_variadic = function.has_body() && function.signature.variadic.take().is_some();
    if !(has_no_self || needs_body || is_variadic) {
        return;
    }
    let signature = &mut function.signature;
    if has_no_self {
        let inputs = std::mem::take(&mut signature.inputs).into_iter();
        signature.inputs = inputs.filter(|input| !matches!(input, FnArg::Receiver(_))).collect();
    }
    // No name, so that none is unused: a lint that a crate forbids cannot be allowed here.
    for input in &mut signature.inputs {
        if let FnArg::Typed(typed) = input {
            *typed.pat = parse_quote!(_);
        }
    }
    // What never returns is of every type, but it does not name one.
    if matches!(&signature.output, ReturnType::Type(_, ty) if impl_trait(ty).is_some()) {
        signature.output = parse_quote!(-> !);
    }
    function.body = Group::new(Delimiter::Brace, quote!(loop {})).into();
}

/// What stands beside the `impl`, or at the end of the module; no enum where its name is taken.
pub(crate) fn server(item: &ServerItem, is_taken: bool, krate: &CratePath) -> TokenStream {
    let private = &krate.private();
    let mixed = Span::mixed_site();
    let is_free = |name: &str| !item.names().iter().any(|taken| taken == name);
    let values = [
        quote_spanned!(mixed=> &'static #private::ServerSpec = &#private::BROKEN_SERVER),
        quote_spanned!(mixed=> &'static [#private::Tier] = &[]),
        quote_spanned!(mixed=> &'static [&'static str] = &[]),
    ];
    let constants = OWN.iter().zip(values).filter(|(name, _)| is_free(name)).map(|(name, value)| {
        let name = Ident::new(name, mixed);
        quote_spanned!(mixed=> #[doc = "Not right."] pub const #name: #value;)
    });
    let constants = quote!(#(#constants)*);
    let tools: Vec<(&Ident, Vec<Attribute>)> = item
        .published()
        .filter(|function| function.kind() == Some(Kind::Tool))
        .map(|tool| (&tool.signature.ident, tool.conditions()))
        .collect();
    // Two of one name have been reported.
    let is_first = |at: usize| {
        let name = name::variant(tools[at].0);
        !tools[..at].iter().any(|(first, conditions)| conditions.is_empty() && name::variant(first) == name)
    };
    let variants = tools
        .iter()
        .enumerate()
        .filter(|(at, _)| is_first(*at))
        .map(|(_, (ident, conditions))| (*ident, conditions.as_slice(), None));
    match item {
        ServerItem::Impl(block)
            if block.header.trait_.is_none()
                && block.header.generics.lifetimes().count() == block.header.generics.params.len() =>
        {
            let ty = &block.header.self_ty;
            let Some(ident) = last_segment(ty) else { return TokenStream::new() };
            let list = (!is_taken).then(|| tool_enum(&enum_of(&ident), &ident, "", variants, None, private));
            // One that borrows is none, and would be told so once more.
            let server = lifetime(ty).is_none().then(|| {
                quote_spanned! {mixed=>
                    impl #private::NativeServer for #ty {
                        const SPEC: &'static #private::ServerSpec = &#private::BROKEN_SERVER;
                        fn __implemented_by_the_macro() {}
                    }
                }
            });
            let generics = &block.header.generics;
            quote_spanned!(mixed=> impl #generics #ty { #constants } #server #list)
        }
        ServerItem::Impl(_) => TokenStream::new(),
        ServerItem::Module(module) => {
            let name = Ident::new("Tool", Span::call_site());
            let list =
                is_free("Tool").then(|| tool_enum(&name, &module.header.ident, "", variants, None, private));
            quote_spanned!(mixed=> #constants #list)
        }
    }
}
