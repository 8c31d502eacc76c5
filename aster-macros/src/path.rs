//! Where generated code finds the runtime.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Path;

/// The path of the `aster-runtime` crate: `::aster_runtime`, or what `crate = …` says.
#[derive(Debug, Clone)]
pub(crate) struct CratePath(TokenStream);

impl CratePath {
    pub(crate) fn new(given: Option<&Path>) -> Self {
        Self(
            given.map_or_else(
                || quote_spanned!(Span::mixed_site()=> ::aster_runtime),
                ToTokens::to_token_stream,
            ),
        )
    }

    /// The path inside of a module, given as it is outside, and what must stand in the module for it. A name that is declared
    /// beside the module means nothing in it, and one of a dependency does; what is imported from around the module is both.
    pub(crate) fn inside(given: Option<&Path>) -> (Self, TokenStream) {
        let Some(path) = given else { return (Self::new(None), TokenStream::new()) };
        let first = path.segments.first().map(|first| first.ident.to_string()).unwrap_or_default();
        if path.leading_colon.is_some() || ["crate", "$crate"].contains(&first.as_str()) {
            return (Self::new(given), TokenStream::new());
        }
        let rest = path.segments.iter().skip(1);
        match first.as_str() {
            "self" => (Self(quote!(super #(::#rest)*)), TokenStream::new()),
            "super" => (Self(quote!(super::super #(::#rest)*)), TokenStream::new()),
            _ => {
                let mixed = Span::mixed_site();
                let door = quote_spanned! {mixed=>
                    mod __aster_facade {
                        use super::super::*;
                        pub(super) use #path::__private;
                    }
                };
                (Self(quote_spanned!(mixed=> __aster_facade)), door)
            }
        }
    }

    /// The path of what expansions use, the only door through which they go.
    pub(crate) fn private(&self) -> TokenStream {
        let root = &self.0;
        quote!(#root::__private)
    }
}
