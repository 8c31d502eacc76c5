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
    ranker: Weak<dyn Ranker>,
    late: Option<Weak<Late>>,
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

    /// The ranking of a view. Where there are many tools, or an index of a like view has been used, it is made at once and
    /// aside, from what the other knows; else it is made when it is first asked.
    #[must_use]
    pub fn ranker(&self, view: &View) -> Arc<dyn Ranker> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|held| held.ranker.strong_count() > 0);
        if let Some(ranker) =
            held.iter().filter(|held| held.view.shows_same(view)).find_map(|held| held.ranker.upgrade())
        {
            return ranker;
        }
        if let Some(make) = &self.own {
            let ranker = make(view);
            held.push(Held { view: view.clone(), ranker: Arc::downgrade(&ranker), late: None });
            return ranker;
        }
        let before =
            held.iter().rev().filter_map(|held| held.late.as_ref()?.upgrade()).find(|late| late.is_made());
        let aside = before.is_some() || view.tools().len() >= MANY;
        let late = Arc::new(Late { view: view.clone(), before: Mutex::new(before), index: OnceLock::new() });
        if aside {
            let late = Arc::clone(&late);
            // Who searches meanwhile waits for the same index. Where there is no thread to be had, they make it.
            let index = move || {
                late.index();
            };
            drop(std::thread::Builder::new().name("aster-index".to_owned()).spawn(index));
        }
        let ranker: Arc<dyn Ranker> = Arc::clone(&late) as Arc<dyn Ranker>;
        held.push(Held {
            view: view.clone(),
            ranker: Arc::downgrade(&ranker),
            late: Some(Arc::downgrade(&late)),
        });
        ranker
    }
}

/// An index that is made when it is first needed: who calls what it knows never searches.
#[derive(Debug)]
pub(super) struct Late {
    view: View,
    /// What it is made from; let go of when it is made.
    before: Mutex<Option<Arc<Late>>>,
    index: OnceLock<Lexical>,
}

impl Late {
    pub(super) fn new(view: &View) -> Self {
        Self { view: view.clone(), before: Mutex::default(), index: OnceLock::new() }
    }

    fn is_made(&self) -> bool {
        self.index.get().is_some()
    }

    fn index(&self) -> &Lexical {
        self.index.get_or_init(|| {
            let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
            match before.as_ref().and_then(|before| before.index.get()) {
                Some(before) => before.updated(&self.view),
                None => Lexical::new(&self.view),
            }
        })
    }
}

impl Ranker for Late {
    fn rank(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        self.index().rank(query, server, limit)
    }

    fn explain(&self, query: &str, position: usize) -> Vec<String> {
        self.index().explain(query, position)
    }

    fn nearest(&self, query: &str, limit: usize) -> Vec<String> {
        self.index().nearest(query, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::view;
    use super::*;

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
            held.iter()
                .find(|held| held.view.shows_same(view))
                .unwrap()
                .late
                .as_ref()
                .unwrap()
                .upgrade()
                .unwrap()
        };
        late(&many).index.wait();
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
}
