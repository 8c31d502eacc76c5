//! Input schemas at run time: which are usable, what arguments break in them, and how one reads in a line.
//!
//! A schema from outside is never rewritten beyond what the protocol leaves unsaid (a missing one, a missing `type`),
//! never fetched from anywhere, and never walked without a bound.

use std::collections::HashSet;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::problem::Reason;
use crate::text;
use crate::tool::JsonObject;

/// The deepest nesting of a schema. Real ones reach 20; the recursion of validators is bounded with it.
pub(crate) const MAX_DEPTH: usize = 64;

/// How many violations an answer lists; a model mends these first and then hears of the rest.
const MAX_VIOLATIONS: usize = 20;

/// What is wrong with the arguments at one place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// A JSON pointer into the arguments; empty for the arguments as a whole.
    pub path: String,
    /// What is wrong there. Names what was expected, never the value.
    pub message: String,
}

/// The schema that a server sent, as far as the protocol lets it be left unsaid: nothing, `null`, `true` and `{}` mean
/// any object, and a schema without `type` is one of an object.
///
/// # Errors
///
/// Where it describes something else than an object, is no valid JSON Schema, or has no end.
pub(crate) fn normalise(schema: Option<&Value>) -> Result<Value, Reason> {
    let mut schema = match schema {
        None | Some(Value::Null | Value::Bool(true)) => Map::new(),
        Some(Value::Object(schema)) => schema.clone(),
        Some(other) => return Err(Reason::SchemaNotObject(kind(other).to_owned())),
    };
    match schema.get("type") {
        None => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(Value::String(name)) if name == "object" => {}
        Some(Value::Array(names)) if names.contains(&json!("object")) => {}
        Some(other) => return Err(Reason::SchemaNotObject(text::one_line(&other.to_string(), 60))),
    }
    let schema = Value::Object(schema);
    if deeper_than(&schema, MAX_DEPTH) {
        return Err(Reason::TooDeep { limit: MAX_DEPTH });
    }
    if let Some(error) = meta_errors(&schema) {
        return Err(Reason::SchemaInvalid(error));
    }
    if let Some(at) = endless_reference(&schema) {
        return Err(Reason::SchemaCycle(at));
    }
    Ok(schema)
}

/// Whether a value is nested more deeply than `limit`; looks no further than that.
pub(crate) fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Object(map) => limit == 0 || map.values().any(|inner| deeper_than(inner, limit - 1)),
        Value::Array(items) => limit == 0 || items.iter().any(|inner| deeper_than(inner, limit - 1)),
        _ => false,
    }
}

/// The first rule of the meta-schema that is broken. An unknown `$schema` is read as the newest draft.
fn meta_errors(schema: &Value) -> Option<String> {
    let result = if known_draft(schema) {
        jsonschema::meta::validate(schema)
    } else {
        jsonschema::draft202012::meta::validate(schema)
    };
    result.err().map(|error| {
        let path = error.instance_path().to_string();
        let at = if path.is_empty() { "the root".to_owned() } else { format!("`{path}`") };
        text::one_line(&format!("{} at {at}", error.masked()), 200)
    })
}

fn known_draft(schema: &Value) -> bool {
    match schema.get("$schema") {
        None => true,
        Some(Value::String(uri)) => {
            let uri = uri.trim_end_matches('#');
            [
                "draft-04/schema",
                "draft-06/schema",
                "draft-07/schema",
                "draft/2019-09/schema",
                "draft/2020-12/schema",
            ]
            .iter()
            .any(|known| uri.ends_with(known))
        }
        Some(_) => false,
    }
}

/// A `$ref` that comes back to itself without going down into the value on the way: no validator ends on it.
fn endless_reference(root: &Value) -> Option<String> {
    let mut references = Vec::new();
    collect_references(root, &mut references);
    references
        .into_iter()
        .find(|start| {
            let mut seen = HashSet::new();
            let mut next = vec![*start];
            while let Some(reference) = next.pop() {
                if !seen.insert(reference) {
                    continue;
                }
                let Some(target) = resolve(root, reference) else { continue };
                let mut onward = Vec::new();
                same_place_references(target, &mut onward);
                if onward.contains(start) {
                    return true;
                }
                next.extend(onward);
            }
            false
        })
        .map(str::to_owned)
}

fn collect_references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(references(map));
            map.values().for_each(|inner| collect_references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect_references(inner, found)),
        _ => {}
    }
}

fn references(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    ["$ref", "$dynamicRef", "$recursiveRef"].into_iter().filter_map(|key| map.get(key)?.as_str())
}

/// The references that a schema applies to the very value it is applied to, not to a part of it.
fn same_place_references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    let Value::Object(map) = schema else { return };
    found.extend(references(map));
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(items)) = map.get(key) {
            items.iter().for_each(|inner| same_place_references(inner, found));
        }
    }
    for key in ["not", "if", "then", "else"] {
        if let Some(inner) = map.get(key) {
            same_place_references(inner, found);
        }
    }
    if let Some(Value::Object(schemas)) = map.get("dependentSchemas") {
        schemas.values().for_each(|inner| same_place_references(inner, found));
    }
}

/// A local reference: `#`, a JSON pointer, or an anchor. Others are nobody's to fetch.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() {
        return Some(root);
    }
    let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
    if fragment.starts_with('/') { root.pointer(&fragment) } else { anchor(root, &fragment) }
}

fn anchor<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => {
            let named =
                ["$anchor", "$dynamicAnchor"].iter().any(|key| map.get(*key).is_some_and(|v| v == name));
            if named { Some(value) } else { map.values().find_map(|inner| anchor(inner, name)) }
        }
        Value::Array(items) => items.iter().find_map(|inner| anchor(inner, name)),
        _ => None,
    }
}

/// A validator for a schema that [`normalise`] passed. `None` where it refers to something outside itself: the server
/// alone can judge such arguments.
pub(crate) fn validator(schema: &Value) -> Option<Validator> {
    let options = jsonschema::options();
    let options =
        if known_draft(schema) { options } else { options.with_draft(jsonschema::Draft::Draft202012) };
    options.build(schema).ok()
}

/// Every violation, each once, in the order of the schema; at most twenty.
pub(crate) fn violations(validator: &Validator, arguments: &JsonObject) -> Vec<Violation> {
    let arguments = Value::Object(arguments.clone());
    if validator.is_valid(&arguments) {
        return Vec::new();
    }
    let mut found: Vec<Violation> = Vec::new();
    for error in validator.iter_errors(&arguments) {
        let violation = Violation {
            path: text::one_line(&error.instance_path().to_string(), 200),
            message: text::one_line(&error.masked().to_string(), 300),
        };
        if !found.contains(&violation) {
            found.push(violation);
        }
        if found.len() == MAX_VIOLATIONS {
            break;
        }
    }
    found
}

/// The properties of an input schema, in their order.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.as_str(), property))
}

/// Whether `null` for this property can only mean that it is left out: it is not required, and its type says that it is
/// no `null`.
pub(crate) fn means_nothing(schema: &Value, name: &str) -> bool {
    let required =
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.contains(&json!(name)));
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    let never_null = match property.and_then(|property| property.get("type")) {
        Some(Value::String(name)) => name != "null",
        Some(Value::Array(names)) => !names.contains(&json!("null")),
        _ => false,
    };
    !required && never_null
}

/// The schema in a line, as in TypeScript: `search(query: string, limit?: integer)`. A trailing `…` says that the
/// schema says more than the line does at the root.
#[must_use]
pub fn signature(name: &str, schema: &Value) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut parameters: Vec<String> = properties(schema)
        .map(|(name, property)| {
            let mark = if required.contains(&name) { "" } else { "?" };
            format!("{}{mark}: {}", text::one_line(name, 64), type_name(property, 0))
        })
        .collect();
    let more =
        ["anyOf", "oneOf", "allOf", "$ref", "patternProperties"].iter().any(|key| schema.get(*key).is_some());
    if more {
        parameters.push("…".to_owned());
    }
    format!("{}({})", text::one_line(name, 128), parameters.join(", "))
}

fn type_name(schema: &Value, depth: usize) -> String {
    if let Some(Value::Array(values)) = schema.get("enum") {
        let shown: Vec<String> =
            values.iter().take(6).map(|value| text::one_line(&value.to_string(), 40)).collect();
        let rest = if values.len() > 6 { "|…" } else { "" };
        return format!("{}{rest}", shown.join("|"));
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" && depth < 3 => match schema.get("items") {
            Some(items) => format!("{}[]", type_name(items, depth + 1)),
            None => "any[]".to_owned(),
        },
        Some(Value::String(name)) => text::one_line(name, 20),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .map(|name| text::one_line(name, 20))
            .collect::<Vec<_>>()
            .join("|"),
        _ => "any".to_owned(),
    }
}

/// What kind of JSON value this is, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_leaves_unsaid() {
        for unsaid in [None, Some(json!(null)), Some(json!({})), Some(json!(true))] {
            assert_eq!(normalise(unsaid.as_ref()).unwrap(), json!({"type": "object"}));
        }
        let any_of = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        assert_eq!(normalise(Some(&any_of)).unwrap()["type"], "object");
    }

    #[test]
    fn what_is_left_out() {
        let out = |schema: Value| normalise(Some(&schema)).unwrap_err().to_string();
        assert!(out(json!({"type": "string"})).contains("\"string\""));
        assert!(out(json!([1])).contains("an array"));
        assert!(
            out(json!({"type": "object", "properties": {"required": ["a"]}}))
                .contains("/properties/required")
        );
        assert!(out(json!({"$ref": "#"})).contains("without end"));
        let pair = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}});
        assert!(out(pair).contains("without end"));
        let mut deep = json!({"type": "string"});
        for _ in 0..70 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(out(json!({"type": "object", "properties": {"a": deep}})).contains("deeper than 64"));
    }

    #[test]
    fn recursion_that_goes_down_is_fine() {
        let tree =
            json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        let schema = normalise(Some(&tree)).unwrap();
        let validator = validator(&schema).unwrap();
        let of = |arguments: Value| violations(&validator, arguments.as_object().unwrap());
        assert_eq!(of(json!({"children": [{"children": []}]})), []);
        assert_eq!(of(json!({"children": [3]}))[0].path, "/children/0");
    }

    #[test]
    fn violations_name_places_and_never_values() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}},
            "required": ["a", "c"], "additionalProperties": false});
        let arguments = json!({"a": "canary", "b": "canary", "d": 1});
        let found = violations(&validator(&schema).unwrap(), arguments.as_object().unwrap());
        let text = format!("{found:?}");
        assert!(!text.contains("canary"), "{text}");
        assert!(
            text.contains("/a") && text.contains("/b") && text.contains("\\\"c\\\"") && text.contains("'d'"),
            "{text}"
        );
    }

    #[test]
    fn a_signature_reads_like_a_call() {
        let schema = json!({"type": "object", "required": ["title"], "properties": {
            "title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}},
            "state": {"enum": ["open", "closed"]}, "x": {"anyOf": []}}});
        insta::assert_snapshot!(
            signature("create_issue", &schema),
            @r#"create_issue(title: string, labels?: string[], state?: "open"|"closed", x?: any)"#
        );
    }
}
