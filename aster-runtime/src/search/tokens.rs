//! From text to the words it is found by: the same way for tools and for queries.
//!
//! Nothing is thrown away for being in another script: a run of Han, kana or hangul, which has no spaces to cut at, becomes
//! its overlapping pairs of characters.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Calls `word` for each lower-case word of a text, in order: runs of letters and digits, cut again where case or kind
/// changes, the parts first and then the whole (`getPage2` is `get`, `page`, `2`, `getpage2`).
pub(super) fn words(text: &str, word: &mut dyn FnMut(&str)) {
    if text.is_ascii() {
        ascii_words(text, word);
    } else {
        let text: Cow<'_, str> = if unicode_normalization::is_nfkc(text) {
            text.into()
        } else {
            text.nfkc().collect::<String>().into()
        };
        for run in text.split(|c: char| !(c.is_alphanumeric() || is_combining_mark(c))) {
            if !run.is_empty() {
                mixed_run(run, word);
            }
        }
    }
}

fn ascii_words(text: &str, word: &mut dyn FnMut(&str)) {
    let mut buffer = String::new();
    let mut rest = 0;
    while let Some(skipped) = text.as_bytes()[rest..].iter().position(u8::is_ascii_alphanumeric) {
        let from = rest + skipped;
        let mut only_small = true;
        let run = text.as_bytes()[from..].iter().take_while(|byte| {
            only_small &= byte.is_ascii_lowercase() || !byte.is_ascii_alphanumeric();
            byte.is_ascii_alphanumeric()
        });
        rest = from + run.count();
        let run = &text[from..rest];
        // The commonest case by far, and it needs no copy.
        if only_small {
            word(run);
            continue;
        }
        let bytes = run.as_bytes();
        buffer.clear();
        buffer.push_str(run);
        buffer.make_ascii_lowercase();
        let mut start = 0;
        for at in 1..bytes.len() {
            if is_boundary(bytes[at - 1].into(), bytes[at].into(), bytes.get(at + 1).map(|&next| next.into()))
            {
                word(&buffer[start..at]);
                start = at;
            }
        }
        if start > 0 {
            word(&buffer[start..]);
        }
        word(&buffer);
    }
}

/// Whether a word of its own starts at `here`.
fn is_boundary(before: char, here: char, after: Option<char>) -> bool {
    let hump = before.is_lowercase() && here.is_uppercase();
    let end_of_capitals =
        before.is_uppercase() && here.is_uppercase() && after.is_some_and(char::is_lowercase);
    hump || end_of_capitals || before.is_numeric() != here.is_numeric()
}

/// The scripts that are written without spaces between words, or that glue particles to them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unspaced {
    No,
    Han,
    Hiragana,
    Katakana,
    Hangul,
    Thai,
}

fn unspaced(c: char) -> Unspaced {
    match c {
        '\u{3005}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}' => Unspaced::Han,
        '\u{3040}'..='\u{309F}' => Unspaced::Hiragana,
        '\u{30A0}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' => Unspaced::Katakana,
        '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{AC00}'..='\u{D7A3}' => Unspaced::Hangul,
        '\u{0E00}'..='\u{0E7F}' => Unspaced::Thai,
        _ => Unspaced::No,
    }
}

/// A run that may change its script on the way: `GitHubの検索` is `git hub github の 検索`.
fn mixed_run(run: &str, word: &mut dyn FnMut(&str)) {
    let chars: Vec<char> = run.chars().collect();
    let mut start = 0;
    while start < chars.len() {
        let script = unspaced(chars[start]);
        let length = chars[start..].iter().take_while(|&&c| unspaced(c) == script).count();
        let part = &chars[start..start + length];
        if script == Unspaced::No {
            spaced_run(part, word);
        } else {
            pairs(part, script, word);
        }
        start += length;
    }
}

fn pairs(run: &[char], script: Unspaced, word: &mut dyn FnMut(&str)) {
    // Kana alone are endings and particles more than words, but a loan word in katakana is a word.
    if run.len() == 1 && script != Unspaced::Hiragana {
        word(run[0].encode_utf8(&mut [0; 4]));
    }
    for pair in run.windows(2) {
        word(&pair.iter().collect::<String>());
    }
    if script == Unspaced::Katakana && run.len() > 2 {
        word(&run.iter().collect::<String>());
    }
}

fn spaced_run(run: &[char], word: &mut dyn FnMut(&str)) {
    let mut start = 0;
    for at in 1..run.len() {
        if is_boundary(run[at - 1], run[at], run.get(at + 1).copied()) {
            word(&lower(&run[start..at]));
            start = at;
        }
    }
    if start > 0 {
        word(&lower(&run[start..]));
    }
    word(&lower(run));
}

/// Lower case without the dot that `İ` leaves behind.
fn lower(run: &[char]) -> String {
    run.iter().flat_map(|c| c.to_lowercase()).filter(|&c| c != '\u{307}').collect()
}

/// A word without its accents, since queries are typed without them. Only Latin letters lose theirs: in other scripts
/// marks tell words apart.
pub(super) fn without_accents(word: &str) -> Cow<'_, str> {
    if word.is_ascii()
        || !word
            .chars()
            .any(|c| matches!(c, '\u{C0}'..='\u{24F}' | '\u{300}'..='\u{36F}' | '\u{1E00}'..='\u{1EFF}'))
    {
        return word.into();
    }
    let plain = word.nfd().filter(|&c| !matches!(c, '\u{300}'..='\u{36F}')).map(|c| match c {
        'ı' => 'i',
        'ø' => 'o',
        'ł' => 'l',
        other => other,
    });
    plain.collect::<String>().into()
}

/// A name without case and separators, for comparing names that people write in many ways.
pub(crate) fn bare(text: &str) -> String {
    if text.is_ascii() {
        let mut bare = String::with_capacity(text.len());
        bare.extend(
            text.bytes().filter(u8::is_ascii_alphanumeric).map(|b| char::from(b.to_ascii_lowercase())),
        );
        return bare;
    }
    text.nfkc().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        words(text, &mut |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn identifiers_are_cut_and_kept_whole() {
        assert_eq!(
            all("getHTTPPage2 create_issue"),
            ["get", "http", "page", "2", "gethttppage2", "create", "issue"]
        );
        assert_eq!(
            all("Größe über GrößenÄnderung"),
            ["größe", "über", "größen", "änderung", "größenänderung"]
        );
        assert!(all("--- /").is_empty());
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(all("搜索网页"), ["搜索", "索网", "网页"]);
        assert_eq!(all("GitHubの検索"), ["git", "hub", "github", "検索"]);
        assert_eq!(all("ファイル"), ["ファ", "ァイ", "イル", "ファイル"]);
        assert_eq!(all("ＡＢＣ　날씨"), ["abc", "날씨"]);
    }

    #[test]
    fn accents_and_the_turkish_i() {
        assert_eq!(all("İstanbul"), ["istanbul"]);
        assert_eq!(without_accents("sayfası"), "sayfasi");
        assert_eq!(without_accents("café"), "cafe");
        assert_eq!(without_accents("й"), "й");
    }

    #[test]
    fn bare_names() {
        assert_eq!(bare("create_Issue"), bare("createIssue"));
        assert_eq!(bare("hub/create issue"), "hubcreateissue");
    }
}
