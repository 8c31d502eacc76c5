//! The file that a macro stands in, for what its input does not tell: what is around a function, and whether a type is a
//! server already. rustc would tell it as well, in a dozen errors about what the expansions make.
//!
//! A file is taken at its word only where it says the same as the macro's input. What a macro makes, or changes, is not
//! looked for.

use std::cell::RefCell;
use std::path::Path;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::quote;

use super::attr::Kind;
use super::item::{self, Function, ImplBlock};

/// What is around an item.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    /// The file does not tell.
    #[default]
    Unknown,
    /// A module, or a function's body.
    Module,
    Impl,
    Trait,
    /// A block of functions of another language.
    Extern,
}

/// Where a function stands.
#[derive(Debug, Default, Clone)]
pub(crate) struct Place {
    pub around: Around,
    /// What else has its name there, among types and modules: the keyword.
    pub namesake: Option<String>,
    /// Whether a function that is published has its name above it. That there are two is rustc's to say.
    pub is_again: bool,
}

/// An item with one of our attributes on it.
struct Marked {
    /// The module or block that it stands in, by number.
    scope: usize,
    around: Around,
    is_server: bool,
    /// The line that its attribute begins, where it does.
    line: Option<usize>,
    header: String,
    body: String,
    /// Whether it may not be there, or not as it is written: under a `cfg`, or below another macro's attribute.
    conditional: bool,
}

/// What is in a file.
#[derive(Default)]
struct File {
    scopes: usize,
    marked: Vec<Marked>,
    /// The types and modules that are there for certain: their scope, keyword and name.
    types: Vec<(usize, String, String)>,
}

thread_local! {
    /// The file that was read last: in a file of many servers and tools each of them asks.
    static LAST: RefCell<(String, File)> = RefCell::default();
}

/// The attributes beside our own below which an item is what it looks like. Any other may be a macro, which may leave it out.
const PLAIN: [&str; 8] = ["doc", "allow", "expect", "warn", "deny", "deprecated", "must_use", "derive"];

/// What the mark is called that tells on which line an attribute begins; see [`marked`].
const LINE: &str = "__aster_line";

/// Where the function stands that is being expanded.
pub(crate) fn place(function: &Function) -> Place {
    let place = |file: &File, line| file.place(function, line);
    read(|_| true, place).unwrap_or_default()
}

/// The keyword of a type or module that has this name where the server's block stands.
pub(crate) fn namesake(block: &ImplBlock, name: &str) -> Option<String> {
    read(|_| true, |file, line| file.own_server(block, line).and_then(|own| file.namesake(own, name)))?
}

/// Whether another `#[mcp_server]` stands above this one, in the same module, on the same type. Blocks in other modules and
/// files, below other attributes or made by other macros are not looked for.
pub(crate) fn is_second(block: &ImplBlock) -> bool {
    read(has_two, |file, line| file.has_before(block, line)).unwrap_or_default()
}

/// Asks the file that is being expanded, unless its text shows that it has nothing to say.
fn read<T>(is_worth_it: fn(&str) -> bool, ask: impl FnOnce(&File, usize) -> T) -> Option<T> {
    if !proc_macro::is_available() {
        return None;
    }
    let attribute = Span::call_site().unwrap();
    // The examples of a Markdown page are compiled under its name, too.
    let file = attribute.local_file().filter(|file| is_source(file))?;
    let text = std::fs::read_to_string(file).ok().filter(|text| is_worth_it(text))?;
    LAST.with_borrow_mut(|(read, file)| {
        if *read != text {
            *file = File::of(&text);
            *read = text;
        }
        Some(ask(file, attribute.line()))
    })
}

fn is_source(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}

/// Whether there are two servers at all: most files have one.
fn has_two(text: &str) -> bool {
    text.lines().filter(|line| begins(line, &["mcp_server"])).nth(1).is_some()
}

/// Whether an attribute begins the line that may be one of these.
fn begins(line: &str, attributes: &[&str]) -> bool {
    line.trim_start().starts_with("#[") && attributes.iter().any(|attribute| line.contains(attribute))
}

/// The text with the number of its line before each attribute of ours: tokens that are read from a text do not know their
/// lines.
fn marked(text: &str) -> String {
    const OURS: [&str; 4] = ["mcp_server", "mcp_tool", "mcp_resource", "mcp_prompt"];
    let lines = text.lines().enumerate().map(|(at, line)| match begins(line, &OURS) {
        true => format!("#[{LINE} = {}]{line}\n", at + 1),
        false => format!("{line}\n"),
    });
    lines.collect()
}

impl File {
    /// A file's content; nothing where it cannot be taken apart.
    fn of(text: &str) -> Self {
        let mut file = Self::default();
        if let Ok(tokens) = marked(text).parse() {
            file.collect(tokens, Around::Module);
        }
        file
    }

    /// The keyword of a type or module that has this name where an item stands.
    fn namesake(&self, beside: &Marked, name: &str) -> Option<String> {
        let is_it = |(scope, _, other): &&(usize, String, String)| *scope == beside.scope && other == name;
        self.types.iter().find(is_it).map(|(_, keyword, _)| keyword.clone())
    }

    /// Where the function stands whose attribute begins a line. What is compared beside the line tells that the file is the one
    /// that is compiled: an example in a doc comment is compiled under the name of the file around it.
    fn place(&self, function: &Function, line: usize) -> Place {
        let name = format!("fn {} ", function.signature.ident);
        let body = body(&function.body);
        let is_own = |other: &&Marked| {
            !other.is_server && other.line == Some(line) && other.header.contains(&name) && other.body == body
        };
        let Some(own) = self.marked.iter().find(is_own) else { return Place::default() };
        if own.around != Around::Module {
            return Place { around: own.around, ..Place::default() };
        }
        let is_again = self.before(own).any(|other| !other.is_server && other.header.contains(&name));
        let namesake = self.namesake(own, &function.signature.ident.to_string());
        Place { around: own.around, namesake, is_again }
    }

    /// Whether the block whose attribute begins a line is a second one.
    fn has_before(&self, block: &ImplBlock, line: usize) -> bool {
        let Some(own) = self.own_server(block, line) else { return false };
        self.before(own).any(|other| other.is_server && other.header == own.header)
    }

    /// The block whose attribute begins a line. It is compared as a function is.
    fn own_server(&self, block: &ImplBlock, line: usize) -> Option<&Marked> {
        let ty = &block.header.self_ty;
        let (header, body) = (flat(quote!(impl #ty)), flat(block.body()));
        let is_own = |other: &&Marked| {
            other.is_server && other.line == Some(line) && other.header == header && other.body == body
        };
        self.marked.iter().find(is_own)
    }

    /// What stands before an item in its scope, unless one of both may not be there.
    fn before<'a>(&'a self, own: &'a Marked) -> impl Iterator<Item = &'a Marked> {
        let before = self.marked.iter().take_while(|other| !std::ptr::eq(*other, own));
        before.filter(|other| other.scope == own.scope && !other.conditional && !own.conditional)
    }

    /// Adds the items of one scope, and of those inside of it.
    fn collect(&mut self, tokens: TokenStream, around: Around) {
        self.scopes += 1;
        let scope = self.scopes;
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
                    let item = std::mem::take(&mut item);
                    // What stands in a macro's braces is the macro's.
                    if !item.before.clone().into_iter().any(|tree| is_punct(&tree, '!')) {
                        self.collect(group.stream(), item.inside(around));
                        self.add(item, scope, around, &group.into());
                    }
                }
                tree if is_punct(&tree, ';') => {
                    self.add(std::mem::take(&mut item), scope, around, &tree);
                }
                other => item.before.extend([other]),
            }
        }
    }

    fn add(&mut self, item: Item, scope: usize, around: Around, end: &TokenTree) {
        let Item { published, line, conditional, before, .. } = item;
        if let Some(is_server) = published {
            let (header, body) = (flat(before), body(end));
            self.marked.push(Marked { scope, around, is_server, line, header, body, conditional });
        } else if !conditional
            && let Some((keyword, name)) = declared(before)
            && (keyword != "mod" || is_there(end))
        {
            self.types.push((scope, keyword, name));
        }
    }
}

/// The keyword and the name of a type or module that a statement declares, and does not only mention.
fn declared(statement: TokenStream) -> Option<(String, String)> {
    const TYPES: [&str; 6] = ["struct", "enum", "union", "trait", "type", "mod"];
    let mut trees = statement.into_iter().peekable();
    if trees.next_if(|tree| is_word(tree, "pub")).is_some() {
        trees.next_if(|tree| matches!(tree, TokenTree::Group(_)));
    }
    while trees.next_if(|tree| is_word(tree, "unsafe") || is_word(tree, "auto")).is_some() {}
    let keyword = trees.next_if(|tree| TYPES.iter().any(|ty| is_word(tree, ty)))?;
    match trees.next()? {
        TokenTree::Ident(name) => Some((keyword.to_string(), name.to_string())),
        _ => None,
    }
}

/// Whether a module is there for certain: one of another file, or that says something of itself, may take itself out.
fn is_there(end: &TokenTree) -> bool {
    let TokenTree::Group(body) = end else { return false };
    let mut trees = body.stream().into_iter();
    !(trees.next().is_some_and(|tree| is_punct(&tree, '#'))
        && trees.next().is_some_and(|tree| is_punct(&tree, '!')))
}

/// An item so far: its attributes, and what else stands before its braces.
#[derive(Default)]
struct Item {
    /// The line of the last attribute that begins one.
    mark: Option<usize>,
    /// Whether it is a server or a function that is published, if any.
    published: Option<bool>,
    line: Option<usize>,
    conditional: bool,
    /// Whether what is inside may be changed by another macro.
    changed: bool,
    before: TokenStream,
}

impl Item {
    fn attribute(&mut self, attribute: TokenStream) {
        let is_of_path = |tree: &TokenTree| matches!(tree, TokenTree::Ident(_)) || is_punct(tree, ':');
        let path: Vec<TokenTree> = attribute.clone().into_iter().take_while(is_of_path).collect();
        let Some(TokenTree::Ident(last)) = path.last() else { return };
        if last == LINE {
            self.mark = attribute.into_iter().last().and_then(|number| number.to_string().parse().ok());
            return;
        }
        let is_server = last == "mcp_server";
        let is_ours = is_server || Kind::of(last).is_some();
        if is_ours && self.published.is_none() {
            (self.published, self.line) = (Some(is_server), self.mark);
        }
        let is_plain = is_ours || (path.len() == 1 && PLAIN.iter().any(|plain| last == plain));
        self.conditional |= !is_plain;
        self.changed |= !is_plain && last != "cfg";
    }

    /// What is around the items between its braces.
    fn inside(&self, around: Around) -> Around {
        // The braces of an argument, as in `impl Of<{ N }>`, have ended the item before its own.
        let is_rest = self.before.clone().into_iter().next().is_some_and(|tree| is_punct(&tree, '>'));
        if self.changed || is_rest || around == Around::Unknown {
            return Around::Unknown;
        }
        match item::keyword(self.before.clone()) {
            Some(keyword) if keyword == "impl" => Around::Impl,
            Some(keyword) if keyword == "trait" => Around::Trait,
            Some(_) => Around::Module,
            None if self.before.clone().into_iter().any(|tree| is_word(&tree, "extern")) => Around::Extern,
            None => around,
        }
    }
}

/// What ends an item, without its braces.
fn body(end: &TokenTree) -> String {
    match end {
        TokenTree::Group(group) => flat(group.stream()),
        other => other.to_string(),
    }
}

fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(tree: &TokenTree, character: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_bracket(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket)
}

/// Tokens as a text without the spaces between them, which are not the same in a file and in a macro's input, and without our
/// marks.
fn flat(tokens: TokenStream) -> String {
    let mut text = String::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        if is_punct(&tree, '#') && trees.next_if(is_mark).is_some() {
            continue;
        }
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

fn is_mark(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Group(group) => {
            matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(first)) if first == LINE)
        }
        _ => false,
    }
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
        File::of(file).has_before(&block, at + 1)
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
    fn a_block_is_compared_without_marks() {
        let block = "impl Web {\n#[mcp_tool(tier = Standard)]\nfn one(&self) {}\n}";
        let file = format!("{ONE}#[mcp_server]\n{block}");
        let item = item::server(block.parse().unwrap(), &mut Errors::default()).unwrap();
        let ServerItem::Impl(block) = item else { panic!("`{block}` is no `impl`") };
        assert!(File::of(&file).has_before(&block, 3));
    }

    #[test]
    fn an_attribute_that_is_none_of_ours_does_not_move_a_block() {
        let file = format!("{ONE}#[mcp_server]\n#[allow(x)] // mcp_server\nimpl Web {{}}");
        let lines: Vec<_> = File::of(&file).marked.iter().map(|item| item.line).collect();
        assert_eq!(lines, [None, Some(2), Some(3)], "what is inside comes first");
    }

    /// Where the function `page` stands, whose attribute begins a line of its own.
    fn place_of_page(file: &str) -> Place {
        let line = file.lines().position(|line| line.trim() == "#[mcp_tool]").unwrap();
        let own = file.lines().nth(line + 1).unwrap();
        File::of(file).place(&item::function(own.parse().unwrap()).unwrap(), line + 1)
    }

    #[test]
    fn what_is_around_a_function_is_known_where_the_file_says_it() {
        const PAGE: &str = "\n#[mcp_tool]\nfn page(query: String) -> [u8; 2] { g!(query) }\n";
        const DECLARED: &str = "\n#[mcp_tool]\nfn page(&self);\n";
        let around = |file: String| place_of_page(&file).around;
        assert_eq!(around(format!("use x; {PAGE}")), Around::Module);
        assert_eq!(around(format!("#[cfg(unix)] mod a {{ impl X {{}} {PAGE} }}")), Around::Module);
        assert_eq!(around(format!("impl X {{ fn f() -> impl Y {{ if x {{ {PAGE} }} }} }}")), Around::Module);
        assert_eq!(around(format!("const X: u8 = {{ {DECLARED} 1 }};")), Around::Module);
        assert_eq!(around(format!("impl<T> X for Y<T> {{ {PAGE} }}")), Around::Impl);
        assert_eq!(around(format!("pub trait X: Sized {{ {DECLARED} }}")), Around::Trait);
        assert_eq!(around(format!("unsafe extern \"C\" {{ {DECLARED} }}")), Around::Extern);
        assert_eq!(around(format!("#[async_trait] impl X {{ {PAGE} }}")), Around::Unknown);
        assert_eq!(around(format!("#[other] mod a {{ impl X {{ {PAGE} }} }}")), Around::Unknown);
        assert_eq!(around(format!("macro! {{ {PAGE} }}")), Around::Unknown);
        assert_eq!(around(format!("impl X<{{ N }}> {{ {PAGE} }}")), Around::Unknown);
        assert_eq!(around(format!("impl X {{ {PAGE}")), Around::Unknown, "it cannot be read");
    }

    #[test]
    fn a_type_of_the_name_of_a_function_is_found_beside_it() {
        const PAGE: &str = "\n#[mcp_tool]\nfn page() {}\n";
        let namesake = |file: String| place_of_page(&file).namesake;
        assert_eq!(namesake(format!("{PAGE} pub(crate) mod page {{}}")).as_deref(), Some("mod"));
        assert_eq!(
            namesake(format!("#[derive(A)] pub struct page<T>(T); mod a {{}} {PAGE}")).as_deref(),
            Some("struct")
        );
        for other in [
            "mod pages {}",
            "mod page;",
            "mod page { #![cfg(x)] }",
            "let union = page();",
            "a.union(&b).page();",
            "fn page() {}",
            "mod a { enum page {} }",
            "#[cfg(x)] mod page;",
            "m!(mod page;);",
        ] {
            assert_eq!(namesake(format!("{other} {PAGE}")), None, "{other}");
        }
    }

    #[test]
    fn a_function_that_is_there_already_is_found() {
        const PAGE: &str = "\n#[mcp_tool]\nfn page() {}";
        let is_again = |before: &str| {
            let file = format!("{before} {PAGE}");
            let function = item::function("fn page() {}".parse().unwrap()).unwrap();
            File::of(&file).place(&function, file.lines().count() - 1)
        };
        assert!(is_again("#[mcp_prompt(tier = Standard)] pub fn page(x: u8) {}").is_again);
        for other in [
            "",
            "fn page() {}",
            "#[mcp_tool] fn pages() {}",
            "#[cfg(x)] #[mcp_tool] fn page() {}",
            "mod a { #[mcp_tool] fn page() {} }",
        ] {
            let place = is_again(other);
            assert!(!place.is_again && place.around == Around::Module, "{other}");
        }
    }

    #[test]
    fn no_page_is_read() {
        assert!(is_source(Path::new("src/lib.rs")));
        assert!(!is_source(Path::new("docs/errors/A0602.md")) && !is_source(Path::new("rs")));
    }
}
