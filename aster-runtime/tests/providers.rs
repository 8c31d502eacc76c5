//! What Rust types become as arguments, for every provider: with values that their schema must take, and others that it
//! must refuse before they reach a function.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;

use aster_runtime::provider::{Export, Provider};
use aster_runtime::schema::InputSchema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Point {
    x: f64,
    y: Option<i16>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Unit {}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Newtype(String);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Pair(u8, bool);

#[derive(Serialize, Deserialize, JsonSchema)]
enum Plain {
    Red,
    Green,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Documented {
    /// Like blood.
    Red,
    Green,
}

#[derive(Serialize, Deserialize, JsonSchema)]
enum External {
    Dot,
    Circle(f64),
    Line { from: Point, to: Point },
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Tagged {
    Circle { radius: f64 },
    Dot,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "of")]
enum Adjacent {
    Circle(f64),
    Name(String),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Renamed {
    #[serde(rename = "some-name")]
    name: String,
    #[serde(default)]
    weight: u32,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Flat {
    id: u8,
    #[serde(flatten)]
    point: Point,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Closed {
    id: u8,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Generic<T> {
    of: T,
    more: Vec<T>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Nested {
    points: Vec<Point>,
    by_name: BTreeMap<String, Point>,
    colour: Option<Plain>,
}

fn schema<T: aster_runtime::ToolArg>() -> Value {
    let mut schema = InputSchema::new();
    schema.argument::<T>("value", "A value.");
    schema.finish()
}

/// Calls `visit` with every schema in one, by the keywords under which schemas stand.
fn each(schema: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    let Some(object) = schema.as_object() else { return };
    visit(object);
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Value::Object(schemas)) => {
                schemas.values().for_each(|schema| each(schema, visit));
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().for_each(|schema| each(schema, visit));
            }
            ("items" | "additionalProperties" | "not", schema) => each(schema, visit),
            _ => {}
        }
    }
}

/// What OpenAPI's `nullable` says, for a validator of JSON Schema.
fn spelt_out(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(spelt_out);
            if object.shift_remove("nullable").is_some() {
                let whole = std::mem::take(object);
                *schema = json!({"anyOf": [whole, {"type": "null"}]});
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spelt_out),
        _ => {}
    }
}

/// The value as a model under OpenAI's strict mode would write it: everything is there, and null where it is absent.
fn in_full(schema: &Value, value: &mut Value) {
    let (Some(properties), Some(fields)) =
        (schema.get("properties").and_then(Value::as_object), value.as_object_mut())
    else {
        return;
    };
    for (name, property) in properties {
        in_full(property, fields.entry(name.clone()).or_insert(Value::Null));
    }
}

/// Without the fields that are null, which serde writes for what is absent.
fn without_absent(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(there.map(|(name, value)| (name.clone(), without_absent(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_absent).collect(),
        other => other.clone(),
    }
}

fn is_valid(schema: &Value, instance: &Value) -> bool {
    jsonschema::validator_for(schema).unwrap_or_else(|error| panic!("{error}: {schema}")).is_valid(instance)
}

/// Checks one type: `good` are JSON values that mean a `T`, `bad` are values that do not.
fn check<T: Serialize + DeserializeOwned + JsonSchema + Send + 'static>(
    good: &[Value],
    bad: &[Value],
) -> usize {
    let name = std::any::type_name::<T>();
    let own = schema::<T>();
    assert_eq!(own["type"], "object", "{name}");
    for value in good {
        assert!(is_valid(&own, &json!({ "value": value })), "{name}: {value} against {own}");
        let decoded: T =
            serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = serde_json::to_value(&decoded).unwrap();
        let written = without_absent(&again);
        assert!(is_valid(&own, &json!({ "value": written })), "{name}: {written} against {own}");
        let twice: T = serde_json::from_value(again.clone()).unwrap();
        assert_eq!(serde_json::to_value(&twice).unwrap(), again, "{name}");
    }
    for value in bad {
        assert!(!is_valid(&own, &json!({ "value": value })), "{name}: {value} passes {own}");
    }
    assert!(!is_valid(&own, &json!({"value": good[0], "other": 1})), "{name}");

    for provider in Provider::ALL {
        let Export { schema, losses, .. } = provider.export(&own);
        assert_eq!(schema["type"], "object", "{name} {provider:?}");
        if provider == Provider::Plain {
            assert!(schema == own && losses.is_empty(), "{name}");
            continue;
        }
        each(&schema, &mut |object| {
            for keyword in object.keys() {
                assert!(provider.takes(keyword), "{name} {provider:?}: `{keyword}` in {schema}");
            }
            if provider == Provider::OpenAiStrict && object.contains_key("properties") {
                let names: Vec<&String> = object["properties"].as_object().unwrap().keys().collect();
                assert_eq!(json!(names), object["required"], "{name}");
                assert_eq!(object["additionalProperties"], json!(false), "{name}");
            }
        });
        for root in ["anyOf", "oneOf", "allOf", "not", "enum"] {
            assert!(schema.get(root).is_none(), "{name} {provider:?}");
        }
        let mut readable = schema.clone();
        spelt_out(&mut readable);
        // Strict mode cannot describe a map, whose values it then forbids; that is among the losses.
        let forbids = provider == Provider::OpenAiStrict
            && losses.iter().any(|loss| loss.keyword == "additionalProperties");
        for value in good.iter().filter(|_| !forbids) {
            let mut arguments = json!({ "value": value });
            if provider == Provider::OpenAiStrict {
                in_full(&schema, &mut arguments);
                // A choice is not followed by `in_full`.
                if schema.to_string().contains("anyOf") {
                    continue;
                }
            }
            assert!(is_valid(&readable, &arguments), "{name} {provider:?}: {arguments} against {schema}");
        }
        if losses.is_empty() && provider != Provider::OpenAiStrict {
            for value in bad {
                assert!(
                    !is_valid(&readable, &json!({ "value": value })),
                    "{name} {provider:?}: {value} passes"
                );
            }
        }
    }
    1
}

#[test]
fn every_type_of_argument_for_every_provider() {
    let text = [json!("a"), json!("")];
    let no_text = [json!(1), json!(["a"]), Value::Null];
    let no_number = [json!("1"), json!([1]), Value::Null, json!(true)];
    let no_list = [json!("a"), json!({}), Value::Null];
    let mut types = 0;

    types += check::<String>(&text, &no_text);
    types += check::<std::borrow::Cow<'static, str>>(&text, &no_text);
    types += check::<Box<str>>(&text, &no_text);
    types += check::<char>(&[json!("a")], &[json!("ab"), json!("")]);
    types += check::<bool>(&[json!(true)], &[json!("true"), json!(0)]);
    types += check::<i8>(&[json!(-128)], &[json!(128), json!(0.5)]);
    types += check::<i16>(&[json!(-1)], &[json!(40_000)]);
    types += check::<i32>(&[json!(-1)], &[json!(3_000_000_000_u64)]);
    types += check::<i64>(&[json!(i64::MIN)], &no_number);
    types += check::<i128>(&[json!(1)], &no_number);
    types += check::<isize>(&[json!(-1)], &no_number);
    types += check::<u8>(&[json!(255)], &[json!(256), json!(-1)]);
    types += check::<u16>(&[json!(65_535)], &[json!(65_536)]);
    types += check::<u32>(&[json!(1)], &[json!(5_000_000_000_u64), json!(-1)]);
    types += check::<u64>(&[json!(u64::MAX)], &[json!(-1)]);
    types += check::<u128>(&[json!(1)], &[json!(-1)]);
    types += check::<usize>(&[json!(1)], &[json!(-1)]);
    types += check::<f32>(&[json!(0.5)], &no_number);
    types += check::<f64>(&[json!(0.1)], &no_number);
    types += check::<NonZeroU8>(&[json!(1)], &[json!(0), json!(256)]);
    types += check::<IpAddr>(&[json!("127.0.0.1")], &[json!(1)]);
    types += check::<Ipv4Addr>(&[json!("127.0.0.1")], &[json!(1)]);
    types += check::<std::path::PathBuf>(&text, &no_text);
    types += check::<std::time::Duration>(&[json!({"secs": 1, "nanos": 0})], &[json!(1)]);

    types += check::<Vec<String>>(&[json!(["a"]), json!([])], &no_list);
    types += check::<Vec<u8>>(&[json!([1])], &[json!([256])]);
    types += check::<Vec<Vec<bool>>>(&[json!([[true], []])], &[json!([true])]);
    types += check::<Vec<Option<u8>>>(&[json!([1, null])], &[json!(["a"])]);
    types += check::<VecDeque<i32>>(&[json!([1])], &no_list);
    types += check::<HashSet<String>>(&[json!(["a"])], &no_list);
    types += check::<BTreeSet<u8>>(&[json!([1])], &no_list);
    types += check::<[bool; 2]>(&[json!([true, false])], &[json!([true]), json!([true, true, true])]);
    types += check::<(u8, String)>(&[json!([1, "a"])], &[json!(["a", 1]), json!([1])]);
    types += check::<(u8, u8, u8)>(&[json!([1, 2, 3])], &[json!([1, 2])]);
    types += check::<((u8, bool), String)>(&[json!([[1, true], "a"])], &[json!([1, "a"])]);
    types += check::<HashMap<String, i8>>(&[json!({"a": 1}), json!({})], &[json!({"a": "b"})]);
    types += check::<BTreeMap<String, String>>(&[json!({"a": "b"})], &[json!({"a": 1})]);
    types += check::<BTreeMap<String, Vec<u8>>>(&[json!({"a": [1]})], &[json!({"a": 1})]);
    types += check::<HashMap<String, Point>>(&[json!({"a": {"x": 1.0}})], &[json!({"a": {}})]);
    types += check::<Value>(&[json!({"a": [1]}), json!("a")], &[]);
    types += check::<Map<String, Value>>(&[json!({"a": [1]})], &[json!("a")]);
    types += check::<Vec<Value>>(&[json!([1, "a", null])], &[json!("a")]);

    types += check::<Option<String>>(&[json!("a")], &[json!(1)]);
    types += check::<Option<u8>>(&[json!(1)], &[json!(256)]);
    types += check::<Option<Vec<String>>>(&[json!(["a"])], &[json!("a")]);
    types += check::<Option<Point>>(&[json!({"x": 1.0})], &[json!({})]);
    types += check::<Option<Plain>>(&[json!("Red")], &[json!("Blue")]);
    types += check::<Option<(u8, bool)>>(&[json!([1, true])], &[json!([1])]);
    types += check::<Box<Point>>(&[json!({"x": 1.0})], &[json!({"x": "a"})]);

    types += check::<Point>(
        &[json!({"x": 1.5, "y": 2}), json!({"x": 1.0})],
        &[json!({"y": 1}), json!({"x": "1"})],
    );
    types += check::<Unit>(&[json!({})], &[json!("a")]);
    types += check::<Newtype>(&text, &no_text);
    types += check::<Pair>(&[json!([1, true])], &[json!([true, 1])]);
    types += check::<Plain>(&[json!("Red")], &[json!("red"), json!("Blue")]);
    types += check::<Documented>(&[json!("Red"), json!("Green")], &[json!("Blue")]);
    types += check::<External>(
        &[
            json!("Dot"),
            json!({"Circle": 1.0}),
            json!({"Line": {"from": {"x": 0.0}, "to": {"x": 1.0, "y": 2}}}),
        ],
        &[json!("Square"), json!({"Circle": "a"})],
    );
    types += check::<Tagged>(
        &[json!({"kind": "circle", "radius": 1.0}), json!({"kind": "dot"})],
        &[json!({"kind": "x"})],
    );
    types +=
        check::<Adjacent>(&[json!({"kind": "Circle", "of": 1.0})], &[json!({"kind": "Circle", "of": "a"})]);
    types += check::<Untagged>(&[json!(1), json!("a")], &[json!(true), json!([1])]);
    types += check::<Tree>(
        &[json!({"name": "a", "children": [{"name": "b", "children": []}]})],
        &[json!({"name": "a"})],
    );
    types += check::<Vec<Tree>>(
        &[json!([{"name": "a", "children": []}])],
        &[json!([{"name": 1, "children": []}])],
    );
    types += check::<Renamed>(
        &[json!({"some-name": "a", "weight": 1}), json!({"some-name": "a"})],
        &[json!({"name": "a"})],
    );
    types += check::<Flat>(&[json!({"id": 1, "x": 1.0, "y": 2})], &[json!({"id": 1})]);
    types += check::<Closed>(&[json!({"id": 1})], &[json!({"id": 1, "x": 2})]);
    types += check::<Generic<u8>>(&[json!({"of": 1, "more": [2]})], &[json!({"of": "a", "more": []})]);
    types +=
        check::<Generic<Point>>(&[json!({"of": {"x": 1.0}, "more": []})], &[json!({"of": 1, "more": []})]);
    types += check::<Nested>(
        &[json!({"points": [{"x": 1.0}], "by_name": {"a": {"x": 0.5, "y": 1}}, "colour": "Green"})],
        &[json!({"points": [1], "by_name": {}})],
    );
    types += check::<url::Url>(&[json!("https://example.com/")], &no_text);
    types += check::<uuid::Uuid>(&[json!("67e55044-10b1-426f-9247-bb680e5fe0c8")], &no_text);
    types += check::<chrono::DateTime<chrono::Utc>>(&[json!("2026-11-30T08:00:00Z")], &no_text);
    types += check::<chrono::NaiveDate>(&[json!("2026-11-30")], &no_text);
    assert!(types >= 60, "{types}");
}

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
            .map(|loss| format!("{}: {}: {}\n", loss.path, loss.keyword, loss.reason))
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
