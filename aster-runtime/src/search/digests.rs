//! Places by text, without keeping the texts: whoever looks one up compares what stands there.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// The digest of each text with its place, ascending. Several texts may have one digest.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Digests(Vec<(u32, u32)>);

impl Digests {
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let mut all: Vec<_> = texts.into_iter().map(|(text, place)| (digest(text), place)).collect();
        all.sort_unstable();
        all.dedup();
        all.shrink_to_fit();
        Self(all)
    }

    /// The bytes that they take on the heap.
    pub(super) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<(u32, u32)>()
    }

    /// The places where the text may be.
    pub(super) fn of(&self, text: &str) -> impl Iterator<Item = u32> {
        let digest = digest(text);
        let from = self.0.partition_point(|&(other, _)| other < digest);
        self.0[from..].iter().take_while(move |&&(other, _)| other == digest).map(|&(_, place)| place)
    }
}

fn digest(text: &str) -> u32 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(text) as u32
}
