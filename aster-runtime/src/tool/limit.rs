//! A call's time limit, which stands still while the call waits for its client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
struct Clock {
    deadline: Option<Instant>,
    /// How long it has stood still in all, but for now.
    stood: Duration,
    /// How many questions are open, and since when there is one.
    open: usize,
    since: Option<Instant>,
}

impl Clock {
    /// How long it has been standing still now.
    fn standing(&self) -> Duration {
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline.and_then(|deadline| deadline.checked_add(self.standing()))
    }
}

#[derive(Debug, Default)]
struct Shared {
    clock: Mutex<Clock>,
    changed: Notify,
}

/// The limit, shared by all who look at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimeLimit(Arc<Shared>);

impl TimeLimit {
    pub(crate) fn until(deadline: Instant) -> Self {
        let clock = Mutex::new(Clock { deadline: Some(deadline), ..Clock::default() });
        Self(Arc::new(Shared { clock, ..Shared::default() }))
    }

    /// The deadline, if no more time were spent on waiting.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.clock().deadline()
    }

    /// How long the clock has stood still in all.
    pub(crate) fn stood(&self) -> Duration {
        let clock = self.clock();
        clock.stood + clock.standing()
    }

    /// The clock stands still while this is held.
    pub(crate) fn pause(&self) -> Pause {
        let mut clock = self.clock();
        clock.open += 1;
        clock.since.get_or_insert_with(Instant::now);
        self.0.changed.notify_waiters();
        Pause(self.clone())
    }

    /// Completes when the time is up.
    pub(crate) async fn passed(&self) {
        loop {
            // Hears of what happens from here on, so that no change is missed.
            let changed = self.0.changed.notified();
            let until = {
                let clock = self.clock();
                clock.deadline.filter(|_| clock.open == 0)
            };
            let up = async {
                match until {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = up => return,
                () = changed => {}
            }
        }
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds the clock.
#[derive(Debug)]
pub(crate) struct Pause(TimeLimit);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut clock = self.0.clock();
        clock.open -= 1;
        if clock.open == 0 {
            clock.deadline = clock.deadline();
            let standing = clock.standing();
            clock.stood += standing;
            clock.since = None;
        }
        self.0.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_while_anybody_waits() {
        let began = Instant::now();
        let limit = TimeLimit::until(began + Duration::from_secs(10));
        let passed = tokio::spawn({
            let limit = limit.clone();
            async move { limit.passed().await }
        });
        tokio::time::sleep(Duration::from_secs(4)).await;
        let (first, second) = (limit.pause(), limit.pause());
        tokio::time::sleep(Duration::from_secs(100)).await;
        drop(first);
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(!passed.is_finished());
        assert_eq!(limit.deadline(), Some(began + Duration::from_secs(210)));
        assert_eq!(limit.stood().as_secs(), 200);
        drop(second);
        passed.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 210);
        assert_eq!(limit.stood().as_secs(), 200);
    }
}
