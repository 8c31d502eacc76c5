//! The way from a macro's input to its output. The user's item is always there, and where something is wrong with it,
//! so are stand-ins for what others refer to: one mistake is one error.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proc_macro2::TokenStream;
use quote::quote;

use crate::check::{self, Home};
use crate::diag::{Errors, codes};
use crate::expand;
use crate::parse::attr::{CallableOptions, Kind, ServerOptions};
use crate::parse::item::{self, ServerItem};
use crate::parse::source;

/// What a macro puts in the place of its input, and what it has to say about it.
type Output = (TokenStream, Vec<syn::Error>);

pub(crate) fn callable(kind: Kind, attribute: TokenStream, tokens: TokenStream) -> Output {
    if attribute.to_string() == item::TAKEN {
        return (tokens, Vec::new());
    }
    let mut errors = Errors::default();
    let options = CallableOptions::parse(kind, attribute, &mut errors);
    let function = match item::function(tokens.clone()) {
        Ok(function) => function,
        Err(error) => {
            match item::keyword(tokens.clone()) {
                Some(keyword) if keyword != "fn" => errors.push_with_help(
                    &keyword,
                    &codes::NOT_A_FUNCTION,
                    format!("`#[{}]` goes on a function, not on `{keyword}`", kind.attribute()),
                    kind.on_a_function(),
                ),
                _ => errors.syntax(error),
            }
            return (tokens, errors.into_vec());
        }
    };

    let place = source::place(&function);
    let callable = check::callable(kind, &function, &options, &Home::Package(place.clone()), &mut errors);
    let generated = match callable {
        Some(callable) if errors.is_empty() && !place.is_again => {
            expand::callable::free(&callable, &options.krate())
        }
        _ => {
            let stand_in = expand::fallback::callable(kind, function, &place, &options.krate());
            return (stand_in, errors.into_vec());
        }
    };
    (quote!(#function #generated), errors.into_vec())
}

pub(crate) fn mcp_server(attribute: TokenStream, tokens: TokenStream) -> Output {
    let mut errors = Errors::default();
    let options = ServerOptions::parse(attribute, &mut errors);
    let mut item = match item::server(tokens.clone(), &mut errors) {
        Ok(item) => item,
        Err(error) => {
            match item::keyword(tokens.clone()) {
                Some(keyword) if keyword != "impl" && keyword != "mod" => errors.push_with_help(
                    &keyword,
                    &codes::NOT_A_FUNCTION,
                    format!("`#[mcp_server]` goes on an `impl` or a `mod`, not on `{keyword}`"),
                    "put it on the `impl` that has the tools, or on a module of functions",
                ),
                _ => errors.syntax(error),
            }
            return (tokens, errors.into_vec());
        }
    };

    if let ServerItem::Impl(block) = &item
        && source::is_second(block)
    {
        let ty = &block.header.self_ty;
        let what = format!("`{}` is a server already, by the `#[mcp_server]` above", quote!(#ty));
        errors.push(ty, &codes::TWO_BLOCKS, what);
        // What is wrong inside is wrong wherever it is moved to. What others refer to stands beside the first.
        check::server::second(&item, block, &options, &mut errors);
        expand::fallback::repair_all(&mut item);
        let ServerItem::Impl(block) = item else { return (tokens, errors.into_vec()) };
        return (quote!(#block), errors.into_vec());
    }
    let server = check::server::server(&item, &options, &mut errors);
    let is_taken = check::server::is_taken(&item, &mut errors);
    let (krate, door) = match &item {
        ServerItem::Impl(_) => (options.krate(), TokenStream::new()),
        ServerItem::Module(_) => options.krate_inside(),
    };
    let server = server.filter(|_| errors.is_empty());
    let generated = match &server {
        Some(server) => expand::server::server(server, &krate),
        None => expand::fallback::server(&item, is_taken, &krate),
    };
    if server.is_none() {
        expand::fallback::repair_all(&mut item);
    }
    let tokens = match item {
        ServerItem::Impl(block) => quote!(#block #generated),
        ServerItem::Module(module) => {
            let beside = server.map(|server| expand::server::beside(&server, &options.krate()));
            let module = module.with(quote!(#door #generated));
            quote!(#module #beside)
        }
    };
    (tokens, errors.into_vec())
}

/// The output with its errors, as rustc takes them.
pub(crate) fn join((tokens, errors): Output) -> TokenStream {
    let errors = errors.iter().map(syn::Error::to_compile_error);
    quote!(#tokens #(#errors)*)
}

/// Prints the expansion of one item, whose name is in `ASTER_MACROS_DEBUG`: a function's, a type's or a module's.
#[expect(clippy::print_stderr, reason = "whoever sets the variable asks for it")]
pub(crate) fn show(item: &TokenStream, expansion: TokenStream) -> TokenStream {
    if let Ok(wanted) = std::env::var("ASTER_MACROS_DEBUG")
        && let Some(source) = shown(item, &expansion, &wanted)
    {
        eprintln!("{source}");
    }
    expansion
}

/// The expansion as source, where its item has this name.
fn shown(item: &TokenStream, expansion: &TokenStream, wanted: &str) -> Option<String> {
    item::name(item.clone()).filter(|name| name == wanted)?;
    let source = expand::callable::flat(expansion.clone()).to_string();
    Some(formatted("rustfmt", &source).unwrap_or(source))
}

/// The source as rustfmt writes it, where there is one that takes it: nobody else's build depends on a formatter.
fn formatted(program: &str, source: &str) -> Option<String> {
    let mut rustfmt = Command::new(program)
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // It reads all before it writes. One that does not read is found out by what it says in the end.
    let _ = rustfmt.stdin.take()?.write_all(source.as_bytes());
    let output = rustfmt.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

#[cfg(test)]
mod tests;
