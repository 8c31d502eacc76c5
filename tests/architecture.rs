//! What the repository promises of its own shape.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .flat_map(|entry| {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path) } else { vec![path] }
        })
        .collect()
}

/// The codes in a text, such as `A0001`.
fn codes(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            word.len() == 5 && word.starts_with('A') && word[1..].bytes().all(|b| b.is_ascii_digit())
        })
        .collect()
}

/// The macro crate exports nothing but macros, so its table is read as text.
#[test]
fn every_code_has_one_ui_test_that_pins_what_is_printed() {
    let table = fs::read_to_string(root().join("aster-macros/src/diag/codes.rs")).unwrap();
    let codes = codes(&table);
    let unique: BTreeSet<&str> = codes.iter().copied().collect();
    assert_eq!(codes.len(), unique.len(), "a code stands twice in the table");

    let tests: Vec<PathBuf> = files(&root().join("tests/ui"));
    let stems = |extension: &str| -> Vec<String> {
        tests
            .iter()
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    let (sources, outputs) = (stems("rs"), stems("stderr"));
    for code in &unique {
        let prefix = format!("{}_", code.to_lowercase());
        let found: Vec<&String> = sources.iter().filter(|stem| stem.starts_with(&prefix)).collect();
        assert_eq!(found.len(), 1, "{code} has not one UI test: {found:?}");
        assert!(outputs.contains(found[0]), "{code} is not blessed");
    }
    for stem in sources.iter().filter(|stem| stem.starts_with("a0")) {
        let code = stem[..5].to_uppercase();
        assert!(unique.contains(code.as_str()), "{stem} is a test of a code that the table does not have");
    }
}
