//! A server as a whole.

use quote::{ToTokens, quote};
use syn::ext::IdentExt as _;
use syn::visit::Visit;
use syn::{GenericParam, Ident, Lifetime, LitStr, Path, Type};

use super::{Home, callable, is_deprecated, name, noun};
use crate::diag::{Errors, codes};
use crate::model::{Callable, Server, ServerHome};
use crate::parse::attr::{CallableOptions, Kind, ServerOptions};
use crate::parse::item::{Function, ImplBlock, Module, ServerItem, bare, is_server};
use crate::parse::source;

/// Judges a server and what it publishes. `None` where something is wrong, which has then been reported.
pub(crate) fn server(item: &ServerItem, options: &ServerOptions, errors: &mut Errors) -> Option<Server> {
    let (home, name) = match item {
        ServerItem::Impl(block) => of_impl(block, options, errors)?,
        ServerItem::Module(module) => of_module(module, options, errors)?,
    };
    // A server whose name is wrong still has its tools judged.
    let server = name.clone().unwrap_or_default();
    let tool_home = match &home {
        ServerHome::Impl(..) => Home::Impl { server },
        ServerHome::Module(_) => Home::Module { server },
    };
    let judged = callables(item, &tool_home, name.as_deref(), errors);
    for second in item.attributes().iter().filter(|attribute| is_server(attribute)) {
        errors.push(second.path(), &codes::CONFLICTING, "`#[mcp_server]` is given twice");
    }
    if judged.is_empty() && !item.is_lost() {
        let what = format!("server `{}` has no tools", name.as_deref().unwrap_or("…"));
        match item {
            ServerItem::Impl(block) => errors.push(block.header.impl_token, &codes::NO_TOOLS, what),
            ServerItem::Module(module) => errors.push(module.header.mod_token, &codes::NO_TOOLS, what),
        }
    }
    taken(item, errors);

    Some(Server {
        home,
        name: name?,
        title: options.title.as_ref().map(LitStr::value),
        description: item.doc().into(),
        instructions: options.instructions.as_ref().map(LitStr::value),
        group: options.group.clone(),
        deprecated: is_deprecated(item.attributes()),
        callables: judged
            .into_iter()
            .map(|judged| judged.map(|(callable, _)| callable))
            .collect::<Option<_>>()?,
    })
}

/// Judges what a second block of a type publishes. The block itself is no server, whatever stands in it; a name that it takes
/// from the first one's is told by rustc.
pub(crate) fn second(item: &ServerItem, block: &ImplBlock, options: &ServerOptions, errors: &mut Errors) {
    // What is wrong with the type's own name was told at the first block.
    let name = match &options.name {
        Some(literal) => name::literal("name", literal, errors),
        None => last_segment(&block.header.self_ty).map(|ident| name::snake(&ident.unraw().to_string())),
    };
    let home = Home::Impl { server: name.clone().unwrap_or_default() };
    callables(item, &home, name.as_deref(), errors);
}

/// Judges what a server publishes, each alone and all beside one another.
fn callables(
    item: &ServerItem,
    home: &Home,
    server: Option<&str>,
    errors: &mut Errors,
) -> Vec<Option<(Callable, CallableOptions)>> {
    let judge = |function: &Function| {
        let (attribute, kind) = (function.published.first()?, function.kind()?);
        let options = CallableOptions::of(kind, attribute, errors);
        Some((callable(kind, function, &options, home, errors)?, options))
    };
    let judged: Vec<_> = item.published().map(judge).collect();
    same_names(&judged.iter().flatten().collect::<Vec<_>>(), server, errors);
    same_variants(item, errors);
    judged
}

/// Where a server stands, and its name unless that is wrong.
type Place = (ServerHome, Option<String>);

fn of_impl(block: &ImplBlock, options: &ServerOptions, errors: &mut Errors) -> Option<Place> {
    let header = &block.header;
    if let Some((path, _)) = &header.trait_ {
        errors.push(path, &codes::TRAIT_IMPL, "`#[mcp_server]` needs an inherent `impl`");
        return None;
    }
    let is_lifetime = |parameter: &&GenericParam| matches!(parameter, GenericParam::Lifetime(_));
    if !header.generics.params.iter().all(|parameter| is_lifetime(&parameter)) {
        errors.push(&header.generics.params, &codes::GENERIC, "a server cannot be generic");
        return None;
    }
    let Some(ident) = last_segment(&header.self_ty) else {
        let (what, help) = ("the type of this `impl` has no name", "put the tools on a struct of your own");
        errors.push_with_help(&header.self_ty, &codes::TRAIT_IMPL, what, help);
        return None;
    };
    let default = name::snake(&ident.unraw().to_string());
    let name = name::server(&default, &ident, options.name.as_ref(), errors);
    if let Some(lifetime) = lifetime(&header.self_ty) {
        errors.push(lifetime, &codes::BORROWING, format!("`{ident}` borrows what it serves from"));
        return None;
    }
    Some((ServerHome::Impl(header.impl_token, header.self_ty.clone(), ident), name))
}

fn of_module(module: &Module, options: &ServerOptions, errors: &mut Errors) -> Option<Place> {
    let header = &module.header;
    if !module.is_inline() {
        let what = format!("the body of `mod {}` is not here", header.ident);
        let (keyword, ident) = (&header.mod_token, &header.ident);
        errors.push(quote!(#keyword #ident), &codes::FILE_MODULE, what);
        return None;
    }
    let default = header.ident.unraw().to_string();
    let name = name::server(&default, &header.ident, options.name.as_ref(), errors);
    Some((ServerHome::Module(header.ident.clone()), name))
}

/// The first lifetime in a type that ends.
pub(crate) fn lifetime(ty: &Type) -> Option<Lifetime> {
    struct Search(Option<Lifetime>);
    impl Visit<'_> for Search {
        fn visit_lifetime(&mut self, lifetime: &Lifetime) {
            if lifetime.ident != "static" {
                self.0.get_or_insert_with(|| lifetime.clone());
            }
        }
    }
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}

/// What a type is called, where it is a plain path.
pub(crate) fn last_segment(ty: &Type) -> Option<Ident> {
    match bare(ty) {
        Type::Path(path) if path.qself.is_none() => last(&path.path),
        _ => None,
    }
}

fn last(path: &Path) -> Option<Ident> {
    path.segments.last().map(|segment| segment.ident.clone())
}

fn same_names(judged: &[&(Callable, CallableOptions)], server: Option<&str>, errors: &mut Errors) {
    let mut names: Vec<(&str, &dyn ToTokens, &Callable)> = Vec::new();
    for (callable, options) in judged {
        let own: &dyn ToTokens = match &options.name {
            Some(literal) => literal,
            None => &callable.ident,
        };
        let alias = callable.alias.as_deref().zip(options.alias.as_ref());
        let alias = alias.map(|(name, literal)| (name, literal as &dyn ToTokens, callable));
        for second in [(callable.name.as_str(), own, callable)].into_iter().chain(alias) {
            // Two under different `cfg`s may well be one.
            let clashes = |(name, _, first): &&(&str, &dyn ToTokens, &Callable)| {
                *name == second.0 && first.conditions.is_empty() && callable.conditions.is_empty()
            };
            if let Some((name, first, _)) = names.iter().find(clashes) {
                let (noun, server) = (callable.role.kind().noun(), server.unwrap_or("…"));
                let what = format!("{noun} `{name}` is declared twice in server `{server}`");
                errors.push_pair(second.1, first, &codes::SAME_TOOL, what);
            }
            names.push(second);
        }
    }
}

/// The names of what the macro puts into an `impl`; a module has the tool enum as well.
pub(crate) const OWN: [&str; 3] = ["SERVER", "TIERS", "GROUPS"];

/// Reports what has a name of the macro's.
fn taken(item: &ServerItem, errors: &mut Errors) {
    let is_module = matches!(item, ServerItem::Module(_));
    for name in item.names() {
        if OWN.iter().any(|own| name == own) || (is_module && name == "Tool") {
            errors.push(name, &codes::TAKEN, format!("the name `{name}` is the server's own here"));
        }
    }
}

/// Reports a type or module that has the name of the tool enum beside an `impl`. Whether there is one.
pub(crate) fn is_taken(item: &ServerItem, errors: &mut Errors) -> bool {
    let ServerItem::Impl(block) = item else { return false };
    let Some(ident) = last_segment(&block.header.self_ty) else { return false };
    let name = tool_enum(&ident);
    let Some(keyword) = source::namesake(block, &name) else { return false };
    let what = format!("the {} `{name}` stands beside this server", noun(&keyword));
    errors.push(&block.header.self_ty, &codes::TAKEN, what);
    true
}

/// What the enum of a server's tools is called beside its `impl`.
pub(crate) fn tool_enum(ident: &Ident) -> String {
    format!("{}Tool", ident.unraw())
}

/// Reports functions of different names that become one variant of the tool enum.
fn same_variants(item: &ServerItem, errors: &mut Errors) {
    let tools: Vec<(&Ident, String, bool)> = item
        .published()
        .filter(|function| function.kind() == Some(Kind::Tool))
        .map(|tool| {
            let function = &tool.signature.ident;
            (function, name::variant(function), tool.conditions().is_empty())
        })
        .collect();
    for (at, (second, name, unconditional)) in tools.iter().enumerate() {
        let clashes = |(first, other, alone): &&(&Ident, String, bool)| {
            other == name && first != second && *alone && *unconditional
        };
        if let Some((first, ..)) = tools[..at].iter().find(clashes) {
            let what =
                format!("`{first}` and `{second}` are both `{name}` in the enum of the server's tools");
            errors.push_pair(second, first, &codes::SAME_VARIANT, what);
        }
    }
}
