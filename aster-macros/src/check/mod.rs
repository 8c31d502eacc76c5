//! Judges what was written. A check reports everything it knows and emits nothing; what passes becomes a value of
//! [`model`](crate::model).

mod args;
pub(crate) mod name;
pub(crate) mod server;
mod signature;

use proc_macro2::Span;

use crate::diag::{Errors, codes};
use crate::model::{Description, Tool};
use crate::parse::attr::{TOOL_KEYS, ToolOptions};
use crate::parse::item::{Function, is_tool};

/// Where a tool stands.
#[derive(Debug)]
pub(crate) enum Home {
    /// On its own; its server is the package, unless it says otherwise.
    Package,
    /// In an `impl` with `#[mcp_server]`.
    Impl { server: String },
    /// In a module with `#[mcp_server]`.
    Module { server: String },
}

impl Home {
    fn server(&self) -> Option<&str> {
        match self {
            Self::Package => None,
            Self::Impl { server } | Self::Module { server } => Some(server),
        }
    }
}

/// Judges one tool. `None` where something is wrong, which has then been reported.
pub(crate) fn tool(
    function: &Function,
    options: &ToolOptions,
    home: &Home,
    errors: &mut Errors,
) -> Option<Tool> {
    let ident = &function.signature.ident;
    attributes(function, home, errors);
    signature::check(function, home, errors);
    let (takes_context, arguments) = args::check(function, errors);
    let description = description(function, errors);
    let name = name::tool(ident, options.name.as_ref(), errors);
    if matches!(home, Home::Package) && name::is_primitive(ident) {
        let what = format!("the type beside this function would hide the primitive `{ident}`");
        errors.push(ident, &codes::PRIMITIVE, what);
    }
    let server = server(options, home, errors);
    if let (Some(server), Some(name)) = (&server, &name) {
        name::whole(server, name, options.name.as_ref(), ident, errors);
    }
    if options.keys.lacks("tier", TOOL_KEYS) {
        let at = function.tool.first().map_or_else(Span::call_site, |attribute| {
            attribute.path().segments.last().map_or_else(Span::call_site, |segment| segment.ident.span())
        });
        errors.push_at(at, &codes::NO_TIER, format!("tool `{ident}` has no tier"));
    }

    Some(Tool {
        ident: ident.clone(),
        visibility: function.visibility.clone(),
        conditions: function.conditions(),
        server,
        name: name?,
        title: options.title.as_ref().map(syn::LitStr::value),
        description: description?,
        tier: options.tier.clone()?,
        group: options.group.clone(),
        read_only: options.read_only,
        destructive: options.destructive,
        idempotent: options.idempotent,
        open_world: options.open_world,
        timeout: options.timeout,
        hot: options.hot,
        is_async: function.signature.asyncness.is_some(),
        takes_self: function.signature.receiver().is_some(),
        takes_context,
        arguments: arguments?,
        output: signature::output(&function.signature),
    })
}

/// Whether a function shows by itself that it stands in an `impl` or a `trait`.
pub(crate) fn is_method(function: &Function) -> bool {
    !function.has_body()
        || function.signature.receiver().is_some()
        || signature::self_type(&function.signature).is_some()
}

/// Attributes that cannot stand beside `#[mcp_tool]`: itself, and those that turn a function into an entry point.
fn attributes(function: &Function, home: &Home, errors: &mut Errors) {
    // A free function's first `#[mcp_tool]` is the one being expanded, and not among its attributes.
    let own = if matches!(home, Home::Package) { 0 } else { 1 };
    for second in function.tool.iter().skip(own) {
        errors.push(second, &codes::CONFLICTING, "`#[mcp_tool]` is given twice");
    }
    for attribute in function.attributes.iter().filter(|attribute| !is_tool(attribute)) {
        let Some(last) = attribute.path().segments.last() else { continue };
        if last.ident == "test" || last.ident == "main" || last.ident == "bench" {
            let what = format!("`#[{}]` cannot stand beside `#[mcp_tool]`", last.ident);
            errors.push(attribute, &codes::CONFLICTING, what);
        }
    }
}

fn server(options: &ToolOptions, home: &Home, errors: &mut Errors) -> Option<String> {
    let Some(server) = home.server() else {
        return options.server.as_ref().and_then(|literal| name::literal("server", literal, errors));
    };
    for key in ["server", "crate"] {
        if let Some(key) = options.keys.get(key) {
            errors.push_with_help(
                key,
                &codes::OTHER_ATTRIBUTE,
                format!("`{key}` belongs to a free function"),
                "say it on the `#[mcp_server]` around this tool",
            );
        }
    }
    Some(server.to_owned())
}

fn description(function: &Function, errors: &mut Errors) -> Option<Description> {
    let (ident, doc) = (&function.signature.ident, &function.doc);
    if !doc.present {
        errors.push(ident, &codes::NO_DESCRIPTION, format!("tool `{ident}` has no description"));
        return None;
    }
    if doc.computed {
        return Some(doc.into());
    }
    if doc.text.is_empty() {
        errors.push(&doc.tokens, &codes::PLACEHOLDER, format!("the description of tool `{ident}` is empty"));
        return None;
    }
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let said = letters(&doc.text);
    if said == letters(&ident.to_string()) || ["", "todo", "fixme", "tbd", "xxx"].contains(&said.as_str()) {
        let what = format!("the description of tool `{ident}` says nothing");
        errors.push(&doc.tokens, &codes::PLACEHOLDER, what);
        return None;
    }
    Some(doc.into())
}
