//! Emits code from the model. Nothing here can fail.
//!
//! Generated code is written at `Span::mixed_site()`: its local variables are its own, its paths resolve where the user
//! stands. It is made of `const` data, closures and functions in a block, never of modules, so that it sees what the user's item
//! sees: private types, the inside of another function, and in an `impl`, where it stands in no block, `Self`.

mod asserts;
pub(crate) mod callable;
pub(crate) mod fallback;
pub(crate) mod server;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

use crate::model::Description;

/// An optional value, by its absolute path.
fn option(private: &TokenStream, value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(#private::Some(#value)),
        None => quote!(#private::None),
    }
}

/// A doc comment as a constant text.
fn description(private: &TokenStream, description: &Description) -> TokenStream {
    match description {
        Description::Text(text) => quote!(#text),
        Description::Computed(parts) => quote!(#private::concat!(#(#parts, "\n"),*).trim_ascii()),
    }
}

/// Where an item stands. The line is read here: for a method, `line!()` would be the line of its server's attribute.
fn location(private: &TokenStream, at: Span) -> TokenStream {
    let line = if proc_macro::is_available() {
        let line = u32::try_from(at.unwrap().line()).unwrap_or(u32::MAX);
        quote!(#line)
    } else {
        quote!(0)
    };
    quote_spanned! {Span::mixed_site()=>
        #private::Location { file: #private::file!(), line: #line, package: #private::env!("CARGO_PKG_NAME") }
    }
}
