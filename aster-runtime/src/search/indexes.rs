//! One index for each distinct view, shared by all who see the same.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::{Hit, Lexical, Ranker};
use crate::scope::View;

/// From so many tools on an index is made aside as soon as a session sees them; fewer cost the first search a few milliseconds.
const MANY: usize = 100;

/// Makes a ranking of a view.
pub type MakeRanker = dyn Fn(&View) -> Arc<dyn Ranker> + Send + Sync;

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

    /// The ranking of a view. A host's own is made at once. Of ours, where there are many tools, or an index of a like view
    /// has been used, it is made at once and aside, from what the other knows; else it is made when it is first asked.
    #[must_use]
    pub fn ranker(&self, view: &View) -> Arc<dyn Ranker> {
        let (late, aside) = self.late(view);
        // What is made is made here, where no lock is held: who wants another view does not wait for it.
        if self.own.is_some() {
            late.ranker();
        } else if aside {
            let late = Arc::clone(&late);
            // Who searches meanwhile waits for the same index. Where there is no thread to be had, they make it.
            let make = move || {
                late.ranker();
            };
            drop(std::thread::Builder::new().name("aster-index".to_owned()).spawn(make));
        }
        late
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
        let aside = before.is_some() || view.tools().len() >= MANY;
        let late = Arc::new(Late {
            view: view.clone(),
            own: self.own.clone(),
            before: Mutex::new(before),
            made: OnceLock::new(),
        });
        held.push(Held { view: view.clone(), late: Arc::downgrade(&late) });
        (late, aside)
    }
}

/// A ranking that is made when it is first needed: who calls what it knows never searches.
pub(super) struct Late {
    view: View,
    own: Option<Arc<MakeRanker>>,
    /// What it is made from; let go of when it is made.
    before: Mutex<Option<Arc<Late>>>,
    made: OnceLock<Made>,
}

#[derive(Debug)]
enum Made {
    Ours(Box<Lexical>),
    Own(Arc<dyn Ranker>),
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("made", &self.made).finish_non_exhaustive()
    }
}

impl Late {
    pub(super) fn new(view: &View) -> Self {
        Self { view: view.clone(), own: None, before: Mutex::default(), made: OnceLock::new() }
    }

    fn is_made(&self) -> bool {
        self.made.get().is_some()
    }

    fn ranker(&self) -> &dyn Ranker {
        let made = self.made.get_or_init(|| {
            let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
            match (&self.own, before.as_ref().and_then(|before| before.made.get())) {
                (Some(make), _) => Made::Own(make(&self.view)),
                (None, Some(Made::Ours(before))) => Made::Ours(Box::new(before.updated(&self.view))),
                (None, _) => Made::Ours(Box::new(Lexical::new(&self.view))),
            }
        });
        match made {
            Made::Ours(ranker) => &**ranker,
            Made::Own(ranker) => &**ranker,
        }
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

    use serde_json::json;

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
        let held = [indexes.ranker(&many), indexes.ranker(&few)];
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
        let first = indexes.ranker(&one);
        assert!(Arc::ptr_eq(&first, &indexes.ranker(&one.clone())));
        assert!(!Arc::ptr_eq(&first, &indexes.ranker(&other)));
        drop(first);
        let again = indexes.ranker(&other);
        assert_eq!(again.rank("list issues", None, 1)[0].position, 1);
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
        let make = move |view: &View| -> Arc<dyn Ranker> {
            if view.tools()[0].id().server() == "hub" {
                begun.send(()).unwrap();
                may_go_on.lock().unwrap().recv().unwrap();
            }
            Arc::new(Lexical::new(view))
        };
        let indexes = Indexes::of(Arc::new(make));
        std::thread::scope(|threads| {
            let slow = [(), ()].map(|()| threads.spawn(|| indexes.ranker(&slow)));
            has_begun.recv().unwrap();
            assert_eq!(indexes.ranker(&quick).rank("read", None, 1).len(), 1);
            go_on.send(()).unwrap();
            let [one, other] = slow.map(|thread| thread.join().unwrap());
            assert!(Arc::ptr_eq(&one, &other));
        });
        assert!(has_begun.try_recv().is_err(), "made once");
    }
}
