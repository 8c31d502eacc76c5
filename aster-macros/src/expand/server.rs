//! One server: its constant, its tool enum, and the static maps from tool to tier and group.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;

use super::callable::{deprecated, located, own_body, spec};
use super::{location, option};
use crate::check::{self, name};
use crate::model::{Callable, Server, ServerHome};
use crate::parse::attr::Kind;
use crate::path::CratePath;

/// What stands beside the `impl`, or at the end of the module.
pub(crate) fn server(server: &Server, krate: &CratePath) -> TokenStream {
    let private = &krate.private();
    let mixed = Span::mixed_site();
    let constant = constant(server, private);
    let about = format!("The server `{}`, for `catalogue!`.", server.name);
    let deprecated = deprecated(server.deprecated);
    let tiers_about = format!("The tier of each tool of `{}`.", server.name);
    let groups_about = format!("The name of each tool's group, of `{}`.", server.name);
    let tiers = |spec: &TokenStream| quote_spanned!(mixed=> &#private::tiers::<{ #spec.tools.len() }>(#spec));
    let maps = |spec: TokenStream, tiers: TokenStream| {
        quote_spanned! {mixed=>
            #[doc = #about]
            #deprecated
            pub const SERVER: &'static #private::ServerSpec = &#constant;
            #[doc = #tiers_about]
            pub const TIERS: &'static [#private::Tier] = #tiers;
            #[doc = #groups_about]
            pub const GROUPS: &'static [&'static str] = &#private::groups::<{ #spec.tools.len() }>(#spec);
        }
    };
    let variants = of_kind(server, Kind::Tool)
        .map(|tool| (&tool.ident, tool.conditions.as_slice(), Some(tool.name.as_str())));
    match &server.home {
        ServerHome::Impl(keyword, ty, ident) => {
            let name = enum_of(ident);
            let constant = quote_spanned!(mixed=> <#ty>::SERVER);
            let list = tool_enum(&name, ident, &server.name, variants, Some(&constant), private);
            let tiers = tiers(&constant);
            let maps = maps(constant, quote_spanned!(mixed=> <#ty as #private::ServerTiers>::TIERS));
            let owns = owns(server, private);
            // With the keyword of the user's own, rustc says of a type in both what is the same to the letter, and shows it once.
            quote_spanned! {mixed=>
                #keyword #ty {
                    #maps
                    #(#owns)*
                }
                impl #private::NativeServer for #ty {
                    const SPEC: &'static #private::ServerSpec = <#ty>::SERVER;
                    fn __implemented_by_the_macro() {}
                }
                impl #private::ServerTiers for #ty {
                    const TIERS: &'static [#private::Tier] = #tiers;
                }
                #list
                #private::submit! { #private::Entry::Server(<#ty>::SERVER) }
            }
        }
        ServerHome::Module(ident) => {
            let name = Ident::new("Tool", Span::call_site());
            let constant = quote_spanned!(mixed=> SERVER);
            let list = tool_enum(&name, ident, &server.name, variants, Some(&constant), private);
            let tiers = tiers(&constant);
            let maps = maps(constant, tiers);
            quote_spanned! {mixed=>
                #maps
                #list
                #private::submit! { #private::Entry::Server(SERVER) }
            }
        }
    }
}

/// What stands beside a module: its group, since the path to it is written outside and means there what it means.
pub(crate) fn beside(server: &Server, krate: &CratePath) -> TokenStream {
    let (ServerHome::Module(module), Some(group)) = (&server.home, &server.group) else {
        return TokenStream::new();
    };
    let private = &krate.private();
    quote_spanned! {Span::mixed_site()=>
        impl #private::ServerGroup for #module::Tool {
            const GROUP: #private::Group = #group;
        }
    }
}

fn of_kind(server: &Server, kind: Kind) -> impl Iterator<Item = &Callable> {
    server.callables.iter().filter(move |callable| callable.role.kind() == kind)
}

/// The name of the tool enum beside an `impl`.
pub(super) fn enum_of(ident: &Ident) -> Ident {
    Ident::new(&check::server::tool_enum(ident), Span::call_site())
}

/// The enum of a server's tools, in the order of the source.
pub(super) fn tool_enum<'a>(
    name: &Ident,
    at: &Ident,
    server: &str,
    variants: impl Iterator<Item = (&'a Ident, &'a [syn::Attribute], Option<&'a str>)>,
    constant: Option<&TokenStream>,
    private: &TokenStream,
) -> TokenStream {
    let about = format!("The tools of the server `{server}`, in the order of its list.");
    let name = located(name, at);
    let (variants, arms): (Vec<_>, Vec<_>) = variants
        .map(|(ident, conditions, tool)| {
            let variant = located(&format_ident!("{}", name::variant(ident)), ident);
            let about = tool.map(|tool| format!("`{tool}`")).map(|about| quote!(#[doc = #about]));
            let tool = tool.unwrap_or_default();
            (quote!(#(#conditions)* #about #variant), quote!(#(#conditions)* Self::#variant => #tool))
        })
        .unzip();
    // By name and not by number: a tool under a `cfg` that does not hold is in neither list. What follows on a `match` of nothing
    // would be unreachable in its own function.
    let (spec, tool) = match constant {
        Some(constant) => (
            quote_spanned!(Span::mixed_site()=> #private::tool_of(#constant, self.__tool())),
            Some(quote_spanned! {Span::mixed_site()=>
                const fn __tool(self) -> &'static str {
                    match self { #(#arms),* }
                }
            }),
        ),
        None => (quote!(&#private::BROKEN_TOOL), None),
    };
    quote_spanned! {Span::mixed_site()=>
        #[doc = #about]
        #[#private::derive(#private::Clone, #private::Copy, #private::Debug, #private::PartialEq, #private::Eq)]
        pub enum #name { #(#variants),* }
        impl #name {
            #[doc = "What the tool is: all that its attribute says."]
            #[must_use]
            pub const fn spec(self) -> &'static #private::ToolSpec {
                #spec
            }
            #tool
        }
    }
}

/// The type of what describes a callable, and the constant of it beside that of its server. It is a constant of its own because
/// rustc needs more than linear time for one body, and that of a whole server would have all of its callables.
fn own(kind: Kind, callable: &Ident) -> (Ident, Ident) {
    let (ty, name) = match kind {
        Kind::Tool => ("ToolSpec", "TOOL"),
        Kind::Resource => ("ResourceSpec", "RESOURCE"),
        Kind::Prompt => ("PromptSpec", "PROMPT"),
    };
    (format_ident!("{ty}"), format_ident!("__{name}_{}", callable.unraw()))
}

/// The constants of the callables of an `impl`, where types may say `Self`. In a module each stands where it is listed.
fn owns<'a>(server: &'a Server, private: &'a TokenStream) -> impl Iterator<Item = TokenStream> + 'a {
    [Kind::Tool, Kind::Resource, Kind::Prompt].into_iter().flat_map(move |kind| {
        of_kind(server, kind).map(move |callable| {
            let (ty, own) = own(kind, &callable.ident);
            let (conditions, ident, name) = (&callable.conditions, &callable.ident, &server.name);
            let spec = spec(callable, &quote!(#name), &quote!(Self::#ident), private);
            let deprecated = deprecated(server.deprecated || callable.deprecated);
            quote_spanned!(Span::mixed_site()=> #(#conditions)* #deprecated #[doc(hidden)] #[allow(non_upper_case_globals)] const #own: #private::#ty = #spec;)
        })
    })
}

/// The constant that describes a server, as an expression.
fn constant(server: &Server, private: &TokenStream) -> TokenStream {
    let name = &server.name;
    let description = super::description(private, &server.description);
    let title = option(private, server.title.as_ref());
    let instructions = option(private, server.instructions.as_ref());
    let group = match &server.home {
        ServerHome::Module(_) => {
            let outside = server.group.as_ref().map(|_| quote!(<Tool as #private::ServerGroup>::GROUP));
            option(private, outside.as_ref())
        }
        ServerHome::Impl(..) => option(private, server.group.as_ref()),
    };
    let (tiers, start, at) = match &server.home {
        ServerHome::Impl(_, ty, ident) => {
            let ty = ty.to_token_stream();
            let tiers = quote!(<Self as #private::ServerTiers>::TIERS);
            (tiers, quote!({ use #private::HandedIn as _; #private::Start::<#ty>::FUNCTION }), ident)
        }
        ServerHome::Module(ident) => (quote!(TIERS), quote!(#private::start_stateless), ident),
    };
    let specs = |kind| {
        let specs = of_kind(server, kind).map(|callable| {
            let (_, own) = own(kind, &callable.ident);
            let spec = match &server.home {
                ServerHome::Impl(..) => quote!(Self::#own),
                ServerHome::Module(_) => own_body(callable, &quote!(#name), private),
            };
            let conditions = &callable.conditions;
            quote!(#(#conditions)* #spec)
        });
        quote!(&[#(#specs),*])
    };
    let (tools, resources, prompts) = (specs(Kind::Tool), specs(Kind::Resource), specs(Kind::Prompt));
    let location = location(private, at.span());
    quote_spanned! {Span::mixed_site()=>
        #private::ServerSpec {
            name: #name,
            title: #title,
            description: #description,
            instructions: #instructions,
            group: #group,
            tools: #tools,
            tiers: || #tiers,
            resources: #resources,
            prompts: #prompts,
            start: #start,
            location: #location,
        }
    }
}
