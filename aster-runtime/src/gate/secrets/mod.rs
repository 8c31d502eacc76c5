//! Secrets: found in whatever leaves or arrives, by their values where these are known and by their looks where they are
//! not. Pure.
//!
//! [`Redactor`] knows the values that a configuration hands out, in all their encoded forms ([`Redactor::new`]), and where
//! it is told to the formats that vendors give their keys ([`Redactor::with_formats`]). It looks at text and at JSON:
//! keys, values and numbers, what is percent-encoded once or twice, and what has been cut in pieces that stand side by
//! side. [`SecretPolicy`] says what is done about what it finds.

mod blob;
mod filters;
mod formats;
mod json;
mod known;
#[cfg(feature = "config")]
mod names;
mod percent;
mod policy;
mod scan;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use self::json::{Place, Places};
use self::known::Known;
#[cfg(feature = "config")]
pub(crate) use self::names::is_secret;
pub use self::policy::{Incoming, Outgoing, SecretPolicy, UnknownKind};

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// The shortest value that counts as a secret: shorter ones are words, and replacing them would hide half of a text.
pub const MIN_SECRET: usize = 8;

/// The kind of a value that the configuration says is one.
pub const CONFIGURED: &str = "configured-secret";

/// How sure it is, and how bad if it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A key for tests, or only something that is called a secret.
    Low,
    /// It expires, or is made for a short time.
    Medium,
    /// Whoever has it has what it opens.
    High,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// [`CONFIGURED`], or the name of its format, for example `github-token`.
    pub kind: &'static str,
    /// How bad that is.
    pub severity: Severity,
    /// Where it stands, in bytes.
    pub range: Range<usize>,
}

/// The names of all formats, in the order of the table.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    let fresh = move |kind: &&'static str| std::mem::replace(&mut last, kind) != *kind;
    formats::FORMATS.iter().map(|format| format.kind).filter(fresh)
}

/// The bytes of which one automaton finds candidates of all formats at once: what a bare prefilter would look for.
#[doc(hidden)]
#[must_use]
pub fn needles() -> Vec<String> {
    scan::needles().into_iter().map(|(needle, _)| needle).collect()
}

/// Finds secrets, and replaces them.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Known,
    formats: Option<Formats>,
}

/// Which formats are looked for.
#[derive(Clone)]
struct Formats {
    least: Severity,
    except: Arc<[&'static str]>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// A redactor of these values; those shorter than eight bytes are passed over.
    ///
    /// ```
    /// use aster_runtime::gate::secrets::Redactor;
    ///
    /// let redactor = Redactor::new(["hunter2hunter2"]);
    /// assert_eq!(redactor.redact("token=hunter2hunter2"), "token=[redacted]");
    /// ```
    #[must_use]
    pub fn new<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Self {
        Self { known: Known::new(values), formats: None }
    }

    /// A redactor of all text and numbers in these values, however short: of what is known to be secret, too much is
    /// replaced rather than too little.
    pub(crate) fn of_values<'a>(values: impl IntoIterator<Item = &'a Value>) -> Self {
        Self { known: Known::of_values(values), formats: None }
    }

    /// The same, and of everything that looks like a secret of at least this severity.
    ///
    /// ```
    /// use aster_runtime::gate::secrets::{Redactor, Severity};
    ///
    /// let redactor = Redactor::default().with_formats(Severity::Medium);
    /// let key = format!("AKIA{}", "Q3ZK7TWX2LHB5NYC");
    /// assert_eq!(redactor.redact(&format!("id = {key}")), "id = [redacted]");
    /// assert_eq!(redactor.redact("id = AKIAIOSFODNN7EXAMPLE"), "id = AKIAIOSFODNN7EXAMPLE");
    /// ```
    #[must_use]
    pub fn with_formats(self, least: Severity) -> Self {
        Self { formats: Some(Formats { least, except: Arc::default() }), ..self }
    }

    /// The same without these kinds.
    pub(crate) fn except(mut self, kinds: &[&'static str]) -> Self {
        if let Some(formats) = &mut self.formats {
            formats.except = kinds.into();
        }
        self
    }

    /// Whether there is nothing that it could find.
    fn is_idle(&self) -> bool {
        self.known.is_empty() && self.formats.is_none()
    }

    /// The secrets in a text, in their order, apart from each other.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Finding> {
        if self.is_idle() {
            return Vec::new();
        }
        let mut found = self.find_as_it_is(text.as_bytes(), &[]);
        percent::each_decoded(text, |decoded| {
            let hidden = self.find_as_it_is(&decoded.bytes, &[]);
            let seen = |finding: Finding| Finding { range: decoded.origin(finding.range), ..finding };
            found.extend(hidden.into_iter().map(seen));
        });
        merged(found)
    }

    /// The same without undoing any escapes; they may overlap.
    fn find_as_it_is(&self, text: &[u8], seams: scan::Seams<'_>) -> Vec<Finding> {
        let mut found = Vec::new();
        if let Some(formats) = &self.formats {
            scan::find(text, formats.least, seams, &mut found);
            found.retain(|finding| !formats.except.contains(&finding.kind));
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        self.known.find(text, &mut ranges);
        let of = |range| Finding { kind: CONFIGURED, severity: Severity::High, range };
        found.extend(ranges.into_iter().map(of));
        found
    }

    /// The text with every secret replaced; secrets that overlap are replaced together.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find(text);
        if found.is_empty() {
            return text.into();
        }
        replaced(text, found.into_iter().map(|finding| finding.range)).into()
    }

    /// Where the secrets of an object are: in keys and values, at any depth, and across values that stand side by side. What is
    /// called `blob` is read as base64 besides.
    #[must_use]
    pub fn scan(&self, object: &Map<String, Value>) -> Places {
        json::scan(self, object)
    }

    /// The object with every secret replaced, and where they were; `None` where there are none.
    #[must_use]
    pub fn redact_object(&self, object: &Map<String, Value>) -> Option<(Map<String, Value>, Places)> {
        json::redact(self, object)
    }

    /// Whether there is anything to replace, in a value or a key: most often there is not, and then nothing need be copied.
    pub(crate) fn finds_any(&self, object: &Map<String, Value>) -> bool {
        json::finds_any(self, object)
    }

    /// The value with every secret in its strings and keys replaced.
    #[must_use]
    pub fn redact_value(&self, value: &Value) -> Value {
        json::redact_value(self, value)
    }
}

/// In order, and those that overlap as one, named like the surest and longest of them.
fn merged(mut found: Vec<Finding>) -> Vec<Finding> {
    let configured = |finding: &Finding| finding.kind != CONFIGURED;
    found.sort_by_key(|finding| (finding.range.start, Reverse(finding.range.end)));
    let mut merged: Vec<Finding> = Vec::with_capacity(found.len());
    for finding in found {
        match merged.last_mut() {
            Some(last) if finding.range.start < last.range.end => {
                let range = last.range.start..last.range.end.max(finding.range.end);
                if (Reverse(finding.severity), configured(&finding))
                    < (Reverse(last.severity), configured(last))
                {
                    *last = finding;
                }
                last.range = range;
            }
            _ => merged.push(finding),
        }
    }
    merged
}

/// A text with these ranges, which are in order, replaced.
fn replaced(text: &str, ranges: impl IntoIterator<Item = Range<usize>>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        let Range { start, end } = whole(text, range);
        out.push_str(text.get(done..start).unwrap_or_default());
        out.push_str(REDACTED);
        done = done.max(end);
    }
    out.push_str(&text[done..]);
    out
}

/// What was found in decoded bytes may begin or end inside of a character, which then belongs to it.
fn whole(text: &str, Range { mut start, mut end }: Range<usize>) -> Range<usize> {
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests;
