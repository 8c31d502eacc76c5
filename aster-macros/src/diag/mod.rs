//! Errors: collected, so that one compile reports them all, and written in one form: what is wrong, then `help:` with
//! what to type, then `note:` with the rule and its code.

pub(crate) mod codes;
pub(crate) mod suggest;

use proc_macro2::Span;
use quote::ToTokens;

use codes::Code;

/// The errors of one macro call, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Errors(Vec<syn::Error>);

impl Errors {
    /// An error at these tokens, with the code's own help.
    pub(crate) fn push(&mut self, at: impl ToTokens, code: &Code, what: impl AsRef<str>) {
        self.push_with_help(at, code, what, code.help);
    }

    /// An error at these tokens, with help that knows the case.
    pub(crate) fn push_with_help(
        &mut self,
        at: impl ToTokens,
        code: &Code,
        what: impl AsRef<str>,
        help: impl AsRef<str>,
    ) {
        self.0.push(syn::Error::new_spanned(at, message(code, what.as_ref(), help.as_ref())));
    }

    /// An error at a place without tokens of its own.
    pub(crate) fn push_at(&mut self, at: Span, code: &Code, what: impl AsRef<str>) {
        self.0.push(syn::Error::new(at, message(code, what.as_ref(), code.help)));
    }

    /// A conflict: what is wrong at its second end, and a pointer to its first.
    pub(crate) fn push_pair(
        &mut self,
        second: impl ToTokens,
        first: impl ToTokens,
        code: &Code,
        what: impl AsRef<str>,
    ) {
        self.push(second, code, what);
        self.point(first, "the first one is here");
    }

    /// The other end of the error before.
    pub(crate) fn point(&mut self, at: impl ToTokens, what: &str) {
        self.0.push(syn::Error::new_spanned(at, what));
    }

    /// What the parser could not read, in its own words.
    pub(crate) fn syntax(&mut self, error: syn::Error) {
        self.0.push(error);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_vec(self) -> Vec<syn::Error> {
        self.0
    }
}

fn message(code: &Code, what: &str, help: &str) -> String {
    let Code { id, title, .. } = code;
    format!("{what}\nhelp: {help}\nnote: [{id}] {title}; see docs/errors/{id}.md")
}
