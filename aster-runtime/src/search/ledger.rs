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
    /// The score of what has these sums, but for its name and meaning.
    fn base(&self, score: f32, covered: f32) -> f32 {
        score * (1.0 + self.query_coverage * covered)
    }

    /// The most that name and meaning can make of it.
    fn reach(&self, base: f32) -> f32 {
        base * (1.0 + self.name_coverage) + self.meaning
    }
}

/// Makes the score of a tool from its base; `None` where it does not reach the bar, which is the last number.
pub(super) type Rest<'a> = dyn Fn(u32, f32, f32) -> Option<f32> + 'a;

/// What a query's words say in each of some tools, or at most in each of some blocks, and how much of the query each covers:
/// more than nothing where any word of it occurs.
#[derive(Default)]
struct Sums<T> {
    scores: T,
    covered: T,
}

type BlockSums = Sums<[f32; BLOCK]>;

impl<T: AsRef<[f32]> + AsMut<[f32]>> Sums<T> {
    /// Adds what the only word of a group says.
    fn add(&mut self, at: usize, score: f32, covered: f32) {
        self.scores.as_mut()[at] += score;
        self.covered.as_mut()[at] += covered;
    }

    /// Of several words of a group only the one that says most counts.
    fn raise(&mut self, at: usize, score: f32, covered: f32) {
        let most = |so_far: &mut f32, new: f32| *so_far = if new > *so_far { new } else { *so_far };
        most(&mut self.scores.as_mut()[at], score);
        most(&mut self.covered.as_mut()[at], covered);
    }

    /// Adds what a group says, and leaves nothing of it.
    fn add_all(&mut self, group: &mut Self) {
        let mut add = |sums: fn(&mut Self) -> &mut T| {
            for (sum, more) in sums(self).as_mut().iter_mut().zip(sums(group).as_mut()) {
                *sum += std::mem::take(more);
            }
        };
        add(|sums| &mut sums.scores);
        add(|sums| &mut sums.covered);
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

/// What a search works in. It is used again, so that a search need not ask for memory.
#[derive(Default)]
pub(super) struct Room {
    lookups: Vec<Lookup>,
    /// What the words say at most in each block.
    most: Sums<Vec<f32>>,
    group: Sums<Vec<f32>>,
    /// For each block its last occurrence, plus 1.
    last: Vec<u32>,
    occurrences: Vec<Occurrence>,
}

/// The words of a query and where they are.
pub(super) struct Ledger<'a> {
    postings: &'a Postings,
    tools: Range<u32>,
    /// Which block is the first.
    first: u32,
    bounds: Bounds,
    room: Room,
}

impl<'a> Ledger<'a> {
    /// Looks the words up in the blocks of a range of tools.
    pub(super) fn new(
        postings: &'a Postings,
        groups: &[Group],
        tools: Range<u32>,
        bounds: Bounds,
        mut room: Room,
    ) -> Self {
        let range = tools.start / BLOCK as u32..tools.end.div_ceil(BLOCK as u32);
        let Room { lookups, most, group, last, occurrences } = &mut room;
        for numbers in [&mut most.scores, &mut most.covered, &mut group.scores, &mut group.covered] {
            numbers.clear();
            numbers.resize(range.len(), 0.0);
        }
        last.clear();
        last.resize(range.len(), 0);
        occurrences.clear();
        lookups.clear();
        for (at, group) in groups.iter().enumerate() {
            let lookup = |member: &Member| Lookup {
                group: at,
                entries: postings.within(member.term, &range),
                factor: member.weight * member.idf * Postings::impact(1),
                covered: group.idf * member.weight,
            };
            lookups.extend(group.members.iter().map(lookup).filter(|lookup| !lookup.entries.is_empty()));
        }
        let mut number = 0;
        for words in lookups.chunk_by(|a, b| a.group == b.group) {
            for &Lookup { ref entries, factor, covered, .. } in words {
                let most_said = postings.blocks(entries).iter().zip(postings.most(entries));
                for ((&block, &impact), entry) in most_said.zip(entries.start as u32..) {
                    let block = (block - range.start) as usize;
                    let score = factor * f32::from(impact);
                    if words.len() == 1 {
                        most.add(block, score, covered);
                    } else {
                        group.raise(block, score, covered);
                    }
                    let last = &mut last[block];
                    occurrences.push(Occurrence { lookup: number, entry, before: *last });
                    *last = occurrences.len() as u32;
                }
                number += 1;
            }
            if words.len() > 1 {
                most.add_all(group);
            }
        }
        Self { postings, tools, first: range.start, bounds, room }
    }

    /// The room, for the next search.
    pub(super) fn into_room(self) -> Room {
        self.room
    }

    /// The best tools with their scores, best first and ties by place; and how many blocks were opened to find them.
    pub(super) fn best(&self, limit: usize, rest: &Rest<'_>) -> (Vec<(f32, u32)>, usize) {
        let mut best = Best { keys: BinaryHeap::new(), limit };
        let mut opened = 0;
        let Room { most, last, .. } = &self.room;
        let bases =
            most.scores.iter().zip(&most.covered).map(|(&score, &covered)| self.bounds.base(score, covered));
        let occupied = bases.zip(last).zip(self.first..).filter(|((_, last), _)| **last > 0);
        let keys: Vec<u64> = occupied.map(|((base, _), block)| pack(base, block)).collect();
        let mut blocks = BinaryHeap::from(keys);
        let mut occurrences = Vec::new();
        while let Some((base, block)) = blocks.pop().map(unpack) {
            if self.bounds.reach(base) < best.bar() {
                break;
            }
            opened += 1;
            let Sums { scores, covered } = self.open(block, &mut occurrences);
            let bases: [f32; BLOCK] = std::array::from_fn(|at| self.bounds.base(scores[at], covered[at]));
            let bar = best.bar();
            let promising: [bool; BLOCK] =
                std::array::from_fn(|at| covered[at] > 0.0 && self.bounds.reach(bases[at]) >= bar);
            for (at, tool) in (0..BLOCK).zip(block * BLOCK as u32..).filter(|&(at, _)| promising[at]) {
                if self.tools.contains(&tool)
                    && let Some(score) = rest(tool, bases[at], best.bar())
                {
                    best.add(score, tool);
                }
            }
        }
        (best.keys.into_sorted_vec().into_iter().map(|Reverse(key)| unpack(key)).collect(), opened)
    }

    /// The score of one tool of the range; 0 where no word of the query is in it.
    pub(super) fn score(&self, tool: u32, rest: &Rest<'_>) -> f32 {
        let Sums { scores, covered } = self.open(tool / BLOCK as u32, &mut Vec::new());
        let at = tool as usize % BLOCK;
        if covered[at] > 0.0 {
            rest(tool, self.bounds.base(scores[at], covered[at]), f32::NEG_INFINITY).unwrap_or_default()
        } else {
            0.0
        }
    }

    /// The sums of the tools of a block; `occurrences` is room for its own.
    fn open<'b>(&'b self, block: u32, occurrences: &mut Vec<&'b Occurrence>) -> BlockSums {
        let mut sums = BlockSums::default();
        let mut best = BlockSums::default();
        // The last occurrence is known, and the first is to be added first.
        let last = self.room.last[(block - self.first) as usize];
        let at = |number: u32| number.checked_sub(1).map(|at| &self.room.occurrences[at as usize]);
        occurrences.clear();
        occurrences.extend(std::iter::successors(at(last), |occurrence| at(occurrence.before)));
        occurrences.reverse();
        let lookup = |occurrence: &Occurrence| &self.room.lookups[occurrence.lookup as usize];
        for group in occurrences.chunk_by(|a, b| lookup(a).group == lookup(b).group) {
            for occurrence in group {
                let &Lookup { factor, covered, .. } = lookup(occurrence);
                let (tools, impacts) = self.postings.entry(occurrence.entry as usize);
                let said = tools.iter().zip(impacts);
                let said =
                    said.map(|(&tool, &impact)| (usize::from(tool) % BLOCK, factor * f32::from(impact)));
                if group.len() == 1 {
                    said.for_each(|(at, score)| sums.add(at, score, covered));
                } else {
                    said.for_each(|(at, score)| best.raise(at, score, covered));
                }
            }
            if group.len() > 1 {
                sums.add_all(&mut best);
            }
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
