//! The file that a macro stands in, for the one thing that its input does not tell: whether its type is a server already.
//! rustc would tell it as well, in a dozen errors about what both expansions make.

use std::cell::RefCell;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::quote;

use super::item::ImplBlock;

/// An `impl` with `#[mcp_server]` on it.
struct Block {
    /// The module or block that it stands in, by number.
    scope: usize,
    header: String,
    body: String,
    /// Whether it is there under a condition only.
    conditional: bool,
}

thread_local! {
    /// The file that was read last, and its blocks: in a file of many servers each of them asks.
    static LAST: RefCell<(String, Vec<Block>)> = const { RefCell::new((String::new(), Vec::new())) };
}

/// Whether another `#[mcp_server]` stands above this one, in the same module, on the same type. Blocks in other modules and
/// files, under a condition or made by other macros are not looked for.
pub(crate) fn is_second(block: &ImplBlock) -> bool {
    if !proc_macro::is_available() {
        return false;
    }
    let text = Span::call_site().unwrap().local_file().and_then(|file| std::fs::read_to_string(file).ok());
    let Some(text) = text.filter(|text| has_two(text)) else { return false };
    LAST.with_borrow_mut(|(read, blocks)| {
        if *read != text {
            *blocks = text.parse().map(blocks_of).unwrap_or_default();
            *read = text;
        }
        is_second_of(blocks, block)
    })
}

/// Whether there are two such attributes at all: most files have one.
fn has_two(text: &str) -> bool {
    let is_attribute = |line: &&str| line.trim_start().starts_with("#[") && line.contains("mcp_server");
    text.lines().filter(is_attribute).nth(1).is_some()
}

fn is_second_of(blocks: &[Block], block: &ImplBlock) -> bool {
    let ty = &block.header.self_ty;
    let (header, body) = (flat(quote!(impl #ty)), flat(block.body()));
    let Some(at) = blocks.iter().position(|other| other.header == header && other.body == body) else {
        return false;
    };
    let own = &blocks[at];
    let is_first = |other: &Block| other.scope == own.scope && other.header == header && !other.conditional;
    !own.conditional && blocks[..at].iter().any(is_first)
}

fn blocks_of(file: TokenStream) -> Vec<Block> {
    let (mut blocks, mut scopes) = (Vec::new(), 0);
    collect(file, &mut scopes, &mut blocks);
    blocks
}

/// Adds the blocks of one scope, and of those inside of it.
fn collect(tokens: TokenStream, scopes: &mut usize, blocks: &mut Vec<Block>) {
    *scopes += 1;
    let scope = *scopes;
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    // The item so far: its attributes, and what else stands before its braces.
    let (mut is_server, mut conditional, mut before) = (false, false, TokenStream::new());
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Bracket && is_hash(trees.get(at.wrapping_sub(1))) =>
            {
                let attribute = group.stream();
                is_server |= ends_in(&attribute, "mcp_server");
                conditional |= ends_in(&attribute, "cfg") || ends_in(&attribute, "cfg_attr");
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let header = flat(std::mem::take(&mut before));
                // What stands in a macro's braces is the macro's.
                if !header.contains('!') {
                    collect(group.stream(), scopes, blocks);
                    if std::mem::take(&mut is_server) {
                        let body = flat(group.stream());
                        blocks.push(Block { scope, header, body, conditional });
                    }
                }
                (is_server, conditional) = (false, false);
            }
            TokenTree::Punct(punct) if punct.as_char() == '#' => {}
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                (is_server, conditional, before) = (false, false, TokenStream::new());
            }
            other => before.extend([other.clone()]),
        }
    }
}

fn is_hash(tree: Option<&TokenTree>) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == '#')
}

/// Whether the path of an attribute ends in this word.
fn ends_in(attribute: &TokenStream, word: &str) -> bool {
    let path = attribute.clone().into_iter().take_while(|tree| !matches!(tree, TokenTree::Group(_)));
    path.last().is_some_and(|tree| matches!(tree, TokenTree::Ident(ident) if ident == word))
}

/// Tokens as a text without the spaces between them, which are not the same in a file and in a macro's input.
fn flat(tokens: TokenStream) -> String {
    let mut text = String::new();
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => {
                text.push_str(&format!("{:?}{}", group.delimiter(), flat(group.stream())));
            }
            tree => text.push_str(&tree.to_string()),
        }
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Errors;
    use crate::parse::item::{self, ServerItem};

    /// Whether the block with `own` in it is a second one, in a file.
    fn second(file: &str, own: &str) -> bool {
        let ServerItem::Impl(block) = item::server(own.parse().unwrap(), &mut Errors::default()).unwrap()
        else {
            panic!("`{own}` is no `impl`")
        };
        is_second_of(&blocks_of(file.parse().unwrap()), &block)
    }

    const ONE: &str = "#[mcp_server] impl Web { #[mcp_tool(tier = Standard)] fn one(&self) {} }";
    const TWO: &str = "/// Again. \n #[aster_runtime::mcp_server(name = \"two\")] impl Web { fn two() -> [u8; 2] { [0; 2] } }";
    const OWN: &str = "impl Web { fn two()->[u8;2] {[0;2]} }";

    #[test]
    fn a_second_block_is_found_where_it_is_one_for_certain() {
        assert!(has_two("use x::mcp_server;\n#[mcp_server]\n  #[aster::mcp_server]"));
        assert!(!has_two("use x::mcp_server;\n#[mcp_server]"));
        let holds = |file: String| second(&file, OWN);
        assert!(holds(format!("struct Web; {ONE} fn f() {{ g!(a); }} {TWO}")));
        assert!(holds(format!("fn f() {{ use x; {ONE} {TWO} }}")));
        assert!(!holds(format!("{TWO} {ONE}")), "it is the first");
        assert!(!holds(format!("mod a {{ {ONE} }} mod b {{ {TWO} }}")), "two types of one name");
        assert!(!holds(format!("#[cfg(unix)] {ONE} {TWO}")));
        assert!(!holds(format!("{ONE} #[cfg_attr(unix, x)] {TWO}")));
        assert!(!holds(format!("either! {{ {ONE} {TWO} }}")), "a macro takes one of them");
        assert!(!holds(format!("impl Web {{ fn one(&self) {{}} }} {TWO}")));
        assert!(!holds(format!("{} {TWO}", ONE.replace("Web", "Net"))));
    }
}
