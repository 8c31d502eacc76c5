//! From a query to what is looked up: groups of words, one for each word of the query.

use std::ops::Range;

use super::fields::texts;
use super::index::{TermId, server_of};
use super::language::{Guess, Language, function_word, is_stop};
use super::table::Kind;
use super::{Lexical, tokens};

/// One word of a query with all the words that may stand for it.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// The word as it was written.
    pub(super) word: String,
    /// How telling it is.
    pub(super) idf: f32,
    /// How much it says of what a text is about, from 0 to 1.
    says: f32,
    /// What is looked up, each with how far it stands for the word: the best first.
    pub(super) members: Vec<Member>,
}

/// A word that may stand for one of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Member {
    pub(super) term: TermId,
    /// How far it stands for it, from 0 to 1.
    pub(super) weight: f32,
    /// How telling it is, at most as much as the word it stands for.
    pub(super) idf: f32,
}

/// What a query asks for.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    /// How telling the words are together that can be found.
    pub(super) idf: f32,
    /// How far each term stands for a word of the query, by term.
    pub(super) weights: Vec<(TermId, f32)>,
    /// Where the query lies in the space of meanings, of length 127; empty where that is not known.
    pub(super) meaning: Vec<i8>,
}

/// More words than this are a text, and nobody has mistyped all of them.
const MAX_MISTYPED: usize = 6;

/// A shorter stem, in bytes, has no other forms: too many words begin with it.
const MIN_FORM: usize = 3;

/// How many terms that begin as a word does are looked at for its other forms. In 17,000 public tools no three letters begin
/// more.
const MAX_FORMS: usize = 1_024;

/// How many words of a query are looked at; the bridge takes no more than 256 bytes.
const MAX_WORDS: usize = 128;

/// A word of the query: as written and as stem.
struct Word {
    text: String,
    stem: String,
    /// How much it counts beside those that were written.
    weight: f32,
}

/// A word of the query as it stands there.
struct Raw {
    text: String,
    function_word: u16,
    /// Whether it is a word whose parts have just been.
    whole: bool,
}

/// Whether a word is what the last ones, two or more, are together.
fn is_whole(before: &[Raw], word: &str) -> bool {
    let mut rest = word;
    for (at, part) in before.iter().rev().enumerate() {
        match rest.strip_suffix(part.text.as_str()) {
            Some("") => return at > 0,
            Some(left) => rest = left,
            None => return false,
        }
    }
    false
}

impl Lexical {
    /// For a search of the tools in these places.
    pub(super) fn plan(&self, query: &str, places: &Range<u32>) -> Plan {
        let words = self.words_of(query);
        let mut plan =
            Plan { groups: words.iter().map(|word| self.group(word)).collect(), ..Plan::default() };
        self.join(&words, &mut plan.groups);
        if plan.groups.len() <= MAX_MISTYPED {
            for (group, word) in plan.groups.iter_mut().zip(&words) {
                if group.members.is_empty() {
                    self.mend(group, word, places);
                }
            }
        }
        plan.groups.retain(|group| !group.members.is_empty());
        for group in &mut plan.groups {
            group.idf *= group.says;
            group.members.iter_mut().for_each(|member| member.idf *= group.says);
            group.members.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        }
        plan.idf = plan.groups.iter().map(|group| group.idf).sum();
        let members = plan.groups.iter().flat_map(|group| &group.members);
        plan.weights = members.map(|member| (member.term, member.weight.min(1.0))).collect();
        plan.weights.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        plan.weights.dedup_by_key(|&mut (term, _)| term);
        plan.meaning = self.meaning_of(&words);
        plan
    }

    /// The distinct words of a query that say something; all of them where none does.
    fn words_of(&self, query: &str) -> Vec<Word> {
        let mut raw: Vec<Raw> = Vec::new();
        let mut guess = Guess::default();
        for run in query.split(|c: char| c.is_whitespace() || c.is_ascii_punctuation()) {
            let first = raw.len();
            tokens::words(run, &mut |word| {
                let function_word = function_word(word);
                guess.see(word, function_word);
                let whole = is_whole(&raw[first..], word);
                raw.push(Raw { text: word.to_owned(), function_word, whole });
            });
        }
        let language = guess.language();
        let stop = |function_word: u16| self.settings.stop_words && is_stop(function_word, language);
        let keep_all = raw.iter().all(|word| stop(word.function_word));
        let mut words: Vec<Word> = Vec::new();
        for Raw { text, function_word, whole } in raw {
            if words.len() == MAX_WORDS {
                break;
            }
            if !keep_all && stop(function_word) {
                continue;
            }
            let stem = self.stem(&text, language);
            // Its parts say it where no tool writes it so.
            if whole && self.index.term(&stem).is_none() {
                continue;
            }
            if words.iter().all(|word| word.stem != stem) {
                words.push(Word { text, stem, weight: 1.0 });
            }
        }
        if self.settings.clues > 0.0 {
            for clue in clues(query) {
                let stem = Language::English.stem(clue);
                if words.iter().all(|word| word.stem != stem) {
                    words.push(Word { text: clue.to_owned(), stem, weight: self.settings.clues });
                }
            }
        }
        words
    }

    /// The English stem, unless it is unknown and that of the query's language or of one of the tools' is not.
    fn stem(&self, word: &str, language: Language) -> String {
        if !self.settings.stems {
            return word.to_owned();
        }
        let known = |stem: &str| self.index.term(stem).is_some() || self.table.find(stem).is_some();
        let english = Language::English.stem(word);
        if language == Language::English && known(&english) {
            return english;
        }
        let others = [language].into_iter().chain(Language::FOREIGN).map(|language| language.stem(word));
        others.into_iter().find(|stem| known(stem)).unwrap_or(english)
    }

    fn group(&self, word: &Word) -> Group {
        let own = self.index.term(&word.stem);
        let idf = own.map_or(self.index.highest_idf(), |term| self.index.idf(term));
        let known = self.table.find(&word.stem);
        let says = known.map_or(1.0, |known| 1.0 - self.settings.says * (1.0 - self.table.says(known)))
            * word.weight;
        let mut group = Group { word: word.text.clone(), idf, says, members: Vec::new() };
        if let Some(term) = own {
            self.add(&mut group, term, 1.0);
        }
        // An English word is looked up as one; others may stand in the tools in another form.
        if known.is_none_or(|_| own.is_none()) && self.settings.stems && !is_plain_number(&word.text) {
            for language in self.index.languages() {
                for term in self.forms(&word.text, *language) {
                    self.add(&mut group, term, 1.0);
                }
            }
        }
        if let Some(known) = known {
            for (near, kind, weight) in self.table.near(known) {
                let weight = match kind {
                    Kind::Synonym => weight * self.settings.synonyms,
                    Kind::Neighbour => weight * self.settings.neighbours,
                };
                let term = self.known[usize::from(near)];
                if term != TermId::MAX && weight > 0.0 {
                    self.add(&mut group, term, weight);
                }
            }
        }
        group
    }

    /// The terms that are a word in some form of it, by the rules of a language: of short texts it is often not known that
    /// they are in it, and their words were left as they stand.
    fn forms(&self, word: &str, language: Language) -> impl Iterator<Item = TermId> {
        let stem = language.stem(word);
        let starting = self.index.vocabulary().starting(&stem);
        starting.take(MAX_FORMS).filter(move |&term| {
            let text = self.index.text(term);
            text.len() == stem.len() || (stem.len() >= MIN_FORM && language.stem(text) == stem)
        })
    }

    fn add(&self, group: &mut Group, term: TermId, weight: f32) {
        if let Some(member) = group.members.iter_mut().find(|member| member.term == term) {
            member.weight = member.weight.max(weight);
            return;
        }
        let idf = self.index.idf(term).min(group.idf);
        group.members.push(Member { term, weight, idf });
    }

    /// Two words of the query may be one of the tools': "hacker news" and `hackernews`.
    fn join(&self, words: &[Word], groups: &mut [Group]) {
        if self.settings.joined <= 0.0 {
            return;
        }
        for at in 1..words.len() {
            let joined = format!("{}{}", words[at - 1].text, words[at].text);
            let stem = if self.settings.stems { Language::English.stem(&joined) } else { joined };
            if let Some(term) = self.index.term(&stem) {
                self.add(&mut groups[at - 1], term, self.settings.joined);
                self.add(&mut groups[at], term, self.settings.joined);
            }
        }
    }

    /// A word that is nowhere: two in one, the start of one, or a slip of the hand.
    fn mend(&self, group: &mut Group, word: &Word, places: &Range<u32>) {
        let stem = &word.stem;
        let letters = stem.chars().count();
        if letters < 3 || !stem.chars().all(char::is_alphanumeric) {
            return;
        }
        if self.settings.split > 0.0 {
            for (at, _) in word.text.char_indices().skip(2) {
                let (left, right) = word.text.split_at(at);
                if right.chars().count() < 2 {
                    break;
                }
                let [left, right] = [left, right].map(|part| match self.settings.stems {
                    true => self.index.term(&Language::English.stem(part)),
                    false => self.index.term(part),
                });
                if let (Some(left), Some(right)) = (left, right) {
                    self.add(group, left, self.settings.split);
                    self.add(group, right, self.settings.split);
                    return;
                }
            }
        }
        let speller = &self.speller;
        let is_there = |term| self.is_among(term, places);
        if self.settings.prefix > 0.0 && letters >= 4 {
            for term in speller.completions(&self.index, stem, is_there) {
                self.add(group, term, self.settings.prefix);
            }
        }
        if group.members.is_empty() && self.settings.typo > 0.0 && stem.chars().all(char::is_alphabetic) {
            for (term, slips) in speller.corrections(&self.index, stem, is_there) {
                let weight = if slips == 1 { self.settings.typo } else { 0.7 * self.settings.typo };
                self.add(group, term, weight);
            }
        }
    }

    /// The words of the tools in these places that a query's are most like, for an answer that found nothing.
    pub(super) fn nearest_words(&self, query: &str, places: &Range<u32>, limit: usize) -> Vec<String> {
        let is_there = |term| self.is_among(term, places);
        let mut nearest: Vec<String> = Vec::new();
        for word in self.words_of(query) {
            let corrections = self.speller.corrections(&self.index, &word.stem, is_there);
            let completions = self.speller.completions(&self.index, &word.stem, is_there);
            let terms = corrections.into_iter().map(|(term, _)| term).chain(completions);
            for term in terms.take(2) {
                if nearest.len() == limit {
                    return nearest;
                }
                let whole = self.whole_word(term, places);
                if !nearest.contains(&whole) {
                    nearest.push(whole);
                }
            }
        }
        nearest
    }

    /// Whether a term occurs in the tools in these places.
    fn is_among(&self, term: TermId, places: &Range<u32>) -> bool {
        places.len() == self.view.tools().len() || self.index.postings().is_among(term, places)
    }

    /// A word of the tools in these places whose stem a term is, as the first of them has it.
    fn whole_word(&self, term: TermId, places: &Range<u32>) -> String {
        let stem = self.index.text(term);
        let is_whole = |word: &str| {
            let may_be = word.as_bytes().first() == stem.as_bytes().first() || !word.is_ascii();
            let mut languages = [Language::English].into_iter().chain(self.index.languages().iter().copied());
            word == stem || (self.settings.stems && may_be && languages.any(|one| one.stem(word) == stem))
        };
        let mut whole = None;
        let mut tools = self.index.postings().of(term).map(|(tool, _)| tool);
        if let Some(tool) = tools.find(|tool| places.contains(tool)) {
            let tool = &self.view.tools()[tool as usize];
            texts(tool, server_of(&self.view, tool), &mut |field, text| {
                if whole.is_none() && self.settings.fields[field as usize] > 0.0 {
                    tokens::words(text, &mut |word| {
                        if whole.is_none() && is_whole(word) {
                            whole = Some(word.to_owned());
                        }
                    });
                }
            });
        }
        whole.unwrap_or_else(|| stem.to_owned())
    }

    fn meaning_of(&self, words: &[Word]) -> Vec<i8> {
        if self.settings.meaning <= 0.0 || self.table.dimensions() == 0 {
            return Vec::new();
        }
        let mut sum = vec![0.0; self.table.dimensions()];
        for word in words {
            if let Some(known) = self.table.find(&word.stem) {
                self.table.add_vector(known, 1.0, &mut sum);
            }
        }
        let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if norm <= 1e-6 {
            return Vec::new();
        }
        sum.iter().map(|value| (value / norm * 127.0).round() as i8).collect()
    }
}

/// What the values in a query say of the tools that take them: one with an address in it is for a tool of addresses, one with
/// a path for a tool of files.
fn clues(query: &str) -> impl Iterator<Item = &'static str> {
    let apart = |c: char| c.is_whitespace() || ",;()<>[]\"'`".contains(c);
    let (mut url, mut file) = (false, false);
    for value in query.split(apart).map(|value| value.trim_end_matches(['.', ':', '!', '?'])) {
        if ["http://", "https://", "www."].iter().any(|start| value.starts_with(start)) {
            url = true;
        } else {
            file |= is_path(value);
        }
    }
    [(url, "url"), (file, "file")].into_iter().filter_map(|(is_there, clue)| is_there.then_some(clue))
}

/// Whether a text is a path: an absolute one with two names in it, or a name with the ending of a kind of file.
fn is_path(value: &str) -> bool {
    const ENDINGS: [&str; 26] = [
        "csv", "doc", "docx", "gif", "html", "jpeg", "jpg", "json", "log", "md", "mp3", "mp4", "pdf", "png",
        "ppt", "pptx", "py", "svg", "toml", "txt", "wav", "xls", "xlsx", "xml", "yaml", "zip",
    ];
    let rest = value.trim_start_matches(['~', '.']);
    let absolute = rest
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').filter(|name| !name.is_empty()).count() > 1);
    let drive = matches!(value.as_bytes(), [letter, b':', b'\\', _, ..] if letter.is_ascii_alphabetic());
    let ended = value.rsplit_once('.').is_some_and(|(name, ending)| {
        !name.is_empty() && ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known))
    });
    absolute || drive || ended
}

fn is_plain_number(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{servers_view, view};
    use super::*;

    /// Whoever has a tool with thousands of words that begin alike does not make each search look at them all.
    #[test]
    fn no_more_than_so_many_terms_are_looked_at_for_other_forms() {
        let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
        let hostile: Vec<String> = (0..2_000)
            .map(|number| format!("zebraa{}{}{}", letter(number / 676), letter(number / 26), letter(number)))
            .collect();
        let values = |values: &[String]| {
            let definition = json!({"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"enum": values}}}});
            Lexical::new(&servers_view(vec![("s", vec![definition])]))
        };
        let forms = |of: &Lexical| of.forms("zebra", Language::Turkish).collect::<Vec<_>>().len();
        assert_eq!(forms(&values(&["zebralar".to_owned()])), 1);
        assert_eq!(forms(&values(&[hostile, vec!["zebralar".to_owned()]].concat())), 0);
    }

    #[test]
    fn a_text_is_looked_up_by_its_first_words() {
        let lexical = Lexical::new(&view(&[("s", &["a"])]));
        let words: Vec<String> = (0..=MAX_WORDS).map(|number| format!("x{number}y")).collect();
        assert_eq!(lexical.words_of(&words.join("_")).len(), MAX_WORDS);
    }

    #[test]
    fn values_tell_what_takes_them() {
        let all = |query: &str| clues(query).collect::<Vec<_>>();
        assert_eq!(all("summarise https://a.example/b.html, please"), ["url"]);
        assert_eq!(all("save it to /root/notes/today.md."), ["file"]);
        assert_eq!(all("open report.PDF and www.a.example"), ["url", "file"]);
        assert_eq!(all(r"read C:\x\y"), ["file"]);
        for none in
            ["read and/or write", "a 3/4 cup", "version 1.2", "e.g. this", "hub/create_issue", "/help", ".md"]
        {
            assert!(all(none).is_empty(), "{none}");
        }
    }
}
