//! Writes a schema in a provider's form, and notes what that loses.

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::{Export, Loss, What, size};
use crate::pointer;

type Object = Map<String, Value>;

/// How deep an export goes, references and choices counted, whoever it is for.
const MAX_DEPTH: usize = 32;

/// How many schemas an export may have, whoever it is for.
const MAX_SCHEMAS: usize = 6_000;

/// Keywords of which one at least says what type a value has.
const TYPED: [&str; 9] = ["type", "$ref", "anyOf", "oneOf", "allOf", "properties", "items", "enum", "const"];

pub(super) struct Writer<'a> {
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
    pub(super) fn new(dialect: &'static Dialect, root: &'a Value) -> Self {
        Self { dialect, root, losses: Vec::new(), following: Vec::new(), count: 0, level: 0 }
    }

    pub(super) fn write(mut self) -> Export {
        let mut schema = self.schema(self.root, "", 0);
        self.close_root(&mut schema);
        Export { schema, losses: self.losses }
    }

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

    /// Makes room where all arguments together are more than is taken.
    fn fit(&mut self, root: &mut Object) {
        let Some(limits) = self.dialect.limits else { return };
        let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) else { return };
        let lost = size::fit(properties, limits);
        let names = properties.keys().map(|name| Value::from(name.as_str())).collect();
        root.insert("required".to_owned(), Value::Array(names));
        for name in &lost {
            self.lose_property(name, What::Size);
        }
    }
}

/// Whether a schema takes null.
fn is_nullable(object: &Object) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let choices = object.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    object.get("type").is_some_and(|kind| kind.as_array().is_some_and(|kinds| kinds.iter().any(is_null)))
        || choices.filter_map(|choice| choice.get("type")).any(is_null)
}

/// Whether a schema is one of objects or lists.
pub(super) fn is_container(schema: &Object) -> bool {
    let is = |kind: &Value| kind == "object" || kind == "array";
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => ["properties", "items", "prefixItems"].iter().any(|keyword| schema.contains_key(*keyword)),
    }
}

/// What stands for a value as JSON text, which the bridge reads where an object or a list is due.
pub(super) fn json_text(schema: &Object) -> Value {
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
