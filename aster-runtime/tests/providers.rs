//! What an export says and what it loses, of schemas that no Rust type has. `arguments.rs` has those of Rust types.

use std::collections::BTreeSet;

use aster_runtime::provider::{Provider, What};
use serde_json::{Map, Value, json};

#[test]
fn an_export_lists_what_it_loses() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "default": "a"},
            "size": {"$ref": "#/$defs/size"},
            "tree": {"$ref": "#/$defs/tree"},
            "far": {"$ref": "https://example.com/schema"},
            "code": {"const": "x"},
        },
        "required": ["name"],
        "oneOf": [{"required": ["size"]}],
        "$defs": {
            "size": {"enum": [1, 2]},
            "tree": {"type": "object", "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
        },
    });
    let told = |provider: Provider| {
        let losses = provider.export(&schema).losses;
        losses
            .iter()
            .map(|loss| format!("{}: {}: {}\n", loss.path, loss.keyword, loss.rule.reason))
            .collect::<String>()
    };
    let all: Vec<String> =
        Provider::ALL.iter().map(|provider| format!("{provider:?}\n{}", told(*provider))).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn a_schema_that_never_ends_is_cut() {
    let mut deep = json!({"type": "string"});
    for _ in 0..1_000 {
        deep = json!({"type": "array", "items": deep});
    }
    let deep = json!({"type": "object", "properties": {"deep": deep}});
    let wide: Map<String, Value> =
        (0..40).map(|at| (format!("d{at}"), json!({"anyOf": [{"$ref": format!("#/$defs/d{}", at + 1)}, {"$ref": format!("#/$defs/d{}", at + 1)}]}))).collect();
    let wide = json!({"type": "object", "properties": {"wide": {"$ref": "#/$defs/d0"}}, "$defs": wide});
    for schema in [deep, wide, json!({"$ref": "#"})] {
        for provider in Provider::ALL.into_iter().filter(|provider| *provider != Provider::Plain) {
            let export = provider.export(&schema);
            assert!(!export.losses.is_empty() && export.schema.to_string().len() < 1_000_000, "{provider:?}");
        }
    }
}

#[test]
fn every_rule_has_a_reason_and_a_link() {
    for provider in Provider::ALL {
        let rules: Vec<_> = provider.rules().collect();
        assert_eq!(rules.is_empty(), provider == Provider::Plain);
        let mut whats = BTreeSet::new();
        for rule in rules {
            assert!(whats.insert(rule.what), "{provider} has two rules for {:?}", rule.what);
            assert!(rule.reason.len() > 10 && rule.source.starts_with("https://"), "{provider}: {rule:?}");
        }
        if provider.rules().count() > 0 {
            assert!(
                [What::Root, What::Reference, What::Beside, What::Size]
                    .iter()
                    .all(|what| whats.contains(what))
            );
        }
    }
}

/// Schemas as real servers have them.
#[test]
fn choices_between_objects_are_written_out() {
    let schema = json!({
        "type": "object",
        "properties": {
            "update": {
                "type": "object",
                "description": "What to change.",
                "properties": {"id": {"type": "string"}, "note": {"type": "string"}},
                "required": ["id"],
                "anyOf": [
                    {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
                    {"type": "object", "properties": {"state": {"enum": ["open", "closed"]}}, "required": ["state"]},
                ],
            },
            "one_of_two": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            "several": {"type": ["string", "array", "null"], "items": {"type": "integer"}},
            "wrapped": {"allOf": [{"type": "integer", "minimum": 1}], "description": "A number."},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            "whatever": {"description": "Anything."},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["update"],
        "oneOf": [
            {"properties": {"left": {"type": "string"}}, "required": ["left"]},
            {"properties": {"right": {"type": "string"}}, "required": ["right"]},
        ],
    });
    let exports = [Provider::Anthropic, Provider::OpenAiStrict, Provider::Gemini].map(|provider| {
        let export = provider.export(&schema);
        let losses =
            export.losses.iter().map(|loss| format!("{}: {}: {}", loss.path, loss.keyword, loss.rule.reason));
        json!({"provider": provider.name(), "schema": export.schema, "losses": losses.collect::<Vec<_>>()})
    });
    insta::assert_json_snapshot!(exports);
}
