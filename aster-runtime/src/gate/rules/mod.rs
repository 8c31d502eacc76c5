//! Rules: what a user, or a project, denies, wants to be asked about, and allows. And with the tier: what a call needs
//! before it may run.
//!
//! Pure: the rules are data, and [`Rules::decide`] is a function of them and of the call. Reading their files, and
//! reading them again, is `config`'s; where a path really leads is handed in.
//!
//! The order of the rules does not matter. Of those that match a call, one that denies wins over one that asks, and that
//! over one that allows:
//!
//! | | what comes of the call |
//! |---|---|
//! | a rule denies it | denied, with the rule's reason |
//! | a file of rules cannot be read, and never could | Elevated and Restricted calls are denied |
//! | the tool was declared Restricted: by its author, by the catalogue or in the configuration | a human is asked |
//! | a rule asks | a human is asked |
//! | a rule allows it | it runs, also where the next two rows would ask |
//! | the tool is Restricted because it says of itself that it destroys | a human is asked |
//! | the rules ask by default | a human is asked |
//! | nothing of all that | it runs |

mod lint;
mod path;
mod test;
mod when;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use lint::{Finding, Landscape, lint};
pub(crate) use lint::{Missing, is_name};
pub use path::{PathGlobs, Surroundings};
pub use test::Test;
pub use when::Hint;

use path::Site;
use test::Reading;
use when::When;

use crate::catalogue::{Server, TierSource, Tool};
use crate::gate::secrets::Outgoing;
use crate::spec::Tier;
use crate::tool::JsonObject;

/// Where a path really leads, symbolic links followed; `None` where that is not to be found out.
pub type Real<'a> = &'a dyn Fn(&Path) -> Option<PathBuf>;

/// Why something cannot be part of a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// What is wrong, as a fragment.
    pub message: String,
    /// What to do; empty where the message says it.
    pub help: String,
}

impl RuleError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }

    fn glob(text: &str, error: &globset::Error) -> Self {
        Self::new(
            format!("the glob `{text}` does not work: {}", error.kind()),
            "use `*` for any characters, `?` for one, `{a,b}` for either",
        )
    }
}

/// What a rule does with the calls that it matches. The order is that of precedence: the last wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Lifts an approval that an annotation or the default of the rules caused.
    Allow,
    /// Asks a human.
    Ask,
    /// Refuses. Where nothing in the rule depends on the call, the tool does not exist for the session.
    Deny,
}

impl Action {
    /// The word for it in a file of rules.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One rule: an action, and when it applies. What is not said matches everything; what is said must all match.
///
/// ```
/// use aster_runtime::gate::rules::{Action, Rule, Test};
///
/// let rule = Rule::new(Action::Ask, "host.rs:12")
///     .reason("deleting cannot be undone")
///     .tools(["shell/run"])?
///     .argument("/command", [Test::regex([r"\brm\b"])?])?;
/// assert_eq!(rule.action(), Action::Ask);
/// # Ok::<(), aster_runtime::gate::rules::RuleError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rule {
    action: Action,
    place: Arc<str>,
    reason: Option<String>,
    outgoing: Option<Outgoing>,
    when: When,
}

impl Rule {
    /// A rule that matches every call. `place` says where it stands, `file:line` for one from a file.
    #[must_use]
    pub fn new(action: Action, place: impl Into<Arc<str>>) -> Self {
        Self { action, place: place.into(), reason: None, outgoing: None, when: When::default() }
    }

    /// What it does.
    #[must_use]
    pub fn action(&self) -> Action {
        self.action
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Why, for the model and the record.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// What becomes of secrets in the arguments of the calls that it matches, where it says so.
    #[must_use]
    pub fn outgoing(&self) -> Option<Outgoing> {
        self.outgoing
    }

    /// The tools that it names, as globs over ids or over the names of direct mode.
    pub(crate) fn named_tools(&self) -> impl Iterator<Item = &str> {
        self.when.tools.iter().flat_map(|tools| &tools.texts).map(String::as_str)
    }

    /// The groups that it names, as globs.
    pub(crate) fn named_groups(&self) -> impl Iterator<Item = String> {
        self.when.groups.iter().flat_map(|groups| groups.texts().to_vec())
    }

    /// Whether it is about native tools alone.
    pub(crate) fn is_of_natives(&self) -> bool {
        self.when.native == Some(true)
    }

    /// Whether it matches a call whatever its arguments are.
    #[must_use]
    pub fn is_of_tools(&self) -> bool {
        self.when.arguments.is_empty()
    }

    /// Whether it matches this call.
    #[must_use]
    pub fn matches(&self, facts: &Facts<'_>, surroundings: &Surroundings) -> bool {
        let when = &self.when;
        let site = Site { surroundings, directory: facts.directory, real: facts.real };
        when.matches_caller(facts.caller)
            && when.matches_tool(facts.tool)
            && when.matches_arguments(facts.arguments, self.reading(), &site)
    }

    /// All that it says, wherever it stands.
    fn content(&self) -> Arc<str> {
        let Self { action, place: _, reason, outgoing, when } = self;
        format!("{:?}", (action, reason, outgoing, when)).into()
    }

    fn reading(&self) -> Reading {
        if self.action == Action::Allow { Reading::Strict } else { Reading::Loose }
    }
}

/// Who calls, as far as rules ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The agent's name.
    pub agent: &'a str,
    /// Its team, where it has one.
    pub team: Option<&'a str>,
}

/// All that a decision depends on.
pub struct Facts<'a> {
    /// Who calls.
    pub caller: Caller<'a>,
    /// What is called.
    pub tool: &'a Tool,
    /// With what.
    pub arguments: &'a JsonObject,
    /// The directory that the tool's server runs in, where it is known not to be Aster's: absolute.
    pub directory: Option<&'a Path>,
    /// Where a path really leads.
    pub real: Real<'a>,
}

/// What a call needs before it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// Nothing more.
    Run,
    /// A human's approval; why.
    Ask(Cow<'static, str>),
    /// It must not run; why, for the model.
    Deny(String),
}

/// What a call needs, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// What it needs.
    pub requirement: Requirement,
    /// Where the rule stands that decided, unless it was the tier.
    pub rule: Option<Arc<str>>,
    /// All that the rules say that ask, wherever they stand: an answer to one of them is none to another. To be compared.
    pub asking: Vec<Arc<str>>,
}

impl Ruling {
    /// What a call needs, whatever the rules say.
    #[must_use]
    pub(crate) fn new(requirement: Requirement) -> Self {
        Self { requirement, rule: None, asking: Vec::new() }
    }

    /// The same after hooks were heard: whether one wants a human to be asked, and why, which the human is told beside what
    /// else asks; else whether one wants nobody to be asked. That lifts what a rule, an annotation or the default asks for, and as little else as a rule that allows.
    #[must_use]
    pub fn heard(self, tool: &Tool, ask: Option<&str>, allow: bool) -> Self {
        match (&self.requirement, ask) {
            (Requirement::Run, Some(why)) => Self::new(Requirement::Ask(why.to_owned().into())),
            (Requirement::Ask(asks), Some(why)) => {
                Self { requirement: Requirement::Ask(format!("{asks}, and {why}").into()), ..self }
            }
            (Requirement::Ask(_), None) if allow && !is_declared_restricted(tool) => {
                Self::new(Requirement::Run)
            }
            _ => self,
        }
    }
}

/// Whether an approval is none that anything lifts.
fn is_declared_restricted(tool: &Tool) -> bool {
    tool.tier() == Tier::Restricted && tool.tier_source() == TierSource::Declared
}

/// The rules of all files together.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Those that deny first, those that allow last.
    rules: Vec<Rule>,
    default_ask: Option<Arc<str>>,
    unreadable: Vec<String>,
    surroundings: Surroundings,
}

impl Rules {
    /// The set of these rules.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut rules = Vec::from_iter(rules);
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.action));
        Self { rules, ..Self::default() }
    }

    /// Asks about every call that no rule allows; `place` says where that stands.
    #[must_use]
    pub fn ask_by_default(mut self, place: impl Into<Arc<str>>) -> Self {
        self.default_ask = Some(place.into());
        self
    }

    /// Notes that some of the rules cannot be read, and why: nothing beyond Standard runs.
    #[must_use]
    pub fn unreadable(mut self, why: impl Into<String>) -> Self {
        self.unreadable.push(why.into());
        self
    }

    /// Sets what paths that are not absolute are read from.
    #[must_use]
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// The rules: those that deny, those that ask, those that allow, each in the order in which they were given.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Where it stands that what no rule allows is asked about.
    #[must_use]
    pub fn default_ask(&self) -> Option<&str> {
        self.default_ask.as_deref()
    }

    /// Why some of the rules cannot be read, and never could.
    #[must_use]
    pub fn why_unreadable(&self) -> &[String] {
        &self.unreadable
    }

    /// Whether a decision may ask where a path leads.
    #[must_use]
    pub fn look_at_paths(&self) -> bool {
        let mut tests =
            self.rules.iter().flat_map(|rule| &rule.when.arguments).flat_map(|argument| &argument.tests);
        tests.any(Test::is_of_paths)
    }

    /// The rules that match this call, those that count more first.
    pub fn matching<'a>(&'a self, facts: &Facts<'_>) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(|rule| rule.matches(facts, &self.surroundings))
    }

    /// What becomes of secrets in the arguments of this call, where a rule that matches it says so; of several, the strictest
    /// counts.
    #[must_use]
    pub fn outgoing(&self, facts: &Facts<'_>) -> Option<Outgoing> {
        let speaking = self.rules.iter().filter(|rule| rule.outgoing.is_some());
        speaking.filter(|rule| rule.matches(facts, &self.surroundings)).filter_map(Rule::outgoing).max()
    }

    /// Whether any rule says what becomes of secrets.
    pub(crate) fn speak_of_secrets(&self) -> bool {
        self.rules.iter().any(|rule| rule.outgoing.is_some())
    }

    /// What this call needs.
    #[must_use]
    pub fn decide(&self, facts: &Facts<'_>) -> Ruling {
        let tool = facts.tool;
        let first = self.matching(facts).next();
        let by = |rule: &Rule, requirement| Ruling {
            rule: Some(Arc::clone(&rule.place)),
            ..Ruling::new(requirement)
        };
        let ask = |why: &'static str| Requirement::Ask(Cow::Borrowed(why));
        let restricted = tool.tier() == Tier::Restricted;
        let declared = is_declared_restricted(tool);
        match first {
            Some(rule) if rule.action == Action::Deny => by(rule, Requirement::Deny(rule.denial(tool))),
            _ if tool.tier() > Tier::Standard && !self.unreadable.is_empty() => {
                let message = format!(
                    "the rules of what may be called cannot be read, and without them nothing beyond Standard is \
                     called; the user has to mend them: {}",
                    self.unreadable.join("; ")
                );
                Ruling::new(Requirement::Deny(message))
            }
            Some(rule) if rule.action == Action::Ask => {
                let asks = rule.question();
                let why = if declared { format!("{RESTRICTED}, and {asks}") } else { asks };
                let asking = self.matching(facts).filter(|rule| rule.action == Action::Ask);
                let mut asking: Vec<Arc<str>> = asking.map(Rule::content).collect();
                asking.sort_unstable();
                Ruling { asking, ..by(rule, Requirement::Ask(why.into())) }
            }
            _ if declared => Ruling::new(ask(RESTRICTED)),
            Some(rule) => by(rule, Requirement::Run),
            None if restricted => Ruling::new(ask(RESTRICTED)),
            None => match &self.default_ask {
                Some(place) => Ruling {
                    rule: Some(Arc::clone(place)),
                    asking: vec!["by default".into()],
                    ..Ruling::new(ask("no rule allows it"))
                },
                None => Ruling::new(Requirement::Run),
            },
        }
    }

    /// The rule that hides this tool from this caller, whatever it would be called with.
    #[must_use]
    pub fn hiding(&self, caller: Caller<'_>, tool: &Tool) -> Option<&Rule> {
        self.hiding_rules(caller).find(|rule| rule.when.matches_tool(tool))
    }

    /// Whether everything on a server is hidden from this caller, whatever it has.
    #[must_use]
    pub fn hide_server(&self, caller: Caller<'_>, server: &Server) -> bool {
        self.hiding_rules(caller).any(|rule| rule.when.covers_server(server))
    }

    fn hiding_rules<'a>(&'a self, caller: Caller<'_>) -> impl Iterator<Item = &'a Rule> {
        let denying = self.rules.iter().take_while(|rule| rule.action == Action::Deny);
        denying.filter(move |rule| rule.is_of_tools() && rule.when.matches_caller(caller))
    }
}

/// Why a human is asked about a Restricted call.
const RESTRICTED: &str = "the tool is Restricted";

impl Rule {
    fn denial(&self, tool: &Tool) -> String {
        let id = tool.id();
        match &self.reason {
            Some(reason) => format!("a rule denies this call of `{id}`: {reason}. Nothing was called"),
            None => format!("a rule denies this call of `{id}`. Nothing was called"),
        }
    }

    fn question(&self) -> String {
        match &self.reason {
            Some(reason) => format!("a rule asks: {reason}"),
            None => "a rule asks for it".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
