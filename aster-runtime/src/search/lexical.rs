//! The ranking that is used unless a host brings its own.

use std::ops::Range;
use std::sync::OnceLock;

use super::index::{Index, TermId};
use super::ledger;
use super::names::Names;
use super::query::{Group, Member, Plan};
use super::settings::Settings;
use super::table::WordTable;
use super::typo::Speller;
use super::{Hit, Ranker};
use crate::scope::View;

/// BM25 over the fields of a tool, with groups of words for each word of a query, and exact names first.
#[derive(Debug)]
pub struct Lexical {
    view: View,
    pub(super) settings: Settings,
    pub(super) table: WordTable,
    pub(super) index: Index,
    /// For each word of the table its term in the index.
    pub(super) known: Vec<TermId>,
    names: Names,
    speller: OnceLock<Speller>,
}

impl Lexical {
    /// Indexes the tools of a view.
    #[must_use]
    pub fn new(view: &View) -> Self {
        Self::with(view, Settings::default(), WordTable::built_in())
    }

    /// The same with numbers and words of one's own.
    #[must_use]
    pub fn with(view: &View, settings: Settings, table: WordTable) -> Self {
        Self::make(view, settings, table, None)
    }

    /// An index of another view with the same numbers and words. What this one knows of tools that are the very same is
    /// taken over; only the others are read.
    #[must_use]
    pub fn updated(&self, view: &View) -> Self {
        Self::make(view, self.settings, self.table.clone(), Some((&self.index, &self.view)))
    }

    fn make(view: &View, settings: Settings, table: WordTable, before: Option<(&Index, &View)>) -> Self {
        let index = Index::new(view, &settings, &table, before);
        let mut known = vec![TermId::MAX; table.len()];
        for (stem, term) in index.terms() {
            if let Some(word) = table.find(stem) {
                known[usize::from(word)] = term;
            }
        }
        Self {
            view: view.clone(),
            settings,
            table,
            index,
            known,
            names: Names::new(view),
            speller: OnceLock::new(),
        }
    }

    /// The bytes that the index takes on the heap, beside the tools themselves, which it shares with the catalogue. What is
    /// made for the first misspelt word counts once it is made.
    #[must_use]
    pub fn heap(&self) -> usize {
        self.index.heap()
            + self.known.capacity() * size_of::<TermId>()
            + self.names.heap()
            + self.speller.get().map_or(0, Speller::heap)
    }

    pub(super) fn speller(&self) -> &Speller {
        self.speller.get_or_init(|| Speller::new(&self.index))
    }

    /// The places of one server's tools, or all.
    fn places(&self, server: Option<&str>) -> Range<u32> {
        let tools = self.view.tools();
        let range = match server {
            None => 0..tools.len(),
            Some(name) => {
                tools.partition_point(|tool| tool.id().server() < name)
                    ..tools.partition_point(|tool| tool.id().server() <= name)
            }
        };
        range.start as u32..range.end as u32
    }

    /// How alike what a query and a tool mean is, from 0 to 1.
    fn likeness(&self, plan: &Plan, tool: usize) -> f32 {
        if plan.meaning.is_empty() {
            return 0.0;
        }
        let product: i32 = self
            .index
            .meaning(tool)
            .iter()
            .zip(&plan.meaning)
            .map(|(&a, &b)| i32::from(a) * i32::from(b))
            .sum();
        (product as f32 / (127.0 * 127.0)).clamp(0.0, 1.0)
    }

    /// How much of a tool's name the query says, from 0 to 1, by how telling the words are.
    fn name_coverage(&self, plan: &Plan, tool: usize) -> f32 {
        let (mut said, mut all) = (0.0, 0.0);
        for &term in self.index.name(tool) {
            let idf = self.index.idf(term);
            all += idf;
            if let Ok(at) = plan.weights.binary_search_by_key(&term, |&(term, _)| term) {
                said += idf * plan.weights[at].1;
            }
        }
        if all > 0.0 { said / all } else { 0.0 }
    }
}

/// What the parts of a score that are not sums can make of it, for leaving out tools that cannot be among the best.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// For each unit of what a tool covers.
    pub(super) query_coverage: f32,
    /// For all of it.
    pub(super) most_covered: f32,
    pub(super) name_coverage: f32,
    pub(super) meaning: f32,
}

impl Ranker for Lexical {
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        let plan = self.plan(query);
        let places = self.places(server);
        let bounds = Bounds {
            query_coverage: self.settings.query_coverage / plan.idf.max(1e-6),
            most_covered: self.settings.query_coverage * self.settings.joined.max(1.0),
            name_coverage: self.settings.name_coverage,
            meaning: if plan.meaning.is_empty() { 0.0 } else { self.settings.meaning * plan.idf },
        };
        let rest = |tool: u32, base: f32, bar: f32| {
            let tool = tool as usize;
            let name = if bounds.name_coverage > 0.0 { self.name_coverage(&plan, tool) } else { 0.0 };
            let named = base * (1.0 + bounds.name_coverage * name);
            (named + bounds.meaning >= bar).then(|| named + bounds.meaning * self.likeness(&plan, tool))
        };
        let exact = if self.settings.exact_names { self.names.find(&self.view, query) } else { Vec::new() };
        let exact: Vec<u32> = exact.into_iter().filter(|tool| places.contains(tool)).collect();
        let (best, exact_scores) =
            ledger::best(&self.index, &plan.groups, places, limit, bounds, &rest, &exact);
        let mut exact: Vec<(f32, u32)> = exact_scores.into_iter().zip(exact).collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let others = best.into_iter().filter(|(_, tool)| exact.iter().all(|(_, other)| other != tool));
        let hit =
            |exact| move |(score, tool)| Hit { position: tool as usize, score: f64::from(score), exact };
        exact.iter().copied().map(hit(true)).chain(others.map(hit(false))).take(limit).collect()
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        let plan = self.plan(query);
        let tool = position as u32;
        let found = |member: &&Member| self.index.postings(member.term).0.binary_search(&tool).is_ok();
        let strength = |member: &Member| member.weight * member.idf;
        let best = |group: &Group| {
            let best =
                group.members.iter().filter(found).max_by(|a, b| strength(a).total_cmp(&strength(b)))?;
            if best.weight >= 1.0 {
                return Some(group.word.clone());
            }
            Some(format!("{} (as {})", group.word, self.index.text(best.term)))
        };
        plan.groups.iter().filter_map(best).collect()
    }

    fn nearest(&self, query: &str, limit: usize) -> Vec<String> {
        self.nearest_words(query, limit)
    }
}
