//! The process that started this one, and its death.

#[cfg(unix)]
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How often is looked whether the parent still lives.
#[cfg(unix)]
const CHECK: Duration = Duration::from_millis(500);

/// The process that started this one. A client's death commonly ends the input of its server too, but not where another
/// process holds the other end of the pipe.
#[derive(Debug, Clone, Copy)]
pub struct Parent(#[cfg(unix)] u32);

impl Parent {
    /// The parent as it is now; best asked first of all, since it may die while much is being started.
    #[must_use]
    pub fn current() -> Self {
        #[cfg(unix)]
        return Self(std::os::unix::process::parent_id());
        #[cfg(not(unix))]
        return Self();
    }

    /// Cancels `stop` when the parent has died. On systems other than Unix it never does. Needs a tokio runtime.
    pub fn cancel_at_death(self, stop: CancellationToken) {
        tokio::spawn(async move {
            self.death().await;
            stop.cancel();
        });
    }

    async fn death(self) {
        // No system tells of it in a way that safe code can listen to everywhere; but an orphan gets another parent.
        #[cfg(unix)]
        while std::os::unix::process::parent_id() == self.0 {
            tokio::time::sleep(CHECK).await;
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}
