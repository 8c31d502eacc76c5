//! Five real servers, from npm and PyPI, behind one bridge: three eras of the protocol and two languages.
//!
//! `tests/peers/install.sh` installs them and prints the variable `ASTER_PEERS`; without it there is nothing to test.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aster_runtime::catalogue::Health;
use aster_runtime::dispatch::Upstream;
use aster_runtime::upstream::{StdioServer, StdioUpstream};
use aster_runtime::{Host, Profile};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// Each server with its version of the protocol and its number of tools.
const EXPECTED: [(&str, &str, usize); 5] = [
    ("everything", "2025-11-25", 13),
    ("files", "2025-11-25", 14),
    ("gitlab", "2024-11-05", 9),
    ("memory", "2025-11-25", 9),
    ("time", "2026-07-28", 2),
];

/// The servers; GitLab's is told that GitLab is at this address.
fn servers(peers: &Path, scratch: &Path, gitlab: &str) -> Vec<StdioServer> {
    let npm = |name: &str, package: &str| {
        let program = peers.join("node_modules/.bin").join(package);
        StdioServer::new(name, program.display().to_string())
    };
    vec![
        npm("everything", "mcp-server-everything").args(["stdio"]),
        npm("files", "mcp-server-filesystem").args([scratch.display().to_string()]),
        npm("gitlab", "mcp-server-gitlab")
            .env("GITLAB_PERSONAL_ACCESS_TOKEN", "no-such-token")
            .env("GITLAB_API_URL", gitlab),
        npm("memory", "mcp-server-memory")
            .env("MEMORY_FILE_PATH", scratch.join("memory").display().to_string()),
        StdioServer::new("time", peers.join("venv/bin/mcp-server-time").display().to_string()),
    ]
}

#[tokio::test]
async fn five_real_servers_behind_one_bridge() {
    let Some(peers) = std::env::var_os("ASTER_PEERS") else {
        writeln!(std::io::stderr(), "skipped: ASTER_PEERS is not set; run tests/peers/install.sh")
            .expect("written");
        return;
    };
    let scratch = tempfile::tempdir().expect("a directory");
    std::fs::write(scratch.path().join("note.txt"), "remember the milk").expect("written");
    let gitlab = MockServer::start().await;
    Mock::given(method("GET"))
        .and(path("/projects"))
        .and(query_param("search", "aster"))
        .and(header("Authorization", "Bearer no-such-token"))
        .respond_with(ResponseTemplate::new(200).insert_header("X-Total", "0").set_body_json(json!([])))
        .expect(1)
        .mount(&gitlab)
        .await;
    let upstreams: Vec<_> = servers(Path::new(&peers), scratch.path(), &gitlab.uri())
        .into_iter()
        .map(StdioUpstream::spawn)
        .collect();

    let mut builder = Host::builder();
    for upstream in &upstreams {
        builder = builder.with_upstream(Arc::clone(upstream) as Arc<dyn Upstream>);
    }
    let host = builder.build().await.expect("a host");
    assert!(host.settle(Duration::from_secs(120)).await, "all have started or failed");

    let catalogue = host.catalogue();
    for (server, (name, protocol, tools)) in catalogue.servers().iter().zip(EXPECTED) {
        assert_eq!((server.name.as_str(), &server.health), (name, &Health::Ready));
        assert_eq!((server.protocol.as_deref(), server.tools), (Some(protocol), tools), "{name}");
    }
    assert_eq!(catalogue.servers().len(), EXPECTED.len());
    assert!(catalogue.problems().is_empty(), "{:?}", catalogue.problems());

    // What the bridge offers and finds.
    let session = host.session(Profile::new("test")).expect("a session");
    let injection = session.injection().expect("there are tools");
    assert!(injection.manifest_tokens > 0 && injection.prompt.contains("everything"));
    let found =
        session.call(&json!({"action": "search", "query": "current time in a timezone"})).await.to_text();
    assert!(found.contains("time/get_current_time"), "{found}");
    let described =
        session.call(&json!({"action": "describe", "name": "files/read_text_file"})).await.to_text();
    assert!(described.contains("path"), "{described}");

    // A call to each, all at once.
    let note = scratch.path().join("note.txt").display().to_string();
    let execute = async |name: &str, arguments: Value| {
        let result = session.call(&json!({"action": "execute", "name": name, "arguments": arguments})).await;
        assert!(!result.is_error(), "{name}: {}", result.to_text());
        result.to_text()
    };
    let (echo, text, projects, time, graph) = tokio::join!(
        execute("everything/echo", json!({"message": "hello"})),
        execute("files/read_text_file", json!({"path": note})),
        execute("gitlab/search_repositories", json!({"search": "aster"})),
        execute("time/get_current_time", json!({"timezone": "UTC"})),
        execute("memory/read_graph", json!({})),
    );
    assert_eq!((echo.as_str(), text.as_str()), ("Echo: hello", "remember the milk"));
    assert!(projects.contains("\"items\": []"), "{projects}");
    assert!(time.contains("UTC"), "{time}");
    assert!(graph.contains("entities"), "{graph}");

    tokio::time::timeout(Duration::from_secs(30), host.close()).await.expect("all end in time");
}
