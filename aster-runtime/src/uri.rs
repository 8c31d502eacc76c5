//! URI templates of resources: what `#[mcp_resource(uri = …)]` may say, and which URIs it means.
//!
//! Of RFC 6570 it is `{name}`, one segment, and `{+name}`, which may contain `/`: what can be read backwards. A template
//! that could be read in two ways is refused, so that matching takes one pass over a URI, however hostile.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The longest URI that is looked at, in bytes.
pub const MAX_URI_BYTES: usize = 8 * 1024;

/// What `{name}` is expanded with (RFC 6570, section 3.2.2): all but the unreserved characters are encoded.
const SIMPLE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What `{+name}` is expanded with: reserved characters stay as well. A `%` is encoded even where it looks like an escape,
/// so that the value comes back as it was.
const RESERVED: &AsciiSet = &SIMPLE
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'#')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Whether a character separates the parts of a URI (RFC 3986, section 2.2). The value of a `{name}` has none.
fn is_reserved(c: char) -> bool {
    matches!(
        c,
        ':' | '/'
            | '?'
            | '#'
            | '['
            | ']'
            | '@'
            | '!'
            | '$'
            | '&'
            | '\''
            | '('
            | ')'
            | '*'
            | '+'
            | ','
            | ';'
            | '='
    )
}

/// What ends a segment, whatever the template says next. Other reserved characters are let through: not every client
/// encodes a `:`.
fn ends_segment(c: char) -> bool {
    matches!(c, '/' | '?' | '#')
}

/// A URI, or a template of URIs.
///
/// ```
/// use aster_runtime::uri::Template;
///
/// let template = Template::parse("notes://{year}/{+path}").unwrap();
/// let values = template.matches("notes://2026/lists/to%20do").unwrap();
/// assert_eq!(values, [("year", "2026".to_owned()), ("path", "lists/to do".to_owned())]);
/// assert_eq!(template.matches("notes://2026"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable { name: String, reserved: bool },
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// It does not begin with a scheme, such as `notes:`.
    Scheme,
    /// A character that no URI has, outside of a variable.
    Character(char),
    /// A `{` without its `}`, or a `}` without its `{`.
    Brace,
    /// A variable without a name, or with one that is none; what stands between the braces.
    Name(String),
    /// An expression of RFC 6570 that cannot be read backwards; what stands between the braces.
    Operator(String),
    /// A variable that stands twice.
    Twice(String),
    /// Two variables between which nothing tells where the first one ends.
    Adjacent(String, String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("it does not begin with a scheme"),
            Self::Character(c) => write!(f, "`{}` cannot stand in a URI", c.escape_debug()),
            Self::Brace => f.write_str("a brace has no other"),
            Self::Name(name) => write!(f, "`{{{name}}}` has no name that a variable can have"),
            Self::Operator(expression) => {
                write!(f, "`{{{expression}}}` is neither `{{name}}` nor `{{+name}}`")
            }
            Self::Twice(name) => write!(f, "the variable `{name}` stands twice"),
            Self::Adjacent(first, second) => {
                write!(f, "nothing tells where `{first}` ends and `{second}` begins")
            }
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a URI or a template.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme).ok_or(TemplateError::Scheme)?;
        let of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(of_scheme) {
            return Err(TemplateError::Scheme);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (literal, after) = rest.split_at(at);
            push_literal(&mut parts, literal)?;
            let inner = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            let (expression, after) = inner.ok_or(TemplateError::Brace)?;
            parts.push(variable(expression)?);
            rest = after;
        }
        push_literal(&mut parts, rest)?;
        let template = Self { text: text.to_owned(), parts };
        template.check()?;
        Ok(template)
    }

    /// Each variable once, and between any two of them something that shows where the first one ends.
    fn check(&self) -> Result<(), TemplateError> {
        let mut separated = true;
        let mut before: Vec<(&str, bool)> = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => separated |= text.contains(is_reserved),
                Part::Variable { name, reserved } => {
                    if before.iter().any(|(other, _)| other == name) {
                        return Err(TemplateError::Twice(name.clone()));
                    }
                    // Two that may both contain separators have none between them.
                    let greedy = before.iter().find(|(_, greedy)| *greedy && *reserved);
                    let unclear = greedy.or(before.last().filter(|_| !separated));
                    if let Some((other, _)) = unclear {
                        return Err(TemplateError::Adjacent((*other).to_owned(), name.clone()));
                    }
                    before.push((name, *reserved));
                    separated = false;
                }
            }
        }
        Ok(())
    }

    /// The template as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// Whether it means one URI alone.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.variables().next().is_none()
    }

    /// How closely it describes what it matches: of several templates that match a URI the greatest is meant.
    pub(crate) fn precision(&self) -> (bool, bool, usize) {
        let greedy = self.parts.iter().any(|part| matches!(part, Part::Variable { reserved: true, .. }));
        let literal = self.parts.iter().map(|part| match part {
            Part::Literal(text) => text.len(),
            Part::Variable { .. } => 0,
        });
        (self.is_plain(), !greedy, literal.sum())
    }

    /// The values of the variables in this URI, percent-decoded, where it is one of those that are meant. A value is data
    /// from the client, and may contain `/` and `..` whatever the template looks like.
    #[must_use]
    pub fn matches(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        if uri.len() > MAX_URI_BYTES {
            return None;
        }
        let greedy = self.parts.iter().position(|part| matches!(part, Part::Variable { reserved: true, .. }));
        let (before, after) = match greedy {
            Some(at) => (&self.parts[..at], &self.parts[at + 1..]),
            None => (&self.parts[..], &[][..]),
        };
        let mut values = Vec::new();
        let rest = forwards(before, uri, &mut values)?;
        let mut behind = Vec::new();
        let rest = backwards(after, rest, &mut behind)?;
        match greedy.map(|at| &self.parts[at]) {
            Some(Part::Variable { name, .. }) => values.push((name.as_str(), rest)),
            _ if rest.is_empty() => {}
            _ => return None,
        }
        behind.reverse();
        values.extend(behind);
        values.into_iter().map(|(name, value)| Some((name, decode(value)?))).collect()
    }

    /// The URI with these values. A variable without one becomes nothing, as RFC 6570 has it.
    #[must_use]
    pub fn expand<V: AsRef<str>>(&self, value: impl Fn(&str) -> Option<V>) -> String {
        let expand = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Variable { name, reserved } => {
                let set = if *reserved { RESERVED } else { SIMPLE };
                value(name)
                    .map(|value| utf8_percent_encode(value.as_ref(), set).to_string())
                    .unwrap_or_default()
            }
        };
        self.parts.iter().map(expand).collect()
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) -> Result<(), TemplateError> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let escape = rest.as_bytes().get(1..3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        match c {
            '%' if escape => rest = &rest[3..],
            c if is_reserved(c) || c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~') => {
                rest = &rest[1..];
            }
            c => return Err(TemplateError::Character(c)),
        }
    }
    if !text.is_empty() {
        parts.push(Part::Literal(text.to_owned()));
    }
    Ok(())
}

fn variable(expression: &str) -> Result<Part, TemplateError> {
    let (name, reserved) = match expression.strip_prefix('+') {
        Some(name) => (name, true),
        None => (expression, false),
    };
    // Operators before the name, modifiers and lists after it (RFC 6570, section 2.2).
    if name.starts_with(['#', '.', '/', ';', '?', '&', '+', '=', '!', '@', '|'])
        || name.contains([',', ':', '*'])
    {
        return Err(TemplateError::Operator(expression.to_owned()));
    }
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    if name.is_empty() || !name.chars().all(legal) {
        return Err(TemplateError::Name(expression.to_owned()));
    }
    Ok(Part::Variable { name: name.to_owned(), reserved })
}

/// Takes parts off the front. A value ends where the next literal's first separator stands, less what that literal begins
/// with.
fn forwards<'t, 'u>(
    parts: &'t [Part],
    mut rest: &'u str,
    values: &mut Vec<(&'t str, &'u str)>,
) -> Option<&'u str> {
    for (at, part) in parts.iter().enumerate() {
        match part {
            Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
            Part::Variable { name, .. } => {
                let next = literal(parts.get(at + 1));
                let (unreserved, stop) = match next.find(is_reserved) {
                    Some(at) => (&next[..at], next[at..].chars().next()),
                    None => (next, None),
                };
                let ends = |c: char| ends_segment(c) || Some(c) == stop;
                let run = &rest[..rest.find(ends).unwrap_or(rest.len())];
                let value = run.strip_suffix(unreserved)?;
                values.push((name, value));
                rest = &rest[value.len()..];
            }
        }
    }
    Some(rest)
}

/// Takes parts off the back, the same way.
fn backwards<'t, 'u>(
    parts: &'t [Part],
    mut rest: &'u str,
    values: &mut Vec<(&'t str, &'u str)>,
) -> Option<&'u str> {
    for (at, part) in parts.iter().enumerate().rev() {
        match part {
            Part::Literal(text) => rest = rest.strip_suffix(text.as_str())?,
            Part::Variable { name, .. } => {
                let before = at.checked_sub(1).map_or("", |before| literal(parts.get(before)));
                let (stop, unreserved) = match before.rfind(is_reserved) {
                    Some(at) => (before[at..].chars().next(), &before[at + 1..]),
                    None => (None, before),
                };
                let ends = |c: char| ends_segment(c) || Some(c) == stop;
                let run = &rest[rest.rfind(ends).map_or(0, |at| at + 1)..];
                let value = run.strip_prefix(unreserved)?;
                values.push((name, value));
                rest = &rest[..rest.len() - value.len()];
            }
        }
    }
    Some(rest)
}

fn literal(part: Option<&Part>) -> &str {
    match part {
        Some(Part::Literal(text)) => text,
        _ => "",
    }
}

/// A value of at least one character, as it was before it was encoded.
fn decode(value: &str) -> Option<String> {
    if value.is_empty() {
        return None;
    }
    percent_decode_str(value).decode_utf8().ok().map(Into::into)
}

/// Whether two templates mean the same URIs: they are equal but for the names of their variables.
pub(crate) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (mut at, mut at_other) = (0, 0);
    while at < one.len() && at_other < other.len() {
        if one[at] != other[at_other] {
            return false;
        }
        if one[at] == b'{' {
            if is_greedy(one, at) != is_greedy(other, at_other) {
                return false;
            }
            at = end_of_name(one, at);
            at_other = end_of_name(other, at_other);
        } else {
            at += 1;
            at_other += 1;
        }
    }
    at == one.len() && at_other == other.len()
}

const fn is_greedy(text: &[u8], brace: usize) -> bool {
    brace + 1 < text.len() && text[brace + 1] == b'+'
}

const fn end_of_name(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && text[at] != b'}' {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let template = Template::parse(template).unwrap();
        let values = template.matches(uri)?;
        Some(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The values alone, joined by spaces.
    fn matched(template: &str, uri: &str) -> Option<String> {
        let values = values(template, uri)?;
        Some(values.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_matches_what() {
        for (template, uri, expected) in [
            ("test://static", "test://static", Some("")),
            ("test://static", "test://static/", None),
            ("test://template/{id}/data", "test://template/123/data", Some("123")),
            ("test://template/{id}/data", "test://template/1/2/data", None),
            ("test://template/{id}/data", "test://template//data", None),
            ("test://template/{id}/data", "test://template/a%2Fb/data", Some("a/b")),
            ("notes://{id}", "notes://a:b", Some("a:b")),
            ("notes://{id}", "notes://a?b", None),
            ("notes://{id}.md", "notes://a.md.md", Some("a.md")),
            ("notes://{id}.md", "notes://.md", None),
            ("notes://{id}.md/{part}", "notes://a.md/1", Some("a 1")),
            ("mail://{user}@{host}", "mail://a%40b@c", Some("a@b c")),
            ("file:///{+path}", "file:///a/b/c.txt", Some("a/b/c.txt")),
            ("file:///{+path}", "file:///", None),
            ("git://{repo}/{+path}@v{rev}", "git://r/a/b@c@v1", Some("r a/b@c 1")),
            ("git://{+path}/raw/{rev}", "git://a/raw/b/raw/1", Some("a/raw/b 1")),
            ("x:{a}", "x:%ff", None),
            ("x:{a}", "x:ä", Some("ä")),
            ("x:{a}", "x:%", Some("%")),
        ] {
            assert_eq!(matched(template, uri).as_deref(), expected, "{template} {uri}");
        }
        assert_eq!(matched("x:{a}", &format!("x:{}", "a".repeat(MAX_URI_BYTES))), None);
    }

    #[test]
    fn what_is_no_template() {
        let told = |text: &str| Template::parse(text).unwrap_err().to_string();
        let all = [
            "notes", "1x:a", "{a}:b", "x:a b", "x:%4", "x:{a", "x:a}", "x:{}", "x:{a-b}", "x:{?a}", "x:{a*}",
        ];
        let more = ["x:{a}/{a}", "x:{a}{b}", "x:{a}.{b}", "x:{+a}/{+b}", "x:{+a}/{b}/{+c}"];
        let lines: Vec<String> =
            all.iter().chain(&more).map(|text| format!("{text}: {}", told(text))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        notes: it does not begin with a scheme
        1x:a: it does not begin with a scheme
        {a}:b: it does not begin with a scheme
        x:a b: ` ` cannot stand in a URI
        x:%4: `%` cannot stand in a URI
        x:{a: a brace has no other
        x:a}: a brace has no other
        x:{}: `{}` has no name that a variable can have
        x:{a-b}: `{a-b}` has no name that a variable can have
        x:{?a}: `{?a}` is neither `{name}` nor `{+name}`
        x:{a*}: `{a*}` is neither `{name}` nor `{+name}`
        x:{a}/{a}: the variable `a` stands twice
        x:{a}{b}: nothing tells where `a` ends and `b` begins
        x:{a}.{b}: nothing tells where `a` ends and `b` begins
        x:{+a}/{+b}: nothing tells where `a` ends and `b` begins
        x:{+a}/{b}/{+c}: nothing tells where `a` ends and `c` begins
        ");
    }

    #[test]
    fn the_same_but_for_names() {
        for (one, other, same) in [
            ("x:{a}/b", "x:{other}/b", true),
            ("x:{a}/b", "x:{a}/c", false),
            ("x:{+a}", "x:{+b}", true),
            ("x:{+a}", "x:{a}", false),
            ("x:{a}", "x:{a}/", false),
            ("x:a", "x:a", true),
            ("x:{a}/{b}", "x:{b}/{a}", true),
        ] {
            assert_eq!(is_same(one, other), same, "{one} {other}");
            assert_eq!(is_same(other, one), same, "{other} {one}");
        }
    }

    proptest! {
        #[test]
        fn what_was_expanded_is_matched(
            template in prop::sample::select(vec![
                "x:{a}", "x://{a}/{b}", "x:{a}.md/{+b}", "x:{+a}", "x:/{+a}/raw/{b}", "x:{a}@{+b}:v{c}", "x:{a}:{b}",
                "x:q?a={a}&b={b}", "x:{+a}.md", "x:/{a}/{+b}/-{c}.txt/{d}",
            ]),
            a in "(?s).{1,9}", b in "[a-z/:@.?#&=%-]{1,9}", c in "\\PC{1,9}", d in ".{1,5}",
        ) {
            let parsed = Template::parse(template).unwrap();
            let given = |name: &str| match name { "a" => Some(&a), "b" => Some(&b), "c" => Some(&c), _ => Some(&d) };
            let uri = parsed.expand(given);
            let found = parsed.matches(&uri);
            let expected: Vec<_> = parsed.variables().map(|name| (name, given(name).cloned().unwrap_or_default())).collect();
            prop_assert_eq!(found, Some(expected), "{}", uri);
        }

        #[test]
        fn nothing_panics(template in "x:[a-z{}+/.:%ä]{0,20}", uri in "(?s)x:.{0,40}") {
            if let Ok(template) = Template::parse(&template) {
                let _ = template.matches(&uri);
            }
        }
    }
}
