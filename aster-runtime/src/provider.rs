//! What the providers of models take of JSON Schema, and a tool's schema in the form of each.
//!
//! An export is a copy: references are followed, and what a provider refuses is written otherwise where that says the same,
//! and left out with a [`Loss`] where it does not. Every loss is by a [`Rule`], which says why and where that is written. What
//! is left out mostly widens the schema, so arguments are checked against the tool's own; a rule that
//! [narrows](field@Rule::narrows) keeps a model from arguments that the tool would take. Pure, and bounded in depth and size:
//! schemas come from strangers too.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::pointer;

type Object = Map<String, Value>;

/// How deep an export goes, references and choices counted, whoever it is for.
const MAX_DEPTH: usize = 32;

/// How many schemas an export may have, whoever it is for.
const MAX_SCHEMAS: usize = 6_000;

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
    /// assert!(export.losses[0].rule.source.starts_with("https://developers.openai.com/"));
    /// ```
    #[must_use]
    pub fn export(self, schema: &Value) -> Export {
        let Some(dialect) = self.dialect() else {
            return Export { schema: schema.clone(), losses: Vec::new() };
        };
        let mut writer =
            Writer { dialect, root: schema, losses: Vec::new(), following: Vec::new(), count: 0, level: 0 };
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
    /// A longer list of values than there is room for.
    Listed,
    /// Objects and lists that stand deeper in each other than there is room for.
    Depth,
    /// The name of a property.
    Name,
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
        "it leads through more schemas than are written out; lists of tools have failed over such",
        "https://github.com/wso2/api-manager/issues/5189",
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
    /// Of names of arguments; the names of what is inside of them are free.
    names: Option<fn(&str) -> bool>,
    limits: Option<&'static Limits>,
    rules: &'static [Rule],
}

/// How large a schema may be.
#[derive(Debug)]
struct Limits {
    /// Objects and lists in each other, the root counted.
    levels: usize,
    /// Properties of all objects together.
    properties: usize,
    /// Values of all enums together.
    values: usize,
    /// Values of one enum whose texts may be of any length.
    free_values: usize,
    /// Characters of the texts of a longer one.
    enum_characters: usize,
    /// Characters of all names of properties, and of all texts that are listed or constant.
    characters: usize,
}

impl Limits {
    /// Whether one enum is too long.
    fn refuse(&self, values: &[Value]) -> bool {
        let characters: usize = values.iter().map(characters).sum();
        values.len() > self.values || (values.len() > self.free_values && characters > self.enum_characters)
    }
}

static OPENAI: Dialect = Dialect {
    keywords: None,
    formats: None,
    strict: false,
    nullable: false,
    names: None,
    limits: None,
    rules: &[Rule::widens(
        What::Root,
        "the root can only be an object",
        "https://developers.openai.com/api/docs/guides/function-calling",
    )],
};

static ANTHROPIC: Dialect = Dialect {
    names: Some(is_plain_name),
    rules: &[
        Rule::widens(
            What::Root,
            "the root can only be an object",
            "https://github.com/diegosouzapw/OmniRoute/issues/13552",
        ),
        // Only the arguments themselves are looked at; renamed, the model's answer would have to be renamed back.
        Rule::narrows(
            What::Name,
            "an argument's name is of 1 to 64 letters, digits, `_`, `.` and `-`, or the whole request is refused; one of \
             another name cannot be given",
            "https://github.com/aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws/issues/709",
        ),
    ],
    ..OPENAI
};

/// `^[a-zA-Z0-9_.-]{1,64}$`
fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

const SUPPORTED: &str = "https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas";

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
    names: None,
    limits: Some(&Limits {
        levels: 10,
        properties: 5_000,
        values: 1_000,
        free_values: 250,
        enum_characters: 15_000,
        characters: 120_000,
    }),
    rules: &[
        Rule::widens(
            What::Root,
            "the root can only be an object",
            "https://developers.openai.com/api/docs/guides/structured-outputs#root-objects-must-not-be-anyof-and-must-be-an-object",
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
            "https://developers.openai.com/api/docs/guides/structured-outputs#additionalproperties-false-must-always-be-set-in-objects",
        ),
        Rule::widens(
            What::Map,
            "an object without fixed names cannot be said; it is written as JSON text",
            "https://developers.openai.com/api/docs/guides/structured-outputs#additionalproperties-false-must-always-be-set-in-objects",
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
        Rule::widens(
            What::Depth,
            "objects and lists stand at most ten deep in each other; what is deeper is written as JSON text",
            "https://developers.openai.com/api/docs/guides/structured-outputs#objects-have-limitations-on-nesting-depth-and-size",
        ),
        Rule::widens(
            What::Listed,
            "an enum lists at most 1000 values, and of more than 250 texts at most 15000 characters",
            "https://developers.openai.com/api/docs/guides/structured-outputs#limitations-on-enum-size",
        ),
        Rule::narrows(
            What::Size,
            "the schema has more properties, listed values or characters than are taken together; a text or a number \
             stands there, or nothing",
            "https://developers.openai.com/api/docs/guides/structured-outputs#limitations-on-total-string-size",
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
    names: None,
    limits: None,
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
            "it leads through more schemas than are written out; a text, a number or a boolean stands there",
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
    /// How many objects and lists stand around what is being written.
    level: usize,
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
        if self.dialect.limits.is_some_and(|limits| self.level >= limits.levels) && is_container(object) {
            self.lose(path, "type", What::Depth);
            return json_text(object);
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

    /// A schema one level down: of a property, or of the items of a list.
    fn inner(&mut self, schema: &'a Value, path: &str, depth: usize) -> Value {
        self.level += 1;
        let written = self.schema(schema, path, depth + 1);
        self.level -= 1;
        written
    }

    fn reference(&mut self, object: &'a Object, reference: &'a str, path: &str, depth: usize) -> Value {
        let followed = match pointer::target(self.root, reference) {
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
        let at = format!("{path}/{}", pointer::step(keyword));
        match (keyword, value) {
            ("$defs" | "definitions" | "$schema" | "$id" | "$comment" | "title", _) => {}
            ("properties", Value::Object(properties)) => {
                let mut written = Object::new();
                for (name, property) in properties {
                    let at = format!("{at}/{}", pointer::step(name));
                    written.insert(name.clone(), self.inner(property, &at, depth));
                }
                out.insert(keyword.to_owned(), Value::Object(written));
            }
            ("items", items @ Value::Object(_)) => {
                out.insert(keyword.to_owned(), self.inner(items, &at, depth));
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
                    let item = self.inner(item, &format!("{at}/{place}"), depth);
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
                out.insert(keyword.to_owned(), self.inner(schema, &at, depth));
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
            ("enum", Value::Array(values))
                if self.dialect.limits.is_some_and(|limits| limits.refuse(values)) =>
            {
                self.lose(path, keyword, What::Listed);
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
        let Value::Object(text) = json_text(out) else { return };
        let nullable = out.shift_remove("nullable");
        *out = text;
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
        self.leave_out_names(root);
        if self.dialect.strict {
            close(root);
        }
        self.fit(root);
    }

    /// Leaves out the arguments whose names are not taken.
    fn leave_out_names(&mut self, root: &mut Object) {
        let Some(takes) = self.dialect.names else { return };
        let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let mut out = Vec::new();
        properties.retain(|name, _| {
            let taken = takes(name);
            if !taken {
                out.push(name.clone());
            }
            taken
        });
        for name in &out {
            self.lose_property(name, What::Name);
        }
        if let Some(Value::Array(required)) = root.get_mut("required") {
            required.retain(|name| !out.iter().any(|out| name == out));
            if required.is_empty() {
                root.shift_remove("required");
            }
        }
    }

    /// A whole argument is lost, and with it whatever was lost of it.
    fn lose_property(&mut self, name: &str, what: What) {
        let path = format!("/properties/{}", pointer::step(name));
        self.losses.retain(|loss| {
            !loss.path.strip_prefix(&path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        self.lose(&path, "properties", what);
    }

    /// Makes room where all arguments together are more than is taken: of the heaviest nothing but its type stays, and
    /// where that is not enough, the last ones go.
    fn fit(&mut self, root: &mut Object) {
        let Some(limits) = self.dialect.limits else { return };
        let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let own = |name: &str| Size { properties: 1, values: 0, characters: name.chars().count() };
        let mut total = Size::default();
        let mut inside: Vec<(String, Size)> = Vec::new();
        for (name, property) in properties.iter() {
            let size = Size::of(property);
            total.add(&own(name));
            total.add(&size);
            inside.push((name.clone(), size));
        }
        inside.retain(|(_, size)| *size != Size::default());
        while let Some(weight) = total.over(limits) {
            let heaviest = (0..inside.len()).max_by_key(|at| weight(&inside[*at].1));
            match heaviest.filter(|at| weight(&inside[*at].1) > 0) {
                Some(at) => {
                    let (name, size) = inside.swap_remove(at);
                    if let Some(property) = properties.get_mut(&name) {
                        lighten(property);
                    }
                    total.subtract(&size);
                    self.lose_property(&name, What::Size);
                }
                None => {
                    let Some(name) = properties.keys().next_back().cloned() else { return };
                    properties.shift_remove(&name);
                    total.subtract(&own(&name));
                    if let Some(at) = inside.iter().position(|(known, _)| *known == name) {
                        total.subtract(&inside.swap_remove(at).1);
                    }
                    self.lose_property(&name, What::Size);
                }
            }
        }
        let names = properties.keys().map(|name| Value::from(name.as_str())).collect();
        root.insert("required".to_owned(), Value::Array(names));
    }
}

/// What of an exported schema counts against [`Limits`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Size {
    properties: usize,
    values: usize,
    characters: usize,
}

impl Size {
    fn of(schema: &Value) -> Self {
        let mut size = Self::default();
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            size.values = values.len();
            size.characters = values.iter().map(characters).sum();
        }
        size.characters += schema.get("const").map(characters).unwrap_or_default();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            size.properties += 1;
            size.characters += name.chars().count();
            size.add(&Self::of(property));
        }
        let choices = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        choices.chain(schema.get("items")).for_each(|inner| size.add(&Self::of(inner)));
        size
    }

    fn add(&mut self, other: &Self) {
        self.properties += other.properties;
        self.values += other.values;
        self.characters += other.characters;
    }

    fn subtract(&mut self, other: &Self) {
        self.properties -= other.properties;
        self.values -= other.values;
        self.characters -= other.characters;
    }

    /// What there is too much of, where there is.
    fn over(&self, limits: &Limits) -> Option<fn(&Self) -> usize> {
        if self.properties > limits.properties {
            return Some(|size| size.properties);
        }
        if self.values > limits.values {
            return Some(|size| size.values);
        }
        (self.characters > limits.characters).then_some(|size| size.characters)
    }
}

/// The characters of a listed value that count.
fn characters(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}

/// Takes out of a property of an export all that counts, and leaves what kind of value it is.
fn lighten(property: &mut Value) {
    let Some(object) = property.as_object_mut() else { return };
    if is_container(object) || object.contains_key("anyOf") {
        *property = json_text(object);
        return;
    }
    object.shift_remove("enum");
    object.shift_remove("const");
}

/// Whether a schema takes null.
fn is_nullable(object: &Object) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let choices = object.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    object.get("type").is_some_and(|kind| kind.as_array().is_some_and(|kinds| kinds.iter().any(is_null)))
        || choices.filter_map(|choice| choice.get("type")).any(is_null)
}

/// Whether a schema is one of objects or lists.
fn is_container(schema: &Object) -> bool {
    let is = |kind: &Value| kind == "object" || kind == "array";
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => ["properties", "items", "prefixItems"].iter().any(|keyword| schema.contains_key(*keyword)),
    }
}

/// What stands for a value as JSON text, which the bridge reads where an object or a list is due.
fn json_text(schema: &Object) -> Value {
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter(|kind| **kind != "null").collect(),
        one => Vec::from_iter(one),
    };
    let is_list = ["items", "prefixItems"].iter().any(|keyword| schema.contains_key(*keyword));
    let what = match kinds.as_slice() {
        [only] if **only == "object" => "A JSON object, as text.",
        [only] if **only == "array" => "A JSON array, as text.",
        [] if is_list => "A JSON array, as text.",
        [] if !schema.contains_key("anyOf") => "A JSON object, as text.",
        _ => "A JSON value, as text.",
    };
    let description = match schema.get("description").and_then(Value::as_str) {
        Some(description) => format!("{description} ({what})"),
        None => what.to_owned(),
    };
    let mut text = json!({"type": "string", "description": description});
    if is_nullable(schema) {
        allow_null(&mut text);
    }
    text
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
