//! One tool, resource or prompt.

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;

use super::{asserts, location, option};
use crate::model::{Argument, Callable, Role, Whole};
use crate::parse::attr::Kind;
use crate::path::CratePath;

/// What stands beside a free function: a type of its name, which is no other than a place for the constant. A module
/// would not see what the function sees. All else is an attribute of that type: in an `impl`, where no type can stand,
/// rustc drops the one with the other, and tells one mistake once.
pub(crate) fn free(callable: &Callable, krate: &CratePath) -> TokenStream {
    let private = &krate.private();
    let server = match &callable.server {
        Some(server) => quote!(#server),
        None => quote!(#private::package_server!()),
    };
    let Callable { ident, visibility, .. } = callable;
    let kind = callable.role.kind();
    let place = located(ident, ident);
    let spec = own_body(callable, &server, private);
    let about = format!("The {1} that [`{0}`](fn@{0}) is, for `catalogue!`.", ident.unraw(), kind.noun());
    let (constant, ty, entry) = names(kind);
    let inner = match kind {
        Kind::Tool => quote!(__ASTER_SPEC),
        Kind::Resource | Kind::Prompt => quote!(&__ASTER_SPEC.callable),
    };
    let declaration = quote_spanned!(place.span()=> enum #place {});
    // Its name is none that a user gives to what stands in an option.
    let beside = quote_spanned! {Span::mixed_site()=>
        const _: () = {
            const __ASTER_SPEC: &#private::#ty = &#spec;
            impl #place {
                #[doc = #about]
                #visibility const #constant: &'static #private::#ty = __ASTER_SPEC;
            }
            #private::check_tool(#inner);
            #private::submit! { #private::Entry::#entry(__ASTER_SPEC) }
        };
    };
    quote_spanned! {Span::mixed_site()=>
        #[doc = #about]
        #[#private::beside(#beside)]
        #visibility #declaration
    }
}

/// The constant that describes a function, as an expression. It is the body of a function of its own, because rustc needs more
/// than linear time for one body. To rustc that one stands where the user's does, so that it says of a type in both what is
/// the same to the letter, and shows it once.
pub(super) fn own_body(callable: &Callable, server: &TokenStream, private: &TokenStream) -> TokenStream {
    let ident = &callable.ident;
    let (_, ty, _) = names(callable.role.kind());
    let spec = spec(callable, server, &quote!(#ident), private);
    let own = Ident::new("__aster_spec", ident.span());
    let deprecated = deprecated(callable.deprecated);
    quote_spanned! {Span::mixed_site()=>
        {
            #deprecated
            const fn #own() -> #private::#ty { #spec }
            #own()
        }
    }
}

/// The same tokens with what is to stand beside an item in its place, as rustc will see it and as it is read.
pub(crate) fn flat(tokens: TokenStream) -> TokenStream {
    let mut trees = tokens.into_iter().peekable();
    let (mut flat, mut beside) = (TokenStream::new(), TokenStream::new());
    while let Some(tree) = trees.next() {
        if matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '#')
            && let Some(generated) = trees.peek().and_then(given_to_beside)
        {
            trees.next();
            beside.extend(generated);
            continue;
        }
        flat.extend([tree]);
    }
    flat.extend(beside);
    flat
}

/// The tokens inside of `[…::beside(…)]`.
fn given_to_beside(attribute: &TokenTree) -> Option<TokenStream> {
    let TokenTree::Group(attribute) = attribute else { return None };
    let trees: Vec<TokenTree> = attribute.stream().into_iter().collect();
    match trees.as_slice() {
        [.., TokenTree::Ident(name), TokenTree::Group(given)] if name == "beside" => Some(given.stream()),
        _ => None,
    }
}

/// What a kind's constant, its type and its entry are called.
pub(super) fn names(kind: Kind) -> (Ident, Ident, Ident) {
    let (constant, ty, entry) = match kind {
        Kind::Tool => ("TOOL", "ToolSpec", "Tool"),
        Kind::Resource => ("RESOURCE", "ResourceSpec", "Resource"),
        Kind::Prompt => ("PROMPT", "PromptSpec", "Prompt"),
    };
    let ident = |name| Ident::new(name, Span::mixed_site());
    // The constant is part of the place's interface, so it is named where the user stands.
    (Ident::new(constant, Span::call_site()), ident(ty), ident(entry))
}

/// For a constant that calls what it was generated from: that this is deprecated is for others to hear. Nothing where it is
/// not, for a crate may forbid that it be allowed.
pub(super) fn deprecated(is_deprecated: bool) -> Option<TokenStream> {
    is_deprecated.then(|| {
        quote_spanned! {Span::mixed_site()=>
            #[allow(deprecated, reason = "a deprecated tool is offered until it is removed")]
        }
    })
}

/// The same name, at the same place, but from a macro: lints about how it is written or used do not concern the user.
pub(super) fn located(name: &Ident, at: &Ident) -> Ident {
    let mut ident = name.clone();
    ident.set_span(Span::call_site().located_at(at.span()));
    ident
}

/// The constant that describes a tool, a resource or a prompt, as an expression.
pub(super) fn spec(
    callable: &Callable,
    server: &TokenStream,
    function: &TokenStream,
    private: &TokenStream,
) -> TokenStream {
    let inner = tool_spec(callable, server, function, private);
    let completions = completions(callable, private);
    match &callable.role {
        Role::Tool => inner,
        Role::Resource { uri, mime_type, size } => {
            let mime_type = option(private, mime_type.as_ref());
            let size = option(private, size.map(Literal::u64_unsuffixed));
            quote_spanned! {Span::mixed_site()=>
                #private::ResourceSpec {
                    callable: #inner,
                    uri: #uri,
                    mime_type: #mime_type,
                    size: #size,
                    completions: &[#(#completions),*],
                }
            }
        }
        Role::Prompt => quote_spanned! {Span::mixed_site()=>
            #private::PromptSpec { callable: #inner, completions: &[#(#completions),*] }
        },
    }
}

fn completions(callable: &Callable, private: &TokenStream) -> Vec<TokenStream> {
    let typed = binding("typed");
    let of = |name: &str, complete: &syn::Expr| {
        let values = asserts::suggestions(private, &typed, complete);
        quote_spanned!(Span::mixed_site()=> #private::Completion { argument: #name, values: #values })
    };
    let arguments = callable.arguments.iter();
    arguments.filter_map(|argument| Some(of(&argument.name, argument.complete.as_ref()?))).collect()
}

fn tool_spec(
    tool: &Callable,
    server: &TokenStream,
    function: &TokenStream,
    private: &TokenStream,
) -> TokenStream {
    let Callable { ident, name, tier, hot, .. } = tool;
    let title = option(private, tool.title.as_ref());
    let description = super::description(private, &tool.description);
    let group = option(private, tool.group.as_ref());
    let read_only = option(private, tool.read_only);
    let destructive = option(private, tool.destructive);
    let idempotent = option(private, tool.idempotent);
    let open_world = option(private, tool.open_world);
    let timeout = option(
        private,
        tool.timeout.map(|timeout| {
            let milliseconds =
                Literal::u64_unsuffixed(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            quote!(#private::Duration::from_millis(#milliseconds))
        }),
    );
    let alias = option(private, tool.alias.as_ref());
    let egress = &tool.egress;
    let named = |role: fn(&Argument) -> bool| {
        let names =
            tool.arguments.iter().filter(move |argument| role(argument)).map(|argument| &argument.name);
        quote!(&[#(#names),*])
    };
    let urls = named(|argument| argument.url);
    let free = named(|argument| argument.free);
    let paths = named(|argument| argument.path);
    let secrets = named(|argument| argument.secret);
    let whole = tool.whole.is_some();
    let input_schema = input_schema(tool, private);
    let output_schema = asserts::output_schema(private, tool);
    let call = call(tool, function, private);
    let location = location(private, ident.span());
    quote_spanned! {Span::mixed_site()=>
        #private::ToolSpec {
            server: #server,
            name: #name,
            title: #title,
            description: #description,
            tier: #private::Tier::#tier,
            group: #group,
            annotations: #private::Annotations {
                read_only: #read_only,
                destructive: #destructive,
                idempotent: #idempotent,
                open_world: #open_world,
            },
            timeout: #timeout,
            hot: #hot,
            alias: #alias,
            egress: &[#(#egress),*],
            url_arguments: #urls,
            free_arguments: #free,
            path_arguments: #paths,
            secret_arguments: #secrets,
            whole: #whole,
            input_schema: #input_schema,
            output_schema: #output_schema,
            call: #call,
            location: #location,
        }
    }
}

/// A local variable of generated code. A pattern sees the constants around it, whatever its span, so the name is one that
/// nobody gives to a constant.
fn binding(name: &str) -> Ident {
    format_ident!("__aster_{name}", span = Span::mixed_site())
}

fn input_schema(tool: &Callable, private: &TokenStream) -> TokenStream {
    match (&tool.whole, tool.arguments.first()) {
        (Some(Whole::Own(schema)), _) => {
            let spot = Span::mixed_site().located_at(schema.span());
            return quote_spanned!(spot=> || #private::own_schema(#schema));
        }
        (Some(Whole::Flattened), Some(argument)) => {
            return asserts::flattened(private, argument, tool.in_impl);
        }
        _ => {}
    }
    if tool.arguments.is_empty() {
        return quote_spanned!(Span::mixed_site()=> || #private::InputSchema::new().finish());
    }
    let schema = binding("schema");
    let arguments =
        tool.arguments.iter().map(|argument| asserts::describe(private, &schema, argument, tool.in_impl));
    quote_spanned! {Span::mixed_site()=>
        || {
            let mut #schema = #private::InputSchema::new();
            #(#arguments)*
            #schema.finish()
        }
    }
}

/// The closure between the JSON of a call and the function. The function is called in the call's own future, or on the
/// blocking pool where it is no `async fn`.
fn call(tool: &Callable, function: &TokenStream, private: &TokenStream) -> TokenStream {
    let mixed = Span::mixed_site();
    let (invocation, call, state, context) =
        (binding("invocation"), binding("call"), binding("state"), binding("context"));
    let locals: Vec<Ident> = (0..tool.arguments.len()).map(|at| binding(&format!("argument_{at}"))).collect();
    let decoded = tool.arguments.iter().zip(&locals).map(|(argument, local)| match tool.whole {
        Some(_) => asserts::decode_whole(&call, local, argument, tool.in_impl),
        None => asserts::decode(private, &call, local, argument, tool.in_impl),
    });

    let state = tool.takes_self.then_some(&state);
    let open_state = state.map(|state| quote_spanned!(mixed=> let #state = #call.state::<Self>();));
    let lent = state.into_iter().chain(tool.takes_context.then_some(&context));
    let taken: Vec<&Ident> = state.into_iter().chain(&locals).collect();
    let ident_span = mixed.located_at(tool.ident.span());
    let arguments = lent.map(|local| quote!(&#local)).chain(locals.iter().map(|local| quote!(#local)));
    let called = quote_spanned!(ident_span=> #function(#(#arguments),*));
    // A future that is not `Send` is an error at the function's name.
    let here = asserts::respan(private, ident_span);
    let (run, work) = if tool.is_async {
        let result = asserts::result(private, tool, quote!(#called.await));
        (quote!(run), quote_spanned!(ident_span=> async move { #result }))
    } else {
        let result = asserts::result(private, tool, called);
        (quote!(run_blocking), quote_spanned!(ident_span=> move || #result))
    };
    // A state that cannot be shared is an error at its server, and not once more at each method.
    let future = if tool.takes_self {
        quote_spanned!(ident_span=> { use #here::Unshared as _; #here::With::<Self>::#run(#work) })
    } else {
        quote_spanned!(ident_span=> #here::#run(#work))
    };
    let context = if tool.takes_context { quote!(#context) } else { quote!(_) };
    quote_spanned! {mixed=>
        |#invocation| {
            let mut #call = #private::Call::open(#invocation);
            #open_state
            #(#decoded)*
            match (#call.finish(), #(#taken,)*) {
                (#private::Some(#context), #(#private::Some(#taken),)*) => #future,
                _ => #call.refuse(),
            }
        }
    }
}
