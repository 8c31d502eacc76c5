//! Which arguments of a tool name a destination. Pure.
//!
//! An argument is one where its schema says so (`format: uri` and its like), where its name says so, or where whoever
//! declared or configured the tool says so; at whatever depth, in lists and in what the schema leaves open. Every text that is
//! a whole URL is one too within an object that stands for a destination, and anywhere among the arguments of a tool that says
//! it reaches beyond a closed world. A URL in the middle of a text is none: a note or a search that mentions one goes nowhere.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use crate::destination::Sort;
use crate::destination::{by_format, by_name};
use crate::pointer;

/// How deep a schema is read.
const MAX_DEPTH: usize = 64;

/// The arguments of one tool that name a destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Governed {
    urls: BTreeSet<String>,
    hosts: BTreeSet<String>,
    free: BTreeSet<String>,
    open_world: bool,
}

/// A text in arguments that names a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
    /// The text.
    pub text: &'a str,
    /// How it is to be read.
    pub sort: Sort,
    /// The port, where the argument beside it, `port`, says one.
    pub port: Option<u16>,
}

impl Governed {
    /// What this schema and its names say.
    #[must_use]
    pub fn of(schema: &Value) -> Self {
        let mut governed = Self::default();
        governed.read(schema, "", 0);
        governed
    }

    /// The same, with these names of arguments too.
    #[must_use]
    pub fn with<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.urls.extend(names.into_iter().map(Into::into));
        self
    }

    /// The same, without these.
    #[must_use]
    pub fn without<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.free.extend(names.into_iter().map(Into::into));
        self
    }

    /// The same, of a tool that reaches beyond a closed world, if it does.
    #[must_use]
    pub fn open_world(self, open_world: bool) -> Self {
        Self { open_world, ..self }
    }

    /// How an argument of this name is read; `None` where it names no destination.
    #[must_use]
    pub fn sort(&self, name: &str) -> Option<Sort> {
        if self.free.contains(name) {
            return None;
        }
        if self.urls.contains(name) {
            return Some(Sort::Url);
        }
        if self.hosts.contains(name) {
            return Some(Sort::Host);
        }
        by_name(name)
    }

    /// Every text among these arguments that names a destination.
    #[must_use]
    pub fn named<'a>(&self, arguments: &'a Map<String, Value>) -> Vec<Named<'a>> {
        let mut search = Search { governed: self, steps: Vec::new(), named: Vec::new() };
        search.object(arguments, self.open_world);
        search.named
    }

    /// Notes the properties whose own schema, or that of whose items, says so.
    fn read(&mut self, schema: &Value, name: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        match schema {
            Value::Object(fields) => {
                match by_format(schema) {
                    _ if name.is_empty() => {}
                    Some(Sort::Url) => drop(self.urls.insert(name.to_owned())),
                    Some(Sort::Host) => drop(self.hosts.insert(name.to_owned())),
                    _ => {}
                }
                for (key, inner) in fields {
                    match (key.as_str(), inner) {
                        (
                            "properties" | "patternProperties" | "dependentSchemas",
                            Value::Object(properties),
                        ) => {
                            for (property, schema) in properties {
                                self.read(schema, property, depth + 1);
                            }
                        }
                        ("$defs" | "definitions", Value::Object(definitions)) => {
                            for schema in definitions.values() {
                                self.read(schema, "", depth + 1);
                            }
                        }
                        ("$ref", Value::String(_)) => {}
                        _ => self.read(inner, name, depth + 1),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.read(item, name, depth + 1)),
            _ => {}
        }
    }
}

/// How an argument is read.
#[derive(Clone, Copy)]
struct Read {
    /// What a text is, alone or in a list.
    text: Option<Sort>,
    /// Whether every text within an object that is a whole URL is a destination.
    whole: bool,
}

struct Search<'g, 'a> {
    governed: &'g Governed,
    steps: Vec<String>,
    named: Vec<Named<'a>>,
}

impl<'a> Search<'_, 'a> {
    /// Looks through the members of an object; `whole` is that of what it stands for.
    fn object(&mut self, fields: &'a Map<String, Value>, whole: bool) {
        let port = fields.get("port").and_then(|port| match port {
            Value::Number(number) => number.as_u64().and_then(|port| u16::try_from(port).ok()),
            Value::String(text) => text.parse().ok(),
            _ => None,
        });
        for (name, value) in fields {
            let read = match self.governed.free.contains(name) {
                true => Read { text: None, whole },
                false => {
                    let sort = self.governed.sort(name);
                    Read { text: sort.or(whole.then_some(Sort::Text)), whole: whole || sort.is_some() }
                }
            };
            self.steps.push(pointer::step(name).into_owned());
            self.value(value, read, port);
            self.steps.pop();
        }
    }

    fn value(&mut self, value: &'a Value, read: Read, port: Option<u16>) {
        match value {
            Value::String(text) => {
                if let Some(sort) = read.text {
                    let pointer = self.steps.iter().flat_map(|step| ["/", step]).collect();
                    self.named.push(Named { pointer, text, sort, port });
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.steps.push(at.to_string());
                    self.value(item, read, port);
                    self.steps.pop();
                }
            }
            // What an object that is called `url` has may be a title as well, but a URL in it is meant.
            Value::Object(fields) => self.object(fields, read.whole),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn formats_and_declarations_say_it() {
        let schema = json!({"type": "object", "properties": {
            "page": {"type": "string", "format": "uri"},
            "pages": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "string", "format": "uri-reference"}]}},
            "machine": {"$ref": "#/$defs/machine"},
            "text": {"type": "string"},
        }, "$defs": {"machine": {"type": "object", "properties": {"where": {"format": "ipv4"}}}}});
        let governed = Governed::of(&schema).with(["target"]).without(["link"]);
        for (name, sort) in [
            ("page", Some(Sort::Url)),
            ("pages", Some(Sort::Url)),
            ("where", Some(Sort::Host)),
            ("target", Some(Sort::Url)),
            ("machine", None),
            ("text", None),
            ("link", None),
        ] {
            assert_eq!(governed.sort(name), sort, "{name}");
        }
    }

    #[test]
    fn a_url_within_what_is_called_one_is_meant() {
        for arguments in [
            json!({"url": {"value": "http://127.0.0.1"}}),
            json!({"urls": [{"loc": "http://127.0.0.1"}]}),
            json!({"endpoint": {"primary": {"any": ["http://127.0.0.1"]}}}),
        ] {
            let named = Governed::default().named(arguments.as_object().unwrap()).pop().unwrap();
            assert_eq!((named.text, named.sort), ("http://127.0.0.1", Sort::Text), "{arguments}");
        }
        let aside = json!({"note": {"value": "http://127.0.0.1"}, "free": {"url": "a", "value": "http://b"}});
        let governed = Governed::default().without(["free"]);
        let named = governed.named(aside.as_object().unwrap());
        assert_eq!(named.iter().map(|named| named.text).collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn they_are_found_at_any_depth() {
        let arguments = json!({
            "url": "a",
            "items": [{"links": ["b", {"text": "c", "href": "d"}]}],
            "database": {"host": "e", "port": 5432},
            "text": "f",
            "free_url": "g",
        });
        let found = |governed: Governed| -> Vec<(String, Sort, Option<u16>)> {
            let named = governed.named(arguments.as_object().unwrap());
            named.into_iter().map(|named| (named.text.to_owned(), named.sort, named.port)).collect()
        };
        let governed = Governed::default().without(["free_url"]);
        let strict = [
            ("a".to_owned(), Sort::Url, None),
            ("b".to_owned(), Sort::Url, None),
            ("c".to_owned(), Sort::Text, None),
            ("d".to_owned(), Sort::Url, None),
            ("e".to_owned(), Sort::Host, Some(5432)),
        ];
        assert_eq!(found(governed.clone()), strict);
        let all = found(governed.open_world(true));
        let texts: Vec<&str> = all.iter().map(|(text, ..)| text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d", "e", "f"]);
        assert_eq!(all[2].1, Sort::Text);
    }
}
