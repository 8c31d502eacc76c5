//! Words that no tool has: what they could have been meant as.

use std::cmp::Reverse;

use super::digests::Digests;
use super::index::{Index, TermId};
use super::vocabulary::Vocabulary;

/// What of the vocabulary is looked at to find words by likeness.
#[derive(Debug)]
pub(super) struct Speller {
    /// For each term.
    shapes: Vec<Shape>,
    /// The terms by their texts without the first letter.
    tails: Digests,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    /// Which letters are in it, one bit each.
    letters: u32,
    /// How many characters it has; 0 where nobody could mean it.
    length: u8,
}

fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |set, b| set | 1 << (b & 31))
}

/// A word without its first letter.
fn tail(word: &str) -> &str {
    word.char_indices().nth(1).map_or("", |(at, _)| &word[at..])
}

impl Speller {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let shape = |text: &str| {
            let is_word = text.chars().next().is_some_and(char::is_alphabetic);
            let length = u8::try_from(text.chars().count()).ok().filter(|length| (3..=40).contains(length));
            Shape { letters: letters(text), length: length.filter(|_| is_word).unwrap_or_default() }
        };
        let shapes: Vec<Shape> = vocabulary.iter().map(shape).collect();
        let words = vocabulary.iter().zip(0..).filter(|&(_, term)| shapes[term as usize].length > 0);
        let tails = Digests::new(words.map(|(text, term)| (tail(text), term)));
        Self { shapes, tails }
    }

    /// The bytes that it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.shapes.capacity() * size_of::<Shape>() + self.tails.heap()
    }

    /// The terms among these that a word begins, the commonest three.
    pub(super) fn completions(
        &self,
        index: &Index,
        word: &str,
        among: impl Fn(TermId) -> bool,
    ) -> Vec<TermId> {
        let starting = index.vocabulary().starting(word);
        let is_one = |&term: &TermId| self.shapes[term as usize].length > 0 && among(term);
        let mut found: Vec<TermId> = starting.filter(is_one).collect();
        found.sort_by_key(|&term| Reverse(index.frequency(term)));
        found.truncate(3);
        found
    }

    /// The terms among these that are nearest to a word: one slip off, or two for a longer word, each with the number of slips; the nearest
    /// first, then the commonest, at most four.
    pub(super) fn corrections(
        &self,
        index: &Index,
        word: &str,
        among: impl Fn(TermId) -> bool,
    ) -> Vec<(TermId, usize)> {
        let length = word.chars().count();
        let most = if length <= 5 { 1 } else { 2 };
        let own = letters(word);
        // The number of a term is the place of its text.
        let mut found: Vec<(usize, Reverse<u32>, TermId)> = Vec::new();
        let mut consider = |term: TermId, most: usize| {
            let shape = self.shapes[term as usize];
            let near = shape.length > 0
                && usize::from(shape.length).abs_diff(length) <= most
                && (shape.letters ^ own).count_ones() as usize <= 2 * most;
            if near {
                let distance = strsim::osa_distance(index.text(term), word);
                if distance <= most && among(term) {
                    found.push((distance, Reverse(index.frequency(term)), term));
                }
            }
        };
        let first = word.chars().next().map(String::from).unwrap_or_default();
        let same_start = index.vocabulary().starting(&first);
        same_start.clone().for_each(|term| consider(term, most));
        // A slip on the first letter leaves the rest as it is: another letter, or one too few, or one too many, or swapped.
        let mut chars = word.chars();
        let (one, two) = (chars.next(), chars.next());
        let swapped: String = two.into_iter().chain(one).chain(chars).collect();
        for rest in [tail(word), word, tail(tail(word)), tail(&swapped)] {
            self.tails.of(rest).filter(|term| !same_start.contains(term)).for_each(|term| consider(term, 1));
        }
        found.sort_unstable();
        found.dedup();
        let nearest = found.first().map_or(0, |first| first.0);
        found
            .into_iter()
            .take_while(|found| found.0 == nearest)
            .take(4)
            .map(|(slips, _, term)| (term, slips))
            .collect()
    }
}
