//! From what servers list to what a model is told: checking the parts, merging them, the manifest, the index of searches.
//!
//! ```text
//! ASTER_CAPTURED_TOOLS=FOLDER cargo bench --bench catalogue
//! ```
//!
//! The lists are made up, the same each time. Where the variable names a folder of real ones, they are measured too.
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use std::hint::black_box;

use aster_runtime::catalogue::{ExternalSettings, Listing, Part, external_part};
use aster_runtime::search::Lexical;
use aster_runtime::{Catalogue, ProgressiveConfig, Scope, inject};
use common::{Figures, tools};
use criterion::Criterion;

const STEPS: [&str; 5] = ["check", "merge", "view", "inject", "index"];

fn parts(lists: &[(String, Listing)]) -> Vec<Part> {
    let settings = ExternalSettings::default();
    lists.iter().map(|(name, listing)| external_part(name, &settings, listing)).collect()
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let figures = Figures::new();
    let config = ProgressiveConfig::default();
    let scope = Scope::default();
    figures.line(format!("\n| tools | {} |\n|--:|--:|--:|--:|--:|--:|", STEPS.join(" | ")));
    let made_up = [100, 1_000, 10_000].map(|count| (count.to_string(), tools::made_up(count)));
    let captured = tools::captured().map(|lists| ("captured".to_owned(), lists));
    if captured.is_none() {
        println!("real lists are left out: ASTER_CAPTURED_TOOLS names no folder of them");
    }
    for (label, lists) in made_up.into_iter().chain(captured) {
        let parts_of = parts(&lists);
        assert!(parts_of.iter().all(|part| part.problems.is_empty()));
        let catalogue = Catalogue::merge(&parts_of);
        let view = scope.view(&catalogue);

        let name = format!("catalogue {label}");
        let mut group = criterion.benchmark_group(&name);
        group.bench_function("check", |bencher| bencher.iter(|| parts(black_box(&lists))));
        group.bench_function("merge", |bencher| bencher.iter(|| Catalogue::merge(black_box(&parts_of))));
        group.bench_function("view", |bencher| bencher.iter(|| scope.view(black_box(&catalogue))));
        group.bench_function("inject", |bencher| bencher.iter(|| inject::inject(black_box(&view), &config)));
        group.bench_function("index", |bencher| bencher.iter(|| Lexical::new(black_box(&view))));
        group.finish();
        let time = |step| match figures.median(&name, step) {
            Some(median) => format!("{median:.2?}"),
            None => "–".to_owned(),
        };
        figures.line(format!("| {} | {} |", view.tools().len(), STEPS.map(time).join(" | ")));
    }
    figures.print(&mut criterion);
}
