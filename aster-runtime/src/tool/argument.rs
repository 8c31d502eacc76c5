//! What a tool's parameter must be able to do: describe itself as a schema and be read from JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// What a parameter of a tool can be: every type that is `serde::Deserialize` and `schemars::JsonSchema`, and can be
/// sent to another thread. It is implemented for these and cannot be implemented by hand.
///
/// ```
/// use aster_runtime::mcp_tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Point {
///     x: f64,
///     y: f64,
/// }
///
/// /// Measures how far a point is from the origin.
/// #[mcp_tool(tier = Standard)]
/// fn distance(point: Point) -> f64 {
///     point.x.hypot(point.y)
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool argument",
    label = "cannot be read from the JSON of a call, or has no schema",
    note = "derive both on your type: `#[derive(serde::Deserialize, schemars::JsonSchema)]`",
    note = "[A0209] see docs/errors/A0209.md"
)]
pub trait ToolArg: Sized + Send + 'static {
    /// The type's schema, as the generator makes it.
    #[doc(hidden)]
    fn __schema(generator: &mut SchemaGenerator) -> Schema;

    /// Reads a value; an error says where in the value, and what was expected there.
    #[doc(hidden)]
    fn __decode(value: &Value) -> Result<Self, DecodeError>;

    /// What an absent argument becomes; `None` where the argument is required.
    #[doc(hidden)]
    fn __missing() -> Option<Self>;
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema + Send + 'static> ToolArg for T {
    fn __schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }

    fn __decode(value: &Value) -> Result<Self, DecodeError> {
        serde_path_to_error::deserialize(value).or_else(|error| {
            // JSON Schema counts `3.0` as an integer, so the schema has promised to take it where serde does not.
            if let Some(decoded) = with_integers(value).and_then(|value| T::deserialize(value).ok()) {
                return Ok(decoded);
            }
            let (path, found) = resolve(error.path(), value);
            Err(DecodeError { path, reason: without_value(&error.inner().to_string(), found) })
        })
    }

    fn __missing() -> Option<Self> {
        T::deserialize(Absent).ok()
    }
}

/// A copy in which whole numbers that were written with a fraction are integers; `None` where there are none.
fn with_integers(value: &Value) -> Option<Value> {
    fn replace(value: &mut Value) -> bool {
        match value {
            Value::Number(number) => {
                let integer = number.as_f64().filter(|_| number.is_f64()).and_then(integer);
                let found = integer.is_some();
                if let Some(integer) = integer {
                    *value = integer;
                }
                found
            }
            // Not `any`, which would stop at the first.
            Value::Array(items) => items.iter_mut().fold(false, |found, item| replace(item) | found),
            Value::Object(members) => {
                members.values_mut().fold(false, |found, member| replace(member) | found)
            }
            _ => false,
        }
    }
    let mut value = value.clone();
    replace(&mut value).then_some(value)
}

/// A whole number as JSON's integer, where 64 bits hold it. The way goes through its text, which is exact.
fn integer(number: f64) -> Option<Value> {
    if !number.is_finite() || number.fract() != 0.0 {
        return None;
    }
    let text = format!("{number:.0}");
    // `-0.0` is written as `-0`, which is an integer all the same.
    text.parse::<u64>().map(Value::from).or_else(|_| text.parse::<i64>().map(Value::from)).ok()
}

/// Why a value is not what a parameter's type expects, without the value.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Where in the argument: empty, or `.field[0]`.
    pub(crate) path: String,
    /// What is wrong there.
    pub(crate) reason: String,
}

/// A deserializer without a value, which only an optional type accepts. This is how serde's own derive decides
/// whether a field may be left out, so an alias of `Option` is optional here too.
struct Absent;

impl<'de> Deserializer<'de> for Absent {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("absent"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_none()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The path as text, as far as it names parts of the value, and the part of the value that stands there.
fn resolve<'v>(path: &Path, value: &'v Value) -> (String, Option<&'v Value>) {
    let mut text = String::new();
    let mut found = Some(value);
    for segment in path {
        match segment {
            Segment::Seq { index } => {
                text.push_str(&format!("[{index}]"));
                found = found.and_then(|value| value.get(index));
            }
            Segment::Map { key } | Segment::Enum { variant: key } => {
                text.push('.');
                text.push_str(&crate::text::one_line(key, 64));
                found = found.and_then(|value| value.get(key));
            }
            Segment::Unknown => {}
        }
    }
    (text, found)
}

/// serde's message, without the value that it quotes: an argument may be a secret, and an error reaches the log.
fn without_value(message: &str, found: Option<&Value>) -> String {
    let quotes_value = ["invalid type: ", "invalid value: ", "unknown variant ", "unknown field "]
        .iter()
        .find(|prefix| message.starts_with(**prefix));
    if let Some(prefix) = quotes_value {
        // The last one is serde's own: what the value itself contains stands before it.
        let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
        return match (*prefix, expected) {
            ("unknown field ", Some(expected)) => format!("an unknown field; expected {expected}"),
            (_, Some(expected)) => {
                format!("expected {expected}, found {}", found.map_or("something else", kind))
            }
            (prefix, None) => prefix.trim_end_matches([' ', ':']).to_owned(),
        };
    }
    let quoted = match found {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return message.to_owned(),
    };
    message.replace(&quoted, "…")
}

/// What kind of JSON a value is, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// What `#[arg(default = …)]` and `#[arg(example = …)]` can stand on: every type that is `serde::Serialize`.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot have a default or an example",
    label = "cannot be written as JSON",
    note = "both stand in the schema: derive `serde::Serialize`",
    note = "[A0213] see docs/errors/A0213.md"
)]
pub trait ToolDefault: serde::Serialize {}

#[diagnostic::do_not_recommend]
impl<T: serde::Serialize> ToolDefault for T {}

/// What a literal text can be the default or an example of: types that own a text, and `Option` of them.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a text is no `{Self}`",
    label = "not a value of the argument's type",
    note = "a default and an example are of the argument's own type; a text stands for `String`, `Cow<'static, str>`, \
            `Box<str>`, `Arc<str>` and `PathBuf`, and for `Option` of them",
    note = "[A0228] see docs/errors/A0228.md"
)]
pub trait TextDefault: Sized {
    /// The value.
    fn from_literal(text: &'static str) -> Self;
}

macro_rules! text_default {
    ($($type:ty),*) => {$(
        impl TextDefault for $type {
            fn from_literal(text: &'static str) -> Self {
                text.into()
            }
        }
    )*};
}
text_default!(String, Cow<'static, str>, Box<str>, Arc<str>, PathBuf);

impl<T: TextDefault> TextDefault for Option<T> {
    fn from_literal(text: &'static str) -> Self {
        Some(T::from_literal(text))
    }
}

/// Text that `#[arg(url)]` can say to be a URL, and `Option` and `Vec` of it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no URL",
    label = "not a text",
    note = "`#[arg(url)]` goes on `String`, `Cow<'static, str>`, `Box<str>`, `Arc<str>` and `url::Url`, and on `Option` of them \
            and lists; `url = false` takes it off a parameter that is only called so",
    note = "[A0214] see docs/errors/A0214.md"
)]
pub trait UrlText {}

impl UrlText for String {}
impl UrlText for Cow<'static, str> {}
impl UrlText for Box<str> {}
impl UrlText for Arc<str> {}
impl UrlText for url::Url {}
impl<T: UrlText> UrlText for Option<T> {}
impl<T: UrlText> UrlText for Vec<T> {}
impl<T: UrlText> UrlText for VecDeque<T> {}
impl<T: UrlText, S> UrlText for HashSet<T, S> {}
impl<T: UrlText> UrlText for BTreeSet<T> {}

/// Text that `#[arg(pattern = …)]` can describe, and `Option` and `Vec` of it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no pattern",
    label = "not a text",
    note = "`#[arg(pattern = \"…\")]` goes on `String` and `Cow<'static, str>`, and on `Option` and `Vec` of them",
    note = "[A0224] see docs/errors/A0224.md"
)]
pub trait PatternText {}

impl PatternText for String {}
impl PatternText for Cow<'static, str> {}
impl<T: PatternText> PatternText for Option<T> {}
impl<T: PatternText> PatternText for Vec<T> {}

/// What `#[arg(length(…))]` can bound: characters of a text, things in a list, entries of a map.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no length",
    label = "neither a text nor a collection",
    note = "`#[arg(length(…))]` goes on texts, lists, sets and maps, and on `Option` of them; a number has a `range(…)`",
    note = "[A0223] see docs/errors/A0223.md"
)]
pub trait Measured {
    /// What the bounds are called in a schema.
    const KEYWORDS: (&'static str, &'static str);
}

impl<T: Measured> Measured for Option<T> {
    const KEYWORDS: (&'static str, &'static str) = T::KEYWORDS;
}

macro_rules! measured {
    ($at_least:literal, $at_most:literal: $([$($parameter:ident)*] $type:ty),*) => {$(
        impl<$($parameter),*> Measured for $type {
            const KEYWORDS: (&'static str, &'static str) = ($at_least, $at_most);
        }
    )*};
}
measured!("minLength", "maxLength": [] String, [] Cow<'static, str>);
measured!("minItems", "maxItems": [T] Vec<T>, [T] VecDeque<T>, [T S] HashSet<T, S>, [T] BTreeSet<T>);
measured!("minProperties", "maxProperties": [K V S] HashMap<K, V, S>, [K V] BTreeMap<K, V>);

/// What `#[arg(header = …)]` can stand on: what a client can write into an HTTP header.
///
/// Source: MCP 2026-07-28, Streamable HTTP, custom headers from tool parameters: string, integer and boolean.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in a header",
    label = "not a string, an integer or a boolean",
    note = "`#[arg(header = \"…\")]` goes on `String`, `Cow<'static, str>`, integers and `bool`, and on `Option` of them",
    note = "[A0219] see docs/errors/A0219.md"
)]
pub trait HeaderValue {}

impl HeaderValue for String {}
impl HeaderValue for Cow<'static, str> {}
impl HeaderValue for bool {}
impl<T: HeaderValue> HeaderValue for Option<T> {}

macro_rules! header_value {
    ($($number:ty),*) => {$(impl HeaderValue for $number {})*};
}
header_value!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

/// Numbers that `#[arg(range(…))]` can bound, and `Option` of them.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no range",
    label = "not a number of up to 64 bits",
    note = "`#[arg(range(…))]` goes on integers of up to 64 bits and floating-point numbers, and on `Option` of them",
    note = "[A0215] see docs/errors/A0215.md"
)]
pub trait Ranged {
    /// The number.
    type Number: PartialOrd + Copy + serde::Serialize + std::fmt::Display;

    /// The number to compare, where there is one.
    fn number(&self) -> Option<Self::Number>;
}

impl<T: Ranged> Ranged for Option<T> {
    type Number = T::Number;

    fn number(&self) -> Option<Self::Number> {
        self.as_ref().and_then(T::number)
    }
}

macro_rules! ranged {
    ($($number:ty),*) => {$(
        impl Ranged for $number {
            type Number = Self;

            fn number(&self) -> Option<Self> {
                Some(*self)
            }
        }
    )*};
}
ranged!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the way in is tested")]
    struct Filter {
        tags: Vec<String>,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Page,
        Image,
    }

    fn refused<T: ToolArg + std::fmt::Debug>(value: Value) -> String {
        let error = T::__decode(&value).unwrap_err();
        format!("{}: {}", error.path, error.reason)
    }

    #[test]
    fn an_error_says_where_and_what_but_not_the_value() {
        assert_eq!(
            refused::<Filter>(json!({"tags": ["a", 4711]})),
            ".tags[1]: expected a string, found an integer"
        );
        assert_eq!(
            refused::<Filter>(json!({"tags": [], "kind": "hunter2"})),
            ".kind: expected `page` or `image`, found a string"
        );
        assert_eq!(refused::<Filter>(json!({})), ": missing field `tags`");
        assert_eq!(refused::<u8>(json!(300)), ": expected u8, found an integer");
        assert_eq!(refused::<u8>(json!("a, expected b")), ": expected u8, found a string");
    }

    #[derive(Debug)]
    struct Even;

    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            Err(D::Error::custom(format!("`{text}` is odd")))
        }
    }

    impl JsonSchema for Even {
        fn schema_name() -> Cow<'static, str> {
            "Even".into()
        }

        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            schemars::json_schema!({"type": "string"})
        }
    }

    #[test]
    fn a_message_of_ones_own_loses_the_value_too() {
        assert_eq!(refused::<Even>(json!("hunter2")), ": `…` is odd");
    }

    #[test]
    fn an_integer_may_be_written_with_a_fraction_of_nothing() {
        assert_eq!(u8::__decode(&json!(3.0)), Ok(3));
        assert_eq!(i64::__decode(&json!(-3.0)), Ok(-3));
        assert_eq!(i8::__decode(&json!(-0.0)), Ok(0));
        assert_eq!(Vec::<u8>::__decode(&json!([1, 2.0, 3e0])), Ok(vec![1, 2, 3]));
        assert_eq!(u64::__decode(&json!(1e19)), Ok(10_000_000_000_000_000_000));
        assert_eq!(f64::__decode(&json!(3.0)), Ok(3.0));
        assert_eq!(Value::__decode(&json!([3.0])), Ok(json!([3.0])));
        assert_eq!(refused::<u8>(json!(300.0)), ": expected u8, found a number");
        assert_eq!(refused::<u8>(json!(3.5)), ": expected u8, found a number");
        assert_eq!(refused::<u64>(json!(1e300)), ": expected u64, found a number");
        assert_eq!(refused::<Vec<u8>>(json!([3.0, "x"])), "[0]: expected u8, found a number");
    }

    #[test]
    fn what_may_be_absent_is_decided_by_the_type() {
        type Maybe = Option<String>;
        assert_eq!(Maybe::__missing(), Some(None));
        assert!(String::__missing().is_none());
        assert!(<()>::__missing().is_none());
        assert!(Vec::<String>::__missing().is_none());
        assert!(Value::__missing().is_none());
    }
}
