//! Checks arguments against a stranger's schema, within bounds.
//!
//! What is checked by is a copy of the schema, made to be safe and to compile: patterns run on an engine of linear time,
//! and what no validator can follow (a reference to elsewhere or to nothing, a pattern of another dialect) constrains
//! nothing, so that the rest still holds. The server itself is the judge of that.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::thread;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

use super::bounds::{self, Bounds, Links, Shape};
use super::schema::Violation;
use crate::text;
use crate::tool::JsonObject;

/// How many violations an answer lists; a model mends these first and then hears of the rest.
const MAX_VIOLATIONS: usize = 20;

/// How many errors are looked through for misplaced values.
const MAX_MISPLACED: usize = 10_000;

/// How large one compiled pattern may be, in bytes, and so how slow.
const MAX_PATTERN: usize = 128 << 10;

/// How long a pattern may be, in bytes, and how many different ones are used.
const MAX_PATTERN_LENGTH: usize = 1_000;
const MAX_PATTERNS: usize = 200;

/// The stack of a check that may need much: memory is taken only as far as it is used.
const STACK: usize = 256 << 20;

/// A schema's validator, made when it is first needed.
#[derive(Debug)]
pub(super) struct Checker {
    bounds: Bounds,
    draft: Draft,
    validator: OnceLock<Result<Validator, String>>,
}

impl Checker {
    /// For a schema of this draft, within these bounds.
    pub(super) fn new(bounds: Bounds, draft: Draft) -> Self {
        Self { bounds, draft, validator: OnceLock::new() }
    }

    /// The keywords of the schema that are not checked, as they are written: references to elsewhere or to nothing, and
    /// patterns that the engine does not take.
    ///
    /// # Errors
    ///
    /// Where nothing can be checked by the schema, with the reason.
    pub(super) fn unchecked(&self, schema: &Value) -> Result<Vec<String>, String> {
        let (tame, left_out) = tamed(schema, self.draft);
        build(&tame, self.draft).map(|_| left_out)
    }

    /// Every violation, each once, in the order of the schema; at most twenty.
    pub(super) fn check(&self, schema: &Value, arguments: &JsonObject) -> Vec<Violation> {
        self.with(schema, arguments, violations).unwrap_or_else(|why| vec![Violation::whole(why)])
    }

    /// The places of the values of one kind that do not fit where they stand, as JSON pointers. Among alternatives those
    /// of the only one that is kept from fitting by such values alone.
    pub(super) fn misplaced(
        &self,
        schema: &Value,
        arguments: &JsonObject,
        is: fn(&Value) -> bool,
    ) -> Vec<String> {
        let places = |validator: &Validator, arguments: &Value| {
            let errors = validator.iter_errors(arguments).take(MAX_MISPLACED);
            errors.filter_map(|error| misplaced(&error, is)).flatten().collect()
        };
        self.with(schema, arguments, places).unwrap_or_default()
    }

    /// Runs `check` with the validator, on a stack that suffices, if that ends in good time.
    fn with<T: Send>(
        &self,
        schema: &Value,
        arguments: &JsonObject,
        check: impl FnOnce(&Validator, &Value) -> T + Send,
    ) -> Result<T, String> {
        let arguments = Value::Object(arguments.clone());
        let need_stack = self.bounds.need_stack(&arguments);
        let run = || {
            if !self.bounds.allow(schema, &arguments) {
                return Err(
                    "more than this schema can be checked for: nested too deeply, or too many".to_owned()
                );
            }
            match self.validator.get_or_init(|| compile(schema, self.draft)) {
                Ok(validator) => Ok(check(validator, &arguments)),
                Err(error) => Err(format!("the input schema cannot be compiled: {error}")),
            }
        };
        if !need_stack {
            return run();
        }
        let failed = || Err("cannot be checked against this schema".to_owned());
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .name("aster-check".to_owned())
                .stack_size(STACK)
                .spawn_scoped(scope, run);
            thread.map_or_else(|_| failed(), |thread| thread.join().unwrap_or_else(|_| failed()))
        })
    }
}

/// What an error says is misplaced, if it says nothing else.
fn misplaced(error: &ValidationError<'_>, is: fn(&Value) -> bool) -> Option<Vec<String>> {
    if is(error.instance()) {
        return Some(vec![error.instance_path().to_string()]);
    }
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let mut alternatives = context.iter().filter_map(|errors| {
        let places = errors.iter().map(|error| misplaced(error, is)).collect::<Option<Vec<_>>>()?;
        Some(places.concat())
    });
    // With several it is not known which was meant.
    alternatives.next().filter(|_| alternatives.next().is_none())
}

fn options(draft: Draft) -> ValidationOptions<'static> {
    let patterns = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
    jsonschema::options().with_draft(draft).with_pattern_options(patterns)
}

fn compile(original: &Value, draft: Draft) -> Result<Validator, String> {
    build(&tamed(original, draft).0, draft)
}

fn build(schema: &Value, draft: Draft) -> Result<Validator, String> {
    options(draft).build(schema).map_err(|error| text::one_line(&error.masked().to_string(), 200))
}

/// A schema that can be followed, and what was left out of it.
fn tamed(original: &Value, draft: Draft) -> (Value, Vec<String>) {
    let links = Links::of(original);
    let mut taming = Taming {
        links: &links,
        draft,
        patterns: HashMap::new(),
        elsewhere: false,
        looser_targets: false,
        left_out: Vec::new(),
    };
    let mut copy = original.clone();
    if taming.tame(&mut copy, true) {
        // Whatever is referred to may be what became looser.
        taming.looser_targets = true;
        copy = original.clone();
        taming.left_out.clear();
        taming.tame(&mut copy, true);
        without_unevaluated(&mut copy);
    }
    (copy, taming.left_out)
}

/// Takes out of a schema what cannot be followed, so that what is left accepts at least what the whole does.
struct Taming<'t> {
    links: &'t Links<'t>,
    draft: Draft,
    /// The patterns seen so far, and whether they can be used.
    patterns: HashMap<String, bool>,
    /// Whether this is inside of a schema with an identifier of its own, from which its references are read.
    elsewhere: bool,
    /// Whether the targets of references count as looser.
    looser_targets: bool,
    /// What was taken out, as it was written.
    left_out: Vec<String>,
}

impl Taming<'_> {
    /// Tames a schema and those in it. Says whether it accepts more than before: then it must not stand where accepting
    /// more means to refuse.
    fn tame(&mut self, schema: &mut Value, is_root: bool) -> bool {
        let Value::Object(map) = schema else { return false };
        let outside = self.elsewhere;
        self.elsewhere |=
            !is_root && ["$id", "id"].iter().any(|key| map.get(*key).is_some_and(Value::is_string));
        let mut looser = self.tame_keywords(map);
        let mut looser_keys: Vec<String> = Vec::new();
        for (key, inner) in map.iter_mut() {
            let Some((_, shape)) = bounds::keyword(key) else { continue };
            let mut inner_looser = false;
            match (shape, inner) {
                (Shape::One | Shape::OneOrList, inner @ Value::Object(_)) => {
                    inner_looser = self.tame(inner, false)
                }
                (Shape::List | Shape::OneOrList, Value::Array(items)) => {
                    items.iter_mut().for_each(|inner| inner_looser |= self.tame(inner, false));
                }
                (Shape::Named, Value::Object(named)) => {
                    named.values_mut().for_each(|inner| inner_looser |= self.tame(inner, false));
                }
                _ => {}
            }
            if inner_looser {
                looser_keys.push(key.clone());
                looser = true;
            }
        }
        let is_looser = |key: &str| looser_keys.iter().any(|looser| looser == key);
        if is_looser("not") {
            map.shift_remove("not");
        }
        if is_looser("if") {
            ["if", "then", "else"].iter().for_each(|key| drop(map.shift_remove(*key)));
        }
        if is_looser("contains") {
            map.shift_remove("maxContains");
        }
        // One of them and no other: with looser ones, at least one.
        if is_looser("oneOf")
            && let Some(branches) = map.shift_remove("oneOf")
        {
            let any = json!({ "anyOf": branches });
            match map.get_mut("allOf") {
                Some(Value::Array(all)) => all.push(any),
                _ => drop(map.insert("allOf".to_owned(), json!([any]))),
            }
        }
        self.elsewhere = outside;
        looser
    }

    /// The keywords of one schema that hold no schemas.
    fn tame_keywords(&mut self, map: &mut Map<String, Value>) -> bool {
        // An identifier is where references are read from, and all that can be followed are read from the root.
        for key in ["$schema", "$id", "id"] {
            if map.get(key).is_some_and(Value::is_string) {
                map.shift_remove(key);
            }
        }
        let mut looser = false;
        for key in bounds::REFERENCES {
            let Some(Value::String(reference)) = map.get(key) else { continue };
            if let Some(local) = self.links.local(reference).filter(|_| !self.elsewhere) {
                let local = json!(local);
                map.insert(key.to_owned(), local);
                looser |= self.looser_targets;
            } else {
                self.leave_out(map, key);
                looser = true;
            }
        }
        if let Some(Value::String(pattern)) = map.get("pattern")
            && !self.usable(&pattern.clone())
        {
            self.leave_out(map, "pattern");
            looser = true;
        }
        let patterns: Vec<String> = map
            .get("patternProperties")
            .and_then(Value::as_object)
            .map(|named| named.keys().cloned().collect())
            .unwrap_or_default();
        if !patterns.iter().all(|pattern| self.usable(pattern)) {
            // Without all of its patterns it is not known which properties are additional ones.
            for key in ["patternProperties", "additionalProperties"] {
                self.leave_out(map, key);
            }
            looser = true;
        }
        looser
    }

    fn leave_out(&mut self, map: &mut Map<String, Value>, key: &str) {
        if let Some(value) = map.shift_remove(key) {
            self.left_out.push(text::one_line(&format!("\"{key}\": {value}"), 200));
        }
    }

    /// Whether the engine takes a pattern. Of very many no more are tried.
    fn usable(&mut self, pattern: &str) -> bool {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let usable = self.patterns.len() < MAX_PATTERNS
            && pattern.len() <= MAX_PATTERN_LENGTH
            && options(self.draft).build(&json!({ "pattern": pattern })).is_ok();
        self.patterns.insert(pattern.to_owned(), usable);
        usable
    }
}

/// What has been evaluated is not known where something is not followed.
fn without_unevaluated(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for key in ["unevaluatedProperties", "unevaluatedItems"] {
                // As a keyword, not as the name of a property or of a definition.
                if map.get(key).is_some_and(|value| value.is_boolean() || value.is_object()) {
                    map.shift_remove(key);
                }
            }
            for (key, inner) in map.iter_mut() {
                match (bounds::keyword(key).map(|(_, shape)| shape), inner) {
                    (Some(Shape::Named), Value::Object(named)) => {
                        named.values_mut().for_each(without_unevaluated)
                    }
                    (Some(_), inner) => without_unevaluated(inner),
                    (None, _) => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_unevaluated),
        _ => {}
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

    use super::super::schema;
    use super::*;

    fn check(schema: Value, arguments: Value) -> Vec<Violation> {
        let (schema, checker) = schema::normalise(Some(&schema)).unwrap();
        checker.check(&schema, arguments.as_object().unwrap())
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

    /// Where accepting more means to refuse, what is not followed takes its surroundings with it.
    #[test]
    fn what_cannot_be_followed_never_refuses() {
        let elsewhere = json!({"$ref": "https://example.com/elsewhere.json"});
        for part in [
            json!({ "not": elsewhere }),
            json!({"not": {"pattern": "^(?!a)"}}),
            json!({"not": {"$ref": "#/$defs/loose"}}),
            json!({"oneOf": [{"pattern": "^(?=a)"}, {"pattern": "^(?!a)"}]}),
            json!({"if": {"pattern": "^(?!a)"}, "then": {"const": 1}}),
        ] {
            let schema = json!({"type": "object", "$defs": {"loose": elsewhere}, "properties": {"p": part}});
            assert_eq!(check(schema, json!({"p": "a"})), [], "{part}");
        }
        for part in [elsewhere.clone(), json!({"patternProperties": {"^(?=v)": {}}})] {
            let schema = json!({"type": "object", "allOf": [part], "unevaluatedProperties": false});
            assert_eq!(check(schema, json!({"v": 1})), [], "{part}");
        }
        let own = json!({"type": "object", "$defs": {"n": {"type": "string"}}, "properties": {"y": {"$id": "https://example.com/y",
            "$defs": {"n": {"type": "integer"}}, "properties": {"v": {"$ref": "#/$defs/n"}}}}});
        assert_eq!(check(own, json!({"y": {"v": 1}})), []);
    }

    #[test]
    fn data_in_a_schema_is_no_schema() {
        let value = json!({"id": "a", "v": 1});
        let schema = json!({"type": "object", "properties": {"p": {"const": value}, "e": {"enum": [{"$ref": "#"}]},
            "d": {"default": {"$ref": "#/properties/d/default"}}}});
        assert_eq!(check(schema.clone(), json!({"p": value, "e": {"$ref": "#"}})), []);
        assert_eq!(check(schema.clone(), json!({"p": {"v": 1}})).len(), 1);
        assert_eq!(check(schema, json!({"e": {}})).len(), 1);
        let named = json!({"type": "object", "properties": {"id": {"type": "integer"}, "pattern": {"type": "integer"}}});
        assert_eq!(check(named, json!({"id": "x", "pattern": "y"})).len(), 2);
    }

    #[test]
    fn real_recursive_filters_are_checked() {
        let leaf = |at: usize| json!({"properties": {"property": {"const": at}, "condition": {"$ref": "#/$defs/condition"}}, "required": ["property"]});
        let mut any: Vec<Value> = (0..11).map(leaf).collect();
        for key in ["and", "or"] {
            any.push(json!({"properties": {key: {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": [key]}));
        }
        let schema = json!({"type": "object", "$defs": {"condition": {"type": "object"}, "filter": {"anyOf": any}},
            "properties": {"filter": {"$ref": "#/$defs/filter"}}});
        let leaf = json!({"property": 3, "condition": {}});
        let mut filter = json!({"and": [leaf, {"or": [leaf, leaf]}]});
        for _ in 0..4 {
            filter = json!({"and": [filter, leaf]});
        }
        assert_eq!(check(schema.clone(), json!({ "filter": filter })), []);
        assert_eq!(check(schema, json!({"filter": {"and": [{"nor": []}]}})).len(), 1);
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
        // The same without recursion.
        let level = |at: usize| {
            let next = json!({"properties": {"a": {"$ref": format!("#/$defs/{at}")}}});
            json!({"allOf": [next, next]})
        };
        for branching in [branching, inline, chain(60, level)] {
            assert_eq!(check(branching.clone(), json!({"a": nested(5), "x": nested(5)})), []);
            let refused = check(branching, json!({"a": nested(60), "x": nested(60)}));
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
        let large: Vec<Value> =
            (0..60).map(|at| json!({"pattern": format!("\\\\p{{L}}{{120}}{at}")})).collect();
        check(json!({"type": "object", "properties": {"s": {"anyOf": large}}}), json!({"s": "a"}));
        let slow = json!({"type": "object", "properties": {"s": {"pattern": "[ab]*a[ab]{5000}c"}}});
        check(slow, json!({"s": "ab".repeat(5_000)}));
        let nowhere: Vec<Value> = (0..5_000).map(|_| json!({"$ref": "#z"})).collect();
        check(json!({"type": "object", "properties": {"s": {"allOf": nowhere}}}), json!({"s": 1}));

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
