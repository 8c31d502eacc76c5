//! Adding up what the words of a query say in each tool, and finding the best without looking at every one.
//!
//! The words are taken from the weightiest to the lightest. Once those that are left could not lift a tool that has nothing
//! yet above the best so far, they are only added to tools that have something. What is left out is left out because it
//! cannot be among the best: the answer is the same as by looking at all.

use std::cell::RefCell;
use std::ops::Range;

use super::index::Index;
use super::lexical::Bounds;
use super::query::{Group, Member};

/// What one tool has got so far.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    score: f32,
    /// How much of the query it covers.
    covered: f32,
    /// What the group that is being counted has brought.
    best: f32,
    /// Of which query and group the last entry is.
    stamp: u32,
}

/// The accounts of the tools, kept from query to query so that none has to be cleared.
#[derive(Debug, Default)]
struct Ledger {
    accounts: Vec<Account>,
    /// The tools that have something.
    touched: Vec<u32>,
    stamp: u32,
    scores: Vec<f32>,
    bases: Vec<(f32, u32)>,
}

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// The room for groups in a stamp; a query is too short to have as many.
const GROUPS: u32 = 1 << 10;

/// The most that a word says anywhere.
fn says(index: &Index, member: &Member) -> f32 {
    member.weight * member.idf * index.best(member.term)
}

/// Below so many postings it costs more to think about leaving some out.
const FEW: usize = 1_000;

/// Makes the score of a tool from its sum; `None` where it does not reach the bar, which is the last number.
pub(super) type Rest<'a> = dyn Fn(u32, f32, f32) -> Option<f32> + 'a;

/// The best tools of a range with their scores, best first, and the scores of `also`. `rest` makes the score of a tool from
/// its sum.
pub(super) fn best(
    index: &Index,
    groups: &[Group],
    range: Range<u32>,
    limit: usize,
    bounds: Bounds,
    rest: &Rest<'_>,
    also: &[u32],
) -> (Vec<(f32, u32)>, Vec<f32>) {
    LEDGER.with_borrow_mut(|ledger| {
        ledger.start(index.count());
        ledger.add(index, groups, &range, limit, bounds);
        let also = also.iter().map(|&tool| {
            ledger.base(tool, bounds).and_then(|base| rest(tool, base, f32::NEG_INFINITY)).unwrap_or_default()
        });
        let also = also.collect();
        (ledger.select(limit, bounds, rest), also)
    })
}

impl Ledger {
    fn start(&mut self, tools: usize) {
        if self.accounts.len() < tools {
            self.accounts.resize(tools, Account::default());
        }
        self.touched.clear();
        self.stamp =
            match (self.stamp / GROUPS + 1).checked_mul(GROUPS).filter(|&stamp| stamp < u32::MAX - GROUPS) {
                Some(stamp) => stamp,
                None => {
                    self.accounts.fill(Account::default());
                    GROUPS
                }
            };
    }

    fn add(&mut self, index: &Index, groups: &[Group], range: &Range<u32>, limit: usize, bounds: Bounds) {
        let most = |group: &Group| group.members.iter().map(|member| says(index, member)).fold(0.0, f32::max);
        let mut order: Vec<(f32, &Group)> = groups.iter().map(|group| (most(group), group)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let whole: f32 = order.iter().map(|(most, _)| most).sum();
        let mut left = whole;
        let mut bar = 0.0;
        let mut closed = false;
        for (most, group) in order {
            left -= most;
            self.stamp += 1;
            let mut asked = false;
            for (at, member) in group.members.iter().enumerate() {
                let (tools, impacts) = index.postings(member.term);
                let start = tools.partition_point(|&tool| tool < range.start);
                let end = tools.partition_point(|&tool| tool < range.end);
                let (tools, impacts) = (&tools[start..end], &impacts[start..end]);
                if !closed && tools.len() > FEW && self.touched.len() >= limit {
                    // What a tool could still get that has nothing: the best of the group's words that are left, and all else.
                    let still = group.members[at..]
                        .iter()
                        .map(|member| says(index, member))
                        .fold(left, |sum, most| sum.max(left + most));
                    let reach =
                        still * (1.0 + bounds.most_covered) * (1.0 + bounds.name_coverage) + bounds.meaning;
                    if !std::mem::replace(&mut asked, true) && still < 0.7 * whole {
                        bar = self.nth_best(limit, bounds);
                    }
                    closed = reach < bar;
                    if closed {
                        self.touched.sort_unstable();
                    }
                }
                let factor = member.weight * member.idf;
                let covered = group.idf * member.weight;
                if closed {
                    self.count_touched(tools, impacts, factor, covered);
                } else {
                    self.count(tools, impacts, factor, covered);
                }
            }
        }
    }

    fn count(&mut self, tools: &[u32], impacts: &[u16], factor: f32, covered: f32) {
        let first = self.stamp / GROUPS * GROUPS;
        for (&tool, &impact) in tools.iter().zip(impacts) {
            let account = &mut self.accounts[tool as usize];
            if account.stamp < first {
                *account = Account::default();
                self.touched.push(tool);
            }
            account.enter(self.stamp, factor * Index::impact(impact), covered);
        }
    }

    /// The same for tools that have something already.
    fn count_touched(&mut self, tools: &[u32], impacts: &[u16], factor: f32, covered: f32) {
        let first = self.stamp / GROUPS * GROUPS;
        if self.touched.len() * 8 > tools.len() {
            for (&tool, &impact) in tools.iter().zip(impacts) {
                let account = &mut self.accounts[tool as usize];
                if account.stamp >= first {
                    account.enter(self.stamp, factor * Index::impact(impact), covered);
                }
            }
            return;
        }
        let mut at = 0;
        for &tool in &self.touched {
            at += ahead(&tools[at..], tool);
            if tools.get(at) == Some(&tool) {
                self.accounts[tool as usize].enter(self.stamp, factor * Index::impact(impacts[at]), covered);
            }
        }
    }

    /// A tool's score but for its name and meaning.
    fn base(&self, tool: u32, bounds: Bounds) -> Option<f32> {
        let account = &self.accounts[tool as usize];
        let known = account.stamp >= self.stamp / GROUPS * GROUPS;
        known.then_some(account.score * (1.0 + bounds.query_coverage * account.covered))
    }

    /// At least what the last of the best will have.
    fn nth_best(&mut self, limit: usize, bounds: Bounds) -> f32 {
        let mut scores = std::mem::take(&mut self.scores);
        scores.clear();
        scores.extend(self.touched.iter().filter_map(|&tool| self.base(tool, bounds)));
        let nth = match limit.checked_sub(1).filter(|&place| place < scores.len()) {
            Some(place) => *scores.select_nth_unstable_by(place, |a, b| b.total_cmp(a)).1,
            None => 0.0,
        };
        self.scores = scores;
        nth
    }

    fn select(&mut self, limit: usize, bounds: Bounds, rest: &Rest<'_>) -> Vec<(f32, u32)> {
        let mut bases = std::mem::take(&mut self.bases);
        bases.clear();
        bases.extend(self.touched.iter().filter_map(|&tool| Some((self.base(tool, bounds)?, tool))));
        let better = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        let mut best: Vec<(f32, u32)> = Vec::new();
        let reach = |base: f32| base * (1.0 + bounds.name_coverage) + bounds.meaning;
        let mut bar = f32::NEG_INFINITY;
        let mut left = bases.as_mut_slice();
        // Those that are ahead by what is known come first and set a bar that few others can reach.
        let mut portion = limit.saturating_mul(2).max(16);
        while !left.is_empty() {
            if left.len() > portion {
                left.select_nth_unstable_by(portion, better);
            }
            let (likely, others) = left.split_at_mut(portion.min(left.len()));
            for &mut (base, tool) in likely {
                if reach(base) >= bar {
                    best.extend(rest(tool, base, bar).map(|score| (score, tool)));
                }
            }
            if best.len() > limit {
                best.sort_unstable_by(better);
                best.truncate(limit);
            }
            if best.len() == limit {
                bar = best.iter().map(|&(score, _)| score).fold(f32::INFINITY, f32::min);
            }
            // Those that cannot reach the bar need no order.
            let mut able = 0;
            for at in 0..others.len() {
                if reach(others[at].0) >= bar {
                    others.swap(able, at);
                    able += 1;
                }
            }
            left = &mut others[..able];
            portion = portion.saturating_mul(8);
        }
        self.bases = bases;
        best.sort_unstable_by(better);
        best
    }
}

impl Account {
    /// Of the words of a group only the one that says most counts, and what they cover is what the first does: they come in
    /// the order of how far they stand for the word of the query.
    fn enter(&mut self, stamp: u32, value: f32, covered: f32) {
        if self.stamp != stamp {
            let Self { score, covered: before, .. } = *self;
            *self = Self { score: score + value, covered: before + covered, best: value, stamp };
        } else if value > self.best {
            self.score += value - self.best;
            self.best = value;
        }
    }
}

/// How far ahead in an ascending list the first place is that is not below `wanted`: near ones are found soonest.
fn ahead(list: &[u32], wanted: u32) -> usize {
    let mut step = 1;
    while step < list.len() && list[step] < wanted {
        step *= 2;
    }
    let from = step / 2;
    let to = list.len().min(step + 1);
    from + list[from..to].partition_point(|&value| value < wanted)
}
