//! The words that occur, each with a number: its place in the order of their texts.

use super::digests::Digests;
use super::index::TermId;

/// Stems in the order of their texts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vocabulary {
    texts: Box<str>,
    /// Where each text starts; one more than there are texts.
    starts: Vec<u32>,
    places: Digests,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::new([])
    }
}

impl Vocabulary {
    /// Of distinct texts in their order.
    pub(super) fn new<'a>(texts: impl IntoIterator<Item = &'a str> + Clone) -> Self {
        let places = Digests::new(texts.clone().into_iter().zip(0..));
        let mut all = String::new();
        let mut starts = vec![0];
        for text in texts {
            all.push_str(text);
            starts.push(all.len() as u32);
        }
        starts.shrink_to_fit();
        Self { texts: all.into(), starts, places }
    }

    /// The bytes that it takes on the heap.
    pub(super) fn heap(&self) -> usize {
        self.texts.len() + 4 * self.starts.capacity() + self.places.heap()
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn text(&self, term: TermId) -> &str {
        &self.texts[self.starts[term as usize] as usize..self.starts[term as usize + 1] as usize]
    }

    /// The texts, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as TermId).map(|term| self.text(term))
    }

    pub(super) fn find(&self, text: &str) -> Option<TermId> {
        self.places.of(text).find(|&term| self.text(term) == text)
    }

    /// The terms that start with a text: they stand side by side.
    pub(super) fn starting(&self, prefix: &str) -> std::ops::Range<TermId> {
        let first = |is_before: &dyn Fn(&str) -> bool| {
            let (mut from, mut to) = (0, self.len() as TermId);
            while from < to {
                let middle = from.midpoint(to);
                if is_before(self.text(middle)) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            from
        };
        first(&|text| text < prefix)..first(&|text| text < prefix || text.starts_with(prefix))
    }
}
