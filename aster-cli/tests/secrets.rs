//! No secret is shown by the real command: not on standard output, not on standard error however much is logged, and not in
//! any file that it keeps. The server that it serves puts secrets wherever a server can.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[expect(dead_code, reason = "these tests have one configuration, and no project's")]
mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use common::Sandbox;
use serde_json::{Value, json};

/// What the server is given in its environment.
const CONFIGURED: &str = "hunter2-and-more";

/// The same in base64, hexadecimal and a URL.
const ENCODED: [&str; 3] =
    ["aHVudGVyMi1hbmQtbW9yZQ", "68756e746572322d616e642d6d6f7265", "hunter2%2Dand%2Dmore"];

/// What the server has from elsewhere; in no source, or a scan of sources would find it.
fn token() -> String {
    format!("ghp_{}", "Zk3Rj8Qm1Tz7Lw5Xv9BnC4Hd6Fg2Ks0PqAbY")
}

/// A server that says its secrets in its instructions, its list, its log, its errors and its results, and beside them. Its
/// argument is a file with a secret that no configuration knows.
const PEER: &str = r#"
token=$(cat "$1")
echo "starting with $PEER_TOKEN and $token" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  echo "heard $PEER_TOKEN $token" >&2
  echo "no message, but $PEER_TOKEN $token"
  log='{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"say":"PAIR","'"$PEER_TOKEN"'":1}}}'
  answer='"result":{}'
  case $line in
    *'"method":"initialize"'*)
      answer='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"instructions":"I use PAIR.","serverInfo":{"name":"peer PAIR","version":"PAIR"}}' ;;
    *'"method":"tools/list"'*)
      answer='"result":{"tools":[
        {"name":"say","title":"PAIR","description":"Says PAIR.","inputSchema":{"type":"object","properties":{"text":{"type":"string","default":"PAIR"}}},"annotations":{"title":"PAIR"},"_meta":{"vendor":"PAIR"}},
        {"name":"fail","description":"Fails.","inputSchema":{"type":"object"}},
        {"name":"break","description":"Breaks.","inputSchema":{"type":"object"}},
        {"name":"die","description":"Dies.","inputSchema":{"type":"object"}},
        {"name":"PAIR","description":"Is called so.","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"say"'*)
      answer='"result":{"content":[{"type":"text","text":"PAIR"},{"type":"resource","resource":{"uri":"x://PAIR","text":"PAIR"}}],"structuredContent":{"PAIR":["PAIR"]},"_meta":{"x":"PAIR"}}' ;;
    *'"name":"fail"'*) answer='"result":{"isError":true,"content":[{"type":"text","text":"not with PAIR"}]}' ;;
    *'"name":"break"'*) answer='"error":{"code":-32000,"message":"PAIR","data":{"why":"PAIR"}}' ;;
    *'"name":"die"'*) echo "dying of $PEER_TOKEN $token" >&2; exit 3 ;;
  esac
  printf '%s\n{"jsonrpc":"2.0","id":%s,%s}' "$log" "$id" "$answer" | sed "s/PAIR/$PEER_TOKEN $token/g" | tr -s '\n' ' ' | sed 's/ {"jsonrpc":"2.0","id"/\n&/'
  echo
done
"#;

/// How much can be logged: of ours alone, and of everything.
const LOGS: [&str; 2] = ["trace", "trace,rmcp=trace"];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("peer.sh", PEER);
    sandbox.write("token", &token());
    let (script, file) = (sandbox.path("peer.sh"), sandbox.path("token"));
    sandbox.user(&format!(
        "mcp:\n  servers:\n    peer: {{command: sh, args: ['{}', '{}'], env: {{PEER_TOKEN: {CONFIGURED}}}}}\n",
        script.display(),
        file.display()
    ));
    sandbox
}

#[track_caller]
fn has_none(text: &str, of: &str) {
    for secret in [CONFIGURED, &token()].into_iter().chain(ENCODED) {
        let Some(at) = text.find(secret) else { continue };
        let before = text[..at].chars().rev().take(300).collect::<Vec<_>>().into_iter().rev();
        panic!("{of} has `{secret}` after: {}", before.collect::<String>());
    }
}

/// All files below a folder, as one text.
fn files(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        text.push_str(&format!("\n{}\n", entry.path().display()));
        text.push_str(&match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path()),
            false => String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()).into_owned(),
        });
    }
    text
}

/// Serves a client that asks for all of this, one after the other; what the client and the log were told.
fn served(sandbox: &Sandbox, mode: &str, log: &str, requests: &[(&str, Value)]) -> (Vec<Value>, String) {
    let mut command = sandbox.command();
    command.args(["mcp", "serve", "--mode", mode]).env("ASTER_LOG", log);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let mut line = Vec::new();
        while errors.read_until(b'\n', &mut line).unwrap() > 0 {
            text.push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
        text
    });
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = Vec::new();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let all = [("initialize", hello), ("notifications/initialized", json!({}))];
    for (id, (method, params)) in all.iter().chain(requests).enumerate() {
        let mut message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        if !method.starts_with("notifications/") {
            message["id"] = json!(id);
        }
        writeln!(input, "{message}").unwrap();
        while message.get("id").is_some() {
            let said: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            let answers = said["id"] == message["id"];
            told.push(said);
            if answers {
                break;
            }
        }
    }
    drop(input);
    told.extend(lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()));
    child.wait().unwrap();
    (told, errors.join().unwrap())
}

#[test]
fn nothing_that_is_served_logged_or_kept_has_a_secret() {
    for log in LOGS {
        for mode in ["bridge", "direct"] {
            let sandbox = sandbox();
            let call = |tool: &str, arguments: Value| {
                let params = match mode {
                    "bridge" => {
                        let arguments = json!({"action": "execute", "name": format!("peer/{tool}"), "arguments": arguments});
                        json!({"name": "aster_mcp", "arguments": arguments})
                    }
                    _ => json!({"name": format!("peer__{tool}"), "arguments": arguments}),
                };
                ("tools/call", params)
            };
            let bridge =
                |arguments: Value| ("tools/call", json!({"name": "aster_mcp", "arguments": arguments}));
            let requests = [
                ("tools/list", json!({})),
                bridge(json!({"action": "search", "query": "says"})),
                bridge(json!({"action": "describe", "name": "peer/say"})),
                call("say", json!({})),
                call("fail", json!({})),
                call("break", json!({})),
                call("say", json!({ "text": CONFIGURED })),
                call("say", json!({ "text": token() })),
                call("say", json!({"text": {"deep": [ENCODED[0], ENCODED[1], ENCODED[2]]}})),
                call("say", json!({ CONFIGURED: 1 })),
                call(CONFIGURED, json!({})),
                // A format begins where a word does, and so not after `peer__`.
                ("tools/call", json!({"name": token(), "arguments": {"text": CONFIGURED}})),
                call("die", json!({})),
                call("say", json!({})),
            ];
            let (told, log) = served(&sandbox, mode, log, &requests);
            let answers = Value::Array(told).to_string();
            has_none(&answers, "an answer");
            has_none(&log, "the log");
            has_none(&files(&sandbox.path("state")), "a file");
            // All that was there to be hidden: the test would see nothing if it were never said.
            assert!(answers.matches("[redacted]").count() > 5, "{answers}");
            assert!(answers.contains("Nothing was called"), "{answers}");
            for said in ["starting with [redacted]", "no message, but [redacted]", "log message"] {
                assert!(log.contains(said), "{said}: {log}");
            }
            let kept = files(&sandbox.path("state"));
            assert!(kept.contains("not with [redacted]") && kept.contains("Says [redacted]"), "{kept}");
        }
    }
}

#[test]
fn no_command_shows_a_secret() {
    let sandbox = sandbox();
    let token = token();
    let with = format!("text={CONFIGURED}");
    for arguments in [
        &["mcp", "list", "--tools"][..],
        &["mcp", "describe", "peer/say"],
        &["mcp", "search", "says"],
        &["mcp", "scan"],
        &["mcp", "call", "peer/say"],
        &["mcp", "call", "peer/fail"],
        &["mcp", "call", "peer/break"],
        &["mcp", "call", "peer/die"],
        &["mcp", "call", "peer/say", "--arg", &with],
        &["mcp", "call", &format!("peer/{token}")],
        &["policy", "test", "peer/say", "--arg", &with],
        &["check"],
        &["audit", "query"],
        &["audit", "tail"],
        &["stats"],
    ] {
        for json in [false, true] {
            let mut command = sandbox.command();
            command.args(arguments).args(json.then_some("--json")).env("ASTER_LOG", "trace,rmcp=trace");
            let output = command.stdin(Stdio::null()).output().unwrap();
            has_none(&String::from_utf8_lossy(&output.stdout), &format!("the output of {arguments:?}"));
            // A name that is typed is repeated to whoever typed it.
            let told = String::from_utf8_lossy(&output.stderr);
            has_none(&told, &format!("the log of {arguments:?}"));
        }
    }
    has_none(&files(&sandbox.path("state")), "a file");
}
