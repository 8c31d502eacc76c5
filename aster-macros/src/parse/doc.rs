//! Doc comments as text.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment of an item or a parameter.
#[derive(Debug, Default)]
pub(crate) struct Doc {
    /// The text, without the indentation that all of its lines share. What a macro puts in (`#[doc = include_str!(…)]`)
    /// cannot be read here.
    pub text: String,
    /// Whether there is a doc attribute at all.
    pub present: bool,
    /// The values of the attributes.
    pub parts: Vec<Expr>,
    /// Whether one of them is a macro.
    pub computed: bool,
    /// The attributes, to point at.
    pub tokens: TokenStream,
}

impl Doc {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        let mut lines = Vec::new();
        let mut doc = Self::default();
        for attribute in attributes.iter().filter(|attribute| is_doc(attribute)) {
            let Meta::NameValue(pair) = &attribute.meta else { continue };
            doc.present = true;
            attribute.to_tokens(&mut doc.tokens);
            doc.parts.push(pair.value.clone());
            match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => {
                    lines.extend(lines_of(&text.value()));
                }
                _ => doc.computed = true,
            }
        }
        doc.text = dedent(&lines);
        doc
    }
}

/// Whether this is `#[doc = …]`, and not `#[doc(hidden)]`.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc") && matches!(attribute.meta, Meta::NameValue(_))
}

/// The lines of one attribute. A block comment may begin each of them with an asterisk, which is no bullet.
fn lines_of(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let framed = match lines.as_slice() {
        [_, middle @ .., last] if !middle.is_empty() => {
            last.trim().is_empty() && middle.iter().all(|line| line.trim_start().starts_with('*'))
        }
        _ => false,
    };
    let bare = |line: &&str| match line.trim_start().strip_prefix('*') {
        Some(rest) if framed => rest.trim_end().to_owned(),
        _ => line.trim_end().to_owned(),
    };
    lines.iter().map(bare).collect()
}

fn dedent(lines: &[String]) -> String {
    let indentation = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    let lines: Vec<&str> = lines.iter().map(|line| line.get(indentation..).unwrap_or("")).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote};

    use super::*;

    fn text(item: ItemFn) -> String {
        Doc::of(&item.attrs).text
    }

    #[test]
    fn lines_lose_what_they_share() {
        let item = parse_quote! {
            /// Searches the web.
            ///
            /// * one
            ///   two
            #[inline]
            fn f() {}
        };
        assert_eq!(text(item), "Searches the web.\n\n* one\n  two");
    }

    #[test]
    fn a_block_comment_loses_its_frame() {
        let item = parse_quote! {
            #[doc = "\n     * Searches.\n     *\n     * Well.\n     "]
            fn f() {}
        };
        assert_eq!(text(item), "Searches.\n\nWell.");
    }

    #[test]
    fn what_is_no_text_is_no_text() {
        let item: ItemFn = parse_quote! {
            #[doc(hidden)]
            #[doc = include_str!("x.md")]
            fn f() {}
        };
        let doc = Doc::of(&item.attrs);
        assert!(doc.present && doc.computed && doc.text.is_empty());
    }
}
