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

/// What is wrong with the files of UI tests, of which `exists` knows. The harness takes `*/a*.rs`; `pass/` has test targets of its
/// own, and `files/` what the others read.
fn ui_problems(files: &[PathBuf], exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let problem = |path: &PathBuf| {
        let said = path.display();
        let categories: Vec<_> = path.parent()?.components().collect();
        if matches!(categories.as_slice(), [only] if ["pass", "files"].iter().any(|other| only.as_os_str() == *other))
        {
            return None;
        }
        let is_run = path.file_name()?.to_string_lossy().starts_with('a') && categories.len() == 1;
        match path.extension()?.to_str()? {
            "rs" if !is_run => Some(format!("no one runs {said}")),
            "rs" if !exists(&path.with_extension("stderr")) => Some(format!("{said} is not blessed")),
            "stderr" if !exists(&path.with_extension("rs")) => Some(format!("{said} is of no test")),
            _ => None,
        }
    };
    files.iter().filter_map(problem).collect()
}

#[test]
fn every_ui_test_is_run_and_blessed() {
    let ui = root().join("tests/ui");
    let all: Vec<PathBuf> =
        files(&ui).iter().map(|path| path.strip_prefix(&ui).unwrap().to_owned()).collect();
    assert!(all.len() > 200, "{}", all.len());
    assert_eq!(ui_problems(&all, |path| ui.join(path).exists()), Vec::<String>::new());
}

#[test]
fn ui_tests_that_nobody_runs_and_texts_that_nobody_compares_are_found() {
    let all = [
        "names/a1.rs",
        "names/a1.stderr",
        "names/a2.rs",
        "names/a3.stderr",
        "names/b.rs",
        "names/in/a4.rs",
        "names/in/a4.stderr",
        "pass/b.rs",
        "README.md",
    ]
    .map(PathBuf::from);
    assert_eq!(
        ui_problems(&all, |path| all.iter().any(|known| known == path)),
        [
            "names/a2.rs is not blessed",
            "names/a3.stderr is of no test",
            "no one runs names/b.rs",
            "no one runs names/in/a4.rs"
        ]
    );
}

/// What the table says of each code: the rule of those that the macros report, the mistake of those that others do.
fn titles(table: &str) -> Vec<(String, String)> {
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | A"));
    let told_by_others = rows.filter_map(|row| {
        let (number, rest) = row.split_once(" | ")?;
        Some((format!("A{number}"), rest.split(" | ").next()?.to_owned()))
    });
    let own = table.split("id: \"").skip(1).filter_map(|code| {
        let title = code.split_once("title: \"")?.1.split_once("\",")?.0;
        Some((code[..5].to_owned(), title.replace("\\\"", "\"")))
    });
    told_by_others.chain(own).collect()
}

/// What stands in the first block of code that begins so; where it is to be blessed, after it was replaced.
fn block(page: &mut String, fence: &str, content: &str, bless: bool) -> String {
    let start =
        page.find(&format!("\n{fence}\n")).unwrap_or_else(|| panic!("no `{fence}`")) + fence.len() + 2;
    let end = start + page[start..].find("```").unwrap();
    if bless {
        page.replace_range(start..end, content);
        return content.to_owned();
    }
    page[start..end].to_owned()
}

/// A page shows the source of the UI test and what is printed for it. `ASTER_BLESS=1` copies both into the pages.
#[test]
fn every_code_has_a_page_that_shows_its_ui_test() {
    let table = fs::read_to_string(root().join("aster-macros/src/diag/codes.rs")).unwrap();
    let listed = fs::read_to_string(root().join("docs/errors/pages.rs")).unwrap();
    let tests = files(&root().join("tests/ui"));
    let bless = std::env::var_os("ASTER_BLESS").is_some();
    let titles = titles(&table);
    assert_eq!(titles.len(), codes(&table).len(), "a code without a title");
    for (code, title) in &titles {
        let path = root().join(format!("docs/errors/{code}.md"));
        let mut page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{code}: {error}"));
        let prefix = format!("{}_", code.to_lowercase());
        let source = tests.iter().find(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(&prefix) && name.ends_with(".rs")
        });
        let source = source.unwrap_or_else(|| panic!("{code} has no UI test"));
        let printed = fs::read_to_string(source.with_extension("stderr")).unwrap();
        let source = fs::read_to_string(source).unwrap();

        assert_eq!(page.lines().next(), Some(&*format!("# {code}: {title}")));
        let shown = block(&mut page, "```rust,compile_fail", &source, bless);
        assert_eq!(shown, source, "{code}: the wrong example is not its UI test; run with ASTER_BLESS=1");
        let shown = block(&mut page, "```text", &printed, bless);
        assert_eq!(shown, printed, "{code}: the page shows another text; run with ASTER_BLESS=1");
        assert!(page.contains("\n## Right\n\n```rust\n"), "{code} has no example that is right");
        if bless {
            fs::write(&path, page).unwrap();
        }
    }
    let known: BTreeSet<&str> = titles.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(codes(&listed).into_iter().collect::<BTreeSet<_>>(), known, "pages.rs compiles other pages");
    for path in files(&root().join("docs/errors")) {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            stem == "README" || stem == "pages" || known.contains(stem.as_str()),
            "{stem} is a page of no code"
        );
    }
}

/// Native servers reach the network through `EgressClient`: no other room names an HTTP client. In the examples that do, no
/// tool uses it.
#[test]
fn only_the_guarded_client_names_an_http_client() {
    let allowed = [
        ("aster-runtime/src/net.rs", "it is the guarded client"),
        ("examples/agent.rs", "it asks a model"),
        ("examples/mount_http.rs", "it is the client of its own server"),
    ];
    let rooms = ["aster-runtime/src", "aster-servers/src", "aster-cli/src", "examples"];
    let sources = rooms.iter().flat_map(|room| files(&root().join(room)));
    let naming = sources.filter(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        path.extension().is_some_and(|extension| extension == "rs") && lines.any(names_http_client)
    });
    let naming: BTreeSet<String> =
        naming.map(|path| path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/")).collect();
    assert_eq!(naming, allowed.iter().map(|(path, _)| (*path).to_owned()).collect());
    for manifest in ["aster-servers/Cargo.toml", "aster-cli/Cargo.toml"] {
        let text = fs::read_to_string(root().join(manifest)).unwrap();
        assert!(!text.lines().any(names_http_client), "{manifest}");
    }
}

/// Whether a line names a crate that makes HTTP requests.
fn names_http_client(line: &str) -> bool {
    let mut words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.any(|word| ["reqwest", "ureq", "isahc", "attohttpc"].contains(&word))
}

#[test]
fn a_server_with_a_client_of_its_own_is_found() {
    for line in ["    let page = reqwest::get(url).await?;", "use ureq;", "reqwest.workspace = true"] {
        assert!(names_http_client(line), "{line}");
    }
    assert!(!names_http_client("client.get(url, &limits)"));
}

/// The texts between backticks, one or two of them, in the pieces that `…` leaves.
fn quoted(cell: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), cell);
    while let Some(start) = rest.find('`') {
        let fence = if rest[start..].starts_with("``") { "``" } else { "`" };
        let inner = &rest[start + fence.len()..];
        let end = inner.find(fence).unwrap_or_else(|| panic!("a backtick is open in {cell}"));
        found.extend(inner[..end].split('…').map(str::trim).filter(|piece| !piece.is_empty()));
        rest = &inner[end + fence.len()..];
    }
    found
}

/// What `docs/errors/README.md` says of the official SDK's macros is what they print.
#[test]
fn the_table_beside_the_official_sdk_says_what_its_macros_print() {
    let readme = fs::read_to_string(root().join("docs/errors/README.md")).unwrap();
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let version = lock.split_once("name = \"rmcp\"\nversion = \"").unwrap().1.split('"').next().unwrap();
    assert!(
        readme.contains(&format!("| mistake | rmcp {version} | Aster |")),
        "the table is of another version"
    );
    let mut programs = BTreeSet::new();
    for row in readme.lines().filter(|line| line.contains("](../../tests/ui/rmcp/")) {
        let [mistake, said, _] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let program = root().join(mistake.split_once("](../../").unwrap().1.split_once(')').unwrap().0);
        let printed = fs::read_to_string(program.with_extension("stderr")).unwrap();
        let errors: Vec<&str> = printed.lines().filter(|line| line.starts_with("error")).collect();
        if said == "nothing" {
            assert_eq!(errors, ["error: nothing is said"], "{row}");
        } else {
            let count = said.split_once(" errors: ").map_or(1, |(count, _)| count.parse().unwrap());
            assert_eq!(errors.len(), count, "{row}");
            for piece in quoted(said) {
                // The macros have options there.
                let piece = if piece.starts_with("#[") { piece.trim_end_matches(']') } else { piece };
                assert!(printed.contains(piece), "`{piece}` is not printed for {row}");
            }
        }
        programs.insert(program.with_extension("rs"));
    }
    let all =
        files(&root().join("tests/ui/rmcp")).into_iter().filter(|path| path.extension().unwrap() == "rs");
    assert_eq!(programs, all.collect(), "a program without a row, or a row without one");
}
