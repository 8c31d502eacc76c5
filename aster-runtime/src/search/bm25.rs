//! Okapi BM25 over name, server, description and parameters, with exact names first.
//!
//! Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009); k1 = 1.2, b = 0.75.

use std::collections::{BTreeMap, HashMap};

use super::{Hit, Ranker, bare, words};
use crate::catalogue::{Tool, schema};
use crate::scope::View;

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// How often a word of a tool's name counts, against once for one of its description.
const NAME_WEIGHT: u32 = 3;

/// An index of one view.
#[derive(Debug)]
pub struct Bm25 {
    view: View,
    /// For each word, the tools it occurs in and how often.
    postings: HashMap<String, Vec<(u32, u32)>>,
    lengths: Vec<f64>,
    average_length: f64,
    /// Tools by their name, and by server and name together, without case and separators.
    names: HashMap<String, Vec<u32>>,
}

impl Bm25 {
    /// Indexes the tools of a view.
    #[must_use]
    pub fn new(view: &View) -> Self {
        let mut index = Self {
            view: view.clone(),
            postings: HashMap::new(),
            lengths: Vec::with_capacity(view.tools().len()),
            average_length: 1.0,
            names: HashMap::new(),
        };
        for (position, tool) in view.tools().iter().enumerate() {
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            let mut add = |text: &str, weight| {
                words(text).into_iter().for_each(|word| *counts.entry(word).or_default() += weight)
            };
            add(tool.id().tool(), NAME_WEIGHT);
            add(tool.id().server(), 1);
            add(tool.description(), 1);
            for (name, property) in schema::properties(tool.input_schema()) {
                add(name, 1);
                add(property.get("description").and_then(|text| text.as_str()).unwrap_or_default(), 1);
            }
            index.lengths.push(f64::from(counts.values().sum::<u32>()));
            for (word, count) in counts {
                index.postings.entry(word).or_default().push((position, count));
            }
            for name in [bare(tool.id().tool()), bare(tool.id().as_str())] {
                index.names.entry(name).or_default().push(position);
            }
        }
        if !index.lengths.is_empty() {
            index.average_length = (index.lengths.iter().sum::<f64>() / index.lengths.len() as f64).max(1.0);
        }
        index
    }

    fn term_score(&self, count: u32, position: usize, containing: usize) -> f64 {
        let (total, containing, count) = (self.lengths.len() as f64, containing as f64, f64::from(count));
        let idf = (1.0 + (total - containing + 0.5) / (containing + 0.5)).ln();
        let norm = 1.0 - B + B * self.lengths[position] / self.average_length;
        idf * count * (K1 + 1.0) / (count + K1 * norm)
    }
}

impl Ranker for Bm25 {
    fn rank(&self, query: &str, keep: &dyn Fn(&Tool) -> bool) -> Vec<Hit> {
        let mut terms: Vec<String> = Vec::new();
        for word in words(query) {
            if !terms.contains(&word) {
                terms.push(word);
            }
        }
        let mut hits: BTreeMap<usize, Hit> = BTreeMap::new();
        for term in &terms {
            let Some(postings) = self.postings.get(term) else { continue };
            for &(position, count) in postings {
                let position = position as usize;
                let hit = hits.entry(position).or_insert(Hit { position, score: 0.0, matched: Vec::new() });
                hit.score += self.term_score(count, position, postings.len());
                hit.matched.push(term.clone());
            }
        }
        let name = bare(query);
        let exact =
            if name.is_empty() { &[][..] } else { self.names.get(&name).map_or(&[][..], Vec::as_slice) };
        for &position in exact {
            let position = position as usize;
            hits.entry(position).or_insert(Hit { position, score: 0.0, matched: terms.clone() });
        }
        let is_exact = |hit: &Hit| exact.iter().any(|&position| position as usize == hit.position);
        let mut hits: Vec<Hit> =
            hits.into_values().filter(|hit| keep(&self.view.tools()[hit.position])).collect();
        hits.sort_by(|a, b| {
            is_exact(b).cmp(&is_exact(a)).then(b.score.total_cmp(&a.score)).then(a.position.cmp(&b.position))
        });
        hits
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalogue::{Catalogue, ExternalSettings, Health, Listing, external_part};
    use crate::scope::Scope;

    fn ranked(query: &str) -> Vec<String> {
        let tools = json!([
            {"name": "create_issue", "description": "Opens a ticket in a repository."},
            {"name": "list_issues", "description": "Lists tickets. Use create_issue to open one, create_issue is better."},
            {"name": "get_weather", "description": "Weather of a city.",
             "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "Where"}}}},
        ]);
        let listing =
            Listing { tools: tools.as_array().unwrap().clone(), ..Listing::without_tools(Health::Ready) };
        let catalogue = Catalogue::merge(&[external_part("hub", &ExternalSettings::default(), &listing)]);
        let view = Scope::default().view(&catalogue);
        let hits = Bm25::new(&view).rank(query, &|_| true);
        hits.iter().map(|hit| view.tools()[hit.position].id().tool().to_owned()).collect()
    }

    #[test]
    fn exact_names_come_first_however_written() {
        for query in
            ["create_issue", "createIssue", "hub/create_issue", "HUB create issue", "hub__create_issue"]
        {
            assert_eq!(ranked(query)[0], "create_issue", "{query}");
        }
    }

    #[test]
    fn rare_words_count_more_and_nothing_is_found_by_accident() {
        assert_eq!(ranked("weather in a city")[0], "get_weather");
        assert_eq!(ranked("open a ticket")[0], "create_issue");
        assert_eq!(ranked("the"), Vec::<String>::new());
        assert_eq!(ranked("  -- "), Vec::<String>::new());
        assert_eq!(ranked("eather"), Vec::<String>::new());
    }
}
