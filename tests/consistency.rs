//! The checks of a catalogue find what they are for, and a tool is called through the real gate.
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::process::{Command, Output};
use std::time::Duration;

use aster_runtime::call::{Check, Outcome};
use aster_runtime::lint::{self, Accepted, Finding, Rule};
use aster_runtime::testing::{self, Answer, Suite, TestHost};
use aster_runtime::{
    Entry, Host, NativeCatalogue, Profile, PromptSpec, ResourceSpec, ServerSpec, Tier, ToolId, ToolSpec,
    agent, catalogue, groups, mcp_server, mcp_tool,
};
use serde_json::json;

groups! { RESEARCH, HOUSE, NOBODYS, LIBRARY }

/// A page to look at.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Page {
    /// Where it is.
    url: String,
    lines: u32,
    /// What is linked from it.
    links: Vec<Page>,
}

/// Reads the web.
#[mcp_server(group = RESEARCH)]
mod web {
    use super::Page;
    use aster_runtime::mcp_tool;

    /// Reads a page of the public web.
    #[mcp_tool(tier = Elevated, read_only, open_world)]
    pub(crate) fn read(
        /// The page's address.
        url: String,
        #[arg(default = 3)] depth: u8,
    ) {
        let _ = (url, depth);
    }

    /// Reads a page of the public web!
    #[mcp_tool(tier = Elevated)]
    pub(crate) fn read_again(
        /// The page.
        page: Page,
        /// Where it was found.
        #[arg(url = false)]
        source_url: String,
    ) {
        let _ = (page, source_url);
    }
}

/// Runs the house.
#[mcp_server(group = HOUSE)]
mod house {
    /// Opens a door of the house.
    #[aster_runtime::mcp_tool(tier = Restricted)]
    pub(crate) fn open(
        /// Which one.
        door: String,
    ) -> String {
        format!("the {door} is open")
    }
}

/// Adds two whole numbers.
#[mcp_tool(tier = Standard, server = "calculator")]
fn add(
    /// The first summand.
    a: i64,
    /// The second summand.
    b: i64,
) -> i64 {
    a + b
}

const ALL: NativeCatalogue =
    catalogue![web::SERVER, house::SERVER, add::TOOL; raise { web::Tool::Read => Restricted }];
const PART: NativeCatalogue = catalogue![web::SERVER];

/// What the macro refuses, and `#[doc = include_str!(…)]` or a specification by hand gets past it.
const fn described(name: &'static str, description: &'static str) -> ToolSpec {
    ToolSpec { name, description, ..*add::TOOL }
}

static SILENT: ToolSpec = described("silent", "  \n");
static TO_DO: ToolSpec = described("to_do", "TODO: say what it does");
static ECHO: ToolSpec = described("echo", "Calculator echo.");
static LONG: ToolSpec = described("long", LONG_TEXT);
const LONG_TEXT: &str = match std::str::from_utf8(&[b'x'; 1025]) {
    Ok(text) => text,
    Err(_) => "",
};
/// No pattern with look-ahead is checked.
static GUESS: ToolSpec = ToolSpec {
    input_schema: || json!({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?!x)"}}}),
    ..described("guess", "Guesses a number.")
};
const BY_HAND: NativeCatalogue = NativeCatalogue {
    entries: &[Entry::Tool(&SILENT), Entry::Tool(&TO_DO), Entry::Tool(&ECHO), Entry::Tool(&LONG)],
    ..NativeCatalogue::EMPTY
};

/// The findings as text, with the lines of this file left out.
fn told(findings: &[Finding]) -> String {
    let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
    let mut parts = told.join("\n").split("consistency.rs:").map(str::to_owned).collect::<Vec<_>>();
    for part in parts.iter_mut().skip(1) {
        *part = part.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
    }
    parts.join("consistency.rs:…")
}

/// The words between the brackets of a constant in a source.
fn words(source: &'static str, constant: &str) -> Vec<&'static str> {
    let list = source.split_once(&format!("const {constant}: &[&str] = &[")).unwrap().1;
    let words = list.split_once(']').unwrap().0.split('"').skip(1).step_by(2);
    words.collect()
}

/// What the lint says of one tool, by rule and place.
fn found(spec: ToolSpec) -> Vec<(Rule, String)> {
    let entries: &'static [Entry] = Box::leak(Box::new([Entry::Tool(Box::leak(Box::new(spec)))]));
    let found = lint::descriptions(&NativeCatalogue { entries, ..NativeCatalogue::EMPTY });
    found.iter().map(|finding| (finding.rule, finding.key())).collect()
}

/// What the macros refuse as a placeholder, the lint finds where the macros cannot read it.
#[test]
fn a_placeholder_of_the_macros_is_one_of_the_lint() {
    let source = include_str!("../aster-macros/src/check/mod.rs");
    let (alone, marks) = (words(source, "PLACEHOLDERS"), words(source, "MARKS"));
    assert!(alone.contains(&"tbd") && marks.contains(&"XXX"), "{alone:?} {marks:?}");
    let placeholders = alone.iter().map(|word| format!("{word}."));
    let placeholders = placeholders.chain(marks.iter().map(|mark| format!("{mark}: say what it does")));
    for description in placeholders {
        let due = [(Rule::Placeholder, "calculator/it".to_owned())];
        assert_eq!(found(described("it", description.clone().leak())), due, "{description}");
    }
    let lint = include_str!("../aster-runtime/src/lint/words.rs");
    assert_eq!((words(lint, "PLACEHOLDERS"), words(lint, "MARKS")), (alone, marks));
}

/// The fields of a type, which the macros do not see.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Ticket {
    /// TODO: say what it is
    state: String,
    /// Due date.
    due_date: String,
    #[schemars(description = LONG_TEXT)]
    notes: String,
    /// Who has it.
    owner: String,
}

#[test]
fn a_parameter_that_says_nothing_is_found() {
    let input_schema = || serde_json::to_value(schemars::schema_for!(Ticket)).unwrap();
    assert_eq!(
        found(ToolSpec { input_schema, ..described("file", "Files a ticket.") }),
        [
            (Rule::Placeholder, "calculator/file state".to_owned()),
            (Rule::RepeatsName, "calculator/file due_date".to_owned()),
            (Rule::Length, "calculator/file notes".to_owned()),
        ]
    );
}

#[test]
fn descriptions_that_say_nothing_are_found() {
    insta::assert_snapshot!("descriptions_by_hand", told(&lint::descriptions(&BY_HAND)));
    insta::assert_snapshot!("descriptions", told(&lint::descriptions(&ALL)));
}

#[test]
fn urls_that_the_gate_does_not_look_at_are_found() {
    insta::assert_snapshot!("urls", told(&lint::urls(&ALL)));
}

#[test]
fn what_is_linked_and_what_is_listed_are_compared_in_both_directions() {
    insta::assert_snapshot!("unlisted", told(&lint::listed(&PART, &NativeCatalogue::registered())));
    let unregistered = NativeCatalogue { entries: &BY_HAND.entries[..1], ..NativeCatalogue::EMPTY };
    insta::assert_snapshot!("unregistered", told(&lint::listed(&unregistered, &NativeCatalogue::EMPTY)));
    assert_eq!(lint::listed(&ALL, &NativeCatalogue::registered()), []);
    assert_eq!(lint::binary(&ALL, None), Err((Vec::new(), "its sources are not here".to_owned())));
}

#[test]
fn a_list_that_is_no_catalogue_is_told_before_start_up_refuses_it() {
    const TWICE: NativeCatalogue =
        NativeCatalogue { entries: &[Entry::Tool(&ECHO), Entry::Tool(&ECHO)], ..ALL };
    let problems = lint::problems(&TWICE);
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!((problem.rule, problem.subject.as_str()), (Rule::Catalogue, "calculator/echo"));
    assert!(problem.message.contains("tests/consistency.rs:"), "{problem}");
}

/// What a book is called.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Book {
    /// Its title.
    #[serde(rename = "the title")]
    title: String,
}

#[test]
fn names_of_arguments_that_no_macro_reads_are_looked_at() {
    fn of_struct() -> serde_json::Value {
        schemars::schema_for!(Book).to_value()
    }
    fn of_author() -> serde_json::Value {
        json!({"type": "object", "properties": {"a.b-c_D": {}, "größe": {"type": "integer"}}})
    }
    fn too_long() -> serde_json::Value {
        json!({"type": "object", "properties": {("x".repeat(64)): {}, ("y".repeat(65)): {}}})
    }
    let yy = "y".repeat(65);
    for (input_schema, name) in
        [(of_struct as fn() -> serde_json::Value, "the title"), (of_author, "größe"), (too_long, yy.as_str())]
    {
        let entries: &'static [Entry] =
            Box::leak(Box::new([Entry::Tool(Box::leak(Box::new(ToolSpec { input_schema, ..*add::TOOL })))]));
        let problems = lint::problems(&NativeCatalogue { entries, ..NativeCatalogue::EMPTY });
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((problem.rule, problem.subject.as_str()), (Rule::Catalogue, "calculator/add"));
        assert!(problem.message.starts_with(&format!("the argument `{name}` has a name")), "{problem}");
    }
}

fn shelf() -> serde_json::Value {
    let book = schemars::schema_for!(Book).to_value();
    json!({"type": "object", "properties": {
        "book": {"$ref": "#/$defs/Book"},
        "more": {"type": "array", "items": {"properties": {"größe": {}, "a.b-c_D": {}, ("x".repeat(65)): {}}}},
    }, "$defs": {"Book": book}})
}

static SHELF: ToolSpec = ToolSpec { name: "shelve", input_schema: shelf, ..*add::TOOL };

#[test]
fn names_inside_of_arguments_are_looked_at() {
    const LIST: NativeCatalogue =
        NativeCatalogue { entries: &[Entry::Tool(&SHELF)], ..NativeCatalogue::EMPTY };
    assert_eq!(lint::problems(&LIST), [], "it is a catalogue");
    let keys: Vec<String> = lint::names(&LIST).iter().map(Finding::key).collect();
    let long = format!("calculator/shelve more.{}", "x".repeat(65));
    assert_eq!(keys, ["calculator/shelve book.the title", "calculator/shelve more.größe", long.as_str()]);
    assert_eq!(lint::names(&ALL), []);
}

/// The house, whose static map is not that of its tools.
static LOWERED: ServerSpec = ServerSpec { tiers: || &[Tier::Standard], ..*house::SERVER };
static SHORT: ServerSpec = ServerSpec { tiers: || &[], ..*house::SERVER };

#[tokio::test]
async fn a_tier_is_the_one_of_the_static_map_or_there_is_no_catalogue() {
    let host = Host::builder().catalogue(NativeCatalogue { raises: &[], ..ALL }).build().await.unwrap();
    for (server, tiers) in [(web::SERVER, web::TIERS), (house::SERVER, house::TIERS)] {
        assert_eq!((server.tools.len(), (server.tiers)()), (tiers.len(), tiers));
        for (spec, tier) in server.tools.iter().zip(tiers) {
            let id = ToolId::parse(&format!("{}/{}", server.name, spec.name)).unwrap();
            assert_eq!(host.catalogue().get(&id).unwrap().tier(), *tier, "{id}");
        }
    }
    for (server, says) in [(&LOWERED, "standard"), (&SHORT, "nothing")] {
        let entries: &'static [Entry] = Box::leak(Box::new([Entry::Server(server)]));
        let problems = lint::problems(&NativeCatalogue { entries, ..NativeCatalogue::EMPTY });
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((problem.rule, problem.subject.as_str()), (Rule::Catalogue, "house/open"));
        let due = format!("its attribute says restricted, and `TIERS` of its server says {says}");
        assert_eq!(problem.message, due);
    }
}

agent! {
    READER = { groups: [RESEARCH, NOBODYS] }
    BUTLER = { tools: [house::Tool::Open] }
}

#[test]
fn agents_and_groups_that_miss_each_other_are_found() {
    insta::assert_snapshot!("agents", told(&lint::agents(&ALL, &[READER])));
    insta::assert_snapshot!("agents_without_a_server", told(&lint::agents(&PART, &[BUTLER])));
    assert_eq!(lint::agents(&ALL, &[]), []);
}

static BOOKS: ResourceSpec = ResourceSpec {
    callable: ToolSpec { server: "library", name: "books", group: Some(LIBRARY), ..*add::TOOL },
    uri: "library://books/{a}/{b}",
    mime_type: None,
    size: None,
    completions: &[],
};
static REVIEW: PromptSpec =
    PromptSpec { callable: ToolSpec { server: "reviews", name: "review", ..*add::TOOL }, completions: &[] };
const WITHOUT_TOOLS: NativeCatalogue =
    NativeCatalogue { entries: &[Entry::Resource(&BOOKS), Entry::Prompt(&REVIEW)], ..NativeCatalogue::EMPTY };

agent! { LIBRARIAN = { groups: [LIBRARY] } }

#[test]
fn groups_of_resources_and_prompts_are_groups() {
    let found = lint::agents(&WITHOUT_TOOLS, &[LIBRARIAN]);
    let [finding] = found.as_slice() else { panic!("{}", told(&found)) };
    assert_eq!(finding.subject, "reviews");
    assert!(finding.message.contains("`reviews/review`"), "{finding}");
}

#[test]
fn a_schema_that_is_not_held_to_is_found() {
    let found = |input_schema: fn() -> serde_json::Value| {
        let entries: &'static [Entry] =
            Box::leak(Box::new([Entry::Tool(Box::leak(Box::new(ToolSpec { input_schema, ..*add::TOOL })))]));
        let found = lint::schemas(&NativeCatalogue { entries, ..NativeCatalogue::EMPTY });
        found.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>().join("\n")
    };
    let part = "no argument is held to this part of its schema: ";
    let lost = found(
        || json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}, "b": {"patternProperties": {"^(?=a)": {}}}}}),
    );
    assert_eq!(
        lost,
        format!("{part}\"$ref\": \"#/$defs/none\"\n{part}\"patternProperties\": {{\"^(?=a)\":{{}}}}")
    );
    let whole = found(
        || json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"pattern": "^a+$"}}}),
    );
    assert_eq!(whole, "");
    assert_eq!(lint::schemas(&ALL), []);
}

#[test]
fn the_manifest_of_a_catalogue_names_its_tools() {
    assert_eq!(lint::manifest(&ALL), []);
}

#[test]
fn what_is_accepted_has_to_be_there() {
    let accepted = |key| Accepted { rule: Rule::Egress, key, why: "it is only shown" };
    let all = ["web/read_again page.url", "web/read_again page.links.url", "web/read_again source_url"]
        .map(accepted);
    assert_eq!(lint::without(lint::urls(&ALL), &[Rule::Egress], &all), []);
    let left = lint::without(lint::urls(&PART), &[Rule::Egress], &[all[0], all[1], accepted("web/read url")]);
    assert_eq!(
        left.iter().map(Finding::key).collect::<Vec<_>>(),
        ["web/read_again source_url", "web/read url"]
    );
    assert!(left[1].message.contains("nothing is wrong with it"), "{}", left[1]);
    // Another check's findings are not this one's to miss.
    assert_eq!(lint::without(Vec::new(), &[Rule::Same], &all), []);
}

#[test]
fn a_change_of_tier_is_a_line_of_the_table() {
    insta::assert_snapshot!("table", testing::table(&ALL));
    let lowered = NativeCatalogue { raises: &[], ..ALL };
    let (before, after) = (testing::table(&ALL), testing::table(&lowered));
    let changed: Vec<_> =
        before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
    let [(before, after)] = changed.as_slice() else { panic!("{changed:?}") };
    assert_eq!(before.replace("restricted", "elevated"), *after);
}

#[test]
fn the_document_says_what_there_is() {
    insta::assert_snapshot!("document", testing::document(&ALL));
}

#[test]
fn a_document_that_is_not_current_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().to_str().unwrap();
    let suite = Suite { catalogue: ALL, agents: &[], accepted: &[], package };
    let panic_of = || {
        let panic = std::panic::catch_unwind(|| suite.the_document_is_current("TOOLS.md")).unwrap_err();
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    assert!(panic_of().contains("help: run the tests with ASTER_BLESS=1"), "{}", panic_of());
    let due = testing::document(&ALL);
    std::fs::write(folder.path().join("TOOLS.md"), due.replace("tier restricted", "tier standard")).unwrap();
    assert!(panic_of().contains("is due: tool · tier restricted"), "{}", panic_of());
    std::fs::write(folder.path().join("TOOLS.md"), due.replace('\n', "\r\n")).unwrap();
    suite.the_document_is_current("TOOLS.md");
}

/// Everything about it is wrong: run by the test below, and by nothing else.
mod broken {
    use super::{BY_HAND, PART, READER};
    use aster_runtime::{Entry, NativeCatalogue};

    const BROKEN: NativeCatalogue = NativeCatalogue {
        entries: &[
            BY_HAND.entries[0],
            BY_HAND.entries[0],
            Entry::Tool(&super::SHELF),
            Entry::Tool(&super::GUESS),
            PART.entries[0],
            Entry::Server(super::web::SERVER),
        ],
        ..PART
    };

    aster_runtime::catalogue_tests!(
        #[ignore = "it fails on purpose"]
        BROKEN;
        agents [READER];
        document "target/no-such-document.md";
        accept [Egress "web/read_again page.url" => "so that two are left"]
    );
}

/// Runs the tests of `broken` as `cargo test` does.
fn broken() -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "broken::"])
        .env("INSTA_UPDATE", "no")
        .env_remove("ASTER_BLESS")
        .output()
        .unwrap()
}

#[test]
fn the_tests_that_the_macro_makes_fail_where_they_should() {
    let output = broken();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{text}");
    for (test, result) in [
        ("the_list_is_a_catalogue", "FAILED"),
        ("what_is_linked_is_listed", "FAILED"),
        ("descriptions_say_something", "FAILED"),
        ("urls_are_under_egress", "FAILED"),
        ("names_are_plain", "FAILED"),
        ("arguments_are_held_to_their_schemas", "FAILED"),
        ("agents_are_given_what_there_is", "FAILED"),
        ("what_was_reviewed_is_what_there_is", "FAILED"),
        ("the_document_is_current", "FAILED"),
        // What these find has tests of its own: of another package, and of a router that no list makes.
        ("server_crates_are_linked", "ok"),
        ("the_manifest_names_what_can_be_called", "ok"),
    ] {
        let line = text.lines().find(|line| line.starts_with("test broken::") && line.contains(test));
        assert!(line.is_some_and(|line| line.ends_with(result)), "{test} is not {result}:\n{text}");
    }
    for said in [
        "`calculator/silent`: it has no description",
        "`web/read_again`, parameter `source_url`: it takes a URL",
        "`calculator/shelve`, parameter `book.the title`: its name is not one that every provider takes",
        "`calculator/guess`: no argument is held to this part of its schema: \"pattern\": \"^(?!x)\"",
        "`house`: this server is linked into the binary, and the list does not name it",
        "`reader`: it is given the group `nobodys`",
        "`web`: another server has this name: first at tests/consistency.rs:",
        "no-such-document.md cannot be read",
        // The committed snapshot has another tier.
        "-tool web/read standard research",
        "+tool web/read elevated research",
    ] {
        assert!(text.contains(said), "{said} is missing in:\n{text}");
    }
    assert!(!text.contains("parameter `page.url`"), "what is accepted is told:\n{text}");
}

#[tokio::test]
async fn a_host_of_the_whole_binary_refuses_what_no_list_names() {
    let refused = Host::builder().whole_catalogue(PART).build().await.unwrap_err().to_string();
    assert!(refused.starts_with("`calculator/add`: this tool is linked into the binary"), "{refused}");
    assert!(refused.contains("`house`: this server is linked into the binary"), "{refused}");
    assert_eq!(refused.matches("tests/consistency.rs:").count(), 4, "{refused}");
    Host::builder().whole_catalogue(ALL).build().await.unwrap();
    Host::builder().catalogue(PART).build().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_test_calls_through_the_real_gate() {
    let builder = Host::builder().catalogue(ALL).approval_timeout(Duration::from_secs(5));
    let answers = [Answer::Approve, Answer::Deny("not at night"), Answer::Silence];
    let host =
        TestHost::start(builder, Profile::new("butler").groups(["house", "calculator"]), answers).await;
    let open = async || host.call("house/open", json!({"door": "gate"})).await;

    let opened = open().await;
    assert_eq!((opened.outcome, opened.result.to_text().as_str()), (Outcome::Ok, "the gate is open"));
    for why in ["not at night", "nobody approved", "the script has no more answers"] {
        let denied = open().await;
        assert_eq!((denied.outcome, denied.denied), (Outcome::Denied, Some(Check::Approval)));
        assert!(denied.result.to_text().contains(why), "{}", denied.result.to_text());
    }
    assert_eq!(
        host.call("web/read", json!({"url": "https://example.com/"})).await.denied,
        Some(Check::Scope)
    );
    assert_eq!(host.call("calculator/add", json!({"a": "x"})).await.denied, Some(Check::Arguments));
    assert_eq!(host.call("calculator/add", json!({"a": 1, "b": 2})).await.result.to_text(), "3");

    let asked = host.script().asked();
    assert_eq!(
        (asked.len(), &asked[0].arguments, asked[0].tier),
        (4, &json!({"door": "gate"}), Tier::Restricted)
    );
    let mut outcomes = [Outcome::Denied; 7];
    (outcomes[0], outcomes[6]) = (Outcome::Ok, Outcome::Ok);
    assert_eq!(host.audit().outcomes(), outcomes);
    assert_eq!(host.audit().records()[0].tool.as_deref(), Some("house/open"));
}
