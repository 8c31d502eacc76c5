//! What tools cost a model, in tokens: all of them as functions, the manifest, an answer to a search, a description.
//!
//! ```text
//! ASTER_CAPTURED_TOOLS=FOLDER ASTER_QUERIES=FILE:FILE cargo bench --bench tokens
//! ```
//!
//! `ASTER_CAPTURED_TOOLS` is as for the tests, and without it the few lists that are committed are used. `ASTER_QUERIES`
//! names files of lines of JSON that have a `query`; without it the tools' own names are searched for.
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use aster_runtime::bridge::{self, SearchRequest};
use aster_runtime::catalogue::{ExternalSettings, external_part};
use aster_runtime::provider::Provider;
use aster_runtime::search::{MAX_QUERY_BYTES, default_ranker};
use aster_runtime::text::estimate_tokens;
use aster_runtime::{Catalogue, ProgressiveConfig, Scope, inject};
use common::tools;
use serde_json::Value;

/// Of the context, in percent.
const BUDGET: f64 = 1.5;

fn main() {
    let lists = tools::captured().unwrap_or_else(tools::committed);
    let parts: Vec<_> = lists
        .iter()
        .map(|(name, listing)| external_part(name, &ExternalSettings::default(), listing))
        .collect();
    let catalogue = Catalogue::merge(&parts);
    let view = Scope::default().view(&catalogue);
    let config = ProgressiveConfig { inventory_threshold_percent: BUDGET, ..ProgressiveConfig::default() };
    let injection = inject::inject(&view, &config).expect("there are tools");

    let ranker = default_ranker(&view);
    let names = || view.tools().iter().map(|tool| tool.id().tool().replace(['_', '-'], " ")).collect();
    let queries = queries().unwrap_or_else(names);
    let answers = queries.iter().map(|query| {
        let request = SearchRequest { query: query.clone(), ..SearchRequest::default() };
        estimate_tokens(&bridge::search(&view, &*ranker, &request, &config).to_string())
    });
    let descriptions = view.tools().iter().map(|tool| {
        let ids = [tool.id().to_string()];
        let described =
            bridge::describe_all(&view, &*ranker, &ids, Provider::Plain, |_| {}).expect("the tool is there");
        estimate_tokens(&described.to_string())
    });
    println!(
        "| {} tools of {} servers | tokens | 95 % have no more than |\n|---|--:|--:|",
        view.tools().len(),
        view.servers().len()
    );
    println!("| all as functions | {} | |", catalogue.schema_tokens());
    let function = estimate_tokens(&injection.bridge_tool.to_string());
    println!(
        "| the manifest at {BUDGET} % of {} | {} | |",
        config.available_context_tokens, injection.prompt_tokens
    );
    println!("| the function `aster_mcp` | {function} | |");
    for (what, costs) in [
        (format!("the answer to a search, median of {}", queries.len()), sorted(answers)),
        (format!("a description, median of {}", view.tools().len()), sorted(descriptions)),
    ] {
        println!("| {what} | {} | {} |", costs[costs.len() / 2], costs[costs.len() * 95 / 100]);
    }
}

fn sorted(costs: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut costs: Vec<usize> = costs.collect();
    costs.sort_unstable();
    costs
}

/// What people have searched for; a query that the bridge would refuse for its length is no question of cost.
fn queries() -> Option<Vec<String>> {
    let files = std::env::var_os("ASTER_QUERIES")?;
    let mut queries = Vec::new();
    for file in std::env::split_paths(&files) {
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).expect("lines of JSON");
            queries.extend(line["query"].as_str().map(str::to_owned));
        }
    }
    queries.retain(|query| query.len() <= MAX_QUERY_BYTES);
    Some(queries)
}
