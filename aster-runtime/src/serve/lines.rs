//! The lines of a client, without those that are no JSON: rmcp would drop such a line without a word, and its client would
//! wait for an answer.
//!
//! At most one of them is told of at a time, so that a client which writes nothing else is read no faster than it is
//! answered.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rmcp::ErrorData;
use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use serde_json::Value;
use tokio::io::{AsyncBufRead as _, AsyncRead, BufReader, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The longest line that rmcp takes, in bytes.
const LONGEST: usize = DEFAULT_MAX_LINE_LENGTH;

/// How much of a line's room is kept for the next one.
const KEPT: usize = 64 << 10;

/// What RFC 8259, section 8.1, lets a reader ignore.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A line that is no message, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("a line was longer than {} MiB and was left out", LONGEST >> 20)]
    TooLong,
    #[error(
        "a line was not JSON in UTF-8, or was nested more than 127 levels deep, and was left out; each message is one line"
    )]
    NoJson,
}

impl From<Unreadable> for ErrorData {
    fn from(unreadable: Unreadable) -> Self {
        Self::parse_error(unreadable.to_string(), None)
    }
}

/// The input of a served process, whole lines at a time. It says when it has ended: subscriptions end with it, and would
/// otherwise hold the process while rmcp waits for them to answer.
pub(super) struct Input<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// How much of the line has been passed on, once it is whole.
    passed: Option<usize>,
    /// Whether what comes is the rest of a line that is too long.
    discarding: bool,
    unreadable: mpsc::Sender<Unreadable>,
    ended: CancellationToken,
}

impl<R: AsyncRead> Input<R> {
    /// The lines of `input`, and what could not be read of it.
    pub(super) fn new(input: R, ended: CancellationToken) -> (Self, mpsc::Receiver<Unreadable>) {
        let (unreadable, told) = mpsc::channel(1);
        let (input, line) = (BufReader::new(input), Vec::new());
        (Self { input, line, passed: None, discarding: false, unreadable, ended }, told)
    }

    /// Takes a piece of a line, and says what is wrong with the line where that shows now.
    fn take(&mut self, piece: &[u8]) -> Option<Unreadable> {
        let whole = piece.ends_with(b"\n");
        if self.discarding {
            self.discarding = !whole;
            return None;
        }
        if self.line.len() + piece.len() > LONGEST {
            self.line = Vec::new();
            self.discarding = !whole;
            return Some(Unreadable::TooLong);
        }
        self.line.extend_from_slice(piece);
        if !whole {
            return None;
        }
        if is_readable(&self.line) {
            self.passed = Some(0);
            return None;
        }
        self.line.clear();
        Some(Unreadable::NoJson)
    }
}

/// Whether a line is empty, or JSON as far as rmcp can read it.
fn is_readable(line: &[u8]) -> bool {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    line.is_empty() || serde_json::from_slice::<Value>(line).is_ok()
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if let Some(passed) = this.passed {
                let rest = &this.line[passed..];
                let count = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..count]);
                this.passed = Some(passed + count).filter(|passed| *passed < this.line.len());
                if this.passed.is_none() {
                    this.line.clear();
                    this.line.shrink_to(KEPT);
                }
                return Poll::Ready(Ok(()));
            }
            let available = match ready!(Pin::new(&mut this.input).poll_fill_buf(context)) {
                Ok(available) if !available.is_empty() => available,
                ended => {
                    this.ended.cancel();
                    return Poll::Ready(ended.map(drop));
                }
            };
            let end = available.iter().position(|byte| *byte == b'\n').map_or(available.len(), |at| at + 1);
            let piece = available[..end].to_vec();
            Pin::new(&mut this.input).consume(end);
            if let Some(unreadable) = this.take(&piece) {
                // The one before has been taken by now: whoever reads on looks for it first.
                let _ = this.unreadable.try_send(unreadable);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}
