//! Lists of tools: made up in the likeness of real ones, and real ones where there are some.
#![allow(dead_code, reason = "not every bench uses all of it")]

use std::path::{Path, PathBuf};

use aster_runtime::catalogue::{Health, Listing};
use serde_json::{Map, Value, json};

/// How many tools a made-up server has. Of 37 real ones the mean is 27.
const TOOLS: usize = 25;

const VERBS: [&str; 10] =
    ["list", "get", "create", "update", "delete", "search", "move", "archive", "export", "share"];
const NOUNS: [&str; 20] = [
    "issue",
    "page",
    "table",
    "record",
    "file",
    "folder",
    "branch",
    "event",
    "message",
    "channel",
    "invoice",
    "customer",
    "report",
    "cluster",
    "pipeline",
    "document",
    "task",
    "board",
    "comment",
    "dashboard",
];
const KINDS: [&str; 5] = ["", "_by_id", "_in_batch", "_history", "_settings"];
const ARGUMENTS: [(&str, &str); 10] = [
    ("id", "The identifier, as an earlier answer gave it."),
    ("query", "What to look for, in plain words; empty for everything."),
    ("limit", "How many to return at most."),
    ("labels", "Only those that have all of these labels."),
    ("order", "In which order they are returned."),
    ("dry_run", "Whether to say only what would be done."),
    ("owner", "The account or organisation that it belongs to. The name is not case-sensitive."),
    ("since", "Only what has changed since then, in ISO 8601, for example 2026-01-31T12:00:00Z."),
    ("filter", "What else must hold, as an object of fields and values."),
    ("cursor", "Where the last answer ended, to go on from there."),
];

/// `count` tools on as many servers as they need, the same ones each time.
pub(crate) fn made_up(count: usize) -> Vec<(String, Listing)> {
    let servers = count.div_ceil(TOOLS);
    let server = |at: usize| {
        let tools = (at * TOOLS..count.min((at + 1) * TOOLS)).map(tool).collect();
        let mut listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
        listing.title = Some(format!("{} server", NOUNS[at % NOUNS.len()]));
        (format!("server-{at}"), listing)
    };
    (0..servers).map(server).collect()
}

fn tool(at: usize) -> Value {
    let (verb, noun) = (VERBS[at % VERBS.len()], NOUNS[at / VERBS.len() % NOUNS.len()]);
    let kind = KINDS[at / VERBS.len() / NOUNS.len() % KINDS.len()];
    let arguments = (0..1 + at * 7 % 8).map(|argument| ARGUMENTS[(at + argument * 3) % ARGUMENTS.len()]);
    let properties: Map<String, Value> =
        arguments.map(|(name, description)| (name.to_owned(), property(name, description))).collect();
    let required: Vec<&String> = properties.keys().take(2).collect();
    json!({
        "name": format!("{verb}_{noun}{kind}"),
        "title": format!("{verb} {noun}"),
        "description": format!(
            "Use this to {verb} the {noun} of a project that the account can see. It returns the {noun} with its \
             identifier, its owner and the time of its last change. Where there is none it says so, and it never \
             changes any other {noun}."
        ),
        "inputSchema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false},
        "annotations": {"readOnlyHint": at % VERBS.len() < 2},
    })
}

fn property(name: &str, description: &str) -> Value {
    let mut property = match name {
        "limit" => json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 20}),
        "labels" => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
        "order" => json!({"type": "string", "enum": ["created", "updated", "name"], "default": "created"}),
        "dry_run" => json!({"type": "boolean", "default": false}),
        "filter" => json!({"type": "object", "properties": {
            "status": {"type": "string", "enum": ["open", "closed"]},
            "assignee": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        }}),
        _ => json!({"type": "string"}),
    };
    property["description"] = json!(description);
    property
}

/// The lists in the folder that `ASTER_CAPTURED_TOOLS` names, one JSON array of tools a file, the file called like the
/// server.
pub(crate) fn captured() -> Option<Vec<(String, Listing)>> {
    Some(lists(Path::new(&std::env::var_os("ASTER_CAPTURED_TOOLS")?)))
}

/// The few that are committed.
pub(crate) fn committed() -> Vec<(String, Listing)> {
    lists(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools"))
}

fn lists(folder: &Path) -> Vec<(String, Listing)> {
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let list = |file: &PathBuf| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let tools = serde_json::from_slice(&std::fs::read(file).expect("readable")).expect("a list of tools");
        (name, Listing { tools, ..Listing::without_tools(Health::Ready) })
    };
    files.iter().map(list).collect()
}
