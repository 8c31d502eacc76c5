//! What looking for secrets costs: a clean text against the bare automaton that looks for the beginnings of all formats, and
//! texts that are made to be expensive.
//!
//! ```text
//! cargo bench --bench secrets
//! ```
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use aster_runtime::gate::secrets::{self, Redactor, Severity};
use criterion::{Criterion, Throughput};
use serde_json::{Value, json};

/// How much text, in bytes.
const SIZE: usize = 1 << 20;

/// The text of these files of the repository, over and over.
fn text(files: &[&str]) -> String {
    let read =
        |file: &&str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a file");
    let once: String = files.iter().map(read).collect();
    let mut text = once.repeat(SIZE / once.len() + 1);
    text.truncate((0..=SIZE).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default());
    text
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    let redactor = Redactor::new(["hunter2-and-more"]).with_formats(Severity::Medium);
    let needles = secrets::needles();
    // Of the kind that the scan uses too, and the fastest.
    let bare = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&needles).expect("an automaton");
    let prose = text(&["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]);
    let code =
        text(&["aster-runtime/src/host.rs", "aster-runtime/src/net.rs", "aster-runtime/src/private.rs"]);
    for (name, text) in [("prose", &prose), ("code", &code)] {
        assert!(redactor.find(text).is_empty(), "{name} is clean");
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(u64::try_from(text.len()).unwrap_or_default()));
        group.bench_function("prefilter", |bencher| bencher.iter(|| bare.find_iter(black_box(text)).count()));
        group.bench_function("scan", |bencher| bencher.iter(|| redactor.find(black_box(text)).len()));
        let lines: Vec<Value> = text.lines().map(|line| json!({"line": line, "n": line.len()})).collect();
        let value = json!({ "lines": lines });
        let object = value.as_object().expect("an object");
        group
            .bench_function("JSON", |bencher| bencher.iter(|| redactor.scan(black_box(object)).listed.len()));
        group.finish();
    }
    // Each beginning of a secret over and over, with what may stand between two of them.
    let mut worst = (Duration::ZERO, String::new());
    for needle in &needles {
        for joint in ["", "-", "a-", "_", ".", "/", "=", " ", "\n", "%41"] {
            let piece = format!("{needle}{joint}");
            let text = piece.repeat(SIZE / piece.len());
            let start = Instant::now();
            black_box(redactor.find(black_box(&text)));
            worst = worst.max((start.elapsed(), piece));
        }
    }
    println!("the most expensive text of 1 MiB, {:?} over and over: {:.0?}", worst.1, worst.0);
}
