//! One index for each distinct view, shared by all who see the same.

use std::cell::OnceCell;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::{Hit, Lexical, Ranker};
use crate::scope::View;

/// From so many tools on an index is made aside as soon as a session sees them; fewer cost the first search a few milliseconds.
const MANY: usize = 100;

/// Makes a ranking of a view. The second argument makes ours of the same view, from what an earlier one knows, for a ranking
/// that is [fused](super::Fused) with it.
///
/// It is called on a thread of its own, outside any runtime, and where it panicked again by the next search.
pub type MakeRanker = dyn Fn(&View, &dyn Fn() -> Arc<Lexical>) -> Arc<dyn Ranker> + Send + Sync;

/// The rankings of the views that someone holds. Views that show the same tools share one; a view that nobody holds any
/// longer has none.
#[derive(Default)]
pub struct Indexes {
    own: Option<Arc<MakeRanker>>,
    held: Mutex<Vec<Held>>,
}

struct Held {
    view: View,
    late: Weak<Late>,
}

impl fmt::Debug for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexes").field("own", &self.own.is_some()).finish_non_exhaustive()
    }
}

impl Indexes {
    /// Rankings of a host's own.
    #[must_use]
    pub fn of(make: Arc<MakeRanker>) -> Self {
        Self { own: Some(make), held: Mutex::default() }
    }

    /// The ranking of a view.
    ///
    /// A host's own, one of many tools, and one of a like view that has been searched are made aside, from what an earlier one
    /// knows; any other is made when it is first asked. Until one is there that is made aside, `last` answers in its place with
    /// what of it is still to be seen, where there is one and it finds something: the ranking of what the same session saw
    /// before. One that could not be made aside is made by who asks next.
    #[must_use]
    pub fn ranker(&self, view: &View, last: Option<&Current>) -> Current {
        let (late, aside) = self.late(view);
        let current = Arc::new(Meanwhile { late, last: Mutex::default() });
        // Of a few tools the next index is there as soon as the answer of the last would be.
        if self.own.is_some() || view.tools().len() >= MANY {
            let last = last.and_then(Current::made).filter(|last| !Arc::ptr_eq(last, &current.late));
            current.let_answer(last);
        }
        if aside {
            // What is made by a host is made where no lock is held: who wants another view does not wait for it.
            let aside = Aside(Arc::clone(&current.late));
            let make = move || aside.make();
            // Where there is no thread to be had, who first asks makes it.
            drop(std::thread::Builder::new().name("aster-index".to_owned()).spawn(make));
        }
        Current(current)
    }

    /// The ranking of a view, made or not, and whether it is now to be made aside.
    fn late(&self, view: &View) -> (Arc<Late>, bool) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|held| held.late.strong_count() > 0);
        let like = held.iter().filter(|held| held.view.shows_same(view)).find_map(|held| held.late.upgrade());
        if let Some(late) = like {
            return (late, false);
        }
        let made = held.iter().filter_map(|held| held.late.upgrade()).filter(|late| late.is_made());
        let before = made.max_by_key(|late| late.view.in_common(view));
        let aside = before.is_some() || view.tools().len() >= MANY || self.own.is_some();
        let late = Arc::new(Late {
            view: view.clone(),
            own: self.own.clone(),
            before: Mutex::new(before),
            made: OnceLock::new(),
            waiting: Mutex::new(aside.then(Vec::new)),
        });
        held.push(Held { view: view.clone(), late: Arc::downgrade(&late) });
        (late, aside)
    }
}

/// The ranking that a session has of what it sees now.
#[derive(Debug, Clone)]
pub struct Current(Arc<Meanwhile>);

impl Current {
    /// The one that is made: its own, or what answers for it.
    fn made(&self) -> Option<Arc<Late>> {
        if self.0.late.is_made() { Some(Arc::clone(&self.0.late)) } else { self.0.last() }
    }
}

impl Ranker for Current {
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        let Some(last) = self.0.stand_in() else { return self.0.late.rank(query, server, limit) };
        let mut depth = limit;
        loop {
            let found = last.rank(query, server, depth);
            let there_is_more = found.len() >= depth && depth < last.view.tools().len();
            let still_seen = |hit: Hit| Some(Hit { position: self.0.place(&last, hit.position)?, ..hit });
            let hits: Vec<Hit> = found.into_iter().filter_map(still_seen).take(limit).collect();
            if hits.is_empty() && !there_is_more {
                // What is new may match. An answer that found nothing can wait, and names the nearest words of the same tools.
                return self.0.late.rank(query, server, limit);
            }
            if hits.len() == limit || !there_is_more {
                return hits;
            }
            depth = depth.saturating_mul(2);
        }
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        let Some(last) = self.0.stand_in() else { return self.0.late.explain(query, position) };
        let id = self.0.late.view.tools()[position].id();
        let place = last.view.tools().binary_search_by(|tool| tool.id().cmp(id));
        place.map_or_else(|_| Vec::new(), |place| last.explain(query, place))
    }

    fn nearest(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<String> {
        // A word of a tool that is gone is none to offer, and an answer that found nothing can wait.
        self.0.late.nearest(query, server, limit)
    }
}

/// A ranking that may still be in the making, and the one before, which answers until then.
#[derive(Debug)]
struct Meanwhile {
    late: Arc<Late>,
    /// Let go of when the ranking is made, or could not be.
    last: Mutex<Option<Arc<Late>>>,
}

impl Meanwhile {
    /// Has `last` answer for as long as the ranking is made aside.
    fn let_answer(self: &Arc<Self>, last: Option<Arc<Late>>) {
        if let Some(waiting) = &mut *self.late.waiting() {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
            waiting.push(Arc::downgrade(self));
        }
    }

    fn last(&self) -> Option<Arc<Late>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What answers now in the place of the ranking; `None` where this one is made, or there is none before it.
    fn stand_in(&self) -> Option<Arc<Late>> {
        if self.late.is_made() { None } else { self.last() }
    }

    /// The place of a tool that the last ranking found in what is seen now, if it still is.
    fn place(&self, last: &Late, position: usize) -> Option<usize> {
        let id = last.view.tools()[position].id();
        self.late.view.tools().binary_search_by(|tool| tool.id().cmp(id)).ok()
    }
}

/// A ranking that is made when it is first needed: who calls what it knows never searches.
pub(super) struct Late {
    view: View,
    own: Option<Arc<MakeRanker>>,
    /// What it is made from; let go of when it is made.
    before: Mutex<Option<Arc<Late>>>,
    made: OnceLock<Made>,
    /// Those in whose place the last one answers; `None` where nobody makes it aside, or no longer.
    waiting: Mutex<Option<Vec<Weak<Meanwhile>>>>,
}

/// That a ranking is made aside. When this is dropped it is made or, after a panic, will not be: in either case nothing else
/// answers in its place any longer, and what did goes here and not where somebody waits for an answer.
struct Aside(Arc<Late>);

impl Aside {
    fn make(&self) {
        self.0.ranker();
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let waiting = self.0.waiting().take();
        for current in waiting.into_iter().flatten().filter_map(|current| current.upgrade()) {
            let last = current.last.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(last);
        }
    }
}

/// A ranking that is made.
struct Made {
    ranker: Arc<dyn Ranker>,
    /// Ours, if it is that or was asked for: the next is made from it.
    ours: Option<Arc<Lexical>>,
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("made", &self.is_made()).finish_non_exhaustive()
    }
}

impl Late {
    pub(super) fn new(view: &View) -> Self {
        Self {
            view: view.clone(),
            own: None,
            before: Mutex::default(),
            made: OnceLock::new(),
            waiting: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Vec<Weak<Meanwhile>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_made(&self) -> bool {
        self.made.get().is_some()
    }

    fn ranker(&self) -> &dyn Ranker {
        let made = self.made.get_or_init(|| {
            let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
            let before = before.as_ref().and_then(|before| before.made.get()?.ours.as_ref());
            let make =
                || Arc::new(before.map_or_else(|| Lexical::new(&self.view), |ours| ours.updated(&self.view)));
            let ours = OnceCell::new();
            let ranker: Arc<dyn Ranker> = match &self.own {
                Some(own) => own(&self.view, &|| Arc::clone(ours.get_or_init(make))),
                None => Arc::clone(ours.get_or_init(make)) as _,
            };
            Made { ranker, ours: ours.into_inner() }
        });
        &*made.ranker
    }
}

impl Ranker for Late {
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        self.ranker().rank(query, server, limit)
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        self.ranker().explain(query, position)
    }

    fn nearest(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<String> {
        self.ranker().nearest(query, server, limit)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::super::Fused;
    use super::super::tests::{part, view};
    use super::*;
    use crate::catalogue::{Catalogue, Part};
    use crate::scope::Scope;

    /// Nobody has searched when the index of many tools is made; that of a few waits for who does.
    #[test]
    fn many_tools_are_indexed_aside() {
        let names: Vec<String> = (0..MANY).map(|number| format!("tool_{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (many, few) = (view(&[("hub", &names)]), view(&[("hub", &names[1..])]));
        let indexes = Indexes::default();
        let held = [indexes.ranker(&many, None), indexes.ranker(&few, None)];
        let late = |view: &View| {
            let held = indexes.held.lock().unwrap();
            held.iter().find(|held| held.view.shows_same(view)).unwrap().late.upgrade().unwrap()
        };
        late(&many).made.wait();
        assert!(!late(&few).is_made());
        drop(held);
    }

    #[test]
    fn who_sees_the_same_shares_an_index_and_who_sees_other_tools_has_another() {
        let indexes = Indexes::default();
        let (one, other) =
            (view(&[("hub", &["create_issue"])]), view(&[("hub", &["create_issue", "list_issues"])]));
        let first = indexes.ranker(&one, None);
        let late = |of: &Current| Arc::clone(&of.0.late);
        assert!(Arc::ptr_eq(&late(&first), &late(&indexes.ranker(&one.clone(), None))));
        assert!(!Arc::ptr_eq(&late(&first), &late(&indexes.ranker(&other, None))));
        drop(first);
        let again = indexes.ranker(&other, None);
        assert_eq!(again.rank("list issues", None, 1)[0].position, 1);
    }

    /// While the next ranking is made the last one answers, but for what is no longer to be seen; and the next is made from ours.
    #[test]
    fn the_last_ranking_answers_until_the_next_is_made() {
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let make = move |view: &View, ours: &dyn Fn() -> Arc<Lexical>| -> Arc<dyn Ranker> {
            let ours = ours();
            if view.tools().iter().any(|tool| tool.id().tool() == "list_files") {
                begun.send(()).unwrap();
                may_go_on.lock().unwrap().recv().unwrap();
            }
            Arc::new(Fused::new(Arc::clone(&ours) as _, ours, 1.0))
        };
        let indexes = Indexes::of(Arc::new(make));
        let before = view(&[("disk", &["list_disks", "list_folders"]), ("hub", &["list_issues"])]);
        let after = view(&[("disk", &["list_files", "list_folders"]), ("hub", &["list_issues"])]);
        let first = indexes.ranker(&before, None);
        first.0.late.made.wait();
        let names = |current: &Current, view: &View, limit| {
            let hits = current.rank("list", None, limit);
            let mut names: Vec<_> =
                hits.iter().map(|hit| view.tools()[hit.position].id().tool().to_owned()).collect();
            names.sort();
            names
        };
        assert_eq!(names(&first, &before, 9), ["list_disks", "list_folders", "list_issues"]);
        let next = indexes.ranker(&after, Some(&first));
        has_begun.recv().unwrap();
        assert_eq!(names(&next, &after, 9), ["list_folders", "list_issues"]);
        assert_eq!(names(&next, &after, 2), ["list_folders", "list_issues"], "as many as are wanted");
        assert_eq!(next.explain("list issues", 2), ["list", "issues"]);
        assert!(next.explain("list", 0).is_empty(), "it is not known yet");
        drop(first);
        go_on.send(()).unwrap();
        next.0.late.made.wait();
        until("it is let go of, by whoever made the next", || next.0.last().is_none());
        assert_eq!(names(&next, &after, 9), ["list_files", "list_folders", "list_issues"]);
        assert!(next.0.late.made.get().unwrap().ours.is_some());
    }

    /// Else the answer would be that there is none, and that a word of its name is near.
    #[test]
    fn where_the_last_ranking_finds_nothing_the_next_is_waited_for() {
        #[derive(Debug)]
        struct Asked(mpsc::SyncSender<()>);
        impl Ranker for Asked {
            fn rank(&self, _: &str, _: Option<&str>, _: usize) -> Vec<Hit> {
                self.0.send(()).unwrap();
                Vec::new()
            }
        }
        let (asked, was_asked) = mpsc::sync_channel(9);
        let was_asked = Mutex::new(was_asked);
        let make = move |view: &View, _: &dyn Fn() -> Arc<Lexical>| -> Arc<dyn Ranker> {
            if view.tools().len() == 1 {
                return Arc::new(Asked(asked.clone()));
            }
            was_asked.lock().unwrap().recv().unwrap();
            Arc::new(Lexical::new(view))
        };
        let indexes = Indexes::of(Arc::new(make));
        let (before, after) = (view(&[("hub", &["a"])]), view(&[("hub", &["a", "create_invoice"])]));
        let first = indexes.ranker(&before, None);
        first.0.late.made.wait();
        let next = indexes.ranker(&after, Some(&first));
        assert_eq!(next.rank("invoice", None, 9).len(), 1);
    }

    /// Who looks at what there is, or calls it, need not search.
    #[test]
    fn a_hosts_ranking_is_made_aside() {
        let (made, made_by) = mpsc::channel();
        let make = move |view: &View, _: &dyn Fn() -> Arc<Lexical>| -> Arc<dyn Ranker> {
            made.send(std::thread::current().id()).unwrap();
            Arc::new(Lexical::new(view))
        };
        let indexes = Indexes::of(Arc::new(make));
        let current = indexes.ranker(&view(&[("hub", &["create_issue"])]), None);
        assert_ne!(made_by.recv().unwrap(), std::thread::current().id());
        assert_eq!(current.rank("issue", None, 9).len(), 1);
    }

    #[test]
    fn a_ranking_that_could_not_be_made_is_made_by_the_next_search() {
        let fails = std::sync::atomic::AtomicBool::new(true);
        let make = move |view: &View, _: &dyn Fn() -> Arc<Lexical>| -> Arc<dyn Ranker> {
            let fails = view.tools().len() == 2 && fails.swap(false, std::sync::atomic::Ordering::Relaxed);
            assert!(!fails, "the first time it fails");
            Arc::new(Lexical::new(view))
        };
        let indexes = Indexes::of(Arc::new(make));
        let (before, after) = (view(&[("hub", &["list_a"])]), view(&[("hub", &["list_a", "list_b"])]));
        let first = indexes.ranker(&before, None);
        first.0.late.made.wait();
        let next = indexes.ranker(&after, Some(&first));
        until("the last does not answer for ever", || next.0.last().is_none());
        assert_eq!(next.rank("list", None, 9).len(), 2);
    }

    /// Waits for what another thread is about to do.
    fn until(what: &str, is_so: impl Fn() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_index_is_made_from_the_one_that_shows_most_of_the_same() {
        let part =
            |name, tools: &[&str]| part(name, tools.iter().map(|tool| json!({"name": tool})).collect());
        let hub = part("hub", &["create_issue", "list_issues"]);
        let (disk, mail) = (part("disk", &["read_file"]), part("mail", &["send"]));
        let view = |parts: &[&Part]| Scope::default().view(&Catalogue::merge(parts.iter().copied()));
        let indexes = Indexes::default();
        let made = |view: &View| {
            let (late, _) = indexes.late(view);
            late.ranker();
            late
        };
        let (of_hub, _of_disk) = (made(&view(&[&hub])), made(&view(&[&disk])));
        let (of_both, _) = indexes.late(&view(&[&hub, &mail]));
        let before = of_both.before.lock().unwrap().take().unwrap();
        assert!(Arc::ptr_eq(&before, &of_hub), "and not the last");
    }

    /// While a host makes a ranking, which may take its time, sessions that see other tools get theirs.
    #[test]
    fn a_hosts_ranking_is_made_once_and_nobody_else_waits() {
        let (slow, quick) = (view(&[("hub", &["create_issue"])]), view(&[("disk", &["read_file"])]));
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let may_go_on = Mutex::new(may_go_on);
        let make = move |view: &View, _: &dyn Fn() -> Arc<Lexical>| -> Arc<dyn Ranker> {
            if view.tools()[0].id().server() == "hub" {
                begun.send(()).unwrap();
                may_go_on.lock().unwrap().recv().unwrap();
            }
            Arc::new(Lexical::new(view))
        };
        let indexes = Indexes::of(Arc::new(make));
        std::thread::scope(|threads| {
            let search = || {
                let current = indexes.ranker(&slow, None);
                current.rank("issue", None, 1);
                current
            };
            let slow = [(), ()].map(|()| threads.spawn(search));
            has_begun.recv().unwrap();
            assert_eq!(indexes.ranker(&quick, None).rank("read", None, 1).len(), 1);
            go_on.send(()).unwrap();
            let [one, other] = slow.map(|thread| thread.join().unwrap());
            assert!(Arc::ptr_eq(&one.0.late, &other.0.late));
        });
        assert!(has_begun.try_recv().is_err(), "made once");
    }
}
