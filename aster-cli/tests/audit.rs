//! `aster audit` and `aster stats`, with the real binary, over files and databases.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;
#[path = "../../aster-runtime/tests/common/postgres.rs"]
mod server;

use std::fs;

use common::{Outcome, Sandbox, exists};
use insta::assert_snapshot;
use serde_json::{Value, json};
use server::{PASSWORD, Postgres};

/// A sandbox with a server `peer`, whose `echo` is Standard and `wipe` Restricted, and this in the section `audit`.
fn sandbox(audit: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let peer = sandbox.peer(", tiers: {echo: standard}");
    sandbox.user(&format!("mcp: {{servers: {{peer: {peer}}}}}\naudit: {{{audit}}}\n"));
    sandbox
}

/// A search that finds nothing, a call, and a refused call.
fn use_it(sandbox: &Sandbox) {
    sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=hello"]).expect(0);
    sandbox.run(&["mcp", "call", "peer/wipe", "{}"]).expect(4);
}

fn records(outcome: &Outcome) -> Vec<Value> {
    outcome.json()["records"].as_array().unwrap().clone()
}

/// What must hold wherever the audit is.
fn holds(sandbox: &Sandbox) {
    use_it(sandbox);
    let told = sandbox.run(&["audit", "query", "--json"]).expect(0);
    let all = records(&told);
    let what: Vec<_> =
        all.iter().map(|record| [&record["stage"], &record["tool"], &record["outcome"]]).collect();
    assert_eq!(
        json!(what),
        json!([
            ["intent", "peer/echo", null],
            ["outcome", "peer/echo", "ok"],
            ["outcome", "peer/wipe", "denied"]
        ])
    );
    let one = |arguments: &[&str]| {
        records(&sandbox.run(&[&["audit"][..], arguments, &["--json"]].concat()).expect(0))
    };
    assert_eq!(one(&["query", "--outcome", "denied"]), all[2..]);
    assert_eq!(one(&["query", "--check", "approval"]), all[2..]);
    assert_eq!(one(&["query", "--check", "rule"]), all[..0]);
    assert_eq!(one(&["query", "--tier", "standard", "--stage", "outcome"]), all[1..2]);
    assert_eq!(one(&["query", "--tool", "*/ec*"]), all[..2]);
    assert_eq!(one(&["query", "--since", "1h", "--call", all[0]["call_id"].as_str().unwrap()]), all[..2]);
    assert_eq!(one(&["query", "--until", "2020-01-01T00:00:00Z"]), all[..0]);
    assert_eq!(one(&["tail", "-n", "1"]), all[2..]);

    let exported = sandbox.run(&["audit", "export"]).expect(0).stdout;
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, all);
    sandbox.write("export.jsonl", &exported);
    let path = sandbox.path("export.jsonl");
    sandbox.run(&["audit", "verify", "--path", path.to_str().unwrap()]).expect(0);

    let verified = sandbox.run(&["audit", "verify", "--json"]).expect(0);
    assert_eq!(verified.json()["findings"], json!([]));
    assert_eq!(verified.json()["chains"][0]["last"], 3);
    sandbox.write("before.json", &verified.stdout);
    use_it(sandbox);
    let before = sandbox.path("before.json");
    let verified = sandbox.run(&["audit", "verify", "--against", before.to_str().unwrap()]).expect(0);
    assert!(
        verified.stdout.contains("intact: 6 records, 4 calls, of which 0 without an outcome"),
        "{verified}"
    );

    let stats = sandbox.run(&["stats", "--json"]).expect(0).json();
    assert_eq!(stats["outcomes"], json!({"ok": 2, "denied": 2}));
    assert_eq!(stats["denials"], json!({"approval": 2}));
    let exposition = sandbox.run(&["stats", "--prometheus"]).expect(0).stdout;
    assert!(exposition.contains("aster_calls_total{server=\"peer\",outcome=\"ok\"} 2\n"), "{exposition}");
}

/// A call that a rule refuses is recorded with the rule's place.
fn names_the_rule(sandbox: &Sandbox) {
    sandbox.write(
        "config/aster/permissions.yaml",
        "rules:\n  - {action: deny, tool: peer/echo, arguments: {/text: {regex: hello}}}\n",
    );
    sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=hello"]).expect(4);
    let found = records(&sandbox.run(&["audit", "query", "--check", "rule", "--json"]).expect(0));
    let [record] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(record["by"], json!({"rule": "[ROOT]/config/aster/permissions.yaml:2"}));
    assert!(!record["error"].as_str().unwrap().contains("permissions.yaml"), "{record}");
    let shown = sandbox.run(&["audit", "tail", "-n", "1"]).expect(0).stdout;
    assert!(shown.contains("denied (rule: the rule at [ROOT]/config/aster/permissions.yaml:2)"), "{shown}");
}

#[test]
fn json_lines() {
    let sandbox = sandbox("path: kept/audit.jsonl, segment_mib: 1, keep_segments: 3");
    holds(&sandbox);
    let path = sandbox.path("config/aster/kept/audit.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("peer/wipe", "peer/echo", 1)).unwrap();
    let told = sandbox.run(&["audit", "verify"]).expect(6);
    assert!(
        told.stdout.contains("problem: audit.jsonl: record 3 is not the one that was written\n"),
        "{told}"
    );
}

#[test]
fn sqlite() {
    let sandbox = sandbox("sqlite: kept/audit.db");
    assert_snapshot!(sandbox.run(&["audit", "tail"]).expect(0).stdout, @"no records");
    holds(&sandbox);
    names_the_rule(&sandbox);
}

#[test]
fn postgres() {
    let Some(server) = Postgres::start() else { return };
    let url = server.url();
    let sandbox = sandbox(&format!("postgres: '{url}'"));
    assert_snapshot!(sandbox.run(&["audit", "tail"]).expect(0).stdout, @"no records");
    holds(&sandbox);

    // Several chains, as of several processes, are one audit by the time of its records.
    let all = records(&sandbox.run(&["audit", "query", "--json"]).expect(0));
    server.query("UPDATE aster_audit SET chain = 1 WHERE sequence % 3 = 0");
    assert_eq!(records(&sandbox.run(&["audit", "query", "--json"]).expect(0)), all);
    assert_eq!(records(&sandbox.run(&["audit", "tail", "-n", "2", "--json"]).expect(0)), all[4..]);
    let denied = sandbox.run(&["audit", "query", "--outcome", "denied", "--json"]).expect(0);
    assert_eq!(records(&denied), [all[2].clone(), all[5].clone()]);
    let shown = sandbox.run(&["audit", "query"]).expect(0).stdout;
    assert!(shown.contains("denied (approval)") && !shown.contains(PASSWORD), "{shown}");
    // The chain says that they do not belong there.
    sandbox.run(&["audit", "verify"]).expect(6);

    let rows = server.query("SELECT record FROM aster_audit");
    assert!(!rows.contains(PASSWORD), "{rows}");
    server.crash();
    let told = sandbox.run(&["mcp", "call", "peer/echo", "--arg", "text=hello"]).expect(0);
    assert!(told.stderr.contains("only standard tools can be called"), "{told}");
    assert!(!told.stderr.contains(PASSWORD), "{told}");
}

#[test]
fn people_see_what_was_called() {
    let sandbox = sandbox("path: audit.jsonl");
    use_it(&sandbox);
    let shown = sandbox.run(&["audit", "tail"]).expect(0).stdout;
    let without_time: Vec<&str> = shown.lines().map(|line| line.get(22..).unwrap_or(line)).collect();
    let text = without_time.join("\n");
    for part in ["peer/echo", "called", "ok", "denied (approval)"] {
        assert!(text.contains(part), "{shown}");
    }
    let stats = sandbox.run(&["stats"]).expect(0).stdout;
    let last = stats.lines().rev().take(2).collect::<Vec<_>>();
    assert_snapshot!(format!("{}\n{}", last[1], last[0]), @r"
    2 calls, 1 denied (1 by approval)
    0 searches, 0 of them empty, 0 with a tool described after them; 0 tools described, 0 of them executed then
    ");
    names_the_rule(&sandbox);
}

/// Also of records that were written before they said by whom.
#[test]
fn a_query_takes_the_records_that_fit_all_it_says() {
    let lines = [
        json!({"stage": "search", "agent": "a", "found": 2, "team": "red"}),
        json!({"stage": "describe", "agent": "b", "described": ["one/add", "two/sub"]}),
        json!({"stage": "intent", "agent": "a", "tool": "one/add", "tier": "standard", "group": "sums", "call_id": "1"}),
        json!({"stage": "outcome", "agent": "a", "tool": "one/add", "tier": "standard", "group": "sums", "call_id": "1",
            "outcome": "ok", "decision": {"admitted": "tier standard"}, "project": "/p"}),
        json!({"stage": "outcome", "agent": "b", "tool": "two/sub", "tier": "restricted", "group": "rest", "call_id": "2",
            "outcome": "denied", "decision": {"denied": "hook"}, "by": {"hook": "check"}, "team": "red"}),
        json!({"stage": "outcome", "agent": "b", "requested": "one/none", "call_id": "3", "outcome": "denied",
            "decision": {"denied": "scope"}, "project": "/p/q"}),
    ];
    let sandbox = Sandbox::new();
    let text: Vec<String> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let mut record = json!({"chain": 0, "segment": 1, "sequence": at + 1, "previous": null});
            let who = json!({"time": format!("2026-11-30T12:00:0{at}Z"), "session": "s"});
            for fields in [&who, line] {
                record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            }
            format!("{record}\n")
        })
        .collect();
    sandbox.write("kept.jsonl", &text.concat());
    let path = sandbox.path("kept.jsonl");
    let query = |said: &str, more: &[&str]| {
        let mut arguments = vec!["audit", "query", "--path", path.to_str().unwrap()];
        arguments.extend(said.split(' ').filter(|said| !said.is_empty()).chain(more.iter().copied()));
        sandbox.run(&arguments).expect(0)
    };
    for (said, found) in [
        ("", &[1, 2, 3, 4, 5, 6][..]),
        ("--check hook", &[5]),
        ("--check scope", &[6]),
        ("--check rule", &[]),
        ("--tier restricted", &[5]),
        ("--group sums", &[3, 4]),
        ("--stage search", &[1]),
        ("--stage outcome", &[4, 5, 6]),
        ("--server one", &[2, 3, 4]),
        ("--server on", &[]),
        ("--server two --stage outcome", &[5]),
        ("--team red", &[1, 5]),
        ("--team red --outcome denied", &[5]),
        ("--project /p", &[4]),
    ] {
        let told = records(&query(said, &["--json"]));
        let told: Vec<&Value> = told.iter().map(|record| &record["sequence"]).collect();
        assert_eq!(json!(told), json!(found), "{said}");
        let exported = format!("{said} --path {}", path.display());
        let arguments: Vec<&str> = ["audit", "export"]
            .into_iter()
            .chain(exported.split(' ').filter(|said| !said.is_empty()))
            .collect();
        assert_eq!(sandbox.run(&arguments).expect(0).stdout.lines().count(), found.len(), "{said}");
    }
    let shown = query("--outcome denied", &[]).stdout;
    assert!(shown.contains("denied (hook: the hook `check`)") && shown.contains("denied (scope)"), "{shown}");
}

#[test]
fn an_empty_audit_is_intact() {
    let sandbox = sandbox("path: none/audit.jsonl");
    assert_snapshot!(sandbox.run(&["audit", "tail"]).expect(0).stdout, @"no records");
    assert_snapshot!(sandbox.run(&["audit", "verify"]).expect(0).stdout, @"intact: 0 records, 0 calls, of which 0 without an outcome");
    let told = sandbox.run(&["audit", "query", "--since", "yesterday"]).expect(2);
    assert!(told.stderr.contains("`--since` cannot be `yesterday`"), "{told}");
}

#[test]
fn mistakes_in_the_section_are_named() {
    let sandbox = sandbox("path: a.jsonl, sqlite: b.db, postgres: 'mysql://x', segment_mib: 0, keep: 3");
    let told = sandbox.run(&["check"]).expect(3);
    let lines: Vec<&str> = told.stdout.lines().filter(|line| line.contains("audit")).collect();
    assert_snapshot!(lines.join("\n"), @r"
    problem: [ROOT]/config/aster/aster.yaml:2:32: `audit` has both `path` and `sqlite`
      help: keep one of them: the audit is written to one place
    problem: [ROOT]/config/aster/aster.yaml:2:48: `audit` has both `sqlite` and `postgres`
      help: keep one of them: the audit is written to one place
    problem: [ROOT]/config/aster/aster.yaml:2:74: `audit.segment_mib` is not a whole number from 1 to 1048576
    problem: [ROOT]/config/aster/aster.yaml:2:77: `audit` has no key `keep`
    ");
}

#[test]
fn a_project_has_no_say_in_it() {
    let sandbox = sandbox("sqlite: own.db");
    sandbox.project("audit: {path: /dev/null, keep_segments: 0}");
    let told = sandbox.run(&["check"]).expect(0);
    for key in ["path", "keep_segments"] {
        assert!(told.stdout.contains(&format!("`audit.{key}` is left out")), "{told}");
    }
    use_it(&sandbox);
    assert!(exists(&sandbox.path("config/aster/own.db")));
}
