//! JSON pointers (RFC 6901), and references within a schema, which are written with them.

use std::borrow::Cow;

use serde_json::Value;

/// A name, or a place in a list, as one step of a pointer.
pub(crate) fn step(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// The name that a step stands for.
pub(crate) fn name(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// What a reference means that is written as a pointer into its own document: `#`, or `#/$defs/name`.
pub(crate) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(&fragment(reference)?)
}

/// The reference in a schema, and what it means.
pub(crate) fn followed<'a>(root: &'a Value, schema: &'a Value) -> Option<(&'a str, &'a Value)> {
    let reference = schema.get("$ref")?.as_str()?;
    Some((reference, target(root, reference)?))
}

/// What a reference says of its own document: nothing, a pointer or an anchor.
pub(crate) fn fragment(reference: &str) -> Option<Cow<'_, str>> {
    percent_encoding::percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_is_a_name_and_back() {
        for plain in ["", "a", "~", "/", "~1", "a/b~c", "~~//"] {
            assert_eq!(name(&step(plain)), plain);
            let root = json!({ plain: 1 });
            assert_eq!(root.pointer(&format!("/{}", step(plain))), Some(&json!(1)), "{plain}");
        }
    }

    #[test]
    fn references_within_a_document_are_followed() {
        let root = json!({"$defs": {"a b": {"type": "string"}, "c/d": {"type": "null"}}});
        assert_eq!(target(&root, "#"), Some(&root));
        for (reference, kind) in
            [("#/$defs/a b", "string"), ("#/$defs/a%20b", "string"), ("#/$defs/c~1d", "null")]
        {
            let schema = json!({"$ref": reference});
            let (written, target) = followed(&root, &schema).unwrap();
            assert_eq!((written, &target["type"]), (reference, &json!(kind)));
        }
        for nowhere in ["", "#anchor", "#/$defs/e", "https://example.com/#/$defs/a", "#/$defs/%ff"] {
            assert_eq!(target(&root, nowhere), None, "{nowhere}");
        }
    }
}
