//! The search on the committed queries: its figures do not fall.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![cfg(feature = "words")]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, external_part};
use aster_runtime::search::{Lexical, Ranker};
use aster_runtime::{Catalogue, Scope, View};
use serde_json::{Value, json};

fn lines(set: &str, file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/search").join(set).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn view(set: &str) -> View {
    let mut servers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for tool in lines(set, "tools.jsonl") {
        let schema = tool.get("input_schema").cloned().unwrap_or_default();
        let definition =
            json!({"name": tool["name"], "description": tool["description"], "inputSchema": schema});
        servers.entry(tool["server"].as_str().unwrap().to_owned()).or_default().push(definition);
    }
    let parts: Vec<_> = servers
        .into_iter()
        .map(|(server, tools)| {
            let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
            external_part(&server, &ExternalSettings::default(), &listing)
        })
        .collect();
    Scope::default().view(&Catalogue::merge(&parts))
}

fn ids(view: &View, index: &Lexical, query: &str, limit: usize) -> Vec<String> {
    let hits = index.rank(query, None, limit);
    hits.iter()
        .map(|hit| view.tools()[hit.position].id())
        .map(|id| format!("{}:{}", id.server(), id.tool()))
        .collect()
}

/// The share of queries with something right among the first five, and nDCG of the first ten.
fn figures(set: &str) -> (f64, f64) {
    let view = view(set);
    let index = Lexical::new(&view);
    let queries = lines(set, "queries.jsonl");
    let (mut found, mut gains) = (0.0, 0.0);
    for query in &queries {
        let relevance = |id: &str| query["rel"].get(id).and_then(Value::as_f64).unwrap_or(1.0);
        let gold: HashMap<String, f64> = query["gold"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| (id.as_str().unwrap().to_owned(), relevance(id.as_str().unwrap())))
            .collect();
        let ids = ids(&view, &index, query["query"].as_str().unwrap(), 10);
        found += f64::from(u8::from(ids.iter().take(5).any(|id| gold.contains_key(id))));
        let gain = |relevances: &[f64]| -> f64 {
            let places = relevances.iter().enumerate();
            places.map(|(place, relevance)| (relevance.exp2() - 1.0) / (place as f64 + 2.0).log2()).sum()
        };
        let mut best: Vec<f64> = gold.values().copied().collect();
        best.sort_by(|a, b| b.total_cmp(a));
        best.truncate(10);
        let got: Vec<f64> = ids.iter().map(|id| gold.get(id).copied().unwrap_or_default()).collect();
        gains += gain(&got) / gain(&best);
    }
    (found / queries.len() as f64, gains / queries.len() as f64)
}

/// The peers' best on the golden queries is .610 of nDCG@10 (mcpproxy-go's own BM25, on all of its 47).
#[test]
fn the_figures_do_not_fall() {
    for (set, least_found, least_gain) in
        [("golden", 0.99, 0.82), ("chinese", 0.90, 0.83), ("japanese", 0.95, 0.86), ("turkish", 0.87, 0.82)]
    {
        let (found, gain) = figures(set);
        assert!(found >= least_found && gain >= least_gain, "{set}: found {found:.3}, nDCG@10 {gain:.3}");
    }
}

/// Every name of a tool, written in each usual way, puts the tool first.
#[test]
fn exact_names_come_first() {
    let view = view("golden");
    let index = Lexical::new(&view);
    for tool in view.tools() {
        let (server, name) = (tool.id().server(), tool.id().tool());
        for query in [
            format!("{server}/{name}"),
            format!("{server}__{name}"),
            format!("{server} {name}"),
            name.replace('_', " "),
            name.to_uppercase(),
        ] {
            assert_eq!(ids(&view, &index, &query, 1), [format!("{server}:{name}")], "{query}");
        }
    }
}

/// Each name with one slip in its longest word, and with common abbreviations, is found among the first five.
#[test]
fn slips_and_abbreviations_are_found() {
    let view = view("golden");
    let index = Lexical::new(&view);
    let (mut asked, mut found) = (0_u32, 0_u32);
    for tool in view.tools() {
        let id = format!("{}:{}", tool.id().server(), tool.id().tool());
        let words: Vec<&str> = tool.id().tool().split('_').collect();
        let longest = words.iter().copied().max_by_key(|word| word.len()).unwrap();
        let mut queries: Vec<String> = Vec::new();
        if longest.len() >= 5 {
            let chars: Vec<char> = longest.chars().collect();
            let middle = chars.len() / 2;
            let mut left_out = chars.clone();
            left_out.remove(middle);
            let mut doubled = chars.clone();
            doubled.insert(middle, chars[middle]);
            let mut swapped = chars.clone();
            swapped.swap(middle - 1, middle);
            let mut other = chars;
            other[middle] = if other[middle] == 'x' { 'y' } else { 'x' };
            for slip in [left_out, doubled, swapped, other] {
                queries.push(words.join(" ").replace(longest, &slip.into_iter().collect::<String>()));
            }
        }
        for (long, short) in [
            ("directory", "dir"),
            ("directories", "dirs"),
            ("info", "information"),
            ("create", "make"),
            ("delete", "del"),
            ("delete", "rm"),
            ("relations", "rels"),
        ] {
            if words.contains(&long) {
                queries.push(words.join(" ").replace(long, short));
            }
        }
        for query in queries {
            asked += 1;
            let hits = ids(&view, &index, &query, 5);
            found += u32::from(hits.contains(&id));
        }
    }
    assert!(asked > 100 && f64::from(found) >= 0.95 * f64::from(asked), "{found} of {asked}");
}
