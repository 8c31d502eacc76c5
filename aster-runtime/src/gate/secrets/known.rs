//! The values that are known to be secret, in whatever form they turn up. Pure.
//!
//! They are matched exactly, as they are and as JSON, URLs, base64 and hexadecimal write them: there are no false
//! positives, and no list of formats is needed.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::MIN_SECRET;

/// The shortest line of a secret of several lines that counts as one by itself.
const MIN_LINE: usize = 16;

/// Finds known values. How it does is in its variants: there is no limit on how many secrets there are, and one on how
/// large an automaton may be; past it they are looked for one by one.
#[derive(Clone, Default)]
pub(super) enum Known {
    #[default]
    Nothing,
    Automaton {
        any: AhoCorasick,
        all: AhoCorasick,
    },
    OneByOne(Vec<String>),
}

impl Known {
    /// Those of these values that are long enough to be secrets.
    pub(super) fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        let mut patterns: Vec<String> = Vec::new();
        for value in values {
            if value.as_ref().len() >= MIN_SECRET {
                patterns.extend(forms(value.as_ref()));
            }
            // A key of several lines turns up line by line; its lines are long and of one word, unlike those of a text.
            let lines = value.as_ref().lines().map(str::trim);
            let secret = |line: &&str| line.len() >= MIN_LINE && !line.contains(char::is_whitespace);
            lines.filter(secret).for_each(|line| patterns.extend(forms(line)));
        }
        Self::of(patterns)
    }

    /// All text and numbers in these values, however short.
    pub(super) fn of_values<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
        fn collect(value: &Value, patterns: &mut Vec<String>) {
            match value {
                Value::String(text) if !text.is_empty() => patterns.extend(forms(text)),
                Value::Number(number) => patterns.push(number.to_string()),
                Value::Array(items) => items.iter().for_each(|item| collect(item, patterns)),
                Value::Object(fields) => fields.values().for_each(|value| collect(value, patterns)),
                _ => {}
            }
        }
        let mut patterns = Vec::new();
        values.into_iter().for_each(|value| collect(value, &mut patterns));
        Self::of(patterns)
    }

    fn of(mut patterns: Vec<String>) -> Self {
        patterns.sort();
        patterns.dedup();
        if patterns.is_empty() {
            return Self::Nothing;
        }
        let build = |kind| AhoCorasick::builder().match_kind(kind).build(&patterns);
        match (build(MatchKind::LeftmostFirst), build(MatchKind::Standard)) {
            (Ok(any), Ok(all)) => Self::Automaton { any, all },
            _ => Self::OneByOne(patterns),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    /// Whether one of them may stand there.
    pub(super) fn may_be_in(&self, text: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Automaton { any, .. } => any.is_match(text),
            Self::OneByOne(_) => true,
        }
    }

    /// Where they stand; places may overlap.
    pub(super) fn find(&self, text: &[u8], found: &mut impl Extend<Range<usize>>) {
        match self {
            Self::Nothing => {}
            // Whether there is one at all is told by another search, many bytes at once; most often there is none.
            Self::Automaton { any, .. } if !any.is_match(text) => {}
            Self::Automaton { all, .. } => {
                found.extend(all.find_overlapping_iter(text).map(|found| found.range()));
            }
            Self::OneByOne(patterns) => {
                let of = |pattern: &String| {
                    let (pattern, length) = (pattern.as_bytes().to_owned(), pattern.len());
                    let starts = text.windows(length).enumerate();
                    starts.filter(move |(_, window)| *window == pattern).map(move |(at, _)| at..at + length)
                };
                found.extend(patterns.iter().flat_map(of));
            }
        }
    }
}

/// What JavaScript's `encodeURIComponent` leaves as it is.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// The forms in which a value may turn up.
fn forms(value: &str) -> Vec<String> {
    let json = Value::from(value).to_string();
    let hex = |upper: bool| -> String {
        value.bytes().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") }).collect()
    };
    let mut forms = vec![
        value.to_owned(),
        json.trim_matches('"').to_owned(),
        url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        STANDARD.encode(value),
        URL_SAFE.encode(value),
        hex(false),
        hex(true),
    ];
    for set in [NON_ALPHANUMERIC, COMPONENT] {
        let encoded = utf8_percent_encode(value, set);
        forms.push(encoded.to_string());
        // The same with the digits of the escapes, and nothing else, in lower case.
        forms.push(
            encoded
                .map(|part| if part.starts_with('%') { part.to_lowercase() } else { part.to_owned() })
                .collect(),
        );
    }
    forms.extend((0..3).flat_map(|before| inside_base64(value, before)));
    forms
}

/// What is left of a value in the base64 of a longer text, with so many bytes before it, modulo three. The characters at
/// both ends that it shares with its neighbours are left out.
fn inside_base64(value: &str, before: usize) -> Vec<String> {
    let text = [&vec![0; before], value.as_bytes()].concat();
    let whole = (before * 8).div_ceil(6)..text.len() * 8 / 6;
    let of = |encoded: String| {
        encoded.get(whole.clone()).filter(|part| part.len() >= MIN_SECRET).map(str::to_owned)
    };
    [STANDARD.encode(&text), URL_SAFE.encode(&text)].into_iter().filter_map(of).collect()
}
