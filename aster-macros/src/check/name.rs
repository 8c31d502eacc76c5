//! The grammar of names. It repeats `aster_runtime::id::check_native_name` with an arrow at the user's own token; a test
//! below holds the two together.

use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::{Ident, LitStr};

use crate::diag::{Errors, codes};

/// The longest `server__tool`.
const MAX_ID: usize = 64;

/// The bridge's name.
const RESERVED: &str = "aster_mcp";

/// The name of what is published: what the option says, or the function's own.
pub(crate) fn callable(ident: &Ident, given: Option<&LitStr>, errors: &mut Errors) -> Option<String> {
    match given {
        Some(literal) => self::literal("name", literal, errors),
        None => check(&ident.unraw().to_string(), ident, "name", errors),
    }
}

/// A server's name: what the option says, or what its type or module is called.
pub(crate) fn server(
    default: &str,
    ident: impl ToTokens,
    given: Option<&LitStr>,
    errors: &mut Errors,
) -> Option<String> {
    match given {
        Some(literal) => self::literal("name", literal, errors),
        None => check(default, ident, "name", errors),
    }
}

/// A name in a string literal.
pub(crate) fn literal(option: &str, literal: &LitStr, errors: &mut Errors) -> Option<String> {
    check(&literal.value(), literal, option, errors)
}

fn check(name: &str, at: impl ToTokens, option: &str, errors: &mut Errors) -> Option<String> {
    if name.is_empty() {
        errors.push_with_help(at, &codes::LENGTH, "the name is empty", format!("write `{option} = \"…\"`"));
        return None;
    }
    if let Some(c) = name.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '_' | '-')) {
        let what = match c {
            '/' => "`/` separates server from tool and cannot appear in a name".to_owned(),
            c => format!("`{}` cannot appear in the name `{}`", c.escape_debug(), name.escape_debug()),
        };
        let help = match legal(name) {
            Some(name) => format!("use `[a-z0-9_-]`: write `{option} = \"{name}\"`"),
            None => format!("use `[a-z0-9_-]`: write `{option} = \"…\"`"),
        };
        errors.push_with_help(at, &codes::CHARACTER, what, help);
        return None;
    }
    if name.len() > MAX_ID {
        let what = format!("the name has {} characters, and {MAX_ID} are the most", name.len());
        errors.push(at, &codes::LENGTH, what);
        return None;
    }
    let what = if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        format!("the name `{name}` does not begin with a letter")
    } else if name.contains("__") {
        format!("the name `{name}` contains `__`, which separates server and tool")
    } else if name == RESERVED {
        format!("the name `{name}` is the bridge's")
    } else {
        return Some(name.to_owned());
    };
    errors.push(at, &codes::START, what);
    None
}

/// The name with what is not allowed replaced, where that is enough to make it legal.
fn legal(name: &str) -> Option<String> {
    let mut legal = String::new();
    let mut previous = '_';
    for c in name.chars() {
        // `fetchPage` is `fetch_page`, but `HTTP` is `http`.
        if c.is_ascii_uppercase() && (previous.is_ascii_lowercase() || previous.is_ascii_digit()) {
            legal.push('_');
        }
        let next = if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
        if !(next == '_' && legal.ends_with('_')) {
            legal.push(next);
        }
        previous = c;
    }
    let legal = legal.trim_matches(['_', '-']);
    check(legal, legal, "name", &mut Errors::default())
}

/// The length of the whole id, at the name that was given, or at the function.
pub(crate) fn whole(server: &str, name: &str, given: Option<&LitStr>, ident: &Ident, errors: &mut Errors) {
    let length = server.len() + "__".len() + name.len();
    if length <= MAX_ID {
        return;
    }
    let what = format!("the id `{server}/{name}` counts {length} characters, and {MAX_ID} are the most");
    match given {
        Some(literal) => errors.push(literal, &codes::LENGTH, what),
        None => errors.push(ident, &codes::LENGTH, what),
    }
}

/// Whether an argument's name is taken: by MCP, by the bridge, or by generated code.
pub(crate) fn is_reserved_argument(name: &str) -> bool {
    name == "_meta" || name == "arguments" || name.starts_with("__aster")
}

/// Whether a header may have this name: a token (RFC 9110, section 5.6.2).
pub(crate) fn is_header(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

/// Whether this is a host in lower case, or with `*.` before it all hosts below one.
pub(crate) fn is_host(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or_default();
    // A last label of digits makes it an address (WHATWG URL, "ends in a number").
    name.split('.').all(label) && !last.chars().all(|c| c.is_ascii_digit())
}

/// An argument's name on the wire: what Anthropic and OpenAI accept as a property.
pub(crate) fn argument(name: &str, at: impl ToTokens, errors: &mut Errors) -> bool {
    if is_reserved_argument(name) {
        errors.push(at, &codes::RESERVED, format!("the argument name `{name}` is reserved"));
        return false;
    }
    if let Some(c) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))) {
        errors.push_with_help(
            at,
            &codes::CHARACTER,
            format!("`{}` cannot appear in the name of an argument", c.escape_debug()),
            "use `[A-Za-z0-9_.-]`; `#[arg(name = \"…\")]` gives another name on the wire",
        );
        return false;
    }
    if name.is_empty() || name.len() > MAX_ID {
        let what = format!("the name of an argument has {} characters", name.len());
        let help =
            format!("use between 1 and {MAX_ID}; `#[arg(name = \"…\")]` gives another name on the wire");
        errors.push_with_help(at, &codes::LENGTH, what, help);
        return false;
    }
    true
}

/// `WebTools` as `web_tools`.
pub(crate) fn snake(camel: &str) -> String {
    let characters: Vec<char> = camel.chars().collect();
    let mut snake = String::new();
    for (at, c) in characters.iter().enumerate() {
        let after_word = at > 0 && !characters[at - 1].is_uppercase() && characters[at - 1] != '_';
        // In `HTTPServer` the `S` begins a word.
        let before_word = at > 0
            && characters[at - 1].is_uppercase()
            && characters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if c.is_uppercase() && (after_word || before_word) {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// Whether a free function's type would hide one of the language's own.
pub(crate) fn is_primitive(function: &Ident) -> bool {
    const PRIMITIVES: [&str; 17] = [
        "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
        "u64", "u128", "usize",
    ];
    PRIMITIVES.contains(&function.unraw().to_string().as_str())
}

/// What a function's variant in the enum of its server's tools is called: `fetch_page` is `FetchPage`.
pub(crate) fn variant(function: &Ident) -> String {
    let mut camel = String::new();
    for word in function.unraw().to_string().split('_') {
        let mut characters = word.chars();
        camel.extend(characters.next().into_iter().flat_map(char::to_uppercase));
        camel.push_str(characters.as_str());
    }
    // What is left of `_1` and `self_` cannot stand alone.
    if camel == "Self" || !camel.starts_with(char::is_alphabetic) {
        camel.insert(0, '_');
    }
    camel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variants() {
        for (function, name) in [
            ("fetch_page", "FetchPage"),
            ("fetchPage", "FetchPage"),
            ("v_1", "V1"),
            ("_1", "_1"),
            ("self_", "_Self"),
            ("r#type", "Type"),
            ("größe", "Größe"),
        ] {
            let function: Ident = syn::parse_str(function).unwrap();
            assert_eq!(variant(&function), name);
            assert!(syn::parse_str::<Ident>(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn names_of_types() {
        for (camel, name) in [
            ("Web", "web"),
            ("WebTools", "web_tools"),
            ("HTTPServer", "http_server"),
            ("Web2", "web2"),
            ("DesktopX", "desktop_x"),
            ("snake_case", "snake_case"),
        ] {
            assert_eq!(snake(camel), name);
        }
    }

    #[test]
    fn a_legal_name_is_proposed() {
        assert_eq!(legal("fetch/page").as_deref(), Some("fetch_page"));
        assert_eq!(legal("fetchPage").as_deref(), Some("fetch_page"));
        assert_eq!(legal("Get  User!").as_deref(), Some("get_user"));
        assert_eq!(legal("größe").as_deref(), Some("gr_e"));
        assert_eq!(legal("1/2"), None);
    }

    #[test]
    fn the_grammar_is_the_runtimes() {
        let fixed = [
            "",
            "a",
            "web",
            "fetch_page",
            "a-1",
            "a_",
            "a__b",
            "_a",
            "1a",
            "-a",
            "Web",
            "a/b",
            "a b",
            "ä",
            "aster_mcp",
        ];
        let long = ["a".repeat(64), "a".repeat(65)];
        let alphabet = ['a', 'z', '0', '9', '_', '-', 'A', '/', ' ', '.', 'ß'];
        let short = alphabet.iter().flat_map(|first| {
            alphabet
                .iter()
                .flat_map(move |second| alphabet.map(|third| [*first, *second, third].iter().collect()))
        });
        for name in fixed.map(str::to_owned).into_iter().chain(long).chain(short) {
            let mine = check(&name, &name, "name", &mut Errors::default()).is_some();
            let runtimes = aster_runtime::id::check_native_name(&name).is_ok();
            assert_eq!(mine, runtimes, "{name:?}");
        }
    }
}
