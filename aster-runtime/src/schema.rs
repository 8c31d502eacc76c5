//! The schema pass: what schemars generates, made into what model providers and MCP clients accept.
//!
//! One generator per tool, so that a recursive type is defined once, at the root. The pass walks only where a schema
//! stands: a property called `title` or a default that looks like a schema is left alone.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::destination::URL_FORMAT;
use crate::tool::{HeaderValue, JsonObject, Measured, PatternText, Ranged, ToolArg, ToolDefault, UrlText};

/// Builds the input schema of one tool.
#[doc(hidden)]
#[derive(Debug)]
pub struct InputSchema {
    generator: SchemaGenerator,
    properties: JsonObject,
    required: Vec<Value>,
}

impl InputSchema {
    /// An object without properties.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only the macros' expansions make one")]
    pub fn new() -> Self {
        let generator = settings().for_deserialize().into_generator();
        Self { generator, properties: Map::new(), required: Vec::new() }
    }

    /// The schema of a struct that is the whole object of arguments; a text that says why, where it is none.
    #[must_use]
    pub fn flattened<T: ToolArg>() -> Value {
        let Self { mut generator, .. } = Self::new();
        let mut root = into_object(T::__schema(&mut generator));
        if !is_object(&root) {
            return format!(
                "`{}` is flattened, but its schema is not that of one object; take it as an argument of its own",
                std::any::type_name::<T>()
            )
            .into();
        }
        // The tool's description says what its arguments are for.
        root.shift_remove("description");
        root.entry("properties").or_insert_with(|| json!({}));
        root.entry("additionalProperties").or_insert(Value::Bool(false));
        hoist(&mut root, generator.take_definitions(true));
        let mut root = Value::Object(root);
        normalise(&mut root);
        root
    }

    /// Adds an argument. It is required unless its type accepts an absent value.
    pub fn argument<T: ToolArg>(&mut self, name: &'static str, description: &'static str) -> Property<'_> {
        let mut schema = into_object(T::__schema(&mut self.generator));
        if !description.is_empty() {
            schema.insert("description".to_owned(), description.into());
        }
        if T::__missing().is_none() {
            self.required.push(name.into());
        }
        self.properties.insert(name.to_owned(), Value::Object(schema));
        Property { name, builder: self }
    }

    /// The whole schema, after the pass.
    #[must_use]
    pub fn finish(mut self) -> Value {
        let definitions = self.generator.take_definitions(true);
        let mut root = Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), Value::Object(self.properties)),
        ]);
        if !self.required.is_empty() {
            root.insert("required".to_owned(), Value::Array(self.required));
        }
        root.insert("additionalProperties".to_owned(), false.into());
        hoist(&mut root, definitions);
        let mut root = Value::Object(root);
        normalise(&mut root);
        root
    }
}

/// The argument that was added last.
#[doc(hidden)]
#[derive(Debug)]
pub struct Property<'a> {
    name: &'static str,
    builder: &'a mut InputSchema,
}

impl Property<'_> {
    /// Makes the argument optional, with this default.
    pub fn default<T: ToolDefault>(self, default: fn() -> T) -> Self {
        self.builder.required.retain(|name| name != self.name);
        self.set("default", default())
    }

    /// Shows a value.
    pub fn example<T: ToolDefault>(self, example: fn() -> T) -> Self {
        self.set("examples", [example()])
    }

    /// Bounds the length of a text, or the number of things in a list or map.
    pub fn length<T: Measured>(mut self, minimum: Option<usize>, maximum: Option<usize>) -> Self {
        let (at_least, at_most) = T::KEYWORDS;
        for (keyword, bound) in [(at_least, minimum), (at_most, maximum)] {
            if let Some(bound) = bound {
                self = self.set(keyword, bound);
            }
        }
        self
    }

    /// Says what the text, or each text of a list, looks like.
    pub fn pattern<T: PatternText>(self, pattern: &'static str) -> Self {
        self.set_on_text("pattern", pattern)
    }

    /// Says that the value is not to be shown.
    pub fn secret(self) -> Self {
        self.set("writeOnly", true)
    }

    /// Bounds the number.
    pub fn range<T: Ranged>(self, minimum: Option<T::Number>, maximum: Option<T::Number>) -> Self {
        let bounded = match minimum {
            Some(minimum) => self.set("minimum", minimum),
            None => self,
        };
        match maximum {
            Some(maximum) => bounded.set("maximum", maximum),
            None => bounded,
        }
    }

    /// Says that the argument, or each item of a list, is a URL.
    pub fn url<T: UrlText>(self) -> Self {
        self.set_on_text("format", URL_FORMAT)
    }

    fn set_on_text(mut self, keyword: &str, value: &'static str) -> Self {
        if let Some(items) = self.schema().and_then(|schema| schema.get_mut("items")?.as_object_mut()) {
            items.insert(keyword.to_owned(), value.into());
            return self;
        }
        self.set(keyword, value)
    }

    /// Says that clients send the argument in an HTTP header of this name as well.
    pub fn header<T: HeaderValue>(self, name: &'static str) -> Self {
        self.set("x-mcp-header", name)
    }

    fn set(mut self, keyword: &str, value: impl Serialize) -> Self {
        // By way of text, for there an `f32` is the decimal that was written: `0.1`, not `0.10000000149011612`. What cannot
        // be written as JSON, such as a map with keys that are no text, is no default for a model either.
        let value = serde_json::to_string(&value).and_then(|text| serde_json::from_str::<Value>(&text));
        if let (Some(schema), Ok(value)) = (self.schema(), value) {
            schema.insert(keyword.to_owned(), value);
        }
        self
    }

    fn schema(&mut self) -> Option<&mut JsonObject> {
        self.builder.properties.get_mut(self.name)?.as_object_mut()
    }
}

/// Whether results of this type are wrapped as `{"result": …}`. To make a schema costs more than most tools do, so the
/// answer is remembered.
pub(crate) fn is_wrapped<T: JsonSchema + 'static>() -> bool {
    static KNOWN: LazyLock<RwLock<HashMap<TypeId, bool>>> = LazyLock::new(RwLock::default);
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&TypeId::of::<T>()).copied();
    known.unwrap_or_else(|| {
        let wrapped = !is_object(&output_root::<T>().0);
        KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(TypeId::of::<T>(), wrapped);
        wrapped
    })
}

/// The output schema of a structured result: always an object.
pub(crate) fn output<T: JsonSchema>() -> Value {
    let (schema, definitions) = output_root::<T>();
    let mut root = if is_object(&schema) {
        schema
    } else {
        let wrapped = json!({"type": "object", "properties": {"result": schema}, "required": ["result"]});
        let Value::Object(wrapped) = wrapped else { return wrapped };
        wrapped
    };
    hoist(&mut root, definitions);
    let mut root = Value::Object(root);
    normalise(&mut root);
    root
}

/// What is asked of a person who is to fill in a value of this type: not yet flat.
pub(crate) fn form<T: JsonSchema>() -> Value {
    let mut generator = settings().for_deserialize().into_generator();
    let mut root = into_object(generator.subschema_for::<T>());
    hoist(&mut root, generator.take_definitions(true));
    let mut root = Value::Object(root);
    normalise(&mut root);
    root
}

fn output_root<T: JsonSchema>() -> (JsonObject, JsonObject) {
    let mut generator = settings().for_serialize().into_generator();
    let schema = into_object(generator.subschema_for::<T>());
    (schema, generator.take_definitions(true))
}

/// Whether a schema can stand at the root: an object, without a combinator beside it.
fn is_object(schema: &JsonObject) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
        && !COMBINATORS.iter().any(|combinator| schema.contains_key(*combinator))
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    })
}

fn into_object(schema: Schema) -> JsonObject {
    match schema.to_value() {
        Value::Object(object) => object,
        Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
        _ => Map::new(),
    }
}

fn hoist(root: &mut JsonObject, definitions: JsonObject) {
    if !definitions.is_empty() {
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
}

const COMBINATORS: [&str; 4] = ["anyOf", "oneOf", "allOf", "not"];

/// The formats of the JSON Schema 2020-12 vocabulary (validation, section 7.3).
const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

/// Rewrites one schema and all schemas inside it.
fn normalise(schema: &mut Value) {
    // `true` is legal and means "anything", but several clients take schemas to be objects.
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Some(object) = schema.as_object_mut() else { return };
    object.shift_remove("title");
    object.shift_remove("$schema");
    replace_format(object);
    for_each_subschema(object, normalise);
    collapse_enum(object);
    strip_null_where_optional(object);
}

/// Calls `visit` with every schema that stands directly in this one.
fn for_each_subschema(object: &mut JsonObject, visit: fn(&mut Value)) {
    for (keyword, value) in object.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.values_mut().for_each(visit);
            }
            ("prefixItems" | "anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(visit);
            }
            // `additionalProperties: true` is how everyone writes it, so it stays.
            ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(_)) => {}
            (
                "items"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems",
                schema,
            ) => visit(schema),
            _ => {}
        }
    }
}

/// Drops a format that only Rust knows; what it said of the bounds is said in the schema's own words. Bounds that do
/// not fit into a JavaScript number, those of 64 bits and more, are left out.
fn replace_format(object: &mut JsonObject) {
    let Some(format) = object.get("format").and_then(Value::as_str) else { return };
    if FORMATS.contains(&format) {
        return;
    }
    let (minimum, maximum): (Option<i64>, Option<i64>) = match format {
        "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        "uint8" => (Some(0), Some(u8::MAX.into())),
        "uint16" => (Some(0), Some(u16::MAX.into())),
        "uint32" => (Some(0), Some(u32::MAX.into())),
        "uint64" | "uint128" | "uint" => (Some(0), None),
        _ => (None, None),
    };
    object.shift_remove("format");
    for (keyword, bound) in [("minimum", minimum), ("maximum", maximum)] {
        if let Some(bound) = bound {
            object.entry(keyword).or_insert_with(|| bound.into());
        }
    }
}

/// `oneOf` of constants of one type without descriptions is an `enum`.
fn collapse_enum(object: &mut JsonObject) {
    let Some(variants) = object.get("oneOf").and_then(Value::as_array) else { return };
    let mut values = Vec::new();
    let mut type_name: Option<&Value> = None;
    for variant in variants {
        let Some(variant) = variant.as_object() else { return };
        if variant.keys().any(|keyword| !matches!(keyword.as_str(), "const" | "enum" | "type")) {
            return;
        }
        let of_variant = variant.get("type").unwrap_or(&Value::Null);
        if *type_name.get_or_insert(of_variant) != of_variant {
            return;
        }
        match (variant.get("const"), variant.get("enum").and_then(Value::as_array)) {
            (Some(value), None) => values.push(value.clone()),
            (None, Some(several)) => values.extend(several.iter().cloned()),
            _ => return,
        }
    }
    let type_name = type_name.filter(|name| !name.is_null()).cloned();
    object.shift_remove("oneOf");
    object.extend(type_name.map(|name| ("type".to_owned(), name)));
    object.insert("enum".to_owned(), Value::Array(values));
}

/// A property that may be left out has no need of `null` as well, and clients stumble over the union.
fn strip_null_where_optional(object: &mut JsonObject) {
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for (name, property) in properties.iter_mut() {
        if let Some(property) = property.as_object_mut()
            && !is_required(name)
        {
            strip_null(property);
        }
    }
}

fn strip_null(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if schema.get("default") == Some(&Value::Null) {
        schema.shift_remove("default");
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = choices.as_mut_slice() {
            let only = std::mem::take(only);
            schema.shift_remove("anyOf");
            for (keyword, value) in only {
                // The property's own description says more than its type's.
                schema.entry(keyword).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde::Deserialize;

    use super::*;

    fn argument<T: ToolArg>() -> Value {
        let mut schema = InputSchema::new();
        schema.argument::<T>("value", "");
        schema.finish()
    }

    /// The schema of one required argument, as compact JSON.
    fn of<T: ToolArg>() -> String {
        argument::<T>()["properties"]["value"].to_string()
    }

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
    struct Tree {
        /// What it is called.
        title: String,
        children: Vec<Tree>,
        parent: Option<Box<Tree>>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    /// A place on the map.
    struct Point {
        x: f64,
        y: Option<i16>,
        colour: Option<Plain>,
        #[serde(default)]
        weight: u32,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Shape {
        Circle { radius: f64 },
        Dot,
    }

    #[test]
    fn scalars_have_no_formats_of_rust() {
        let schemas = [
            of::<u8>(),
            of::<u32>(),
            of::<u64>(),
            of::<i32>(),
            of::<i64>(),
            of::<usize>(),
            of::<f32>(),
            of::<bool>(),
            of::<char>(),
            of::<String>(),
            of::<std::net::IpAddr>(),
            of::<std::net::Ipv4Addr>(),
        ];
        insta::assert_snapshot!(schemas.join("\n"));
    }

    #[test]
    fn collections() {
        let schemas = [
            of::<Vec<u16>>(),
            of::<(u8, String)>(),
            of::<[bool; 2]>(),
            of::<HashMap<String, i8>>(),
            of::<BTreeMap<String, Value>>(),
            of::<Value>(),
            of::<Vec<Value>>(),
            of::<Vec<Option<u8>>>(),
        ];
        insta::assert_snapshot!(schemas.join("\n"));
    }

    #[test]
    fn enums_collapse_only_without_documentation() {
        insta::assert_snapshot!([of::<Plain>(), of::<Documented>(), of::<Shape>()].join("\n"));
    }

    #[test]
    fn a_nested_struct_is_inlined() {
        insta::assert_json_snapshot!(argument::<Point>());
    }

    #[test]
    fn a_recursive_type_is_defined_once_at_the_root() {
        let mut schema = InputSchema::new();
        schema.argument::<Tree>("tree", "The tree.");
        schema.argument::<Option<Tree>>("other", "Another.");
        insta::assert_json_snapshot!(schema.finish());
    }

    #[test]
    fn options_lose_null_only_where_they_may_be_left_out() {
        let mut schema = InputSchema::new();
        schema.argument::<Option<String>>("text", "Some text.");
        schema.argument::<Option<Plain>>("colour", "A colour.");
        schema.argument::<Option<Point>>("place", "");
        schema.argument::<Option<u8>>("count", "").range::<Option<u8>>(Some(1), None);
        schema.argument::<Option<u8>>("filled", "").default(|| Some(3_u8));
        schema.argument::<Vec<Option<u8>>>("list", "");
        insta::assert_json_snapshot!(schema.finish());
    }

    #[test]
    fn defaults_ranges_and_urls() {
        let mut schema = InputSchema::new();
        schema.argument::<u8>("limit", "How many.").default(|| 5_u8).range::<u8>(Some(1), Some(20));
        schema.argument::<String>("page", "The page.").url::<String>();
        schema.argument::<Vec<String>>("pages", "More.").url::<Vec<String>>();
        insta::assert_json_snapshot!(schema.finish());
    }

    #[test]
    fn single_precision_stands_as_it_was_written() {
        let mut schema = InputSchema::new();
        schema.argument::<f32>("share", "").default(|| 0.3_f32).range::<f32>(Some(0.1), Some(0.9));
        schema.argument::<f64>("exact", "").range::<f64>(Some(0.100_000_001_490_116_12), None);
        let schema = schema.finish();
        let share = &schema["properties"]["share"];
        assert_eq!(share, &json!({"type": "number", "default": 0.3, "minimum": 0.1, "maximum": 0.9}));
        assert_eq!(schema["properties"]["exact"]["minimum"], json!(0.100_000_001_490_116_12));
    }

    #[test]
    fn no_arguments_is_an_empty_object() {
        assert_eq!(
            InputSchema::new().finish(),
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
    }

    #[test]
    fn output_is_an_object_and_keeps_null() {
        insta::assert_json_snapshot!([
            output::<Point>(),
            output::<Vec<u8>>(),
            output::<Shape>(),
            output::<Tree>()
        ]);
    }

    #[test]
    fn what_is_no_schema_is_left_alone() {
        let mut schema = json!({
            "type": "object",
            "properties": {"title": {"type": "string", "title": "T"}, "format": true},
            "default": {"title": "x", "format": "uint8"},
            "required": ["title", "format"],
        });
        normalise(&mut schema);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {"title": {"type": "string"}, "format": {}},
                "default": {"title": "x", "format": "uint8"},
                "required": ["title", "format"],
            })
        );
    }
}
