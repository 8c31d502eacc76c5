//! Real tool lists, captured from MCP servers: every valid tool and every field of it is in the catalogue.
//!
//! A few small ones are committed under `tests/data/tools`; `ASTER_CAPTURED_TOOLS` names a folder with more. With
//! `--nocapture` the tests print what the lists cost a model.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![expect(clippy::print_stdout, reason = "the figures are to be read")]

mod common;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, external_part};
use aster_runtime::dispatch::DispatchError;
use aster_runtime::scan::scan;
use aster_runtime::serve::{self, Shape};
use aster_runtime::{Catalogue, Host, Profile, ProgressiveConfig, Scope, inject};
use common::Scripted;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

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
    let name = |path: &Path| path.file_stem().map(ToOwned::to_owned);
    files.sort_by_key(|path| name(path));
    files.dedup_by_key(|path| name(path));
    files
}

fn listing(path: &Path) -> Listing {
    let tools: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    Listing { tools, ..Listing::without_tools(Health::Ready) }
}

/// All of them as one catalogue.
fn catalogue() -> Catalogue {
    let parts: Vec<_> = captured()
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            external_part(&name, &ExternalSettings::default(), &listing(path))
        })
        .collect();
    Catalogue::merge(&parts)
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
    let catalogue = catalogue();
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

/// Well-known servers give a model no orders and hide nothing.
#[test]
fn a_scan_of_real_lists_finds_no_problem() {
    let (problems, notes): (Vec<_>, Vec<_>) =
        scan(&catalogue()).into_iter().partition(|finding| finding.kind.is_problem());
    notes.iter().for_each(|note| println!("{note}"));
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn direct_mode_offers_every_tool_as_it_was_captured() {
    let mut builder = Host::builder();
    let mut sent: Vec<Value> = Vec::new();
    for path in captured() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let listing = listing(&path);
        let part = external_part(&name, &ExternalSettings::default(), &listing);
        sent.extend(part.tools.iter().map(|tool| tool.definition().clone()));
        let server = Scripted::new(name, |_, _| Err(DispatchError::Cancelled));
        server.report(listing);
        builder = builder.with_upstream(Arc::new(server));
    }
    let host = builder.build().await.unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let stop = CancellationToken::new();
    let streams = tokio::io::split(theirs);
    let served = tokio::spawn(serve::over(streams, host, Profile::new("test"), Shape::Direct, stop));
    let (output, mut input) = tokio::io::split(ours);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "new", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }}});
    input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let line = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
    drop(input);
    served.abort();

    let mut answer: Value = serde_json::from_str(&line).unwrap();
    // All real servers together need no second page.
    assert!(answer["result"].get("nextCursor").is_none());
    let offered: Vec<Value> = serde_json::from_value(answer["result"]["tools"].take()).unwrap();
    let names: HashSet<&str> = offered.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), sent.len());
    let cut = names.iter().filter(|name| name.len() == 64).count();
    println!("direct mode lists {} tools in {} bytes, {cut} names of 64 characters", names.len(), line.len());
    let nameless = |tool: &Value| {
        let mut tool = tool.clone();
        tool["name"] = Value::Null;
        tool.to_string()
    };
    let mut offered: Vec<String> = offered.iter().map(nameless).collect();
    let mut sent: Vec<String> = sent.iter().map(nameless).collect();
    offered.sort_unstable();
    sent.sort_unstable();
    assert_eq!(offered, sent);
}
