//! Reading `permissions.yaml` and deciding calls by it: no text makes it panic, a project's file loosens nothing, and the
//! order of rules decides nothing.
//!
//! The input has three parts, parted by lines of `---`: the user's file, the project's, and arguments as JSON.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use aster_runtime::catalogue::{ExternalSettings, Health, Listing, Tool, external_part};
use aster_runtime::config::rules::RuleFiles;
use aster_runtime::gate::rules::{Caller, Facts, Landscape, Requirement, Rules, lint};
use aster_runtime::gate::secrets::Outgoing;
use aster_runtime::Tier;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// A tool of every tier, and one that is Restricted by its own word alone.
static TOOLS: LazyLock<Vec<Arc<Tool>>> = LazyLock::new(|| {
    let tool = |server: &str, tier, annotations: Value| {
        let settings = ExternalSettings { tier, ..ExternalSettings::default() };
        let tools = vec![json!({"name": "write", "annotations": annotations})];
        let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
        external_part(server, &settings, &listing).tools[0].clone()
    };
    vec![
        tool("notes", Some(Tier::Standard), json!({"readOnlyHint": true})),
        tool("files", None, json!({})),
        tool("shell", None, json!({"destructiveHint": true})),
        tool("bank", Some(Tier::Restricted), json!({})),
    ]
});

static FILES: LazyLock<RuleFiles> = LazyLock::new(|| RuleFiles::beside(None, Some(Path::new("/project"))));

const CALLERS: [Caller<'_>; 2] =
    [Caller { agent: "coder", team: Some("blue") }, Caller { agent: "client", team: None }];

fn as_written(path: &Path) -> Option<PathBuf> {
    Some(path.to_owned())
}

/// How little a call may do.
fn strictness(requirement: &Requirement) -> u8 {
    match requirement {
        Requirement::Run => 0,
        Requirement::Ask(_) => 1,
        Requirement::Deny(_) => 2,
    }
}

/// The same rules, the last first.
fn reversed(rules: &Rules) -> Rules {
    let mut reversed = Rules::new(rules.rules().iter().rev().cloned());
    if let Some(place) = rules.default_ask() {
        reversed = reversed.ask_by_default(place);
    }
    rules.why_unreadable().iter().fold(reversed, Rules::unreadable)
}

fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, "\n---\n");
    let user = parts.next().unwrap_or_default().as_bytes();
    let project = parts.next().unwrap_or_default().as_bytes();
    let arguments = parts.next().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();

    let alone = FILES.would_read(Some(user), None).rules;
    let both = FILES.would_read(Some(user), Some(project)).rules;
    let _ = lint(&both, &Landscape::default().external("files").external("shell"));
    let other_way = reversed(&both);
    for tool in &*TOOLS {
        for caller in CALLERS {
            let facts = Facts { caller, tool, arguments: &arguments, directory: None, real: &as_written };
            let (before, after) = (alone.decide(&facts), both.decide(&facts));
            assert!(strictness(&before.requirement) <= strictness(&after.requirement), "{before:?} {after:?}");
            assert!(alone.hiding(caller, tool).is_none() || both.hiding(caller, tool).is_some());
            for all in [Outgoing::Allow, Outgoing::Redact, Outgoing::Block] {
                let outgoing = |rules: &Rules| rules.outgoing(&facts).unwrap_or(all);
                assert!(outgoing(&alone) <= outgoing(&both), "{all:?}");
            }

            let other = other_way.decide(&facts);
            assert_eq!(strictness(&after.requirement), strictness(&other.requirement));
            let sorted = |mut places: Vec<Arc<str>>| {
                places.sort();
                places
            };
            assert_eq!(sorted(after.asking), sorted(other.asking));
            assert_eq!(both.outgoing(&facts), other_way.outgoing(&facts));
            assert_eq!(both.hiding(caller, tool).is_some(), other_way.hiding(caller, tool).is_some());
        }
    }
});
