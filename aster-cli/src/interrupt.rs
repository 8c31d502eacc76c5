//! Ctrl-C, and the signal with which clients and service managers end a process.

use tokio_util::sync::CancellationToken;

/// A token that is cancelled when the process is told to end. From this call on the signals themselves end nothing.
#[cfg(unix)]
pub(crate) fn token() -> CancellationToken {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    let token = CancellationToken::new();
    // Registered before anything is started, so that no signal finds it missing.
    let watch = |kind| signal(kind).ok().map(|signal: Signal| (signal, token.clone()));
    for (mut signal, token) in
        [SignalKind::interrupt(), SignalKind::terminate()].into_iter().filter_map(watch)
    {
        tokio::spawn(async move {
            signal.recv().await;
            token.cancel();
        });
    }
    token
}

/// A token that is cancelled when the process is told to end. From this call on the signals themselves end nothing.
#[cfg(not(unix))]
pub(crate) fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            cancelled.cancel();
        }
    });
    token
}
