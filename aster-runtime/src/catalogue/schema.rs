//! Input schemas at run time: which are usable, what arguments break in them, and how one reads in a line.
//!
//! A schema from outside is never rewritten beyond what the protocol leaves unsaid (a missing one, a missing `type`),
//! never fetched from anywhere, and never walked without a bound.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::bounds::Bounds;
use super::checker::Checker;
use super::problem::Reason;
use crate::pointer;
use crate::text;
use crate::tool::{JsonObject, kind};

/// The deepest nesting of a schema. Real ones reach 20; the recursion of validators is bounded with it.
const MAX_DEPTH: usize = 64;

/// What is wrong with the arguments at one place.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// A JSON pointer into the arguments; empty for the arguments as a whole.
    pub path: String,
    /// What is wrong there. Names what was expected, never the value.
    pub message: String,
}

impl Violation {
    /// One of the arguments as a whole.
    pub(super) fn whole(message: String) -> Self {
        Self { path: String::new(), message }
    }
}

/// The schema that a server sent, as far as the protocol lets it be left unsaid: nothing, `null`, `true` and `{}` mean
/// any object, and a schema without `type` is one of an object. With it comes what checks arguments against it.
///
/// # Errors
///
/// Where it describes something else than an object, is no valid JSON Schema, or has no end.
pub(super) fn normalise(schema: Option<&Value>) -> Result<(Value, Checker), Reason> {
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
    let draft = draft(&schema).map_err(Reason::SchemaInvalid)?;
    let checker = Checker::new(Bounds::of(&schema)?, draft);
    Ok((schema, checker))
}

/// What of a schema is not checked, as it is written. Of one that is [none](Reason) nothing is said.
///
/// # Errors
///
/// Where no arguments can be checked by it, with the reason.
pub(crate) fn unchecked(schema: &Value) -> Result<Vec<String>, String> {
    match normalise(Some(schema)) {
        Ok((schema, checker)) => checker.unchecked(&schema),
        Err(_) => Ok(Vec::new()),
    }
}

/// Whether a value is nested more deeply than `limit`; looks no further than that.
fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Object(map) => limit == 0 || map.values().any(|inner| deeper_than(inner, limit - 1)),
        Value::Array(items) => limit == 0 || items.iter().any(|inner| deeper_than(inner, limit - 1)),
        _ => false,
    }
}

/// The draft that a schema is written in: the one it names, else the newest whose rules it keeps. MCP named none before
/// 2025-11-25, and older libraries write older ones.
///
/// # Errors
///
/// The first rule that it breaks, of the draft that it names or of the newest.
fn draft(schema: &Value) -> Result<Draft, String> {
    let check = |draft| meta_errors(schema, draft).map_or(Ok(draft), Err);
    match named_draft(schema) {
        Some(draft) => check(draft),
        None => check(Draft::Draft202012)
            .or_else(|newest| OLDER.into_iter().find_map(|draft| check(draft).ok()).ok_or(newest)),
    }
}

/// The older drafts that a schema which names none may be written in.
const OLDER: [Draft; 2] = [Draft::Draft7, Draft::Draft4];

fn named_draft(schema: &Value) -> Option<Draft> {
    let uri = schema.get("$schema")?.as_str()?.trim_end_matches('#');
    let uri = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
    match uri {
        "json-schema.org/draft/2020-12/schema" => Some(Draft::Draft202012),
        "json-schema.org/draft/2019-09/schema" => Some(Draft::Draft201909),
        "json-schema.org/draft-07/schema" => Some(Draft::Draft7),
        "json-schema.org/draft-06/schema" => Some(Draft::Draft6),
        "json-schema.org/draft-04/schema" => Some(Draft::Draft4),
        _ => None,
    }
}

/// The first rule of a draft's meta-schema that is broken.
fn meta_errors(schema: &Value, draft: Draft) -> Option<String> {
    let result = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validate(schema),
        Draft::Draft6 => jsonschema::draft6::meta::validate(schema),
        Draft::Draft7 => jsonschema::draft7::meta::validate(schema),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(schema),
        _ => jsonschema::draft202012::meta::validate(schema),
    };
    result.err().map(|error| {
        let path = error.instance_path().to_string();
        let at = if path.is_empty() { "the root".to_owned() } else { format!("`{path}`") };
        text::one_line(&format!("{} at {at}", error.masked()), 200)
    })
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

/// Whether an input schema requires this property.
pub(super) fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// How many references are followed from one schema to the next.
const MAX_REFERENCES: usize = 8;

/// Arguments of a client that can write text alone: what the schema does not take as text is read as JSON. What cannot be
/// read stays, for the schema to refuse. A client that always writes all arguments has nothing but `""` and `null` for what
/// is not there, so that what need not be there, and takes no text, then is not.
///
/// Source: MCP 2025-11-25, `GetPromptRequest` and resource templates, whose arguments are strings.
pub(super) fn from_strings(schema: &Value, mut arguments: JsonObject) -> JsonObject {
    arguments.retain(|name, argument| {
        let Value::String(text) = &*argument else { return true };
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        if property.is_none_or(|property| admits_text(schema, property, MAX_REFERENCES)) {
            return true;
        }
        if matches!(text.trim(), "" | "null") && !requires(schema, name) {
            return false;
        }
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            *argument = value;
        }
        true
    });
    arguments
}

/// Whether a schema may take a text as it is. Where it has alternatives, one of them is enough.
fn admits_text(root: &Value, schema: &Value, references: usize) -> bool {
    let Some(schema) = schema.as_object() else { return true };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().any(Value::is_string);
    }
    match schema.get("type") {
        Some(Value::String(name)) => return name == "string",
        Some(Value::Array(names)) => return names.iter().any(|name| name == "string"),
        _ => {}
    }
    if let Some(value) = schema.get("const") {
        return value.is_string();
    }
    if let Some(alternatives) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array()) {
        return alternatives.iter().any(|schema| admits_text(root, schema, references));
    }
    let reference = schema.get("$ref").and_then(Value::as_str);
    match (reference.and_then(|reference| pointer::target(root, reference)), references.checked_sub(1)) {
        (Some(target), Some(references)) => admits_text(root, target, references),
        _ => true,
    }
}

/// The texts that a property may be, where its schema lists them.
pub(super) fn listed(schema: &Value, name: &str) -> Vec<String> {
    let Some((_, property)) = properties(schema).find(|(property, _)| *property == name) else {
        return Vec::new();
    };
    let values: Vec<&Value> = match (property.get("enum"), property.get("oneOf")) {
        (Some(Value::Array(values)), _) => values.iter().collect(),
        // So an enum is written whose values are documented.
        (None, Some(Value::Array(variants))) => {
            variants.iter().filter_map(|variant| variant.get("const")).collect()
        }
        _ => Vec::new(),
    };
    values.into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The schema in a line, as in TypeScript: `search(query: string, limit?: integer)`. A `…` says that there is more to know
/// than the line shows: as a parameter, that the root has rules of its own; after a type, that an object has properties, a
/// list more choices, or that the type is told in a way that has no short form. Bounds and formats have no mark.
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
    let more = has_rules(schema) || schema.get("patternProperties").is_some() || types_others(schema);
    if more {
        parameters.push("…".to_owned());
    }
    format!("{}({})", text::one_line(name, 128), parameters.join(", "))
}

/// How deep a type is told: beyond it is `…`.
const MAX_TYPE_DEPTH: usize = 3;

fn type_name(schema: &Value, depth: usize) -> String {
    if let Some(Value::Array(values)) = schema.get("enum") {
        let shown: Vec<String> =
            values.iter().take(6).map(|value| text::one_line(&value.to_string(), 40)).collect();
        let rest = if values.len() > 6 { "|…" } else { "" };
        return format!("{}{rest}", shown.join("|"));
    }
    if let Some(value) = schema.get("const") {
        return text::one_line(&value.to_string(), 40);
    }
    let named = |name: &str| named_type(name, schema, depth);
    match schema.get("type") {
        Some(Value::String(name)) => named(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(named).collect::<Vec<_>>().join("|")
        }
        _ => match schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            Some(Value::Array(choices)) if (1..=6).contains(&choices.len()) && depth < MAX_TYPE_DEPTH => {
                let mut names: Vec<String> = Vec::new();
                for name in choices.iter().map(|choice| type_name(choice, depth + 1)) {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
                names.join("|")
            }
            _ if has_rules(schema) || is_told(schema) => "any…".to_owned(),
            _ => "any".to_owned(),
        },
    }
}

/// One of the types that a schema names, with a mark where the schema says more of it.
fn named_type(name: &str, schema: &Value, depth: usize) -> String {
    let items = schema.get("items");
    let (short, more) = match name {
        "object" => ("object".to_owned(), is_told(schema)),
        "array" if items.is_some() && depth == MAX_TYPE_DEPTH => ("array".to_owned(), true),
        "array" => {
            let item = items.map_or("any".to_owned(), |items| type_name(items, depth + 1));
            let short = if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") };
            // Each place has a schema of its own; before 2020-12 `items` listed them.
            let places = schema.get("prefixItems").is_some() || items.is_some_and(Value::is_array);
            (short, places || schema.get("contains").is_some())
        }
        _ => (text::one_line(name, 20), false),
    };
    if more || has_rules(schema) { format!("{short}…") } else { short }
}

/// Whether a schema has rules besides its type that a line does not tell.
fn has_rules(schema: &Value) -> bool {
    const RULES: [&str; 9] = [
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "$ref",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
    ];
    RULES.iter().any(|key| schema.get(*key).is_some())
}

/// Whether a schema tells what an object has.
fn is_told(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    has("properties") || has("patternProperties") || has("required") || types_others(schema)
}

/// Whether a schema says what an object's other properties are.
fn types_others(schema: &Value) -> bool {
    let says =
        |key: &str| schema.get(key).and_then(Value::as_object).is_some_and(|schema| !schema.is_empty());
    says("additionalProperties") || says("unevaluatedProperties") || says("propertyNames")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_leaves_unsaid() {
        for unsaid in [None, Some(json!(null)), Some(json!({})), Some(json!(true))] {
            assert_eq!(normalise(unsaid.as_ref()).unwrap().0, json!({"type": "object"}));
        }
        let any_of = json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
        assert_eq!(normalise(Some(&any_of)).unwrap().0["type"], "object");
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
        let mut deep = json!({"type": "string"});
        for _ in 0..70 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(out(json!({"type": "object", "properties": {"a": deep}})).contains("deeper than 64"));
    }

    #[test]
    fn text_is_read_as_what_the_schema_takes() {
        let schema = json!({"properties": {
            "text": {"type": "string"}, "number": {"type": "integer"}, "flag": {"type": ["boolean", "null"]},
            "any": {}, "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "colour": {"enum": ["1", "red"]}, "list": {"$ref": "#/$defs/list"}, "loop": {"$ref": "#/$defs/loop"},
            "bad": {"type": "integer"},
        }, "$defs": {"list": {"type": "array"}, "loop": {"$ref": "#/$defs/loop"}}});
        let written = json!({"text": "1", "number": "1", "flag": "true", "any": "1", "either": "1", "colour": "1",
            "list": "[1]", "loop": "1", "bad": "one", "unknown": "1"});
        let Value::Object(written) = written else { panic!() };
        assert_eq!(
            Value::Object(from_strings(&schema, written)),
            json!({"text": "1", "number": 1, "flag": true, "any": "1", "either": "1", "colour": "1", "list": [1],
                "loop": "1", "bad": "one", "unknown": "1"})
        );
    }

    #[test]
    fn a_signature_reads_like_a_call() {
        let schema = json!({"type": "object", "required": ["title"], "properties": {
            "title": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}},
            "state": {"enum": ["open", "closed"]}, "x": {},
            "body": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "ids": {"type": "array", "items": {"type": ["string", "integer"]}}}});
        insta::assert_snapshot!(
            signature("create_issue", &schema),
            @r#"create_issue(title: string, labels?: string[], state?: "open"|"closed", x?: any, body?: string|null, ids?: (string|integer)[])"#
        );
    }

    #[test]
    fn what_a_signature_leaves_out_has_a_mark() {
        let schema = json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {
            "nested": {"type": "object", "properties": {"x": {}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"x": {}}}},
            "choice": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {}}}]},
            "elsewhere": {"$ref": "#/$defs/a"}, "all": {"allOf": [{"type": "string"}]},
            "many": {"enum": [1, 2, 3, 4, 5, 6, 7]}, "plain": {"type": "object"}}});
        insta::assert_snapshot!(
            signature("f", &schema),
            @"f(nested?: object…, list?: object…[], choice?: string|object…, elsewhere?: any…, all?: any…, many?: 1|2|3|4|5|6|…, plain?: object, …)"
        );
    }

    #[test]
    fn what_a_type_says_besides_its_name_has_a_mark() {
        let inner = json!({"x": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {
            "maybe": {"type": ["object", "null"], "properties": inner},
            "list": {"type": ["array", "null"], "items": {"type": "string"}},
            "either": {"type": "object", "anyOf": [{"required": ["a"]}]},
            "elsewhere": {"type": "object", "$ref": "#/$defs/a"},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "open": {"type": "object", "additionalProperties": true},
            "closed": {"type": "object", "additionalProperties": false},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "old_pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            "one": {"type": "string", "const": "a"}, "text": {"type": "string", "minLength": 1}}});
        insta::assert_snapshot!(
            signature("f", &schema),
            @"f(maybe?: object…|null, list?: string[]|null, either?: object…, elsewhere?: object…, map?: object…, open?: object, closed?: object, pair?: any[]…, old_pair?: any[]…, one?: \"a\", text?: string)"
        );
        for (key, rule) in [
            ("not", json!({"required": ["a"]})),
            ("if", json!({"required": ["a"]})),
            ("dependentRequired", json!({"a": ["b"]})),
            ("additionalProperties", json!({"type": "integer"})),
        ] {
            assert_eq!(signature("f", &json!({"type": "object", key: rule})), "f(…)", "{key}");
        }
        assert_eq!(signature("f", &json!({"type": "object", "additionalProperties": false})), "f()");
    }
}
