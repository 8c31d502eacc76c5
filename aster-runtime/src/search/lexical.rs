//! The ranking that is used unless a host brings its own.

use std::cell::Cell;
use std::ops::Range;

use foldhash::HashSet;

use super::index::{Index, TermId};
use super::ledger::{Bounds, Ledger, Room};
use super::names::Names;
use super::query::{Group, Member, Plan};
use super::settings::Settings;
use super::table::WordTable;
use super::typo::Speller;
use super::{Hit, Ranker};
use crate::scope::View;

thread_local! {
    /// What the searches of a thread work in.
    static ROOM: Cell<Room> = Cell::default();
}

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
    pub(super) speller: Speller,
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
        Self::make(view, settings.bounded(), table, None)
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
        for (stem, term) in index.vocabulary().iter().zip(0..) {
            if let Some(word) = table.find(stem) {
                known[usize::from(word)] = term;
            }
        }
        let speller = Speller::new(index.vocabulary());
        Self { view: view.clone(), settings, table, index, known, names: Names::new(view), speller }
    }

    /// The bytes that the index takes on the heap, beside the tools themselves, which it shares with the catalogue.
    #[must_use]
    pub fn heap(&self) -> usize {
        self.index.heap()
            + self.known.capacity() * size_of::<TermId>()
            + self.names.heap()
            + self.speller.heap()
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

    /// The words of a query that count for a tool, where one server's tools are searched, or all.
    fn words_found(&self, query: &str, position: usize, server: Option<&str>) -> Vec<String> {
        let plan = self.plan(query, &self.places(server));
        let tool = position as u32;
        let found = |member: &&Member| self.index.postings().find(member.term, tool).is_some();
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
}

impl Ranker for Lexical {
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        let places = self.places(server);
        let plan = self.plan(query, &places);
        let bounds = Bounds {
            query_coverage: self.settings.query_coverage / plan.idf.max(1e-6),
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
        let exact = exact.into_iter().filter(|tool| places.contains(tool));
        let ledger = Ledger::new(self.index.postings(), &plan.groups, places.clone(), bounds, ROOM.take());
        let mut exact: Vec<(f32, u32)> = exact.map(|tool| (ledger.score(tool, &rest), tool)).collect();
        exact.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let (best, _) = ledger.best(limit, &rest);
        ROOM.set(ledger.into_room());
        // There may be as many as there are tools.
        let named: HashSet<u32> = exact.iter().map(|&(_, tool)| tool).collect();
        let others = best.into_iter().filter(|(_, tool)| !named.contains(tool));
        let hit =
            |exact| move |(score, tool)| Hit { position: tool as usize, score: f64::from(score), exact };
        exact.iter().copied().map(hit(true)).chain(others.map(hit(false))).take(limit).collect()
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        let words = self.words_found(query, position, None);
        if !words.is_empty() {
            return words;
        }
        // Slips are mended by other words where its server was named.
        self.words_found(query, position, Some(self.view.tools()[position].id().server()))
    }

    fn nearest(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<String> {
        self.nearest_words(query, &self.places(server), limit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::tests::{part, servers_view};
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::scope::Scope;
    use crate::search::postings::{BLOCK, Postings};

    /// Numbers that look random and are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }

        /// A text of common and rare words.
        fn text(&mut self, words: usize) -> String {
            const WORDS: [&str; 24] = [
                "list",
                "get",
                "issue",
                "file",
                "repository",
                "ticket",
                "folder",
                "directory",
                "search",
                "city",
                "weather",
                "hackernews",
                "hacker",
                "news",
                "delete",
                "remove",
                "movie",
                "film",
                "send",
                "message",
                "translate",
                "invoice",
                "kubernetes",
                "zebra",
            ];
            let mut word = || WORDS[self.below(WORDS.len()).min(self.below(WORDS.len()))];
            (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
        }

        fn tool(&mut self, number: usize) -> Value {
            let (name, words) = (1 + self.below(3), self.below(12));
            let name = format!("{}_{number}", self.text(name).replace(' ', "_"));
            json!({"name": name, "description": self.text(words)})
        }

        fn view(&mut self, tools: usize) -> View {
            let mut servers: Vec<(String, Vec<Value>)> = Vec::new();
            for number in 0..tools {
                if number == 0 || self.below(150) == 0 {
                    servers.push((format!("{}{number}", self.text(1)), Vec::new()));
                }
                let made = self.tool(number);
                servers.last_mut().unwrap().1.push(made);
            }
            servers.sort_by(|a, b| a.0.cmp(&b.0));
            servers_view(servers.iter().map(|(name, tools)| (name.as_str(), tools.clone())).collect())
        }
    }

    /// What [`Ranker::rank`] answers, from every tool looked at alone and none left out.
    fn by_looking_at_all(lexical: &Lexical, query: &str, server: Option<&str>) -> Vec<Hit> {
        let plan = lexical.plan(query, &lexical.places(server));
        let Settings { query_coverage, name_coverage, meaning, .. } = lexical.settings;
        let score = |tool: u32| {
            let (mut sum, mut covered) = (0.0, 0.0);
            for group in &plan.groups {
                let found: Vec<(f32, f32)> = group
                    .members
                    .iter()
                    .filter_map(|member| {
                        let impact = lexical.index.postings().find(member.term, tool)?;
                        let said = member.weight * member.idf * Postings::impact(impact);
                        Some((said, group.idf * member.weight))
                    })
                    .collect();
                sum += found.iter().map(|said| said.0).fold(0.0, f32::max);
                covered += found.iter().map(|said| said.1).fold(0.0, f32::max);
            }
            let base = sum * (1.0 + query_coverage / plan.idf.max(1e-6) * covered);
            let named = base * (1.0 + name_coverage * lexical.name_coverage(&plan, tool as usize));
            let meant = if plan.meaning.is_empty() { 0.0 } else { meaning * plan.idf };
            (covered > 0.0).then(|| named + meant * lexical.likeness(&plan, tool as usize))
        };
        let exact = lexical.names.find(&lexical.view, query);
        let hits = lexical.places(server).filter_map(|tool| {
            let exact = lexical.settings.exact_names && exact.contains(&tool);
            let score = score(tool).or(exact.then_some(0.0))?;
            Some(Hit { position: tool as usize, score: f64::from(score), exact })
        });
        let mut hits: Vec<Hit> = hits.collect();
        hits.sort_by(|a, b| b.exact.cmp(&a.exact).then(b.score.total_cmp(&a.score)));
        hits
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Leaving out blocks changes nothing, whatever the numbers, and every page is a part of the whole.
        #[test]
        fn the_best_are_those_that_looking_at_all_finds(
            seed in any::<u64>(),
            tools in 1_usize..6 * BLOCK,
            lengths in proptest::collection::vec(1_usize..7, 6),
            weights in proptest::option::of(proptest::collection::vec(-0.5_f32..4.0, 9)),
        ) {
            let mut numbers = Numbers(seed);
            let view = numbers.view(tools);
            let mut settings = Settings::default();
            if let Some(weights) = weights {
                let Ok([synonyms, neighbours, joined, split, prefix, typo, name_coverage, query_coverage, meaning]) =
                    <[f32; 9]>::try_from(weights) else { unreachable!("nine are made") };
                settings = Settings {
                    synonyms, neighbours, joined, split, prefix, typo, name_coverage, query_coverage, meaning,
                    ..settings
                };
            }
            let lexical = Lexical::with(&view, settings, WordTable::built_in());
            for length in lengths {
                let mut query = numbers.text(length);
                match numbers.below(4) {
                    0 => query.truncate(query.len() - 1),
                    1 => query = view.tools()[numbers.below(tools)].id().tool().to_owned(),
                    _ => {}
                }
                let server = (numbers.below(3) == 0).then(|| view.servers()[numbers.below(view.servers().len())].name.as_str());
                let all = by_looking_at_all(&lexical, &query, server);
                for limit in [1, 5, 10, BLOCK, usize::MAX] {
                    let best = lexical.rank(&query, server, limit);
                    prop_assert_eq!(&best[..], &all[..limit.min(all.len())], "{} of {:?}, {}", query, server, limit);
                }
            }
        }

        /// An index does not show what was there before: not in a score's last bit, nor by a word of tools that are gone.
        #[test]
        fn the_same_tools_make_the_same_index_whatever_was_there_before(
            seed in any::<u64>(), there in proptest::collection::vec(1_u8..=255, 1..5),
        ) {
            let mut numbers = Numbers(seed);
            let parts: Vec<_> = (0..8)
                .map(|server| {
                    let tools = 1 + numbers.below(40);
                    part(&format!("server{server}"), (0..tools).map(|number| numbers.tool(number)).collect())
                })
                .collect();
            let views: Vec<View> = there
                .iter()
                .map(|there| {
                    let parts = parts.iter().enumerate().filter(|(at, _)| there >> at & 1 == 1);
                    Scope::default().view(&Catalogue::merge(parts.map(|(_, part)| part)))
                })
                .collect();
            let updated = views[1..].iter().fold(Lexical::new(&views[0]), |before, view| before.updated(view));
            let whole = Lexical::new(&views[views.len() - 1]);
            prop_assert_eq!(&updated.index, &whole.index);
            let query = numbers.text(4);
            prop_assert_eq!(updated.rank(&query, None, 20), whole.rank(&query, None, 20));
        }
    }

    /// Twelve servers have a tool of this name: all are named, and the order among them and after them is one for all pages.
    #[test]
    fn pages_of_exact_names_are_parts_of_one_order() {
        let servers: Vec<(String, Vec<Value>)> = (10..22)
            .map(|at| {
                let others = (0..BLOCK).map(|other| json!({"name": format!("search_{other}")}));
                let named = json!({"name": "search", "description": "Finds. ".repeat(at * 7 % 12)});
                (format!("server{at}"), others.chain([named]).collect())
            })
            .collect();
        let view = servers_view(servers.iter().map(|(name, tools)| (name.as_str(), tools.clone())).collect());
        let lexical = Lexical::new(&view);
        let all = by_looking_at_all(&lexical, "search", None);
        assert_eq!(all.iter().filter(|hit| hit.exact).count(), 12);
        let ten = lexical.rank("search", None, 10);
        assert_eq!(ten, all[..10]);
        assert_eq!(lexical.rank("search", None, 5), ten[..5]);
        assert_eq!(lexical.rank("search", None, 20), all[..20]);
    }

    /// Else the test above would say nothing.
    #[test]
    fn blocks_are_left_out() {
        let many: Vec<Value> =
            (0..20 * BLOCK).map(|number| json!({"name": format!("list_{number}")})).collect();
        let view = servers_view(vec![("hub", many), ("kitchen", vec![json!({"name": "list_recipes"})])]);
        let lexical = Lexical::new(&view);
        let plan = lexical.plan("list recipes", &lexical.places(None));
        let bounds = Bounds { query_coverage: 0.5, name_coverage: 0.25, meaning: 0.0 };
        let ledger = Ledger::new(
            lexical.index.postings(),
            &plan.groups,
            lexical.places(None),
            bounds,
            Room::default(),
        );
        let opened = |limit| ledger.best(limit, &|_, base, _| Some(base)).1;
        assert_eq!([opened(1), opened(2)], [1, view.tools().len().div_ceil(BLOCK)]);
    }
}
