//! What stands in for a tool or server that was not right: enough for everything that refers to it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Attribute;

use super::callable::{located, names};
use super::server::{enum_of, tool_enum};
use crate::check::server::{OWN, last_segment, lifetime};
use crate::check::{is_method, name};
use crate::parse::attr::Kind;
use crate::parse::item::{Function, ServerItem};
use crate::path::CratePath;

/// The function, and its constant. A method stays alone: nothing but methods may stand beside it. So does a function whose
/// type would hide a primitive.
pub(crate) fn callable(kind: Kind, function: &Function, krate: &CratePath) -> TokenStream {
    if is_method(function) || name::is_primitive(&function.signature.ident) {
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

/// What stands beside the `impl`, or at the end of the module.
pub(crate) fn server(item: &ServerItem, krate: &CratePath) -> TokenStream {
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
            let list = tool_enum(&enum_of(&ident), &ident, "", variants, None, private);
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
