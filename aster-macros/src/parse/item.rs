//! The items that the attributes stand on. A function's body stays raw tokens: nothing here depends on it, and syntax
//! that this parser does not know yet is rustc's business.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, ImplItem, Item, ItemImpl, ItemMod, Meta, Pat, Signature, Token, Type, UseRename,
    UseTree, Visibility,
};

use super::attr::Kind;
use super::doc::{self, Doc};
use crate::diag::{Errors, codes};

/// What a server's macro leaves in the attributes that it has taken: the attribute itself must stay, or rustc would
/// call its import unused, and a missing import would go unnoticed.
pub(crate) const TAKEN: &str = "__taken_by_the_server";

/// A function that is published. Its tokens are the item without the attributes that are ours.
#[derive(Debug)]
pub(crate) struct Function {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub signature: Signature,
    /// The block, or the `;` of a trait's method.
    pub body: TokenTree,
    /// The attributes that publish it, but for the one that is being expanded.
    pub published: Vec<Attribute>,
    pub doc: Doc,
    pub parameters: Vec<Parameter>,
    /// The `#[arg]`s on `self`, which mean nothing there.
    pub options_of_self: Vec<Attribute>,
}

/// A parameter with what was written on it.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub pattern: Pat,
    pub ty: Type,
    pub doc: Doc,
    /// Its `#[arg]`s.
    pub options: Vec<Attribute>,
    /// Its `#[cfg]`s, and the `#[cfg_attr]`s with what is read here.
    pub conditions: Vec<Attribute>,
    /// What only means something on the fields of a struct.
    pub of_fields: Vec<Attribute>,
}

impl Function {
    pub(crate) fn has_body(&self) -> bool {
        matches!(self.body, TokenTree::Group(_))
    }

    /// What it is published as by an attribute of its own.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.published.first().and_then(kind)
    }

    /// The conditions under which a server's tool exists, which hold for what is generated from it as well. A free
    /// function's have been met before its attribute is asked.
    pub(crate) fn conditions(&self) -> Vec<Attribute> {
        self.attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let mut signature: Signature = input.parse()?;
        let body: TokenTree = input.parse()?;

        let doc = Doc::of(&attributes);
        let (published, attributes) = attributes.into_iter().partition(|attribute| kind(attribute).is_some());
        let mut options_of_self = Vec::new();
        let mut take = |argument| take_parameter(argument, &mut options_of_self);
        let parameters = signature.inputs.iter_mut().filter_map(&mut take).collect();
        Ok(Self { attributes, visibility, signature, body, published, doc, parameters, options_of_self })
    }
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Self { attributes, visibility, signature, body, published, .. } = self;
        let taken = published.first().map(|attribute| {
            let path = attribute.path();
            let mark = Ident::new(TAKEN, Span::call_site());
            quote!(#[#path(#mark)])
        });
        // Lints against what a tool cannot be without.
        let allowed = quote_spanned! {Span::mixed_site()=>
            #[allow(
                clippy::needless_pass_by_value,
                clippy::too_many_arguments,
                reason = "a tool owns its arguments, and its schema shows each of them"
            )]
        };
        tokens.extend(quote!(#(#attributes)* #allowed #taken #visibility #signature #body));
    }
}

fn take_parameter(argument: &mut FnArg, options_of_self: &mut Vec<Attribute>) -> Option<Parameter> {
    let typed = match argument {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            let (options, rest) = take_attributes(&mut receiver.attrs);
            receiver.attrs = rest;
            options_of_self.extend(options);
            return None;
        }
    };
    let doc = Doc::of(&typed.attrs);
    let (options, rest) = take_attributes(&mut typed.attrs);
    let is_condition = |attribute: &&Attribute| attribute.path().is_ident("cfg");
    let mut conditions: Vec<Attribute> = rest.iter().filter(is_condition).cloned().collect();
    let hides = |attribute: &Attribute| hidden(attribute, &["arg", "cfg", "doc"]).is_some();
    let (hiding, rest): (Vec<_>, Vec<_>) = rest.into_iter().partition(hides);
    conditions.extend(hiding);
    let is_of_fields = |attribute: &Attribute| {
        ["serde", "schemars"].iter().any(|of_derive| attribute.path().is_ident(of_derive))
    };
    let (of_fields, rest) = rest.into_iter().partition(is_of_fields);
    typed.attrs = rest;
    let (pattern, ty) = ((*typed.pat).clone(), (*typed.ty).clone());
    Some(Parameter { pattern, ty, doc, options, conditions, of_fields })
}

/// A parameter's `#[arg]`s, and what is neither that nor a doc comment.
fn take_attributes(attributes: &mut Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    std::mem::take(attributes)
        .into_iter()
        .filter(|attribute| !doc::is_doc(attribute))
        .partition(|attribute| attribute.path().is_ident("arg"))
}

/// The name of the first of these attributes that a `#[cfg_attr]` hides: it is there under a condition, which a macro cannot
/// judge.
pub(crate) fn hidden(attribute: &Attribute, names: &[&str]) -> Option<Ident> {
    fn inside(tokens: &TokenStream, names: &[&str]) -> Option<Ident> {
        let parser = Punctuated::<Meta, Token![,]>::parse_terminated;
        let metas = parser.parse2(tokens.clone()).ok()?;
        // The first is the condition.
        metas.iter().skip(1).find_map(|meta| match meta {
            Meta::List(list) if list.path.is_ident("cfg_attr") => inside(&list.tokens, names),
            // `doc(hidden)` and `doc(cfg(…))` say nothing to a model.
            Meta::List(list) if list.path.is_ident("doc") => None,
            meta => {
                let last = &meta.path().segments.last()?.ident;
                names.iter().any(|name| last == name).then(|| last.clone())
            }
        })
    }
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => inside(&list.tokens, names),
        _ => None,
    }
}

/// What an attribute publishes a function as, under whatever path.
pub(crate) fn kind(attribute: &Attribute) -> Option<Kind> {
    attribute.path().segments.last().and_then(|segment| Kind::of(&segment.ident))
}

/// Whether an attribute makes a server, under whatever path.
pub(crate) fn is_server(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "mcp_server")
}

/// The function that the tokens are.
pub(crate) fn function(tokens: TokenStream) -> syn::Result<Function> {
    syn::parse2(tokens)
}

/// What `#[mcp_server]` stands on.
pub(crate) enum ServerItem {
    Impl(ImplBlock),
    Module(Module),
}

/// An `impl` block.
pub(crate) struct ImplBlock {
    /// The block without its members.
    pub header: ItemImpl,
    pub doc: Doc,
    members: Body,
}

/// A module.
pub(crate) struct Module {
    /// The module without its items.
    pub header: ItemMod,
    pub doc: Doc,
    /// `None` where the module is a file of its own.
    members: Option<Body>,
}

/// What stands between braces: what is published, and everything else as it is.
struct Body {
    braces: Group,
    attributes: Vec<Attribute>,
    members: Vec<Member>,
    /// The names that those have which are not published.
    names: Vec<Ident>,
    /// Whether something was to be published that is not, which is told elsewhere.
    lost: bool,
}

enum Member {
    Published(Box<Function>),
    Other(TokenStream),
}

impl ServerItem {
    /// The functions that become a tool, a resource or a prompt.
    pub(crate) fn published(&self) -> impl Iterator<Item = &Function> {
        let body = match self {
            Self::Impl(block) => Some(&block.members),
            Self::Module(module) => module.members.as_ref(),
        };
        body.into_iter().flat_map(|body| &body.members).filter_map(|member| match member {
            Member::Published(function) => Some(&**function),
            Member::Other(_) => None,
        })
    }

    pub(crate) fn published_mut(&mut self) -> impl Iterator<Item = &mut Function> {
        let body = match self {
            Self::Impl(block) => Some(&mut block.members),
            Self::Module(module) => module.members.as_mut(),
        };
        body.into_iter().flat_map(|body| &mut body.members).filter_map(|member| match member {
            Member::Published(function) => Some(&mut **function),
            Member::Other(_) => None,
        })
    }

    /// Whether something was to be published that is not, for what has been reported, or under a name that only rustc knows.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Impl(block) => block.members.lost,
            Self::Module(module) => module.members.as_ref().is_some_and(|body| body.lost),
        }
    }

    /// The attributes on the whole.
    pub(crate) fn attributes(&self) -> &[Attribute] {
        match self {
            Self::Impl(block) => &block.header.attrs,
            Self::Module(module) => &module.header.attrs,
        }
    }

    pub(crate) fn attributes_mut(&mut self) -> &mut Vec<Attribute> {
        match self {
            Self::Impl(block) => &mut block.header.attrs,
            Self::Module(module) => &mut module.header.attrs,
        }
    }

    /// The names that other members have, as far as no macro makes them.
    pub(crate) fn names(&self) -> &[Ident] {
        match self {
            Self::Impl(block) => &block.members.names,
            Self::Module(module) => module.members.as_ref().map_or(&[], |body| &body.names),
        }
    }

    pub(crate) fn doc(&self) -> &Doc {
        match self {
            Self::Impl(block) => &block.doc,
            Self::Module(module) => &module.doc,
        }
    }
}

impl ImplBlock {
    /// What stands between its braces, as it was written.
    pub(crate) fn body(&self) -> TokenStream {
        self.members.braces.stream()
    }
}

impl Module {
    pub(crate) fn is_inline(&self) -> bool {
        self.members.is_some()
    }

    /// The module with what was generated for it inside.
    pub(crate) fn with(&self, generated: TokenStream) -> TokenStream {
        let ItemMod { attrs, vis, unsafety, mod_token, ident, .. } = &self.header;
        match &self.members {
            Some(body) => {
                let body = body.with(generated);
                quote!(#(#attrs)* #vis #unsafety #mod_token #ident #body)
            }
            None => quote!(#(#attrs)* #vis #unsafety #mod_token #ident;),
        }
    }
}

impl ToTokens for ImplBlock {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let ItemImpl { attrs, unsafety, impl_token, generics, trait_, self_ty, .. } = &self.header;
        let (parameters, _, conditions) = generics.split_for_impl();
        let of_trait = trait_.as_ref().map(|(path, for_token)| quote!(#path #for_token));
        let body = self.members.with(TokenStream::new());
        tokens.extend(
            quote!(#(#attrs)* #unsafety #impl_token #parameters #of_trait #self_ty #conditions #body),
        );
    }
}

impl Body {
    fn with(&self, generated: TokenStream) -> TokenTree {
        let attributes = &self.attributes;
        let members = self.members.iter().map(|member| match member {
            Member::Published(function) => function.to_token_stream(),
            Member::Other(tokens) => tokens.clone(),
        });
        let mut group = Group::new(self.braces.delimiter(), quote!(#(#attributes)* #(#members)* #generated));
        group.set_span(self.braces.span());
        group.into()
    }
}

/// The `impl` or module that the tokens are. The header is read with an empty body, the members one by one.
pub(crate) fn server(tokens: TokenStream, errors: &mut Errors) -> syn::Result<ServerItem> {
    let mut trees: Vec<TokenTree> = tokens.into_iter().collect();
    let braces = match trees.last() {
        Some(TokenTree::Group(group)) => Some(group.clone()),
        _ => None,
    };
    if let (Some(braces), Some(last)) = (&braces, trees.last_mut()) {
        let mut empty = Group::new(braces.delimiter(), TokenStream::new());
        empty.set_span(braces.span());
        *last = empty.into();
    }
    match syn::parse2::<Item>(trees.into_iter().collect())? {
        Item::Impl(header) => {
            let braces = braces.ok_or_else(|| syn::Error::new_spanned(&header, "expected a block"))?;
            let doc = Doc::of(&header.attrs);
            Ok(ServerItem::Impl(ImplBlock { header, doc, members: body::<ImplItem>(braces, errors)? }))
        }
        Item::Mod(header) => {
            let mut doc = Doc::of(&header.attrs);
            let members = braces.map(|braces| body::<Item>(braces, errors)).transpose()?;
            if let Some(inner) = members.as_ref().filter(|_| !doc.present) {
                doc = Doc::of(&inner.attributes);
            }
            Ok(ServerItem::Module(Module { header, doc, members }))
        }
        other => Err(syn::Error::new_spanned(other, "expected an `impl` or a `mod`")),
    }
}

fn body<Other: Named>(braces: Group, errors: &mut Errors) -> syn::Result<Body> {
    let parser = |input: ParseStream<'_>| {
        let attributes = input.call(Attribute::parse_inner)?;
        let (mut members, mut names, mut lost) = (Vec::new(), Vec::new(), false);
        while !input.is_empty() {
            let known = errors.count();
            // In a module it publishes by itself, and not as the server's.
            lost |= Other::ARE_METHODS && input.fork().call(Attribute::parse_outer)?.iter().any(may_publish);
            members.push(member::<Other>(input, &mut names, errors)?);
            lost |= errors.count() > known;
        }
        Ok((attributes, members, names, lost))
    };
    let (attributes, members, names, lost) = parser.parse2(braces.stream())?;
    Ok(Body { braces, attributes, members, names, lost })
}

/// Whether an attribute of an unknown name may be one of ours, by its options.
fn may_publish(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    kind(attribute).is_none()
        && list
            .tokens
            .clone()
            .into_iter()
            .any(|tree| matches!(tree, TokenTree::Ident(word) if word == "tier"))
}

/// What can stand beside what is published.
trait Named: Parse + ToTokens {
    /// Whether functions that stand there are those of a type.
    const ARE_METHODS: bool;

    /// Adds the names that it takes.
    fn names(&self, names: &mut Vec<Ident>);

    /// Reports what would keep a server from its own.
    fn judge(&self, errors: &mut Errors);
}

impl Named for ImplItem {
    const ARE_METHODS: bool = true;

    fn names(&self, names: &mut Vec<Ident>) {
        match self {
            ImplItem::Const(item) => names.push(item.ident.clone()),
            ImplItem::Fn(item) => names.push(item.sig.ident.clone()),
            _ => {}
        }
    }

    fn judge(&self, _: &mut Errors) {}
}

impl Named for Item {
    const ARE_METHODS: bool = false;

    fn names(&self, names: &mut Vec<Ident>) {
        names.extend(match self {
            Item::Const(item) => Some(item.ident.clone()),
            Item::Enum(item) => Some(item.ident.clone()),
            Item::Fn(item) => Some(item.sig.ident.clone()),
            Item::Mod(item) => Some(item.ident.clone()),
            Item::Static(item) => Some(item.ident.clone()),
            Item::Struct(item) => Some(item.ident.clone()),
            Item::Trait(item) => Some(item.ident.clone()),
            Item::Type(item) => Some(item.ident.clone()),
            Item::Union(item) => Some(item.ident.clone()),
            _ => None,
        });
        if let Item::Use(item) = self {
            imported(&item.tree, names);
        }
    }

    fn judge(&self, errors: &mut Errors) {
        let mut found = Vec::new();
        if let Item::Use(item) = self {
            renamed(&item.tree, &mut found);
        }
        for UseRename { ident, rename, .. } in found {
            let what = format!("`#[mcp_server]` does not know `#[{ident}]` as `#[{rename}]`");
            let help = format!("import `{ident}` under its own name");
            errors.push_with_help(rename, &codes::HIDDEN, what, help);
        }
    }
}

/// The attributes of ours that an import gives another name, under which the server's macro does not know them.
fn renamed<'a>(tree: &'a UseTree, found: &mut Vec<&'a UseRename>) {
    match tree {
        UseTree::Path(path) => renamed(&path.tree, found),
        UseTree::Rename(rename) if Kind::of(&rename.ident).is_some() && rename.rename != "_" => {
            found.push(rename);
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| renamed(tree, found)),
        _ => {}
    }
}

fn imported(tree: &UseTree, names: &mut Vec<Ident>) {
    match tree {
        UseTree::Path(path) => imported(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.clone()),
        UseTree::Rename(rename) => names.push(rename.rename.clone()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, names)),
        UseTree::Glob(_) => {}
    }
}

fn member<Other: Named>(
    input: ParseStream<'_>,
    names: &mut Vec<Ident>,
    errors: &mut Errors,
) -> syn::Result<Member> {
    const OURS: &[&str] = &["mcp_tool", "mcp_resource", "mcp_prompt"];

    let ahead = input.fork();
    let attributes = ahead.call(Attribute::parse_outer)?;
    let published = attributes.iter().find_map(|attribute| Some((attribute, kind(attribute)?)));
    let hides = |attribute: &Attribute| match published {
        Some(_) => hidden(attribute, &[OURS, &["cfg"]].concat()),
        None => hidden(attribute, OURS),
    };
    for name in attributes.iter().filter_map(hides) {
        let help = match Kind::of(&name) {
            Some(_) => format!("write `#[{name}(…)]` itself, and a `#[cfg(…)]` beside it"),
            None => "write one `#[cfg(…)]`, as in `#[cfg(any(not(a), b))]`".to_owned(),
        };
        let what = format!("`cfg_attr` hides `{name}` from `#[mcp_server]`");
        errors.push_with_help(name, &codes::HIDDEN, what, help);
    }
    let Some((attribute, kind)) = published else {
        let is_hiding = attributes.iter().any(|attribute| hides(attribute).is_some());
        if is_hiding {
            input.call(Attribute::parse_outer)?;
        }
        let other = input.parse::<Other>()?;
        other.judge(errors);
        if is_hiding {
            let kept = attributes.iter().filter(|attribute| hides(attribute).is_none());
            return Ok(Member::Other(quote!(#(#kept)* #other)));
        }
        // Under a condition it may not be there when the macro's own is.
        if !attributes.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            other.names(names);
        }
        return Ok(Member::Other(other.to_token_stream()));
    };
    ahead.parse::<Visibility>()?;
    if ahead.parse::<Signature>().is_ok() {
        return Ok(Member::Published(Box::new(input.parse()?)));
    }
    // Something else with such an attribute on it: it stays, without the attribute that cannot mean anything there.
    let ahead = input.fork();
    ahead.call(Attribute::parse_outer)?;
    let keyword = ahead.parse::<TokenStream>().ok().and_then(keyword);
    let what = format!("`#[{}]` goes on a function", kind.attribute());
    match keyword {
        Some(keyword) => {
            errors.push_with_help(keyword, &codes::NOT_A_FUNCTION, what, kind.on_a_function());
        }
        None => errors.push_with_help(attribute, &codes::NOT_A_FUNCTION, what, kind.on_a_function()),
    }
    let kept = attributes.iter().filter(|attribute| self::kind(attribute).is_none());
    let kept = quote!(#(#kept)*);
    input.call(Attribute::parse_outer)?;
    let rest = input.parse::<Other>()?;
    Ok(Member::Other(quote!(#kept #rest)))
}

/// The word that says what an item is.
pub(crate) fn keyword(tokens: TokenStream) -> Option<Ident> {
    const KEYWORDS: [&str; 12] = [
        "fn",
        "struct",
        "enum",
        "union",
        "trait",
        "impl",
        "mod",
        "type",
        "use",
        "static",
        "const",
        "macro_rules",
    ];
    let mut found = None;
    for tree in tokens {
        let TokenTree::Ident(ident) = tree else { continue };
        let name = ident.to_string();
        // `const fn` and `unsafe impl` are told by their second word.
        if found.as_ref().is_some_and(|first: &Ident| *first == "const") && name != "fn" {
            return found;
        }
        if KEYWORDS.contains(&name.as_str()) {
            if name != "const" {
                return Some(ident);
            }
            found = Some(ident);
        }
    }
    found
}

/// What an item is called: the word after the one that says what it is; of an `impl`, the last word of its type's path.
pub(crate) fn name(tokens: TokenStream) -> Option<Ident> {
    let keyword = keyword(tokens.clone())?;
    let after =
        tokens.into_iter().skip_while(|tree| !matches!(tree, TokenTree::Ident(word) if *word == keyword));
    let mut after = after.skip(1).filter(|tree| matches!(tree, TokenTree::Ident(_) | TokenTree::Punct(_)));
    if keyword != "impl" {
        return after.find_map(|tree| match tree {
            TokenTree::Ident(ident) => Some(ident),
            _ => None,
        });
    }
    let (mut name, mut depth, mut before) = (None, 0, ' ');
    for tree in after {
        match tree {
            // What stands between `<` and `>` are parameters and arguments.
            TokenTree::Punct(punct) => {
                match punct.as_char() {
                    '<' => depth += 1,
                    '>' if before != '-' => depth -= 1,
                    _ => {}
                }
                before = punct.as_char();
            }
            TokenTree::Ident(word) if depth == 0 && word == "where" => break,
            TokenTree::Ident(word) if depth == 0 && word != "for" => name = Some(word),
            _ => {}
        }
    }
    name
}

/// A type without the parentheses and invisible groups around it.
pub(crate) fn bare(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            other => return other,
        };
    }
}
