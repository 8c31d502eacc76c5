//! Words that no tool has: what they could have been meant as.

use std::cmp::Reverse;

use super::digests::Digests;
use super::index::{Index, TermId};

/// The vocabulary, for looking through it by likeness.
#[derive(Debug, Default)]
pub(super) struct Speller {
    /// In the order of their texts.
    entries: Vec<Entry>,
    /// The entries by their texts without the first letter.
    tails: Digests,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    /// Which letters are in it, one bit each.
    letters: u32,
    length: u8,
    term: TermId,
}

fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |set, b| set | 1 << (b & 31))
}

/// A word without its first letter.
fn tail(word: &str) -> &str {
    word.char_indices().nth(1).map_or("", |(at, _)| &word[at..])
}

impl Speller {
    pub(super) fn new(index: &Index) -> Self {
        let mut entries: Vec<Entry> = index
            .terms()
            .filter(|(text, _)| text.chars().next().is_some_and(char::is_alphabetic))
            .filter_map(|(text, term)| {
                let length =
                    u8::try_from(text.chars().count()).ok().filter(|length| (3..=40).contains(length))?;
                Some(Entry { text: text.into(), letters: letters(text), length, term })
            })
            .collect();
        entries.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        let tails = Digests::new(entries.iter().zip(0..).map(|(entry, at)| (tail(&entry.text), at)));
        Self { entries, tails }
    }

    /// The bytes that it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.entries.iter().map(|entry| entry.text.len()).sum::<usize>()
            + self.tails.heap()
    }

    /// The entries that start with a text, in order.
    fn starting(&self, prefix: &str) -> &[Entry] {
        let from = self.entries.partition_point(|entry| &*entry.text < prefix);
        let rest = &self.entries[from..];
        &rest[..rest.partition_point(|entry| entry.text.starts_with(prefix))]
    }

    /// The terms that a word begins, the commonest three.
    pub(super) fn completions(&self, index: &Index, word: &str) -> Vec<TermId> {
        let mut found: Vec<TermId> = self.starting(word).iter().map(|entry| entry.term).collect();
        found.sort_by_key(|&term| Reverse(index.frequency(term)));
        found.truncate(3);
        found
    }

    /// The terms nearest to a word: one slip off, or two for a longer word, each with the number of slips; the nearest
    /// first, then the commonest, at most four.
    pub(super) fn corrections(&self, index: &Index, word: &str) -> Vec<(TermId, usize)> {
        let length = word.chars().count();
        let most = if length <= 5 { 1 } else { 2 };
        let own = letters(word);
        let mut found: Vec<(usize, Reverse<usize>, &str, TermId)> = Vec::new();
        let try_entry = |entry: &'_ Entry, most: usize| {
            let near = usize::from(entry.length).abs_diff(length) <= most
                && (entry.letters ^ own).count_ones() as usize <= 2 * most;
            if !near {
                return None;
            }
            let distance = strsim::osa_distance(&entry.text, word);
            (distance <= most).then_some(distance)
        };
        let first = word.chars().next().map(String::from).unwrap_or_default();
        for entry in self.starting(&first) {
            if let Some(distance) = try_entry(entry, most) {
                found.push((distance, Reverse(index.frequency(entry.term)), &entry.text, entry.term));
            }
        }
        // A slip on the first letter leaves the rest as it is: another letter, or one too few, or one too many, or swapped.
        let mut chars = word.chars();
        let (one, two) = (chars.next(), chars.next());
        let swapped: String = two.into_iter().chain(one).chain(chars).collect();
        for rest in [tail(word), word, tail(tail(word)), tail(&swapped)] {
            for at in self.tails.of(rest) {
                let entry = &self.entries[at as usize];
                if entry.text.starts_with(&first) {
                    continue;
                }
                if let Some(distance) = try_entry(entry, 1) {
                    found.push((distance, Reverse(index.frequency(entry.term)), &entry.text, entry.term));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        let nearest = found.first().map_or(0, |first| first.0);
        found
            .into_iter()
            .take_while(|found| found.0 == nearest)
            .take(4)
            .map(|(slips, _, _, term)| (term, slips))
            .collect()
    }
}
