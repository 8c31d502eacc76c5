//! The inverted index: for each word, the tools it occurs in and how much it says there.
//!
//! What a word says in a tool depends on that tool alone: lengths are measured against those of public tools and not of the
//! other tools here. So an index takes over from an earlier one what it has of the same tools, and no tool that a session
//! cannot see has a say.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::fields::{AVERAGE_LENGTHS, FIELDS, Field, texts};
use super::language::{Guess, Language, function_word, is_stop};
use super::postings::Postings;
use super::settings::Settings;
use super::table::WordTable;
use super::tokens;
use super::vocabulary::Vocabulary;
use crate::catalogue::{Server, Tool};
use crate::scope::View;

/// A word's place in the vocabulary.
pub(super) type TermId = u32;

/// The words of all tools of a view, and where they are. The same view makes the same index, however it came to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Index {
    /// The stems that occur: the number of a term is its place among them.
    vocabulary: Vocabulary,
    postings: Postings,
    /// In how many tools each term occurs.
    frequencies: Vec<u32>,
    /// How telling each term is.
    idf: Vec<f32>,
    /// Where the words of each tool's name start; one more than there are tools.
    name_starts: Vec<u32>,
    name_terms: Vec<TermId>,
    /// The tools' places in the space of meanings, each of length 127.
    meanings: Vec<i8>,
    /// For each tool the languages but English that it is in, as [`Language::bit`]s.
    spoken: Vec<u16>,
    /// All of them.
    languages: Vec<Language>,
    count: usize,
}

impl Index {
    /// Reads the tools of `view`, save those that `before` has already read for its own view.
    pub(super) fn new(
        view: &View,
        settings: &Settings,
        table: &WordTable,
        before: Option<(&Self, &View)>,
    ) -> Self {
        let (before, known) = match before {
            Some((before, old_view)) => (before, positions(old_view, view)),
            None => (&Self::default(), Vec::new()),
        };
        let mut reader = Reader::new(settings, table, before);
        let mut taken = vec![u32::MAX; view.tools().len()];
        for (old, &new) in known.iter().enumerate().filter(|(_, new)| **new != u32::MAX) {
            taken[new as usize] = old as u32;
        }
        for (tool, server) in with_servers(view) {
            match taken[reader.count as usize] {
                u32::MAX => reader.read_tool(tool, server),
                old => reader.take_over(before, old as usize),
            }
        }
        reader.index(&known)
    }

    /// The bytes that it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.vocabulary.heap()
            + self.postings.heap()
            + 4 * [&self.frequencies, &self.name_starts, &self.name_terms]
                .map(Vec::capacity)
                .iter()
                .sum::<usize>()
            + 4 * self.idf.capacity()
            + 2 * self.spoken.capacity()
            + self.meanings.capacity()
    }

    /// The stems that occur, in the order of their texts, which is that of their numbers.
    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The number of a stem that occurs.
    pub(super) fn term(&self, stem: &str) -> Option<TermId> {
        self.vocabulary.find(stem)
    }

    /// The stem of a term.
    pub(super) fn text(&self, term: TermId) -> &str {
        self.vocabulary.text(term)
    }

    /// The languages but English that occur.
    pub(super) fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// Where the terms are.
    pub(super) fn postings(&self) -> &Postings {
        &self.postings
    }

    /// In how many tools a term occurs.
    pub(super) fn frequency(&self, term: TermId) -> u32 {
        self.frequencies[term as usize]
    }

    /// How telling a term is.
    pub(super) fn idf(&self, term: TermId) -> f32 {
        self.idf[term as usize]
    }

    /// How telling a word is that does not occur.
    pub(super) fn highest_idf(&self) -> f32 {
        idf(self.count, 0)
    }

    /// The words of a tool's name.
    pub(super) fn name(&self, tool: usize) -> &[TermId] {
        &self.name_terms[self.name_starts[tool] as usize..self.name_starts[tool + 1] as usize]
    }

    /// A tool's place in the space of meanings, of length 127; empty where there is none.
    pub(super) fn meaning(&self, tool: usize) -> &[i8] {
        let dimensions = self.meanings.len() / self.count.max(1);
        &self.meanings[tool * dimensions..(tool + 1) * dimensions]
    }
}

/// Robertson and Spärck Jones's weight, never below 0.
fn idf(count: usize, frequency: usize) -> f32 {
    let (count, frequency) = (count as f32, frequency as f32);
    ((count - frequency + 0.5) / (frequency + 0.5)).ln_1p()
}

/// For each tool of the old view its place in the new one; `u32::MAX` where it or its server is another.
fn positions(old: &View, new: &View) -> Vec<u32> {
    let mut fresh = with_servers(new).enumerate().peekable();
    with_servers(old)
        .map(|(tool, server)| {
            while fresh.next_if(|(_, (other, _))| other.id() < tool.id()).is_some() {}
            let same = fresh.next_if(|(_, (other, about))| {
                Arc::ptr_eq(other, tool) && about.map(Server::says) == server.map(Server::says)
            });
            same.map_or(u32::MAX, |(position, _)| position as u32)
        })
        .collect()
}

/// The tools with their servers, which are in the same order.
pub(super) fn with_servers(view: &View) -> impl Iterator<Item = (&Arc<Tool>, Option<&Server>)> {
    let mut servers = view.servers().iter().peekable();
    view.tools().iter().map(move |tool| {
        while servers.next_if(|server| server.name.as_str() < tool.id().server()).is_some() {}
        (tool, servers.peek().copied().filter(|server| server.name == tool.id().server()))
    })
}

/// The server of a tool of the view.
pub(super) fn server_of<'a>(view: &'a View, tool: &Tool) -> Option<&'a Server> {
    let servers = view.servers();
    let found = servers.binary_search_by(|server| server.name.as_str().cmp(tool.id().server()));
    found.ok().map(|at| &servers[at])
}

/// A word as it stands in texts, looked at once.
struct Raw {
    text: Box<str>,
    english: TermId,
    function_word: u16,
    /// Whether it says something of which language a text is in.
    tells: bool,
}

/// What a term says in a tool.
struct Said {
    term: TermId,
    tool: u32,
    impact: u16,
}

/// How many bits tell the fields apart.
const FIELD_BITS: u32 = FIELDS.next_power_of_two().trailing_zeros();

/// Reads tools into an index. Each word is stemmed once, however often it occurs.
///
/// Terms have numbers of its own: those of the index before, and then in the order in which they are met.
struct Reader<'a> {
    settings: &'a Settings,
    table: &'a WordTable,
    before: &'a Index,
    raws: HashMap<Box<str>, u32>,
    raw: Vec<Raw>,
    foreign: HashMap<(u32, Language), TermId>,
    /// The terms that the index before does not have.
    terms: HashMap<Box<str>, TermId>,
    /// For each term its word in the table.
    known: Vec<Option<u16>>,
    /// What the tools that were read say, tool by tool.
    said: Vec<Said>,
    name_starts: Vec<u32>,
    name_terms: Vec<TermId>,
    meanings: Vec<i8>,
    spoken: Vec<u16>,
    /// The languages of the tool that is being read.
    speaks: u16,
    count: u32,
    // What is used again from text to text, and from tool to tool.
    text: Vec<u32>,
    /// The words of the tool, each with its field in the lowest bits.
    words: Vec<u32>,
    lengths: [u32; FIELDS],
    meant: Vec<(u16, f32)>,
    meaning: Vec<f32>,
}

impl<'a> Reader<'a> {
    fn new(settings: &'a Settings, table: &'a WordTable, before: &'a Index) -> Self {
        let dimensions = if settings.meaning > 0.0 { table.dimensions() } else { 0 };
        let known: Vec<_> = before.vocabulary.iter().map(|stem| table.find(stem)).collect();
        Self {
            settings,
            table,
            before,
            raws: HashMap::new(),
            raw: Vec::new(),
            foreign: HashMap::new(),
            terms: HashMap::new(),
            said: Vec::new(),
            known,
            name_starts: vec![0],
            name_terms: Vec::new(),
            meanings: Vec::new(),
            spoken: Vec::new(),
            speaks: 0,
            count: 0,
            text: Vec::new(),
            words: Vec::new(),
            lengths: [0; FIELDS],
            meant: Vec::new(),
            meaning: vec![0.0; dimensions],
        }
    }

    fn term(&mut self, stem: &str) -> TermId {
        if let Some(id) = self.before.term(stem).or_else(|| self.terms.get(stem).copied()) {
            return id;
        }
        let id = self.known.len() as TermId;
        self.known.push(self.table.find(stem));
        self.terms.insert(stem.into(), id);
        id
    }

    fn raw(&mut self, word: &str) -> u32 {
        if let Some(&id) = self.raws.get(word) {
            return id;
        }
        let id = self.raw.len() as u32;
        let english =
            if self.settings.stems { self.term(&Language::English.stem(word)) } else { self.term(word) };
        let function_word = function_word(word);
        let tells = function_word != 0 || !word.is_ascii();
        self.raw.push(Raw { text: word.into(), english, function_word, tells });
        self.raws.insert(word.into(), id);
        id
    }

    fn read_tool(&mut self, tool: &Tool, server: Option<&Server>) {
        self.words.clear();
        self.lengths = [0; FIELDS];
        texts(tool, server, &mut |field, text| self.read(field, text));
        self.finish();
    }

    fn read(&mut self, field: Field, text: &str) {
        if self.settings.fields[field as usize] <= 0.0 {
            return;
        }
        let mut words = std::mem::take(&mut self.text);
        words.clear();
        tokens::words(text, &mut |word| words.push(self.raw(word)));
        let mut guess = Guess::default();
        for &word in &words {
            let raw = &self.raw[word as usize];
            if raw.tells {
                guess.see(&raw.text, raw.function_word);
            }
        }
        let language = if self.settings.stems { guess.language() } else { Language::English };
        if language != Language::English {
            self.speaks |= language.bit();
        }
        let stops = |raw: &Raw| self.settings.stop_words && is_stop(raw.function_word, language);
        // A name that says nothing is still a name.
        if !words.iter().all(|&word| stops(&self.raw[word as usize])) {
            words.retain(|&word| !stops(&self.raw[word as usize]));
        }
        let name = self.name_starts.last().map_or(0, |&start| start as usize);
        // The name comes first; a title says more than it, and need not be said in full.
        let is_name = field == Field::Name && self.name_terms.len() == name;
        for &word in &words {
            let term = self.stem(word, language);
            self.words.push(term << FIELD_BITS | field as u32);
            self.lengths[field as usize] += 1;
            if is_name && !self.name_terms[name..].contains(&term) {
                self.name_terms.push(term);
            }
        }
        self.text = words;
    }

    fn stem(&mut self, word: u32, language: Language) -> TermId {
        if language == Language::English {
            return self.raw[word as usize].english;
        }
        if let Some(&term) = self.foreign.get(&(word, language)) {
            return term;
        }
        let term = self.term(&language.stem(&self.raw[word as usize].text));
        self.foreign.insert((word, language), term);
        term
    }

    /// Turns the words of one tool into what each says there.
    fn finish(&mut self) {
        let Settings { fields, length, saturation, .. } = *self.settings;
        let norms: [f32; FIELDS] = std::array::from_fn(|field| {
            fields[field] / (1.0 - length + length * self.lengths[field] as f32 / AVERAGE_LENGTHS[field])
        });
        self.words.sort_unstable();
        for same in self.words.chunk_by(|a, b| a >> FIELD_BITS == b >> FIELD_BITS) {
            let field = |word: u32| (word & ((1 << FIELD_BITS) - 1)) as usize;
            let frequency: f32 = same.iter().map(|&word| norms[field(word)]).sum();
            let impact = frequency * (saturation + 1.0) / (saturation + frequency);
            let term = same[0] >> FIELD_BITS;
            if let Some(word) = self.known[term as usize] {
                // What is said often is not meant as often.
                self.meant.push((word, impact.min(1.5)));
            }
            self.said.push(Said { term, tool: self.count, impact: Postings::stored(impact) });
        }
        // In an order that does not depend on what was read before.
        self.meant.sort_unstable_by_key(|&(word, _)| word);
        self.meaning.fill(0.0);
        for (word, weight) in self.meant.drain(..) {
            self.table.add_vector(word, weight, &mut self.meaning);
        }
        let norm = self.meaning.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-6);
        self.meanings.extend(self.meaning.iter().map(|value| (value / norm * 127.0).round() as i8));
        let spoken = std::mem::take(&mut self.speaks);
        self.next(spoken);
    }

    /// What an earlier index has of a tool besides its postings.
    fn take_over(&mut self, before: &Index, tool: usize) {
        self.name_terms.extend(before.name(tool));
        self.meanings.extend(before.meaning(tool));
        self.next(before.spoken[tool]);
    }

    fn next(&mut self, spoken: u16) {
        self.count += 1;
        self.spoken.push(spoken);
        self.name_starts.push(self.name_terms.len() as u32);
    }

    /// The index, `known` being the new places of the tools of the one before.
    fn index(mut self, known: &[u32]) -> Index {
        let Self { before, count, .. } = self;
        let count = count as usize;
        let old = before.vocabulary.len();
        let taken_over = |term: usize| {
            let postings = (term < old).then(|| before.postings.of(term as TermId));
            let moved = |(tool, impact): (u32, u16)| (known[tool as usize], impact);
            postings.into_iter().flatten().map(moved).filter(|&(tool, _)| tool != u32::MAX)
        };
        let (starts, fresh) = by_term(&self.said, self.known.len());
        let fresh = |term: usize| &fresh[starts[term] as usize..starts[term + 1] as usize];
        // Of the words of tools that are gone, and of those that say nothing, none stays.
        let met = self.terms.iter().map(|(text, &term)| (&**text, term));
        let mut occurring: Vec<(u64, &str, TermId)> = before
            .vocabulary
            .iter()
            .zip(0..)
            .chain(met)
            .filter(|&(_, term)| {
                !fresh(term as usize).is_empty() || taken_over(term as usize).next().is_some()
            })
            .map(|(text, term)| (start(text), text, term))
            .collect();
        occurring.sort_unstable();
        // Of these tools alone: a language of tools that are gone, or that another session sees, would change what words mean.
        let spoken = self.spoken.iter().fold(0, |all, spoken| all | spoken);
        let languages = Language::FOREIGN.into_iter().filter(|language| spoken & language.bit() != 0);
        let mut places = vec![TermId::MAX; self.known.len()];
        let mut postings = Postings::default();
        let mut frequencies = Vec::with_capacity(occurring.len());
        for (&(_, _, term), place) in occurring.iter().zip(0..) {
            let term = term as usize;
            places[term] = place;
            let frequency = postings.push(merge(taken_over(term), fresh(term).iter().copied()));
            frequencies.push(frequency as u32);
        }
        for term in &mut self.name_terms {
            *term = places[*term as usize];
        }
        postings.shrink_to_fit();
        self.meanings.shrink_to_fit();
        self.name_terms.shrink_to_fit();
        self.name_starts.shrink_to_fit();
        self.spoken.shrink_to_fit();
        Index {
            vocabulary: Vocabulary::new(occurring.iter().map(|&(_, text, _)| text)),
            postings,
            idf: frequencies.iter().map(|&frequency| idf(count, frequency as usize)).collect(),
            frequencies,
            name_starts: self.name_starts,
            name_terms: self.name_terms,
            meanings: self.meanings,
            languages: languages.collect(),
            spoken: self.spoken,
            count,
        }
    }
}

/// What was said, by term: where each term's part starts, and the tools with what it says there, ascending.
fn by_term(said: &[Said], terms: usize) -> (Vec<u32>, Vec<(u32, u16)>) {
    let mut starts = vec![0; terms + 1];
    said.iter().for_each(|said| starts[said.term as usize + 1] += 1);
    for term in 1..=terms {
        starts[term] += starts[term - 1];
    }
    let mut next = starts.clone();
    let mut sorted = vec![(0, 0); said.len()];
    for &Said { term, tool, impact } in said {
        let next = &mut next[term as usize];
        sorted[*next as usize] = (tool, impact);
        *next += 1;
    }
    (starts, sorted)
}

/// The first bytes of a text as a number: where those of two differ they are in the order of the texts.
fn start(text: &str) -> u64 {
    let mut bytes = [0; 8];
    let length = text.len().min(8);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    u64::from_be_bytes(bytes)
}

/// Two ascending lists of other tools as one.
fn merge(
    one: impl Iterator<Item = (u32, u16)>,
    other: impl Iterator<Item = (u32, u16)>,
) -> impl Iterator<Item = (u32, u16)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if b.0 < a.0 => other.next(),
        (None, _) => other.next(),
        _ => one.next(),
    })
}
