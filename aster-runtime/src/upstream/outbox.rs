//! What is on its way to a server's standard input.
//!
//! A line is written where it is sent, which spares a call the wake-up of a task. Where many calls are open at once, and
//! for what the pipe does not take, that task writes, all that waits in one go.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::raw::Tap;

/// How much may wait for the server to read it before it counts as one that does not, in bytes.
const MAX_UNREAD: usize = 32 << 20;

/// How much room is kept from one write to the next, in bytes.
const KEPT: usize = 16 << 10;

/// The writing end of a connection. Dropping it closes the pipe, even where a write to it is stuck.
pub(super) struct Outbox {
    shared: Arc<Shared>,
    writer: AbortHandle,
}

struct Shared {
    tap: Arc<Tap>,
    pipe: Mutex<Pipe>,
    /// Something waits.
    waits: Notify,
}

struct Pipe {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    waiting: Vec<u8>,
    /// How much of `waiting` is written.
    written: usize,
}

impl Outbox {
    /// The end of a connection through which lines go out in the order in which they were sent.
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static, tap: Arc<Tap>) -> Arc<Self> {
        let pipe = Pipe { writer: Box::new(writer), waiting: Vec::new(), written: 0 };
        let shared = Arc::new(Shared { tap, pipe: Mutex::new(pipe), waits: Notify::new() });
        let writer = tokio::spawn(write(Arc::clone(&shared))).abort_handle();
        Arc::new(Self { shared, writer })
    }

    /// Writes a line, or as much of it as the pipe takes now; the rest follows on its own. One of `many` waits for the
    /// others.
    ///
    /// # Errors
    ///
    /// Where the pipe is closed or the server does not read it; the connection has then ended.
    pub(super) fn send(&self, line: &[u8], many: bool) -> io::Result<()> {
        let mut pipe = self.shared.pipe();
        if !pipe.waiting.is_empty() {
            return pipe.wait(line).inspect_err(|_| {
                self.shared.tap.fail("it does not read its standard input".to_owned());
            });
        }
        pipe.waiting.extend_from_slice(line);
        if many {
            self.shared.waits.notify_one();
            return Ok(());
        }
        match pipe.poll_write(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(written) => self.shared.ended(written),
            Poll::Pending => {
                self.shared.waits.notify_one();
                Ok(())
            }
        }
    }

    /// Closes the pipe.
    pub(super) fn close(&self) {
        self.writer.abort();
        let mut pipe = self.shared.pipe();
        pipe.writer = Box::new(tokio::io::sink());
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn pipe(&self) -> MutexGuard<'_, Pipe> {
        self.pipe.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pipe that takes nothing more ends the connection; why is to be seen from the process.
    fn ended(&self, written: io::Result<()>) -> io::Result<()> {
        written.inspect_err(|_| self.tap.end())
    }
}

impl Pipe {
    fn wait(&mut self, line: &[u8]) -> io::Result<()> {
        if self.waiting.len() - self.written > MAX_UNREAD {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Moved only when as much has been written as is moved.
        if self.written > self.waiting.len() / 2 {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        self.waiting.extend_from_slice(line);
        Ok(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.waiting.len() {
            let written =
                ready!(Pin::new(&mut self.writer).poll_write(context, &self.waiting[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        ready!(Pin::new(&mut self.writer).poll_flush(context))?;
        self.waiting.clear();
        self.waiting.shrink_to(KEPT);
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

async fn write(shared: Arc<Shared>) {
    loop {
        shared.waits.notified().await;
        let written = poll_fn(|context| shared.pipe().poll_write(context)).await;
        if shared.ended(written).is_err() {
            return;
        }
    }
}
