//! Finds secrets of known formats in a text. Pure.
//!
//! One automaton looks for the needles of all rows at once; only where one stands is its row's pattern tried, and only at
//! the few places where a candidate can begin. A text without needles costs one pass.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};

use super::filters;
use super::formats::{Begins, Check, FORMATS, Format};
use super::{Finding, Severity};

/// No word that is shorter than this is worth a pattern.
const MIN_WORD: usize = 16;

/// Into how many pieces a secret may be cut that has no length of its own.
const MAX_PIECES: usize = 16;

struct Engine {
    needles: AhoCorasick,
    /// The rows of each needle.
    rows: Vec<Vec<usize>>,
    /// The pattern of each row, from when it is first needed: to compile them all would hold up the first call.
    patterns: Vec<OnceLock<Option<Regex>>>,
    /// The words that a row needs nearby; case does not count.
    context: AhoCorasick,
}

/// `None` only where the table is wrong, which a test rules out.
static ENGINE: LazyLock<Option<Engine>> = LazyLock::new(Engine::new);

/// The needles of all rows, each once.
pub(super) fn needles() -> Vec<(String, Vec<usize>)> {
    let mut needles: Vec<(String, Vec<usize>)> = Vec::new();
    for (row, format) in FORMATS.iter().enumerate() {
        for needle in format.needles.iter().flat_map(|needle| spellings(needle, format.any_case)) {
            match needles.iter_mut().find(|(known, _)| *known == needle) {
                Some((_, rows)) if rows.contains(&row) => {}
                Some((_, rows)) => rows.push(row),
                None => needles.push((needle, vec![row])),
            }
        }
    }
    needles
}

fn spellings(needle: &str, any_case: bool) -> Vec<String> {
    let mut spellings = vec![needle.to_owned()];
    if any_case {
        let mut capitalised = needle.to_owned();
        capitalised[..1].make_ascii_uppercase();
        spellings.extend([needle.to_ascii_lowercase(), needle.to_ascii_uppercase(), capitalised]);
    }
    spellings
}

impl Engine {
    fn new() -> Option<Self> {
        let (words, rows): (Vec<String>, Vec<Vec<usize>>) = needles().into_iter().unzip();
        let needles = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(words).ok()?;
        let of = |format: &'static Format| {
            let after = matches!(format.begins, Begins::After(_)).then_some(format.needles);
            let near = format.checks.iter().filter_map(|check| match check {
                Check::Near(words) => Some(*words),
                _ => None,
            });
            near.chain(after).flatten()
        };
        let context = FORMATS.iter().flat_map(of).copied().chain(["token", "secret", "passw", "key"]);
        let context = AhoCorasick::builder().ascii_case_insensitive(true).build(context).ok()?;
        let patterns = FORMATS.iter().map(|_| OnceLock::new()).collect();
        Some(Self { needles, rows, patterns, context })
    }

    fn pattern(&self, row: usize) -> Option<&Regex> {
        self.patterns[row].get_or_init(|| compile(FORMATS[row].pattern)).as_ref()
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&format!("^(?:{pattern})")).unicode(false).build().ok()
}

/// Whether a name says so much of a value that both have to be looked at together.
pub(super) fn is_context(name: &str) -> bool {
    ENGINE.as_ref().is_some_and(|engine| engine.context.is_match(name))
}

/// Whether nothing in these texts, nor in any that stands beside one of these names, could begin a search.
pub(super) fn is_plain(names: &str, texts: &str) -> bool {
    ENGINE.as_ref().is_some_and(|engine| {
        let plain = |text: &str| !engine.needles.is_match(text);
        !engine.context.is_match(names) && plain(names) && plain(texts)
    })
}

/// Whether one text goes on in the next at this place: as good as a space to whoever looks for words.
pub(super) type Seams<'a> = &'a [usize];

/// Every secret of a format that is at least so severe, in the order in which they were met; they may overlap.
pub(super) fn find(text: &[u8], least: Severity, seams: Seams<'_>, found: &mut Vec<Finding>) {
    let Some(engine) = ENGINE.as_ref() else { return };
    // How far each row has matched: what begins inside of a match is not tried again, or a text that is nothing but
    // needles would cost its length for each of them.
    let mut matched: Vec<usize> = Vec::new();
    for hit in engine.needles.find_overlapping_iter(text) {
        for &row in &engine.rows[hit.pattern()] {
            let format = &FORMATS[row];
            if format.severity < least || matched.get(row).is_some_and(|end| hit.start() < *end) {
                continue;
            }
            let place = Place { text, seams, needle: hit.range() };
            let candidate = place.candidate(engine, row, format);
            if candidate.is_some() || format.apart > 0 {
                let next = candidate.as_ref().map_or(0, |candidate| candidate.whole.end);
                matched.resize(FORMATS.len(), 0);
                matched[row] = next.max(hit.start() + format.apart);
            }
            if let Some(candidate) = candidate.filter(|candidate| candidate.stands) {
                found.push(Finding { kind: format.kind, severity: format.severity, range: candidate.secret });
            }
        }
    }
}

/// What a pattern matched.
struct Candidate {
    whole: Range<usize>,
    secret: Range<usize>,
    /// Whether nothing speaks against it.
    stands: bool,
}

/// A needle in a text.
struct Place<'t> {
    text: &'t [u8],
    seams: Seams<'t>,
    needle: Range<usize>,
}

impl Place<'_> {
    fn candidate(&self, engine: &Engine, row: usize, format: &Format) -> Option<Candidate> {
        let Range { start, end } = self.needle;
        let tried = |start: usize, begins: bool| {
            let begins = begins && is_long(&self.text[start..]);
            begins.then(|| self.matched(engine.pattern(row)?, format, start)).flatten()
        };
        let at = |start: usize| tried(start, self.is_edge(start, format));
        match format.begins {
            Begins::Anywhere => self.matched(engine.pattern(row)?, format, start),
            Begins::With => tried(start, self.is_edge(start, format) || self.is_glued(format)),
            Begins::Word => {
                let goes_on = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                let word = start - self.text[..start].iter().rev().take_while(goes_on).count();
                // The last letters of an escape are none of the word.
                let firsts = [word, word + 1, word + 2, word + 5];
                // Of more pieces no secret is put together: each is tried from its start to the needle.
                let last = self.seams.partition_point(|seam| *seam < start);
                let first =
                    self.seams.partition_point(|seam| *seam < word).max(last.saturating_sub(MAX_PIECES));
                let seams = self.seams[first..last].iter().copied();
                let firsts = firsts.into_iter().filter(|first| *first < start);
                let mut tried = firsts.chain(seams).filter_map(at);
                let first = tried.next()?;
                if first.stands { Some(first) } else { tried.find(|next| next.stands).or(Some(first)) }
            }
            Begins::At(before) => at(start.checked_sub(before)?),
            Begins::Before(most) => {
                let mut starts = start.saturating_sub(most)..=start;
                starts.find_map(|start| at(start).filter(|candidate| candidate.whole.end >= end))
            }
            Begins::After(most) => (end..=(end + most).min(self.text.len())).find_map(at),
        }
    }

    /// What the pattern matches at this place.
    fn matched(&self, pattern: &Regex, format: &Format, start: usize) -> Option<Candidate> {
        let whole = self.matched_until(pattern, format, start, self.text.len());
        if self.seams.is_empty() || whole.as_ref().is_some_and(|candidate| candidate.stands) {
            return whole;
        }
        // It may have run on into what is no part of it any more.
        let next = self.seams.partition_point(|seam| *seam <= start);
        let seams = self.seams[next..].iter().take(MAX_PIECES).rev();
        let mut shorter = seams.filter_map(|seam| self.matched_until(pattern, format, start, *seam));
        shorter.find(|candidate| candidate.stands).or(whole)
    }

    fn matched_until(&self, pattern: &Regex, format: &Format, start: usize, end: usize) -> Option<Candidate> {
        let rest = &self.text[start..end];
        let (whole, secret) = match pattern.captures_len() {
            1 => {
                let whole = pattern.find(rest)?.range();
                (whole.clone(), whole)
            }
            _ => {
                let captures = pattern.captures(rest)?;
                (captures.get(0)?.range(), captures.get(1)?.range())
            }
        };
        let (text, found) = (&rest[whole.clone()], &rest[secret.clone()]);
        let ends = || format.begins == Begins::Anywhere || self.is_edge(start + whole.end, format);
        let is_placeholder = || !format.checks.contains(&Check::Long) && filters::is_placeholder(found);
        let passes = |check: &Check| filters::passes(*check, self.text, start, text, found);
        let stands = ends() && !is_placeholder() && format.checks.iter().all(passes);
        let shift = |range: Range<usize>| start + range.start..start + range.end;
        Some(Candidate { whole: shift(whole.clone()), secret: shift(secret), stands })
    }

    /// Whether only a `_` ties the needle to the word before it, as in `server__ghp_…`, and it is one that says all by
    /// itself: it ends as no name goes on by chance, and nothing besides has to speak for the row.
    fn is_glued(&self, format: &Format) -> bool {
        let needle = &self.text[self.needle.clone()];
        let tied = self.text[..self.needle.start].last() == Some(&b'_');
        tied && needle.last().is_some_and(|last| matches!(last, b'_' | b'-' | b'.'))
            && format.checks.is_empty()
    }

    /// Whether no word goes on across this place.
    fn is_edge(&self, at: usize, format: &Format) -> bool {
        let goes_on = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || format.edge.contains(&byte);
        let begins_value = |byte: u8| byte == b'=';
        let (before, after) = self.text.split_at(at);
        match (before.last(), after.first()) {
            (Some(&last), Some(&first)) => {
                !goes_on(last)
                    || begins_value(last)
                    || !goes_on(first)
                    || self.seams.binary_search(&at).is_ok()
                    || ends_escape(before)
            }
            _ => true,
        }
    }
}

/// Whether a word of some length begins here. It spares the patterns most needles of ordinary text.
fn is_long(text: &[u8]) -> bool {
    let is_word = |byte: &u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b',' | b'(' | b')')
    };
    text.get(..MIN_WORD).is_some_and(|word| word.iter().all(is_word))
}

/// Whether the last letter is that of an escape: `\n`, `\u003d`, `%3D`.
fn ends_escape(before: &[u8]) -> bool {
    let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'\\', b'u', a, b, c, d] => hex(&[*a, *b, *c, *d]),
        [.., b'%', a, b] => hex(&[*a, *b]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let engine = ENGINE.as_ref().unwrap();
        for (row, format) in FORMATS.iter().enumerate() {
            let pattern =
                engine.pattern(row).unwrap_or_else(|| panic!("{}: {}", format.kind, format.pattern));
            assert!(pattern.captures_len() <= 2, "{}", format.kind);
            assert!(
                !format.needles.is_empty() && format.needles.iter().all(|needle| needle.len() >= 2),
                "{}",
                format.kind
            );
            assert!(format.needles.iter().all(|needle| needle.is_ascii()), "{}", format.kind);
        }
    }

    /// What could be tried again from inside of itself, and fail again at its far end, has an end: or a text that is
    /// nothing but needles would cost the square of its length.
    #[test]
    fn every_pattern_has_an_end() {
        // Their needles cannot stand within what they repeat.
        let own_ends = ["private-key", "jwt", "kubernetes-secret"];
        for format in FORMATS.iter().filter(|format| !own_ends.contains(&format.kind)) {
            let parsed =
                regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build().parse(format.pattern);
            let most = parsed.unwrap().properties().maximum_len();
            assert!(most.is_some_and(|most| most <= 4200), "{}: {most:?}", format.kind);
        }
    }

    #[test]
    fn an_escape_ends_a_word() {
        for before in ["\\n", "a\\r", "\\u003d", "x%3D", "%3d"] {
            assert!(ends_escape(before.as_bytes()), "{before}");
        }
        for before in ["n", "\\u00zd", "%3", "3D", "\\x"] {
            assert!(!ends_escape(before.as_bytes()), "{before}");
        }
    }
}
