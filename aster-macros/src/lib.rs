//! The attribute macros of Aster. Use them through `aster-runtime`, which re-exports and documents them; this crate
//! has no promise of its own.
//!
//! A macro's input moves one way: `parse` reads tokens and judges nothing, `check` judges and emits nothing,
//! `expand` emits and cannot fail. `output` is the function in which the whole way can be read.

mod check;
mod diag;
mod expand;
mod model;
mod output;
mod parse;
mod path;

use proc_macro::TokenStream;

/// Publishes a function as a tool. Documented where it is used from: `aster_runtime::mcp_tool`.
#[proc_macro_attribute]
pub fn mcp_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    output::join(output::mcp_tool(attribute.into(), item.into())).into()
}

/// Publishes the tools of an `impl` or a module as a server. Documented where it is used from:
/// `aster_runtime::mcp_server`.
#[proc_macro_attribute]
pub fn mcp_server(attribute: TokenStream, item: TokenStream) -> TokenStream {
    output::join(output::mcp_server(attribute.into(), item.into())).into()
}
