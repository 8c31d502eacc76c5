//! The ranking that is used unless a host brings its own.

use std::cell::RefCell;
use std::sync::OnceLock;

use super::index::{Index, TermId};
use super::names::Names;
use super::query::{Group, Member, Plan};
use super::settings::Settings;
use super::table::WordTable;
use super::typo::Speller;
use super::{Hit, Ranker};
use crate::catalogue::Tool;
use crate::scope::View;

/// BM25 over the fields of a tool, with groups of words for each word of a query, and exact names first.
#[derive(Debug)]
pub struct Lexical {
    pub(super) view: View,
    pub(super) settings: Settings,
    pub(super) table: WordTable,
    pub(super) index: Index,
    /// For each word of the table its term in the index.
    pub(super) known: Vec<TermId>,
    names: Names,
    speller: OnceLock<Speller>,
    /// The tools' places in the space of meanings, each of length 127.
    meanings: Vec<i8>,
}

impl Lexical {
    /// Indexes the tools of a view.
    #[must_use]
    pub fn new(view: &View) -> Self {
        Self::with(view, Settings::default(), super::built_in_table())
    }

    /// The same with other numbers.
    #[must_use]
    pub fn configured(view: &View, settings: Settings) -> Self {
        Self::with(view, settings, super::built_in_table())
    }

    /// The same with words of one's own.
    #[must_use]
    pub fn with(view: &View, settings: Settings, table: WordTable) -> Self {
        let index = Index::new(view, &settings);
        let mut known = vec![TermId::MAX; table.len()];
        for (stem, term) in index.terms() {
            if let Some(word) = table.find(stem) {
                known[usize::from(word)] = term;
            }
        }
        let mut lexical = Self {
            view: view.clone(),
            settings,
            table,
            index,
            known,
            names: Names::new(view),
            speller: OnceLock::new(),
            meanings: Vec::new(),
        };
        lexical.meanings = lexical.tool_meanings();
        lexical
    }

    pub(super) fn speller(&self) -> &Speller {
        self.speller.get_or_init(|| Speller::new(&self.index))
    }

    fn tool_meanings(&self) -> Vec<i8> {
        let dimensions = self.table.dimensions();
        if self.settings.meaning <= 0.0 || dimensions == 0 {
            return Vec::new();
        }
        let mut sums = vec![0.0_f32; dimensions * self.index.count()];
        for (word, &term) in self.known.iter().enumerate() {
            if term == TermId::MAX {
                continue;
            }
            let mut vector = vec![0.0; dimensions];
            self.table.add_vector(word as u16, 1.0, &mut vector);
            for at in self.index.postings(term) {
                let tool = self.index.tools[at] as usize;
                let weight = self.index.impacts[at].min(1.5);
                let sum = &mut sums[tool * dimensions..(tool + 1) * dimensions];
                sum.iter_mut().zip(&vector).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        for sum in sums.chunks_exact_mut(dimensions) {
            let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-6);
            sum.iter_mut().for_each(|value| *value = *value / norm * 127.0);
        }
        sums.into_iter().map(|value| value.round() as i8).collect()
    }

    fn likeness(&self, plan: &Plan, tool: usize) -> f32 {
        if plan.meaning.is_empty() {
            return 0.0;
        }
        let dimensions = self.table.dimensions();
        let vector = &self.meanings[tool * dimensions..(tool + 1) * dimensions];
        let product: f32 = vector.iter().zip(&plan.meaning).map(|(&a, &b)| f32::from(a) * b).sum();
        (product / 127.0).max(0.0)
    }

    /// How much of a tool's name the query says, from 0 to 1, by how telling the words are.
    fn name_coverage(&self, groups: &[Group], tool: usize) -> f32 {
        let (mut said, mut all) = (0.0, 0.0);
        for &term in self.index.name(tool) {
            let idf = self.index.idf(self.index.frequency(term));
            let members = groups.iter().flat_map(|group| &group.members);
            let weight = members.filter(|member| member.term == term).map(|member| member.weight).fold(0.0, f32::max);
            said += idf * weight.min(1.0);
            all += idf;
        }
        if all > 0.0 { said / all } else { 0.0 }
    }
}

/// What one tool has got so far.
#[derive(Debug, Clone, Copy, Default)]
struct Account {
    score: f32,
    /// How much of the query it covers.
    covered: f32,
    /// The best of the group that is being counted.
    best: f32,
    best_covered: f32,
    /// Which query and group the last entry was of.
    stamp: u64,
}

/// The accounts of the tools, kept from query to query.
#[derive(Default)]
struct Ledger {
    accounts: Vec<Account>,
    touched: Vec<u32>,
    stamp: u64,
}

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

impl Ledger {
    fn start(&mut self, tools: usize) {
        if self.accounts.len() < tools {
            self.accounts.resize(tools, Account::default());
        }
        self.touched.clear();
        self.stamp = (self.stamp | 0xffff) + 1;
    }

    fn count(&mut self, index: &Index, group: &Group) {
        let start = self.stamp & !0xffff;
        self.stamp += 1;
        for member in &group.members {
            let factor = member.weight * member.idf;
            let covered = group.idf * member.weight;
            for at in index.postings(member.term) {
                let tool = index.tools[at];
                let value = factor * index.impacts[at];
                let account = &mut self.accounts[tool as usize];
                if account.stamp < start {
                    *account = Account::default();
                    self.touched.push(tool);
                }
                if account.stamp != self.stamp {
                    account.stamp = self.stamp;
                    account.best = value;
                    account.score += value;
                    account.best_covered = covered;
                    account.covered += covered;
                } else {
                    if value > account.best {
                        account.score += value - account.best;
                        account.best = value;
                    }
                    if covered > account.best_covered {
                        account.covered += covered - account.best_covered;
                        account.best_covered = covered;
                    }
                }
            }
        }
    }
}

impl Ranker for Lexical {
    fn rank(&self, query: &str, keep: &dyn Fn(&Tool) -> bool, limit: usize) -> Vec<Hit> {
        let plan = self.plan(query);
        let exact = if self.settings.exact_names { self.names.find(query) } else { Vec::new() };
        let mut hits: Vec<Hit> = LEDGER.with_borrow_mut(|ledger| {
            ledger.start(self.index.count());
            for group in &plan.groups {
                ledger.count(&self.index, group);
            }
            let all: f32 = plan.groups.iter().filter(|group| !group.members.is_empty()).map(|group| group.idf).sum();
            let scored = ledger.touched.iter().map(|&tool| {
                let position = tool as usize;
                let account = &ledger.accounts[position];
                let score = account.score * (1.0 + self.settings.query_coverage * account.covered / all.max(1e-6))
                    * (1.0 + self.settings.name_coverage * self.name_coverage(&plan.groups, position))
                    + self.settings.meaning * all * self.likeness(&plan, position);
                Hit { position, score: f64::from(score) }
            });
            scored.collect()
        });
        for &tool in &exact {
            let position = tool as usize;
            if !hits.iter().any(|hit| hit.position == position) {
                hits.push(Hit { position, score: 0.0 });
            }
        }
        hits.retain(|hit| keep(&self.view.tools()[hit.position]));
        let is_exact = |hit: &Hit| exact.contains(&(hit.position as u32));
        hits.sort_by(|a, b| {
            is_exact(b).cmp(&is_exact(a)).then(b.score.total_cmp(&a.score)).then(a.position.cmp(&b.position))
        });
        hits.truncate(limit);
        hits
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        let plan = self.plan(query);
        let tool = position as u32;
        let found = |member: &&Member| self.index.tools[self.index.postings(member.term)].binary_search(&tool).is_ok();
        let best = |group: &Group| {
            let best = group.members.iter().filter(found).max_by(|a, b| (a.weight * a.idf).total_cmp(&(b.weight * b.idf)))?;
            if best.weight >= 1.0 {
                return Some(group.word.clone());
            }
            Some(format!("{} ({})", group.word, self.index.text(best.term)))
        };
        plan.groups.iter().filter_map(best).collect()
    }
}
