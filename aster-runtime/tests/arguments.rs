//! What Rust types become as arguments: with values that reach the function and come back as they were, for every
//! provider in its own form, and with others that the gate refuses before they reach it. Besides those written here, both
//! kinds are generated from the schemas.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use aster_runtime::call::{Check, Completed, Outcome};
use aster_runtime::gate::egress::EgressPolicy;
use aster_runtime::provider::{Export, Provider};
use aster_runtime::testing::TestHost;
use aster_runtime::tool::Json;
use aster_runtime::{Host, NativeCatalogue, Profile, catalogue, mcp_tool};
use jsonschema::Validator;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::TestRunner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

/// How many values are generated for a type, and how many are made wrong.
const GENERATED: usize = 8;

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
struct FlatChoice {
    id: u8,
    #[serde(flatten)]
    shape: Tagged,
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

/// Is all arguments, and given back as what is in it, like the others.
#[derive(Deserialize, JsonSchema)]
struct Whole {
    /// A value.
    value: Point,
}

impl Serialize for Whole {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

/// How often a function has been called.
static REACHED: AtomicUsize = AtomicUsize::new(0);

fn reached<T: Serialize>(value: &T) -> Json<Value> {
    REACHED.fetch_add(1, Ordering::SeqCst);
    Json(serde_json::to_value(value).unwrap())
}

/// A type of arguments, by the name of its tool.
struct Case {
    tool: &'static str,
    /// Values that mean one.
    good: Vec<Value>,
    /// Values that do not.
    bad: Vec<Value>,
}

/// For each type a tool that takes one value of it and answers with the same.
macro_rules! types {
    ($($name:ident: $(#$option:tt)* $type:ty, [$($good:tt),*], [$($bad:tt),*];)*) => {
        $(
            /// Takes a value and gives it back.
            #[mcp_tool(tier = Standard, server = "types")]
            fn $name(
                /// A value.
                $(#$option)*
                value: $type,
            ) -> Json<Value> {
                reached(&value)
            }
        )*

        const CATALOGUE: NativeCatalogue = catalogue![$($name::TOOL),*];

        fn cases() -> Vec<Case> {
            vec![$(Case {
                tool: stringify!($name),
                good: vec![$(json!($good)),*],
                bad: vec![$(json!($bad)),*],
            }),*]
        }
    };
}

types! {
    text: String, ["a", ""], [1, ["a"], null];
    cow: std::borrow::Cow<'static, str>, ["a", ""], [1, ["a"], null];
    boxed_text: Box<str>, ["a", ""], [1, ["a"], null];
    character: char, ["a"], ["ab", ""];
    boolean: bool, [true], ["true", 0];
    int8: i8, [(-128)], [128, 0.5];
    int16: i16, [(-1)], [40_000];
    int32: i32, [(-1)], [3_000_000_000_u64];
    int64: i64, [(i64::MIN)], ["1", [1], null, true];
    int128: i128, [1], ["1", [1], null, true];
    int_size: isize, [(-1)], ["1", [1], null, true];
    uint8: u8, [255], [256, (-1)];
    uint16: u16, [65_535], [65_536];
    uint32: u32, [1], [5_000_000_000_u64, (-1)];
    uint64: u64, [(u64::MAX)], [(-1)];
    uint128: u128, [1], [(-1)];
    uint_size: usize, [1], [(-1)];
    float32: f32, [0.5], ["1", [1], null, true];
    float64: f64, [0.1], ["1", [1], null, true];
    not_zero: NonZeroU8, [1], [0, 256];
    address: IpAddr, ["127.0.0.1"], [1];
    address4: Ipv4Addr, ["127.0.0.1"], [1];
    path: std::path::PathBuf, ["a", ""], [1, ["a"], null];
    duration: std::time::Duration, [{"secs": 1, "nanos": 0}], [1];

    texts: Vec<String>, [["a"], []], ["a", {}, null];
    bytes: Vec<u8>, [[1]], [[256]];
    lists: Vec<Vec<bool>>, [[[true], []]], [[true]];
    gaps: Vec<Option<u8>>, [[1, null]], [["a"]];
    queue: VecDeque<i32>, [[1]], ["a", {}, null];
    hash_set: HashSet<String>, [["a"]], ["a", {}, null];
    tree_set: BTreeSet<u8>, [[1]], ["a", {}, null];
    array: [bool; 2], [[true, false]], [[true], [true, true, true]];
    pair: (u8, String), [[1, "a"]], [["a", 1], [1]];
    triple: (u8, u8, u8), [[1, 2, 3]], [[1, 2]];
    nested_pair: ((u8, bool), String), [[[1, true], "a"]], [[1, "a"]];
    map: HashMap<String, i8>, [{"a": 1}, {}], [{"a": "b"}];
    tree_map: BTreeMap<String, String>, [{"a": "b"}], [{"a": 1}];
    map_of_lists: BTreeMap<String, Vec<u8>>, [{"a": [1]}], [{"a": 1}];
    map_of_points: HashMap<String, Point>, [{"a": {"x": 1.0}}], [{"a": {}}];
    anything_goes: Value, [{"a": [1]}, "a"], [];
    any_object: Map<String, Value>, [{"a": [1]}], ["a"];
    any_list: Vec<Value>, [[1, "a", null]], ["a"];

    maybe_text: Option<String>, ["a"], [1];
    maybe_byte: Option<u8>, [1], [256];
    maybe_texts: Option<Vec<String>>, [["a"]], ["a"];
    maybe_point: Option<Point>, [{"x": 1.0}], [{}];
    maybe_plain: Option<Plain>, ["Red"], ["Blue"];
    maybe_pair: Option<(u8, bool)>, [[1, true]], [[1]];
    maybe_map: Option<BTreeMap<String, u8>>, [{"a": 1}], [{"a": "b"}];
    boxed: Box<Point>, [{"x": 1.0}], [{"x": "a"}];

    point: Point, [{"x": 1.5, "y": 2}, {"x": 1.0}], [{"y": 1}, {"x": "1"}];
    unit: Unit, [{}], ["a"];
    newtype: Newtype, ["a", ""], [1, ["a"], null];
    pair_struct: Pair, [[1, true]], [[true, 1]];
    plain: Plain, ["Red"], ["red", "Blue"];
    documented: Documented, ["Red", "Green"], ["Blue"];
    external: External,
        ["Dot", {"Circle": 1.0}, {"Line": {"from": {"x": 0.0}, "to": {"x": 1.0, "y": 2}}}],
        ["Square", {"Circle": "a"}];
    tagged: Tagged, [{"kind": "circle", "radius": 1.0}, {"kind": "dot"}], [{"kind": "x"}];
    adjacent: Adjacent, [{"kind": "Circle", "of": 1.0}], [{"kind": "Circle", "of": "a"}];
    untagged: Untagged, [1, "a"], [true, [1]];
    tree: Tree, [{"name": "a", "children": [{"name": "b", "children": []}]}], [{"name": "a"}];
    trees: Vec<Tree>, [[{"name": "a", "children": []}]], [[{"name": 1, "children": []}]];
    renamed: Renamed, [{"some-name": "a", "weight": 1}, {"some-name": "a"}], [{"name": "a"}];
    flat: Flat, [{"id": 1, "x": 1.0, "y": 2}], [{"id": 1}];
    flat_choice: FlatChoice, [{"id": 1, "kind": "circle", "radius": 0.5}, {"id": 1, "kind": "dot"}], [{"id": 1, "kind": "x"}];
    closed: Closed, [{"id": 1}], [{"id": 1, "x": 2}];
    generic: Generic<u8>, [{"of": 1, "more": [2]}], [{"of": "a", "more": []}];
    generic_point: Generic<Point>, [{"of": {"x": 1.0}, "more": []}], [{"of": 1, "more": []}];
    nested: Nested,
        [{"points": [{"x": 1.0}], "by_name": {"a": {"x": 0.5, "y": 1}}, "colour": "Green"}],
        [{"points": [1], "by_name": {}}];
    address_url: url::Url, ["https://example.com/"], [1, ["a"], null];
    identifier: uuid::Uuid, ["67e55044-10b1-426f-9247-bb680e5fe0c8"], [1, ["a"], null];
    moment: chrono::DateTime<chrono::Utc>, ["2026-11-30T08:00:00Z"], [1, ["a"], null];
    day: chrono::NaiveDate, ["2026-11-30"], [1, ["a"], null];

    within: #[arg(range(1..=5))] u8, [1, 5], [0, 6];
    at_least: #[arg(range(-1..))] f32, [(-1.0), 7.5], [(-1.5), "a"];
    maybe_within: #[arg(range(1..=5))] Option<u8>, [1, 5], [0, 6];
    long_enough: #[arg(length(2..=4))] String, ["ab", "äöüß"], ["a", "abcde"];
    long_list: #[arg(length(1..=2))] Vec<u8>, [[1], [1, 2]], [[], [1, 2, 3]];
    capitals: #[arg(pattern = "^[A-Z]{2}$")] String, ["AT", "DE"], ["at", "AUT", 1];
    by_default: #[arg(default = 3, range(1..=5))] u8, [1, 5], [0, 6];
    word_by_default: #[arg(default = "none", length(1..))] String, ["a"], ["", 1];
    whole: #[arg(flatten)] Whole, [{"x": 1.5, "y": 2}, {"x": 1.0}], [{"y": 1}, {"x": "1"}];
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

/// The value as a model writes it that is held to the export: what must be there is there, null where it is absent, and an
/// object is JSON text where that is asked for.
fn in_form(schema: &Value, value: &Value) -> Value {
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let mut written = choices.iter().map(|choice| (choice, in_form(choice, value)));
        return written
            .find(|(choice, written)| {
                let mut choice = (*choice).clone();
                spelt_out(&mut choice);
                is_valid(&choice, written)
            })
            .map_or_else(|| value.clone(), |(_, written)| written);
    }
    let may_be = |name: &str| match &schema["type"] {
        Value::Array(names) => names.iter().any(|one| one == name),
        one => one == name,
    };
    match value {
        Value::Object(_) if may_be("string") && !may_be("object") => value.to_string().into(),
        Value::Object(fields) => {
            let mut written = fields.clone();
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                written.entry(name).or_insert(Value::Null);
            }
            for (name, field) in &mut written {
                *field = in_form(&schema["properties"][name], field);
            }
            Value::Object(written)
        }
        Value::Array(items) => items.iter().map(|item| in_form(&schema["items"], item)).collect(),
        other => other.clone(),
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

/// Values that a schema takes.
fn instance(root: &Value, schema: &Value, depth: usize) -> BoxedStrategy<Value> {
    let Some(object) = schema.as_object() else { return anything() };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        return instance(root, root.pointer(&reference[1..]).unwrap(), depth + 1);
    }
    if let Some(value) = object.get("const") {
        return Just(value.clone()).boxed();
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        return select(values.clone()).boxed();
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = object.get(keyword).and_then(Value::as_array) {
            let mut beside = object.clone();
            beside.shift_remove(keyword);
            return Union::new(choices.iter().map(|one| instance(root, &both(&beside, one), depth))).boxed();
        }
    }
    let names: Vec<&str> = match object.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => return anything(),
    };
    Union::new(names.into_iter().map(|name| of_type(root, object, name, depth))).boxed()
}

/// What is said by a choice and beside it.
fn both(beside: &Map<String, Value>, choice: &Value) -> Value {
    let mut both = choice.as_object().unwrap().clone();
    for (keyword, value) in beside {
        match (both.get_mut(keyword), value) {
            (None, _) => drop(both.insert(keyword.clone(), value.clone())),
            (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
            (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.clone()),
            _ => {}
        }
    }
    Value::Object(both)
}

fn of_type(root: &Value, schema: &Map<String, Value>, name: &str, depth: usize) -> BoxedStrategy<Value> {
    let bound = |keyword: &str| {
        schema.get(keyword).and_then(Value::as_u64).map(|bound| usize::try_from(bound).unwrap())
    };
    match name {
        "null" => Just(Value::Null).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "integer" => {
            let minimum = schema.get("minimum").and_then(Value::as_i64).unwrap_or(i64::MIN);
            let maximum = schema.get("maximum").and_then(Value::as_i64).unwrap_or(i64::MAX);
            prop_oneof![Just(minimum), Just(maximum), minimum..=maximum].prop_map(Value::from).boxed()
        }
        "number" => {
            let bound = |keyword, open| schema.get(keyword).and_then(Value::as_f64).unwrap_or(open);
            let numbers = bound("minimum", -1e6)..=bound("maximum", 1e6);
            numbers.prop_map(|number: f64| Number::from_f64(number).unwrap().into()).boxed()
        }
        "string" => text_of(schema, bound("minLength"), bound("maxLength")),
        "array" => {
            let places = schema.get("prefixItems").and_then(Value::as_array);
            if let Some(places) = places {
                let places: Vec<_> = places.iter().map(|place| instance(root, place, depth + 1)).collect();
                return places.prop_map(Value::Array).boxed();
            }
            let minimum = bound("minItems").unwrap_or(0);
            let maximum = bound("maxItems").unwrap_or(3).max(minimum);
            // A tree ends somewhere.
            if depth > 6 && minimum == 0 {
                return Just(json!([])).boxed();
            }
            let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
            let items = instance(root, schema.get("items").unwrap_or(&Value::Bool(true)), depth + 1);
            vec(items, minimum..=maximum)
                .prop_map(move |mut items| {
                    if unique {
                        let mut seen = HashSet::new();
                        items.retain(|item| seen.insert(item.to_string()));
                    }
                    Value::Array(items)
                })
                .boxed()
        }
        "object" => {
            let required = |name: &String| {
                schema
                    .get("required")
                    .is_some_and(|all| all.as_array().unwrap().iter().any(|one| one == name))
            };
            let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
            let fields: Vec<BoxedStrategy<Option<(String, Value)>>> = properties
                .map(|(name, property)| {
                    let named = name.clone();
                    let value =
                        instance(root, property, depth + 1).prop_map(move |value| (named.clone(), value));
                    match required(name) {
                        true => value.prop_map(Some).boxed(),
                        false => proptest::option::of(value).boxed(),
                    }
                })
                .collect();
            let more = match schema.get("additionalProperties") {
                Some(open @ (Value::Object(_) | Value::Bool(true))) => {
                    btree_map("[a-z]{3,5}", instance(root, open, depth + 1), 0..3).boxed()
                }
                _ => Just(BTreeMap::new()).boxed(),
            };
            (fields, more)
                .prop_map(|(fields, more)| {
                    Value::Object(more.into_iter().chain(fields.into_iter().flatten()).collect())
                })
                .boxed()
        }
        other => panic!("{other} is no type"),
    }
}

fn text_of(
    schema: &Map<String, Value>,
    minimum: Option<usize>,
    maximum: Option<usize>,
) -> BoxedStrategy<Value> {
    let date = || {
        (1970..2100, 1..=12, 1..=28).prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"))
    };
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date") => date().boxed(),
        Some("date-time") => (date(), 0..24, 0..60)
            .prop_map(|(date, hour, minute)| format!("{date}T{hour:02}:{minute:02}:00Z"))
            .boxed(),
        Some("uuid") => any::<u128>().prop_map(|bits| uuid::Uuid::from_u128(bits).to_string()).boxed(),
        Some("uri") => "https://[a-z]{1,5}\\.example/[a-z]{0,5}".boxed(),
        Some("ipv4") => any::<[u8; 4]>().prop_map(|bytes| Ipv4Addr::from(bytes).to_string()).boxed(),
        _ if schema.contains_key("pattern") => {
            let pattern = schema["pattern"].as_str().unwrap();
            proptest::string::string_regex(pattern.trim_matches(['^', '$'])).unwrap().boxed()
        }
        _ => {
            let minimum = minimum.unwrap_or(0);
            let characters = vec(any::<char>(), minimum..=maximum.unwrap_or(5).max(minimum));
            characters.prop_map(String::from_iter).boxed()
        }
    };
    text.prop_map(Value::from).boxed()
}

/// Any value but null, which would be read as an absent one.
fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            btree_map("[a-z]{1,3}", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

/// One change somewhere in the arguments: another value, one less, or one more.
#[derive(Debug, Clone)]
enum Change {
    Replace(Value),
    Remove,
    Add,
}

fn change() -> impl Strategy<Value = (Index, Change)> {
    let values = [
        json!(true),
        json!("x"),
        json!(4711),
        json!(-1),
        json!(0.5),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"x": {}}),
    ];
    let change = prop_oneof![4 => select(values.to_vec()).prop_map(Change::Replace), 1 => Just(Change::Remove), 1 => Just(Change::Add)];
    (any::<Index>(), change)
}

fn changed(arguments: &Value, at: Index, change: Change) -> Value {
    fn places(value: &Value, at: String, all: &mut Vec<String>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                places(value, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), all);
            }),
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(place, value)| places(value, format!("{at}/{place}"), all));
            }
            _ => {}
        }
        all.push(at);
    }
    let mut all = Vec::new();
    places(arguments, String::new(), &mut all);
    // Without the whole, which is always an object.
    all.pop();
    let mut changed = arguments.clone();
    if all.is_empty() {
        changed["other"] = json!(1);
        return changed;
    }
    let place = at.get(&all);
    let (parent, key) = place.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match (change, changed.pointer_mut(parent).unwrap()) {
        (Change::Replace(value), _) => *changed.pointer_mut(place).unwrap() = value,
        (Change::Remove, Value::Object(fields)) => drop(fields.shift_remove(&key)),
        (Change::Add, Value::Object(fields)) => drop(fields.insert("other".to_owned(), json!(1))),
        (Change::Remove, Value::Array(items)) => drop(items.remove(key.parse().unwrap())),
        (Change::Add, Value::Array(items)) => items.push(json!("x")),
        _ => unreachable!("only objects and lists have parts"),
    }
    changed
}

fn is_valid(schema: &Value, instance: &Value) -> bool {
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap();
    let validator = known.entry(schema.to_string()).or_insert_with(|| {
        let validator = jsonschema::validator_for(schema);
        Arc::new(validator.unwrap_or_else(|error| panic!("{error}: {schema}")))
    });
    validator.is_valid(instance)
}

/// The tools behind a gate.
struct Types(TestHost);

impl Types {
    async fn start() -> Self {
        // An address of any kind is a value like another here.
        let anywhere = EgressPolicy::default().allow_private(["0.0.0.0/0", "::/0"]).unwrap();
        let builder = Host::builder().catalogue(CATALOGUE).egress(anywhere);
        Self(TestHost::start(builder, Profile::new("a test"), []).await)
    }

    fn schema(&self, tool: &str) -> Value {
        let catalogue = self.0.host().catalogue();
        let tool = catalogue.tools().iter().find(|known| known.id().tool() == tool).unwrap();
        tool.input_schema().clone()
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Completed {
        self.0.call(&format!("types/{tool}"), arguments.clone()).await
    }

    /// What the function was given, in JSON; `None` where the type does not take what its schema does.
    async fn given(&self, tool: &str, arguments: &Value) -> Option<Value> {
        let before = REACHED.load(Ordering::SeqCst);
        let completed = self.call(tool, arguments).await;
        let calls = REACHED.load(Ordering::SeqCst) - before;
        match completed.outcome {
            Outcome::Ok => {
                assert_eq!(calls, 1);
                Some(completed.result.structured_content().unwrap()["result"].clone())
            }
            Outcome::ToolError => {
                assert_eq!(calls, 0, "{tool}: {arguments}");
                None
            }
            other => panic!("{tool}: {other:?} of {arguments}: {}", completed.result.to_text()),
        }
    }

    async fn refuse(&self, tool: &str, arguments: &Value) {
        let before = REACHED.load(Ordering::SeqCst);
        let completed = self.call(tool, arguments).await;
        assert_eq!(
            (completed.outcome, completed.denied),
            (Outcome::Denied, Some(Check::Arguments)),
            "{tool}: {arguments}"
        );
        assert_eq!(REACHED.load(Ordering::SeqCst), before, "{tool}: {arguments}");
    }
}

/// A set has no order.
fn same(tool: &str, one: &Value, other: &Value) -> bool {
    let sorted = |value: &Value| {
        let mut items: Vec<String> = value.as_array().unwrap().iter().map(Value::to_string).collect();
        items.sort();
        items
    };
    if tool == "hash_set" { sorted(one) == sorted(other) } else { one == other }
}

/// Types that take less than their schemas say, which have no words for it; decoding refuses the rest before the function is
/// called. An address is one of two forms, and no schema's `format` means both. Where there is a `format` (an IPv4 address, a
/// date, a UUID, a URL) JSON Schema holds nobody to it: those types are stricter than a validator as well, and the values made
/// here have the form.
const STRICTER: [&str; 1] = ["address"];

#[tokio::test]
async fn what_fits_comes_back_and_what_does_not_fit_does_not_arrive() {
    let types = Types::start().await;
    let mut runner = TestRunner::deterministic();
    let cases = cases();
    assert!(cases.len() >= 60, "{}", cases.len());
    for Case { tool, good, bad } in cases {
        let own = types.schema(tool);
        assert_eq!(own["type"], "object", "{tool}");
        let strategy = instance(&own, &own, 0);
        let mut generate = || strategy.new_tree(&mut runner).unwrap().current();
        let written = good.iter().map(|value| json!({ "value": value }));
        let valid: Vec<Value> = written.chain((0..GENERATED).map(|_| generate())).collect();
        for arguments in &valid {
            assert!(is_valid(&own, arguments), "{tool}: {arguments} against {own}");
            let Some(given) = types.given(tool, arguments).await else {
                assert!(STRICTER.contains(&tool), "{tool} does not take {arguments}");
                continue;
            };
            let again = without_absent(&json!({ "value": given }));
            assert!(is_valid(&own, &again), "{tool}: {again} against {own}");
            let twice = types.given(tool, &again).await.unwrap();
            assert!(same(tool, &twice, &given), "{tool}: {given} came back as {twice}");
            for provider in Provider::ALL {
                in_form_of(&types, provider, tool, arguments, &given).await;
            }
        }

        let mut refused = 0;
        let bad = bad.iter().map(|value| json!({ "value": value }));
        let change = change();
        let changes: Vec<Value> = (0..GENERATED * 4)
            .map(|_| {
                let (at, change) = change.new_tree(&mut runner).unwrap().current();
                changed(&strategy.new_tree(&mut runner).unwrap().current(), at, change)
            })
            .collect();
        for arguments in bad.chain([json!({"value": good[0], "other": 1})]).chain(changes) {
            // What is only null is read as absent.
            if !is_valid(&own, &arguments) && !is_valid(&own, &without_absent(&arguments)) {
                types.refuse(tool, &arguments).await;
                refused += 1;
            }
        }
        assert!(refused > GENERATED / 2, "{tool}: only {refused} were wrong");
    }
}

/// Arguments as a model writes them that is held to a provider's export.
async fn in_form_of(types: &Types, provider: Provider, tool: &str, arguments: &Value, given: &Value) {
    let Export { schema, losses, .. } = provider.export(&types.schema(tool));
    if losses.iter().any(|loss| loss.rule.narrows) {
        return;
    }
    let written = in_form(&schema, arguments);
    let mut readable = schema.clone();
    spelt_out(&mut readable);
    assert!(is_valid(&readable, &written), "{tool} {provider}: {written} against {schema}");
    let read = types.given(tool, &written).await;
    assert!(
        read.as_ref().is_some_and(|read| same(tool, read, given)),
        "{tool} {provider}: {written} was read as {read:?} and not as {given}"
    );
}

#[tokio::test]
async fn an_export_has_what_its_provider_takes_and_nothing_else() {
    let types = Types::start().await;
    for Case { tool, bad, .. } in cases() {
        let own = types.schema(tool);
        for provider in Provider::ALL {
            let Export { schema, losses, .. } = provider.export(&own);
            assert_eq!(schema["type"], "object", "{tool} {provider}");
            if provider == Provider::Plain {
                assert!(schema == own && losses.is_empty(), "{tool}");
                continue;
            }
            for root in ["anyOf", "oneOf", "allOf", "not", "enum"] {
                assert!(schema.get(root).is_none(), "{tool} {provider}");
            }
            let is_typed = matches!(provider, Provider::OpenAiStrict | Provider::Gemini);
            each(&schema, &mut |object| {
                let of = || format!("{tool} {provider}: {object:?} in {schema}");
                for keyword in object.keys() {
                    assert!(provider.takes(keyword), "`{keyword}`, {}", of());
                }
                assert!(!is_typed || object.contains_key("type") || object.contains_key("anyOf"), "{}", of());
                let is_list = object.get("type").is_some_and(|name| name == "array");
                assert!(!is_typed || !is_list || object["items"].is_object(), "{}", of());
                if provider == Provider::OpenAiStrict && object.contains_key("properties") {
                    let names: Vec<&String> = object["properties"].as_object().unwrap().keys().collect();
                    assert_eq!(json!(names), object["required"], "{}", of());
                    assert_eq!(object["additionalProperties"], json!(false), "{}", of());
                }
                if provider == Provider::Gemini {
                    assert!(object.get("type").is_none_or(Value::is_string), "{}", of());
                    assert!(object.len() == 1 || !object.contains_key("anyOf"), "{}", of());
                    let is_object = object.get("type").is_some_and(|name| name == "object");
                    assert!(!is_object || !object["properties"].as_object().unwrap().is_empty(), "{}", of());
                }
            });
            if losses.is_empty() && provider != Provider::OpenAiStrict {
                let mut readable = schema.clone();
                spelt_out(&mut readable);
                for value in &bad {
                    assert!(
                        !is_valid(&readable, &json!({ "value": value })),
                        "{tool} {provider}: {value} passes"
                    );
                }
            }
        }
    }
}
