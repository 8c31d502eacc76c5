//! Measures the search on public queries: how often it finds the right tool, and how fast.
//!
//! ```text
//! cargo run --release --example search_eval -- FOLDER… [--json FILE] [--split train|dev|test] [--only NAME,…] [--words FILE]
//! ```
//!
//! A folder has `tools.jsonl`, a tool a line (`id`, `server`, `name`, `description`, `input_schema`, and where they are known
//! `server_title` and `server_description`), and `queries.jsonl`, a query a line (`query`, `gold` ids, `kind`, and `rel` where
//! answers are graded); or it has such folders. Every ranker gets the same tools and the same queries. Compared are ours, ours
//! with each part switched off, the crate `bm25` and tantivy. What the figures are is written beside [`Figures`].
#![expect(clippy::print_stdout, reason = "the figures are to be read")]
#![expect(clippy::unwrap_used, reason = "a measurement may fail by panicking")]

#[path = "../benches/common/search_peers.rs"]
mod search_peers;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, external_part};
use aster_runtime::search::{Lexical, MAX_QUERY_BYTES, Ranker, Settings, WordTable};
use aster_runtime::{Catalogue, Scope, View};
use search_peers::Rank;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many hits a ranker is asked for.
const DEPTH: usize = 20;

#[derive(Deserialize)]
struct Tool {
    id: String,
    server: String,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Value,
    #[serde(default)]
    server_title: Option<String>,
    #[serde(default)]
    server_description: Option<String>,
}

#[derive(Deserialize)]
struct Query {
    query: String,
    gold: Vec<String>,
    #[serde(default)]
    rel: HashMap<String, f64>,
    #[serde(default)]
    kind: String,
}

/// Tools and queries over them. A folder whose queries are of two natures is two sets.
struct Set {
    name: String,
    view: View,
    /// For each tool of the view its id in the folder.
    ids: Vec<String>,
    queries: Vec<Query>,
}

fn main() {
    let options = Options::parse(std::env::args().skip(1));
    let sets: Vec<Set> = options.folders.iter().flat_map(|folder| load(folder, &options)).collect();
    assert!(!sets.is_empty(), "no folder with tools.jsonl and queries.jsonl; give one");
    let mut report = BTreeMap::new();
    for (name, build) in rankers(&options) {
        if !options.only.is_empty() && !options.only.iter().any(|only| name.starts_with(only.as_str())) {
            continue;
        }
        let mut by_set = BTreeMap::new();
        let mut taken = Vec::new();
        for set in &sets {
            let (all, of_taken) = measure(set, &build(set), options.misses && name == "ours");
            by_set.insert(set.name.clone(), all);
            taken.extend(of_taken);
        }
        println!(
            "\n{name}\n\n| set | H@1 | R@1 | R@5 | R@10 | R@20 | H@5 | MRR | nDCG@5 | nDCG@10 | mean µs | p99 µs |"
        );
        println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
        for set in &sets {
            println!("| {} | {}", set.name, by_set[&set.name].row());
        }
        let of = |sets: &[&str]| {
            let figures: Vec<&Figures> = sets.iter().filter_map(|set| by_set.get(*set)).collect();
            (figures.len() == sets.len()).then(|| Figures::mean(&figures))
        };
        let all = Figures::mean(&by_set.values().collect::<Vec<_>>());
        println!("| macro of {} | {}", by_set.len(), all.row());
        let taken = Figures::mean(&taken.iter().collect::<Vec<_>>());
        println!("| macro of what the bridge takes: at most {MAX_QUERY_BYTES} bytes | {}", taken.row());
        if let Some(mcp) = of(&MCP) {
            println!("| macro of the four of MCP | {}", mcp.row());
            by_set.insert("macro MCP4".to_owned(), mcp);
        }
        by_set.insert("macro".to_owned(), all);
        by_set.insert("macro of what the bridge takes".to_owned(), taken);
        report.insert(name, by_set);
    }
    println!(
        "\n| ranker | H@1 | R@5 | MRR | nDCG@5 | R@20 | MCP4 H@5 | MCP4 nDCG@5 | mean µs |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    let mut names: Vec<_> = report.keys().collect();
    names.sort_by(|a, b| report[*b]["macro"].ndcg5.total_cmp(&report[*a]["macro"].ndcg5));
    for name in names {
        let all = &report[name]["macro"];
        let mcp = report[name]
            .get("macro MCP4")
            .map_or("– | –".to_owned(), |mcp| format!("{:.3} | {:.3}", mcp.h5, mcp.ndcg5));
        println!(
            "| {name} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {mcp} | {:.0} |",
            all.h1, all.r5, all.mrr, all.ndcg5, all.r20, all.mean
        );
    }
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string_pretty(&report).unwrap()).unwrap();
    }
}

/// The sets nearest to real use.
const MCP: [&str; 4] = ["mcp_mix searches", "mcp_mix tasks", "probe300", "mcpproxy_golden"];

#[derive(Default)]
struct Options {
    folders: Vec<PathBuf>,
    json: Option<PathBuf>,
    split: Option<u8>,
    only: Vec<String>,
    words: Option<PathBuf>,
    set: Vec<(String, f32)>,
    misses: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
            match argument.as_str() {
                "--json" => options.json = Some(value().into()),
                "--words" => options.words = Some(value().into()),
                "--only" => options.only = value().split(',').map(str::to_owned).collect(),
                "--misses" => options.misses = true,
                "--set" => {
                    for pair in value().split(',') {
                        let (key, number) = pair.split_once('=').expect("KEY=NUMBER");
                        options.set.push((key.to_owned(), number.parse().expect("a number")));
                    }
                }
                "--split" => {
                    let part = value();
                    let place = ["train", "dev", "test"].iter().position(|name| *name == part);
                    options.split = Some(place.expect("train, dev or test") as u8);
                }
                _ => options.folders.push(argument.into()),
            }
        }
        options
    }
}

/// The third of the queries that one is in: by its text alone, so that the same query is in the same one everywhere.
fn split(query: &str) -> u8 {
    let hash = query
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    ((hash >> 32) % 3) as u8
}

fn load(folder: &Path, options: &Options) -> Vec<Set> {
    if !folder.join("queries.jsonl").exists() {
        let mut folders: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("queries.jsonl").exists())
            .collect();
        folders.sort();
        return folders.iter().flat_map(|folder| load(folder, options)).collect();
    }
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let (view, ids) = view(lines(&folder.join("tools.jsonl")));
    let mut queries: Vec<Query> = lines(&folder.join("queries.jsonl"));
    queries.retain(|query| options.split.is_none_or(|wanted| split(&query.query) == wanted));
    let set = |name: String, queries| Set { name, view: view.clone(), ids: ids.clone(), queries };
    let (tasks, others): (Vec<_>, Vec<_>) = queries.into_iter().partition(|query| query.kind == "task");
    match (tasks.is_empty(), others.is_empty()) {
        (false, false) => vec![set(format!("{name} searches"), others), set(format!("{name} tasks"), tasks)],
        _ => vec![set(name, tasks.into_iter().chain(others).collect())],
    }
}

fn lines<T: for<'a> Deserialize<'a>>(file: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
        .collect()
}

/// The tools as a catalogue has them, and for each its id in the folder.
fn view(tools: Vec<Tool>) -> (View, Vec<String>) {
    let mut servers: BTreeMap<String, (Listing, Vec<Tool>)> = BTreeMap::new();
    let mut names: HashMap<(String, String), usize> = HashMap::new();
    for tool in tools {
        let mut name = tool.server.replace('/', "-");
        // A data set may have several tools of one name where a server cannot.
        let count = names.entry((name.clone(), tool.name.trim().to_owned())).or_default();
        *count += 1;
        if *count > 1 {
            name.push_str(&format!(" {count}"));
        }
        let server =
            servers.entry(name).or_insert_with(|| (Listing::without_tools(Health::Ready), Vec::new()));
        server.0.title = tool.server_title.clone();
        server.0.instructions = tool.server_description.clone();
        server.1.push(tool);
    }
    let mut ids = HashMap::new();
    let mut parts = Vec::new();
    for (server, (mut listing, tools)) in servers {
        for tool in &tools {
            let schema = if tool.input_schema.is_object() {
                mended(&tool.input_schema)
            } else {
                json!({"type": "object"})
            };
            listing.tools.push(
                json!({"name": tool.name.trim(), "description": tool.description, "inputSchema": schema}),
            );
            ids.insert((server.clone(), tool.name.trim().to_owned()), tool.id.clone());
        }
        let part = external_part(&server, &ExternalSettings::default(), &listing);
        for problem in &part.problems {
            println!("left out: {problem}");
        }
        parts.push(part);
    }
    let view = Scope::default().view(&Catalogue::merge(&parts));
    let ids = view
        .tools()
        .iter()
        .map(|tool| ids[&(tool.id().server().to_owned(), tool.id().tool().to_owned())].clone())
        .collect();
    (view, ids)
}

/// A schema of a data set, with what no JSON Schema may have (`"type": "str"`) left out, so that no tool is lost.
fn mended(schema: &Value) -> Value {
    const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut mended = serde_json::Map::new();
    for (key, value) in schema {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => Value::Object(
                properties
                    .iter()
                    .filter(|(_, property)| property.is_object())
                    .map(|(name, property)| (name.clone(), mended_property(property)))
                    .collect(),
            ),
            ("type", Value::String(name)) if !TYPES.contains(&name.as_str()) => continue,
            ("items", items @ Value::Object(_)) => mended_property(items),
            ("description", text @ Value::String(_)) | ("type", text) => text.clone(),
            ("enum", values @ Value::Array(list)) if !list.is_empty() => values.clone(),
            ("anyOf" | "oneOf" | "allOf", Value::Array(list)) if !list.is_empty() => {
                Value::Array(list.iter().map(mended_property).collect())
            }
            _ => continue,
        };
        mended.insert(key.clone(), value);
    }
    if mended.get("type").is_none_or(|kind| kind != "object") && mended.contains_key("properties") {
        mended.insert("type".to_owned(), json!("object"));
    }
    Value::Object(mended)
}

fn mended_property(schema: &Value) -> Value {
    let mut schema = mended(schema);
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        let mut seen = HashSet::new();
        values.retain(|value| seen.insert(value.to_string()));
    }
    schema
}

type Build = Box<dyn Fn(&Set) -> Rank>;

fn rankers(options: &Options) -> Vec<(String, Build)> {
    let table = match &options.words {
        Some(file) => WordTable::read(std::fs::read(file).unwrap()).expect("a word table"),
        None => WordTable::built_in(),
    };
    let ours = move |settings: Settings| -> Build {
        let table = table.clone();
        Box::new(move |set: &Set| {
            let index = Lexical::with(&set.view, settings, table.clone());
            Box::new(move |query: &str| {
                index.rank(query, None, DEPTH).iter().map(|hit| hit.position).collect()
            })
        })
    };
    let mut whole = Settings::default();
    options.set.iter().for_each(|(key, number)| set(&mut whole, key, *number));
    let mut rankers: Vec<(String, Build)> = vec![("ours".to_owned(), ours(whole))];
    for (name, keys) in [
        ("stems", &["stems"][..]),
        ("stop words", &["stop_words"]),
        ("field weights", &["flat"]),
        ("word weights", &["says"]),
        ("synonyms", &["synonyms"]),
        ("neighbours", &["neighbours"]),
        ("meaning", &["meaning"]),
        ("any table", &["says", "synonyms", "neighbours", "meaning"]),
        ("joined and split words", &["joined", "split"]),
        ("prefixes and slips", &["prefix", "typo"]),
        ("name coverage", &["name_coverage"]),
        ("query coverage", &["query_coverage"]),
        ("clues of values", &["clues"]),
        ("exact names", &["exact_names"]),
    ] {
        let mut settings = whole;
        keys.iter().for_each(|key| set(&mut settings, key, 0.0));
        rankers.push((format!("without {name}"), ours(settings)));
    }
    rankers.push(("bm25 crate".to_owned(), Box::new(|set: &Set| search_peers::bm25(&set.view, DEPTH))));
    rankers.push(("tantivy".to_owned(), Box::new(|set: &Set| search_peers::tantivy(&set.view, DEPTH))));
    rankers
}

fn set(settings: &mut Settings, key: &str, number: f32) {
    match key {
        "stems" => settings.stems = number > 0.0,
        "stop_words" => settings.stop_words = number > 0.0,
        "clues" => settings.clues = number,
        "exact_names" => settings.exact_names = number > 0.0,
        "flat" => settings.fields = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
        "length" => settings.length = number,
        "saturation" => settings.saturation = number,
        "says" => settings.says = number,
        "synonyms" => settings.synonyms = number,
        "neighbours" => settings.neighbours = number,
        "meaning" => settings.meaning = number,
        "joined" => settings.joined = number,
        "split" => settings.split = number,
        "prefix" => settings.prefix = number,
        "typo" => settings.typo = number,
        "name_coverage" => settings.name_coverage = number,
        "query_coverage" => settings.query_coverage = number,
        field => {
            let place = field.strip_prefix('f').and_then(|place| place.parse::<usize>().ok());
            settings.fields[place.unwrap_or_else(|| panic!("no setting `{field}`"))] = number;
        }
    }
}

/// What a ranker achieves on a set: means over its queries.
#[derive(Debug, Clone, Default, Serialize)]
struct Figures {
    /// The share of queries whose first hit is right.
    h1: f64,
    /// The share of queries with something right among the first five.
    h5: f64,
    /// The share of the right tools among the first one, five, ten, twenty.
    r1: f64,
    r5: f64,
    r10: f64,
    r20: f64,
    /// One by the rank of the first right hit; 0 where it is beyond twenty.
    mrr: f64,
    /// The discounted gain of the first five and ten, as a share of the best possible.
    ndcg5: f64,
    ndcg10: f64,
    /// How long a query takes, in microseconds.
    mean: f64,
    p99: f64,
}

impl Figures {
    fn row(&self) -> String {
        let Self { h1, h5, r1, r5, r10, r20, mrr, ndcg5, ndcg10, mean, p99 } = self;
        format!(
            "{h1:.3} | {r1:.3} | {r5:.3} | {r10:.3} | {r20:.3} | {h5:.3} | {mrr:.3} | {ndcg5:.3} | {ndcg10:.3} | {mean:.0} | {p99:.0} |"
        )
    }

    fn mean(all: &[&Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| {
            all.iter().map(|figures| of(figures)).sum::<f64>() / all.len().max(1) as f64
        };
        Self {
            h1: mean(|f| f.h1),
            h5: mean(|f| f.h5),
            r1: mean(|f| f.r1),
            r5: mean(|f| f.r5),
            r10: mean(|f| f.r10),
            r20: mean(|f| f.r20),
            mrr: mean(|f| f.mrr),
            ndcg5: mean(|f| f.ndcg5),
            ndcg10: mean(|f| f.ndcg10),
            mean: mean(|f| f.mean),
            p99: mean(|f| f.p99),
        }
    }
}

/// The figures of all queries of a set, and of those that the bridge takes, where there are any.
fn measure(set: &Set, rank: &Rank, show: bool) -> (Figures, Option<Figures>) {
    let mut of_queries: Vec<(Figures, Duration)> = Vec::new();
    for query in &set.queries {
        let start = Instant::now();
        let places = rank(&query.query);
        let time = start.elapsed();
        let ids: Vec<&str> = places.iter().map(|&place| set.ids[place].as_str()).collect();
        let gold: HashMap<&str, f64> =
            query.gold.iter().map(|id| (id.as_str(), query.rel.get(id).copied().unwrap_or(1.0))).collect();
        let found = |depth: usize| ids.iter().take(depth).filter(|id| gold.contains_key(*id)).count() as f64;
        let gain = |relevance: f64| relevance.exp2() - 1.0;
        let discounted = |relevances: &mut dyn Iterator<Item = f64>| {
            relevances
                .enumerate()
                .map(|(place, relevance)| gain(relevance) / (place as f64 + 2.0).log2())
                .sum::<f64>()
        };
        let mut best: Vec<f64> = gold.values().copied().collect();
        best.sort_by(|a, b| b.total_cmp(a));
        let ndcg = |depth: usize| {
            discounted(&mut ids.iter().take(depth).map(|id| gold.get(id).copied().unwrap_or(0.0)))
                / discounted(&mut best.iter().take(depth).copied())
        };
        let all = gold.len() as f64;
        if show && ndcg(5) < 0.5 {
            println!(
                "{}: {} | wants {:?} | got {:?}",
                set.name,
                query.query,
                query.gold,
                &ids[..ids.len().min(3)]
            );
        }
        let figures = Figures {
            h1: found(1),
            h5: found(5).min(1.0),
            r1: found(1) / all,
            r5: found(5) / all,
            r10: found(10) / all,
            r20: found(20) / all,
            mrr: ids
                .iter()
                .position(|id| gold.contains_key(id))
                .map_or(0.0, |place| 1.0 / (place as f64 + 1.0)),
            ndcg5: ndcg(5),
            ndcg10: ndcg(10),
            ..Figures::default()
        };
        of_queries.push((figures, time));
    }
    let taken = of_queries.iter().zip(&set.queries).filter(|(_, query)| query.query.len() <= MAX_QUERY_BYTES);
    let taken: Vec<_> = taken.map(|(figures, _)| figures).collect();
    (summary(&of_queries.iter().collect::<Vec<_>>()), (!taken.is_empty()).then(|| summary(&taken)))
}

/// The means of some queries' figures, and how long they took.
fn summary(of_queries: &[&(Figures, Duration)]) -> Figures {
    let mut figures = Figures::mean(&of_queries.iter().map(|(figures, _)| figures).collect::<Vec<_>>());
    let mut times: Vec<f64> = of_queries.iter().map(|(_, time)| time.as_secs_f64() * 1e6).collect();
    times.sort_unstable_by(f64::total_cmp);
    figures.mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    figures.p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    figures
}
