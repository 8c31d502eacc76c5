//! Where each word is, in blocks: the tools of a block stand side by side, so that they are mostly of one server.
//!
//! Each block says how much the word says there at most. A search adds these up first, and opens only the blocks that could
//! hold one of the best.

use std::ops::Range;

use super::index::TermId;

/// How many tools a block has: their places in it are bytes.
pub(super) const BLOCK: usize = 32;

/// What an impact of 1 is stored as.
const IMPACT: f32 = 8192.0;

/// For each term the tools that it occurs in, ascending, and what it says in each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Postings {
    /// Where the entries of each term start; one more than there are terms.
    terms: Vec<u32>,
    /// An entry for each block that a term occurs in: which, what the term says there at most, and where its tools start,
    /// of which there is one more.
    blocks: Vec<u32>,
    most: Vec<u16>,
    starts: Vec<u32>,
    /// The tools by their places in the block, and what the term says in each: BM25's saturated, length-normalised
    /// frequency over all fields.
    tools: Vec<u8>,
    impacts: Vec<u16>,
}

impl Default for Postings {
    fn default() -> Self {
        Self {
            terms: vec![0],
            blocks: Vec::new(),
            most: Vec::new(),
            starts: vec![0],
            tools: Vec::new(),
            impacts: Vec::new(),
        }
    }
}

impl Postings {
    /// Adds the next term with its tools, ascending. Returns how many they are.
    pub(super) fn push(&mut self, postings: impl Iterator<Item = (u32, u16)>) -> usize {
        let first = self.blocks.len();
        let before = self.tools.len();
        for (tool, impact) in postings {
            let block = tool / BLOCK as u32;
            if self.blocks.len() == first || self.blocks.last() != Some(&block) {
                self.blocks.push(block);
                self.most.push(0);
                self.starts.push(0);
            }
            self.tools.push((tool % BLOCK as u32) as u8);
            self.impacts.push(impact);
            let last = self.most.len() - 1;
            self.most[last] = self.most[last].max(impact);
            self.starts[last + 1] = self.tools.len() as u32;
        }
        self.terms.push(self.blocks.len() as u32);
        self.tools.len() - before
    }

    pub(super) fn shrink_to_fit(&mut self) {
        for numbers in [&mut self.terms, &mut self.blocks, &mut self.starts] {
            numbers.shrink_to_fit();
        }
        self.most.shrink_to_fit();
        self.tools.shrink_to_fit();
        self.impacts.shrink_to_fit();
    }

    /// The bytes that they take on the heap.
    pub(super) fn heap(&self) -> usize {
        4 * (self.terms.capacity() + self.blocks.capacity() + self.starts.capacity())
            + 2 * (self.most.capacity() + self.impacts.capacity())
            + self.tools.capacity()
    }

    /// A stored impact as a number.
    pub(super) fn impact(stored: u16) -> f32 {
        f32::from(stored) / IMPACT
    }

    /// An impact as it is stored.
    pub(super) fn stored(impact: f32) -> u16 {
        (impact * IMPACT) as u16
    }

    /// The entries of a term.
    fn entries(&self, term: TermId) -> Range<usize> {
        self.terms[term as usize] as usize..self.terms[term as usize + 1] as usize
    }

    /// The entries of a term for some blocks.
    pub(super) fn within(&self, term: TermId, blocks: &Range<u32>) -> Range<usize> {
        let all = self.entries(term);
        let entries = &self.blocks[all.clone()];
        let from = entries.partition_point(|&block| block < blocks.start);
        let to = entries.partition_point(|&block| block < blocks.end);
        all.start + from..all.start + to
    }

    /// The blocks of some entries, ascending.
    pub(super) fn blocks(&self, entries: &Range<usize>) -> &[u32] {
        &self.blocks[entries.clone()]
    }

    /// What is said at most in the blocks of some entries.
    pub(super) fn most(&self, entries: &Range<usize>) -> &[u16] {
        &self.most[entries.clone()]
    }

    /// The tools of an entry by their places in the block, and what is said in each.
    pub(super) fn entry(&self, entry: usize) -> (&[u8], &[u16]) {
        let range = self.starts[entry] as usize..self.starts[entry + 1] as usize;
        (&self.tools[range.clone()], &self.impacts[range])
    }

    /// The tools that a term occurs in, ascending, and what it says in each.
    pub(super) fn of(&self, term: TermId) -> impl Iterator<Item = (u32, u16)> {
        self.entries(term).flat_map(|entry| {
            let first = self.blocks[entry] * BLOCK as u32;
            let (tools, impacts) = self.entry(entry);
            tools.iter().zip(impacts).map(move |(&tool, &impact)| (first + u32::from(tool), impact))
        })
    }

    /// Whether a term occurs in one of some tools.
    pub(super) fn is_among(&self, term: TermId, tools: &Range<u32>) -> bool {
        let blocks = tools.start / BLOCK as u32..tools.end.div_ceil(BLOCK as u32);
        self.within(term, &blocks).any(|entry| {
            let first = self.blocks[entry] * BLOCK as u32;
            self.entry(entry).0.iter().any(|&tool| tools.contains(&(first + u32::from(tool))))
        })
    }

    /// What a term says in a tool; `None` where it does not occur.
    pub(super) fn find(&self, term: TermId, tool: u32) -> Option<u16> {
        let entries = self.entries(term);
        let entry = self.blocks[entries.clone()].binary_search(&(tool / BLOCK as u32)).ok()?;
        let (tools, impacts) = self.entry(entries.start + entry);
        let at = tools.binary_search(&((tool % BLOCK as u32) as u8)).ok()?;
        Some(impacts[at])
    }
}
