//! The inverted index: for each word, the tools it occurs in and how much it says there.

use std::collections::HashMap;

use super::fields::{FIELDS, Field, texts};
use super::language::{Guess, Language, function_word, is_stop};
use super::settings::Settings;
use super::tokens;
use crate::scope::View;

/// A word's place in the vocabulary.
pub(super) type TermId = u32;

/// The words of all tools of a view, and where they are.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The stems, each with its number.
    terms: HashMap<Box<str>, TermId>,
    /// Where the postings of each term start; one more than there are terms.
    starts: Vec<u32>,
    /// The tools a term occurs in, ascending.
    pub(super) tools: Vec<u32>,
    /// What it says there: BM25's saturated, length-normalised frequency over all fields.
    pub(super) impacts: Vec<f32>,
    /// The greatest impact of each term.
    best: Vec<f32>,
    /// Where the words of each tool's name start; one more than there are tools.
    name_starts: Vec<u32>,
    name_terms: Vec<TermId>,
    /// The languages but English that occur.
    pub(super) languages: Vec<Language>,
    count: usize,
}

impl Index {
    pub(super) fn new(view: &View, settings: &Settings) -> Self {
        let mut reader = Reader::new(settings);
        let mut servers = view.servers().iter().peekable();
        for tool in view.tools() {
            while servers.peek().is_some_and(|server| server.name.as_str() < tool.id().server()) {
                servers.next();
            }
            let server = servers.peek().filter(|server| server.name == tool.id().server());
            let mut document = Document::default();
            reader.read(&mut document, Field::Server, tool.id().server());
            if let Some(server) = server {
                reader.read(&mut document, Field::Server, server.title.as_deref().unwrap_or_default());
                if settings.fields[Field::ServerDescription as usize] > 0.0 {
                    let about = server.description.as_deref().unwrap_or_default();
                    reader.read(&mut document, Field::ServerDescription, about);
                }
            }
            texts(tool, &mut |field, text| reader.read(&mut document, field, text));
            reader.finish(document);
        }
        reader.index()
    }

    /// How many tools there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn term(&self, stem: &str) -> Option<TermId> {
        self.terms.get(stem).copied()
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = (&str, TermId)> {
        self.terms.iter().map(|(term, &id)| (&**term, id))
    }

    /// The stem of a term; for explanations, which are rare.
    pub(super) fn text(&self, term: TermId) -> &str {
        self.terms().find(|&(_, id)| id == term).map_or("", |(text, _)| text)
    }

    pub(super) fn postings(&self, term: TermId) -> std::ops::Range<usize> {
        self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize
    }

    /// In how many tools a term occurs.
    pub(super) fn frequency(&self, term: TermId) -> usize {
        self.postings(term).len()
    }

    /// How telling a term is that occurs in this many tools.
    pub(super) fn idf(&self, frequency: usize) -> f32 {
        let (count, frequency) = (self.count as f32, frequency as f32);
        (1.0 + (count - frequency + 0.5) / (frequency + 0.5)).ln()
    }

    pub(super) fn best(&self, term: TermId) -> f32 {
        self.best[term as usize]
    }

    /// The words of a tool's name.
    pub(super) fn name(&self, tool: usize) -> &[TermId] {
        &self.name_terms[self.name_starts[tool] as usize..self.name_starts[tool + 1] as usize]
    }
}

/// One tool while it is read: its words with the fields they are in.
#[derive(Default)]
struct Document {
    words: Vec<(TermId, Field)>,
    name: Vec<TermId>,
    lengths: [u32; FIELDS],
}

/// A word as it stands in texts, looked at once.
struct Raw {
    text: Box<str>,
    english: TermId,
    function_word: u16,
}

/// Reads tools into an index. Each word is stemmed once, however often it occurs.
struct Reader<'a> {
    settings: &'a Settings,
    raws: HashMap<Box<str>, u32>,
    raw: Vec<Raw>,
    foreign: HashMap<(u32, Language), TermId>,
    terms: HashMap<Box<str>, TermId>,
    /// For each term the tools and how often it occurs in each field.
    postings: Vec<Vec<(u32, [u8; FIELDS])>>,
    lengths: Vec<[u32; FIELDS]>,
    names: Vec<Vec<TermId>>,
    languages: Vec<Language>,
    text: Vec<u32>,
}

impl<'a> Reader<'a> {
    fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            raws: HashMap::new(),
            raw: Vec::new(),
            foreign: HashMap::new(),
            terms: HashMap::new(),
            postings: Vec::new(),
            lengths: Vec::new(),
            names: Vec::new(),
            languages: Vec::new(),
            text: Vec::new(),
        }
    }

    fn term(&mut self, stem: String) -> TermId {
        if let Some(&id) = self.terms.get(&*stem) {
            return id;
        }
        let id = self.terms.len() as TermId;
        self.terms.insert(stem.into(), id);
        self.postings.push(Vec::new());
        id
    }

    fn raw(&mut self, word: &str) -> u32 {
        if let Some(&id) = self.raws.get(word) {
            return id;
        }
        let id = self.raw.len() as u32;
        let english = self.term(if self.settings.stems { Language::English.stem(word) } else { word.to_owned() });
        self.raw.push(Raw { text: word.into(), english, function_word: function_word(word) });
        self.raws.insert(word.into(), id);
        id
    }

    fn read(&mut self, document: &mut Document, field: Field, text: &str) {
        let mut words = std::mem::take(&mut self.text);
        words.clear();
        tokens::words(text, &mut |word| words.push(self.raw(word)));
        let mut guess = Guess::default();
        for &word in &words {
            let raw = &self.raw[word as usize];
            if raw.function_word != 0 || !raw.text.is_ascii() {
                guess.see(&raw.text, raw.function_word);
            }
        }
        let language = if self.settings.stems { guess.language() } else { Language::English };
        if language != Language::English && !self.languages.contains(&language) {
            self.languages.push(language);
        }
        let stops = |raw: &Raw| self.settings.stop_words && is_stop(raw.function_word, language);
        // A name that says nothing is still a name.
        let keep_all = words.iter().all(|&word| stops(&self.raw[word as usize]));
        words.retain(|&word| keep_all || !stops(&self.raw[word as usize]));
        for &word in &words {
            let term = self.stem(word, language);
            document.words.push((term, field));
            document.lengths[field as usize] += 1;
            if field == Field::Name && !document.name.contains(&term) {
                document.name.push(term);
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
        let term = self.term(language.stem(&self.raw[word as usize].text));
        self.foreign.insert((word, language), term);
        term
    }

    fn finish(&mut self, mut document: Document) {
        let tool = self.lengths.len() as u32;
        document.words.sort_unstable_by_key(|&(term, _)| term);
        for same in document.words.chunk_by(|a, b| a.0 == b.0) {
            let mut counts = [0_u8; FIELDS];
            for &(_, field) in same {
                counts[field as usize] = counts[field as usize].saturating_add(1);
            }
            self.postings[same[0].0 as usize].push((tool, counts));
        }
        self.lengths.push(document.lengths);
        self.names.push(document.name);
    }

    fn index(self) -> Index {
        let Settings { fields, length, saturation, .. } = *self.settings;
        let count = self.lengths.len();
        let average: [f32; FIELDS] = std::array::from_fn(|field| {
            let total: u32 = self.lengths.iter().map(|lengths| lengths[field]).sum();
            (total as f32 / count.max(1) as f32).max(1e-6)
        });
        let mut index = Index { terms: self.terms, languages: self.languages, count, ..Index::default() };
        for postings in &self.postings {
            index.starts.push(index.tools.len() as u32);
            let mut best = 0.0_f32;
            for (tool, counts) in postings {
                let lengths = &self.lengths[*tool as usize];
                let frequency: f32 = (0..FIELDS)
                    .filter(|&field| counts[field] > 0)
                    .map(|field| {
                        let norm = 1.0 - length + length * lengths[field] as f32 / average[field];
                        fields[field] * f32::from(counts[field]) / norm
                    })
                    .sum();
                let impact = frequency * (saturation + 1.0) / (saturation + frequency);
                index.tools.push(*tool);
                index.impacts.push(impact);
                best = best.max(impact);
            }
            index.best.push(best);
        }
        index.starts.push(index.tools.len() as u32);
        for name in &self.names {
            index.name_starts.push(index.name_terms.len() as u32);
            index.name_terms.extend(name);
        }
        index.name_starts.push(index.name_terms.len() as u32);
        index
    }
}
