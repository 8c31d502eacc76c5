//! Real tool lists, captured from MCP servers: every valid tool and every field of it is in the catalogue.
//!
//! A few small ones are committed under `tests/data/tools`; `ASTER_CAPTURED_TOOLS` names a folder with more. With
//! `--nocapture` the tests print what the lists cost a model.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, external_part};
use aster_runtime::{Catalogue, ProgressiveConfig, Scope, inject};
use serde_json::{Value, json};

fn captured() -> Vec<PathBuf> {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools");
    let folders = [Some(committed), env::var_os("ASTER_CAPTURED_TOOLS").map(PathBuf::from)];
    let mut files: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .flat_map(|folder| {
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        })
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files.dedup_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    files
}

fn listing(path: &Path) -> Listing {
    let tools: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    Listing { tools, ..Listing::without_tools(Health::Ready) }
}

#[test]
fn every_tool_and_every_field_survives() {
    let files = captured();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let name = path.file_stem().unwrap().to_string_lossy();
        let listing = listing(&path);
        let part = external_part(&name, &ExternalSettings::default(), &listing);
        assert!(part.problems.is_empty(), "{name}: {:?}", part.problems);
        assert_eq!(part.tools.len(), listing.tools.len(), "{name}");
        for (tool, sent) in part.tools.iter().zip(&listing.tools) {
            let mut expected = sent.clone();
            // What the protocol leaves unsaid is filled in, at the end, and nothing else.
            if expected["inputSchema"].get("type").is_none() {
                expected["inputSchema"]["type"] = json!("object");
            }
            // Text, so that the order of keys counts too.
            assert_eq!(tool.definition().to_string(), expected.to_string(), "{}", tool.id());
        }
    }
}

#[test]
fn all_lists_together_keep_to_the_budget() {
    let parts: Vec<_> = captured()
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            external_part(&name, &ExternalSettings::default(), &listing(path))
        })
        .collect();
    let catalogue = Catalogue::merge(&parts);
    let view = Scope::default().view(&catalogue);
    println!(
        "{} tools on {} servers: {} tokens of schemas",
        catalogue.tools().len(),
        catalogue.servers().len(),
        catalogue.schema_tokens()
    );
    for percent in [0.05, 0.5, 1.5, 6.0, 100.0] {
        let config =
            ProgressiveConfig { inventory_threshold_percent: percent, ..ProgressiveConfig::default() };
        let injection = inject::inject(&view, &config).unwrap();
        println!(
            "{percent} % of 100 000: {} tokens, {:?}",
            injection.prompt_tokens, injection.inventory.detail
        );
        assert!(injection.prompt_tokens <= injection.inventory_budget_tokens, "{percent}");
        assert!(!injection.prompt.chars().any(|c| c != '\n' && aster_runtime::text::is_unsafe(c)));
    }
}
