//! YAML text as a tree that keeps the place of every node, so that the reader can go on after a problem and name the
//! line of each.
//!
//! Constraint: nothing here knows what a configuration is, and no message quotes a value, since a value may be a
//! secret.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, MessageFormatter, Spanned, UserMessageFormatter};

/// A place in a file, both from 1; zeros where the place is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl From<Location> for Mark {
    fn from(location: Location) -> Self {
        let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self { line: clamp(location.line()), column: clamp(location.column()) }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: Mark,
    pub(super) value: Value,
}

/// A value as YAML's core schema reads it. Scalars keep the text that the file has.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Bool(bool, String),
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Value {
    /// What the value is, for "expected …, found …".
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(..) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }

    /// The text of any scalar: `PORT: 8080` under `env` means the text `8080`.
    pub(super) fn scalar(&self) -> Option<&str> {
        match self {
            Self::Bool(_, text) | Self::Number(text) | Self::Text(text) => Some(text),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }
}

/// Reads one document; an empty one is `Null`.
pub(super) fn parse(text: &str) -> Result<Node, (Mark, String)> {
    let options = serde_saphyr::options! {
        // A configuration is written by hand; what is larger than this is a mistake or an attack.
        budget: serde_saphyr::budget! { max_depth: 16, max_nodes: 20_000, max_events: 60_000, max_documents: 2 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000, max_replay_stack_depth: 8 },
        // The reader reports every duplicate with both of its lines.
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::AsString,
        strict_booleans: true,
        // A snippet would print a line of the file, and with it perhaps a secret.
        with_snippet: false,
    };
    let spanned: Spanned<Raw> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location().map(Mark::from).unwrap_or_default();
        (at, UserMessageFormatter.format_message(&error).into_owned())
    })?;
    Ok(locate(spanned, text))
}

/// A value before its numbers and booleans have got their own spelling back.
enum Raw {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<Raw>, Spanned<Raw>)>),
}

fn locate(spanned: Spanned<Raw>, text: &str) -> Node {
    let at = Mark::from(spanned.referenced);
    let spelled = |or: String| source(spanned.defined, text).map_or(or, str::to_owned);
    let value = match spanned.value {
        Raw::Null => Value::Null,
        Raw::Bool(on) => Value::Bool(on, spelled(on.to_string())),
        Raw::Number(number) => Value::Number(spelled(number)),
        Raw::Text(text) => Value::Text(text),
        Raw::List(items) => Value::List(items.into_iter().map(|item| locate(item, text)).collect()),
        Raw::Map(entries) => Value::Map(
            entries.into_iter().map(|(key, value)| (locate(key, text), locate(value, text))).collect(),
        ),
    };
    Node { at, value }
}

/// The bytes of the file that a scalar was read from.
fn source(location: Location, text: &str) -> Option<&str> {
    let span = location.span();
    let start = usize::try_from(span.byte_offset()?).ok()?;
    let end = start.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
    text.get(start..end).map(str::trim).filter(|slice| !slice.is_empty())
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, on: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(on))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(Raw::Number(number.to_string()))
    }

    fn visit_i128<E>(self, number: i128) -> Result<Raw, E> {
        Ok(Raw::Number(number.to_string()))
    }

    fn visit_u128<E>(self, number: u128) -> Result<Raw, E> {
        Ok(Raw::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw, E> {
        Ok(Raw::Number(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw, E> {
        Ok(Raw::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(Node, Node)> {
        match parse(text).unwrap().value {
            Value::Map(entries) => entries,
            other => panic!("{}", other.kind()),
        }
    }

    #[test]
    fn scalars_keep_their_spelling_and_their_place() {
        let text = "a: 0x1F\nb: 007 # c\nc: yes\nd: 1.50\ne: true\nf: \"8080\"\ng:\nh: .inf\ni: &x 1_000\nj: *x\nk: -0\n";
        let found: Vec<_> = entries(text)
            .iter()
            .map(|(key, value)| (key.at.line, value.at.column, value.value.scalar().map(str::to_owned)))
            .collect();
        let expected = ["0x1F", "007", "yes", "1.50", "true", "8080", "", ".inf", "1_000", "1_000", "-0"];
        for (at, ((line, column, scalar), expected)) in found.iter().zip(expected).enumerate() {
            assert_eq!(*line as usize, at + 1);
            assert!(*column >= 2, "line {line}: {column}");
            assert_eq!(scalar.as_deref().unwrap_or_default(), expected, "line {line}");
        }
    }

    #[test]
    fn empty_documents_are_null() {
        for text in ["", "\n", "# only a comment\n", "---\n", "\u{feff}", "---\n...\n"] {
            assert!(matches!(parse(text).unwrap().value, Value::Null), "{text:?}");
        }
    }

    #[test]
    fn errors_have_a_place_and_quote_no_value() {
        for text in [
            "a: [hunter2\nb: 1\n",
            "a: \"hunter2\nb: 1\n",
            "a: hunter2\n b: hunter2\n",
            "a: *hunter2\n",
            "a: !!int hunter2\n",
            "a:\n\tb: hunter2\n",
            "a: hunter2\n---\nb: hunter2\n",
        ] {
            let (at, message) = parse(text).unwrap_err();
            assert!(at.line > 0, "{text:?}: {message}");
            assert!(!message.contains("hunter2"), "{text:?}: {message}");
        }
    }

    #[test]
    fn bombs_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let previous = format!("*a{}, ", level - 1).repeat(9);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", previous.trim_end_matches(", ")));
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&"[".repeat(100_000)).is_err());
    }
}
