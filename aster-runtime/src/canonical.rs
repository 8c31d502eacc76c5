//! JSON in one form only, so that equal values have equal digests.
//!
//! The order of keys and the form of texts are those of RFC 8785. Numbers stay as they were sent: the RFC would have two
//! integers above 2⁵³ look alike, and here what differs must have another digest.

use serde_json::Value;

/// The value as text without white space, its keys sorted by UTF-16 code units (RFC 8785, 3.2.3).
///
/// ```
/// use serde_json::json;
///
/// let text = aster_runtime::canonical::to_string(&json!({"b": [1, {"d": "é", "c": null}], "a": true}));
/// assert_eq!(text, r#"{"a":true,"b":[1,{"c":null,"d":"é"}]}"#);
/// ```
#[must_use]
pub fn to_string(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            text.push('{');
            for (at, (name, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
            }
            text.push('}');
        }
        // The writer escapes what RFC 8785 escapes, in its form.
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    /// The example of RFC 8785, 3.2.3.
    #[test]
    fn keys_are_sorted_by_utf_16() {
        let value = json!({
            "\u{20ac}": "Euro Sign",
            "\r": "Carriage Return",
            "\u{fb33}": "Hebrew Letter Dalet With Dagesh",
            "1": "One",
            "\u{1f600}": "Emoji: Grinning Face",
            "\u{80}": "Control",
            "\u{f6}": "Latin Small Letter O With Diaeresis",
        });
        let text = to_string(&value);
        let places = ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"]
            .map(|word| text.find(word).unwrap_or_default());
        assert!(places.is_sorted() && places[0] > 0, "{text}");
        assert!(text.starts_with("{\"\\r\":"), "{text}");
    }

    #[test]
    fn numbers_that_differ_stay_different() {
        assert_ne!(
            to_string(&json!(9_007_199_254_740_993_u64)),
            to_string(&json!(9_007_199_254_740_992_u64))
        );
    }

    fn values() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(reversed).collect(),
            Value::Object(fields) => {
                let fields: Vec<_> =
                    fields.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect();
                Value::Object(Map::from_iter(fields))
            }
            scalar => scalar.clone(),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_keys_does_not_count_and_nothing_is_lost(value in values()) {
            let text = to_string(&value);
            prop_assert_eq!(&text, &to_string(&reversed(&value)));
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
