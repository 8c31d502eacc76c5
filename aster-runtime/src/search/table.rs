//! The word table: which words mean the same or nearly, and where each lies in a space of meanings.
//!
//! It is made offline by the scripts of `tools/search` and read where it lies: nothing is parsed, nothing is copied. All
//! numbers are little-endian:
//!
//! | part | what |
//! |---|---|
//! | header | `ASTW`, then as `u32`: 2, words n, slots as a power of two s, dimensions d, near words m |
//! | slots | 2^s × `u16`: FNV-1a of a word leads to its number plus 1, or to the next slot; 0 ends the search |
//! | key starts | (n + 1) × `u32` |
//! | keys | the stems, one after the other, filled up to a multiple of 4 bytes |
//! | near starts | (n + 1) × `u32` |
//! | near | m × (`u16` word, `u8` kind, `u8` weight in 255ths) |
//! | norms | n × `f32`: what a word's vector is to be multiplied by |
//! | says | n × `u8`: how much a word says of what a text is about, in 255ths |
//! | vectors | n × d × `i8` |

use std::borrow::Cow;
use std::sync::LazyLock;

/// Why one word stands for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It means the same: written by hand, other languages included.
    Synonym,
    /// It is used alike: learned.
    Neighbour,
}

/// A table of words, read in place.
#[derive(Clone)]
pub struct WordTable {
    bytes: Cow<'static, [u8]>,
    words: usize,
    slots: u32,
    dimensions: usize,
    key_starts: usize,
    keys: usize,
    near_starts: usize,
    near: usize,
    norms: usize,
    says: usize,
    vectors: usize,
}

const HEADER: usize = 24;

/// The table that is not one, for searching by the tools' own words alone.
static NOTHING: [u8; 0] = [];

/// The built-in table, checked once.
static BUILT_IN: LazyLock<WordTable> = LazyLock::new(|| {
    #[cfg(feature = "words")]
    if let Ok(table) = WordTable::read(include_bytes!("words.bin").as_slice()) {
        return table;
    }
    WordTable::empty()
});

/// Why bytes are no word table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWordTable {
    /// They are something else.
    #[error("no word table: it does not begin with `ASTW`")]
    Foreign,
    /// It is of another format than this version of the crate reads.
    #[error(
        "a word table of format {0}, and not of format 2: make it anew with this version's tools/search/table.py"
    )]
    Format(u32),
    /// It has more than a table can have.
    #[error("a word table with {number} {what}, of which there may be {most} at most")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        number: u32,
        /// How many there may be.
        most: u32,
    },
    /// It is cut off, or has something after its end.
    #[error("a word table of {found} bytes, and not of the {expected} that its head says")]
    Length {
        /// How many bytes there are.
        found: usize,
        /// How many there should be.
        expected: u64,
    },
    /// A number in it leads to where nothing is.
    #[error("entry {at} of the {part} of the word table leads nowhere: it is damaged")]
    Damaged {
        /// The part, as the description of the format names it.
        part: &'static str,
        /// Which entry of it, from 0.
        at: usize,
    },
}

impl WordTable {
    /// The table that is built in; one that knows no word without the feature `words`.
    #[must_use]
    pub fn built_in() -> Self {
        BUILT_IN.clone()
    }

    /// A table that knows no word.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            bytes: Cow::Borrowed(&NOTHING),
            words: 0,
            slots: 0,
            dimensions: 0,
            key_starts: 0,
            keys: 0,
            near_starts: 0,
            near: 0,
            norms: 0,
            says: 0,
            vectors: 0,
        }
    }

    /// The table in these bytes, which `tools/search/table.py` makes.
    ///
    /// # Errors
    ///
    /// [`InvalidWordTable`] where they are none, or one that is damaged.
    pub fn read(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, InvalidWordTable> {
        let bytes = bytes.into();
        if !bytes.starts_with(b"ASTW") {
            return Err(InvalidWordTable::Foreign);
        }
        let header = [4, 8, 12, 16, 20].map(|at| u32_at(&bytes, at));
        let [Some(format), Some(words), Some(slots), Some(dimensions), Some(near)] = header else {
            return Err(InvalidWordTable::Length { found: bytes.len(), expected: HEADER as u64 });
        };
        if format != 2 {
            return Err(InvalidWordTable::Format(format));
        }
        for (what, number, most) in [
            ("words", words, u32::from(u16::MAX) - 1),
            ("bits of slots", slots, 20),
            ("dimensions", dimensions, 1024),
            ("near words", near, 1 << 24),
        ] {
            if number > most {
                return Err(InvalidWordTable::TooLarge { what, number, most });
            }
        }
        let length =
            |expected: usize| InvalidWordTable::Length { found: bytes.len(), expected: expected as u64 };
        let (words, dimensions, near_count) = (words as usize, dimensions as usize, near as usize);
        let key_starts = HEADER + (2 << slots);
        let keys = key_starts + 4 * (words + 1);
        // No longer than all, so that nothing below is more than a number can be.
        let key_bytes = u32_at(&bytes, keys - 4).map(|end| end as usize).filter(|&end| end <= bytes.len());
        let near_starts = keys + key_bytes.ok_or_else(|| length(keys))?.next_multiple_of(4);
        let near = near_starts + 4 * (words + 1);
        let norms = near + 4 * near_count;
        let says = norms + 4 * words;
        let vectors = says + words;
        let end = vectors + words * dimensions;
        if bytes.len() != end {
            return Err(length(end));
        }
        let table = Self {
            bytes,
            words,
            slots,
            dimensions,
            key_starts,
            keys,
            near_starts,
            near,
            norms,
            says,
            vectors,
        };
        table.check(near_count)?;
        Ok(table)
    }

    /// Whether every number in it leads to something.
    fn check(&self, near_count: usize) -> Result<(), InvalidWordTable> {
        let numbers = |from: usize, count: usize| {
            self.bytes[from..from + 4 * count]
                .chunks_exact(4)
                .map(|bytes| u32_at(bytes, 0).unwrap_or_default())
        };
        let slots = self.bytes[HEADER..self.key_starts].chunks_exact(2);
        let word = |bytes: &[u8]| usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        all("slots", slots.map(|slot| word(slot) <= self.words))?;
        for (part, starts, most) in [
            ("key starts", self.key_starts, self.near_starts - self.keys),
            ("near starts", self.near_starts, near_count),
        ] {
            let mut last = 0;
            let mut ascending =
                |start: u32| std::mem::replace(&mut last, start) <= start && start as usize <= most;
            all(part, numbers(starts, self.words + 1).map(&mut ascending))?;
        }
        let near = self.bytes[self.near..self.norms].chunks_exact(4);
        all("near words", near.map(|near| word(near) < self.words))?;
        all("norms", numbers(self.norms, self.words).map(|norm| f32::from_bits(norm).is_finite()))
    }

    /// How many words it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// How many dimensions its space of meanings has.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The number of a stem.
    pub(super) fn find(&self, stem: &str) -> Option<u16> {
        if self.words == 0 {
            return None;
        }
        let mask = (1_usize << self.slots) - 1;
        let mut slot = fnv1a(stem.as_bytes()) as usize & mask;
        for _ in 0..=mask {
            let word = u16_at(&self.bytes, HEADER + 2 * slot)?.checked_sub(1)?;
            if self.key(word) == Some(stem.as_bytes()) {
                return Some(word);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    fn key(&self, word: u16) -> Option<&[u8]> {
        let [from, to] = self.range(self.key_starts, word)?;
        self.bytes.get(self.keys + from..self.keys + to)
    }

    fn range(&self, starts: usize, word: u16) -> Option<[usize; 2]> {
        let at = starts + 4 * usize::from(word);
        Some([u32_at(&self.bytes, at)? as usize, u32_at(&self.bytes, at + 4)? as usize])
    }

    /// The words that may stand for this one, each with the reason and how far, from 0 to 1.
    pub(super) fn near(&self, word: u16) -> impl Iterator<Item = (u16, Kind, f32)> {
        let [from, to] = self.range(self.near_starts, word).unwrap_or_default();
        let entries = self.bytes.get(self.near + 4 * from..self.near + 4 * to).unwrap_or_default();
        entries.chunks_exact(4).map(|entry| {
            let kind = if entry[2] == 0 { Kind::Synonym } else { Kind::Neighbour };
            (u16::from_le_bytes([entry[0], entry[1]]), kind, f32::from(entry[3]) / 255.0)
        })
    }

    /// How much a word says of what a text is about, from 0 to 1: "recipe" in full, "want" little.
    pub(super) fn says(&self, word: u16) -> f32 {
        self.bytes.get(self.says + usize::from(word)).map_or(1.0, |&says| f32::from(says) / 255.0)
    }

    /// Adds a word's place in the space of meanings, `weight` times.
    pub(super) fn add_vector(&self, word: u16, weight: f32, sum: &mut [f32]) {
        let word = usize::from(word);
        let norm = self.bytes.get(self.norms + 4 * word..).and_then(|bytes| bytes.first_chunk());
        let from = self.vectors + word * self.dimensions;
        let (Some(norm), Some(vector)) = (norm, self.bytes.get(from..from + self.dimensions)) else { return };
        let weight = weight * f32::from_le_bytes(*norm);
        for (sum, &value) in sum.iter_mut().zip(vector) {
            *sum += weight * f32::from(value.cast_signed());
        }
    }
}

impl std::fmt::Debug for WordTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WordTable").field("words", &self.words).finish_non_exhaustive()
    }
}

/// Whether all entries of a part are right.
fn all(part: &'static str, mut right: impl Iterator<Item = bool>) -> Result<(), InvalidWordTable> {
    match right.position(|right| !right) {
        Some(at) => Err(InvalidWordTable::Damaged { part, at }),
        None => Ok(()),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_le_bytes(*chunk))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

/// The 32-bit hash of Fowler, Noll and Vo: short words, and the same on every machine.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::super::language::Language;
    use super::*;

    #[cfg(feature = "words")]
    #[test]
    fn keys_are_stems() {
        let table = WordTable::built_in();
        assert!(table.len() > 10_000);
        for word in
            ["repositories", "delete", "weather", "kubernetes", "organisation", "translate", "analyses"]
        {
            assert!(table.find(&Language::English.stem(word)).is_some(), "{word}");
        }
        for (language, word) in [
            (Language::Turkish, "dosya"),
            (Language::Spanish, "buscar"),
            (Language::German, "löschen"),
            (Language::Russian, "погода"),
        ] {
            let found = table.find(&language.stem(word)).expect(word);
            assert!(table.near(found).next().is_some(), "{word}");
        }
        let film = table.find(&Language::English.stem("film")).unwrap();
        let movie = table.find(&Language::English.stem("movie")).unwrap();
        assert!(table.near(film).any(|(near, _, weight)| near == movie && weight > 0.5));
    }

    #[test]
    fn what_is_no_table_is_none() {
        let error = |bytes: &[u8]| WordTable::read(bytes.to_vec()).unwrap_err();
        assert_eq!(error(b""), InvalidWordTable::Foreign);
        assert_eq!(error(b"ASTW"), InvalidWordTable::Length { found: 4, expected: 24 });
        let head =
            |numbers: [u32; 5]| [b"ASTW".as_slice(), numbers.map(u32::to_le_bytes).as_flattened()].concat();
        assert_eq!(error(&head([1, 0, 0, 0, 0])), InvalidWordTable::Format(1));
        assert!(matches!(error(&head([2, 60_000, 16, 64, 5])), InvalidWordTable::Length { .. }));
        assert!(matches!(error(&head([2, 70_000, 16, 64, 5])), InvalidWordTable::TooLarge { .. }));
        assert!(WordTable::empty().find("x").is_none());
    }

    /// A table of two words, the second of them near to the first.
    fn small() -> Vec<u8> {
        let mut bytes =
            [b"ASTW".as_slice(), [2_u32, 2, 2, 2, 1].map(u32::to_le_bytes).as_flattened()].concat();
        let mut slots = [0_u16; 4];
        for (number, word) in [(1, "list"), (2, "file")] {
            let mut slot = fnv1a(word.as_bytes()) as usize % 4;
            while slots[slot] != 0 {
                slot = (slot + 1) % 4;
            }
            slots[slot] = number;
        }
        bytes.extend(slots.map(u16::to_le_bytes).as_flattened());
        bytes.extend([0_u32, 4, 8].map(u32::to_le_bytes).as_flattened());
        bytes.extend(b"listfile");
        bytes.extend([0_u32, 1, 1].map(u32::to_le_bytes).as_flattened());
        bytes.extend([1, 0, 0, 255]);
        bytes.extend([1.0_f32, 1.0].map(f32::to_le_bytes).as_flattened());
        bytes.extend([255, 255, 1, 2, 3, 4]);
        bytes
    }

    #[test]
    fn a_number_that_leads_nowhere_is_told() {
        let bytes = small();
        let table = WordTable::read(bytes.clone()).unwrap();
        assert_eq!(table.near(table.find("list").unwrap()).next(), Some((1, Kind::Synonym, 1.0)));
        let mut damaged = bytes.clone();
        damaged[64] = 2;
        let error = WordTable::read(damaged).unwrap_err();
        assert_eq!(
            error.to_string(),
            "entry 0 of the near words of the word table leads nowhere: it is damaged"
        );
    }

    proptest::proptest! {
        /// Whatever the bytes are: either they are refused, or a search with them is one.
        #[test]
        fn a_damaged_table_is_refused_or_searches(
            damage in proptest::collection::vec((0_usize..90, proptest::num::u8::ANY), 0..4), cut in 0_usize..90,
            whole in proptest::bool::weighted(0.8),
        ) {
            let mut bytes = small();
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            if !whole {
                bytes.truncate(cut);
            }
            if let Ok(table) = WordTable::read(bytes) {
                let view = super::super::tests::view(&[("hub", &["list_file", "file"])]);
                let lexical = crate::search::Lexical::with(&view, crate::search::Settings::default(), table);
                crate::search::Ranker::rank(&lexical, "list files of lists", None, 5);
            }
        }
    }
}
