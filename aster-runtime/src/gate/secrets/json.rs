//! Secrets in JSON: in every key, text and number, in a value together with its name, and across values or keys that stand
//! side by side, where somebody has cut one in pieces.
//!
//! Strings and numbers are counted in the order in which they stand, keys too. What is found belongs to such a number; a
//! second walk, made only where something was found, turns numbers into pointers or replaces what they count.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::{CONFIGURED, Finding, Redactor, Severity, blob, filters, merged, percent, replaced, scan};
use crate::pointer;

/// How much of each end of a long text is looked at together with its neighbours, in bytes.
const SEAM: usize = 512;

/// How far from an escape texts that are put together are decoded, in bytes: they have no spaces to end a word at.
const DECODED: usize = 4 * SEAM;

/// How much of a value is looked at together with its name.
const NAMED: usize = 2048;

/// How much of names, and of texts, is looked at together first, in bytes. Of a text that fits, no seam leaves anything out.
const GLANCE: usize = 2 * SEAM;

/// How many places are listed; where there are more, nobody reads them all.
const LISTED: usize = 100;

/// A secret in an object.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Place {
    /// A JSON pointer (RFC 6901) to the value, or to the member whose key it is. Secrets in keys are replaced in it.
    pub pointer: String,
    /// What it is, as [`Finding::kind`] says.
    pub kind: &'static str,
    /// How bad that is.
    pub severity: Severity,
}

/// The places of the secrets of an object, in their order, each kind once at each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Places {
    /// The first hundred.
    pub listed: Vec<Place>,
    /// How many there are beyond those.
    pub more: usize,
}

impl Places {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

/// What was found, by the number of the text it was found in.
#[derive(Default)]
struct Found {
    texts: BTreeMap<usize, Vec<Finding>>,
    /// The blobs that hold secrets, without these.
    blobs: BTreeMap<usize, String>,
}

impl Found {
    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

pub(super) fn scan(redactor: &Redactor, object: &Map<String, Value>) -> Places {
    let found = find(redactor, Whole::Object(object));
    places(object, &found)
}

pub(super) fn redact(
    redactor: &Redactor,
    object: &Map<String, Value>,
) -> Option<(Map<String, Value>, Places)> {
    let found = find(redactor, Whole::Object(object));
    if found.is_empty() {
        return None;
    }
    let replacer = &mut Replacer { found: &found, next: 0 };
    Some((replacer.object(object), places(object, &found)))
}

pub(super) fn redact_value(redactor: &Redactor, value: &Value) -> Value {
    let found = find(redactor, Whole::Value(value));
    if found.is_empty() {
        return value.clone();
    }
    Replacer { found: &found, next: 0 }.value(value)
}

pub(super) fn finds_any(redactor: &Redactor, object: &Map<String, Value>) -> bool {
    !find(redactor, Whole::Object(object)).is_empty()
}

/// What is looked through.
#[derive(Clone, Copy)]
enum Whole<'v> {
    Object(&'v Map<String, Value>),
    Value(&'v Value),
}

fn find(redactor: &Redactor, whole: Whole<'_>) -> Found {
    if redactor.is_idle() || Glance::is_plain(redactor, whole) {
        return Found::default();
    }
    let mut leaves = Leaves {
        redactor,
        names: Vec::new(),
        keys: Vec::new(),
        values: Vec::new(),
        next: 0,
        found: Found::default(),
    };
    match whole {
        Whole::Object(object) => leaves.object(object),
        Whole::Value(value) => leaves.value(value),
    }
    leaves.joined();
    leaves.found.texts.values_mut().for_each(|found| *found = merged(std::mem::take(found)));
    leaves.found
}

/// All names and all texts of a short value, put together. Where nothing in them could begin a search, none of them need
/// be searched by itself: so it is with most calls and most results.
struct Glance {
    names: String,
    texts: String,
}

impl Glance {
    fn is_plain(redactor: &Redactor, whole: Whole<'_>) -> bool {
        // Room for most: a call is looked at again and again.
        let mut glance =
            Self { names: String::with_capacity(GLANCE / 4), texts: String::with_capacity(GLANCE) };
        let taken = match whole {
            Whole::Object(object) => glance.object(object),
            Whole::Value(value) => glance.value(value),
        };
        let Self { names, texts } = glance;
        let known = |text: &String| redactor.known.may_be_in(text) || text.contains('%');
        taken.is_some()
            && !known(&names)
            && !known(&texts)
            && (redactor.formats.is_none() || scan::is_plain(&names, &texts))
    }

    /// `None` where it is too much, or such as is read in another way.
    fn object(&mut self, fields: &Map<String, Value>) -> Option<()> {
        fields.iter().try_for_each(|(name, value)| {
            (name != blob::NAME).then_some(())?;
            add(&mut self.names, name)?;
            self.value(value)
        })
    }

    fn value(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::String(text) => add(&mut self.texts, text),
            Value::Number(number) => add(&mut self.texts, &number.to_string()),
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item)),
            Value::Object(fields) => self.object(fields),
            Value::Null | Value::Bool(_) => Some(()),
        }
    }
}

fn add(all: &mut String, text: &str) -> Option<()> {
    (all.len() + text.len() <= GLANCE).then(|| all.push_str(text))
}

/// The texts of a value, one after the other.
struct Leaves<'v, 'r> {
    redactor: &'r Redactor,
    /// The names that the current value has, outermost first, and whether each says something of it.
    names: Vec<(&'v str, bool)>,
    /// The keys, with their numbers.
    keys: Vec<(usize, Cow<'v, str>)>,
    /// The texts that are no keys, with theirs.
    values: Vec<(usize, Cow<'v, str>)>,
    next: usize,
    found: Found,
}

impl<'v> Leaves<'v, '_> {
    fn object(&mut self, fields: &'v Map<String, Value>) {
        for (name, value) in fields {
            let number = self.number();
            self.note(number, self.redactor.find(name));
            self.keys.push((number, name.into()));
            let tells = self.redactor.formats.is_some() && scan::is_context(name);
            self.names.push((name, tells));
            self.value(value);
            self.names.pop();
        }
    }

    fn value(&mut self, value: &'v Value) {
        match value {
            Value::String(text) => self.text(text.into()),
            Value::Number(number) => self.text(number.to_string().into()),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(fields) => self.object(fields),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, text: Cow<'v, str>) {
        let number = self.number();
        if let Some((clean, found)) = self.blob(&text) {
            self.note(number, found);
            self.found.blobs.insert(number, clean);
        } else {
            self.note(number, self.redactor.find(&text));
            self.note(number, self.named(&text));
        }
        self.values.push((number, text));
    }

    /// What the bytes of a resource hold, which MCP writes in base64, and the text without that.
    fn blob(&self, text: &str) -> Option<(String, Vec<Finding>)> {
        self.names.last().filter(|(name, _)| *name == blob::NAME)?;
        blob::clean(self.redactor, text)
    }

    /// What only the name of a text tells, or the name above it.
    fn named(&self, text: &str) -> Vec<Finding> {
        let near = &self.names[self.names.len().saturating_sub(2)..];
        if !near.iter().any(|(_, tells)| *tells) || text.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = near.iter().map(|(name, _)| *name).collect();
        let mut line = names.join(".");
        line.push('=');
        let before = line.len();
        line.push_str(head(text, NAMED));
        let of_text = |finding: Finding| {
            let range = finding.range.start.checked_sub(before)?..finding.range.end - before;
            Some(Finding { range, ..finding })
        };
        self.redactor.find(&line).into_iter().filter_map(of_text).collect()
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn note(&mut self, number: usize, found: Vec<Finding>) {
        if !found.is_empty() {
            self.found.texts.entry(number).or_default().extend(found);
        }
    }

    /// What only all of the values together are, or all of the keys.
    fn joined(&mut self) {
        let mut note = |joined: &Joined, finding: Finding| {
            for (number, range) in joined.parts(&finding.range) {
                self.found.texts.entry(number).or_default().push(Finding { range, ..finding });
            }
        };
        if let Some(values) = Joined::of(&self.values) {
            values.find(self.redactor).into_iter().for_each(|finding| note(&values, finding));
        }
        if let Some(keys) = Joined::of(&self.keys) {
            let mut found = keys.find(self.redactor);
            found.retain(|finding| {
                let is_no_name = || filters::is_no_name(&keys.text.as_bytes()[finding.range.clone()]);
                finding.kind == CONFIGURED || is_no_name()
            });
            found.into_iter().for_each(|finding| note(&keys, finding));
        }
    }
}

/// Texts as if they were one.
struct Joined {
    text: String,
    pieces: Vec<Piece>,
    /// Where each begins.
    seams: Vec<usize>,
}

impl Joined {
    /// `None` where there are not several.
    fn of(texts: &[(usize, Cow<'_, str>)]) -> Option<Self> {
        if texts.len() < 2 {
            return None;
        }
        let mut text = String::new();
        let mut pieces: Vec<Piece> = Vec::with_capacity(texts.len());
        let mut seams = Vec::with_capacity(texts.len());
        for (number, value) in texts.iter().filter(|(_, value)| !value.is_empty()) {
            seams.push(text.len());
            let (first, last) = match value.len() > 2 * SEAM {
                true => (head(value, SEAM), Some(tail(value, SEAM))),
                false => (&**value, None),
            };
            pieces.push(Piece { number: *number, from: 0, at: text.len()..text.len() + first.len() });
            text.push_str(first);
            if let Some(last) = last {
                text.push('\n');
                let from = value.len() - last.len();
                pieces.push(Piece { number: *number, from, at: text.len()..text.len() + last.len() });
                text.push_str(last);
            }
        }
        Some(Self { text, pieces, seams })
    }

    /// What lies across a seam, as it is and with its escapes undone; an escape may lie across one too.
    fn find(&self, redactor: &Redactor) -> Vec<Finding> {
        let mut found = redactor.find_as_it_is(self.text.as_bytes(), &self.seams);
        for stretch in self.near_escapes() {
            percent::each_decoded(&self.text[stretch.clone()], |decoded| {
                let seams = decoded.inside(&self.seams, stretch.start);
                if seams.is_empty() {
                    return;
                }
                let hidden = redactor.find_as_it_is(&decoded.bytes, &seams);
                let seen = |finding: Finding| {
                    let range = decoded.origin(finding.range);
                    Finding { range: stretch.start + range.start..stretch.start + range.end, ..finding }
                };
                found.extend(hidden.into_iter().map(seen));
            });
        }
        found.retain(|finding| {
            let after = self.seams.partition_point(|seam| *seam <= finding.range.start);
            self.seams.get(after).is_some_and(|seam| *seam < finding.range.end)
        });
        found
    }

    /// The stretches in which escapes stand, apart from each other.
    fn near_escapes(&self) -> Vec<Range<usize>> {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for (at, _) in self.text.match_indices('%') {
            let end = at + head(&self.text[at..], DECODED).len();
            match stretches.last_mut() {
                Some(last) if at.saturating_sub(DECODED) <= last.end => last.end = end,
                _ => stretches.push(at - tail(&self.text[..at], DECODED).len()..end),
            }
        }
        stretches
    }

    /// The texts that a range lies in, each with its part of it.
    fn parts(&self, range: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let first = self.pieces.partition_point(|piece| piece.at.end <= range.start);
        let hit = self.pieces[first..].iter().take_while(|piece| piece.at.start < range.end);
        hit.map(|piece| {
            let part = range.start.max(piece.at.start)..range.end.min(piece.at.end);
            (piece.number, part.start - piece.at.start + piece.from..part.end - piece.at.start + piece.from)
        })
    }
}

/// A part of a text among all that are joined.
struct Piece {
    number: usize,
    /// Where it begins in its text.
    from: usize,
    /// Where it stands among all.
    at: Range<usize>,
}

fn head(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Replaces what was found, walking as [`Leaves`] does.
struct Replacer<'f> {
    found: &'f Found,
    next: usize,
}

impl Replacer<'_> {
    fn object(&mut self, fields: &Map<String, Value>) -> Map<String, Value> {
        let mut replaced = Map::with_capacity(fields.len());
        for (name, value) in fields {
            let mut key = self.text(name).unwrap_or_else(|| name.clone());
            // Two keys that are the same now are still two members.
            while replaced.contains_key(&key) {
                key.push('_');
            }
            let value = self.value(value);
            replaced.insert(key, value);
        }
        replaced
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).map_or_else(|| value.clone(), Value::String),
            Value::Number(number) => match self.text_of(|| number.to_string()) {
                Some(text) => Value::String(text),
                None => value.clone(),
            },
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => Value::Object(self.object(fields)),
            Value::Null | Value::Bool(_) => value.clone(),
        }
    }

    fn text(&mut self, text: &str) -> Option<String> {
        self.text_of(|| text.to_owned())
    }

    fn text_of(&mut self, text: impl FnOnce() -> String) -> Option<String> {
        self.next += 1;
        if let Some(clean) = self.found.blobs.get(&(self.next - 1)) {
            return Some(clean.clone());
        }
        let found = self.found.texts.get(&(self.next - 1))?;
        Some(replaced(&text(), found.iter().map(|finding| finding.range.clone())))
    }
}

/// The places of what was found.
fn places(object: &Map<String, Value>, found: &Found) -> Places {
    let mut pointers = Pointers { found, next: 0, steps: Vec::new(), places: Places::default() };
    if !found.is_empty() {
        pointers.object(object);
    }
    pointers.places
}

/// Makes pointers, walking as [`Leaves`] does.
struct Pointers<'f> {
    found: &'f Found,
    next: usize,
    steps: Vec<String>,
    places: Places,
}

impl Pointers<'_> {
    fn object(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields {
            let key = self.found.texts.get(&self.next);
            let shown = key.map(|found| replaced(name, found.iter().map(|finding| finding.range.clone())));
            self.steps.push(pointer::step(shown.as_deref().unwrap_or(name)).into_owned());
            self.leaf();
            self.value(value);
            self.steps.pop();
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(_) | Value::Number(_) => self.leaf(),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.steps.push(at.to_string());
                    self.value(item);
                    self.steps.pop();
                }
            }
            Value::Object(fields) => self.object(fields),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn leaf(&mut self) {
        self.next += 1;
        let Some(found) = self.found.texts.get(&(self.next - 1)) else { return };
        // Only those of this text: of two texts the places differ.
        let mut seen: Vec<(&str, Severity)> = Vec::new();
        let mut pointer = None;
        for finding in found {
            if seen.contains(&(finding.kind, finding.severity)) {
                continue;
            }
            seen.push((finding.kind, finding.severity));
            if self.places.listed.len() == LISTED {
                self.places.more += 1;
                continue;
            }
            let pointer = pointer
                .get_or_insert_with(|| self.steps.iter().flat_map(|step| ["/", step]).collect::<String>());
            let place = Place { pointer: pointer.clone(), kind: finding.kind, severity: finding.severity };
            self.places.listed.push(place);
        }
    }
}
