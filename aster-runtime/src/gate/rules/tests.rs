use globset::Glob;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalogue::{AnnotationTrust, ExternalSettings, Health, Listing, external_part};

fn as_written(path: &Path) -> Option<PathBuf> {
    Some(path.to_owned())
}

/// A tool of the external server `files`.
fn tool(name: &str, annotations: Value, settings: &ExternalSettings) -> Arc<Tool> {
    let tools = vec![json!({"name": name, "annotations": annotations})];
    let listing = Listing { tools, ..Listing::without_tools(Health::Ready) };
    external_part("files", settings, &listing).tools[0].clone()
}

/// That server, whose tools are not known.
fn files() -> Server {
    let starting = Listing::without_tools(Health::Starting);
    external_part("files", &ExternalSettings::default(), &starting).server
}

fn write() -> Arc<Tool> {
    tool("write", json!({"destructiveHint": false}), &ExternalSettings::default())
}

fn decide(rules: &Rules, tool: &Tool, arguments: Value) -> Ruling {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let caller = Caller { agent: "coder", team: Some("blue") };
    rules.decide(&facts(caller, tool, &arguments))
}

/// A call whose paths are as they are written, read from where the rules are.
fn facts<'a>(caller: Caller<'a>, tool: &'a Tool, arguments: &'a JsonObject) -> Facts<'a> {
    Facts { caller, tool, arguments, directory: None, real: &as_written }
}

fn rule(action: Action) -> Rule {
    Rule::new(action, action.name())
}

/// The whole lattice: where the tier came from, which actions match, whether the rules ask by default, and what comes of it.
#[test]
fn the_whole_lattice() {
    let destroys = json!({"destructiveHint": true});
    let settings = |tier| ExternalSettings { tier: Some(tier), ..ExternalSettings::default() };
    let by_default = tool("t", json!({}), &ExternalSettings::default());
    let standard = tool("t", json!({}), &settings(Tier::Standard));
    let annotated = tool("t", destroys.clone(), &settings(Tier::Standard));
    let declared = tool("t", json!({}), &settings(Tier::Restricted));
    let both = tool("t", destroys, &settings(Tier::Restricted));
    for (tool, tier, source) in [
        (&by_default, Tier::Elevated, TierSource::Default),
        (&standard, Tier::Standard, TierSource::Declared),
        (&annotated, Tier::Restricted, TierSource::Annotation),
        (&declared, Tier::Restricted, TierSource::Declared),
        (&both, Tier::Restricted, TierSource::Declared),
    ] {
        assert_eq!((tool.tier(), tool.tier_source()), (tier, source));
    }

    // Columns: nothing matches, allow, ask, ask + allow, deny, deny + ask + allow.
    let sets: [&[Action]; 6] = [
        &[],
        &[Action::Allow],
        &[Action::Ask],
        &[Action::Allow, Action::Ask],
        &[Action::Deny],
        &[Action::Ask, Action::Allow, Action::Deny],
    ];
    let table = [
        // tool, rules that ask by default, unreadable rules, what comes of it
        (&standard, false, false, "run run ask ask deny deny"),
        (&by_default, false, false, "run run ask ask deny deny"),
        (&annotated, false, false, "ask run ask ask deny deny"),
        (&declared, false, false, "ask ask ask ask deny deny"),
        (&both, false, false, "ask ask ask ask deny deny"),
        (&standard, true, false, "ask run ask ask deny deny"),
        (&by_default, true, false, "ask run ask ask deny deny"),
        (&annotated, true, false, "ask run ask ask deny deny"),
        (&declared, true, false, "ask ask ask ask deny deny"),
        (&both, true, false, "ask ask ask ask deny deny"),
        (&standard, false, true, "run run ask ask deny deny"),
        (&standard, true, true, "ask run ask ask deny deny"),
        (&by_default, false, true, "deny deny deny deny deny deny"),
        (&annotated, false, true, "deny deny deny deny deny deny"),
        (&declared, true, true, "deny deny deny deny deny deny"),
    ];
    for (at, (tool, ask_by_default, unreadable, expected)) in table.into_iter().enumerate() {
        let outcomes = sets.map(|actions| {
            let mut rules = Rules::new(actions.iter().copied().map(rule));
            if ask_by_default {
                rules = rules.ask_by_default("default");
            }
            if unreadable {
                rules = rules.unreadable("permissions.yaml:1: it is not YAML");
            }
            match decide(&rules, tool, json!({})).requirement {
                Requirement::Run => "run",
                Requirement::Ask(_) => "ask",
                Requirement::Deny(_) => "deny",
            }
        });
        assert_eq!(outcomes.join(" "), expected, "row {at}");
    }
}

/// 2^53 + 1 is no `f64`: read as one, it would be 2^53.
#[test]
fn whole_numbers_are_compared_digit_by_digit() {
    const LAST: u64 = 1 << 53;
    let range = |min: Option<u64>, max: Option<u64>| {
        let test = Test::range(min.map(Into::into), max.map(Into::into)).unwrap();
        let rule = rule(Action::Deny).argument("/n", [test]).unwrap();
        move |n: Value| {
            let denied = decide(&Rules::new([rule.clone()]), &write(), json!({ "n": n })).requirement;
            matches!(denied, Requirement::Deny(_))
        }
    };
    let above = range(Some(LAST + 1), None);
    assert!(above(json!(LAST + 1)) && !above(json!(LAST)));
    assert!(above(json!((LAST + 1).to_string())) && !above(json!(LAST.to_string())));
    assert!(above(json!(9_007_199_254_740_994.0)) && !above(json!(9_007_199_254_740_992.0)));
    let below = range(None, Some(LAST));
    assert!(below(json!(LAST)) && !below(json!(LAST + 1)) && below(json!(-1.5)) && below(json!(i64::MIN)));
    let highest = range(Some(u64::MAX), None);
    assert!(highest(json!(u64::MAX)) && !highest(json!(u64::MAX - 1)) && highest(json!(1.0e300)));

    let allows = |n: Value| {
        let within = Test::range(None, Some(LAST.into())).unwrap();
        let rule = rule(Action::Allow).argument("/n", [within]).unwrap();
        let rules = Rules::new([rule]).ask_by_default("default");
        decide(&rules, &write(), json!({ "n": n })).requirement == Requirement::Run
    };
    assert!(allows(json!(LAST)) && !allows(json!(LAST + 1)) && !allows(json!(LAST.to_string())));
}

proptest! {
    #[test]
    fn whole_numbers_and_others_are_in_one_order(whole in any::<i64>(), real in any::<f64>()) {
        let inside = |min: serde_json::Number, value: Value| {
            let rule = rule(Action::Deny).argument("/n", [Test::range(Some(min), None).unwrap()]).unwrap();
            let denied = decide(&Rules::new([rule]), &write(), json!({ "n": value })).requirement;
            matches!(denied, Requirement::Deny(_))
        };
        prop_assume!(real.is_finite());
        let number = serde_json::Number::from_f64(real).unwrap();
        // Whichever side the whole number is on, at least one of the two is not below the other.
        let (up, down) = (inside(number, json!(whole)), inside(whole.into(), json!(real)));
        prop_assert!(up || down);
        // Where rounding changes nothing of a difference, `f64` has the same order.
        if whole as f64 != real {
            prop_assert_eq!(up, whole as f64 > real);
            prop_assert_eq!(down, real > whole as f64);
        }
    }
}

#[test]
fn a_reason_says_who_decided_and_why() {
    let restricted = ExternalSettings {
        tiers: vec![(Glob::new("*").unwrap().compile_matcher(), Tier::Restricted)],
        annotations: AnnotationTrust::Ignore,
        ..ExternalSettings::default()
    };
    let declared = tool("wipe", json!({}), &restricted);
    let because = |action| Rules::new([rule(action).reason("it is Sunday")]);
    let ruling = decide(&because(Action::Deny), &declared, json!({}));
    let told = "a rule denies this call of `files/wipe`: it is Sunday. Nothing was called";
    assert_eq!(ruling.requirement, Requirement::Deny(told.to_owned()));
    assert_eq!(ruling.rule.as_deref(), Some("deny"));
    let ruling = decide(&because(Action::Ask), &declared, json!({}));
    assert_eq!(
        ruling.requirement,
        Requirement::Ask("the tool is Restricted, and a rule asks: it is Sunday".into())
    );
    let ruling = decide(&because(Action::Allow), &declared, json!({}));
    assert_eq!((ruling.requirement, ruling.rule), (Requirement::Ask("the tool is Restricted".into()), None));
    let ruling = decide(&because(Action::Allow), &write(), json!({}));
    assert_eq!((ruling.requirement, ruling.rule.as_deref()), (Requirement::Run, Some("allow")));
}

/// Whether a rule made by this matches a call of `files/write` by agent `coder` of team `blue`.
fn matches(make: impl Fn(Rule) -> Result<Rule, RuleError>, action: Action, arguments: Value) -> bool {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let (tool, caller) = (write(), Caller { agent: "coder", team: Some("blue") });
    let facts = facts(caller, &tool, &arguments);
    let surroundings = Surroundings { home: Some("/home/me".into()), directory: "/work".into() };
    make(rule(action)).unwrap().matches(&facts, &surroundings)
}

#[test]
fn each_property_of_a_call_can_be_asked_for() {
    type Make = fn(Rule) -> Result<Rule, RuleError>;
    let table: &[(Make, bool)] = &[
        (|rule| rule.tools(["files/write"]), true),
        (|rule| rule.tools(["files/*"]), true),
        (|rule| rule.tools(["*/wr*"]), true),
        (|rule| rule.tools(["*"]), true),
        (|rule| rule.tools(["web/*", "files/{read,write}"]), true),
        (|rule| rule.tools(["files__write"]), true),
        (|rule| rule.tools(["files__*"]), true),
        (|rule| rule.tools(["*__write"]), true),
        (|rule| rule.tools(["files__writ"]), false),
        (|rule| rule.tools(["files/writ"]), false),
        (|rule| rule.tools(["FILES/*"]), false),
        (|rule| rule.servers(["files"]), true),
        (|rule| rule.servers(["fil*", "x"]), true),
        (|rule| rule.servers(["file"]), false),
        (|rule| rule.groups(["files"]), true),
        (|rule| rule.groups(["web"]), false),
        (|rule| rule.agents(["co*"]), true),
        (|rule| rule.agents(["writer"]), false),
        (|rule| rule.teams(["blue"]), true),
        (|rule| rule.teams(["red"]), false),
        (|rule| rule.tiers([Tier::Elevated, Tier::Restricted]), true),
        (|rule| rule.tiers([Tier::Standard]), false),
        (|rule| Ok(rule.native(false)), true),
        (|rule| Ok(rule.native(true)), false),
        (|rule| rule.hint(Hint::Destructive, [Some(false)]), true),
        (|rule| rule.hint(Hint::Destructive, [Some(true), None]), false),
        (|rule| rule.hint(Hint::ReadOnly, [None]), true),
        (|rule| rule.hint(Hint::ReadOnly, [Some(true), None]), true),
        (|rule| rule.tools(["files/*"])?.teams(["red"]), false),
        (|rule| rule.tools(["files/*"])?.teams(["blue"])?.agents(["coder"]), true),
    ];
    for (at, (make, expected)) in table.iter().enumerate() {
        assert_eq!(matches(make, Action::Deny, json!({})), *expected, "row {at}");
    }
    // A caller without a team is in none.
    let (tool, arguments) = (write(), JsonObject::new());
    let facts = facts(Caller::default(), &tool, &arguments);
    assert!(!rule(Action::Deny).teams(["*"]).unwrap().matches(&facts, &Surroundings::default()));
}

#[test]
fn arguments_are_read_loosely_against_and_strictly_for_a_call() {
    type Make = fn(Rule) -> Result<Rule, RuleError>;
    let command = || json!({"command": "git status; rm -rf /"});
    // What matches, then whether a rule that denies and one that allows match.
    let table: &[(Make, Value, bool, bool)] = &[
        (|rule| rule.argument("/command", [Test::regex([r"\brm\s+-rf\b"])?]), command(), true, false),
        (|rule| rule.argument("/command", [Test::regex(["git status"])?]), command(), true, false),
        (
            |rule| rule.argument("/command", [Test::regex(["git status"])?]),
            json!({"command": "git status"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/command", [Test::regex(["git .*"])?]),
            json!({"command": "git log\nrm x"}),
            true,
            false,
        ),
        (|rule| rule.argument("/command", [Test::regex(["a|b"])?]), json!({"command": "ab"}), true, false),
        (|rule| rule.argument("/command", [Test::glob(["git *"])?]), command(), true, true),
        (|rule| rule.argument("/command", [Test::equals(["ls"])?]), json!({"command": "ls"}), true, true),
        (|rule| rule.argument("/n", [Test::equals(["1"])?]), json!({"n": 1.0}), true, true),
        (|rule| rule.argument("/n", [Test::equals(["1"])?]), json!({"n": " 1.0"}), true, false),
        (|rule| rule.argument("/n", [Test::equals(["1.5"])?]), json!({"n": 1.5}), true, true),
        (
            |rule| rule.argument("/n", [Test::equals(["9007199254740992"])?]),
            json!({"n": 9_007_199_254_740_993_u64}),
            true,
            false,
        ),
        (
            |rule| rule.argument("/n", [Test::equals(["-9007199254740993.0"])?]),
            json!({"n": -9_007_199_254_740_993_i64}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/n", [Test::equals(["18446744073709551615"])?]),
            json!({"n": 18_446_744_073_709_551_614_u64}),
            true,
            false,
        ),
        (|rule| rule.argument("/on", [Test::equals(["true"])?]), json!({"on": true}), true, true),
        (|rule| rule.argument("/n", [Test::range(Some(10.into()), None)?]), json!({"n": 10}), true, true),
        (|rule| rule.argument("/n", [Test::range(Some(10.into()), None)?]), json!({"n": "11"}), true, false),
        (
            |rule| rule.argument("/n", [Test::range(Some(10.into()), Some(20.into()))?]),
            json!({"n": 21}),
            false,
            false,
        ),
        (
            |rule| rule.argument("/n", [Test::range(Some(10.into()), None)?]),
            json!({"n": [1, 12]}),
            true,
            false,
        ),
        (
            |rule| rule.argument("/n/*", [Test::range(Some(10.into()), None)?]),
            json!({"n": [11, 12]}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/n/1", [Test::range(Some(10.into()), None)?]),
            json!({"n": [1, 12]}),
            true,
            true,
        ),
        (|rule| rule.argument("/a~1b/~0", [Test::present()]), json!({"a/b": {"~": 0}}), true, true),
        (|rule| rule.argument("/x", [Test::present()]), json!({"x": null}), false, false),
        (|rule| rule.argument("/x", [Test::present()]), json!({}), false, false),
        (|rule| rule.argument("/x", [Test::present()]), json!({"x": []}), false, false),
        (
            |rule| rule.argument("any", [Test::equals(["deep"])?]),
            json!({"a": [{"b": "deep"}], "c": 1}),
            true,
            false,
        ),
        (|rule| rule.argument("any", [Test::equals(["deep"])?]), json!({"a": {"deep": 1}}), true, false),
        (|rule| rule.argument("any", [Test::equals(["deep"])?]), json!({"a": [{"b": "deep"}]}), true, true),
        (
            |rule| rule.argument("/u", [Test::host(["evil.example"])?]),
            json!({"u": "https://EVIL.example./x"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["evil.example"])?]),
            json!({"u": "evil.example:443"}),
            true,
            false,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["evil.example"])?]),
            json!({"u": "me@evil.example"}),
            true,
            false,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["evil.example"])?]),
            json!({"u": "ssh://me@evil.example/x"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["evil.example"])?]),
            json!({"u": "//evil.example/x"}),
            true,
            false,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["evil.example"])?]),
            json!({"u": "https://evil.example@ok.example/"}),
            false,
            false,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["*.ok.example"])?]),
            json!({"u": "https://a.ok.example"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["*.ok.example"])?]),
            json!({"u": "https://ok.example"}),
            false,
            false,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["*.ok.example"])?]),
            json!({"u": "https://notok.example"}),
            false,
            false,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["127.0.0.1"])?]),
            json!({"u": "http://0x7f.1/"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/u", [Test::host(["127.0.0.1"])?]),
            json!({"u": "http://[::ffff:127.0.0.1]/"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/u", [Test::url(["https://ok.example/a/*"])?]),
            json!({"u": "https://ok.example/a/b"}),
            true,
            true,
        ),
        (
            |rule| rule.argument("/u", [Test::url(["https://ok.example/a/*"])?]),
            json!({"u": "HTTPS://ok.example/a/../b"}),
            false,
            false,
        ),
    ];
    for (make, arguments, denies, allows) in table {
        assert_eq!(matches(make, Action::Deny, arguments.clone()), *denies, "deny {arguments}");
        assert_eq!(matches(make, Action::Ask, arguments.clone()), *denies, "ask {arguments}");
        assert_eq!(matches(make, Action::Allow, arguments.clone()), *allows, "allow {arguments}");
    }
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let ssh = |rule: Rule| {
        let surroundings = Surroundings { home: Some("/home/me".into()), directory: "/work".into() };
        let globs = PathGlobs::new(["~/.ssh"], None, &surroundings, &as_written)?;
        rule.argument("any", [Test::path(globs)])
    };
    for arguments in [
        json!({"path": "/home/me/.ssh/id"}),
        json!({"files": [{"from": "x"}, {"from": "../home/me/.ssh"}]}),
        json!({"uri": "file:///home/me/.ssh/id"}),
    ] {
        assert!(matches(ssh, Action::Deny, arguments.clone()), "{arguments}");
    }
    assert!(!matches(ssh, Action::Deny, json!({"path": "/home/me/notes", "content": ".ssh"})));
    // All of it would have to be such a path.
    assert!(!matches(ssh, Action::Allow, json!({"path": "~/.ssh/id", "content": "x"})));
}

#[test]
fn what_cannot_work_is_refused() {
    for (error, told) in [
        (rule(Action::Deny).tools(["web"]).unwrap_err(), "matches no id"),
        (rule(Action::Deny).tools(["a/["]).unwrap_err(), "the glob `a/[` does not work"),
        (rule(Action::Deny).servers(["["]).unwrap_err(), "the glob `[` does not work"),
        (rule(Action::Deny).servers::<&str>([]).unwrap_err(), "an empty list matches nothing"),
        (rule(Action::Deny).argument("x", [Test::present()]).unwrap_err(), "`x` is no JSON pointer"),
        (Test::regex(["("]).unwrap_err(), "the regular expression does not work: unclosed group"),
        (Test::regex([r"(\w{1000}){1000}"]).unwrap_err(), "it becomes too large"),
        (Test::range(Some(2.into()), Some(1.into())).unwrap_err(), "no number is in the range"),
        (Test::host(["https://x"]).unwrap_err(), "`https://x` is no host"),
        (
            rule(Action::Allow).hint(Hint::ReadOnly, [Some(true)]).unwrap_err(),
            "cannot allow by what a tool says",
        ),
    ] {
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn a_deny_that_needs_no_arguments_hides() {
    let coder = Caller { agent: "coder", team: None };
    let rules = Rules::new([
        rule(Action::Ask).tools(["*"]).unwrap(),
        rule(Action::Deny).servers(["files"]).unwrap().agents(["coder"]).unwrap(),
        rule(Action::Deny).argument("/x", [Test::present()]).unwrap(),
    ]);
    assert!(rules.hiding(coder, &write()).is_some() && rules.hide_server(coder, &files()));
    let other = Caller { agent: "other", team: None };
    assert!(rules.hiding(other, &write()).is_none() && !rules.hide_server(other, &files()));
    for (make, whole) in [
        (rule(Action::Deny).tools(["files/*"]), true),
        (rule(Action::Deny).tools(["files__*"]), true),
        (rule(Action::Deny).tools(["{web,files}/**"]), true),
        (rule(Action::Deny).groups(["files"]), true),
        (Ok(rule(Action::Deny).native(false)), true),
        (Ok(rule(Action::Deny).native(true)), false),
        (rule(Action::Deny).tools(["files/w*"]), false),
        (rule(Action::Deny).tiers([Tier::Elevated]), false),
        (rule(Action::Ask).servers(["files"]), false),
    ] {
        let rules = Rules::new([make.unwrap()]);
        assert_eq!(rules.hide_server(coder, &files()), whole, "{rules:?}");
    }
    // One that is mounted is native, in a group of its own.
    let mounted = Server { native: true, group: "research".to_owned(), ..files() };
    for (make, whole) in [
        (rule(Action::Deny).tools(["files/*"]), true),
        (rule(Action::Deny).groups(["files"]), false),
        (rule(Action::Deny).groups(["research"]), true),
        (Ok(rule(Action::Deny).native(false)), false),
        (Ok(rule(Action::Deny).native(true)), true),
    ] {
        let rules = Rules::new([make.unwrap()]);
        assert_eq!(rules.hide_server(coder, &mounted), whole, "{rules:?}");
    }
}

#[test]
fn lint_finds_what_never_decides() {
    let landscape = Landscape::default().native("web", ["fetch"], ["research"]).external("files");
    let at = |line: u32, action| Rule::new(action, format!("f:{line}"));
    let rules = Rules::new([
        at(1, Action::Deny).tools(["files/delete_*"]).unwrap(),
        at(2, Action::Allow).tools(["files/delete_all"]).unwrap(),
        at(3, Action::Ask).tools(["files/delete_x"]).unwrap().agents(["a"]).unwrap(),
        at(4, Action::Ask).tools(["files/*"]).unwrap(),
        at(5, Action::Deny).tools(["web/fetsh", "web/fetch"]).unwrap(),
        at(6, Action::Deny).servers(["mail"]).unwrap(),
        at(7, Action::Deny).tools(["files/x"]).unwrap().servers(["web"]).unwrap(),
        at(8, Action::Allow).tiers([Tier::Elevated]).unwrap(),
        at(9, Action::Ask).groups(["reserch"]).unwrap(),
        at(10, Action::Ask).argument("/a", [Test::range(Some(5.into()), None).unwrap()]).unwrap(),
        at(11, Action::Ask).argument("/a", [Test::range(Some(7.into()), None).unwrap()]).unwrap(),
        at(12, Action::Ask).argument("/a", [Test::range(Some(3.into()), None).unwrap()]).unwrap(),
        at(13, Action::Allow).native(true),
        at(14, Action::Deny).tools(["*/delete_y"]).unwrap(),
        // What they say of secrets is said nowhere else.
        at(15, Action::Ask).tools(["files/read"]).unwrap().secrets(Outgoing::Redact),
        at(16, Action::Allow).native(true).secrets(Outgoing::Redact),
    ]);
    let found: Vec<String> = lint(&rules, &landscape)
        .into_iter()
        .map(|finding| format!("{}: {}", finding.place, finding.message))
        .collect();
    insta::assert_snapshot!(found.join("\n"), @r"
    f:2: the rule never decides: whatever it matches, the rule at f:1 matches too, and `deny` wins over `allow`
    f:3: the rule never decides: whatever it matches, the rule at f:1 matches too, and `deny` wins over `ask`
    f:5: `web/fetsh` matches nothing: server `web` has no `fetsh`
    f:6: no server is called `mail`
    f:7: `tool` and `server` name different servers
    f:8: the rule allows what nobody asks about: standard and elevated tools run without it
    f:9: no tool has the group `reserch`
    f:11: the rule adds nothing: whatever it matches, the rule at f:10 matches too
    f:13: the rule allows what nobody asks about: a native tool is Restricted by declaration, which no rule lifts, or runs
    ");
    // What there is may not be known.
    assert_eq!(
        lint(&Rules::new([at(6, Action::Deny).servers(["mail"]).unwrap()]), &Landscape::default()),
        []
    );
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![Just(Action::Allow), Just(Action::Ask), Just(Action::Deny)]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    let tool = prop_oneof![
        Just("files/write"),
        Just("files/*"),
        Just("web/*"),
        Just("files__write"),
        Just("*/read")
    ];
    let test = prop_oneof![Just("a"), Just("b"), Just("[ab]"), Just("a.*c")];
    (any_action(), proptest::option::of(tool), proptest::option::of(test), any::<bool>()).prop_map(
        |(action, tool, test, anywhere)| {
            let mut rule = rule(action);
            if let Some(tool) = tool {
                rule = rule.tools([tool]).unwrap();
            }
            if let Some(test) = test {
                let place = if anywhere { "any" } else { "/text" };
                rule = rule.argument(place, [Test::regex([test]).unwrap()]).unwrap();
            }
            rule
        },
    )
}

fn any_arguments() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("text|b|x", "[abc]{0,3}", 0..3).prop_map(|map| json!(map))
}

proptest! {
    /// The order in which rules stand decides nothing but which of two reasons is given.
    #[test]
    fn order_does_not_matter(
        rules in proptest::collection::vec(any_rule(), 0..6).prop_flat_map(|rules| {
            let shuffled = Just(rules.clone()).prop_shuffle();
            (Just(rules), shuffled)
        }),
        arguments in any_arguments(),
    ) {
        let [one, other] = [rules.0, rules.1].map(|rules| decide(&Rules::new(rules), &write(), arguments.clone()).requirement);
        prop_assert_eq!(one, other);
    }

    /// One more rule that denies or asks never loosens, and one more that allows never tightens.
    #[test]
    fn a_further_rule_moves_one_way(
        rules in proptest::collection::vec(any_rule(), 0..5),
        more in any_rule(),
        arguments in any_arguments(),
        by_default in any::<bool>(),
    ) {
        let strictness = |rules: Vec<Rule>| {
            let mut rules = Rules::new(rules);
            if by_default {
                rules = rules.ask_by_default("default");
            }
            match decide(&rules, &write(), arguments.clone()).requirement {
                Requirement::Run => 0,
                Requirement::Ask(_) => 1,
                Requirement::Deny(_) => 2,
            }
        };
        let before = strictness(rules.clone());
        let action = more.action();
        let after = strictness(rules.into_iter().chain([more]).collect());
        if action == Action::Allow {
            prop_assert!(after <= before);
        } else {
            prop_assert!(after >= before);
        }
    }

    /// Whatever allows strictly would also have denied loosely: a rule is never easier to satisfy for a call than against it.
    #[test]
    fn strict_is_within_loose(more in any_rule(), arguments in any_arguments()) {
        let Value::Object(arguments) = arguments else { unreachable!() };
        let tool = write();
        let facts = facts(Caller::default(), &tool, &arguments);
        let with = |action| Rule { action, ..more.clone() }.matches(&facts, &Surroundings::default());
        prop_assert!(!with(Action::Allow) || with(Action::Deny));
    }

    /// A rule of which lint says that another decides already changes nothing.
    #[test]
    fn what_lint_calls_shadowed_decides_nothing(
        rules in proptest::collection::vec(any_rule(), 2..6),
        arguments in any_arguments(),
    ) {
        let rules: Vec<Rule> =
            rules.into_iter().enumerate().map(|(at, rule)| Rule { place: at.to_string().into(), ..rule }).collect();
        let all = Rules::new(rules.clone());
        let shadowed: Vec<String> = lint(&all, &Landscape::default()).into_iter().map(|finding| finding.place).collect();
        let left = Rules::new(rules.into_iter().filter(|rule| !shadowed.iter().any(|place| place == rule.place())));
        prop_assert_eq!(
            decide(&all, &write(), arguments.clone()).requirement,
            decide(&left, &write(), arguments).requirement
        );
    }

    /// No text that a user may write makes the readers of rules panic.
    #[test]
    fn patterns_never_panic(text in "\\PC{0,24}", value in "\\PC{0,24}") {
        let surroundings = Surroundings::default();
        let tests = [
            Test::regex([&text]), Test::glob([&text]), Test::host([&text]), Test::url([&text]), Test::equals([text.as_str()]),
            PathGlobs::new([&text], Some(Path::new("/a")), &surroundings, &as_written).map(Test::path),
        ];
        for test in tests.into_iter().flatten() {
            for place in ["any", "/v", &text] {
                let Ok(rule) = rule(Action::Deny).argument(place, [test.clone()]) else { continue };
                let (tool, arguments) = (write(), json!({"v": value}));
                let facts = facts(Caller::default(), &tool, arguments.as_object().unwrap());
                let _ = rule.matches(&facts, &surroundings);
            }
        }
        let _ = rule(Action::Deny).tools([&text]);
    }
}

#[test]
fn a_host_is_denied_in_every_spelling_that_egress_reads() {
    let rule =
        |action| Rule::new(action, "f:1").argument("any", [Test::host(["*.evil.example"]).unwrap()]).unwrap();
    let matches = |rule: &Rule, text: &str| {
        let arguments = json!({"u": text}).as_object().unwrap().clone();
        let tool = write();
        let facts = facts(Caller::default(), &tool, &arguments);
        rule.matches(&facts, &Surroundings::default())
    };
    for text in [
        "URL:http://x.evil.example/",
        "url: view-source:http://x.evil.example/",
        "<http://x.evil.example>",
        "\u{a0}http://x.evil.example",
        "\u{feff}x.evil.example:80",
        "'x.evil.example'",
        "//x.evil.example/",
        "\\\\x.evil.example\\share",
        "mongodb://a,x.evil.example/",
        "mongodb://a,[,x.evil.example:1/",
        "jdbc:mysql://x.evil.example:3306/db",
        "git+ssh://git@x.evil.example/repo",
        "git@x.evil.example:org/repo",
        "https://example.com\\@x.evil.example/",
        "https://example.com/ https://x.evil.example/",
        "strange://x.evil.example/",
        "\u{a0}strange://x.evil.example/",
    ] {
        assert!(matches(&rule(Action::Deny), text), "{text}");
    }
    assert!(matches(&rule(Action::Deny), &format!("//x.evil.example/{}", "a".repeat(10_000))));
    for text in ["https://evil.example/", "see x.evil.example", "x.evil.example.org", "mailto:x.evil.example"]
    {
        assert!(!matches(&rule(Action::Deny), text), "{text}");
    }
    for text in ["\u{a0}http://x.evil.example", "URL:http://x.evil.example/", "x.evil.example"] {
        assert!(!matches(&rule(Action::Allow), text), "{text}");
    }
    let url = Rule::new(Action::Ask, "f:1")
        .argument("/u", [Test::url(["https://evil.example/*"]).unwrap()])
        .unwrap();
    assert!(matches(&url, "\u{a0}<URL:https://EVIL.example/x>"));
    let of = |action| {
        Rule::new(action, "f:1")
            .argument("/u", [Test::url(["https://evil.example/admin*"]).unwrap()])
            .unwrap()
    };
    for text in [
        "https://x@evil.example/admin",
        "https://x:y@evil.example/admin/a",
        "https://evil.example./admin",
        "https://evil.example:443/admin",
        "https://evil.example/%61dmin",
        "https://evil.example/a/%2e%2e/admin",
        "https://example.com\\@evil.example/admin",
        "https://example.com/\nhttps://evil.example/admin",
        "https://evil.example/x%2f..%2fadmin",
        "evil.example/admin",
        "evil.example:443/admin",
        "user@evil.example/x/../admin",
        "//evil.example/admin",
        "\\\\evil.example\\admin",
    ] {
        assert!(matches(&of(Action::Deny), text), "{text}");
        let plainly = text == "https://evil.example:443/admin" || text.contains("%2e");
        assert_eq!(matches(&of(Action::Allow), text), plainly, "{text}");
    }
    for text in
        ["https://evil.example/", "https://evil.example@example.com/admin", "https://example.com/admin"]
    {
        assert!(!matches(&of(Action::Deny), text), "{text}");
    }
    // What is no host is completed to none.
    let any = Rule::new(Action::Ask, "f:1").argument("/u", [Test::url(["https://*"]).unwrap()]).unwrap();
    for text in ["a word", "word", "3.14", "mailto:someone@evil.example", "/evil.example"] {
        assert!(!matches(&any, text), "{text}");
    }
}
