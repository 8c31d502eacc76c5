//! Text from strangers, made safe to show: on a terminal, in a manifest, in an answer to a model.
//!
//! The characters that are dropped and why are those of the hidden-text attacks on tool descriptions: control
//! characters (terminal escapes, forged lines), bidirectional overrides, zero-width and tag characters, variation
//! selectors and the private use areas.

use std::borrow::Cow;

/// Whether a character can steer a terminal, forge a line or hide text: it has no place in a name or a description.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{0600}'..='\u{0605}' | '\u{061C}' | '\u{06DD}' | '\u{070F}' | '\u{08E2}'
            | '\u{0890}' | '\u{0891}' | '\u{2800}' | '\u{110BD}' | '\u{110CD}' | '\u{13430}'..='\u{1345F}' | '\u{16FE4}' | '\u{1D159}'
            | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{E000}'..='\u{F8FF}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}' | '\u{F0000}'..='\u{10FFFF}')
}

/// One line of at most `max` characters: unsafe characters dropped, runs of white space folded to one space, what is
/// cut marked with `…`.
///
/// ```
/// assert_eq!(aster_runtime::text::one_line("a\n- b\u{202e}\tc", 100), "a - b c");
/// assert_eq!(aster_runtime::text::one_line("abcdef", 4), "abc…");
/// ```
#[must_use]
pub fn one_line(text: &str, max: usize) -> String {
    let mut line = String::with_capacity(text.len().min(max.saturating_mul(4)));
    let mut length = 0;
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() {
            gap = length > 0;
            continue;
        }
        if is_unsafe(c) {
            continue;
        }
        let needed = 1 + usize::from(gap);
        if length + needed > max {
            cut(&mut line, length, max);
            return line;
        }
        if gap {
            line.push(' ');
            gap = false;
        }
        line.push(c);
        length += needed;
    }
    line
}

/// Several lines of at most `max` characters in all: unsafe characters dropped, but line feeds and tabs kept.
#[must_use]
pub fn block(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max.saturating_mul(4)));
    for (length, c) in text.chars().filter(|&c| c == '\n' || c == '\t' || !is_unsafe(c)).enumerate() {
        if length == max {
            cut(&mut out, length, max);
            break;
        }
        out.push(c);
    }
    out
}

/// Replaces the last character by `…` where `text` fills all of its `max` characters, else appends it.
fn cut(text: &mut String, length: usize, max: usize) {
    if max == 0 {
        return;
    }
    if length >= max {
        text.pop();
    }
    text.truncate(text.trim_end().len());
    text.push('…');
}

/// The first sentence of a line, or the whole line where it has no end of a sentence.
#[must_use]
pub fn first_sentence(line: &str) -> &str {
    let mut previous = ' ';
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        if matches!(c, '。' | '！' | '？') {
            return &line[..end];
        }
        // "e.g. x" and "v1. x" are no ends; a letter or a closing mark before the stop, and more than one of them, is.
        let ends = matches!(c, '.' | '!' | '?') && line[end..].starts_with(' ');
        if ends && !abbreviated(&line[..at], previous) {
            return &line[..end];
        }
        previous = c;
    }
    line
}

/// Whether the word that ends here is an abbreviation such as `e.g` or a single letter.
fn abbreviated(before: &str, last: char) -> bool {
    let word = before.rsplit(' ').next().unwrap_or_default();
    !last.is_whitespace()
        && (word.contains('.') || word.chars().count() == 1 || matches!(word, "etc" | "vs" | "no" | "approx"))
}

/// The text of a JSON writer with every unsafe character escaped: it reads as the same value, but nothing in it hides.
/// Line feeds stay, since in such a text they stand between values only.
///
/// ```
/// assert_eq!(aster_runtime::text::escape_unsafe("[\n\"a\u{202e}\"]"), "[\n\"a\\u202e\"]");
/// ```
#[must_use]
pub fn escape_unsafe(json: &str) -> Cow<'_, str> {
    let hides = |c: char| c != '\n' && is_unsafe(c);
    if !json.contains(hides) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if hides(c) {
            // It can only stand in a string, where an escape means the same.
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The text whole, with every character that could hide or move something written as `\u{…}`.
///
/// ```
/// use aster_runtime::text::visible;
///
/// assert_eq!(visible("a\u{202e}b\n"), r"a\u{202e}b\u{a}");
/// ```
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_unsafe(c) || (c.is_whitespace() && c != ' ') => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Whether a stranger's name may become part of a command that somebody copies into a shell.
#[must_use]
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-'))
}

/// A JSON value as text, with every unsafe character escaped: the same value, but nothing in it hides.
#[must_use]
pub fn visible_json(value: &serde_json::Value) -> String {
    escape_unsafe(&value.to_string()).into_owned()
}

/// Estimates the tokens of a text: one per four characters, rounded up.
#[must_use]
pub fn estimate_tokens(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_cap_is_a_cap_too() {
        assert_eq!(block("a\u{1b}b", usize::MAX), "ab");
        assert_eq!(one_line("a\nb", usize::MAX), "a b");
    }

    #[test]
    fn sentences() {
        assert_eq!(first_sentence("Reads a file. Returns text."), "Reads a file.");
        assert_eq!(first_sentence("Takes a path, e.g. a/b. Fails."), "Takes a path, e.g. a/b.");
        assert_eq!(first_sentence("no stop at all"), "no stop at all");
        assert_eq!(first_sentence("読みます。次"), "読みます。");
    }

    proptest! {
        #[test]
        fn visible_json_is_the_same_value(text in any::<String>()) {
            let value = serde_json::json!({ text.clone(): text });
            let shown = visible_json(&value);
            prop_assert!(!shown.contains(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }

        #[test]
        fn one_line_is_one_safe_capped_line(text in any::<String>(), max in 0_usize..80) {
            let line = one_line(&text, max);
            prop_assert!(line.chars().count() <= max);
            prop_assert!(!line.chars().any(|c| is_unsafe(c) || c == '\n'));
            prop_assert!(!line.contains("  ") && line.trim() == line);
        }

        #[test]
        fn block_is_safe_and_capped(text in any::<String>(), max in 0_usize..80) {
            let out = block(&text, max);
            prop_assert!(out.chars().count() <= max);
            prop_assert!(!out.chars().any(|c| c != '\n' && c != '\t' && is_unsafe(c)));
        }
    }
}
