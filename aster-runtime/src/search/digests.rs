//! Places by text, without keeping the texts: whoever looks one up compares what stands there.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// The digest of each text, in the upper half, with its place, ascending. Several texts may have one digest.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Digests(Vec<u64>);

impl Digests {
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        Self::sorted(
            texts.into_iter().map(|(text, place)| u64::from(digest(text)) << 32 | u64::from(place)).collect(),
        )
    }

    fn sorted(mut all: Vec<u64>) -> Self {
        all.sort_unstable();
        all.dedup();
        all.shrink_to_fit();
        Self(all)
    }

    /// The bytes that they take on the heap.
    pub(super) fn heap(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }

    /// The places where the text may be.
    pub(super) fn of(&self, text: &str) -> impl Iterator<Item = u32> {
        let digest = digest(text);
        let from = self.0.partition_point(|&entry| ((entry >> 32) as u32) < digest);
        self.0[from..]
            .iter()
            .take_while(move |&&entry| (entry >> 32) as u32 == digest)
            .map(|&entry| entry as u32)
    }
}

fn digest(text: &str) -> u32 {
    FixedState::default().hash_one(text) as u32
}
