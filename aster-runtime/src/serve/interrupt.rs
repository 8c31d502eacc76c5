//! Ctrl-C, and the signal with which clients and service managers end a process.

use tokio_util::sync::CancellationToken;

/// What the signals ask for: Ctrl-C and, on Unix, SIGTERM.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    /// Cancelled by the first: to end, and to clean up.
    pub stop: CancellationToken,
    /// Cancelled by the second: to end at once.
    pub now: CancellationToken,
}

impl Interrupt {
    /// Begins to listen. From this call on the signals themselves end nothing. Needs a tokio runtime.
    #[must_use]
    #[cfg(unix)]
    pub fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        let interrupt = Self::default();
        // Registered before anything is started, so that no signal finds it missing.
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        for mut signal in kinds.into_iter().filter_map(|kind| signal(kind).ok()) {
            let interrupt = interrupt.clone();
            tokio::spawn(async move {
                while signal.recv().await.is_some() {
                    interrupt.heard();
                }
            });
        }
        interrupt
    }

    /// Begins to listen. From this call on the signals themselves end nothing. Needs a tokio runtime.
    #[must_use]
    #[cfg(not(unix))]
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let heard = interrupt.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                heard.heard();
            }
        });
        interrupt
    }

    fn heard(&self) {
        if self.stop.is_cancelled() {
            self.now.cancel();
        }
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_signal_means_now() {
        let interrupt = Interrupt::default();
        interrupt.heard();
        assert!(interrupt.stop.is_cancelled() && !interrupt.now.is_cancelled());
        interrupt.heard();
        assert!(interrupt.now.is_cancelled());
    }
}
