//! Words that no tool has: what they could have been meant as.

use std::collections::HashMap;

use super::index::{Index, TermId};

/// The vocabulary by first letter, for looking through it by likeness.
#[derive(Debug, Default)]
pub(super) struct Speller {
    by_initial: HashMap<char, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    text: Box<str>,
    letters: u32,
    length: u8,
    term: TermId,
}

/// Which letters occur in a word, one bit each.
fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |set, b| set | 1 << (b & 31))
}

impl Speller {
    pub(super) fn new(index: &Index) -> Self {
        let mut by_initial: HashMap<char, Vec<Entry>> = HashMap::new();
        for (text, term) in index.terms() {
            let length = text.chars().count();
            let Some(initial) = text.chars().next().filter(|c| c.is_alphabetic()) else { continue };
            if index.frequency(term) == 0 || !(3..=40).contains(&length) {
                continue;
            }
            let entry = Entry { text: text.into(), letters: letters(text), length: length as u8, term };
            by_initial.entry(initial).or_default().push(entry);
        }
        for entries in by_initial.values_mut() {
            entries.sort_unstable_by(|a, b| a.text.cmp(&b.text));
        }
        Self { by_initial }
    }

    /// The terms that a word begins, the commonest three.
    pub(super) fn completions(&self, index: &Index, word: &str) -> Vec<TermId> {
        let entries = word.chars().next().and_then(|initial| self.by_initial.get(&initial));
        let entries = entries.map(Vec::as_slice).unwrap_or_default();
        let from = entries.partition_point(|entry| &*entry.text < word);
        let mut found: Vec<TermId> = entries[from..]
            .iter()
            .take_while(|entry| entry.text.starts_with(word))
            .map(|entry| entry.term)
            .collect();
        found.sort_by_key(|&term| std::cmp::Reverse(index.frequency(term)));
        found.truncate(3);
        found
    }

    /// The terms nearest to a word: one slip off, or two for a longer word, each with the number of slips; the nearest
    /// first, then the commonest, at most four.
    pub(super) fn corrections(&self, index: &Index, word: &str) -> Vec<(TermId, usize)> {
        let length = word.chars().count();
        let most = if length <= 5 { 1 } else { 2 };
        let initial = word.chars().next();
        let own = letters(word);
        let mut found: Vec<(usize, std::cmp::Reverse<usize>, &str, TermId)> = Vec::new();
        for (&first, entries) in &self.by_initial {
            // Few slip on the first letter, and then not elsewhere too.
            let most = if Some(first) == initial { most } else { 1 };
            for entry in entries {
                if usize::from(entry.length).abs_diff(length) > most
                    || (entry.letters ^ own).count_ones() as usize > 2 * most
                {
                    continue;
                }
                let distance = strsim::osa_distance(&entry.text, word);
                if distance <= most {
                    found.push((
                        distance,
                        std::cmp::Reverse(index.frequency(entry.term)),
                        &entry.text,
                        entry.term,
                    ));
                }
            }
        }
        found.sort_unstable();
        let nearest = found.first().map_or(0, |first| first.0);
        found
            .into_iter()
            .take_while(|found| found.0 == nearest)
            .take(4)
            .map(|(slips, _, _, term)| (term, slips))
            .collect()
    }
}
