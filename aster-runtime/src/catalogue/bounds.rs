//! How much work a schema can make of checking a value. A schema is a stranger's program: this finds, without running
//! it, the ones that would not end, would end too late, or would need more stack than there is.
//!
//! References are the only loops a schema has. The ones that apply to the very value that is being checked (through
//! `allOf`, `anyOf` and the like, not down into a property) must not come back to where they started, and what they add
//! up to is counted: the longest chain of them, and how many paths there are. A schema that is recursive down into its
//! value does its count again at every level of it.

use std::collections::HashMap;
use std::ptr::from_ref;

use serde_json::{Map, Value};

use super::problem::Reason;

/// The longest chain of references at one place.
const MAX_CHAIN: usize = 32;

/// The most paths through references at one place.
const MAX_PATHS: u64 = 10_000;

/// The most different targets of references. Real schemas have dozens.
const MAX_TARGETS: usize = 512;

/// The most that checking a value may come to, in paths over all its levels.
const MAX_WORK: u64 = 1_000_000;

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The longest chain of references at one place.
    chain: usize,
    /// The most paths through references at one place.
    paths: u64,
    /// The most ways down into a part of the value from one place: what a recursive schema multiplies by at each level.
    ways: u64,
    /// How many targets there are.
    targets: usize,
    /// Whether a reference comes back to itself further down.
    recursive: bool,
}

impl Bounds {
    /// Examines a schema.
    ///
    /// # Errors
    ///
    /// Where it has no end, or too late a one.
    pub(super) fn of(root: &Value) -> Result<Self, Reason> {
        let mut graph = Graph::new(root)?;
        let mut bounds =
            Self { targets: graph.targets.len(), recursive: graph.is_recursive(), ..Self::default() };
        let mut places = Vec::new();
        objects(root, &mut places);
        for place in places {
            let cost = graph.cost(place)?;
            bounds.chain = bounds.chain.max(cost.chain);
            bounds.paths = bounds.paths.max(cost.paths);
            bounds.ways = bounds.ways.max(cost.ways);
        }
        if bounds.chain > MAX_CHAIN || bounds.paths > MAX_PATHS {
            return Err(Reason::SchemaTooComplex);
        }
        Ok(bounds)
    }

    /// Whether a value of this depth can be checked in good time.
    pub(super) fn allow(&self, depth: usize) -> bool {
        if !self.recursive {
            return true;
        }
        let mut work = 1_u64;
        for _ in 0..depth {
            work = work.saturating_mul(self.ways.max(1));
        }
        work <= MAX_WORK
    }

    /// Whether checking a value of this depth may need more stack than a worker has.
    pub(super) fn need_stack(&self, depth: usize) -> bool {
        self.targets > 8 || (self.chain + 1) * (depth + 1) > 64
    }
}

/// How deeply a value is nested; scalars are 0.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[derive(Clone, Copy, Default)]
struct Cost {
    chain: usize,
    paths: u64,
    ways: u64,
}

#[derive(Clone, Copy)]
enum Visit {
    Open,
    Done(Cost),
}

/// The targets of a schema's local references, and what each costs.
struct Graph<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    targets: HashMap<&'a str, &'a Value>,
    costs: HashMap<*const Value, Visit>,
}

impl<'a> Graph<'a> {
    fn new(root: &'a Value) -> Result<Self, Reason> {
        let mut graph =
            Self { root, anchors: HashMap::new(), targets: HashMap::new(), costs: HashMap::new() };
        let mut places = Vec::new();
        objects(root, &mut places);
        for place in &places {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(Value::String(name)) = place.get(key) {
                    graph.anchors.insert(name, place);
                }
            }
        }
        for map in places.iter().filter_map(|place| place.as_object()) {
            for reference in references(map) {
                if let Some(target) = graph.resolve(reference) {
                    graph.targets.insert(reference, target);
                }
            }
        }
        if graph.targets.len() > MAX_TARGETS {
            return Err(Reason::SchemaTooComplex);
        }
        Ok(graph)
    }

    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        resolve(self.root, reference, |name| self.anchors.get(name).copied())
    }

    /// What the references at one place add up to.
    fn cost(&mut self, place: &'a Value) -> Result<Cost, Reason> {
        let key = from_ref(place);
        match self.costs.get(&key) {
            Some(Visit::Done(cost)) => return Ok(*cost),
            Some(Visit::Open) => return Err(Reason::SchemaCycle),
            None => {}
        }
        self.costs.insert(key, Visit::Open);
        let mut onward = Vec::new();
        let mut cost = Cost { chain: 0, paths: 1, ways: same_place(place, &mut onward) };
        for reference in onward {
            let Some(target) = self.targets.get(reference).copied() else { continue };
            let next = self.cost(target)?;
            cost.chain = cost.chain.max(next.chain + 1);
            cost.paths = cost.paths.saturating_add(next.paths);
            cost.ways = cost.ways.saturating_add(next.ways);
            // Before the search itself goes too deep.
            if cost.chain > MAX_CHAIN {
                return Err(Reason::SchemaTooComplex);
            }
        }
        self.costs.insert(key, Visit::Done(cost));
        Ok(cost)
    }

    /// Whether some target leads back to itself, at whatever place: a search without recursion of its own.
    fn is_recursive(&self) -> bool {
        let onward: HashMap<&str, Vec<&str>> = self
            .targets
            .iter()
            .map(|(name, target)| {
                let mut places = Vec::new();
                objects(target, &mut places);
                let maps = places.into_iter().filter_map(Value::as_object);
                (*name, maps.flat_map(references).filter(|name| self.targets.contains_key(name)).collect())
            })
            .collect();
        // What has no way on is taken away until nothing more can be; what stays, turns in circles.
        let mut left: HashMap<&str, &Vec<&str>> = onward.iter().map(|(name, next)| (*name, next)).collect();
        loop {
            let ends: Vec<&str> = left
                .iter()
                .filter(|(_, next)| !next.iter().any(|name| left.contains_key(name)))
                .map(|(name, _)| *name)
                .collect();
            if ends.is_empty() {
                return !left.is_empty();
            }
            ends.iter().for_each(|name| {
                left.remove(name);
            });
        }
    }
}

/// Every object of a schema, itself first. Its nesting was bounded before.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            found.push(value);
            map.values().for_each(|inner| objects(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| objects(inner, found)),
        _ => {}
    }
}

/// The references that stand in an object itself.
pub(super) fn references(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    REFERENCES.into_iter().filter_map(|key| map.get(key)?.as_str())
}

/// The keywords that refer.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The references that a schema applies to the very value it is applied to, not to a part of it; and in how many of the
/// schemas that it applies there, references lead down into parts.
fn same_place<'a>(schema: &'a Value, found: &mut Vec<&'a str>) -> u64 {
    let Value::Object(map) = schema else { return 0 };
    found.extend(references(map));
    let mut ways = 0;
    let mut down = false;
    for (key, inner) in map {
        match (key.as_str(), inner) {
            ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => {
                ways += items.iter().map(|inner| same_place(inner, found)).sum::<u64>();
            }
            ("not" | "if" | "then" | "else", inner) => ways += same_place(inner, found),
            ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                ways += schemas.values().map(|inner| same_place(inner, found)).sum::<u64>();
            }
            ("$defs" | "definitions", _) => {}
            (_, inner) => down |= refers(inner),
        }
    }
    ways + u64::from(down)
}

/// Whether there is a reference anywhere in a part of a schema.
fn refers(value: &Value) -> bool {
    match value {
        Value::Object(map) => references(map).next().is_some() || map.values().any(refers),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// The target of a local reference: `#`, a JSON pointer, or an anchor. Others are nobody's to fetch.
pub(super) fn resolve<'a>(
    root: &'a Value,
    reference: &str,
    anchor: impl FnOnce(&str) -> Option<&'a Value>,
) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() {
        return Some(root);
    }
    let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
    if fragment.starts_with('/') { root.pointer(&fragment) } else { anchor(&fragment) }
}
