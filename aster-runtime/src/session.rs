//! Who calls: the identity and the inputs of the scope of one agent's or client's run.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use foldhash::fast::FixedState;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::gate::egress::EgressPolicy;
use crate::id::ToolId;

/// What a host says of an agent before it runs: its name and what it may see.
///
/// ```
/// use aster_runtime::Profile;
///
/// let profile = Profile::new("researcher").groups(["research"]).deny(["web/post_*"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Profile {
    pub(crate) agent: String,
    pub(crate) team: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) groups: Option<Vec<String>>,
    pub(crate) tools: Vec<ToolId>,
    pub(crate) control: Vec<ToolId>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) require_describe: bool,
    pub(crate) defaults: BTreeMap<ToolId, Map<String, Value>>,
    pub(crate) max_calls: Option<u32>,
    pub(crate) egress: Option<EgressPolicy>,
}

tokio::task_local! {
    /// The call that this task runs.
    static CURRENT: Running;
}

/// What a native function has while it runs: its session, and whatever is kept for its call. It ends with the function, and
/// not with whoever waits for it: a plain `fn` goes on after its call was given up.
#[derive(Clone)]
pub(crate) struct Running {
    session: Arc<Session>,
    _kept: Arc<dyn Any + Send + Sync>,
}

impl Running {
    pub(crate) fn new(session: Arc<Session>, kept: impl Any + Send + Sync) -> Self {
        Self { session, _kept: Arc::new(kept) }
    }

    /// What the function has that runs on this task.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Makes this what a future has.
    pub(crate) fn within<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// The same for a function that blocks, where there is a call.
    pub(crate) fn blocking_within<T>(running: Option<Self>, function: impl FnOnce() -> T) -> T {
        match running {
            Some(running) => CURRENT.sync_scope(running, function),
            None => function(),
        }
    }
}

impl Profile {
    /// A profile for the agent of this name that sees every tool the host's own filter leaves.
    #[must_use]
    pub fn new(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), ..Self::default() }
    }

    /// Limits the agent to tools of these groups.
    #[must_use]
    pub fn groups<I, G>(mut self, groups: I) -> Self
    where
        I: IntoIterator<Item = G>,
        G: Into<String>,
    {
        self.groups = Some(groups.into_iter().map(Into::into).collect());
        self
    }

    /// Gives the agent these tools too, whatever their group. Without any groups it has these and nothing else.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = ToolId>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Makes the agent a supervisor, which keeps these tools whatever its own groups and globs say: those by which it
    /// directs others. The host's filters and rules hold for them as for all.
    #[must_use]
    pub fn supervisor(mut self, control: impl IntoIterator<Item = ToolId>) -> Self {
        self.control.extend(control);
        self
    }

    /// Limits the agent to tools whose id one of these globs matches, besides those that it is given by name.
    #[must_use]
    pub fn allow<I, G>(mut self, globs: I) -> Self
    where
        I: IntoIterator<Item = G>,
        G: Into<String>,
    {
        self.allow.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Hides the tools whose id one of these globs matches. Deny wins over allow.
    #[must_use]
    pub fn deny<I, G>(mut self, globs: I) -> Self
    where
        I: IntoIterator<Item = G>,
        G: Into<String>,
    {
        self.deny.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Names the team that the agent belongs to, for the rules.
    #[must_use]
    pub fn team(mut self, team: impl Into<String>) -> Self {
        self.team = Some(team.into());
        self
    }

    /// Names the project the agent works in, for the audit.
    #[must_use]
    pub fn project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Names the client that the agent connects with, for the audit.
    #[must_use]
    pub fn client(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Gives calls of this tool these arguments, each where the call has none of its name. They are checked like all others.
    #[must_use]
    pub fn default_arguments(mut self, tool: ToolId, arguments: Map<String, Value>) -> Self {
        self.defaults.insert(tool, arguments);
        self
    }

    /// Limits how many calls one session may make, refused ones not counted.
    #[must_use]
    pub fn max_calls(mut self, calls: u32) -> Self {
        self.max_calls = Some(calls);
        self
    }

    /// Limits where the URLs of the agent's calls may lead, by the `allow` and `deny` of a policy: within what the host
    /// allows.
    #[must_use]
    pub fn egress(mut self, policy: EgressPolicy) -> Self {
        self.egress = Some(policy);
        self
    }

    /// Refuses to execute a tool that the session has not described before. Off by default.
    #[must_use]
    pub fn require_describe(mut self, on: bool) -> Self {
        self.require_describe = on;
        self
    }
}

/// One agent's or client's run: its identity, what it may see, and what it has described so far.
#[derive(Debug)]
pub struct Session {
    id: String,
    profile: Profile,
    share: Arc<Share>,
    calls: AtomicU32,
    described: Mutex<HashSet<(ToolId, String)>>,
    searches: Mutex<Searches>,
    approvals: Mutex<Approvals>,
}

/// How many calls of one session wait for a human at most, so that none takes the places of all.
pub const MAX_WAITING_OF_SESSION: usize = 8;

/// What a session may have at once of what all use. Callers whom nobody can tell apart have one together.
#[derive(Debug)]
pub(crate) struct Share {
    /// By what limits know it.
    pub(crate) key: String,
    /// The places of its calls that wait for a human.
    pub(crate) questions: Semaphore,
}

/// The approvals of more than one call, by what was asked, and the rules under which it was: other rules may ask for
/// another reason.
#[derive(Debug, Default)]
struct Approvals {
    rules: Option<Weak<dyn Any + Send + Sync>>,
    by: HashMap<String, String>,
}

/// What came of a session's searches: whether the search finds what is wanted, without a word of what was asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SearchCounts {
    /// The searches with words in them. Their further pages are none of their own.
    pub searches: u32,
    /// Those that found nothing.
    pub empty: u32,
    /// Those of which a tool was described before the next search: the others were followed by no describe.
    pub described_searches: u32,
    /// Those of which a tool was described or executed before the next search.
    pub followed: u32,
    /// The tools that were described after a search that found them.
    pub described: u32,
    /// Those among them that were then executed.
    pub described_then_executed: u32,
    /// The tools that were executed after a search that found them.
    pub executed: u32,
    /// By rank from the first, how many of these; the last counts all further ones.
    pub executed_ranks: [u32; 10],
}

impl SearchCounts {
    /// The searches that found something and led to nothing.
    #[must_use]
    pub fn abandoned(&self) -> u32 {
        self.searches.saturating_sub(self.empty).saturating_sub(self.followed)
    }
}

/// The last search, and what all came to.
#[derive(Debug, Default)]
struct Searches {
    counts: SearchCounts,
    /// What stands for its query and server.
    asked: Option<u64>,
    found: Vec<Found>,
    described: bool,
    followed: bool,
}

/// A hit of the last search.
#[derive(Debug)]
struct Found {
    /// Its place among all, from 0.
    rank: usize,
    /// The tool, and the same on other servers.
    ids: Vec<String>,
    described: bool,
    executed: bool,
}

impl Session {
    /// A new run of `profile` under a fresh id.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        let id = uuid::Uuid::now_v7().to_string();
        let questions = Semaphore::new(MAX_WAITING_OF_SESSION);
        Self {
            share: Arc::new(Share { key: id.clone(), questions }),
            id,
            profile,
            calls: AtomicU32::new(0),
            described: Mutex::default(),
            searches: Mutex::default(),
            approvals: Mutex::default(),
        }
    }

    /// A new run of this one's profile that has no share of its own, but this one's.
    #[cfg(feature = "serve-http")]
    pub(crate) fn sharing(&self) -> Self {
        Self { share: Arc::clone(&self.share), ..Self::new(self.profile.clone()) }
    }

    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    /// Remembers that a question was answered with yes, and by whom, until there are other rules.
    pub(crate) fn remember_approval(&self, question: String, rules: Weak<dyn Any + Send + Sync>, by: String) {
        let mut approvals = self.approvals();
        if !approvals.are_under(&rules) {
            *approvals = Approvals { rules: Some(rules), by: HashMap::new() };
        }
        approvals.by.insert(question, by);
    }

    /// Who answered a question with yes, under the same rules.
    pub(crate) fn approval(&self, question: &str, rules: &Weak<dyn Any + Send + Sync>) -> Option<String> {
        let approvals = self.approvals();
        if approvals.are_under(rules) { approvals.by.get(question).cloned() } else { None }
    }

    fn approvals(&self) -> MutexGuard<'_, Approvals> {
        self.approvals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of the call that runs here: in a native tool's function, and in whatever it awaits without starting a
    /// task of its own.
    ///
    /// ```
    /// use aster_runtime::{Session, mcp_tool};
    ///
    /// /// Says who asks.
    /// #[mcp_tool(tier = Standard)]
    /// fn whoami() -> String {
    ///     Session::current().map_or_else(String::new, |session| session.agent().to_owned())
    /// }
    /// # fn main() {}
    /// ```
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(|running| Arc::clone(&running.session)).ok()
    }

    /// How many calls the session may make, where that is limited, once none is left.
    pub(crate) fn exhausted(&self) -> Option<u32> {
        self.profile.max_calls.filter(|max| self.calls.load(Ordering::Relaxed) >= *max)
    }

    /// Counts one call, if one is left.
    pub(crate) fn take_call(&self) -> bool {
        let Some(max) = self.profile.max_calls else { return true };
        let more = |made: u32| (made < max).then(|| made + 1);
        self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// A call that was counted is not made.
    pub(crate) fn give_back_call(&self) {
        self.calls.fetch_sub(1, Ordering::Relaxed);
    }

    /// Fills in the arguments that the profile gives and the call has not.
    pub(crate) fn fill(&self, tool: &ToolId, arguments: &mut Map<String, Value>) {
        for (name, value) in self.profile.defaults.get(tool).into_iter().flatten() {
            if !arguments.contains_key(name) {
                arguments.insert(name.clone(), value.clone());
            }
        }
    }

    /// What limits the URLs of its calls besides the host's own policy.
    #[must_use]
    pub fn egress(&self) -> Option<&EgressPolicy> {
        self.profile.egress.as_ref()
    }

    /// The run's id, a UUID of version 7.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The agent's name.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.profile.agent
    }

    /// The team, where the host named one.
    #[must_use]
    pub fn team(&self) -> Option<&str> {
        self.profile.team.as_deref()
    }

    /// The project, where the host named one.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.profile.project.as_deref()
    }

    /// The client, where the host named one.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.profile.client.as_deref()
    }

    /// The profile the run was made from.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Remembers that the session has been shown the definition of this digest.
    pub fn mark_described(&self, id: &ToolId, digest: String) {
        self.described().insert((id.clone(), digest));
    }

    /// Whether the session has been shown the definition of this digest: a tool that changed is one it has not seen.
    #[must_use]
    pub fn has_described(&self, id: &ToolId, digest: &str) -> bool {
        self.described().contains(&(id.clone(), digest.to_owned()))
    }

    /// Notes a search: what was asked, of which server, and the hits that it found, best first, after the `offset` ones
    /// before them; each with the ids that it shows: its own, and those of the same tool on other servers. With an `offset` and
    /// the query and server of the search before it is a further page of that one; else it is a search of its own. Without a
    /// word in the query it is none, and what is done afterwards follows none. One with an `offset` is never an empty one: what
    /// there is may be before it.
    pub fn note_search(
        &self,
        query: &str,
        server: Option<&str>,
        offset: usize,
        hits: impl IntoIterator<Item = Vec<String>>,
    ) {
        let mut searches = self.searches();
        let asked =
            (!query.trim().is_empty()).then(|| FixedState::default().hash_one((query.trim(), server)));
        let is_page = offset > 0 && asked.is_some() && searches.asked == asked;
        if !is_page {
            *searches = Searches { counts: searches.counts, asked, ..Searches::default() };
        }
        if asked.is_none() {
            return;
        }
        for (rank, ids) in (offset..).zip(hits) {
            if searches.found.iter().all(|found| found.rank != rank) {
                searches.found.push(Found { rank, ids, described: false, executed: false });
            }
        }
        if !is_page {
            searches.counts.searches += 1;
            searches.counts.empty += u32::from(offset == 0 && searches.found.is_empty());
        }
    }

    /// Notes that a tool was described, for [`search_counts`](Self::search_counts).
    pub fn note_described(&self, id: &ToolId) {
        let mut searches = self.searches();
        let described = searches.follow(id, |found, counts| {
            if !std::mem::replace(&mut found.described, true) {
                counts.described += 1;
            }
        });
        if described && !std::mem::replace(&mut searches.described, true) {
            searches.counts.described_searches += 1;
        }
    }

    /// Notes that a tool was executed.
    pub fn note_executed(&self, id: &ToolId) {
        self.searches().follow(id, |found, counts| {
            if !std::mem::replace(&mut found.executed, true) {
                counts.executed += 1;
                counts.described_then_executed += u32::from(found.described);
                counts.executed_ranks[found.rank.min(counts.executed_ranks.len() - 1)] += 1;
            }
        });
    }

    /// What came of the session's searches so far.
    #[must_use]
    pub fn search_counts(&self) -> SearchCounts {
        self.searches().counts
    }

    fn searches(&self) -> MutexGuard<'_, Searches> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn described(&self) -> MutexGuard<'_, HashSet<(ToolId, String)>> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approvals {
    fn are_under(&self, rules: &Weak<dyn Any + Send + Sync>) -> bool {
        self.rules.as_ref().is_some_and(|known| Weak::ptr_eq(known, rules))
    }
}

impl Searches {
    /// Counts what was done with a tool of the last search. Whether it is one.
    fn follow(&mut self, id: &ToolId, count: impl FnOnce(&mut Found, &mut SearchCounts)) -> bool {
        let is_it = |found: &&mut Found| found.ids.iter().any(|other| other == id.as_str());
        let Some(found) = self.found.iter_mut().find(is_it) else { return false };
        count(found, &mut self.counts);
        if !std::mem::replace(&mut self.followed, true) {
            self.counts.followed += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_counted_by_what_came_of_them() {
        let session = Session::new(Profile::new("a"));
        let hits = |names: &[&str]| {
            let ids = |name: &&str| name.split(' ').map(|name| format!("s/{name}")).collect::<Vec<_>>();
            names.iter().map(ids).collect::<Vec<_>>()
        };
        session.note_search("a", None, 0, hits(&["one", "two"]));
        session.note_described(&ToolId::new("s", "two"));
        session.note_described(&ToolId::new("s", "two"));
        session.note_executed(&ToolId::new("s", "two"));
        session.note_executed(&ToolId::new("s", "other"));
        session.note_search("a", None, 0, hits(&[]));
        session.note_search("a", None, 0, hits(&["three"]));
        let counts = session.search_counts();
        assert_eq!((counts.searches, counts.empty, counts.followed, counts.abandoned()), (3, 1, 1, 1));
        assert_eq!((counts.described, counts.described_then_executed, counts.executed), (1, 1, 1));
        assert_eq!(counts.executed_ranks[..3], [0, 1, 0]);
    }

    #[test]
    fn a_page_is_no_search_of_its_own_and_the_same_tool_elsewhere_follows_one() {
        let session = Session::new(Profile::new("a"));
        let hit = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        session.note_search("a", None, 0, [hit(&["s/one"]), hit(&["s/two", "t/two", "u/two"])]);
        session.note_search("a", None, 2, [hit(&["s/three"])]);
        session.note_search("a", None, 3, []);
        session.note_described(&ToolId::new("u", "two"));
        session.note_executed(&ToolId::new("u", "two"));
        session.note_executed(&ToolId::new("s", "three"));
        let counts = session.search_counts();
        assert_eq!((counts.searches, counts.empty, counts.followed, counts.abandoned()), (1, 0, 1, 0));
        assert_eq!((counts.described, counts.described_then_executed, counts.executed), (1, 1, 2));
        assert_eq!(counts.executed_ranks[..3], [0, 1, 1]);
    }

    fn hit(id: &str) -> [Vec<String>; 1] {
        [vec![id.to_owned()]]
    }

    #[test]
    fn a_search_that_starts_further_on_is_a_search_unless_it_goes_on_with_the_one_before() {
        let session = Session::new(Profile::new("a"));
        session.note_search("a", None, 1, hit("s/two"));
        session.note_described(&ToolId::new("s", "two"));
        let counts = session.search_counts();
        assert_eq!((counts.searches, counts.followed, counts.abandoned()), (1, 1, 0), "nothing is before it");
        session.note_search("b", None, 0, []);
        session.note_search("c", None, 1, hit("s/three"));
        session.note_executed(&ToolId::new("s", "three"));
        let counts = session.search_counts();
        assert_eq!((counts.searches, counts.empty, counts.followed, counts.abandoned()), (3, 1, 2, 0));
        session.note_search("d", None, 7, []);
        assert_eq!(session.search_counts().empty, 1, "what is before it is not known");
        session.note_search("c", Some("s"), 1, hit("s/four"));
        assert_eq!(session.search_counts().searches, 5, "of one server it is another");
        session.note_executed(&ToolId::new("s", "three"));
        assert_eq!(session.search_counts().executed, 1, "it is no tool of the last search");
    }

    #[test]
    fn what_was_seen_in_the_list_of_all_follows_no_search() {
        let session = Session::new(Profile::new("a"));
        session.note_search("a", None, 0, hit("s/one"));
        session.note_search("", None, 0, hit("s/one"));
        session.note_described(&ToolId::new("s", "one"));
        session.note_search("a", None, 1, hit("s/two"));
        let counts = session.search_counts();
        assert_eq!((counts.searches, counts.described, counts.followed, counts.abandoned()), (2, 0, 0, 2));
    }

    #[test]
    fn searches_are_told_apart_by_whether_a_tool_was_described() {
        let session = Session::new(Profile::new("a"));
        session.note_search("a", None, 0, [hit("s/one"), hit("s/two")].concat());
        session.note_described(&ToolId::new("s", "one"));
        session.note_described(&ToolId::new("s", "two"));
        session.note_search("b", None, 0, hit("s/one"));
        session.note_executed(&ToolId::new("s", "one"));
        session.note_search("c", None, 0, hit("s/one"));
        let counts = session.search_counts();
        assert_eq!((counts.searches, counts.described_searches, counts.followed), (3, 1, 2));
        assert_eq!((counts.described, counts.abandoned()), (2, 1));
    }
}
