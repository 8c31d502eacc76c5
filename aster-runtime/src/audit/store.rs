//! Reading an audit back, whatever keeps it.

use std::io;
use std::path::PathBuf;

use super::chain::Link;
use super::jsonl::{Found, Reader};
use super::verify::Verifier;
use super::{Record, Verification, VerifiedChain};

/// An audit to read: the records that all processes have written to it.
///
/// ```
/// use std::sync::Arc;
/// use aster_runtime::audit::{JsonLines, Store};
/// use aster_runtime::{CallOptions, Host, Profile, catalogue, mcp_tool};
///
/// /// Tells the answer.
/// #[mcp_tool(tier = Standard, server = "deep")]
/// fn answer() -> u8 {
///     42
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("audit.jsonl");
/// let audit = Arc::new(JsonLines::open(&path)?);
/// let host = Host::builder().catalogue(catalogue![answer::TOOL]).audit(audit).build().await?;
/// host.session(Profile::new("a"))?.execute("deep/answer", Default::default(), CallOptions::default()).await;
///
/// let mut store = Store::json_lines(&path);
/// let mut stages = Vec::new();
/// store.read(|entry| stages.extend(entry.record().map(|record| record.stage))).await?;
/// assert_eq!(stages.len(), 2);
/// let verified = Store::json_lines(&path).verify().await?;
/// assert!(verified.is_intact() && verified.calls == 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Store(Kept);

#[derive(Debug)]
enum Kept {
    Lines(Reader),
    #[cfg(feature = "sql")]
    Sql(super::sql::Reader),
}

/// One line of an audit.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    line: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The line as it was written, the chain's fields before the record's.
    #[must_use]
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The record; `None` where the line is a note of the writer on its chain, or cannot be read.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        serde_json::from_slice(self.line).ok()
    }

    /// When it was written, in milliseconds since 1970.
    #[must_use]
    pub fn written(&self) -> Option<i64> {
        Link::parse(self.line)?.written()
    }
}

impl Store {
    /// What [`JsonLines`](super::JsonLines) wrote to this path: its segments, and those of other processes beside it.
    #[must_use]
    pub fn json_lines(path: impl Into<PathBuf>) -> Self {
        Self(Kept::Lines(Reader::new(&path.into())))
    }

    /// What [`Sql`](super::Sql) wrote to this SQLite database.
    #[cfg(feature = "sql")]
    #[must_use]
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self(Kept::Sql(super::sql::Reader::sqlite(path.into())))
    }

    /// What [`Sql`](super::Sql) wrote to the PostgreSQL database at this URL.
    ///
    /// # Errors
    ///
    /// Where the URL cannot be read.
    #[cfg(feature = "sql")]
    pub fn postgres(url: &str) -> io::Result<Self> {
        Ok(Self(Kept::Sql(super::sql::Reader::postgres(url)?)))
    }

    /// Passes every entry that this value has not passed before: chain by chain, those of a chain in order.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub async fn read(&mut self, mut visit: impl FnMut(Entry<'_>)) -> io::Result<()> {
        match &mut self.0 {
            Kept::Lines(reader) => reader.read(|_, found| {
                if let Found::Line(line) = found {
                    visit(Entry { line });
                }
            }),
            #[cfg(feature = "sql")]
            Kept::Sql(reader) => reader.read(|_, line| visit(Entry { line })).await,
        }
    }

    /// Passes every entry that this value has not passed before, those of all chains by the time at which they were written:
    /// what several processes wrote, as it happened. No more is held in memory than the next entries of each chain.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub async fn read_by_time(&mut self, mut visit: impl FnMut(Entry<'_>)) -> io::Result<()> {
        match &mut self.0 {
            Kept::Lines(reader) => reader.read_by_time(|line| visit(Entry { line })),
            #[cfg(feature = "sql")]
            Kept::Sql(reader) => reader.read_by_time(|line| visit(Entry { line })).await,
        }
    }

    /// Reads everything and says whether it is what was written, and whether every call that was dispatched has its intent.
    ///
    /// A chain shows what was changed in it, taken out of it or put into it. It cannot show that whoever may write to the store
    /// has made it anew, or has cut off lines at its end that were written since its head was noted; that is seen by who
    /// keeps an earlier verification elsewhere, and asks [`verify_against`](Self::verify_against) it.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub async fn verify(self) -> io::Result<Verification> {
        self.verify_against(&[]).await
    }

    /// The same, and whether the chains still have what an earlier verification found at their ends.
    ///
    /// # Errors
    ///
    /// Where the store cannot be read.
    pub async fn verify_against(self, before: &[VerifiedChain]) -> io::Result<Verification> {
        match self.0 {
            Kept::Lines(mut reader) => {
                let mut verifier = Verifier::new(reader.heads()?, before);
                reader.read(|place, found| match found {
                    Found::Line(line) => verifier.line(place, line),
                    Found::Torn => verifier.torn(place),
                })?;
                Ok(verifier.finish())
            }
            #[cfg(feature = "sql")]
            Kept::Sql(mut reader) => {
                let mut verifier = Verifier::new(reader.heads().await?, before);
                reader.read(|place, line| verifier.line(place, line)).await?;
                Ok(verifier.finish())
            }
        }
    }
}
