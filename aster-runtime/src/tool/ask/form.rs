//! The schemas of forms: the flat subset of MCP 2025-11-25, client features, elicitation, with the choices of SEP-1330 and
//! the defaults of SEP-1034. A client need not show anything else.

use serde_json::{Map, Value, json};

use super::super::JsonObject;

/// The formats that a client knows.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Whether a schema is a form that every client can show.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let root = schema.as_object().ok_or("the schema is not an object")?;
    only(root, "the schema", &["$schema", "type", "properties", "required"])?;
    if root.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the schema's `type` must be `object`".to_owned());
    }
    let none = Map::new();
    let properties = match root.get("properties") {
        Some(Value::Object(properties)) => properties,
        None => &none,
        Some(_) => return Err("`properties` is not an object".to_owned()),
    };
    for (name, property) in properties {
        check_property(property).map_err(|error| format!("`{name}`: {error}"))?;
    }
    match root.get("required") {
        None => Ok(()),
        Some(Value::Array(names)) => {
            match names.iter().find(|name| !name.as_str().is_some_and(|name| properties.contains_key(name))) {
                Some(unknown) => Err(format!("`required` names {unknown}, which is no property")),
                None => Ok(()),
            }
        }
        Some(_) => Err("`required` is not a list".to_owned()),
    }
}

fn only(schema: &JsonObject, what: &str, keywords: &[&str]) -> Result<(), String> {
    match schema.keys().find(|keyword| !keywords.contains(&keyword.as_str())) {
        Some(other) => Err(format!("`{other}` has no place in {what}")),
        None => Ok(()),
    }
}

fn check_property(property: &Value) -> Result<(), String> {
    const SAID: [&str; 4] = ["type", "title", "description", "default"];
    let property = property.as_object().ok_or("it is not an object")?;
    let allows = |what, more: &[&str]| only(property, what, &[&SAID, more].concat());
    let default = property.get("default");
    let fits = |fits: fn(&Value) -> bool| match default {
        Some(default) if !fits(default) => Err("its `default` is of another type".to_owned()),
        _ => Ok(()),
    };
    match property.get("type").and_then(Value::as_str).unwrap_or_default() {
        "string" if property.contains_key("oneOf") => {
            allows("a choice", &["oneOf"])?;
            titled(&property["oneOf"])?;
            fits(Value::is_string)
        }
        "string" if property.contains_key("enum") => {
            allows("a choice", &["enum", "enumNames"])?;
            texts(&property["enum"])?;
            property.get("enumNames").map_or(Ok(()), texts)?;
            fits(Value::is_string)
        }
        "string" => {
            allows("a text", &["minLength", "maxLength", "format"])?;
            match property.get("format") {
                Some(format) if !format.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                    Err(format!("the format {format} is none of {}", FORMATS.join(", ")))
                }
                _ => fits(Value::is_string),
            }
        }
        "number" => {
            allows("a number", &["minimum", "maximum"])?;
            fits(Value::is_number)
        }
        "integer" => {
            allows("a number", &["minimum", "maximum"])?;
            fits(|value| value.is_i64() || value.is_u64())
        }
        "boolean" => {
            allows("a truth value", &[])?;
            fits(Value::is_boolean)
        }
        "array" => {
            allows("a list of choices", &["items", "minItems", "maxItems"])?;
            let items = property.get("items").and_then(Value::as_object);
            let items = items.ok_or("a list must say by `items` what can be chosen")?;
            match (items.get("enum"), items.get("anyOf")) {
                (Some(values), None) => {
                    only(items, "`items`", &["type", "enum"])?;
                    if items.get("type").and_then(Value::as_str) != Some("string") {
                        return Err("only texts can be chosen".to_owned());
                    }
                    texts(values)?;
                }
                (None, Some(values)) => {
                    only(items, "`items`", &["anyOf"])?;
                    titled(values)?;
                }
                _ => return Err("only what can be chosen from makes a list".to_owned()),
            }
            fits(|value| texts(value).is_ok())
        }
        _ => Err("only texts, numbers, truth values and choices of texts can stand in a form".to_owned()),
    }
}

fn texts(values: &Value) -> Result<(), String> {
    match values.as_array() {
        Some(values) if values.iter().all(Value::is_string) => Ok(()),
        _ => Err("a choice is a list of texts".to_owned()),
    }
}

fn titled(values: &Value) -> Result<(), String> {
    let is_titled = |value: &Value| {
        value.as_object().is_some_and(|value| {
            value.len() == 2
                && value.get("const").is_some_and(Value::is_string)
                && value.get("title").is_some_and(Value::is_string)
        })
    };
    match values.as_array() {
        Some(values) if values.iter().all(is_titled) => Ok(()),
        _ => Err("each choice is a `const` and a `title`".to_owned()),
    }
}

/// The form for a type, from the schema that schemars makes of it.
pub(super) fn of(schema: Value) -> Result<Value, String> {
    let Value::Object(mut root) = schema else { return Err("it is no struct".to_owned()) };
    if root.get("type").and_then(Value::as_str) != Some("object") {
        return Err("it is no struct".to_owned());
    }
    let mut properties = Map::new();
    if let Some(Value::Object(all)) = root.shift_remove("properties") {
        for (name, property) in all {
            let flat = flat(property).map_err(|error| format!("`{name}`: {error}"))?;
            properties.insert(name, flat);
        }
    }
    // Of the struct itself only its fields can be said.
    for said in ["description", "additionalProperties", "$defs"] {
        root.shift_remove(said);
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    // In the order in which people write it.
    if let Some(required) = root.shift_remove("required") {
        root.insert("required".to_owned(), required);
    }
    Ok(Value::Object(root))
}

/// A field's schema in the words of a form, where it has such.
fn flat(property: Value) -> Result<Value, String> {
    let Value::Object(mut property) = property else { return Err("anything can stand there".to_owned()) };
    if property.contains_key("$ref") {
        return Err("a type that contains itself is not flat".to_owned());
    }
    if let Some(variants) = property.shift_remove("oneOf") {
        property.insert("type".to_owned(), "string".into());
        property.insert("oneOf".to_owned(), choices(&variants)?);
    }
    if property.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
        // The type itself reads what was typed.
        property.shift_remove("format");
    }
    if property.get("type").and_then(Value::as_str) == Some("array") {
        property.shift_remove("uniqueItems");
        if let Some(items) = property.get_mut("items").and_then(Value::as_object_mut) {
            items.shift_remove("description");
            if let Some(variants) = items.get("oneOf") {
                *items = Map::from_iter([("anyOf".to_owned(), choices(variants)?)]);
            }
        }
    }
    Ok(Value::Object(property))
}

/// The variants of a documented enum. A variant's title is what its documentation says.
fn choices(variants: &Value) -> Result<Value, String> {
    let variants = variants.as_array().ok_or("it is no choice")?;
    let choices = variants.iter().flat_map(|variant| {
        let title = variant.get("title").or_else(|| variant.get("description")).and_then(Value::as_str);
        let values = match (variant.get("const"), variant.get("enum")) {
            (Some(value), _) => vec![value],
            (None, Some(Value::Array(values))) => values.iter().collect(),
            _ => vec![&Value::Null],
        };
        values.into_iter().map(move |value| {
            let value = value.as_str().ok_or("an enum with data is not flat")?;
            Ok::<_, String>(json!({"const": value, "title": title.unwrap_or(value)}))
        })
    });
    choices.collect()
}

/// Whether what was filled in fits the form. What is said of it has none of it: the user answered the tool, and nobody else.
pub(super) fn validate(schema: &Value, content: &Value) -> Result<(), String> {
    let validator = jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| error.to_string())?;
    let wrong: Vec<String> = validator
        .iter_errors(content)
        .take(5)
        .map(|error| match error.instance_path().to_string() {
            at if at.is_empty() => error.masked().to_string(),
            at => format!("{at}: {}", error.masked()),
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Size {
        /// Fits in a pocket.
        Small,
        /// Does not.
        Large,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
        Green,
    }

    fn blue() -> u8 {
        7
    }

    /// An order.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Order {
        /// Whose it is.
        name: String,
        #[serde(default = "blue")]
        count: u8,
        weight: Option<f64>,
        gift: bool,
        size: Size,
        colours: Vec<Colour>,
        sizes: Vec<Size>,
    }

    #[test]
    fn a_flat_struct_is_a_form() {
        let form = of(crate::schema::form::<Order>()).unwrap();
        check(&form).unwrap();
        let sizes = json!([{"const": "small", "title": "Fits in a pocket."}, {"const": "large", "title": "Does not."}]);
        assert_eq!(
            form,
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "Whose it is."},
                    "count": {"type": "integer", "minimum": 0, "maximum": 255, "default": 7},
                    "weight": {"type": "number"},
                    "gift": {"type": "boolean"},
                    "size": {"type": "string", "oneOf": sizes},
                    "colours": {"type": "array", "items": {"type": "string", "enum": ["red", "green"]}},
                    "sizes": {"type": "array", "items": {"anyOf": sizes}},
                },
                "required": ["name", "gift", "size", "colours", "sizes"],
            })
        );
    }

    #[derive(JsonSchema)]
    struct Nested {
        #[expect(dead_code, reason = "only its schema is wanted")]
        order: Order,
    }

    #[derive(JsonSchema)]
    struct Free {
        #[expect(dead_code, reason = "only its schema is wanted")]
        words: Vec<String>,
    }

    #[test]
    fn what_is_not_flat_is_refused() {
        let refused = |schema: Value| of(schema).and_then(|form| check(&form)).unwrap_err();
        assert!(refused(crate::schema::form::<Nested>()).starts_with("`order`: "));
        assert!(refused(crate::schema::form::<Free>()).starts_with("`words`: "));
        assert_eq!(refused(crate::schema::form::<String>()), "it is no struct");
        for property in [
            json!(true),
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["string", "null"]}),
            json!({"type": "string", "format": "uuid"}),
            json!({"type": "string", "pattern": "a"}),
            json!({"type": "integer", "default": 1.5}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string", "oneOf": [{"const": "a"}]}),
            json!({"type": "string", "enum": [1]}),
        ] {
            let schema = json!({"type": "object", "properties": {"a": property}});
            assert!(check(&schema).is_err(), "{schema}");
        }
        assert!(check(&json!({"type": "object", "properties": {}, "required": ["a"]})).is_err());
    }

    #[test]
    fn every_choice_of_sep_1330_is_a_form() {
        check(&json!({"type": "object", "properties": {
            "untitled": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}]},
            "legacy": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
            "several": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "default": ["a"]},
            "several_titled": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "minItems": 1},
        }}))
        .unwrap();
    }
}
