//! What a binary is put together of: a server that was forgotten in its list, a server crate that is not linked, and a
//! second runtime are found, with both places.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use aster_runtime::lint::{self, Rule};
use aster_runtime::testing::Suite;
use aster_runtime::{Entry, Location, NativeCatalogue, ServerSpec, mcp_server};
use tempfile::TempDir;

#[test]
fn check_names_a_server_that_is_linked_and_not_listed() {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let program = folder.join(format!("unlisted_server{}", std::env::consts::EXE_SUFFIX));
    assert!(program.exists(), "{} is not built; run the tests with `cargo test`", program.display());
    let run = |word| Command::new(&program).arg(word).output().unwrap();

    let checked = run("check");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.code(), Some(3), "{said}");
    assert!(said.contains("`forgotten`: this server is linked into the binary"), "{said}");
    let places = said.lines().find(|line| line.trim_start().starts_with("at ")).unwrap();
    assert_eq!(places.matches("tests/peers/unlisted_server.rs:").count(), 2, "{said}");
    // Outside of cargo none is looked for, whatever the path has under that name; the list is compared all the same.
    let alone = Command::new(&program).arg("check").env_remove("CARGO").env("PATH", "").output().unwrap();
    let told = String::from_utf8_lossy(&alone.stderr).into_owned();
    let note = told.strip_suffix(&said).unwrap_or_else(|| panic!("{told}"));
    assert!(
        note.starts_with("note: dependencies that are not linked were not looked for: cargo did not start"),
        "{note}"
    );
    assert_eq!(alone.status.code(), Some(3));
    // Nobody is kept from using what is there, and everybody is told.
    let listed = run("list");
    assert!(listed.status.success());
    let warned = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(warned.starts_with("warning: `forgotten`: this server is linked into the binary"), "{warned}");
    assert_eq!(warned.matches("tests/peers/unlisted_server.rs:").count(), 2, "{warned}");
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("forgotten"));
}

/// A workspace of packages with these manifests and sources, resolved as this one is.
fn workspace(packages: &[(&str, String, &str)]) -> TempDir {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let members: Vec<String> = packages.iter().map(|(name, ..)| format!("{name:?}")).collect();
    let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = [{}]\n", members.join(", "));
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    for (name, manifest, source) in packages {
        let package = folder.path().join(name);
        fs::create_dir_all(package.join("src")).unwrap();
        let head = format!("[package]\nname = {name:?}\nversion = \"0.0.1\"\nedition = \"2024\"\n");
        fs::write(package.join("Cargo.toml"), head + manifest).unwrap();
        fs::write(package.join("src/lib.rs"), source).unwrap();
    }
    folder
}

fn runtime() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("aster-runtime");
    format!("aster-runtime = {{ path = {path:?} }}\n")
}

const SERVER: &str = "//! A server.\n\n/// Tells the time.\n#[aster_runtime::mcp_server]\npub mod clock {}\n";

#[mcp_server]
mod own {
    /// Is linked.
    #[aster_runtime::mcp_tool(tier = Standard)]
    pub(crate) fn tool() {}
}

/// As if a server of the package `clock-tools` were linked.
static CLOCK: ServerSpec =
    ServerSpec { location: Location { package: "clock-tools", ..own::SERVER.location }, ..*own::SERVER };
const LINKED: NativeCatalogue =
    NativeCatalogue { entries: &[Entry::Server(&CLOCK)], ..NativeCatalogue::EMPTY };

#[test]
fn a_server_crate_that_is_not_linked_is_found_with_both_places() {
    let needs = |rest: &str| format!("[dependencies]\n{}{rest}", runtime());
    let folder = workspace(&[
        (
            "app",
            needs("clock-tools = { path = \"../clock-tools\" }\nplain = { path = \"../plain\" }\n"),
            "//! Names no server.\n",
        ),
        ("clock-tools", needs(""), SERVER),
        // Uses the runtime and publishes nothing.
        ("plain", needs(""), "//! See #[mcp_server].\n// #[mcp_tool]\npub fn plain() {}\n"),
    ]);
    let app = folder.path().join("app");
    let found = lint::unlinked(&app, &[NativeCatalogue::registered()]).unwrap();
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.subject.as_str()), (Rule::Linked, "clock-tools"));
    assert!(finding.places[0].ends_with("app/Cargo.toml:7"), "{finding}");
    assert!(finding.places[1].ends_with("clock-tools/src/lib.rs:4"), "{finding}");
    assert!(finding.help.contains("clock_tools::"), "{finding}");

    // The test that `catalogue_tests!` makes of it fails with the same words.
    let suite = |catalogue| {
        let suite = Suite { catalogue, agents: &[], accepted: &[], package: app.to_str().unwrap() };
        std::panic::catch_unwind(|| suite.server_crates_are_linked())
    };
    let failed = suite(NativeCatalogue::EMPTY).unwrap_err();
    assert!(failed.downcast_ref::<String>().unwrap().contains(&finding.to_string()));
    suite(LINKED).unwrap();

    // And so does `check`.
    let checked = lint::binary(&NativeCatalogue::registered(), Some(&app)).unwrap();
    assert_eq!(checked, found);

    assert_eq!(lint::unlinked(&app, &[LINKED]), Ok(Vec::new()));
    let nowhere = lint::unlinked(&folder.path().join("nowhere"), &[]).unwrap_err();
    assert!(nowhere.ends_with("Cargo.toml"), "{nowhere}");
    fs::write(app.join("Cargo.toml"), "[package]\n").unwrap();
    let unreadable = lint::unlinked(&app, &[]).unwrap_err();
    assert!(unreadable.contains("`cargo metadata` failed"), "{unreadable}");
}

#[test]
fn a_facade_hides_no_server_crate() {
    let over = |path: &str| format!("[dependencies]\n{path} = {{ path = \"../{path}\" }}\n");
    let server = SERVER.replace("aster_runtime::", "house_style::aster::");
    let folder = workspace(&[
        (
            "app",
            over("clock-tools")
                + "house-style = { path = \"../house-style\" }\nplain = { path = \"../plain\" }\n",
            "//! Names no server.\n",
        ),
        // It does not know the runtime but by the facade of another.
        ("clock-tools", over("house-style"), &server),
        ("house-style", over("inner-style"), "pub use inner_style::aster;\n"),
        ("inner-style", format!("[dependencies]\n{}", runtime()), "pub use aster_runtime as aster;\n"),
        // It has attributes of that name from elsewhere.
        ("plain", String::new(), "#[mcp_server]\npub mod clock {}\n"),
    ]);
    let app = folder.path().join("app");
    let found = lint::unlinked(&app, &[NativeCatalogue::registered()]).unwrap();
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((finding.rule, finding.subject.as_str()), (Rule::Linked, "clock-tools"));
    assert!(finding.places[0].ends_with("app/Cargo.toml:6"), "{finding}");
    assert!(finding.places[1].ends_with("clock-tools/src/lib.rs:4"), "{finding}");
    assert_eq!(lint::unlinked(&app, &[LINKED]), Ok(Vec::new()));
}

#[test]
fn cargo_refuses_a_second_runtime_and_names_both() {
    let links = "links = \"aster-runtime\"\nbuild = \"src/lib.rs\"\n";
    let folder = workspace(&[
        ("app", format!("[dependencies]\n{}old-tools = {{ path = \"../old-tools\" }}\n", runtime()), ""),
        (
            "old-tools",
            "[dependencies]\nold = { package = \"old-runtime\", path = \"../old-runtime\" }\n".to_owned(),
            "",
        ),
        // As another version of the runtime would, it links the same.
        ("old-runtime", links.to_owned(), ""),
    ]);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--offline"]).current_dir(folder.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "two runtimes are let into one graph");
    for named in
        ["package `aster-runtime` links", "`app v0.0.1", "`old-runtime v0.0.1", "`links = \"aster-runtime\"`"]
    {
        assert!(said.contains(named), "{named} is missing in:\n{said}");
    }
}
