//! `permissions.yaml`: the user's rules and the project's, read, checked and followed while they change.
//!
//! The user's file lies beside `aster.yaml` in the configuration directory; the project's is the nearest upward from the
//! working directory, as that of `aster.yaml`. A project's rules can only tighten: one that allows is left out with a
//! warning.
//!
//! A file with a mistake counts as one that cannot be read: its last good rules stay, and where there were none, nothing
//! beyond Standard is called before it is mended. A file that is not there has no rules; one that was there and is followed
//! keeps those that deny and ask, so that nobody loosens anything by removing it.
//!
//! ```
//! use aster_runtime::config::rules::RuleFiles;
//!
//! let directory = tempfile::tempdir()?;
//! let file = directory.path().join("permissions.yaml");
//! std::fs::write(&file, "rules:\n  - action: ask\n    tool: mail/*\n    reason: mail leaves the house\n")?;
//!
//! let read = RuleFiles::of_user(&file).read();
//! assert!(read.problems.is_empty());
//! assert_eq!(read.rules.rules()[0].why(), Some("mail leaves the house"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Number;
use tokio::sync::watch;

use super::file::Reader;
use super::yaml::{Mark, Node, Value};
use super::{MAX_FILE_BYTES, Problem, nearest, open_regular};
use crate::gate::real::real_or_written;
use crate::gate::rules::{Action, Hint, PathGlobs, Rule, RuleError, Rules, Surroundings, Test};
use crate::gate::secrets::Outgoing;
use crate::spec::Tier;
use crate::text::one_line;

/// The name of a file of rules.
pub const FILE_NAME: &str = "permissions.yaml";

/// How long a reason may be, in characters.
const MAX_REASON: usize = 300;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How long a file that has changed must then stay as it is: whoever writes it may not be done.
const SETTLE: Duration = Duration::from_millis(100);

/// Where the rules may stand.
#[derive(Debug, Clone, Default)]
pub struct RuleFiles {
    user: Option<PathBuf>,
    /// Where the search for the project's file begins.
    directory: Option<PathBuf>,
    surroundings: Surroundings,
}

/// What was read.
#[derive(Debug, Clone)]
pub struct RulesRead {
    /// The rules of all files.
    pub rules: Rules,
    /// What is wrong in files that therefore have no part in it.
    pub problems: Vec<Problem>,
    /// What was left out.
    pub warnings: Vec<Problem>,
    /// The files that were read, the user's first.
    pub files: Vec<PathBuf>,
}

impl RuleFiles {
    /// The user's file alone.
    #[must_use]
    pub fn of_user(file: impl Into<PathBuf>) -> Self {
        let directory = std::env::current_dir().unwrap_or_default();
        let home = etcetera::home_dir().ok();
        Self { user: Some(file.into()), directory: None, surroundings: Surroundings { home, directory } }
    }

    /// The file beside the user's `aster.yaml` and, unless `directory` is none, the project's, which is the nearest upward
    /// from there. Relative paths in calls are read from the working directory.
    #[must_use]
    pub fn beside(user: Option<&Path>, directory: Option<&Path>) -> Self {
        let mut files = Self::of_user(PathBuf::new());
        files.user = user.map(|user| user.with_file_name(FILE_NAME));
        files.directory = directory.map(Path::to_owned);
        files
    }

    /// Reads the files as they are now.
    #[must_use]
    pub fn read(&self) -> RulesRead {
        Follower::new(self.clone()).read
    }

    /// What files with these bytes would say, the user's and the project's: for those who throw junk at it.
    #[doc(hidden)]
    #[must_use]
    pub fn would_read(&self, user: Option<&[u8]>, project: Option<&[u8]>) -> RulesRead {
        let at = |folder: &str, bytes: &[u8]| (Path::new(folder).join(FILE_NAME), Ok(bytes.to_vec()));
        let snapshot = [user.map(|bytes| at("/user", bytes)), project.map(|bytes| at("/project", bytes))];
        let mut follower = Follower::of(self.clone());
        follower.apply(snapshot);
        follower.read
    }

    /// Reads the files and follows them: whenever one has changed and stayed so for a moment, there are new rules. What is
    /// wrong is logged. Ends when nobody listens any more. Must be called within a runtime.
    #[must_use]
    pub fn follow(self) -> (RulesRead, watch::Receiver<Arc<Rules>>) {
        let mut follower = Follower::new(self);
        let (sender, receiver) = watch::channel(Arc::new(follower.read.rules.clone()));
        let first = follower.read.clone();
        tokio::spawn(async move {
            let mut wait = LOOK;
            loop {
                tokio::select! {
                    () = sender.closed() => return,
                    () = tokio::time::sleep(wait) => {}
                }
                // A file system may keep one waiting.
                let looked = tokio::task::spawn_blocking(move || {
                    let looked = follower.look(follower.files.snapshot());
                    (follower, looked)
                });
                let Ok((back, looked)) = looked.await else { return };
                follower = back;
                wait = if matches!(looked, Looked::Changing) { SETTLE } else { LOOK };
                if matches!(looked, Looked::Changed) {
                    follower.report();
                    sender.send_replace(Arc::new(follower.read.rules.clone()));
                }
            }
        });
        (first, receiver)
    }

    /// What the files hold now.
    fn snapshot(&self) -> Snapshot {
        let project =
            self.directory.as_deref().and_then(|from| nearest(from, FILE_NAME, self.user.as_deref()));
        [self.user.clone(), project].map(|path| {
            let path = path?;
            let content = content(&path).transpose()?;
            Some((path, content))
        })
    }
}

/// The user's file and the project's: where each is, and its bytes or why it has none.
type Snapshot = [Option<(PathBuf, Result<Vec<u8>, String>)>; 2];

fn content(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let limit = u64::try_from(MAX_FILE_BYTES).unwrap_or(u64::MAX) + 1;
    let mut bytes = Vec::new();
    match open_regular(path).and_then(|file: File| file.take(limit).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// What a look at the files came to.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    /// They are what they were.
    Same,
    /// They are not, and may not be done changing.
    Changing,
    /// There are new rules.
    Changed,
}

/// Remembers what was read, and which rules of each file were the last good ones.
struct Follower {
    files: RuleFiles,
    read: RulesRead,
    applied: Snapshot,
    /// What the last look saw, where that is not applied.
    pending: Option<Snapshot>,
    /// By the place in a snapshot and the path, since a nearer file of a project may take the place of another.
    good: BTreeMap<(usize, PathBuf), Document>,
}

impl Follower {
    fn new(files: RuleFiles) -> Self {
        let first = files.snapshot();
        let mut follower = Self::of(files);
        follower.apply(first);
        follower
    }

    /// One that has read nothing.
    fn of(files: RuleFiles) -> Self {
        let read = RulesRead {
            rules: Rules::default(),
            problems: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
        };
        Self { files, read, applied: [None, None], pending: None, good: BTreeMap::new() }
    }

    /// Takes what two looks one after the other have seen.
    fn look(&mut self, now: Snapshot) -> Looked {
        if now == self.applied {
            self.pending = None;
            return Looked::Same;
        }
        if self.pending.as_ref() != Some(&now) {
            self.pending = Some(now);
            return Looked::Changing;
        }
        self.pending = None;
        self.apply(now);
        Looked::Changed
    }

    fn apply(&mut self, snapshot: Snapshot) {
        let mut read = RulesRead {
            rules: Rules::default(),
            problems: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
        };
        let mut unreadable = Vec::new();
        let mut present = BTreeSet::new();
        for (slot, file) in snapshot.iter().enumerate() {
            let Some((path, content)) = file else { continue };
            let key = (slot, path.clone());
            read.files.push(path.clone());
            match document(path, content, slot == PROJECT, &self.files.surroundings) {
                Ok(document) => drop(self.good.insert(key.clone(), document)),
                Err(problems) => {
                    if !self.good.contains_key(&key) {
                        unreadable.extend(problems.first().map(Problem::to_string));
                    }
                    read.problems.extend(problems);
                }
            }
            present.insert(key);
        }
        let mut rules = Vec::new();
        let mut default_ask = None;
        for (key, document) in &self.good {
            let stays = |rule: &&Rule| present.contains(key) || rule.action() != Action::Allow;
            let before = rules.len();
            rules.extend(document.rules.iter().filter(stays).cloned());
            default_ask = default_ask.or_else(|| document.default_ask.clone());
            if present.contains(key) {
                read.warnings.extend(document.warnings.iter().cloned());
            } else if rules.len() > before || document.default_ask.is_some() {
                let message =
                    "the file is gone or a nearer one has taken its place: what it denies and asks stays";
                let help = "start Aster again to drop it";
                read.warnings.push(Problem::new(&key.1, Mark::default(), message, help));
            }
        }
        read.rules = Rules::new(rules).surroundings(self.files.surroundings.clone());
        if let Some(place) = default_ask {
            read.rules = read.rules.ask_by_default(place);
        }
        for why in unreadable {
            read.rules = read.rules.unreadable(why);
        }
        self.applied = snapshot;
        self.read = read;
    }

    fn report(&self) {
        let kept = self.read.rules.why_unreadable().is_empty();
        for problem in &self.read.problems {
            let what = if kept { "; the last good rules stay" } else { "; only standard tools are called" };
            tracing::error!("{problem}{what}");
        }
        for warning in &self.read.warnings {
            tracing::warn!("{warning}");
        }
        if self.read.problems.is_empty() {
            tracing::info!(rules = self.read.rules.rules().len(), "the rules have changed");
        }
    }
}

/// The place of the project's file in a snapshot.
const PROJECT: usize = 1;

/// One file's rules.
#[derive(Debug, Clone)]
struct Document {
    rules: Vec<Rule>,
    default_ask: Option<String>,
    warnings: Vec<Problem>,
}

fn document(
    path: &Path,
    content: &Result<Vec<u8>, String>,
    project: bool,
    surroundings: &Surroundings,
) -> Result<Document, Vec<Problem>> {
    let bytes = content.as_ref().map_err(|error| {
        let help = "mend the file or its permissions, or move it away";
        vec![Problem::new(path, Mark::default(), format!("the file cannot be read: {error}"), help)]
    })?;
    let mut reader = Reader { path, problems: Vec::new() };
    let mut document = Document { rules: Vec::new(), default_ask: None, warnings: Vec::new() };
    if let Some(root) = reader.parse(bytes) {
        let base = path.parent().filter(|_| project);
        RuleReader { reader: &mut reader, surroundings, base }.root(&root, &mut document);
    }
    if !reader.problems.is_empty() {
        reader.problems.sort_by_key(|problem| (problem.line, problem.column));
        return Err(reader.problems);
    }
    Ok(document)
}

const HINTS: [Hint; 4] = [Hint::ReadOnly, Hint::Destructive, Hint::Idempotent, Hint::OpenWorld];

const RULE_KEYS: [&str; 15] = [
    "action",
    "reason",
    "secrets",
    "tool",
    "server",
    "team",
    "agent",
    "tier",
    "group",
    "annotations",
    "origin",
    "arguments",
    "path",
    "host",
    "url",
];

const TEST_KEYS: [&str; 9] = ["any", "equals", "regex", "glob", "min", "max", "path", "host", "url"];

/// Reads the tree of a file of rules.
struct RuleReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    surroundings: &'r Surroundings,
    /// The directory that relative paths of rules are read from, of a project's file.
    base: Option<&'r Path>,
}

impl RuleReader<'_, '_> {
    fn root(&mut self, root: &Node, document: &mut Document) {
        for (key, value) in self.reader.section(root, "the file", &["default", "rules"]) {
            if key == "default" {
                let choices = [("tier", false), ("ask", true)];
                if self.reader.choice(value, "`default`", &choices) == Some(true) {
                    document.default_ask = Some(self.place(value.at));
                }
                continue;
            }
            for node in self.reader.list(value, "`rules`") {
                let Some(mut rule) = self.rule(node) else { continue };
                let mut warn = |message| {
                    let help = "write it in the user's own file";
                    document.warnings.push(Problem::new(self.reader.path, node.at, message, help));
                };
                if self.base.is_some() && rule.action() == Action::Allow {
                    warn("the rule is left out: a project can deny and ask, and not allow");
                    continue;
                }
                if self.base.is_some() && rule.outgoing().is_some_and(|outgoing| outgoing != Outgoing::Block)
                {
                    warn(
                        "`secrets` of the rule is left out: a project can block calls with secrets, and do no less",
                    );
                    rule = rule.secrets(None);
                }
                document.rules.push(rule);
            }
        }
    }

    fn place(&self, at: Mark) -> String {
        format!("{}:{}", one_line(&self.reader.path.display().to_string(), 4096), at.line)
    }

    fn rule(&mut self, node: &Node) -> Option<Rule> {
        let before = self.reader.problems.len();
        let entries = self.reader.section(node, "a rule", &RULE_KEYS);
        let actions = [Action::Deny, Action::Ask, Action::Allow].map(|action| (action.name(), action));
        let action = match entries.iter().find(|(key, _)| *key == "action") {
            Some((_, value)) => self.reader.choice(value, "`action` of a rule", &actions),
            None => {
                if matches!(node.value, Value::Map(_) | Value::Null) {
                    let help = "write `action: deny`, `action: ask` or `action: allow`";
                    self.reader.problem(node.at, "a rule has no `action`", help);
                }
                None
            }
        };
        // Without one the rest is still read, so that one run names every mistake.
        let mut rule = Rule::new(action.unwrap_or(Action::Deny), self.place(node.at));
        let mut says_when = false;
        for (key, value) in entries {
            says_when |= !matches!(key, "action" | "reason" | "secrets");
            if let Some(next) = self.clause(rule.clone(), key, value) {
                rule = next;
            }
        }
        if !says_when && self.reader.problems.len() == before {
            let help = "write `tool: \"*\"` where every call is meant";
            self.reader.problem(node.at, "the rule does not say when it applies", help);
        }
        (self.reader.problems.len() == before).then_some(rule)
    }

    /// The rule with one thing more said of it.
    fn clause(&mut self, rule: Rule, key: &str, value: &Node) -> Option<Rule> {
        let what = format!("`{key}` of a rule");
        let made = match key {
            "reason" => {
                let reason = one_line(self.reader.scalar(value, &what)?, MAX_REASON);
                Ok(rule.reason(reason.trim_end_matches('.')))
            }
            "secrets" => {
                let choices = [Outgoing::Block, Outgoing::Redact].map(|outgoing| (outgoing.name(), outgoing));
                let outgoing = self.reader.choice(value, &what, &choices)?;
                if rule.action() == Action::Deny {
                    let help = "leave it out: nothing of what is denied is sent";
                    self.reader.problem(value.at, format!("{what} that denies says nothing"), help);
                    return None;
                }
                Ok(rule.secrets(outgoing))
            }
            "tool" => rule.tools(self.texts(value, &what)?),
            "server" => rule.servers(self.texts(value, &what)?),
            "team" => rule.teams(self.texts(value, &what)?),
            "agent" => rule.agents(self.texts(value, &what)?),
            "group" => rule.groups(self.texts(value, &what)?),
            "tier" => rule.tiers(self.tiers(value, &what)?),
            "annotations" => return self.annotations(rule, value, &what),
            "origin" => {
                let choices = [("native", true), ("external", false)];
                Ok(rule.native(self.reader.choice(value, &what, &choices)?))
            }
            "arguments" => return self.arguments(rule, value, &what),
            "path" | "host" | "url" => {
                let test = self.test(key, value, &what)?;
                rule.argument("any", [test])
            }
            // `action` has been read.
            _ => return None,
        };
        self.made(made, value.at, &what)
    }

    /// What was made of a node, or the problem with it.
    fn made<T>(&mut self, made: Result<T, RuleError>, at: Mark, what: &str) -> Option<T> {
        made.map_err(|error| {
            let message = format!("{what}: {}", one_line(&error.message, 300));
            self.reader.problem(at, message, one_line(&error.help, 300));
        })
        .ok()
    }

    /// A text, or a list of them.
    fn texts(&mut self, node: &Node, what: &str) -> Option<Vec<String>> {
        let Value::List(items) = &node.value else {
            return Some(vec![self.reader.scalar(node, what)?.to_owned()]);
        };
        let texts: Vec<String> =
            items.iter().filter_map(|item| self.reader.scalar(item, what)).map(str::to_owned).collect();
        (texts.len() == items.len()).then_some(texts)
    }

    fn tiers(&mut self, node: &Node, what: &str) -> Option<Vec<Tier>> {
        let Value::List(items) = &node.value else { return Some(vec![self.reader.tier(node, what)?]) };
        let tiers: Vec<Tier> = items.iter().filter_map(|item| self.reader.tier(item, what)).collect();
        (tiers.len() == items.len()).then_some(tiers)
    }

    fn annotations(&mut self, mut rule: Rule, node: &Node, what: &str) -> Option<Rule> {
        for (key, value) in self.reader.section(node, what, &HINTS.map(Hint::name)) {
            let hint = HINTS.into_iter().find(|hint| hint.name() == key)?;
            let choices = [("true", Some(true)), ("false", Some(false)), ("unsaid", None)];
            let items = match &value.value {
                Value::List(items) => items.as_slice(),
                _ => std::slice::from_ref(value),
            };
            let what = format!("`{key}` in {what}");
            let said: Vec<Option<bool>> =
                items.iter().filter_map(|item| self.reader.choice(item, &what, &choices)).collect();
            if said.len() != items.len() {
                continue;
            }
            if let Some(next) = self.made(rule.clone().hint(hint, said), value.at, &what) {
                rule = next;
            }
        }
        Some(rule)
    }

    fn arguments(&mut self, mut rule: Rule, node: &Node, what: &str) -> Option<Rule> {
        for (key, value) in self.reader.entries(node, what) {
            let place = key.value.scalar().unwrap_or_default();
            let what = format!("`{}` in {what}", one_line(place, 100));
            let Some(tests) = self.tests(value, &what) else { continue };
            if let Some(next) = self.made(rule.clone().argument(place, tests), key.at, &what) {
                rule = next;
            }
        }
        Some(rule)
    }

    /// A mapping of tests, or what the value is to be.
    fn tests(&mut self, node: &Node, what: &str) -> Option<Vec<Test>> {
        if !matches!(node.value, Value::Map(_)) {
            return Some(vec![self.test("equals", node, what)?]);
        }
        let before = self.reader.problems.len();
        let entries = self.reader.section(node, what, &TEST_KEYS);
        let (mut tests, mut min, mut max, mut range_at) = (Vec::new(), None, None, None);
        for (key, value) in entries {
            let what = format!("`{key}` of {what}");
            match key {
                "min" => (min, range_at) = (self.number(value, &what), Some(value.at)),
                "max" => (max, range_at) = (self.number(value, &what), Some(value.at)),
                _ => tests.extend(self.test(key, value, &what)),
            }
        }
        if self.reader.problems.len() != before {
            return None;
        }
        if let Some(at) = range_at {
            tests.push(self.made(Test::range(min, max), at, what)?);
        }
        if tests.is_empty() {
            self.reader.problem(node.at, format!("{what} has no test"), "write `any: true` for every value");
            return None;
        }
        Some(tests)
    }

    fn test(&mut self, key: &str, node: &Node, what: &str) -> Option<Test> {
        if key == "any" {
            return match &node.value {
                Value::Bool(true, _) => Some(Test::present()),
                _ => {
                    self.reader.problem(node.at, format!("{what} is not `true`"), "write `any: true`");
                    None
                }
            };
        }
        let texts = self.texts(node, what)?;
        let made = match key {
            "equals" => Test::equals(texts),
            "regex" => Test::regex(texts),
            "glob" => Test::glob(texts),
            "path" => PathGlobs::new(texts, self.base, self.surroundings, &real_or_written).map(Test::path),
            "host" => Test::host(texts),
            _ => Test::url(texts),
        };
        self.made(made, node.at, what)
    }

    fn number(&mut self, node: &Node, what: &str) -> Option<Number> {
        let number = match &node.value {
            Value::Number(text) => {
                let whole =
                    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
                whole.ok().or_else(|| Number::from_f64(text.parse().ok()?))
            }
            _ => None,
        };
        if number.is_none() {
            self.reader.problem(node.at, format!("{what} is not a number"), "for example `100`");
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::rules::Landscape;

    struct Files {
        root: tempfile::TempDir,
    }

    impl Files {
        fn new() -> Self {
            let files = Self { root: tempfile::tempdir().unwrap() };
            std::fs::create_dir_all(files.path("project/.git")).unwrap();
            std::fs::create_dir_all(files.path("project/src")).unwrap();
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.path(name), text).unwrap();
        }

        fn rules(&self) -> RuleFiles {
            RuleFiles::beside(Some(&self.path("aster.yaml")), Some(&self.path("project/src")))
        }

        fn shown(&self, problems: &[Problem]) -> String {
            let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
            lines.join("\n").replace(&*self.path("").to_string_lossy(), "")
        }
    }

    const ALL: &str = r#"
default: ask
rules:
  - action: deny
    reason: Nothing of it leaves the house.
    tool: [mail/*, chat__send]
    server: mail
    team: [blue, red*]
    agent: "*"
    tier: [elevated, restricted]
    group: mail
    annotations: {destructiveHint: [true, unsaid], readOnlyHint: false}
    origin: external
    arguments:
      /to/*: {glob: ["*@evil.example"]}
      /count: {min: 10, max: 2.5e3}
      /mode: fast
      /kind: [1, true, text]
      /body: {regex: '\bsecret\b', any: true}
      any: {path: ~/.ssh}
    path: ["**/.env"]
    host: "*.evil.example"
    url: https://evil.example/*
  - action: allow
    tool: "*"
    secrets: redact
"#;

    #[test]
    fn everything_that_can_be_said() {
        let files = Files::new();
        files.write("permissions.yaml", ALL);
        let read = files.rules().read();
        assert_eq!(files.shown(&read.problems), "");
        assert_eq!(read.files, [files.path("permissions.yaml")]);
        assert_eq!(
            read.rules.default_ask(),
            Some(&*format!("{}:2", files.path("permissions.yaml").display()))
        );
        let [deny, allow] = read.rules.rules() else { panic!("two rules") };
        assert_eq!((deny.action(), deny.why()), (Action::Deny, Some("Nothing of it leaves the house")));
        assert!(deny.place().ends_with("permissions.yaml:4") && !deny.is_of_tools());
        assert!(allow.is_of_tools() && read.rules.look_at_paths());
        assert_eq!((deny.outgoing(), allow.outgoing()), (None, Some(Outgoing::Redact)));
    }

    #[test]
    fn every_mistake_is_named_at_once_with_its_place() {
        let files = Files::new();
        files.write(
            "permissions.yaml",
            r#"
defualt: ask
rules:
  - tool: a/*
  - action: block
    tool: web
  - action: deny
  - action: deny
    tool: []
  - action: allow
    annotations: {readOnlyHint: true}
  - action: ask
    arguments:
      path: {glob: x}
      /a: {regex: "("}
      /b: {min: 5, max: 1}
      /c: {mix: 1}
      /d: {path: src}
      /e: {any: false}
      /f: {}
    host: https://x.example
    tier: high
    origin: martian
    agent: {a: b}
  - just text
  - {action: deny, tool: a/*, secrets: block}
  - {action: ask, tool: a/*, secrets: allow}
  - {action: ask, secrets: block}
"#,
        );
        let read = files.rules().read();
        insta::assert_snapshot!(files.shown(&read.problems), @r#"
        permissions.yaml:2:1: the file has no key `defualt`; did you mean `default`?
        permissions.yaml:4:5: a rule has no `action`; write `action: deny`, `action: ask` or `action: allow`
        permissions.yaml:5:13: `action` of a rule cannot be `block`; known here: `deny`, `ask`, `allow`
        permissions.yaml:6:11: `tool` of a rule: the glob `web` does not work: matches no id, since ids are `server/tool`; write `web/*`
        permissions.yaml:7:5: the rule does not say when it applies; write `tool: "*"` where every call is meant
        permissions.yaml:9:11: `tool` of a rule: an empty list matches nothing; leave the key out, or name something
        permissions.yaml:11:33: `readOnlyHint` in `annotations` of a rule: a rule cannot allow by what a tool says of itself; name the tools or the server
        permissions.yaml:14:7: `path` in `arguments` of a rule: `path` is no JSON pointer; write `/path`, or `any` for all arguments
        permissions.yaml:15:19: `regex` of `/a` in `arguments` of a rule: the regular expression does not work: unclosed group
        permissions.yaml:16:25: `/b` in `arguments` of a rule: no number is in the range; `min` is the smaller one
        permissions.yaml:17:12: `/c` in `arguments` of a rule has no key `mix`; did you mean `max`?
        permissions.yaml:18:18: `path` of `/d` in `arguments` of a rule: the path `src` does not say where it begins; begin it with `/` or `~/`, or with `**/` for a name in any directory
        permissions.yaml:19:17: `any` of `/e` in `arguments` of a rule is not `true`; write `any: true`
        permissions.yaml:20:11: `/f` in `arguments` of a rule has no test; write `any: true` for every value
        permissions.yaml:21:11: `host` of a rule: `https://x.example` is no host; write `example.com`, `*.example.com`, an address or `*`, without scheme, port and path
        permissions.yaml:22:11: `tier` of a rule cannot be `high`; known here: `standard`, `elevated`, `restricted`
        permissions.yaml:23:13: `origin` of a rule cannot be `martian`; known here: `native`, `external`
        permissions.yaml:24:12: `agent` of a rule is a mapping, not text; write one text
        permissions.yaml:25:5: a rule is text, not a mapping; write `key: value` lines
        permissions.yaml:26:40: `secrets` of a rule that denies says nothing; leave it out: nothing of what is denied is sent
        permissions.yaml:27:39: `secrets` of a rule cannot be `allow`; known here: `block`, `redact`
        permissions.yaml:28:5: the rule does not say when it applies; write `tool: "*"` where every call is meant
        "#);
        assert!(read.rules.rules().is_empty());
    }

    #[test]
    fn a_project_tightens() {
        let files = Files::new();
        files.write("permissions.yaml", "rules:\n  - {action: allow, tool: a/*}\n");
        files.write(
            "project/permissions.yaml",
            "default: ask\nrules:\n  - {action: allow, tool: b/*}\n  - {action: deny, path: secrets}\n  \
             - {action: ask, tool: b/*, secrets: redact}\n  - {action: ask, tool: c/*, secrets: block}\n",
        );
        let read = files.rules().read();
        assert_eq!(files.shown(&read.problems), "");
        insta::assert_snapshot!(files.shown(&read.warnings), @r"
        project/permissions.yaml:3:5: the rule is left out: a project can deny and ask, and not allow; write it in the user's own file
        project/permissions.yaml:5:5: `secrets` of the rule is left out: a project can block calls with secrets, and do no less; write it in the user's own file
        ");
        let actions: Vec<Action> = read.rules.rules().iter().map(Rule::action).collect();
        assert_eq!(actions, [Action::Deny, Action::Ask, Action::Ask, Action::Allow]);
        let secrets: Vec<Option<Outgoing>> = read.rules.rules().iter().map(Rule::outgoing).collect();
        assert_eq!(secrets, [None, None, Some(Outgoing::Block), None]);
        assert!(read.rules.default_ask().is_some_and(|place| place.ends_with("project/permissions.yaml:1")));
        assert_eq!(crate::gate::rules::lint(&read.rules, &Landscape::default()), []);
    }

    #[test]
    fn a_change_counts_once_it_stays_and_a_bad_file_keeps_the_last_good_rules() {
        let files = Files::new();
        let mut follower = Follower::new(files.rules());
        let look = |follower: &mut Follower| {
            let now = follower.files.snapshot();
            follower.look(now)
        };
        assert_eq!(look(&mut follower), Looked::Same);
        let count = |follower: &Follower| follower.read.rules.rules().len();

        // Half a file, as an editor may leave it for a moment, is never taken.
        files.write("permissions.yaml", "rules:\n");
        assert_eq!(look(&mut follower), Looked::Changing);
        files.write("permissions.yaml", "rules:\n  - {action: deny, tool: a/*}\n");
        assert_eq!(look(&mut follower), Looked::Changing);
        assert_eq!(count(&follower), 0);
        assert_eq!(look(&mut follower), Looked::Changed);
        assert_eq!((count(&follower), look(&mut follower)), (1, Looked::Same));

        files.write("permissions.yaml", "rules: [");
        assert_eq!((look(&mut follower), look(&mut follower)), (Looked::Changing, Looked::Changed));
        assert_eq!((count(&follower), follower.read.problems.len()), (1, 1));
        assert!(follower.read.rules.why_unreadable().is_empty());
        assert_eq!(look(&mut follower), Looked::Same);

        // The same bytes at another time, or another file with the same length, make no difference.
        files.write("permissions.yaml", "rules:\n  - {action: asks, tool: a/*}\n");
        assert_eq!((look(&mut follower), look(&mut follower)), (Looked::Changing, Looked::Changed));
        assert_eq!((count(&follower), follower.read.problems.len()), (1, 1));

        // A project's file may come later.
        files.write("project/permissions.yaml", "rules:\n  - {action: ask, tool: b/*}\n");
        assert_eq!((look(&mut follower), look(&mut follower)), (Looked::Changing, Looked::Changed));
        assert_eq!(count(&follower), 2);
    }

    #[test]
    fn a_file_that_goes_loosens_nothing() {
        let files = Files::new();
        files.write(
            "permissions.yaml",
            "rules:\n  - {action: allow, tool: a/*}\n  - {action: deny, tool: b/*}\n",
        );
        files.write("project/permissions.yaml", "default: ask\nrules:\n  - {action: ask, tool: c/*}\n");
        let mut follower = Follower::new(files.rules());
        let look = |follower: &mut Follower| {
            for expected in [Looked::Changing, Looked::Changed, Looked::Same] {
                let now = follower.files.snapshot();
                assert_eq!(follower.look(now), expected);
            }
            let rules = &follower.read.rules;
            let mut tools: Vec<&str> = rules.rules().iter().map(|rule| rule.action().name()).collect();
            tools.extend(rules.default_ask().map(|_| "default"));
            (tools.join(" "), files.shown(&follower.read.warnings))
        };
        let gone = "the file is gone or a nearer one has taken its place: what it denies and asks stays; start Aster again to drop it";

        // A nearer file adds to what the other says.
        files.write("project/src/permissions.yaml", "rules: []\n");
        let shadowed = ("deny ask allow default".to_owned(), format!("project/permissions.yaml: {gone}"));
        assert_eq!(look(&mut follower), shadowed);
        files.write("project/src/permissions.yaml", "rules: [{action: deny, tool: d/*}]\n");
        assert_eq!(look(&mut follower).0, "deny deny ask allow default");

        // And so it does when it goes, while the other is followed again.
        std::fs::remove_file(files.path("project/src/permissions.yaml")).unwrap();
        let gone_again = format!("project/src/permissions.yaml: {gone}");
        assert_eq!(look(&mut follower), ("deny deny ask allow default".to_owned(), gone_again));
        files.write("project/permissions.yaml", "rules: []\n");
        assert_eq!(look(&mut follower).0, "deny deny allow");

        // What was allowed is allowed no longer.
        std::fs::remove_file(files.path("permissions.yaml")).unwrap();
        std::fs::remove_file(files.path("project/permissions.yaml")).unwrap();
        let (rules, warnings) = look(&mut follower);
        assert_eq!((&*rules, warnings.lines().count()), ("deny deny", 2));
        assert!(follower.read.problems.is_empty() && follower.read.files.is_empty());

        // A file that is written again speaks for itself, and one that starts again has forgotten.
        files.write("permissions.yaml", "rules: []\n");
        assert_eq!(look(&mut follower).0, "deny");
        assert!(files.rules().read().rules.rules().is_empty());
    }

    #[test]
    fn a_file_that_never_could_be_read_is_told_apart() {
        for broken in ["user", "project"] {
            let files = Files::new();
            files.write("permissions.yaml", "rules:\n  - {action: deny, tool: a/*}\n");
            let name = if broken == "user" { "permissions.yaml" } else { "project/permissions.yaml" };
            files.write(name, "rules: {\n");
            let mut follower = Follower::new(files.rules());
            assert!(follower.read.rules.why_unreadable()[0].contains("not valid YAML"), "{broken}");
            files.write(name, "rules:\n  - {action: ask, tool: b/*}\n");
            let mut look = || {
                let now = follower.files.snapshot();
                follower.look(now)
            };
            assert_eq!((look(), look()), (Looked::Changing, Looked::Changed));
            assert!(follower.read.rules.why_unreadable().is_empty(), "{broken}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn followers_get_the_new_rules() {
        let files = Files::new();
        let (first, mut rules) = files.rules().follow();
        assert!(first.rules.rules().is_empty());
        files.write("permissions.yaml", "rules:\n  - {action: deny, tool: a/*}\n");
        let changed = rules.wait_for(|rules| rules.rules().len() == 1).await;
        assert_eq!(changed.unwrap().rules()[0].action(), Action::Deny);
    }
}
