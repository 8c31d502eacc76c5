//! Gathers the records of calls that are made at once, so that they are written in one go.
//!
//! A record that comes alone is written where it comes. Once two have met at the writer, each lets the calls that are ready
//! put theirs beside it, and whichever is polled first writes all that wait. None is left behind: a future that is dropped
//! writes what it waited for.

use std::fmt;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll};

use super::{Commit, Stage};

/// What keeps records.
pub(super) trait Keep {
    /// Keeps these in their order, and tells each whether it [is](Taken::is_kept).
    fn keep(&mut self, records: &[Arc<Taken>]);
}

/// A record that was taken over.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) stage: Stage,
    /// Its JSON.
    pub(super) object: Vec<u8>,
    kept: Mutex<Option<io::Result<()>>>,
}

impl Taken {
    pub(super) fn is_kept(&self, kept: io::Result<()>) {
        *locked(&self.kept) = Some(kept);
    }
}

/// A keeper, and the records that wait for it.
pub(super) struct Gather<K> {
    /// In the order in which they came.
    waiting: Mutex<Vec<Arc<Taken>>>,
    keeper: Mutex<K>,
    /// Records have met, so that it pays to wait for others.
    is_crowded: AtomicBool,
    /// How many were not kept when nobody waited any more.
    lost: AtomicU64,
}

impl<K: Keep> Gather<K> {
    pub(super) fn new(keeper: K) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            keeper: Mutex::new(keeper),
            is_crowded: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        })
    }

    /// How many records were not kept when nobody waited any more.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Keeps a record before it returns, and with it all that wait.
    pub(super) fn write(&self, stage: Stage, object: Vec<u8>) -> io::Result<()> {
        let record = self.take(stage, object);
        self.settle(self.keeper(), &record)
    }

    /// The keeper, once all that was taken over before is kept.
    pub(super) fn settled(&self) -> MutexGuard<'_, K> {
        let mut keeper = self.keeper();
        self.keep_waiting(&mut keeper);
        keeper
    }

    fn take(&self, stage: Stage, object: Vec<u8>) -> Arc<Taken> {
        let record = Arc::new(Taken { stage, object, kept: Mutex::new(None) });
        locked(&self.waiting).push(Arc::clone(&record));
        record
    }

    fn settle(&self, mut keeper: MutexGuard<'_, K>, record: &Taken) -> io::Result<()> {
        if locked(&record.kept).is_none() {
            self.keep_waiting(&mut keeper);
        }
        let unknown = || Err(io::Error::other("whether it is kept is not known"));
        locked(&record.kept).take().unwrap_or_else(unknown)
    }

    /// Keeps all that wait. Whoever calls this has the keeper, so that they are kept in their order.
    fn keep_waiting(&self, keeper: &mut K) {
        let records = mem::take(&mut *locked(&self.waiting));
        self.is_crowded.store(records.len() > 1, Ordering::Relaxed);
        if !records.is_empty() {
            keeper.keep(&records);
        }
    }

    fn keeper(&self) -> MutexGuard<'_, K> {
        locked(&self.keeper)
    }
}

impl<K: Keep + Send + 'static> Gather<K> {
    /// Takes a record over, to be kept with those of the calls that are ready now.
    pub(super) fn commit(self: &Arc<Self>, stage: Stage, object: Vec<u8>) -> Commit {
        let record = self.take(stage, object);
        if !self.is_crowded.load(Ordering::Relaxed) {
            match self.keeper.try_lock() {
                Ok(keeper) => return Commit::Done(self.settle(keeper, &record)),
                Err(TryLockError::Poisoned(poisoned)) => {
                    return Commit::Done(self.settle(poisoned.into_inner(), &record));
                }
                Err(TryLockError::WouldBlock) => self.is_crowded.store(true, Ordering::Relaxed),
            }
        }
        Commit::Pending(Box::pin(Waiting { gather: Arc::clone(self), record: Some(record), polled: false }))
    }
}

impl<K> fmt::Debug for Gather<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").finish_non_exhaustive()
    }
}

/// A record that waits for others.
struct Waiting<K: Keep> {
    gather: Arc<Gather<K>>,
    record: Option<Arc<Taken>>,
    polled: bool,
}

impl<K: Keep> Waiting<K> {
    fn settle(&mut self) -> io::Result<()> {
        let Some(record) = self.record.take() else { return Ok(()) };
        if let Some(kept) = locked(&record.kept).take() {
            return kept;
        }
        self.gather.settle(self.gather.keeper(), &record)
    }
}

impl<K: Keep> Future for Waiting<K> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !mem::replace(&mut self.polled, true) {
            // Behind all that are ready.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.settle())
    }
}

impl<K: Keep> Drop for Waiting<K> {
    fn drop(&mut self) {
        if let Err(error) = self.settle() {
            tracing::error!(%error, "a record of the audit is lost, for which nobody waited any more");
            self.gather.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use futures_util::FutureExt as _;

    use super::*;

    /// Keeps the numbers that records are, and in how many goes. Odd ones are refused.
    #[derive(Debug, Default, PartialEq)]
    struct Numbers {
        kept: Vec<u8>,
        goes: usize,
    }

    impl Keep for Numbers {
        fn keep(&mut self, records: &[Arc<Taken>]) {
            self.goes += 1;
            for record in records {
                let number = record.object[0];
                if number % 2 == 0 {
                    self.kept.push(number);
                    record.is_kept(Ok(()));
                } else {
                    record.is_kept(Err(io::Error::other(number.to_string())));
                }
            }
        }
    }

    fn commit(gather: &Arc<Gather<Numbers>>, number: u8) -> Commit {
        gather.commit(Stage::Intent, vec![number])
    }

    /// A gathering at which records have met: those of these numbers wait.
    fn crowded(numbers: &[u8]) -> (Arc<Gather<Numbers>>, Vec<Commit>) {
        let gather = Gather::new(Numbers::default());
        let keeper = gather.keeper();
        let waiting = numbers.iter().map(|number| commit(&gather, *number)).collect();
        drop(keeper);
        (gather, waiting)
    }

    fn poll(commit: &mut Commit) -> Poll<io::Result<()>> {
        Pin::new(commit).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_comes_alone_does_not_wait() {
        let gather = Gather::new(Numbers::default());
        for number in [2, 4] {
            assert!(matches!(commit(&gather, number), Commit::Done(Ok(()))));
        }
        assert_eq!(*gather.keeper(), Numbers { kept: vec![2, 4], goes: 2 });
    }

    #[test]
    fn those_who_wait_are_kept_in_one_go_and_each_hears_its_own() {
        let (gather, mut waiting) = crowded(&[2, 3, 4, 5]);
        for commit in &mut waiting {
            assert!(poll(commit).is_pending());
        }
        let heard = waiting.into_iter().map(|commit| match commit.now_or_never() {
            Some(kept) => kept.map_err(|error| error.to_string()),
            None => Err("it waits".to_owned()),
        });
        let heard: Vec<_> = heard.collect();
        assert_eq!(heard, [Ok(()), Err("3".to_owned()), Ok(()), Err("5".to_owned())]);
        assert_eq!(*gather.keeper(), Numbers { kept: vec![2, 4], goes: 1 });
        // Still many, so the next waits too; and then it was alone.
        let next = commit(&gather, 6);
        assert!(matches!(next, Commit::Pending(_)));
        drop(next);
        assert!(matches!(commit(&gather, 8), Commit::Done(Ok(()))));
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_kept_in_its_place_or_counted() {
        let (gather, mut waiting) = crowded(&[2, 4, 5, 6]);
        assert!(poll(&mut waiting[1]).is_pending());
        waiting.clear();
        assert_eq!((gather.keeper().kept.as_slice(), gather.lost()), (&[2, 4, 6][..], 1));
    }

    #[test]
    fn who_cannot_wait_is_kept_behind_those_who_do() {
        let (gather, mut waiting) = crowded(&[2, 4]);
        gather.write(Stage::Outcome, vec![6]).unwrap();
        assert_eq!(gather.settled().kept, [2, 4, 6]);
        assert!(poll(&mut waiting[0]).is_pending());
        assert!(matches!(poll(&mut waiting[0]), Poll::Ready(Ok(()))));
        assert_eq!(gather.keeper().goes, 1);
    }
}
