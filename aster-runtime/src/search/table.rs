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

impl WordTable {
    /// The table that is built in; one that knows no word without the feature `words`.
    #[must_use]
    pub fn built_in() -> Self {
        #[cfg(feature = "words")]
        if let Some(table) = Self::read(include_bytes!("words.bin").as_slice()) {
            return table;
        }
        Self::empty()
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

    /// The table in these bytes; `None` where they are none.
    #[must_use]
    pub fn read(bytes: impl Into<Cow<'static, [u8]>>) -> Option<Self> {
        let bytes = bytes.into();
        if bytes.get(..4)? != b"ASTW" || u32_at(&bytes, 4)? != 2 {
            return None;
        }
        let [words, slots, dimensions, near] = [8, 12, 16, 20].map(|at| u32_at(&bytes, at));
        let (words, slots, dimensions, near_count) =
            (words? as usize, slots?, dimensions? as usize, near? as usize);
        if words >= usize::from(u16::MAX) || slots > 20 || dimensions > 1024 {
            return None;
        }
        let key_starts = HEADER + (2 << slots);
        let keys = key_starts + 4 * (words + 1);
        let near_starts = keys + (u32_at(&bytes, keys - 4)? as usize).checked_next_multiple_of(4)?;
        let near = near_starts.checked_add(4 * (words + 1))?;
        let norms = near.checked_add(4 * near_count)?;
        let says = norms + 4 * words;
        let vectors = says + words;
        (bytes.len() == vectors + words * dimensions).then_some(Self {
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
        })
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
        assert!(WordTable::read(&b""[..]).is_none());
        assert!(WordTable::read(&b"ASTW"[..]).is_none());
        let mut bytes = b"ASTW".to_vec();
        for number in [2_u32, 60_000, 16, 64, 5] {
            bytes.extend(number.to_le_bytes());
        }
        assert!(WordTable::read(bytes).is_none());
        assert!(WordTable::empty().find("x").is_none());
    }
}
