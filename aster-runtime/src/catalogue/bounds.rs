//! How much work a schema can make of checking a value. A schema is a stranger's program: this finds, without running
//! it, the ones that would not end, would end too late, or would need more stack than there is.
//!
//! References are the only loops a schema has. At load, those that apply to the very value that is being checked (through
//! `allOf`, `anyOf` and the like, not down into a property) must not come back to where they started, and neither their
//! chains nor their paths may be many. Before a check, the steps that it can take are counted, each pair of a schema and a
//! part of the value once: the count is quick even where the check would not be.

use std::collections::{HashMap, HashSet};
use std::ptr::from_ref;

use serde_json::{Map, Value};

use super::problem::Reason;
use crate::pointer;

/// The longest chain of references at one place.
const MAX_CHAIN: usize = 32;

/// The most schemas that apply at one place, counted along every path to them.
const MAX_PATHS: u64 = 10_000;

/// The most different targets of references. Real schemas have dozens.
const MAX_TARGETS: usize = 512;

/// The most steps of one check.
const MAX_STEPS: u64 = 2_000_000;

/// The most pairs that are looked at to count them.
const MAX_PAIRS: usize = 300_000;

/// The most schemas times parts of a value that need no count, where there are no references.
const PLAIN: usize = 1_000_000;

/// Where a keyword applies the schemas in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// To the same value.
    Same,
    /// To parts of it.
    Down,
    /// Nowhere, until something refers to them.
    Apart,
}

/// The schemas that stand in a keyword: it may hold one, a list, or named ones. Everything else in a schema is data, and
/// a `$ref` in it refers to nothing.
pub(super) fn keyword(key: &str) -> Option<(Place, Shape)> {
    use Place::{Apart, Down, Same};
    Some(match key {
        "not" | "if" | "then" | "else" => (Same, Shape::One),
        "allOf" | "anyOf" | "oneOf" => (Same, Shape::List),
        "dependentSchemas" | "dependencies" => (Same, Shape::Named),
        "items" => (Down, Shape::OneOrList),
        "prefixItems" => (Down, Shape::List),
        "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "contentSchema" => (Down, Shape::One),
        "properties" | "patternProperties" => (Down, Shape::Named),
        "$defs" | "definitions" => (Apart, Shape::Named),
        _ => return None,
    })
}

/// What a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    OneOrList,
    Named,
}

/// The schemas that stand directly in a schema, and where they apply.
fn children(schema: &Value) -> impl Iterator<Item = (Place, &Value)> {
    schema.as_object().into_iter().flatten().flat_map(|(key, inner)| {
        let (place, inner): (Place, Vec<&Value>) = match (keyword(key), inner) {
            (Some((place, Shape::One | Shape::OneOrList)), Value::Object(_)) => (place, vec![inner]),
            (Some((place, Shape::List | Shape::OneOrList)), Value::Array(items)) => {
                (place, items.iter().collect())
            }
            (Some((place, Shape::Named)), Value::Object(named)) => (place, named.values().collect()),
            _ => (Place::Apart, Vec::new()),
        };
        inner.into_iter().filter(|inner| inner.is_object()).map(move |inner| (place, inner))
    })
}

/// The keywords that refer.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

fn references(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    REFERENCES.into_iter().filter_map(|key| map.get(key)?.as_str())
}

/// What was found when a schema was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The longest chain of references at one place.
    chain: usize,
    /// How many targets there are.
    targets: usize,
    /// How many schemas.
    schemas: usize,
}

impl Bounds {
    /// Examines a schema.
    ///
    /// # Errors
    ///
    /// Where it has no end, or too late a one.
    pub(super) fn of(root: &Value) -> Result<Self, Reason> {
        let links = Links::of(root);
        if links.distinct() > MAX_TARGETS {
            return Err(Reason::SchemaTooComplex);
        }
        let mut costs = Costs { links: &links, known: HashMap::new() };
        let mut bounds = Self { targets: links.distinct(), schemas: links.schemas.len(), chain: 0 };
        for schema in &links.schemas {
            let cost = costs.of(schema, 0)?;
            bounds.chain = bounds.chain.max(cost.chain);
            if cost.chain > MAX_CHAIN || cost.paths > MAX_PATHS {
                return Err(Reason::SchemaTooComplex);
            }
        }
        Ok(bounds)
    }

    /// Whether checking a value may need more stack than a worker has.
    pub(super) fn need_stack(&self, value: &Value) -> bool {
        self.targets > 8 || (self.chain + 1) * (depth(value) + 1) > 64
    }

    /// Whether a value can be checked in good time.
    pub(super) fn allow(&self, root: &Value, value: &Value) -> bool {
        if self.targets == 0 && self.schemas.saturating_mul(parts(value)) <= PLAIN {
            return true;
        }
        let links = Links::of(root);
        let mut steps = Steps { links: &links, known: HashMap::new() };
        steps.count(root, value) <= MAX_STEPS
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn parts(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(parts).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        _ => 1,
    }
}

/// The schemas in a schema, and what the references among them lead to.
pub(super) struct Links<'a> {
    /// The identifier of the whole, which its own references may begin with.
    own: Option<&'a str>,
    schemas: Vec<&'a Value>,
    targets: HashMap<&'a str, &'a Value>,
}

impl<'a> Links<'a> {
    pub(super) fn of(root: &'a Value) -> Self {
        let mut schemas = vec![root];
        let mut next = 0;
        while let Some(schema) = schemas.get(next).copied() {
            schemas.extend(children(schema).map(|(_, inner)| inner));
            next += 1;
        }
        let here: HashSet<*const Value> = schemas.iter().map(|schema| from_ref(*schema)).collect();
        let mut anchors: HashMap<&str, &Value> = HashMap::new();
        for schema in &schemas {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(name)) = schema.get(key) {
                    anchors.entry(name).or_insert(schema);
                }
            }
        }
        let own = root
            .get("$id")
            .and_then(Value::as_str)
            .map(|id| id.trim_end_matches('#'))
            .filter(|id| !id.is_empty());
        let mut targets = HashMap::new();
        for reference in schemas.iter().filter_map(|schema| schema.as_object()).flat_map(references) {
            // What leads to something that is no schema constrains nothing, like what leads nowhere.
            let target = resolve(root, local(reference, own), &anchors);
            if let Some(target) = target.filter(|target| here.contains(&from_ref(*target))) {
                targets.insert(reference, target);
            }
        }
        Self { own, schemas, targets }
    }

    /// A reference that leads to a schema, as it is read from the root.
    pub(super) fn local<'r>(&self, reference: &'r str) -> Option<&'r str> {
        self.targets.contains_key(reference).then(|| local(reference, self.own))
    }

    fn distinct(&self) -> usize {
        let mut addresses: Vec<*const Value> =
            self.targets.values().map(|target| from_ref(*target)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses.len()
    }

    fn targets_of(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
        schema
            .as_object()
            .into_iter()
            .flat_map(references)
            .filter_map(|reference| self.targets.get(reference).copied())
    }
}

/// A reference without the schema's own identifier before it.
fn local<'r>(reference: &'r str, own: Option<&str>) -> &'r str {
    match own.and_then(|own| reference.strip_prefix(own)) {
        Some("") => "#",
        Some(fragment) if fragment.starts_with('#') => fragment,
        _ => reference,
    }
}

/// The target of a local reference: `#`, a JSON pointer, or an anchor. Others are nobody's to fetch.
fn resolve<'a>(root: &'a Value, reference: &str, anchors: &HashMap<&str, &'a Value>) -> Option<&'a Value> {
    let fragment = pointer::fragment(reference)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return pointer::target(root, reference);
    }
    anchors.get(&*fragment).copied()
}

#[derive(Clone, Copy)]
struct Cost {
    chain: usize,
    paths: u64,
}

/// What the references at one place add up to. `None` stands for a schema whose cost is being found.
struct Costs<'l, 'a> {
    links: &'l Links<'a>,
    known: HashMap<*const Value, Option<Cost>>,
}

impl<'a> Costs<'_, 'a> {
    fn of(&mut self, schema: &'a Value, hops: usize) -> Result<Cost, Reason> {
        match self.known.get(&from_ref(schema)) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(Reason::SchemaCycle),
            // Before the search itself goes too deep.
            None if hops > MAX_CHAIN => return Err(Reason::SchemaTooComplex),
            None => {}
        }
        self.known.insert(from_ref(schema), None);
        let mut cost = Cost { chain: 0, paths: 1 };
        let mut add = |inner: Cost, hop: usize| {
            cost.chain = cost.chain.max(inner.chain + hop);
            cost.paths = cost.paths.saturating_add(inner.paths);
        };
        for (_, inner) in children(schema).filter(|(place, _)| *place == Place::Same) {
            add(self.of(inner, hops)?, 0);
        }
        for target in self.links.targets_of(schema) {
            add(self.of(target, hops + 1)?, 1);
        }
        self.known.insert(from_ref(schema), Some(cost));
        Ok(cost)
    }
}

/// The steps that a check can take.
struct Steps<'l, 'a> {
    links: &'l Links<'a>,
    /// By the addresses of the schema and of the part of the value.
    known: HashMap<(*const Value, *const Value), u64>,
}

impl<'a> Steps<'_, 'a> {
    fn count(&mut self, schema: &'a Value, value: &Value) -> u64 {
        /// Stands for the name of a property, which is no part of the value.
        static NAME: Value = Value::Null;
        let Value::Object(map) = schema else { return 1 };
        let key = (from_ref(schema), from_ref(value));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.known.len() >= MAX_PAIRS {
            return u64::MAX;
        }
        let mut steps = 1_u64;
        for target in self.links.targets_of(schema) {
            steps = steps.saturating_add(self.count(target, value));
        }
        for (_, inner) in children(schema).filter(|(place, _)| *place == Place::Same) {
            steps = steps.saturating_add(self.count(inner, value));
        }
        match value {
            Value::Object(fields) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    for (name, inner) in properties {
                        if let Some(field) = fields.get(name) {
                            steps = steps.saturating_add(self.count(inner, field));
                        }
                    }
                }
                let patterns = map.get("patternProperties").and_then(Value::as_object);
                let every = patterns.into_iter().flat_map(Map::values);
                let every = every.chain(
                    ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|key| map.get(*key)),
                );
                for inner in every {
                    for field in fields.values() {
                        steps = steps.saturating_add(self.count(inner, field));
                    }
                }
                if let Some(inner) = map.get("propertyNames") {
                    let each = self.count(inner, &NAME);
                    steps = steps.saturating_add(each.saturating_mul(fields.len() as u64));
                }
            }
            Value::Array(items) => {
                for (key, inner) in map {
                    match (key.as_str(), inner) {
                        ("items" | "prefixItems", Value::Array(each)) => {
                            for (inner, item) in each.iter().zip(items) {
                                steps = steps.saturating_add(self.count(inner, item));
                            }
                        }
                        ("items" | "additionalItems" | "unevaluatedItems" | "contains", inner) => {
                            for item in items {
                                steps = steps.saturating_add(self.count(inner, item));
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        self.known.insert(key, steps);
        steps
    }
}
