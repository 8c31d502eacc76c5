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

    /// The path of what expansions use, the only door through which they go.
    pub(crate) fn private(&self) -> TokenStream {
        let root = &self.0;
        quote!(#root::__private)
    }
}
