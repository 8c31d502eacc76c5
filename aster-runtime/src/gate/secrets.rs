//! Known secrets, found in whatever text they turn up in. Pure.
//!
//! The values that a configuration hands to servers are matched exactly, as they are and as JSON, URLs and base64
//! write them, and replaced. It has no false positives and needs no list of formats.

use std::borrow::Cow;
use std::fmt;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// The shortest value that counts as a secret: shorter ones are words, and replacing them would hide half of a text.
pub const MIN_SECRET: usize = 8;

/// The shortest line of a secret of several lines that counts as one by itself.
const MIN_LINE: usize = 16;

/// Replaces known secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    matcher: Option<Matcher>,
}

/// How the forms are found. There is no limit on how many secrets there are, and one on how large an automaton may be:
/// past it they are looked for one by one.
#[derive(Clone)]
enum Matcher {
    Automaton(AhoCorasick),
    OneByOne(Vec<String>),
}

impl Matcher {
    fn finds(&self, text: &str) -> bool {
        match self {
            Self::Automaton(automaton) => automaton.is_match(text),
            Self::OneByOne(patterns) => patterns.iter().any(|pattern| text.contains(pattern.as_str())),
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor of these values; those shorter than eight bytes are passed over.
    ///
    /// ```
    /// use aster_runtime::gate::secrets::Redactor;
    ///
    /// let redactor = Redactor::new(["hunter2hunter2"]);
    /// assert_eq!(redactor.redact("token=hunter2hunter2"), "token=[redacted]");
    /// ```
    #[must_use]
    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
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

    /// A redactor of all text and numbers in these values, however short: of what is known to be secret, too much is
    /// replaced rather than too little.
    pub(crate) fn of_values<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
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
            return Self::default();
        }
        let automaton = AhoCorasick::builder().build(&patterns);
        let matcher = automaton.map(Matcher::Automaton).unwrap_or(Matcher::OneByOne(patterns));
        Self { matcher: Some(matcher) }
    }

    /// Whether there is anything to replace, in a value or a key: most often there is not, and then nothing need be copied.
    pub(crate) fn finds_any(&self, object: &Map<String, Value>) -> bool {
        fn any(matcher: &Matcher, value: &Value) -> bool {
            match value {
                Value::String(text) => matcher.finds(text),
                Value::Array(items) => items.iter().any(|item| any(matcher, item)),
                Value::Object(fields) => any_of(matcher, fields),
                _ => false,
            }
        }
        fn any_of(matcher: &Matcher, fields: &Map<String, Value>) -> bool {
            fields.iter().any(|(key, value)| matcher.finds(key) || any(matcher, value))
        }
        self.matcher.as_ref().is_some_and(|matcher| any_of(matcher, object))
    }

    /// The text with every secret replaced; secrets that overlap are replaced together.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut spans: Vec<(usize, usize)> = match &self.matcher {
            None => return text.into(),
            Some(Matcher::Automaton(automaton)) => {
                automaton.find_overlapping_iter(text).map(|found| (found.start(), found.end())).collect()
            }
            Some(Matcher::OneByOne(patterns)) => patterns
                .iter()
                .flat_map(|pattern| text.match_indices(pattern.as_str()))
                .map(|(start, found)| (start, start + found.len()))
                .collect(),
        };
        if spans.is_empty() {
            return text.into();
        }
        spans.sort_unstable();
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (start, end) in spans {
            if start >= done {
                out.push_str(&text[done..start]);
                out.push_str(REDACTED);
            }
            done = done.max(end);
        }
        out.push_str(&text[done..]);
        out.into()
    }

    /// The value with every secret in its strings and keys replaced.
    #[must_use]
    pub fn redact_value(&self, value: &Value) -> Value {
        if self.matcher.is_none() {
            return value.clone();
        }
        match value {
            Value::String(text) => Value::String(self.redact(text).into_owned()),
            Value::Array(items) => items.iter().map(|item| self.redact_value(item)).collect(),
            Value::Object(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(key, value)| (self.redact(key).into_owned(), self.redact_value(value)))
                    .collect(),
            ),
            other => other.clone(),
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
        STANDARD_NO_PAD.encode(value),
        URL_SAFE.encode(value),
        URL_SAFE_NO_PAD.encode(value),
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
    forms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn short_values_are_words_and_stay() {
        assert_eq!(Redactor::new(["true", ""]).redact("it is true"), "it is true");
    }

    #[test]
    fn a_key_of_several_lines_is_found_line_by_line() {
        let redactor = Redactor::new(["-----BEGIN KEY-----\nsupersecretline2\nx\n"]);
        assert_eq!(redactor.redact("it wrote: supersecretline2 x"), "it wrote: [redacted] x");
    }

    #[test]
    fn what_is_known_to_be_secret_has_no_least_length() {
        let redactor = Redactor::of_values([&json!({"pin": [1234, "abc", ""], "on": true})]);
        assert_eq!(redactor.redact("abc failed with 1234, true"), "[redacted] failed with [redacted], true");
    }

    #[test]
    fn secrets_that_overlap_leave_nothing() {
        let redactor = Redactor::new(["aaaa1111", "1111bbbbbbbbbbbb"]);
        assert_eq!(redactor.redact("x aaaa1111bbbbbbbbbbbb y"), "x [redacted] y");
        assert_eq!(redactor.redact("aaaa1111aaaa1111"), "[redacted][redacted]");
    }

    #[test]
    fn one_by_one_finds_the_same() {
        let redactor = Redactor { matcher: Some(Matcher::OneByOne(vec!["hunter2hunter2".to_owned()])) };
        assert_eq!(redactor.redact("a hunter2hunter2 b"), "a [redacted] b");
    }

    #[test]
    fn every_form_and_every_place() {
        let secret = "s3cr\"et va/lue";
        let redactor = Redactor::new([secret]);
        let value = json!({"a": [secret, {"b": STANDARD.encode(secret)}], secret: "c", "n": 1});
        let redacted = json!({"a": [REDACTED, {"b": REDACTED}], REDACTED: "c", "n": 1});
        assert_eq!(redactor.redact_value(&value), redacted);
        let finds_any = |value: &Value| redactor.finds_any(value.as_object().unwrap());
        assert!(finds_any(&json!({ "a": [[secret]] })) && finds_any(&json!({ secret: 1 })));
        assert!(!finds_any(&redacted));
        for form in
            [&value.to_string()[..], "x=s3cr%22et%20va%2Flue", "x=s3cr%22et+va%2Flue", "s3cr%22et%20va%2flue"]
        {
            assert!(!redactor.redact(form).contains("s3cr"), "{form}");
        }
        let redactor = Redactor::new(["AbC/dEf-Ghi"]);
        for form in [
            "AbC%2FdEf-Ghi",
            "AbC%2fdEf-Ghi",
            "AbC%2FdEf%2DGhi",
            "4162432f6445662d476869",
            "4162432F6445662D476869",
        ] {
            assert_eq!(redactor.redact(form), REDACTED, "{form}");
        }
    }

    proptest! {
        #[test]
        fn no_secret_survives(secret in "\\PC{8,40}", before in any::<String>(), after in any::<String>()) {
            let redacted = format!("{before}{REDACTED}{after}");
            // What stands around it may hold the secret again, across the seam.
            prop_assume!(!redacted.contains(&secret));
            let text = format!("{before}{secret}{after}");
            prop_assert!(!Redactor::new([&secret]).redact(&text).contains(&secret));
        }
    }
}
