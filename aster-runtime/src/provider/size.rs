//! How large a schema may be for a provider, and what goes where one is larger.

use serde_json::{Map, Value};

use super::writer::{is_container, json_text};

/// How large a schema may be.
#[derive(Debug)]
pub(super) struct Limits {
    /// Objects and lists in each other, the root counted.
    pub(super) levels: usize,
    /// Properties of all objects together.
    pub(super) properties: usize,
    /// Values of all enums together.
    pub(super) values: usize,
    /// Values of one enum whose texts may be of any length.
    pub(super) free_values: usize,
    /// Characters of the texts of a longer one.
    pub(super) enum_characters: usize,
    /// Characters of all names of properties, and of all texts that are listed or constant.
    pub(super) characters: usize,
}

impl Limits {
    /// Whether one enum is too long.
    pub(super) fn refuse(&self, values: &[Value]) -> bool {
        let characters: usize = values.iter().map(characters).sum();
        values.len() > self.values || (values.len() > self.free_values && characters > self.enum_characters)
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
    /// Of an argument's name.
    fn of_name(name: &str) -> Self {
        Self { properties: 1, values: 0, characters: name.chars().count() }
    }

    /// Of what is in a schema.
    fn of(schema: &Value) -> Self {
        let mut size = Self::default();
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            size.values = values.len();
            size.characters = values.iter().map(characters).sum();
        }
        size.characters += schema.get("const").map(characters).unwrap_or_default();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            size.add(&Self::of_name(name));
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

/// Makes room among arguments that together are more than is taken: of the heaviest nothing but its type stays, and where
/// that is not enough, the last ones go. Gives back the names of those that it touched.
pub(super) fn fit(properties: &mut Map<String, Value>, limits: &Limits) -> Vec<String> {
    let mut total = Size::default();
    let mut inside: Vec<(String, Size)> = Vec::new();
    for (name, property) in properties.iter() {
        let size = Size::of(property);
        total.add(&Size::of_name(name));
        total.add(&size);
        if size != Size::default() {
            inside.push((name.clone(), size));
        }
    }
    let mut lost = Vec::new();
    while let Some(weight) = total.over(limits) {
        let heaviest = (0..inside.len()).max_by_key(|at| weight(&inside[*at].1));
        let name = if let Some(at) = heaviest.filter(|at| weight(&inside[*at].1) > 0) {
            let (name, size) = inside.swap_remove(at);
            properties.get_mut(&name).into_iter().for_each(lighten);
            total.subtract(&size);
            name
        } else {
            let Some(name) = properties.keys().next_back().cloned() else { break };
            properties.shift_remove(&name);
            total.subtract(&Size::of_name(&name));
            if let Some(at) = inside.iter().position(|(known, _)| *known == name) {
                total.subtract(&inside.swap_remove(at).1);
            }
            name
        };
        lost.push(name);
    }
    lost
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
