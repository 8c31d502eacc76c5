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
use proc_macro2::TokenStream as TokenStream2;

use crate::parse::attr::Kind;

/// Publishes a function as a tool. Documented where it is used from: `aster_runtime::mcp_tool`.
#[proc_macro_attribute]
pub fn mcp_tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    callable(Kind::Tool, attribute.into(), item.into()).into()
}

/// Publishes a function as a resource. Documented where it is used from: `aster_runtime::mcp_resource`.
#[proc_macro_attribute]
pub fn mcp_resource(attribute: TokenStream, item: TokenStream) -> TokenStream {
    callable(Kind::Resource, attribute.into(), item.into()).into()
}

/// Publishes a function as a prompt. Documented where it is used from: `aster_runtime::mcp_prompt`.
#[proc_macro_attribute]
pub fn mcp_prompt(attribute: TokenStream, item: TokenStream) -> TokenStream {
    callable(Kind::Prompt, attribute.into(), item.into()).into()
}

/// Publishes the tools, resources and prompts of an `impl` or a module as a server. Documented where it is used from:
/// `aster_runtime::mcp_server`.
#[proc_macro_attribute]
pub fn mcp_server(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = item.into();
    output::show(&item, output::join(output::mcp_server(attribute.into(), item.clone()))).into()
}

/// Puts the tokens that it is given beside the item that it stands on. Only the other macros' expansions use it.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn beside(generated: TokenStream, mut item: TokenStream) -> TokenStream {
    item.extend(generated);
    item
}

fn callable(kind: Kind, attribute: TokenStream2, item: TokenStream2) -> TokenStream2 {
    output::show(&item, output::join(output::callable(kind, attribute, item.clone())))
}
