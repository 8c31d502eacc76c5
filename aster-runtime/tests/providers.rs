//! What an export says and what it loses, of schemas that no Rust type has. `arguments.rs` has those of Rust types.

use std::collections::BTreeSet;

use aster_runtime::provider::{Export, Provider, What};
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

/// The pages that rules point to, by the form of their addresses.
#[test]
fn a_link_is_to_a_page_that_is_kept() {
    let issue = regex::Regex::new(r"^https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+$").unwrap();
    for rule in Provider::ALL.into_iter().flat_map(Provider::rules) {
        let is_documentation = [
            "https://developers.openai.com/api/docs/guides/",
            "https://ai.google.dev/api/",
            "https://json-schema.org/draft/2020-12/",
        ]
        .iter()
        .any(|site| rule.source.starts_with(site));
        assert!(is_documentation || issue.is_match(rule.source), "{rule:?}");
    }
}

/// What an export says at a pointer, and the rules by which it lost something there.
fn lost<'e>(export: &'e Export, pointer: &str) -> (Option<&'e Value>, Vec<What>) {
    let losses = export.losses.iter().filter(|loss| loss.path == pointer);
    (export.schema.pointer(pointer), losses.map(|loss| loss.rule.what).collect())
}

#[test]
fn anthropic_is_not_given_arguments_whose_names_it_refuses() {
    let long = "a".repeat(65);
    let schema = json!({
        "type": "object",
        "properties": {
            "filter[id]": {"type": "string", "minLength": 1},
            "a/b~c": {"$ref": "#/$defs/nowhere"},
            "": {"type": "string"},
            "größe": {"type": "integer"},
            long.as_str(): {"type": "string"},
            "plain.name_of-64": {"type": "object", "properties": {"filter[name]": {"type": "string"}}},
        },
        "required": ["filter[id]", "plain.name_of-64"],
        "anyOf": [{"properties": {"$top": {"type": "integer"}}}],
        "additionalProperties": false,
    });
    let export = Provider::Anthropic.export(&schema);
    // Only the arguments' own names are looked at.
    assert_eq!(
        export.schema,
        json!({
            "type": "object",
            "properties": {"plain.name_of-64": schema["properties"]["plain.name_of-64"]},
            "required": ["plain.name_of-64"],
            "additionalProperties": false,
        })
    );
    let paths: Vec<_> = export.losses.iter().map(|loss| (loss.path.as_str(), loss.rule.what)).collect();
    let long = format!("/properties/{long}");
    let named = [
        "/properties/filter[id]",
        "/properties/a~1b~0c",
        "/properties/",
        "/properties/größe",
        &long,
        "/properties/$top",
    ];
    let mut due = vec![("", What::Root)];
    due.extend(named.map(|path| (path, What::Name)));
    assert_eq!(paths, due);
    assert!(export.losses[1].rule.narrows && schema.pointer(&export.losses[2].path).is_some());

    let only = json!({"type": "object", "properties": {"$a": {}}, "required": ["$a"]});
    assert_eq!(Provider::Anthropic.export(&only).schema, json!({"type": "object", "properties": {}}));
    for other in [Provider::OpenAi, Provider::OpenAiStrict, Provider::Gemini] {
        assert!(other.export(&only).schema["properties"].get("$a").is_some(), "{other}");
    }
}

/// Lists and objects in turn around a text, so many of them.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({"type": "string"}), |inner, level| match level % 2 {
        0 => json!({"type": "array", "description": "More.", "items": inner}),
        _ => json!({"type": "object", "properties": {"a": inner}, "required": ["a"]}),
    })
}

#[test]
fn strict_mode_takes_ten_levels() {
    let export = |levels| {
        let inner = nested(levels);
        let schema = json!({"type": "object", "properties": {"p": inner}, "required": ["p"]});
        Provider::OpenAiStrict.export(&schema)
    };
    // The root is the first.
    assert_eq!(export(9).losses, []);
    for (levels, text) in [
        (10, "More. (A JSON array, as text.)"),
        (11, "A JSON object, as text."),
        (24, "More. (A JSON array, as text.)"),
    ] {
        let export = export(levels);
        let [loss] = export.losses.as_slice() else { panic!("{:?}", export.losses) };
        assert_eq!((loss.rule.what, loss.rule.narrows), (What::Depth, false));
        assert_eq!(export.schema.pointer(&loss.path).unwrap()["description"], text, "{levels}");
        assert_eq!(loss.path.matches("/items").count() + loss.path.matches("/properties").count(), 10);
    }
    // A choice is no level, and a reference is none.
    let choice = json!({
        "type": "object",
        "properties": {"p": {"anyOf": [{"$ref": "#/$defs/deep"}, {"type": ["object", "null"], "properties": {"q": nested(9)}, "required": ["q"]}]}},
        "required": ["p"],
        "$defs": {"deep": nested(9)},
    });
    let export = Provider::OpenAiStrict.export(&choice);
    let [loss] = export.losses.as_slice() else { panic!("{:?}", export.losses) };
    assert!(loss.path.starts_with("/properties/p/anyOf/1/properties/q"), "{loss:?}");
    // Others have no such limit.
    let schema = json!({"type": "object", "properties": {"p": nested(20)}});
    for provider in [Provider::OpenAi, Provider::Anthropic] {
        assert_eq!(provider.export(&schema).losses, [], "{provider}");
    }
}

#[test]
fn strict_mode_lists_only_so_much() {
    let texts = |count: usize, length: usize| -> Vec<String> {
        (0..count).map(|at| format!("{at:0length$}")).collect()
    };
    let schema = |properties: Value| json!({"type": "object", "properties": properties});
    let strict = |properties: Value| Provider::OpenAiStrict.export(&schema(properties));

    let fits = strict(json!({
        "short": {"type": "string", "enum": texts(250, 400)},
        "many": {"enum": texts(251, 59)},
        "numbers": {"enum": (0..400).collect::<Vec<_>>()},
    }));
    assert_eq!(fits.losses, []);
    let export =
        strict(json!({"many": {"enum": texts(251, 60)}, "numbers": {"enum": (0..1001).collect::<Vec<_>>()}}));
    for (name, kind) in [("many", "string"), ("numbers", "integer")] {
        let at = format!("/properties/{name}");
        assert_eq!(lost(&export, &at), (Some(&json!({"type": [kind, "null"]})), vec![What::Listed]));
    }

    // Each of them fits, and all together do not: the null of an optional one counts.
    let export = strict(json!({
        "a": {"type": "string", "description": "A.", "enum": texts(240, 4)},
        "b": {"type": "object", "description": "B.", "properties": {"c": {"enum": texts(400, 4)}, "d": {"enum": texts(2, 4)}}},
        "e": {"type": "string", "enum": texts(355, 4)},
    }));
    let text = json!({"type": ["string", "null"], "description": "B. (A JSON object, as text.)"});
    assert_eq!(lost(&export, "/properties/b"), (Some(&text), vec![What::Size]));
    assert_eq!(export.losses.len(), 1);
    assert_eq!(export.schema["properties"]["e"]["enum"].as_array().unwrap().len(), 356);
    let export = strict(
        json!({"a": {"enum": texts(240, 4)}, "b": {"enum": texts(240, 4)}, "c": {"enum": texts(240, 4)},
        "d": {"type": "string", "enum": texts(277, 4)}}),
    );
    assert_eq!(
        lost(&export, "/properties/d"),
        (Some(&json!({"type": ["string", "null"]})), vec![What::Size])
    );
}

#[test]
fn strict_mode_takes_so_many_properties_and_characters() {
    let named = |count: usize, length: usize| -> Map<String, Value> {
        (0..count).map(|at| (format!("{at:0length$}"), json!({"type": "string"}))).collect()
    };
    let strict = |properties: Map<String, Value>| {
        Provider::OpenAiStrict.export(&json!({"type": "object", "properties": properties}))
    };
    assert_eq!(strict(named(4_000, 4)).losses, []);
    let mut properties = named(100, 4);
    properties.insert("large".to_owned(), json!({"type": "object", "properties": named(4_899, 4)}));
    assert_eq!(strict(properties.clone()).losses.len(), 0);
    properties.insert("more".to_owned(), json!({"type": "string"}));
    let export = strict(properties);
    assert_eq!(lost(&export, "/properties/large").1, [What::Size]);
    assert_eq!(export.schema["properties"]["large"]["type"], json!(["string", "null"]));

    // Of names alone nothing can be made light: the last ones go, and are not required any more.
    let export = strict(named(1_300, 100));
    assert_eq!((export.losses.len(), export.losses[0].rule.what), (100, What::Size));
    let left = export.schema["properties"].as_object().unwrap();
    assert_eq!((left.len(), export.schema["required"].as_array().unwrap().len()), (1_200, 1_200));
    assert!(export.losses.iter().all(|loss| export.schema.pointer(&loss.path).is_none()));
}

#[test]
fn a_loss_is_found_by_its_path() {
    let inner = json!({"type": "object", "properties": {"c~d": {"type": "string", "default": "x"}}});
    let schema = json!({"type": "object", "properties": {"a/b": inner}});
    for provider in [Provider::OpenAiStrict, Provider::Gemini] {
        let export = provider.export(&schema);
        let loss = export.losses.iter().find(|loss| loss.keyword == "default").unwrap();
        assert_eq!(loss.path, "/properties/a~1b/properties/c~0d");
        assert_eq!(schema.pointer(&loss.path).unwrap()["default"], "x");
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
