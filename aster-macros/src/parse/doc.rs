//! Doc comments as text.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta};

use super::attr::ungroup;

/// The doc comment of an item or a parameter.
#[derive(Debug, Default)]
pub(crate) struct Doc {
    /// The text, without the indentation that all of its lines share and without the sections that only concern Rust.
    /// What a macro puts in (`#[doc = include_str!(…)]`) cannot be read here.
    pub text: String,
    /// The text with the section of the arguments in it.
    pub whole: String,
    /// Whether there is a doc attribute at all.
    pub present: bool,
    /// The values of the attributes, those that are literals as in the text.
    pub parts: Vec<Expr>,
    /// Whether one of them is a macro.
    pub computed: bool,
    /// The attributes, to point at.
    pub tokens: TokenStream,
    /// What a section headed `Arguments` or `Parameters` says of each, which is no part of the text.
    pub arguments: Vec<Described>,
}

/// One item of a list of arguments: `` * `name` - what it is``.
#[derive(Debug)]
pub(crate) struct Described {
    pub name: String,
    pub text: String,
    /// Where it stands.
    pub at: Span,
}

impl Doc {
    pub(crate) fn of(attributes: &[Attribute]) -> Self {
        let mut lines = Vec::new();
        let mut places = Vec::new();
        let mut sections = Sections::default();
        let mut doc = Self::default();
        for attribute in attributes.iter().filter(|attribute| is_doc(attribute)) {
            let Meta::NameValue(pair) = &attribute.meta else { continue };
            doc.present = true;
            attribute.to_tokens(&mut doc.tokens);
            match ungroup(pair.value.clone()) {
                Expr::Lit(ExprLit { attrs, lit: Lit::Str(text) }) => {
                    let mut kept = lines_of(&text.value());
                    kept.retain(|line| sections.keep(line));
                    if !kept.is_empty() {
                        let lit = Lit::Str(LitStr::new(&kept.join("\n"), text.span()));
                        doc.parts.push(Expr::Lit(ExprLit { attrs, lit }));
                        places.resize(lines.len() + kept.len(), text.span());
                        lines.extend(kept);
                    }
                }
                other => {
                    doc.computed = true;
                    doc.parts.push(other);
                }
            }
        }
        let mut lines = dedent(&lines);
        doc.whole = lines.join("\n").trim().to_owned();
        if !doc.computed {
            doc.arguments = take_arguments(&mut lines, &places);
        }
        doc.text = lines.join("\n").trim().to_owned();
        doc
    }
}

/// Takes the list of the arguments, with its heading, out of the lines. A paragraph after the list is none of its own.
fn take_arguments(lines: &mut Vec<String>, places: &[Span]) -> Vec<Described> {
    let Some(start) = headings(lines)
        .find_map(|(at, title)| ["arguments", "parameters"].contains(&title.as_str()).then_some(at))
    else {
        return Vec::new();
    };
    let next = headings(lines).map(|(at, _)| at).find(|at| *at > start);
    let section = start + 1..next.unwrap_or(lines.len());

    let mut arguments: Vec<Described> = Vec::new();
    let mut after_blank = false;
    let mut end = section.end;
    for at in section {
        let line = &lines[at];
        let is_inside = !after_blank || line.starts_with(' ');
        if line.trim().is_empty() {
            after_blank = true;
            continue;
        }
        if let Some((name, text)) = item(line) {
            arguments.push(Described { name: name.to_owned(), text, at: places[at] });
        } else if let Some(last) = arguments.last_mut().filter(|_| is_inside) {
            last.text.push('\n');
            last.text.push_str(line.trim());
        } else {
            end = at;
            break;
        }
        after_blank = false;
    }
    // Prose, which the model shall read as it is.
    if arguments.is_empty() {
        return Vec::new();
    }
    lines.drain(start..end);
    arguments
}

/// The headings outside of code, in lower case, each with its line.
fn headings(lines: &[String]) -> impl Iterator<Item = (usize, String)> {
    let mut code = Code::default();
    lines.iter().enumerate().filter_map(move |(at, line)| {
        let is_code = code.takes(line);
        let (_, title) = heading(line).filter(|_| !is_code)?;
        Some((at, title))
    })
}

/// `` * `name` - what it is``, with any of the usual bullets and separators, and perhaps a word in brackets after the name.
fn item(line: &str) -> Option<(&str, String)> {
    let item = ["* ", "- ", "+ "].iter().find_map(|bullet| line.strip_prefix(bullet))?.trim_start();
    let (name, text) = match item.strip_prefix('`') {
        Some(quoted) => quoted.split_once('`')?,
        None => item.split_at(item.find(|c: char| !c.is_alphanumeric() && c != '_')?),
    };
    let text = text.trim_start();
    let (word, text) = match text.starts_with('(').then(|| text.split_once(')')).flatten() {
        Some((word, text)) => (format!("{word}) "), text.trim_start()),
        None => (String::new(), text),
    };
    let text = text.strip_prefix([':', '-', '–', '—'])?;
    (!name.is_empty()).then(|| (name, format!("{word}{}", text.trim())))
}

/// Headings of what rustdoc asks for and whoever calls the tool from elsewhere has no use for.
const FOR_RUST: [&str; 4] = ["errors", "panics", "safety", "examples"];

/// Leaves out sections that speak to whoever calls the function from Rust, line by line.
#[derive(Default)]
struct Sections {
    code: Code,
    /// The level of the heading whose section is being left out.
    dropped: Option<usize>,
}

impl Sections {
    fn keep(&mut self, line: &str) -> bool {
        if !self.code.takes(line)
            && let Some((level, title)) = heading(line)
            && self.dropped.is_none_or(|dropped| level <= dropped)
        {
            self.dropped = FOR_RUST.contains(&title.as_str()).then_some(level);
        }
        self.dropped.is_none()
    }
}

/// Tells code from text, line by line.
#[derive(Default)]
struct Code {
    /// The fence of the block that is open.
    fence: Option<String>,
}

impl Code {
    /// Whether a line is code, or the fence of some.
    fn takes(&mut self, line: &str) -> bool {
        let bare = line.trim_start_matches(' ');
        if line.len() - bare.len() >= 4 {
            return true;
        }
        if let Some(open) = &self.fence {
            let closes =
                bare.starts_with(open.as_str()) && bare.trim_start_matches(&open[..1]).trim().is_empty();
            if closes {
                self.fence = None;
            }
            return true;
        }
        let mark = ["`", "~"].into_iter().find(|mark| bare.starts_with(&mark.repeat(3)));
        self.fence = mark.map(|mark| mark.repeat(bare.len() - bare.trim_start_matches(mark).len()));
        mark.is_some()
    }
}

/// The level and the title, in lower case, of a line that is a heading.
fn heading(line: &str) -> Option<(usize, String)> {
    let line = line.trim_start_matches(' ');
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with(' ');
    is_heading.then(|| (level, title.trim().trim_end_matches(['#', ':']).trim_end().to_lowercase()))
}

/// Whether this is `#[doc = …]`, and not `#[doc(hidden)]`.
pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc") && matches!(attribute.meta, Meta::NameValue(_))
}

/// The lines of one attribute. A block comment may begin each of them with an asterisk, which is no bullet. A line comment
/// begins with a space, which a `#[doc = "…"]` beside it need not have.
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
    let lines: Vec<String> = lines.iter().map(bare).collect();
    match lines.as_slice() {
        [line] => vec![line.strip_prefix(' ').unwrap_or(line).to_owned()],
        lines => dedent(lines),
    }
}

/// The lines without the indentation that they share.
fn dedent(lines: &[String]) -> Vec<String> {
    let indentation = lines
        .iter()
        .filter(|line| !line.is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len())
        .min()
        .unwrap_or(0);
    lines.iter().map(|line| line.get(indentation..).unwrap_or("").to_owned()).collect()
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

    #[test]
    fn what_only_concerns_rust_is_left_out() {
        let item = parse_quote! {
            /// Reads a page.
            ///
            /// ```text
            /// # Errors
            /// ```
            ///
            /// # When to use it
            ///
            /// Often.
            ///
            ///     # Panics
            ///
            /// ## Errors
            ///
            /// Where it is missing.
            ///
            /// ### More of them
            ///
            /// ~~~
            /// # Notes
            /// ~~~
            ///
            /// # Notes #
            ///
            /// None.
            /// # Examples
            /// # Safety:
            fn f() {}
        };
        let text = text(item);
        assert_eq!(
            text,
            "Reads a page.\n\n```text\n# Errors\n```\n\n# When to use it\n\nOften.\n\n    # Panics\n\n\
             # Notes #\n\nNone."
        );
        let only: ItemFn = parse_quote! {
            /// # Errors
            ///
            /// Never.
            fn f() {}
        };
        let doc = Doc::of(&only.attrs);
        assert!(doc.present && doc.text.is_empty());
    }

    #[test]
    fn arguments_are_a_list_outside_of_code() {
        let doc = |item: ItemFn| {
            let doc = Doc::of(&item.attrs);
            let described = |described: &Described| format!("{}: {}", described.name, described.text);
            (doc.text, doc.arguments.iter().map(described).collect::<Vec<_>>())
        };
        let (text, arguments) = doc(parse_quote! {
            /// Runs a script.
            ///
            /// ```text
            /// # Arguments
            ///
            /// * `code` - what stands in a fence
            /// ```
            ///
            /// # Arguments
            ///
            /// * `code` - the script
            ///
            ///   in full
            /// * `wait` - whether to wait
            ///
            /// Not for long scripts.
            ///
            /// # Notes
            ///
            /// None.
            fn f() {}
        });
        assert_eq!(arguments, ["code: the script\nin full", "wait: whether to wait"]);
        assert_eq!(
            text,
            "Runs a script.\n\n```text\n# Arguments\n\n* `code` - what stands in a fence\n```\n\n\
             Not for long scripts.\n\n# Notes\n\nNone."
        );
        // What is no list is read as it is, and so is code alone.
        for item in [
            parse_quote! {
                /// Runs a script.
                ///
                /// # Arguments
                ///
                /// It takes `code` - the script.
                fn f() {}
            },
            parse_quote! {
                /// Runs a script.
                ///
                ///     # Arguments
                ///
                ///     * `code` - the script
                fn f() {}
            },
        ] {
            let (text, arguments) = doc(item);
            assert!(arguments.is_empty() && text.contains("# Arguments"), "{text}");
        }
    }

    #[test]
    fn comments_and_attributes_mix() {
        let item = parse_quote! {
            #[doc = "One."]
            /// Two.
            ///   * three
            #[doc = " Four.\n Five."]
            fn f() {}
        };
        assert_eq!(text(item), "One.\nTwo.\n  * three\nFour.\nFive.");

        let mut item: ItemFn = parse_quote! {
            /// Two.
            #[doc = concat!("Three", ".")]
            fn f() {}
        };
        if let Meta::NameValue(pair) = &mut item.attrs[0].meta {
            let expr = Box::new(parse_quote!(" One."));
            pair.value =
                Expr::Group(syn::ExprGroup { attrs: Vec::new(), group_token: Default::default(), expr });
        }
        let doc = Doc::of(&item.attrs);
        let parts = &doc.parts;
        assert!(doc.computed);
        assert_eq!(quote::quote!(#(#parts),*).to_string(), r#""One." , concat ! ("Three" , ".")"#);
    }
}
