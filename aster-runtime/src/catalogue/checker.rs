//! Checks arguments against a stranger's schema, within bounds.
//!
//! What is checked by is a copy of the schema, made to be safe and to compile: patterns run on an engine of linear time,
//! and what no validator can follow (a reference to elsewhere or to nothing, a pattern of another dialect) constrains
//! nothing, so that the rest still holds. The server itself is the judge of that.

use std::sync::OnceLock;
use std::thread;

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::bounds::{self, Bounds};
use super::schema::{self, Violation};
use crate::text;
use crate::tool::JsonObject;

/// How many violations an answer lists; a model mends these first and then hears of the rest.
const MAX_VIOLATIONS: usize = 20;

/// The stack of a check that may need much: memory is taken only as far as it is used.
const STACK: usize = 256 << 20;

/// A schema's validator, made when it is first needed.
#[derive(Debug)]
pub(super) struct Checker {
    bounds: Bounds,
    validator: OnceLock<Result<Validator, String>>,
}

impl Checker {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, validator: OnceLock::new() }
    }

    /// Every violation, each once, in the order of the schema; at most twenty.
    pub(super) fn check(&self, schema: &Value, arguments: &JsonObject) -> Vec<Violation> {
        let arguments = Value::Object(arguments.clone());
        let depth = bounds::depth(&arguments);
        if !self.bounds.allow(depth) {
            return vec![Violation::whole(format!(
                "nested {depth} levels deep, which is more than this schema can be checked for"
            ))];
        }
        let check = || {
            let validator = self.validator.get_or_init(|| compile(schema));
            match validator {
                Ok(validator) => violations(validator, &arguments),
                Err(error) => vec![Violation::whole(format!("the input schema cannot be compiled: {error}"))],
            }
        };
        if !self.bounds.need_stack(depth) {
            return check();
        }
        let failed = || vec![Violation::whole("cannot be checked against this schema".to_owned())];
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("aster-check".to_owned())
                .stack_size(STACK)
                .spawn_scoped(scope, check);
            thread.map_or_else(|_| failed(), |thread| thread.join().unwrap_or_else(|_| failed()))
        })
    }
}

fn options(draft: Draft) -> ValidationOptions<'static> {
    jsonschema::options().with_draft(draft).with_pattern_options(PatternOptions::regex())
}

fn compile(original: &Value) -> Result<Validator, String> {
    let draft = schema::draft(original);
    let mut copy = original.clone();
    let own = original.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#').to_owned());
    tame(&mut copy, original, own.as_deref().filter(|id| !id.is_empty()), draft);
    options(draft).build(&copy).map_err(|error| text::one_line(&error.masked().to_string(), 200))
}

/// Takes out what cannot be followed, in every object of the schema that may be one.
fn tame(value: &mut Value, root: &Value, own: Option<&str>, draft: Draft) {
    match value {
        Value::Object(map) => {
            tame_object(map, root, own, draft);
            map.values_mut().for_each(|inner| tame(inner, root, own, draft));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| tame(inner, root, own, draft)),
        _ => {}
    }
}

fn tame_object(map: &mut Map<String, Value>, root: &Value, own: Option<&str>, draft: Draft) {
    // An identifier is where references are read from, and all that can be followed are read from the root.
    for key in ["$schema", "$id", "id"] {
        if map.get(key).is_some_and(Value::is_string) {
            map.shift_remove(key);
        }
    }
    for key in bounds::REFERENCES {
        let Some(Value::String(reference)) = map.get(key) else { continue };
        let local = own.and_then(|own| reference.strip_prefix(own)).unwrap_or(reference).to_owned();
        let leads = bounds::resolve(root, &local, |name| anchored(root, name)).is_some();
        if leads {
            map.insert(key.to_owned(), json!(local));
        } else {
            map.shift_remove(key);
        }
    }
    if map.get("pattern").and_then(Value::as_str).is_some_and(|pattern| !compiles(pattern, draft)) {
        map.shift_remove("pattern");
    }
    let bad = |patterns: &Map<String, Value>| patterns.keys().any(|pattern| !compiles(pattern, draft));
    if map.get("patternProperties").and_then(Value::as_object).is_some_and(bad) {
        // Without all of its patterns it is not known which properties are additional ones.
        for key in ["patternProperties", "additionalProperties", "unevaluatedProperties"] {
            map.shift_remove(key);
        }
    }
}

fn compiles(pattern: &str, draft: Draft) -> bool {
    options(draft).build(&json!({ "pattern": pattern })).is_ok()
}

fn anchored<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(map) => {
            let named =
                ["$anchor", "$dynamicAnchor"].iter().any(|key| map.get(*key).is_some_and(|v| v == name));
            if named { Some(value) } else { map.values().find_map(|inner| anchored(inner, name)) }
        }
        Value::Array(items) => items.iter().find_map(|inner| anchored(inner, name)),
        _ => None,
    }
}

fn violations(validator: &Validator, arguments: &Value) -> Vec<Violation> {
    if validator.is_valid(arguments) {
        return Vec::new();
    }
    let mut found: Vec<Violation> = Vec::new();
    for error in validator.iter_errors(arguments) {
        let violation = Violation {
            path: text::one_line(&error.instance_path().to_string(), 200),
            message: text::one_line(&error.masked().to_string(), 300),
        };
        if !found.contains(&violation) {
            found.push(violation);
        }
        if found.len() == MAX_VIOLATIONS {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn check(schema: Value, arguments: Value) -> Vec<Violation> {
        let (schema, bounds) = schema::normalise(Some(&schema)).unwrap();
        Checker::new(bounds).check(&schema, arguments.as_object().unwrap())
    }

    fn refused(schema: Value) -> String {
        schema::normalise(Some(&schema)).unwrap_err().to_string()
    }

    #[test]
    fn recursion_that_goes_down_is_fine() {
        let tree =
            json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        assert_eq!(check(tree.clone(), json!({"children": [{"children": []}]})), []);
        assert_eq!(check(tree.clone(), json!({"children": [3]}))[0].path, "/children/0");
        // As deep as JSON can be read.
        let mut deep = json!({});
        for _ in 0..60 {
            deep = json!({ "children": [deep] });
        }
        assert_eq!(check(tree, deep), []);
    }

    #[test]
    fn violations_name_places_and_never_values() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}},
            "required": ["a", "c"], "additionalProperties": false});
        let text = format!("{:?}", check(schema, json!({"a": "canary", "b": "canary", "d": 1})));
        assert!(!text.contains("canary"), "{text}");
        assert!(
            text.contains("/a") && text.contains("/b") && text.contains("\\\"c\\\"") && text.contains("'d'"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_followed_costs_only_itself() {
        for part in [
            json!({"$ref": "https://example.com/elsewhere.json"}),
            json!({"$ref": "#/nope"}),
            json!({"pattern": "("}),
            json!({"pattern": "(?=a)b"}),
            json!({"patternProperties": {"(": {}}, "additionalProperties": false}),
            json!({"$id": "not an id"}),
        ] {
            let schema = json!({"type": "object", "properties": {"p": part, "n": {"type": "integer"}}, "required": ["x"]});
            let found = check(schema.clone(), json!({"n": "1", "p": {"q": 1}}));
            assert_eq!(found.len(), 2, "{part}: {found:?}");
            assert_eq!(check(schema, json!({"x": 1, "p": {"q": 1}})), [], "{part}");
        }
        let own = json!({"$id": "https://example.com/s", "type": "object",
            "$defs": {"d": {"type": "integer"}}, "properties": {"n": {"$ref": "https://example.com/s#/$defs/d"}}});
        assert_eq!(check(own, json!({"n": "1"}))[0].path, "/n");
    }

    #[test]
    fn older_drafts_are_read_without_saying_so() {
        let tuple =
            json!({"type": "object", "properties": {"t": {"type": "array", "items": [{"type": "integer"}]}}});
        assert_eq!(check(tuple, json!({"t": ["x"]}))[0].path, "/t/0");
        let exclusive =
            json!({"type": "object", "properties": {"n": {"minimum": 0, "exclusiveMinimum": true}}});
        assert_eq!(check(exclusive, json!({"n": 0}))[0].path, "/n");
        let foreign =
            json!({"$schema": "https://example.com/draft-07/schema", "type": "object", "required": ["a"]});
        assert_eq!(check(foreign, json!({})).len(), 1);
    }

    /// Each would take the process, or minutes, if it were let through.
    #[test]
    fn schemas_that_attack_the_checker_are_left_out_or_bounded() {
        let began = Instant::now();
        assert!(refused(json!({"$ref": "#"})).contains("without end"));
        let pair = json!({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
            "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert!(refused(pair).contains("without end"));

        let chain = |length: usize, link: fn(usize) -> Value| {
            let defs: Map<String, Value> = (0..length).map(|at| (at.to_string(), link(at + 1))).collect();
            let mut defs = Value::Object(defs);
            defs[length.to_string()] = json!({"type": "object"});
            json!({"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/0"}}})
        };
        let to = |at: usize| json!({"$ref": format!("#/$defs/{at}")});
        assert!(refused(chain(40, to)).contains("too complex"));
        assert!(refused(chain(4_000, to)).contains("too complex"));
        let doubling = |at: usize| {
            let next = format!("#/$defs/{at}");
            json!({"anyOf": [{"$ref": next}, {"$ref": next}]})
        };
        assert!(refused(chain(22, doubling)).contains("too complex"));
        assert_eq!(check(chain(10, doubling), json!({"x": {}})), []);
        let down = |at: usize| json!({"properties": {"a": {"$ref": format!("#/$defs/{at}")}}});
        assert_eq!(check(chain(500, down), json!({"x": {}})), []);

        // Recursive, and two ways at every level: what it costs depends on the arguments.
        let branching = json!({"type": "object", "$defs": {"n": {"properties": {"a": {"anyOf": [
            {"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}}}}, "properties": {"a": {"$ref": "#/$defs/n"}}});
        let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
        let inline = json!({"type": "object", "anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        for branching in [branching, inline] {
            assert_eq!(check(branching.clone(), nested(6)), []);
            let refused = check(branching, nested(60));
            assert!(refused[0].message.contains("more than this schema can be checked for"), "{refused:?}");
        }

        // A long chain at every level of deep arguments needs a deep stack.
        let mut defs: Map<String, Value> = (0..30)
            .map(|at| {
                (
                    at.to_string(),
                    json!({"allOf": [{"$ref": format!("#/$defs/{}", at + 1)}], "not": {"type": "null"}}),
                )
            })
            .collect();
        defs.insert("30".to_owned(), json!({"properties": {"a": {"$ref": "#/$defs/0"}}}));
        let steep = json!({"type": "object", "$defs": defs, "properties": {"a": {"$ref": "#/$defs/0"}}});
        assert!(check(steep, nested(120)).len() <= 1);

        let backtracking = json!({"type": "object", "properties": {"s": {"pattern": "^(a+)+$"}}});
        assert_eq!(check(backtracking, json!({"s": format!("{}b", "a".repeat(5_000))}))[0].path, "/s");
        let anchors: Map<String, Value> = (0..400)
            .map(|at| (at.to_string(), json!({"$anchor": format!("a{at}"), "type": "object"})))
            .collect();
        let anchored: Vec<Value> = (0..400).map(|at| json!({"$ref": format!("#a{at}")})).collect();
        check(
            json!({"type": "object", "$defs": anchors, "properties": {"x": {"anyOf": anchored}}}),
            json!({"x": {}}),
        );
        // Minutes, were one of them not bounded; a second or two as it is.
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
