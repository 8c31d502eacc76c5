//! The file that a macro stands in, for the one thing that its input does not tell: whether its type is a server already.
//! rustc would tell it as well, in a dozen errors about what both expansions make.

use std::cell::RefCell;
use std::path::Path;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::quote;

use super::item::ImplBlock;

/// An `impl` with `#[mcp_server]` on it.
struct Block {
    /// The module or block that it stands in, by number.
    scope: usize,
    /// The line that its attribute begins, where it does.
    line: Option<usize>,
    header: String,
    body: String,
    /// Whether it may not be there, or not as it is written: under a `cfg`, or below another macro's attribute.
    conditional: bool,
}

thread_local! {
    /// The file that was read last, and its blocks: in a file of many servers each of them asks.
    static LAST: RefCell<(String, Vec<Block>)> = const { RefCell::new((String::new(), Vec::new())) };
}

/// The attributes below which an item is what it looks like. Any other may be a macro, which may leave it out.
const PLAIN: [&str; 8] = ["mcp_server", "doc", "allow", "expect", "warn", "deny", "deprecated", "must_use"];

/// What the mark is called that tells on which line an attribute begins; see [`marked`].
const LINE: &str = "__aster_line";

/// Whether another `#[mcp_server]` stands above this one, in the same module, on the same type. Blocks in other modules and
/// files, below other attributes or made by other macros are not looked for.
pub(crate) fn is_second(block: &ImplBlock) -> bool {
    if !proc_macro::is_available() {
        return false;
    }
    let attribute = Span::call_site().unwrap();
    // The examples of a Markdown page are compiled under its name, too.
    let file = attribute.local_file().filter(|file| is_source(file));
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    let Some(text) = text.filter(|text| has_two(text)) else { return false };
    LAST.with_borrow_mut(|(read, blocks)| {
        if *read != text {
            *blocks = blocks_of(&text);
            *read = text;
        }
        is_second_of(blocks, block, attribute.line())
    })
}

fn is_source(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}

/// Whether there are two such attributes at all: most files have one.
fn has_two(text: &str) -> bool {
    text.lines().filter(|line| begins_server(line)).nth(1).is_some()
}

fn begins_server(line: &str) -> bool {
    line.trim_start().starts_with("#[") && line.contains("mcp_server")
}

/// Whether the block whose attribute stands on a line is a second one. What is compared beside the line tells that the file
/// is the one that is compiled: an example in a doc comment is compiled under the name of the file around it.
fn is_second_of(blocks: &[Block], block: &ImplBlock, line: usize) -> bool {
    let ty = &block.header.self_ty;
    let (header, body) = (flat(quote!(impl #ty)), flat(block.body()));
    let is_own = |other: &Block| other.line == Some(line) && other.header == header && other.body == body;
    let Some(at) = blocks.iter().position(is_own) else { return false };
    let own = &blocks[at];
    let is_first = |other: &Block| other.scope == own.scope && other.header == header && !other.conditional;
    !own.conditional && blocks[..at].iter().any(is_first)
}

/// The text with the number of its line before each such attribute: tokens that are read from a text do not know their lines.
fn marked(text: &str) -> String {
    let lines = text.lines().enumerate().map(|(at, line)| match begins_server(line) {
        true => format!("#[{LINE} = {}]{line}\n", at + 1),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// The blocks of a file; none where it cannot be taken apart.
fn blocks_of(text: &str) -> Vec<Block> {
    let (mut blocks, mut scopes) = (Vec::new(), 0);
    if let Ok(file) = marked(text).parse() {
        collect(file, &mut scopes, &mut blocks);
    }
    blocks
}

/// Adds the blocks of one scope, and of those inside of it.
fn collect(tokens: TokenStream, scopes: &mut usize, blocks: &mut Vec<Block>) {
    *scopes += 1;
    let scope = *scopes;
    let mut item = Item::default();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                // `#![…]` and `//!` say something of what is around them, and nothing of the item after them.
                let is_inner = trees.next_if(|tree| is_punct(tree, '!')).is_some();
                if let Some(TokenTree::Group(attribute)) = trees.next_if(is_bracket)
                    && !is_inner
                {
                    item.attribute(attribute.stream());
                }
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let Item { mark: line, is_server, conditional, before } = std::mem::take(&mut item);
                let header = flat(before);
                // What stands in a macro's braces is the macro's.
                if header.contains('!') {
                    continue;
                }
                collect(group.stream(), scopes, blocks);
                if is_server {
                    let body = flat(group.stream());
                    blocks.push(Block { scope, line, header, body, conditional });
                }
            }
            tree if is_punct(&tree, ';') => item = Item::default(),
            other => item.before.extend([other]),
        }
    }
}

/// An item so far: its attributes, and what else stands before its braces.
#[derive(Default)]
struct Item {
    mark: Option<usize>,
    is_server: bool,
    conditional: bool,
    before: TokenStream,
}

impl Item {
    fn attribute(&mut self, attribute: TokenStream) {
        let is_of_path = |tree: &TokenTree| matches!(tree, TokenTree::Ident(_)) || is_punct(tree, ':');
        let path: Vec<TokenTree> = attribute.clone().into_iter().take_while(is_of_path).collect();
        let Some(last) = path.last().map(ToString::to_string) else { return };
        if last == LINE {
            self.mark = attribute.into_iter().last().and_then(|number| number.to_string().parse().ok());
            return;
        }
        self.is_server |= last == "mcp_server";
        self.conditional |= !PLAIN.contains(&&*last) || (path.len() > 1 && last != "mcp_server");
    }
}

fn is_punct(tree: &TokenTree, character: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_bracket(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
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

    /// Whether the block after `/* own */` is a second one, which stands on one line with its attribute.
    fn second(file: &str) -> bool {
        let is_own = |(_, line): &(usize, &str)| line.contains(OWN);
        let (at, line) = file.lines().enumerate().find(is_own).unwrap();
        let own = line.split(OWN).nth(1).unwrap().replace(" -> ", "->");
        let ServerItem::Impl(block) = item::server(own.parse().unwrap(), &mut Errors::default()).unwrap()
        else {
            panic!("`{own}` is no `impl`")
        };
        is_second_of(&blocks_of(file), &block, at + 1)
    }

    const OWN: &str = "/* own */";
    const ONE: &str = "\n#[mcp_server] impl Web { #[mcp_tool(tier = Standard)] fn one(&self) {} }\n";
    const TWO: &str = "\n/// Again.\n#[aster_runtime::mcp_server(name = \"two\")] /* own */ impl Web { fn two() -> [u8; 2] { [0; 2] } }\n";

    #[test]
    fn a_second_block_is_found_where_it_is_one_for_certain() {
        assert!(has_two("use x::mcp_server;\n#[mcp_server]\n  #[aster::mcp_server]"));
        assert!(!has_two("use x::mcp_server;\n#[mcp_server]"));
        let holds = |file: String| second(&file);
        let again = ONE.replace("impl", "/* own */ impl");
        assert!(holds(format!("struct Web; {ONE} fn f() {{ g!(a); }} {TWO}")));
        assert!(holds(format!("fn f() {{ use x; {ONE} {TWO} }}")));
        assert!(holds(format!("//! Tools.\n#![allow(x)] {ONE} {TWO}")));
        assert!(holds(format!("#![cfg(unix)] {ONE} {TWO}")), "a condition of the whole file is both's");
        assert!(holds(format!("#[allow(x)] #[doc(hidden)] {ONE} {again}")), "it is told by its place");
        assert!(!holds(format!("{again} {ONE}")), "it is the first");
        assert!(!holds(format!("{TWO} {ONE}")), "it is the first");
        assert!(!holds(format!("mod a {{ {ONE} }} mod b {{ {TWO} }}")), "two types of one name");
        assert!(!holds(format!("#[cfg(unix)] {ONE} {TWO}")));
        assert!(!holds(format!("{ONE} #[cfg_attr(unix, x)] {TWO}")));
        assert!(!holds(format!("#[rustversion::since(1.90)] {ONE} {TWO}")));
        assert!(!holds(format!("{ONE} #[rustversion::before(1.90)] {TWO}")));
        assert!(!holds(format!("#[other::allow] {ONE} {TWO}")), "a macro of another crate");
        assert!(!holds(format!("either! {{ {ONE} {TWO} }}")), "a macro takes one of them");
        assert!(!holds(format!("impl Web {{ fn one(&self) {{}} }} {TWO}")));
        assert!(!holds(format!("{} {TWO}", ONE.replace("Web", "Net"))));
    }

    #[test]
    fn no_page_is_read() {
        assert!(is_source(Path::new("src/lib.rs")));
        assert!(!is_source(Path::new("docs/errors/A0602.md")) && !is_source(Path::new("rs")));
    }
}
