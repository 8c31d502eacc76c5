//! Server crates that stand in a `Cargo.toml` and are not linked: rustc leaves out a crate that no path names, and with it
//! everything that it would have registered.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Finding, Rule};
use crate::catalogue::NativeCatalogue;
use crate::text;

/// The runtime's own package, by which a server crate is known.
const RUNTIME: &str = env!("CARGO_PKG_NAME");

/// What this is built for.
const TARGET: &str = env!("ASTER_TARGET");

/// The attributes that publish something.
const ATTRIBUTES: [&str; 4] = ["mcp_server", "mcp_tool", "mcp_resource", "mcp_prompt"];

/// The packages that the one in `folder` depends on, for this target and not for tests alone, that publish something with
/// Aster's attributes, and of which nothing is in any of `linked`. Whether they have the runtime from a package of their own
/// choice is all the same, so that a facade hides none of them. Optional dependencies count where they are on by default.
///
/// The attributes are looked for line by line in the folder of the package's library: one that a macro writes,
/// that begins on another line than its `#[`, or that stands in a file which `#[path]` takes from elsewhere, is not seen. At
/// compile time the same is told by rustc's lint `unused_crate_dependencies`, which sees everything.
///
/// # Errors
///
/// Where cargo did not start this process, or `cargo metadata` cannot be run there, with its own words.
pub fn unlinked(folder: &Path, linked: &[NativeCatalogue]) -> Result<Vec<Finding>, String> {
    let manifest = folder.join("Cargo.toml");
    if !manifest.exists() {
        return Err(format!("there is no {}", manifest.display()));
    }
    let metadata = metadata(&manifest)?;
    let of = |value: &'_ Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let package = |id: &Value| packages.iter().find(|package| package["id"] == *id).copied();
    let is_ours = |package: &&&Value| {
        Path::new(&of(package, "manifest_path")).parent().is_some_and(|at| same(at, folder))
    };
    let ours =
        packages.iter().find(is_ours).ok_or_else(|| format!("{} is no package", manifest.display()))?;
    let graph = Graph::of(&metadata);
    let found = graph
        .needs(&ours["id"])
        .filter(|&server| graph.reaches_runtime(server, &mut BTreeSet::new()))
        .filter_map(package)
        .filter_map(|server| {
            let name = of(server, "name");
            let mut entries = linked.iter().flat_map(|catalogue| catalogue.entries);
            if name == RUNTIME || entries.any(|entry| entry.location().package == name) {
                return None;
            }
            let published = published(server)?;
            let path = name.replace('-', "_");
            let help = format!("list its server, as in `catalogue![{path}::…]`, or drop the dependency");
            let message =
                "this package publishes servers or tools and is a dependency, but none of them is linked";
            let mut finding = Finding::new(Rule::Linked, &name, message, help);
            finding.places = vec![declared(&manifest, &name), published];
            Some(finding)
        });
    Ok(found.collect())
}

/// What cargo resolved: which package needs which, for this target and not for tests or build scripts alone.
struct Graph<'a> {
    nodes: HashMap<&'a str, &'a Value>,
    /// The ids of the packages that are the runtime.
    runtimes: Vec<&'a Value>,
}

impl<'a> Graph<'a> {
    fn of(metadata: &'a Value) -> Self {
        let all = |value: &'a Value| value.as_array().into_iter().flatten();
        let nodes = all(&metadata["resolve"]["nodes"]);
        let packages = all(&metadata["packages"]);
        Self {
            nodes: nodes.filter_map(|node| Some((node["id"].as_str()?, node))).collect(),
            runtimes: packages
                .filter(|package| package["name"] == RUNTIME)
                .map(|package| &package["id"])
                .collect(),
        }
    }

    fn needs(&self, package: &Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        let is_normal = |kind: &Value| kind["kind"].is_null() && kind["target"].is_null();
        let node = package.as_str().and_then(|id| self.nodes.get(id)).copied();
        let needed = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let normal = needed.filter(move |needed| {
            needed["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(is_normal))
        });
        normal.map(|needed| &needed["pkg"])
    }

    /// Whether the runtime is among what a package needs, or what that needs.
    fn reaches_runtime(&self, package: &'a Value, seen: &mut BTreeSet<&'a str>) -> bool {
        self.runtimes.contains(&package)
            || (package.as_str().is_some_and(|id| seen.insert(id))
                && self.needs(package).any(|needed| self.reaches_runtime(needed, seen)))
    }
}

fn metadata(manifest: &Path) -> Result<Value, String> {
    // Looked up on the path it may be rustup's, which would first install what it lacks.
    let cargo =
        std::env::var_os("CARGO").ok_or("cargo did not start this, as `cargo test` and `cargo run` do")?;
    let mut command = Command::new(cargo);
    // What is being tested has been built, so that for its target nothing has to be fetched.
    command.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", TARGET]);
    command.arg("--manifest-path").arg(manifest);
    command.current_dir(manifest.parent().unwrap_or(Path::new(".")));
    let output = command.output().map_err(|error| {
        format!(
            "`cargo metadata` cannot be run for {}: {error}",
            text::one_line(&manifest.display().to_string(), 300)
        )
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`cargo metadata` failed: {}", text::block(said.trim(), 2_000)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("`cargo metadata` is no JSON: {error}"))
}

fn same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}

/// Where a manifest names a dependency.
fn declared(manifest: &Path, name: &str) -> String {
    let text = fs::read_to_string(manifest).unwrap_or_default();
    let names = |line: &str| {
        let key = line.trim_start().trim_start_matches('[').trim_start_matches("dependencies.");
        let rest = key.trim_start_matches('"').strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with([' ', '=', '.', ']', '"']))
    };
    match text.lines().position(names) {
        Some(line) => format!("{}:{}", manifest.display(), line + 1),
        // Under another name, or inherited in a form that is not looked for.
        None => manifest.display().to_string(),
    }
}

/// Where a package's library first publishes something. Nothing else of a dependency is linked.
fn published(package: &Value) -> Option<String> {
    let root = package["manifest_path"].as_str().and_then(|manifest| Path::new(manifest).parent());
    let targets: Vec<(bool, &Path)> = package["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|target| {
            let mut kinds = target["kind"].as_array().into_iter().flatten().filter_map(Value::as_str);
            Some((kinds.any(|kind| kind.ends_with("lib")), Path::new(target["src_path"].as_str()?)))
        })
        .collect();
    let roots = |is_library: bool| {
        targets.iter().filter(move |(library, _)| *library == is_library).map(|(_, source)| *source)
    };
    let mut folders: Vec<PathBuf> = roots(true).filter_map(Path::parent).map(Path::to_owned).collect();
    // A binary may stand beside the library, or in a folder of its own.
    let is_around = |folder: &Path| roots(true).any(|source| source.starts_with(folder));
    let other_folders: Vec<&Path> =
        roots(false).filter_map(Path::parent).filter(|folder| !is_around(folder)).collect();
    let mut files = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        // What cannot be read hides nothing but itself.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                // Where the sources are the whole folder of the package, other things lie beside them.
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let is_beside =
                    root == Some(&*folder) && ["target", "tests", "benches", "examples"].contains(&&*name);
                let is_other = is_beside
                    || name.starts_with('.')
                    || other_folders.contains(&&*path)
                    || path.join("Cargo.toml").exists();
                if !is_other {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !roots(false).any(|source| source == path)
            {
                files.insert(path);
            }
        }
    }
    files.iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().position(publishes)?;
        Some(format!("{}:{}", file.display(), line + 1))
    })
}

/// Whether a line begins with an attribute of ours, or with one that puts it there under a condition.
fn publishes(line: &str) -> bool {
    let is_ours = |path: &str| ATTRIBUTES.contains(&path.rsplit("::").next().unwrap_or_default().trim());
    line.trim_start().strip_prefix("#[").is_some_and(|rest| {
        let mut words = rest.split(['(', ')', ',', ']']);
        let path = words.next().unwrap_or_default();
        is_ours(path) || (path.trim() == "cfg_attr" && words.any(is_ours))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_attribute_is_known_by_its_path() {
        for line in [
            "#[mcp_server]",
            "    #[aster_runtime::mcp_tool(tier = Standard)]",
            "#[cfg_attr(feature = \"tools\", mcp_server)]",
            "#[cfg_attr(all(unix, feature = \"tools\"), tools::mcp_tool(tier = Standard))]",
        ] {
            assert!(publishes(line), "{line}");
        }
        for line in ["// #[mcp_tool]", "#[doc(mcp_server)]", "#[mcp_servers]", "#[cfg_attr(unix, inline)]"] {
            assert!(!publishes(line), "{line}");
        }
    }
    /// Where the package with these files, each of which has a server in it, publishes something.
    fn found(library: &str, binaries: &[&str], files: &[&str]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for file in files {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "#[mcp_server]\nmod clock {}\n").unwrap();
        }
        let target = |kind: &str, path: &str| json!({"kind": [kind], "src_path": at(path)});
        let binaries = binaries.iter().map(|path| target("bin", path));
        // The last one is looked at first, and is not there.
        let targets: Vec<Value> = [target("lib", library)]
            .into_iter()
            .chain(binaries)
            .chain([target("cdylib", "gone/lib.rs")])
            .collect();
        let package = json!({"manifest_path": at("Cargo.toml"), "targets": targets});
        let found = published(&package)?;
        let root = format!("{}/", folder.path().display());
        Some(found.strip_prefix(&root).unwrap().to_owned())
    }

    #[test]
    fn only_the_library_of_a_package_is_looked_through() {
        let binaries = ["src/main.rs", "src/bin/one.rs", "src/bin/two/main.rs", "cli/main.rs"];
        let of_binaries = [&binaries[..], &["src/bin/two/serve.rs", "cli/serve.rs", "build.rs"]].concat();
        assert_eq!(found("src/lib.rs", &binaries, &of_binaries), None);
        let with = |file: &'static str| [&of_binaries[..], &[file]].concat();
        for file in ["src/lib.rs", "src/clock.rs", "src/tests/mod.rs", "src/target/examples/benches.rs"] {
            assert_eq!(found("src/lib.rs", &binaries, &with(file)), Some(format!("{file}:1")));
        }
        // Where the library is beside `Cargo.toml`, other things are, too.
        let beside = ["target/debug/x.rs", "tests/x.rs", "benches/x.rs", "examples/x.rs", ".git/x.rs"];
        assert_eq!(found("lib.rs", &[], &beside), None);
        let beside = [&beside[..], &["clock/target/tests.rs"]].concat();
        assert_eq!(found("lib.rs", &[], &beside).as_deref(), Some("clock/target/tests.rs:1"));
    }
}
