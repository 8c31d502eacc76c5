//! Which tools the egress governs, derived from their schemas: a tool that takes a URL cannot be forgotten.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use aster_runtime::call::Check;
use aster_runtime::catalogue::{ExternalSettings, Health, Listing, Tool, external_part};
use aster_runtime::gate::egress::EgressPolicy;
use aster_runtime::{CallOptions, Host, Profile, ToolResult, catalogue, mcp_tool};
use common::Scripted;
use serde_json::{Map, Value, json};

/// Nobody's tools may lead there.
const METADATA: &str = "http://169.254.169.254/latest/meta-data/";

/// The words that a reader takes for a URL or a host, looked for by other means than the gate's.
const TELLING: &[&str] =
    &["url", "uri", "href", "website", "endpoint", "webhook", "host", "hostname", "domain"];

/// The properties of a schema that take text and whose name or format says that it is a URL or a host, at any depth.
fn telling(schema: &Value, found: &mut Vec<String>) {
    let Some(fields) = schema.as_object() else {
        return schema.as_array().into_iter().flatten().for_each(|item| telling(item, found));
    };
    for (name, property) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let whole = property.to_string();
        let takes_text = whole.contains(r#""type":"string""#) || !whole.contains(r#""type""#);
        let format = ["uri", "uri-reference", "hostname", "ipv4", "ipv6"]
            .iter()
            .any(|format| property["format"] == *format || property["items"]["format"] == *format);
        let snake: String = name
            .chars()
            .flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()))
            .collect();
        let last = snake.rsplit(['_', '-', '.']).next().unwrap_or_default();
        let named = TELLING.iter().any(|word| last == *word || last == format!("{word}s"));
        if takes_text && (format || named) {
            found.push(name.clone());
        }
    }
    fields.values().for_each(|inner| telling(inner, found));
}

fn governs(tool: &Tool) -> Vec<String> {
    let mut names = Vec::new();
    telling(tool.input_schema(), &mut names);
    for name in &names {
        for arguments in [json!({ name: METADATA }), json!({"in": [{ name: ["x", METADATA] }]})] {
            let named = tool.governed().named(arguments.as_object().unwrap());
            assert!(named.iter().any(|named| named.text == METADATA), "{}: `{name}` is forgotten", tool.id());
        }
    }
    names
}

/// Every tool that this repository ships, and every one in its captured lists (`ASTER_CAPTURED_TOOLS` names more).
#[tokio::test]
async fn every_tool_with_a_url_is_governed() {
    let host = Host::builder().catalogue(aster_servers::CATALOGUE).build().await.unwrap();
    let native: Vec<String> = host
        .catalogue()
        .tools()
        .iter()
        .filter(|tool| !governs(tool).is_empty())
        .map(|tool| tool.id().to_string())
        .collect();
    assert!(native.contains(&"web/extract".to_owned()), "{native:?}");

    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools");
    let folders = [Some(committed), env::var_os("ASTER_CAPTURED_TOOLS").map(PathBuf::from)];
    let mut governed = 0;
    for folder in folders.into_iter().flatten() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let tools: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
            let part = external_part("x", &ExternalSettings::default(), &listing);
            governed += part.tools.iter().filter(|tool| !governs(tool).is_empty()).count();
        }
    }
    assert!(governed > 0);
}

/// And every one of them is refused by the gate itself.
#[tokio::test]
async fn the_gate_refuses_what_they_would_lead_to() {
    let host = Host::builder().catalogue(aster_servers::CATALOGUE).build().await.unwrap();
    let session = host.session(Profile::new("tester")).unwrap();
    for tool in host.catalogue().tools() {
        for name in governs(tool) {
            let arguments = json!({ &name: METADATA }).as_object().unwrap().clone();
            let ended = session.execute(tool.id().as_str(), arguments, CallOptions::default()).await;
            assert_eq!(
                ended.denied,
                Some(Check::Egress),
                "{}: `{name}`: {}",
                tool.id(),
                ended.result.to_text()
            );
        }
    }
}

/// Looks at something.
#[mcp_tool(tier = Standard, server = "native", open_world)]
fn look(
    /// Where.
    place: String,
    /// What to note.
    note: Option<String>,
) -> String {
    format!("{place}{}", note.unwrap_or_default())
}

fn browser(settings: ExternalSettings) -> Arc<Scripted> {
    let tools = vec![
        json!({"name": "go", "annotations": {"openWorldHint": true}}),
        json!({"name": "keep", "inputSchema": {"type": "object", "properties": {
            "url": {"type": "string"}, "target": {"type": "string"}, "text": {"type": "string"},
            "database": {"type": "object", "properties": {"host": {"type": "string"}, "port": {"type": "integer"}}},
            "pages": {"type": "array", "items": {"type": "string", "format": "uri"}},
        }}}),
    ];
    Scripted::new("browser", |_, _| Ok(ToolResult::text("done"))).with_settings(settings).ready(tools)
}

#[tokio::test]
async fn external_tools_open_world_tools_and_agents_have_their_limits() {
    let settings = ExternalSettings {
        url_arguments: vec!["target".into()],
        free_arguments: vec!["link".into()],
        ..ExternalSettings::default()
    };
    let policy =
        EgressPolicy::default().allow_private(["localhost:5432"]).unwrap().deny(["*.evil.example"]).unwrap();
    let host = Host::builder()
        .catalogue(catalogue![look::TOOL])
        .with_upstream(browser(settings))
        .egress(policy)
        .build()
        .await
        .unwrap();
    let any = host.session(Profile::new("any")).unwrap();
    let limits = EgressPolicy::default().allow(["*.example.com"]).unwrap();
    let reader = host.session(Profile::new("reader").egress(limits)).unwrap();
    // The tool, its arguments, whether any agent may call it so, and whether one may that has limits of its own.
    let table: &[(&str, Value, bool, bool)] = &[
        ("browser/keep", json!({"url": "https://docs.example.com:8443/"}), true, true),
        ("browser/keep", json!({"url": "https://example.org/"}), true, false),
        ("browser/keep", json!({"url": "https://x.evil.example/"}), false, false),
        ("browser/keep", json!({"url": METADATA}), false, false),
        ("browser/keep", json!({"url": "localhost:3000"}), false, false),
        ("browser/keep", json!({"url": "file:///home/someone/a.md"}), true, true),
        ("browser/keep", json!({"target": METADATA}), false, false),
        ("browser/keep", json!({"link": METADATA}), true, true),
        ("browser/keep", json!({"pages": ["https://docs.example.com/", METADATA]}), false, false),
        ("browser/keep", json!({"database": {"host": "localhost", "port": 5432}}), true, false),
        ("browser/keep", json!({"database": {"host": "localhost", "port": 22}}), false, false),
        ("browser/keep", json!({"text": METADATA}), true, true),
        ("browser/keep", json!({"text": "see http://localhost/ for more"}), true, true),
        ("browser/go", json!({"place": METADATA}), false, false),
        ("browser/go", json!({"deep": [{"place": METADATA}]}), false, false),
        ("browser/go", json!({"place": "see http://localhost/ for more"}), true, true),
        ("native/look", json!({"place": METADATA}), false, false),
        ("native/look", json!({"place": "here", "note": "http://localhost/"}), false, false),
        ("native/look", json!({"place": "here", "note": "about http://localhost/"}), true, true),
    ];
    for (tool, arguments, any_may, reader_may) in table {
        for (session, may) in [(&any, any_may), (&reader, reader_may)] {
            let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
            let ended = session.execute(tool, arguments.clone(), CallOptions::default()).await;
            let denied = (!may).then_some(Check::Egress);
            assert_eq!(ended.denied, denied, "{tool} {arguments:?}: {}", ended.result.to_text());
        }
    }
    let ended = any
        .execute(
            "browser/keep",
            json!({"a": {"url": METADATA}}).as_object().unwrap().clone(),
            CallOptions::default(),
        )
        .await;
    let told = ended.result.to_text();
    assert!(told.starts_with("argument `/a/url`: 169.254.169.254:80 is refused"), "{told}");
}
