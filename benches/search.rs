//! How fast the search is beside its peers, and how large: one thread, five hits, the same tools and queries for all.
//!
//! Every engine is measured in a process of its own. A query is asked five times and its fastest answer counts, so that
//! what else the machine does is not counted; the mean and the percentiles are over the queries. Of ours, two rows more say
//! what the index itself counts of its memory, and how long it takes to make the next one where the tools of one server
//! are new and all others stay.
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

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, Part, external_part};
use aster_runtime::search::{Lexical, Ranker};
use aster_runtime::{Catalogue, Scope, View};
use search_peers::Rank;
use serde_json::{Value, json};

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const LIMIT: usize = 5;
/// The most queries that are asked.
const QUERIES: usize = 1_000;

const ENGINES: [&str; 3] = ["ours", "tantivy", "bm25 crate"];
/// In the environment of a child: what it measures.
const TASK: &str = "ASTER_SEARCH_BENCH_TASK";

fn main() {
    let (pool, queries) = real().unwrap_or_else(made_up);
    if let Some((size, engine)) = std::env::var(TASK).ok().as_deref().and_then(|task| task.split_once(' ')) {
        let size = size.parse().unwrap();
        return child(size, engine, &pool, &queries);
    }
    println!("{} tools, {} queries\n", pool.len(), queries.len());
    println!(
        "| tools | engine | build ms | mean µs | p50 µs | p99 µs | bytes a tool |\n|--:|---|--:|--:|--:|--:|--:|"
    );
    for size in SIZES {
        for engine in ENGINES {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            assert!(child.env(TASK, format!("{size} {engine}")).status().unwrap().success());
        }
    }
}

fn child(size: usize, engine: &str, pool: &[Made], queries: &[String]) {
    let mut parts = parts(pool, size);
    let view = &merged(&parts);
    let ours = |view: &View| -> Rank {
        let index = Lexical::new(view);
        Box::new(move |query| index.rank(query, None, LIMIT).iter().map(|hit| hit.position).collect())
    };
    match engine {
        "ours" => row(size, engine, view, queries, &ours),
        "tantivy" => row(size, engine, view, queries, &|view| search_peers::tantivy(view, LIMIT)),
        _ => row(size, engine, view, queries, &|view| search_peers::bm25(view, LIMIT)),
    }
    if engine == "ours" {
        let index = Lexical::new(view);
        println!("| {size} | ours, by its own count | | | | | {} |", index.heap() / size);
        let last = parts.len() - 1;
        let tools = parts[last].tools.iter().map(|tool| tool.definition().clone()).collect();
        parts[last] = part(&parts[last].server.name, tools);
        let changed = merged(&parts);
        let start = Instant::now();
        let updated = index.updated(&changed);
        let time = start.elapsed().as_secs_f64() * 1e3;
        println!("| {size} | ours, one server's tools replaced | {time:.1} | | | | |");
        drop(updated);
    }
}

fn row(size: usize, name: &str, view: &View, queries: &[String], build: &dyn Fn(&View) -> Rank) {
    let before = resident();
    let start = Instant::now();
    let rank = build(view);
    let built = start.elapsed();
    let grown = resident().saturating_sub(before) / size;
    queries.iter().take(50).for_each(|query| drop(rank(query)));
    let once = |query: &str| {
        let start = Instant::now();
        std::hint::black_box(rank(query));
        start.elapsed()
    };
    let fastest = |query: &String| (0..5).map(|_| once(query)).min().unwrap();
    let mut times: Vec<Duration> = queries.iter().map(fastest).collect();
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

fn parts(pool: &[Made], size: usize) -> Vec<Part> {
    let mut servers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (at, (server, name, definition)) in pool.iter().cycle().take(size).enumerate() {
        let round = at / pool.len();
        let again = |text: &str| if round == 0 { text.to_owned() } else { format!("{text}{round}") };
        let mut definition = definition.clone();
        definition["name"] = json!(again(name));
        // A server may list no more than some megabytes.
        let share = servers.get(&again(server)).map_or(0, Vec::len) / 1_000;
        let server = if share == 0 { again(server) } else { format!("{} {share}", again(server)) };
        servers.entry(server).or_default().push(definition);
    }
    servers.into_iter().map(|(server, tools)| part(&server, tools)).collect()
}

fn part(server: &str, tools: Vec<Value>) -> Part {
    let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
    external_part(server, &ExternalSettings::default(), &listing)
}

fn merged(parts: &[Part]) -> View {
    Scope::default().view(&Catalogue::merge(parts))
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
