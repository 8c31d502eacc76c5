//! How fast the search is beside its peers, and how large: one thread, five hits, the same tools and queries for all.
//!
//! ```text
//! ASTER_RETRIEVAL=FOLDER cargo bench --bench search
//! ```
//!
//! The folder is as for the example `search_eval`; without it the tools are made up and their names are searched for. Where
//! more tools are wanted than there are, they are repeated under other servers and names.
#![expect(clippy::print_stdout, reason = "the figures are to be read")]
#![expect(clippy::unwrap_used, reason = "a measurement may fail by panicking")]

#[path = "common/search_peers.rs"]
mod search_peers;
#[path = "common/tools.rs"]
mod tools;

use std::time::{Duration, Instant};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, external_part};
use aster_runtime::search::{Lexical, Ranker};
use aster_runtime::{Catalogue, Scope, View};
use search_peers::Rank;
use serde_json::{Value, json};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const LIMIT: usize = 5;
/// The most queries that are asked.
const QUERIES: usize = 1_000;

fn main() {
    let (pool, queries) = real().unwrap_or_else(made_up);
    println!("{} tools, {} queries\n", pool.len(), queries.len());
    println!(
        "| tools | engine | build ms | mean µs | p50 µs | p99 µs | bytes a tool |\n|--:|---|--:|--:|--:|--:|--:|"
    );
    for size in SIZES {
        let view = view(&pool, size);
        let ours = |view: &View| -> Rank {
            let index = Lexical::new(view);
            Box::new(move |query| index.rank(query, None, LIMIT).iter().map(|hit| hit.position).collect())
        };
        row(size, "ours", &view, &queries, &ours);
        row(size, "tantivy", &view, &queries, &|view| search_peers::tantivy(view, LIMIT));
        row(size, "bm25 crate", &view, &queries, &|view| search_peers::bm25(view, LIMIT));
        let index = Lexical::new(&view);
        let changed = self::view(&pool, size - 1);
        let start = Instant::now();
        let updated = index.updated(&changed);
        println!(
            "| {size} | ours, one server replaced | {:.1} | | | | |",
            start.elapsed().as_secs_f64() * 1e3
        );
        assert!(!updated.rank(&queries[0], None, LIMIT).is_empty() || queries[0].is_empty());
    }
}

fn row(size: usize, name: &str, view: &View, queries: &[String], build: &dyn Fn(&View) -> Rank) {
    let before = resident();
    let start = Instant::now();
    let rank = build(view);
    let built = start.elapsed();
    let grown = resident().saturating_sub(before) / size;
    queries.iter().take(50).for_each(|query| drop(rank(query)));
    let mut times: Vec<Duration> = queries
        .iter()
        .map(|query| {
            let start = Instant::now();
            std::hint::black_box(rank(query));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = times.iter().copied().map(micros).sum::<f64>() / times.len() as f64;
    println!(
        "| {size} | {name} | {:.1} | {mean:.1} | {:.1} | {:.1} | {grown} |",
        built.as_secs_f64() * 1e3,
        micros(times[times.len() / 2]),
        micros(times[times.len() * 99 / 100])
    );
}

/// The memory of this process in bytes, where the system tells.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    pages.and_then(|text| text.split(' ').nth(1)?.parse::<usize>().ok()).unwrap_or_default() * 4096
}

/// A tool: its server, its name and its definition.
type Made = (String, String, Value);

fn view(pool: &[Made], size: usize) -> View {
    let mut servers: std::collections::BTreeMap<String, Vec<Value>> = Default::default();
    for (at, (server, name, definition)) in pool.iter().cycle().take(size).enumerate() {
        let round = at / pool.len();
        let again = |text: &str| if round == 0 { text.to_owned() } else { format!("{text}{round}") };
        let mut definition = definition.clone();
        definition["name"] = json!(again(name));
        servers.entry(again(server)).or_default().push(definition);
    }
    let parts: Vec<_> = servers
        .into_iter()
        .flat_map(|(server, tools)| {
            // A server may list no more than some megabytes.
            let chunks: Vec<Vec<Value>> = tools.chunks(1_000).map(<[Value]>::to_vec).collect();
            chunks.into_iter().enumerate().map(move |(at, tools)| {
                let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
                external_part(
                    &format!("{server}{}", if at == 0 { String::new() } else { format!("-{at}") }),
                    &ExternalSettings::default(),
                    &listing,
                )
            })
        })
        .collect();
    Scope::default().view(&Catalogue::merge(&parts))
}

fn real() -> Option<(Vec<Made>, Vec<String>)> {
    let folder = std::env::var_os("ASTER_RETRIEVAL")?;
    let (mut pool, mut queries) = (Vec::new(), Vec::new());
    let mut folders: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        let lines = |text: String| {
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
        };
        for tool in lines(read("tools.jsonl")) {
            let schema = json!({"type": "object", "properties": tool["input_schema"]["properties"]});
            let schema = if schema["properties"].is_object() { schema } else { json!({"type": "object"}) };
            let text = |key: &str| tool[key].as_str().unwrap_or_default().trim().replace('/', "-");
            pool.push((
                text("server"),
                text("name"),
                json!({"description": tool["description"], "inputSchema": schema}),
            ));
        }
        queries.extend(
            lines(read("queries.jsonl")).iter().filter_map(|query| Some(query["query"].as_str()?.to_owned())),
        );
    }
    queries.retain(|query| query.len() <= aster_runtime::search::MAX_QUERY_BYTES);
    let step = queries.len().div_ceil(QUERIES).max(1);
    Some((pool, queries.into_iter().step_by(step).collect()))
}

fn made_up() -> (Vec<Made>, Vec<String>) {
    let mut pool = Vec::new();
    for (server, listing) in tools::made_up(10_000) {
        for tool in listing.tools {
            pool.push((server.clone(), tool["name"].as_str().unwrap().to_owned(), tool));
        }
    }
    let queries = pool.iter().step_by(17).map(|(_, name, _)| name.replace('_', " ")).collect();
    (pool, queries)
}
