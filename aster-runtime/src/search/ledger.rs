//! Adding up what the words of a query say in each tool, and finding the best without looking at every one.
//!
//! First the blocks of tools are added up, as if each were one tool in which every word says the most that it says in any
//! of the block's. Then the blocks are opened from the most promising on, until none that is left could hold one of the
//! best. That leaves out nothing: the sums of a block and of a tool are made by the same steps in the same order, and each
//! step keeps the order of what goes into it, rounding included. (Mallia, Suel and Tonellotto, "Faster Learned Sparse
//! Retrieval with Block-Max Pruning", 2024.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::postings::{BLOCK, Postings};
use super::query::{Group, Member};

/// What the parts of a score that are not sums can make of it. None is below 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// For each unit of what a tool covers.
    pub(super) query_coverage: f32,
    pub(super) name_coverage: f32,
    pub(super) meaning: f32,
}

impl Bounds {
    /// The score of what has this sum, but for its name and meaning.
    fn base(&self, sum: Sum) -> f32 {
        sum.score * (1.0 + self.query_coverage * sum.covered)
    }

    /// The most that name and meaning can make of it.
    fn reach(&self, base: f32) -> f32 {
        base * (1.0 + self.name_coverage) + self.meaning
    }
}

/// Makes the score of a tool from its base; `None` where it does not reach the bar, which is the last number.
pub(super) type Rest<'a> = dyn Fn(u32, f32, f32) -> Option<f32> + 'a;

/// What a query's words say in a tool, or at most in a block.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    score: f32,
    /// How much of the query it covers: more than nothing where any word of it occurs.
    covered: f32,
}

impl Sum {
    /// Of the words of a group only the one that says most counts.
    fn raise(&mut self, score: f32, covered: f32) {
        if score > self.score {
            self.score = score;
        }
        if covered > self.covered {
            self.covered = covered;
        }
    }

    fn add(&mut self, group: Self) {
        self.score += group.score;
        self.covered += group.covered;
    }
}

/// A word that is looked up.
struct Lookup {
    /// Which word of the query it stands for.
    group: usize,
    /// Its entries in the blocks that are searched.
    entries: Range<usize>,
    /// What it says for each unit that is stored.
    factor: f32,
    covered: f32,
}

/// That a word occurs in a block.
struct Occurrence {
    lookup: u32,
    entry: u32,
    /// The one before in the same block, plus 1; 0 for the first.
    before: u32,
}

/// A block that is searched.
#[derive(Clone, Copy, Default)]
struct Block {
    /// What the words say in it at most.
    most: Sum,
    /// Its last occurrence, plus 1.
    last: u32,
}

/// The words of a query and where they are.
pub(super) struct Ledger<'a> {
    postings: &'a Postings,
    lookups: Vec<Lookup>,
    tools: Range<u32>,
    /// Which block is the first.
    first: u32,
    blocks: Vec<Block>,
    occurrences: Vec<Occurrence>,
    bounds: Bounds,
}

impl<'a> Ledger<'a> {
    /// Looks the words up in the blocks of a range of tools.
    pub(super) fn new(postings: &'a Postings, groups: &[Group], tools: Range<u32>, bounds: Bounds) -> Self {
        let range = tools.start / BLOCK as u32..tools.end.div_ceil(BLOCK as u32);
        let mut lookups = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let lookup = |member: &Member| Lookup {
                group: at,
                entries: postings.within(member.term, &range),
                factor: member.weight * member.idf * Postings::impact(1),
                covered: group.idf * member.weight,
            };
            lookups.extend(group.members.iter().map(lookup).filter(|lookup| !lookup.entries.is_empty()));
        }
        let mut blocks = vec![Block::default(); range.len()];
        let mut occurrences =
            Vec::with_capacity(lookups.iter().map(|lookup| lookup.entries.len()).sum::<usize>());
        let mut best = vec![Sum::default(); range.len()];
        for (at, lookup) in lookups.iter().enumerate() {
            let Lookup { ref entries, factor, covered, .. } = *lookup;
            let most = postings.blocks(entries).iter().zip(postings.most(entries));
            for ((&block, &impact), entry) in most.zip(entries.start as u32..) {
                let block = (block - range.start) as usize;
                best[block].raise(factor * f32::from(impact), covered);
                let last = &mut blocks[block].last;
                occurrences.push(Occurrence { lookup: at as u32, entry, before: *last });
                *last = occurrences.len() as u32;
            }
            if lookups.get(at + 1).is_none_or(|next| next.group != lookup.group) {
                blocks
                    .iter_mut()
                    .zip(&mut best)
                    .for_each(|(block, best)| block.most.add(std::mem::take(best)));
            }
        }
        Self { postings, lookups, tools, first: range.start, blocks, occurrences, bounds }
    }

    /// The best tools with their scores, best first and ties by place; and how many blocks were opened to find them.
    pub(super) fn best(&self, limit: usize, rest: &Rest<'_>) -> (Vec<(f32, u32)>, usize) {
        let mut best = Best { keys: BinaryHeap::new(), limit };
        let mut opened = 0;
        let occupied = self.blocks.iter().zip(self.first..).filter(|(block, _)| block.last > 0);
        let keys: Vec<u64> = occupied.map(|(block, at)| pack(self.bounds.base(block.most), at)).collect();
        let mut blocks = BinaryHeap::from(keys);
        let mut room = Vec::new();
        while let Some((base, block)) = blocks.pop().map(unpack) {
            if self.bounds.reach(base) < best.bar() {
                break;
            }
            opened += 1;
            for (sum, tool) in self.open(block, &mut room).into_iter().zip(block * BLOCK as u32..) {
                if sum.covered > 0.0 && self.tools.contains(&tool) {
                    let (base, bar) = (self.bounds.base(sum), best.bar());
                    if self.bounds.reach(base) >= bar
                        && let Some(score) = rest(tool, base, bar)
                    {
                        best.add(score, tool);
                    }
                }
            }
        }
        (best.keys.into_sorted_vec().into_iter().map(|Reverse(key)| unpack(key)).collect(), opened)
    }

    /// The score of one tool of the range; 0 where no word of the query is in it.
    pub(super) fn score(&self, tool: u32, rest: &Rest<'_>) -> f32 {
        let sum = self.open(tool / BLOCK as u32, &mut Vec::new())[tool as usize % BLOCK];
        if sum.covered > 0.0 {
            rest(tool, self.bounds.base(sum), f32::NEG_INFINITY).unwrap_or_default()
        } else {
            0.0
        }
    }

    /// The sums of the tools of a block; `occurrences` is room for its own.
    fn open<'b>(&'b self, block: u32, occurrences: &mut Vec<&'b Occurrence>) -> [Sum; BLOCK] {
        let mut sums = [Sum::default(); BLOCK];
        // The last occurrence is known, and the first is to be added first.
        let last = self.blocks[(block - self.first) as usize].last;
        let at = |number: u32| number.checked_sub(1).map(|at| &self.occurrences[at as usize]);
        occurrences.clear();
        occurrences.extend(std::iter::successors(at(last), |occurrence| at(occurrence.before)));
        occurrences.reverse();
        let lookup = |occurrence: &Occurrence| &self.lookups[occurrence.lookup as usize];
        for group in occurrences.chunk_by(|a, b| lookup(a).group == lookup(b).group) {
            let mut best = [Sum::default(); BLOCK];
            for occurrence in group {
                let &Lookup { factor, covered, .. } = lookup(occurrence);
                let (tools, impacts) = self.postings.entry(occurrence.entry as usize);
                for (&tool, &impact) in tools.iter().zip(impacts) {
                    best[usize::from(tool) % BLOCK].raise(factor * f32::from(impact), covered);
                }
            }
            sums.iter_mut().zip(best).for_each(|(sum, best)| sum.add(best));
        }
        sums
    }
}

/// The best so far.
struct Best {
    keys: BinaryHeap<Reverse<u64>>,
    limit: usize,
}

impl Best {
    /// What a tool must have at least to be among them.
    fn bar(&self) -> f32 {
        match self.keys.peek() {
            Some(&Reverse(last)) if self.keys.len() >= self.limit => unpack(last).0,
            _ => f32::NEG_INFINITY,
        }
    }

    fn add(&mut self, score: f32, tool: u32) {
        let key = Reverse(pack(score, tool));
        if self.keys.len() < self.limit {
            self.keys.push(key);
        } else if let Some(mut last) = self.keys.peek_mut()
            && key < *last
        {
            *last = key;
        }
    }
}

/// A score and a place as one number, which is the greater the better they are. The bits of numbers that are not below 0 are
/// in the order of the numbers.
fn pack(score: f32, place: u32) -> u64 {
    u64::from(score.to_bits()) << 32 | u64::from(!place)
}

fn unpack(key: u64) -> (f32, u32) {
    (f32::from_bits((key >> 32) as u32), !(key as u32))
}
