//! What a rule wants of one argument: a place among the arguments, and tests of the value that stands there.
//!
//! Whatever is unclear must end on the safe side, which is not the same for every rule. A rule that denies or asks reads
//! *loosely*: one fitting value among several is enough, and every reading of it counts. A rule that allows reads
//! *strictly*: every value must fit, and in one reading only.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use percent_encoding::percent_decode_str;
use regex::{Regex, RegexBuilder};
use serde_json::{Number, Value};
use url::{Host, Url};

use super::RuleError;
use super::path::{PathGlobs, Site};
use crate::gate::egress;
use crate::pointer;
use crate::tool::JsonObject;

/// How large a regular expression may become, in bytes. They run in linear time whatever they are.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// On which side a doubt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// For rules that deny or ask.
    Loose,
    /// For rules that allow.
    Strict,
}

/// One test of a value.
///
/// ```
/// use aster_runtime::gate::rules::Test;
///
/// assert!(Test::regex([r"rm\s+-rf"]).is_ok());
/// assert!(Test::regex(["("]).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Test(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Present,
    Equals(Vec<String>),
    Regex(Vec<Expression>),
    Glob(Globs),
    Range { min: Option<Amount>, max: Option<Amount> },
    Path(PathGlobs),
    Host(Vec<HostGlob>),
    Url(Globs),
}

impl Test {
    /// There is a value, whatever it is; `null` is none.
    #[must_use]
    pub fn present() -> Self {
        Self(Kind::Present)
    }

    /// The value is one of these texts, numbers or booleans, as they are written.
    ///
    /// # Errors
    ///
    /// Where there are none.
    pub fn equals<S: Into<String>>(values: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        Ok(Self(Kind::Equals(some(values.into_iter().map(Into::into).collect())?)))
    }

    /// One of these regular expressions is found in the value; in a rule that allows, one of them matches all of it.
    ///
    /// # Errors
    ///
    /// Where one does not parse or becomes too large, or there are none.
    pub fn regex<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        let compiled = patterns.into_iter().map(|pattern| Expression::new(pattern.as_ref()));
        Ok(Self(Kind::Regex(some(compiled.collect::<Result<_, _>>()?)?)))
    }

    /// One of these globs matches the value; `*` matches any characters.
    ///
    /// # Errors
    ///
    /// Where one does not parse, or there are none.
    pub fn glob<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        Ok(Self(Kind::Glob(Globs::new(globs)?)))
    }

    /// The value is a number between these, both included; a rule that denies or asks reads a number in a text too. Whole
    /// numbers are compared digit by digit, however large.
    ///
    /// ```
    /// use aster_runtime::gate::rules::Test;
    ///
    /// assert!(Test::range(Some(100.into()), None).is_ok());
    /// assert!(Test::range(Some(2.into()), Some(1.into())).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Where both are missing, or no number is between them.
    pub fn range(min: Option<Number>, max: Option<Number>) -> Result<Self, RuleError> {
        let [min, max] = [min, max].map(|end| end.as_ref().and_then(Amount::of));
        match (min, max) {
            (None, None) => Err(RuleError::new("a range has no end", "write `min`, `max` or both")),
            (Some(min), Some(max)) if min > max => {
                Err(RuleError::new("no number is in the range", "`min` is the smaller one"))
            }
            (min, max) => Ok(Self(Kind::Range { min, max })),
        }
    }

    /// The value is a path that one of these names or that lies below it; see [`PathGlobs`].
    #[must_use]
    pub fn path(globs: PathGlobs) -> Self {
        Self(Kind::Path(globs))
    }

    /// The value is a URL whose host is one of these: `example.com`, an address, or `*.example.com` for everything below
    /// it. A rule that denies or asks reads what [`check_named`](crate::gate::egress::EgressPolicy::check_named) takes for a
    /// host too, such as `host`, `host:port`, `user@host` and `URL:http://host`, and each of several hosts in one URL.
    ///
    /// # Errors
    ///
    /// Where one is no host, or there are none.
    pub fn host<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        let parsed = hosts.into_iter().map(|host| HostGlob::new(host.as_ref()));
        Ok(Self(Kind::Host(some(parsed.collect::<Result<_, _>>()?)?)))
    }

    /// The value is a URL that one of these globs matches in its normal form, such as `https://example.com/*`. A rule that
    /// denies or asks reads it without a user name, without the last dot of its host and percent-decoded too, one without a
    /// scheme as `https:` and `http:`, and each of several in one text.
    ///
    /// # Errors
    ///
    /// Where one does not parse, or there are none.
    pub fn url<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        Ok(Self(Kind::Url(Globs::new(globs)?)))
    }

    pub(super) fn is_of_paths(&self) -> bool {
        matches!(self.0, Kind::Path(_))
    }

    /// Whether what passes the other passes this one too, as far as can be told.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let all = |wide: &[String], narrow: &[String]| narrow.iter().all(|one| wide.contains(one));
        match (&self.0, &other.0) {
            (Kind::Present, _) => true,
            (Kind::Equals(wide), Kind::Equals(narrow)) => all(wide, narrow),
            (Kind::Glob(wide), Kind::Equals(narrow)) => narrow.iter().all(|text| wide.is_match(text)),
            (Kind::Glob(wide), Kind::Glob(narrow)) | (Kind::Url(wide), Kind::Url(narrow)) => {
                wide.covers(narrow)
            }
            (Kind::Regex(wide), Kind::Regex(narrow)) => {
                narrow.iter().all(|one| wide.iter().any(|other| other.text() == one.text()))
            }
            (Kind::Range { min, max }, Kind::Range { min: low, max: high }) => {
                min.is_none_or(|min| low.is_some_and(|low| min <= low))
                    && max.is_none_or(|max| high.is_some_and(|high| high <= max))
            }
            (Kind::Path(wide), Kind::Path(narrow)) => wide.covers(narrow),
            (Kind::Host(wide), Kind::Host(narrow)) => {
                narrow.iter().all(|one| wide.iter().any(|other| other.covers(one)))
            }
            _ => false,
        }
    }

    fn passes(&self, value: &Value, reading: Reading, site: &Site<'_>) -> bool {
        let loose = reading == Reading::Loose;
        let Some(text) = text_of(value) else { return false };
        match &self.0 {
            Kind::Present => true,
            Kind::Equals(texts) => {
                texts.iter().any(|expected| *expected == text || equal_numbers(expected, &text, value, loose))
            }
            Kind::Regex(expressions) => expressions.iter().any(|expression| match reading {
                Reading::Loose => expression.anywhere.is_match(&text),
                Reading::Strict => expression.whole.is_match(&text),
            }),
            Kind::Glob(globs) => globs.is_match(&text),
            Kind::Range { min, max } => {
                let number = match value {
                    Value::String(text) if loose => Amount::read(text),
                    Value::Number(number) => Amount::of(number),
                    _ => None,
                };
                number.is_some_and(|number| {
                    min.is_none_or(|min| min <= number) && max.is_none_or(|max| number <= max)
                })
            }
            Kind::Path(globs) => match value {
                Value::String(text) => globs.match_text(text, loose, site),
                _ => false,
            },
            Kind::Host(globs) => {
                let named = host_of(&text);
                let lenient = loose.then(|| egress::hosts(&text)).into_iter().flatten();
                let mut hosts = named.into_iter().chain(lenient.map(canonical));
                hosts.any(|host| globs.iter().any(|glob| glob.matches(&host)))
            }
            Kind::Url(globs) => {
                let fits = |url: &Url| globs.is_match(url.as_str());
                if url_of(&text).is_some_and(|url| fits(&url)) {
                    return true;
                }
                let urls = || egress::readings(&text).into_iter().filter_map(|text| url_of(&text));
                loose
                    && (globs.is_match(&text)
                        || urls().any(|url| {
                            let plain = plain(url.clone());
                            let decoded = percent_decode_str(plain.as_str()).decode_utf8_lossy();
                            fits(&url)
                                || fits(&plain)
                                || globs.is_match(&decoded)
                                // A server that decodes before it resolves `..` reads it so.
                                || url_of(&decoded).is_some_and(|url| fits(&url))
                        }))
            }
        }
    }
}

/// A scalar as text; `null`, lists and objects have none.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(on) => Some(Cow::Borrowed(if *on { "true" } else { "false" })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `1` and `1.0` are one number. A rule that allows compares whole numbers alone; one that denies or asks takes numbers that
/// are one `f64` for the same, since the program that is called may.
fn equal_numbers(expected: &str, text: &str, value: &Value, loose: bool) -> bool {
    if !loose {
        return value.is_number() && whole(expected).is_some_and(|expected| whole(text) == Some(expected));
    }
    let numbers = expected.trim().parse::<f64>().ok().zip(text.trim().parse::<f64>().ok());
    numbers.is_some_and(|(expected, number)| expected == number)
}

/// The digits of a whole number, with its sign.
fn whole(text: &str) -> Option<i128> {
    let text = match text.trim().split_once('.') {
        Some((whole, rest)) if !rest.is_empty() && rest.bytes().all(|digit| digit == b'0') => whole,
        _ => text.trim(),
    };
    text.parse().ok()
}

/// A number to compare with: beyond 2^53 several whole numbers are one `f64`, and the last of them that is allowed must not
/// let in the next.
#[derive(Debug, Clone, Copy)]
enum Amount {
    Whole(i128),
    Real(f64),
}

impl Amount {
    fn of(number: &Number) -> Option<Self> {
        number.as_i128().map(Self::Whole).or_else(|| number.as_f64().map(Self::Real))
    }

    fn read(text: &str) -> Option<Self> {
        whole(text).map(Self::Whole).or_else(|| text.trim().parse().ok().map(Self::Real))
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (*self, *other) {
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(&other)),
            (Self::Real(one), Self::Real(other)) => one.partial_cmp(&other),
            (Self::Whole(one), Self::Real(other)) => compared(one, other),
            (Self::Real(one), Self::Whole(other)) => compared(other, one).map(Ordering::reverse),
        }
    }
}

/// How a whole number compares to any other; `None` where that is no number.
fn compared(whole: i128, real: f64) -> Option<Ordering> {
    /// 2^127, beyond which there is no whole number of ours.
    const END: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if real.is_nan() {
        return None;
    }
    if real >= END {
        return Some(Ordering::Less);
    }
    if real < -END {
        return Some(Ordering::Greater);
    }
    let floor = real.floor() as i128;
    let fraction = if real > real.floor() { Ordering::Less } else { Ordering::Equal };
    Some(whole.cmp(&floor).then(fraction))
}

/// A regular expression, to be found somewhere or to match everything.
#[derive(Debug, Clone)]
struct Expression {
    anywhere: Regex,
    whole: Regex,
}

impl Expression {
    fn new(pattern: &str) -> Result<Self, RuleError> {
        let compile = |pattern: &str| {
            RegexBuilder::new(pattern).size_limit(MAX_REGEX_BYTES).build().map_err(|error| {
                let why = match error {
                    regex::Error::CompiledTooBig(_) => "it becomes too large".to_owned(),
                    // The last line says what; those before show where, over several lines.
                    error => error.to_string().lines().last().unwrap_or_default().trim().to_owned(),
                };
                let why = why.trim_start_matches("error: ");
                RuleError::new(format!("the regular expression does not work: {why}"), "")
            })
        };
        Ok(Self { anywhere: compile(pattern)?, whole: compile(&format!(r"\A(?:{pattern})\z"))? })
    }

    fn text(&self) -> &str {
        self.anywhere.as_str()
    }
}

/// Globs over texts, in which `*` matches any characters.
#[derive(Clone)]
pub(super) struct Globs {
    texts: Vec<String>,
    set: GlobSet,
}

impl fmt::Debug for Globs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(f)
    }
}

impl Globs {
    pub(super) fn new<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, RuleError> {
        let texts = some(globs.into_iter().map(|glob| glob.as_ref().to_owned()).collect::<Vec<_>>())?;
        let mut set = GlobSetBuilder::new();
        for text in &texts {
            let glob = GlobBuilder::new(text).literal_separator(false).backslash_escape(true).build();
            set.add(glob.map_err(|error| RuleError::glob(text, &error))?);
        }
        let set = set.build().map_err(|error| RuleError::glob(&texts.join(", "), &error))?;
        Ok(Self { texts, set })
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.set.is_match(text)
    }

    pub(super) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Whether these match all that the others match, as far as can be told.
    pub(super) fn covers(&self, others: &Self) -> bool {
        others.texts.iter().all(|other| self.texts.iter().any(|own| covers(own, other)))
    }
}

/// Whether a glob matches all that another matches, as far as can be told: they are the same, or this one is a fixed
/// beginning, a `*` and nothing more, with which the other begins.
pub(super) fn covers(wide: &str, narrow: &str) -> bool {
    let special = |text: &str| text.contains(['*', '?', '[', '{', '\\']);
    let prefix = wide.strip_suffix("**").or_else(|| wide.strip_suffix('*'));
    wide == narrow
        || prefix.is_some_and(|prefix| !special(prefix) && narrow.starts_with(prefix))
        || (!special(narrow) && Globs::new([wide]).is_ok_and(|wide| wide.is_match(narrow)))
}

/// A host, or everything below one.
#[derive(Debug, Clone, PartialEq)]
enum HostGlob {
    Exactly(Host),
    Below(String),
    Any,
}

impl HostGlob {
    fn new(text: &str) -> Result<Self, RuleError> {
        let help = "write `example.com`, `*.example.com`, an address or `*`, without scheme, port and path";
        let host = |text: &str| match Host::parse(text) {
            Ok(host) if !text.is_empty() => Ok(canonical(host)),
            _ => Err(RuleError::new(format!("`{text}` is no host"), help)),
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        match text.strip_prefix("*.") {
            Some(below) => match host(below)? {
                Host::Domain(name) => Ok(Self::Below(format!(".{name}"))),
                _ => Err(RuleError::new(format!("`{text}` is no host"), help)),
            },
            None => Ok(Self::Exactly(host(text)?)),
        }
    }

    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exactly(own), host) => own == host,
            (Self::Below(suffix), Host::Domain(name)) => name.ends_with(suffix),
            (Self::Below(_), _) => false,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match other {
            Self::Exactly(host) => self.matches(host),
            Self::Below(suffix) => match self {
                Self::Below(own) => suffix.ends_with(own),
                other => *other == Self::Any,
            },
            Self::Any => *self == Self::Any,
        }
    }
}

/// A name without its last dot, an address in its plain form.
fn canonical(host: Host) -> Host {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(&name).to_lowercase()),
        Host::Ipv6(address) => match address.to_canonical() {
            std::net::IpAddr::V4(address) => Host::Ipv4(address),
            std::net::IpAddr::V6(address) => Host::Ipv6(address),
        },
        Host::Ipv4(address) => Host::Ipv4(address),
    }
}

/// A text that is a URL with a host.
fn url_of(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(Url::has_host)
}

/// The same URL without what makes it another text and leads nowhere else: a user name, the last dot of a host.
fn plain(mut url: Url) -> Url {
    // Whatever of it cannot be done leaves the URL as it was.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    if let Some(host) = url.domain().and_then(|name| name.strip_suffix('.')).map(str::to_owned) {
        let _ = url.set_host(Some(&host));
    }
    url
}

fn host_of(text: &str) -> Option<Host> {
    match url_of(text)?.host()? {
        // Schemes that the URL standard does not know keep their host as it is written.
        Host::Domain(name) => Host::parse(name).ok().map(canonical),
        host => Some(canonical(host.to_owned())),
    }
}

/// Where among the arguments: a JSON pointer (RFC 6901) in which `*` stands for every member or item, or `any`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Every value, however deep, and the keys.
    Anywhere,
    At(Vec<Step>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Each,
}

impl Place {
    pub(super) fn parse(text: &str) -> Result<Self, RuleError> {
        if text == "any" {
            return Ok(Self::Anywhere);
        }
        let Some(steps) = text.strip_prefix('/') else {
            let help = format!("write `/{text}`, or `any` for all arguments");
            return Err(RuleError::new(format!("`{text}` is no JSON pointer"), help));
        };
        let step = |step: &str| match step {
            "*" => Step::Each,
            key => Step::Key(pointer::name(key)),
        };
        Ok(Self::At(steps.split('/').map(step).collect()))
    }

    /// The scalars that stand there, however deep.
    fn scalars<'a>(&self, arguments: &'a JsonObject, reading: Reading) -> Vec<Cow<'a, Value>> {
        // Not by recursion: how deep arguments are is their author's choice.
        let mut found = Vec::new();
        let mut waiting: Vec<&Value> = Vec::new();
        match self {
            Self::Anywhere => {
                waiting.extend(arguments.values());
                if reading == Reading::Loose {
                    found.extend(arguments.keys().map(|key| Cow::Owned(Value::from(key.as_str()))));
                }
            }
            Self::At(steps) => waiting.extend(at(steps, arguments)),
        }
        while let Some(value) = waiting.pop() {
            match value {
                Value::Array(items) => waiting.extend(items),
                Value::Object(members) => {
                    waiting.extend(members.values());
                    if *self == Self::Anywhere && reading == Reading::Loose {
                        found.extend(members.keys().map(|key| Cow::Owned(Value::from(key.as_str()))));
                    }
                }
                Value::Null => {}
                scalar => found.push(Cow::Borrowed(scalar)),
            }
        }
        found
    }
}

/// The values at these steps.
fn at<'a>(steps: &[Step], arguments: &'a JsonObject) -> Vec<&'a Value> {
    let Some((first, rest)) = steps.split_first() else { return Vec::new() };
    let mut here: Vec<&Value> = match first {
        Step::Key(key) => arguments.get(key).into_iter().collect(),
        Step::Each => arguments.values().collect(),
    };
    for step in rest {
        here = here
            .into_iter()
            .flat_map(|value| -> Vec<&Value> {
                match (value, step) {
                    (Value::Object(members), Step::Key(key)) => members.get(key).into_iter().collect(),
                    (Value::Object(members), Step::Each) => members.values().collect(),
                    (Value::Array(items), Step::Key(index)) => {
                        index.parse::<usize>().ok().and_then(|index| items.get(index)).into_iter().collect()
                    }
                    (Value::Array(items), Step::Each) => items.iter().collect(),
                    _ => Vec::new(),
                }
            })
            .collect();
    }
    here
}

/// A place and the tests that one value there must pass together.
#[derive(Debug, Clone)]
pub(super) struct Argument {
    pub(super) place: Place,
    pub(super) tests: Vec<Test>,
}

impl Argument {
    pub(super) fn matches(&self, arguments: &JsonObject, reading: Reading, site: &Site<'_>) -> bool {
        let values = self.place.scalars(arguments, reading);
        let mut fitting =
            values.iter().map(|value| self.tests.iter().all(|test| test.passes(value, reading, site)));
        match reading {
            Reading::Loose => fitting.any(|fits| fits),
            Reading::Strict => !values.is_empty() && fitting.all(|fits| fits),
        }
    }

    /// Whether what passes the other passes this one too, as far as can be told.
    pub(super) fn covers(&self, other: &Self, reading: Reading) -> bool {
        let anywhere = self.place == Place::Anywhere && reading == Reading::Loose;
        (anywhere || self.place == other.place)
            && self.tests.iter().all(|test| other.tests.iter().any(|narrow| test.covers(narrow)))
    }
}

/// A list that says nothing matches nothing, which nobody means.
pub(super) fn some<T>(list: Vec<T>) -> Result<Vec<T>, RuleError> {
    match list.is_empty() {
        true => Err(RuleError::new("an empty list matches nothing", "leave the key out, or name something")),
        false => Ok(list),
    }
}
