//! What the providers of models take of JSON Schema, and a tool's schema in the form of each.
//!
//! An export is a copy: references are followed, and what a provider refuses is written otherwise where that says the same,
//! and left out with a [`Loss`] where it does not. What is left out only ever widens the schema, so arguments are checked
//! against the tool's own. Pure, and bounded in depth and size: schemas come from strangers too.

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// How deep an export goes; OpenAI's strict mode takes ten levels of objects.
const MAX_DEPTH: usize = 32;

/// How many schemas an export may have.
const MAX_SCHEMAS: usize = 5_000;

/// Whose model is to call the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provider {
    /// JSON Schema 2020-12 as it is.
    Plain,
    /// OpenAI, function calling without `strict`.
    OpenAi,
    /// OpenAI, function calling with `strict: true`: every property is required, an optional one may be null.
    OpenAiStrict,
    /// Anthropic, the messages API.
    Anthropic,
    /// Gemini, `parameters` of a function declaration.
    Gemini,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plain, Self::OpenAi, Self::OpenAiStrict, Self::Anthropic, Self::Gemini];

    /// The schema as the provider takes it.
    ///
    /// ```
    /// use aster_runtime::provider::Provider;
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "properties": {"page": {"type": "string", "minLength": 1}}});
    /// let export = Provider::OpenAiStrict.export(&schema);
    /// assert_eq!(
    ///     export.schema,
    ///     json!({
    ///         "type": "object",
    ///         "properties": {"page": {"type": ["string", "null"]}},
    ///         "required": ["page"],
    ///         "additionalProperties": false,
    ///     })
    /// );
    /// assert_eq!(export.losses[0].keyword, "minLength");
    /// ```
    #[must_use]
    pub fn export(self, schema: &Value) -> Export {
        let Some(rules) = self.rules() else {
            return Export { schema: schema.clone(), losses: Vec::new() };
        };
        let mut writer = Writer { rules, root: schema, losses: Vec::new(), following: Vec::new(), count: 0 };
        let mut schema = writer.schema(schema, "", 0);
        writer.close_root(&mut schema);
        Export { schema, losses: writer.losses }
    }

    /// Where the rules come from.
    #[must_use]
    pub fn source(self) -> &'static str {
        match self {
            Self::Plain => "https://json-schema.org/draft/2020-12",
            Self::OpenAi => "https://platform.openai.com/docs/guides/function-calling",
            Self::OpenAiStrict => {
                "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"
            }
            Self::Anthropic => {
                "https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use"
            }
            Self::Gemini => "https://ai.google.dev/api/caching#Schema",
        }
    }

    /// Whether the provider takes this keyword below the root.
    #[must_use]
    pub fn takes(self, keyword: &str) -> bool {
        self.rules().is_none_or(|rules| rules.takes(keyword))
    }

    fn rules(self) -> Option<Rules> {
        const OPEN: Rules = Rules { keywords: None, formats: None, strict: false, nullable: false };
        match self {
            Self::Plain => None,
            Self::OpenAi | Self::Anthropic => Some(OPEN),
            Self::OpenAiStrict => Some(Rules {
                keywords: Some(STRICT),
                formats: Some(STRICT_FORMATS),
                strict: true,
                nullable: false,
            }),
            Self::Gemini => Some(Rules {
                keywords: Some(GEMINI),
                formats: Some(&["date-time"]),
                strict: false,
                nullable: true,
            }),
        }
    }
}

const STRICT: &[&str] = &[
    "type",
    "description",
    "enum",
    "const",
    "anyOf",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];

const STRICT_FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

const GEMINI: &[&str] = &[
    "type",
    "format",
    "description",
    "nullable",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "pattern",
];

/// What one provider takes.
#[derive(Debug, Clone, Copy)]
struct Rules {
    /// Of keywords; `None` is all but references.
    keywords: Option<&'static [&'static str]>,
    /// Of formats; `None` is all.
    formats: Option<&'static [&'static str]>,
    /// Every property is required and there are no others.
    strict: bool,
    /// `nullable` stands for the type `null`, a type is one word, and an `enum` is of texts (OpenAPI 3.0).
    nullable: bool,
}

impl Rules {
    fn takes(&self, keyword: &str) -> bool {
        // References are followed, whoever takes them: a describe that answers with one has been refused as well.
        !matches!(keyword, "$ref" | "$defs" | "$schema" | "definitions")
            && self.keywords.is_none_or(|keywords| keywords.contains(&keyword))
    }
}

/// A schema in a provider's form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Export {
    /// The schema.
    pub schema: Value,
    /// What it no longer says, in the order of the schema.
    pub losses: Vec<Loss>,
}

/// Something that a tool's schema says and an export does not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Where, as a JSON pointer into the tool's own schema.
    pub path: String,
    /// Which keyword.
    pub keyword: String,
    /// Why.
    pub reason: &'static str,
}

struct Writer<'a> {
    rules: Rules,
    root: &'a Value,
    losses: Vec<Loss>,
    /// The references that are being followed.
    following: Vec<&'a str>,
    count: usize,
}

impl<'a> Writer<'a> {
    fn lose(&mut self, path: &str, keyword: &str, reason: &'static str) {
        self.losses.push(Loss { path: path.to_owned(), keyword: keyword.to_owned(), reason });
    }

    fn schema(&mut self, schema: &'a Value, path: &str, depth: usize) -> Value {
        let Some(object) = schema.as_object() else { return json!({}) };
        self.count += 1;
        if depth > MAX_DEPTH || self.count > MAX_SCHEMAS {
            self.lose(path, "$ref", "the schema is too deep or too large");
            return json!({});
        }
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            return self.reference(object, reference, path, depth);
        }
        let mut out = Object::new();
        for (keyword, value) in object {
            self.keyword(&mut out, object, keyword, value, path, depth);
        }
        if self.rules.strict {
            close(&mut out);
        }
        Value::Object(out)
    }

    fn reference(&mut self, object: &'a Object, reference: &'a str, path: &str, depth: usize) -> Value {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let followed = match target {
            Some(_) if self.following.contains(&reference) => {
                self.lose(path, "$ref", "it leads back to itself");
                json!({})
            }
            Some(target) => {
                self.following.push(reference);
                let followed = self.schema(target, path, depth + 1);
                self.following.pop();
                followed
            }
            None => {
                self.lose(path, "$ref", "it leads out of the schema");
                json!({})
            }
        };
        let Value::Object(mut out) = followed else { return followed };
        // What stands beside a reference is said of its target as well; a description there is the nearer one.
        if let Some(description) = object.get("description") {
            out.insert("description".to_owned(), description.clone());
        }
        for keyword in
            object.keys().filter(|keyword| !matches!(keyword.as_str(), "$ref" | "description" | "$defs"))
        {
            self.lose(path, keyword, "it stands beside a reference");
        }
        Value::Object(out)
    }

    fn keyword(
        &mut self,
        out: &mut Object,
        object: &'a Object,
        keyword: &str,
        value: &'a Value,
        path: &str,
        depth: usize,
    ) {
        let at = format!("{path}/{}", keyword.replace('~', "~0").replace('/', "~1"));
        match (keyword, value) {
            ("$defs" | "definitions" | "$schema" | "$id" | "$comment" | "title", _) => {}
            ("properties", Value::Object(properties)) => {
                let mut written = Object::new();
                for (name, property) in properties {
                    written.insert(name.clone(), self.schema(property, &format!("{at}/{name}"), depth + 1));
                }
                out.insert(keyword.to_owned(), Value::Object(written));
            }
            ("items", items @ Value::Object(_)) => {
                out.insert(keyword.to_owned(), self.schema(items, &at, depth + 1));
            }
            ("anyOf", Value::Array(choices)) => self.choices(out, object, choices, &at, depth),
            ("oneOf", Value::Array(choices)) if !self.rules.takes("oneOf") => {
                if choices.len() > 1 {
                    self.lose(
                        path,
                        keyword,
                        "that only one holds cannot be said; `anyOf` stands in its place",
                    );
                }
                self.choices(out, object, choices, &at, depth);
            }
            ("oneOf" | "allOf", Value::Array(choices)) if self.rules.takes(keyword) => {
                let choices = choices.iter().enumerate();
                let choices = choices
                    .map(|(at_choice, choice)| self.schema(choice, &format!("{at}/{at_choice}"), depth + 1));
                let choices = choices.collect();
                out.insert(keyword.to_owned(), choices);
            }
            ("prefixItems", Value::Array(items)) if !self.rules.takes("prefixItems") => {
                self.lose(path, keyword, "the places of a tuple cannot be told apart");
                let items = items.iter().enumerate();
                let mut choices: Vec<Value> = Vec::new();
                for (place, item) in items {
                    let item = self.schema(item, &format!("{at}/{place}"), depth + 1);
                    if !choices.contains(&item) {
                        choices.push(item);
                    }
                }
                let items = if choices.len() == 1 { choices.remove(0) } else { json!({ "anyOf": choices }) };
                out.insert("items".to_owned(), items);
            }
            ("additionalProperties", schema @ Value::Object(_))
                if self.rules.takes(keyword) && !self.rules.strict =>
            {
                out.insert(keyword.to_owned(), self.schema(schema, &at, depth + 1));
            }
            ("additionalProperties", Value::Bool(false)) if !self.rules.takes(keyword) => {
                self.lose(path, keyword, "that there are no others cannot be said");
            }
            ("additionalProperties", extra) if self.rules.strict || !self.rules.takes(keyword) => {
                if *extra != Value::Bool(false) {
                    self.lose(path, keyword, "properties without fixed names cannot be said");
                }
            }
            ("type", Value::Array(types)) if self.rules.nullable => one_type(out, types),
            ("const", value) if !self.rules.takes("const") && value.is_string() => {
                out.insert("enum".to_owned(), json!([value]));
            }
            ("enum", Value::Array(values)) if self.rules.nullable && !values.iter().all(Value::is_string) => {
                self.lose(path, keyword, "only texts can be listed");
            }
            ("format", Value::String(format))
                if self.rules.formats.is_some_and(|formats| !formats.contains(&format.as_str())) =>
            {
                self.lose(path, keyword, "the format is not taken");
            }
            _ if !self.rules.takes(keyword) => self.lose(path, keyword, "the keyword is not taken"),
            _ if matches!(value, Value::Object(_) | Value::Array(_)) && holds_schemas(keyword) => {
                let mut value = value.clone();
                if contains_reference(&value, 0) {
                    self.lose(path, keyword, "a reference in it cannot be followed");
                    value = json!({});
                }
                out.insert(keyword.to_owned(), value);
            }
            _ => {
                out.insert(keyword.to_owned(), value.clone());
            }
        }
    }

    fn choices(
        &mut self,
        out: &mut Object,
        object: &'a Object,
        choices: &'a [Value],
        at: &str,
        depth: usize,
    ) {
        let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) == Some("null");
        let mut written = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            if self.rules.nullable && is_null(&choice) {
                out.insert("nullable".to_owned(), Value::Bool(true));
            } else {
                written.push(self.schema(choice, &format!("{at}/{place}"), depth + 1));
            }
        }
        match written.as_mut_slice() {
            // What is said beside the one choice holds as well; only of two descriptions the nearer is enough.
            [Value::Object(only)]
                if only.keys().all(|keyword| keyword == "description" || !object.contains_key(keyword)) =>
            {
                for (keyword, value) in std::mem::take(only) {
                    out.entry(keyword).or_insert(value);
                }
            }
            _ => {
                out.insert("anyOf".to_owned(), Value::Array(written));
            }
        }
    }

    /// The root is an object, and nothing else is said of it.
    fn close_root(&mut self, schema: &mut Value) {
        let Some(root) = schema.as_object_mut() else { return };
        for keyword in ["anyOf", "oneOf", "allOf", "not", "enum", "const"] {
            if root.shift_remove(keyword).is_some() {
                self.losses.push(Loss {
                    path: String::new(),
                    keyword: keyword.to_owned(),
                    reason: "the root can only be an object",
                });
            }
        }
        root.insert("type".to_owned(), "object".into());
        root.entry("properties").or_insert_with(|| json!({}));
        if self.rules.strict {
            close(root);
        }
    }
}

/// Keywords that hold schemas and are passed on as they are.
fn holds_schemas(keyword: &str) -> bool {
    matches!(
        keyword,
        "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "patternProperties"
            | "dependentSchemas"
            | "prefixItems"
            | "unevaluatedItems"
            | "unevaluatedProperties"
    )
}

fn contains_reference(value: &Value, depth: usize) -> bool {
    depth > MAX_DEPTH
        || match value {
            Value::Object(object) => {
                object.contains_key("$ref")
                    || object.values().any(|value| contains_reference(value, depth + 1))
            }
            Value::Array(items) => items.iter().any(|item| contains_reference(item, depth + 1)),
            _ => false,
        }
}

/// `["string", "null"]` is a text that is nullable; several types are a choice.
fn one_type(out: &mut Object, types: &[Value]) {
    let (null, others): (Vec<&Value>, Vec<&Value>) = types.iter().partition(|name| **name == "null");
    if !null.is_empty() {
        out.insert("nullable".to_owned(), Value::Bool(true));
    }
    match others.as_slice() {
        [only] => out.insert("type".to_owned(), (*only).clone()),
        several => {
            let choices = several.iter().map(|name| json!({ "type": name })).collect::<Vec<_>>();
            out.insert("anyOf".to_owned(), Value::Array(choices))
        }
    };
}

/// Makes every property of an object required, those that were not as ones that may be null, and forbids others.
fn close(object: &mut Object) {
    if object.get("type").and_then(Value::as_str) != Some("object") && !object.contains_key("properties") {
        return;
    }
    let required = object.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let mut properties = object.shift_remove("properties").unwrap_or_else(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for (_, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
            allow_null(property);
        }
        let names = properties.keys().map(|name| Value::from(name.as_str())).collect();
        object.insert("required".to_owned(), Value::Array(names));
    }
    let required = object.shift_remove("required").unwrap_or_default();
    object.insert("properties".to_owned(), properties);
    object.insert("required".to_owned(), required);
    object.insert("additionalProperties".to_owned(), Value::Bool(false));
}

fn allow_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(values) = object.get_mut("enum").and_then(Value::as_array_mut)
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let is_constant = object.contains_key("const");
    match object.get_mut("type") {
        Some(Value::Array(types)) => {
            if !types.iter().any(|name| name == "null") {
                types.push("null".into());
            }
        }
        Some(Value::String(name)) if !is_constant => {
            let name = std::mem::take(name);
            if let Some(types) = object.get_mut("type") {
                *types = json!([name, "null"]);
            }
        }
        _ => {
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.push(json!({"type": "null"}));
            } else if !object.is_empty() {
                let whole = std::mem::take(object);
                *schema = json!({"anyOf": [whole, {"type": "null"}]});
            }
        }
    }
}
