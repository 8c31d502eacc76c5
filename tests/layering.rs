//! Which module of the runtime may use which other: the table that holds its layers.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Every module with what it may use, from the bottom up: a row uses only rows above it. A path stands for itself and all
/// below it, so `gate::Admitted` is less than `gate`.
const LAYERS: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("id", &["text"]),
    ("process", &[]),
    ("uri", &[]),
    ("canonical", &[]),
    ("pointer", &[]),
    ("destination", &[]),
    ("provider", &["pointer"]),
    ("glob", &[]),
    // Pure parts of the gate: others use them without the gate.
    ("gate::egress", &["destination", "pointer", "text"]),
    ("gate::secrets", &["pointer", "text"]),
    ("session", &["gate::egress", "id", "text"]),
    ("tool", &["id", "session", "gate::egress", "text"]),
    ("schema", &["destination", "tool"]),
    ("spec", &["tool", "id"]),
    ("__private", &["id", "schema", "session", "spec", "text", "tool", "uri"]),
    (
        "catalogue",
        &[
            "spec",
            "id",
            "tool",
            "gate::egress",
            "gate::secrets",
            "destination",
            "pointer",
            "provider",
            "text",
            "uri",
            "canonical",
        ],
    ),
    ("scan", &["catalogue", "pointer", "text"]),
    ("pins", &["catalogue", "canonical", "text"]),
    ("gate::rules", &["gate::egress", "gate::secrets", "catalogue", "glob", "id", "pointer", "spec", "tool"]),
    ("scope", &["gate::rules", "catalogue", "glob", "id", "session", "spec"]),
    ("search", &["catalogue", "scope", "id"]),
    ("inject", &["scope", "catalogue", "search", "id", "provider", "text"]),
    (
        "bridge",
        &["inject", "search", "scope", "catalogue", "id", "pointer", "provider", "spec", "text", "tool"],
    ),
    ("injector", &["bridge", "inject", "search", "scope", "catalogue", "id", "provider", "tool"]),
    ("lint", &["inject", "scope", "catalogue", "destination", "id", "pointer", "spec", "text"]),
    ("call", &["catalogue", "session", "tool"]),
    (
        "gate",
        &[
            "call",
            "canonical",
            "catalogue",
            "scope",
            "id",
            "pins",
            "process",
            "spec",
            "session",
            "text",
            "tool",
        ],
    ),
    ("dispatch", &["gate::Admitted", "call", "catalogue", "session", "spec", "tool"]),
    (
        "audit",
        &[
            "gate::Admitted",
            "gate::hooks::Heard",
            "gate::hooks::Said",
            "gate::secrets",
            "call",
            "catalogue",
            "session",
            "spec",
            "text",
            "tool",
        ],
    ),
    ("boot", &["catalogue", "gate", "glob", "id", "scope", "session", "text"]),
    (
        "host",
        &[
            "audit",
            "boot",
            "pins",
            "dispatch",
            "gate",
            "call",
            "bridge",
            "inject",
            "lint",
            "search",
            "scope",
            "catalogue",
            "provider",
            "spec",
            "tool",
            "session",
            "id",
            "text",
        ],
    ),
    // The edges, and nothing uses them.
    ("net", &["gate::egress", "text"]),
    ("otel", &["host"]),
    (
        "config",
        &[
            "gate::egress",
            "gate::hooks",
            "gate::limits",
            "gate::real",
            "gate::rules",
            "gate::secrets",
            "pins",
            "catalogue",
            "spec",
            "id",
            "text",
        ],
    ),
    (
        "upstream",
        &[
            "gate::secrets",
            "host",
            "dispatch",
            "call",
            "catalogue",
            "id",
            "process",
            "tool",
            "session",
            "text",
        ],
    ),
    (
        "serve",
        &[
            "host",
            "lint",
            "call",
            "catalogue",
            "scope",
            "inject",
            "bridge",
            "id",
            "provider",
            "tool",
            "session",
            "spec",
            "text",
        ],
    ),
    (
        "testing",
        &[
            "host",
            "audit",
            "gate::approval",
            "lint",
            "call",
            "scope",
            "catalogue",
            "provider",
            "spec",
            "session",
        ],
    ),
];

const EDGES: &[&str] = &["net", "config", "upstream", "serve", "testing"];

/// What the table forbids and is right, with the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("__private", "", "macros of this crate have no path but its root"),
    (
        "tool",
        "schema::output",
        "a result's type brings its output schema, and the pass over it is that of inputs",
    ),
    ("tool", "schema::form", "a form's type brings its schema, and the pass over it is that of inputs"),
    ("tool", "schema::is_wrapped", "a result is wrapped where its output schema says so"),
    (
        "serve",
        "gate::approval",
        "a binary of one's own chooses who is asked, and an endpoint hands over what a human answers",
    ),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("aster-runtime/src")
}

/// Every source file below a folder, with the path of its module.
fn modules(folder: &Path, above: &str) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().replace("private", "__private");
        let module = if above.is_empty() { stem.clone() } else { format!("{above}::{stem}") };
        match (path.extension().and_then(|extension| extension.to_str()), stem.as_str()) {
            _ if path.is_dir() => found.extend(modules(&path, &module)),
            (Some("rs"), "mod") => found.push((above.to_owned(), path)),
            (Some("rs"), "lib" | "tests") => {}
            (Some("rs"), _) => found.push((module, path)),
            _ => {}
        }
    }
    found
}

/// The code without its tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// The paths that begin with `crate::`, without it, as far as they are written out: of `crate::a::{b, c}` it is `a`.
/// `$crate::` is another crate's view of this one.
fn used(code: &str) -> Vec<String> {
    code.match_indices("crate::")
        .filter(|(at, _)| !code[..*at].ends_with('$'))
        .map(|(at, found)| {
            let rest = &code[at + found.len()..];
            let end =
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
            rest[..end].trim_end_matches(':').to_owned()
        })
        .collect()
}

fn is_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The row of a module or of something in one.
fn row(path: &str) -> Option<usize> {
    let rows = LAYERS.iter().enumerate().filter(|(_, (module, _))| is_within(path, module));
    rows.max_by_key(|(_, (module, _))| module.len()).map(|(row, _)| row)
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let mut wrong = Vec::new();
    let mut needed = Vec::new();
    for (module, file) in modules(&source(), "") {
        let Some(row) = row(&module) else {
            wrong.push(format!("`{module}` has no row in the table"));
            continue;
        };
        let (own, allowed) = LAYERS[row];
        for path in used(&code(&file)) {
            if is_within(&path, own) || allowed.iter().any(|allowed| is_within(&path, allowed)) {
                continue;
            }
            let excepted = |(by, of, _): &&(&str, &str, &str)| *by == own && is_within(&path, of);
            match EXCEPTIONS.iter().find(excepted) {
                Some(exception) => needed.push(exception),
                None => wrong.push(format!("{}: `{own}` must not use `crate::{path}`", file.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for exception in EXCEPTIONS {
        assert!(needed.contains(&exception), "nobody needs the exception {exception:?}");
    }
}

#[test]
fn the_table_has_layers() {
    for (at, (module, allowed)) in LAYERS.iter().enumerate() {
        for path in *allowed {
            let below = row(path).unwrap_or_else(|| panic!("`{path}`, which `{module}` may use, has no row"));
            assert!(below < at, "`{module}` may use `{path}`, which is not below it");
            assert!(!EDGES.contains(path), "`{module}` may use `{path}`, which is an edge");
        }
    }
}

#[test]
fn the_rules_of_the_gate_are_pure() {
    let pure = |module: &str| ["rules", "egress", "secrets"].iter().any(|name| is_within(module, name));
    for (module, file) in modules(&source().join("gate"), "").iter().filter(|(module, _)| pure(module)) {
        let code = code(file);
        for impure in ["tokio", "async ", "std::fs", "std::net::TcpStream", "ToSocketAddrs"] {
            assert!(!code.contains(impure), "gate::{module} uses `{impure}`");
        }
    }
}

#[test]
fn the_reader_sees_what_is_used() {
    let code = "use crate::a::{b, c};\nlet x = crate::d::E::new();\n$crate::f::g!();\npub use crate::h;\n";
    assert_eq!(used(code), ["a", "d::E::new", "h"]);
}
