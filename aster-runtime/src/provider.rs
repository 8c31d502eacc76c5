//! What the providers of models take of JSON Schema, and a tool's schema in the form of each.
//!
//! An export is a copy: references are followed, and what a provider refuses is written otherwise where that says the same,
//! and left out with a [`Loss`] where it does not. Every loss is by a [`Rule`], which says why and where that is written. What
//! is left out mostly widens the schema, so arguments are checked against the tool's own; a rule that
//! [narrows](field@Rule::narrows) keeps a model from arguments that the tool would take. Pure, and bounded in depth and size:
//! schemas come from strangers too.

use std::fmt;

use serde_json::{Map, Value, json};

type Object = Map<String, Value>;

/// How deep an export goes; OpenAI's strict mode takes ten levels of objects.
const MAX_DEPTH: usize = 32;

/// How many schemas an export may have.
const MAX_SCHEMAS: usize = 5_000;

/// Keywords of which one at least says what type a value has.
const TYPED: [&str; 9] = ["type", "$ref", "anyOf", "oneOf", "allOf", "properties", "items", "enum", "const"];

/// Whose model is to call the tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Provider {
    /// JSON Schema 2020-12 as it is.
    #[default]
    Plain,
    /// OpenAI, function calling without `strict`.
    OpenAi,
    /// OpenAI, function calling with `strict: true`: every property is required, an optional one may be null.
    OpenAiStrict,
    /// Anthropic, the messages API.
    Anthropic,
    /// Gemini, `parameters` of a function declaration. A function whose schema has no property is declared without.
    Gemini,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plain, Self::OpenAi, Self::OpenAiStrict, Self::Anthropic, Self::Gemini];

    /// What it is called on a command line: `openai-strict`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::OpenAi => "openai",
            Self::OpenAiStrict => "openai-strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The provider of this [name](Self::name).
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.name() == name)
    }

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
    /// assert!(export.losses[0].rule.source.starts_with("https://platform.openai.com/"));
    /// ```
    #[must_use]
    pub fn export(self, schema: &Value) -> Export {
        let Some(dialect) = self.dialect() else {
            return Export { schema: schema.clone(), losses: Vec::new() };
        };
        let mut writer =
            Writer { dialect, root: schema, losses: Vec::new(), following: Vec::new(), count: 0 };
        let mut schema = writer.schema(schema, "", 0);
        writer.close_root(&mut schema);
        Export { schema, losses: writer.losses }
    }

    /// The rules by which an export loses something; none for [`Plain`](Self::Plain).
    pub fn rules(self) -> impl Iterator<Item = &'static Rule> {
        self.dialect().into_iter().flat_map(|dialect| {
            let is_told_better = |rule: &&Rule| dialect.rules.iter().any(|own| own.what == rule.what);
            dialect.rules.iter().chain(GENERAL.iter().filter(move |rule| !is_told_better(rule)))
        })
    }

    /// Whether the provider takes this keyword below the root.
    #[must_use]
    pub fn takes(self, keyword: &str) -> bool {
        self.dialect().is_none_or(|dialect| dialect.takes(keyword))
    }

    fn dialect(self) -> Option<&'static Dialect> {
        match self {
            Self::Plain => None,
            Self::OpenAi => Some(&OPENAI),
            Self::OpenAiStrict => Some(&STRICT),
            Self::Anthropic => Some(&ANTHROPIC),
            Self::Gemini => Some(&GEMINI),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What it is that a provider does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum What {
    /// Anything at the root but an object with properties.
    Root,
    /// A reference.
    Reference,
    /// What stands beside a reference.
    Beside,
    /// More schemas, or deeper ones, than there is room for.
    Size,
    /// A keyword.
    Keyword,
    /// A format.
    Format,
    /// That exactly one of several schemas holds.
    OneOf,
    /// A list whose places differ.
    Tuple,
    /// That an object has no other properties.
    Closed,
    /// Properties without fixed names, beside others.
    Open,
    /// An object without fixed names.
    Map,
    /// A value of any kind.
    Anything,
    /// A list of values that are not texts.
    Values,
}

/// Something that a provider does not take of JSON Schema.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// What is not taken.
    pub what: What,
    /// Why, and what stands in its place where something does.
    pub reason: &'static str,
    /// Where that is written: the provider's documentation, or where its answer was reported.
    pub source: &'static str,
    /// Whether what stands there takes fewer values than the tool does, not more.
    pub narrows: bool,
}

impl Rule {
    const fn widens(what: What, reason: &'static str, source: &'static str) -> Self {
        Self { what, reason, source, narrows: false }
    }

    const fn narrows(what: What, reason: &'static str, source: &'static str) -> Self {
        Self { what, reason, source, narrows: true }
    }
}

/// What holds for every provider, since every export is written out.
static GENERAL: &[Rule] = &[
    Rule::widens(
        What::Reference,
        "it leads back to itself or out of the schema; one that cannot be resolved costs a client the whole list",
        "https://github.com/anthropics/claude-code/issues/76040",
    ),
    Rule::widens(
        What::Beside,
        "it stands beside a reference, whose target is written here",
        "https://json-schema.org/draft/2020-12/json-schema-core#section-8.2.3.1",
    ),
    Rule::widens(
        What::Size,
        "the schema is too deep or too large",
        "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas",
    ),
];

/// What one provider takes, and the rules by which it does not take the rest.
#[derive(Debug)]
struct Dialect {
    /// Of keywords; `None` is all but references.
    keywords: Option<&'static [&'static str]>,
    /// Of formats; `None` is all.
    formats: Option<&'static [&'static str]>,
    /// Every property is required and there are no others.
    strict: bool,
    /// `nullable` stands for the type `null`, a type is one word, an `enum` is of texts (OpenAPI 3.0), and nothing stands
    /// beside `anyOf`.
    nullable: bool,
    rules: &'static [Rule],
}

static OPENAI: Dialect = Dialect {
    keywords: None,
    formats: None,
    strict: false,
    nullable: false,
    rules: &[Rule::widens(
        What::Root,
        "the root can only be an object",
        "https://platform.openai.com/docs/guides/function-calling",
    )],
};

static ANTHROPIC: Dialect = Dialect {
    rules: &[Rule::widens(
        What::Root,
        "the root can only be an object",
        "https://github.com/anthropics/claude-code/issues/27337",
    )],
    ..OPENAI
};

const SUPPORTED: &str = "https://platform.openai.com/docs/guides/structured-outputs#supported-schemas";

const EVERY_TYPE: &str = "https://github.com/can1357/oh-my-pi/issues/211";

static STRICT: Dialect = Dialect {
    keywords: Some(&[
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
    ]),
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    strict: true,
    nullable: false,
    rules: &[
        Rule::widens(
            What::Root,
            "the root can only be an object",
            "https://platform.openai.com/docs/guides/structured-outputs#root-objects-must-not-be-anyof-and-must-be-an-object",
        ),
        Rule::widens(What::Keyword, "the keyword is not taken", SUPPORTED),
        Rule::widens(
            What::Format,
            "the format is not taken",
            "https://github.com/can1357/oh-my-pi/issues/206",
        ),
        Rule::widens(
            What::OneOf,
            "that only one holds cannot be said; `anyOf` stands in its place",
            SUPPORTED,
        ),
        Rule::widens(What::Tuple, "the places of a tuple cannot be told apart", SUPPORTED),
        Rule::narrows(
            What::Open,
            "properties without fixed names cannot be said",
            "https://platform.openai.com/docs/guides/structured-outputs#additionalproperties-false-must-always-be-set-in-objects",
        ),
        Rule::widens(
            What::Map,
            "an object without fixed names cannot be said; it is written as JSON text",
            "https://platform.openai.com/docs/guides/structured-outputs#additionalproperties-false-must-always-be-set-in-objects",
        ),
        Rule::narrows(
            What::Anything,
            "every schema has a type; of any value those remain that are no list and no object",
            EVERY_TYPE,
        ),
        Rule::narrows(
            What::Reference,
            "it leads back to itself or out of the schema; a value that is no list and no object stands there",
            EVERY_TYPE,
        ),
        Rule::narrows(
            What::Size,
            "the schema is too deep or too large; a value that is no list and no object stands there",
            SUPPORTED,
        ),
    ],
};

const SCHEMA: &str = "https://ai.google.dev/api/caching#Schema";

static GEMINI: Dialect = Dialect {
    keywords: Some(&[
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
    ]),
    formats: Some(&["date-time", "enum", "float", "double", "int32", "int64"]),
    strict: false,
    nullable: true,
    rules: &[
        Rule::widens(What::Root, "the root can only be an object", SCHEMA),
        Rule::widens(What::Keyword, "the keyword is not taken", SCHEMA),
        Rule::widens(What::Format, "the format is not taken", SCHEMA),
        Rule::widens(What::OneOf, "that only one holds cannot be said; `anyOf` stands in its place", SCHEMA),
        Rule::widens(What::Tuple, "the places of a tuple cannot be told apart", SCHEMA),
        Rule::widens(
            What::Closed,
            "that there are no others cannot be said",
            "https://github.com/TableProApp/TablePro/pull/1276",
        ),
        Rule::widens(What::Open, "properties without fixed names cannot be said", SCHEMA),
        Rule::widens(
            What::Map,
            "an object has named properties; one without is written as JSON text",
            SCHEMA,
        ),
        Rule::narrows(
            What::Anything,
            "every schema has one type; of any value texts, numbers and booleans remain",
            SCHEMA,
        ),
        Rule::narrows(
            What::Reference,
            "it leads back to itself or out of the schema; a text, a number or a boolean stands there",
            SCHEMA,
        ),
        Rule::narrows(
            What::Size,
            "the schema is too deep or too large; a text, a number or a boolean stands there",
            SCHEMA,
        ),
        Rule::widens(What::Values, "only texts can be listed", SCHEMA),
    ],
};

impl Dialect {
    fn takes(&self, keyword: &str) -> bool {
        // References are followed, whoever takes them: a describe that answers with one has been refused as well.
        !matches!(keyword, "$ref" | "$defs" | "$schema" | "definitions")
            && self.keywords.is_none_or(|keywords| keywords.contains(&keyword))
    }

    /// Whether every schema has a type, and every object properties.
    fn is_typed(&self) -> bool {
        self.keywords.is_some()
    }

    fn rule(&'static self, what: What) -> &'static Rule {
        let mut rules = self.rules.iter().chain(GENERAL);
        // A test holds that there is one wherever one is asked for.
        rules.find(|rule| rule.what == what).unwrap_or(&GENERAL[0])
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
    pub rule: &'static Rule,
}

struct Writer<'a> {
    dialect: &'static Dialect,
    root: &'a Value,
    losses: Vec<Loss>,
    /// The references that are being followed.
    following: Vec<&'a str>,
    count: usize,
}

impl<'a> Writer<'a> {
    fn lose(&mut self, path: &str, keyword: &str, what: What) {
        let rule = self.dialect.rule(what);
        self.losses.push(Loss { path: path.to_owned(), keyword: keyword.to_owned(), rule });
    }

    fn schema(&mut self, schema: &'a Value, path: &str, depth: usize) -> Value {
        let Some(object) = schema.as_object() else { return self.said_of_anything(path) };
        self.count += 1;
        if depth > MAX_DEPTH || self.count > MAX_SCHEMAS {
            self.lose(path, "$ref", What::Size);
            return self.anything();
        }
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            return self.reference(object, reference, path, depth);
        }
        let mut out = Object::new();
        for (keyword, value) in object {
            self.keyword(&mut out, object, keyword, value, path, depth);
        }
        if self.dialect.is_typed() {
            self.give_type(&mut out, object, path);
        }
        // At the root there is no choice to spread over, and `close_root` closes it.
        if !path.is_empty() {
            self.arrange(&mut out);
        }
        Value::Object(out)
    }

    fn reference(&mut self, object: &'a Object, reference: &'a str, path: &str, depth: usize) -> Value {
        let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let followed = match target {
            Some(_) if self.following.contains(&reference) => {
                self.lose(path, "$ref", What::Reference);
                self.anything()
            }
            Some(target) => {
                self.following.push(reference);
                let followed = self.schema(target, path, depth + 1);
                self.following.pop();
                followed
            }
            None => {
                self.lose(path, "$ref", What::Reference);
                self.anything()
            }
        };
        let Value::Object(mut out) = followed else { return followed };
        // What stands beside a reference is said of its target as well; a description there is the nearer one.
        if let Some(description) = object.get("description") {
            out.insert("description".to_owned(), description.clone());
            if !path.is_empty() {
                self.arrange(&mut out);
            }
        }
        for keyword in
            object.keys().filter(|keyword| !matches!(keyword.as_str(), "$ref" | "description" | "$defs"))
        {
            self.lose(path, keyword, What::Beside);
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
            ("allOf", Value::Array(only)) if only.len() == 1 && !self.dialect.takes(keyword) => {
                self.choices(out, object, only, &at, depth);
            }
            ("oneOf", Value::Array(choices)) if !self.dialect.takes("oneOf") => {
                if choices.len() > 1 {
                    self.lose(path, keyword, What::OneOf);
                }
                self.choices(out, object, choices, &at, depth);
            }
            ("oneOf" | "allOf", Value::Array(choices)) if self.dialect.takes(keyword) => {
                let choices = choices.iter().enumerate();
                let choices = choices
                    .map(|(at_choice, choice)| self.schema(choice, &format!("{at}/{at_choice}"), depth + 1));
                let choices = choices.collect();
                out.insert(keyword.to_owned(), choices);
            }
            // Whatever may stand there; or nothing, beside the places of a tuple.
            ("items", Value::Bool(_)) if self.dialect.is_typed() => {}
            ("prefixItems" | "items", Value::Array(items)) if !self.dialect.takes("prefixItems") => {
                self.lose(path, keyword, What::Tuple);
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
                if self.dialect.takes(keyword) && !self.dialect.strict =>
            {
                out.insert(keyword.to_owned(), self.schema(schema, &at, depth + 1));
            }
            ("additionalProperties", Value::Bool(false)) if !self.dialect.takes(keyword) => {
                self.lose(path, keyword, What::Closed);
            }
            ("additionalProperties", extra) if self.dialect.strict || !self.dialect.takes(keyword) => {
                if *extra != Value::Bool(false) {
                    self.lose(path, keyword, What::Open);
                }
            }
            ("type", Value::Array(types)) if self.dialect.nullable => one_type(out, types),
            ("type", Value::Array(types)) if self.dialect.is_typed() && needs_more(object, types) => {
                let choices = types.iter().map(|name| json!({ "type": name })).collect();
                out.insert("anyOf".to_owned(), Value::Array(choices));
            }
            ("const", value) if !self.dialect.takes("const") && value.is_string() => {
                out.insert("enum".to_owned(), json!([value]));
            }
            ("enum", Value::Array(values))
                if self.dialect.nullable && !values.iter().all(Value::is_string) =>
            {
                self.lose(path, keyword, What::Values);
            }
            ("format", Value::String(format))
                if self.dialect.formats.is_some_and(|formats| !formats.contains(&format.as_str())) =>
            {
                self.lose(path, keyword, What::Format);
            }
            _ if !self.dialect.takes(keyword) => self.lose(path, keyword, What::Keyword),
            _ if matches!(value, Value::Object(_) | Value::Array(_)) && holds_schemas(keyword) => {
                let mut value = value.clone();
                if contains_reference(&value, 0) {
                    self.lose(path, keyword, What::Reference);
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
        let has_type = |choice: &Value| TYPED.iter().any(|keyword| choice.get(keyword).is_some());
        if self.dialect.is_typed() && !choices.iter().all(has_type) {
            // Something of what is said beside them, and nothing of its own: `{"required": ["a"]}`.
            let (path, keyword) = at.rsplit_once('/').unwrap_or(("", at));
            self.lose(path, keyword, What::Keyword);
            return;
        }
        let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) == Some("null");
        let mut written = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            if self.dialect.nullable && is_null(&choice) {
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

    /// What stands where nothing is said, or nothing that can be followed.
    fn anything(&self) -> Value {
        if !self.dialect.is_typed() {
            return json!({});
        }
        if self.dialect.nullable {
            return json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]});
        }
        json!({"type": ["string", "number", "boolean", "null"]})
    }

    /// The same, of a schema that means it.
    fn said_of_anything(&mut self, path: &str) -> Value {
        if self.dialect.is_typed() {
            self.lose(path, "type", What::Anything);
        }
        self.anything()
    }

    /// Writes what a provider wants to know of every schema: its type, the properties of an object, the items of a list.
    fn give_type(&mut self, out: &mut Object, object: &Object, path: &str) {
        if let Some(Value::Array(mut choices)) = out.shift_remove("anyOf") {
            for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
                // One of several types has not been written yet, as those that were schemas have.
                let own = match choice.get("type").and_then(Value::as_str) {
                    Some("array") => out.shift_remove("items").map(|items| ("items".to_owned(), items)),
                    Some("object") => {
                        out.shift_remove("properties").map(|all| ("properties".to_owned(), all))
                    }
                    _ => None,
                };
                if choice.len() == 1 {
                    choice.extend(own);
                    self.give_type(choice, object, path);
                } else {
                    out.extend(own);
                }
            }
            out.insert("anyOf".to_owned(), Value::Array(choices));
            return;
        }
        let known = match out.get("type") {
            Some(Value::String(name)) => Some(name.clone()),
            // Several, each of which has all it wants.
            Some(_) => return,
            None => type_of(out).or_else(|| type_of(object)),
        };
        match known.as_deref() {
            Some("object") if self.is_map(out, object, path) => self.write_as_text(out, path),
            Some("array") => {
                out.insert("type".to_owned(), "array".into());
                if !out.contains_key("items") {
                    let items = self.said_of_anything(path);
                    out.insert("items".to_owned(), items);
                }
            }
            Some(name) => {
                out.insert("type".to_owned(), name.into());
            }
            // Of the root only properties are told.
            None if path.is_empty() => {}
            None => {
                let Value::Object(anything) = self.said_of_anything(path) else { return };
                for (keyword, value) in anything {
                    out.entry(keyword).or_insert(value);
                }
            }
        }
    }

    /// Whether an object has no named properties, and the provider does not take it so.
    fn is_map(&self, out: &Object, object: &Object, path: &str) -> bool {
        let properties = out.get("properties").and_then(Value::as_object);
        let is_closed = object.get("additionalProperties") == Some(&Value::Bool(false));
        !path.is_empty() && properties.is_none_or(Map::is_empty) && !(self.dialect.strict && is_closed)
    }

    /// An object as JSON text, which the bridge reads where an object is due.
    fn write_as_text(&mut self, out: &mut Object, path: &str) {
        self.losses.retain(|loss| loss.path != path || loss.keyword != "additionalProperties");
        self.lose(path, "properties", What::Map);
        let description = match out.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description} (A JSON object, as text.)"),
            None => "A JSON object, as text.".to_owned(),
        };
        let nullable = out.shift_remove("nullable");
        out.clear();
        out.insert("type".to_owned(), "string".into());
        out.insert("description".to_owned(), description.into());
        out.extend(nullable.map(|nullable| ("nullable".to_owned(), nullable)));
    }

    /// Brings a schema into the shape that the provider wants, once everything in it is written.
    fn arrange(&self, out: &mut Object) {
        if self.dialect.nullable || (self.dialect.strict && out.contains_key("properties")) {
            spread(out);
        }
        if self.dialect.strict {
            for choice in out.get_mut("anyOf").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(choice) = choice.as_object_mut() {
                    close(choice);
                }
            }
            close(out);
        }
    }

    /// The root is an object, and nothing else is said of it.
    fn close_root(&mut self, schema: &mut Value) {
        let Some(root) = schema.as_object_mut() else { return };
        for keyword in ["anyOf", "oneOf", "allOf", "not", "enum", "const"] {
            let Some(said) = root.shift_remove(keyword) else { continue };
            self.lose("", keyword, What::Root);
            // What one of them has a property for may be given, and need not be.
            if matches!(keyword, "anyOf" | "oneOf" | "allOf") {
                let choices = said.as_array().into_iter().flatten();
                let named = choices.filter_map(|choice| choice.get("properties")?.as_object()).flatten();
                let properties = root.entry("properties").or_insert_with(|| json!({}));
                for (name, property) in named {
                    add_property(properties, name, property);
                }
            }
        }
        root.insert("type".to_owned(), "object".into());
        root.entry("properties").or_insert_with(|| json!({}));
        if self.dialect.strict {
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

/// The type of a schema without one, where the rest of it says so.
fn type_of(schema: &Object) -> Option<String> {
    if schema.contains_key("properties") {
        return Some("object".to_owned());
    }
    if schema.contains_key("items") {
        return Some("array".to_owned());
    }
    let listed = schema.get("enum").and_then(Value::as_array);
    let constant = schema.get("const").map(std::slice::from_ref);
    let mut types = listed.map(Vec::as_slice).or(constant)?.iter().map(|value| match value {
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        _ => "",
    });
    let first = types.next().filter(|first| !first.is_empty())?;
    types.all(|name| name == first).then(|| first.to_owned())
}

/// Whether one of several types wants to have properties or items, which do not stand here.
fn needs_more(schema: &Object, types: &[Value]) -> bool {
    types.iter().any(|name| match name.as_str() {
        Some("object") => !schema.contains_key("properties"),
        Some("array") => !schema.contains_key("items"),
        _ => false,
    })
}

/// Puts what stands beside `anyOf` into each of the choices: Gemini takes `anyOf` alone, and in strict mode an object that
/// lists its properties has no others.
///
/// Source: <https://github.com/patlux/pi-commandcode-provider/pull/103>, with Vertex's answer.
fn spread(schema: &mut Object) {
    let Some(Value::Array(mut choices)) = schema.shift_remove("anyOf") else { return };
    let beside = std::mem::take(schema);
    for choice in choices.iter_mut().filter_map(Value::as_object_mut) {
        for (keyword, value) in &beside {
            match (choice.get_mut(keyword), value) {
                (None, _) => {
                    choice.insert(keyword.clone(), value.clone());
                }
                (Some(Value::Object(own)), Value::Object(all)) if keyword == "properties" => {
                    for (name, property) in all {
                        own.entry(name.clone()).or_insert_with(|| property.clone());
                    }
                }
                (Some(Value::Array(own)), Value::Array(all)) if keyword == "required" => {
                    own.extend(all.iter().filter(|name| !own.contains(name)).cloned().collect::<Vec<_>>());
                }
                _ => {}
            }
        }
        spread(choice);
    }
    schema.insert("anyOf".to_owned(), Value::Array(choices));
}

/// Adds a property, or where there is another of its name, as a choice between the two.
fn add_property(properties: &mut Value, name: &str, property: &Value) {
    let Some(properties) = properties.as_object_mut() else { return };
    match properties.get_mut(name) {
        None => {
            properties.insert(name.to_owned(), property.clone());
        }
        Some(known) if known == property => {}
        Some(Value::Object(known)) if known.len() == 1 && known.contains_key("anyOf") => {
            if let Some(choices) = known["anyOf"].as_array_mut().filter(|choices| !choices.contains(property))
            {
                choices.push(property.clone());
            }
        }
        Some(known) => *known = json!({"anyOf": [known.take(), property]}),
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
