//! The chain that binds every record to the one before it, wherever they are kept. Pure: no file, no clock.
//!
//! A line is a record's JSON with four fields before its own: the chain and the segment it stands in, its number in the
//! chain, and the BLAKE3 of the line before it. So a line that was changed, taken out, put in or moved breaks the chain
//! there. A segment is a stretch of a chain that is dropped whole; the first line after it says what was dropped.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use blake3::Hash;
use serde::{Deserialize, Serialize};

/// When a segment ends, and how many are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// The bytes after which a segment ends. 64 MiB unless said.
    pub size: u64,
    /// The age of its first record at which a segment ends. Unless said, only its size ends one.
    pub age: Option<Duration>,
    /// How many ended segments of a chain are kept; older ones are dropped. Unless said, all are.
    pub keep: Option<u32>,
}

impl Default for Segments {
    fn default() -> Self {
        Self { size: 64 << 20, age: None, keep: None }
    }
}

/// Where a chain has got to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) chain: u32,
    pub(super) segment: u32,
    /// The number of the last line, from 1; 0 before the first.
    pub(super) sequence: u64,
    /// The digest of the last line.
    pub(super) digest: Option<Hash>,
    /// The bytes of the segment.
    pub(super) bytes: u64,
    /// When the segment's first line was written, in milliseconds since 1970.
    pub(super) since: i64,
}

impl Head {
    /// Before the first line.
    pub(super) fn new(chain: u32) -> Self {
        Self { chain, segment: 1, sequence: 0, digest: None, bytes: 0, since: 0 }
    }

    /// The next line, without a line feed, of an object that is not empty. The chain has not moved before
    /// [`advance`](Self::advance).
    pub(super) fn seal(&self, object: &[u8]) -> Vec<u8> {
        let (chain, segment, sequence) = (self.chain, self.segment, self.sequence + 1);
        let start =
            format!("{{\"chain\":{chain},\"segment\":{segment},\"sequence\":{sequence},\"previous\":");
        let mut line = Vec::with_capacity(start.len() + object.len() + 70);
        line.extend_from_slice(start.as_bytes());
        match &self.digest {
            Some(digest) => {
                line.push(b'"');
                line.extend_from_slice(digest.to_hex().as_bytes());
                line.push(b'"');
            }
            None => line.extend_from_slice(b"null"),
        }
        line.push(b',');
        line.extend_from_slice(object.get(1..).unwrap_or_default());
        line
    }

    /// The line is kept, at this time.
    pub(super) fn advance(&mut self, line: &[u8], now: i64) {
        if self.bytes == 0 {
            self.since = now;
        }
        self.sequence += 1;
        self.digest = Some(blake3::hash(line));
        self.bytes += line.len() as u64 + 1;
    }

    /// Whether the next line belongs in another segment.
    pub(super) fn is_full(&self, segments: &Segments, now: i64) -> bool {
        let old = segments.age.is_some_and(|age| {
            now.saturating_sub(self.since) >= i64::try_from(age.as_millis()).unwrap_or(i64::MAX)
        });
        self.bytes > 0 && (self.bytes >= segments.size || old)
    }

    /// Begins another segment.
    pub(super) fn next_segment(&mut self) {
        self.segment += 1;
        self.bytes = 0;
    }

    /// The place of the last line, where there is one.
    pub(super) fn known(&self) -> Option<Known> {
        Some(Known { segment: self.segment, sequence: self.sequence, digest: self.digest? })
    }
}

/// A line that is known to be in a chain: what is kept beside the chain, so that a tail cut off is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) segment: u32,
    pub(super) sequence: u64,
    pub(super) digest: Hash,
}

/// What a line says of itself. Everything else in it is passed over.
#[derive(Debug, Deserialize)]
pub(super) struct Link<'a> {
    pub(super) chain: u32,
    pub(super) segment: u32,
    pub(super) sequence: u64,
    #[serde(borrow)]
    previous: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) time: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) stage: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) outcome: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    note: Option<Cow<'a, str>>,
    #[serde(default)]
    bytes: Option<u64>,
    #[serde(default)]
    before: Option<u64>,
    #[serde(borrow, default)]
    digest: Option<Cow<'a, str>>,
}

impl<'a> Link<'a> {
    /// Reads a line; `None` where it is none of a chain.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let link: Self = serde_json::from_slice(line).ok()?;
        let hexadecimal = |text: &Cow<'_, str>| Hash::from_hex(&**text).is_ok();
        let right = link.sequence > 0 && link.previous.as_ref().is_none_or(hexadecimal);
        right.then_some(link)
    }

    /// The digest of the line before, as this one has it.
    pub(super) fn previous(&self) -> Option<Hash> {
        Hash::from_hex(&**self.previous.as_ref()?).ok()
    }

    /// When it was written, in milliseconds since 1970.
    pub(super) fn written(&self) -> Option<i64> {
        Some(self.time.as_ref()?.parse::<jiff::Timestamp>().ok()?.as_millisecond())
    }

    /// What the writer says of the chain itself.
    pub(super) fn note(&self) -> Option<Note> {
        let digest = Hash::from_hex(&**self.digest.as_ref()?).ok()?;
        match self.note.as_deref()? {
            "torn" => Some(Note::Torn { bytes: self.bytes?, digest }),
            "dropped" => Some(Note::Dropped { before: self.before?, digest }),
            _ => None,
        }
    }

    /// Whether it is a note and no record.
    pub(super) fn is_note(&self) -> bool {
        self.note.is_some()
    }
}

/// A line in which a writer says something of the chain itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// The bytes before this line, up to the line feed, are what a writer that was killed left of a line.
    Torn { bytes: u64, digest: Hash },
    /// What stood before the line of this number was dropped by retention; the digest is that of the last line of it.
    Dropped { before: u64, digest: Hash },
}

impl Note {
    /// The note as the object to seal.
    pub(super) fn object(&self, time: &str) -> Vec<u8> {
        #[derive(Serialize)]
        struct Written<'a> {
            time: &'a str,
            note: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            bytes: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            before: Option<u64>,
            digest: String,
        }
        let (note, bytes, before, digest) = match self {
            Self::Torn { bytes, digest } => ("torn", Some(*bytes), None, digest),
            Self::Dropped { before, digest } => ("dropped", None, Some(*before), digest),
        };
        let written = Written { time, note, bytes, before, digest: digest.to_hex().to_string() };
        // A struct of numbers and text is always writable.
        serde_json::to_vec(&written).unwrap_or_default()
    }
}

/// When a line was written, in milliseconds since 1970; 0 where that cannot be read.
pub(super) fn written(line: &[u8]) -> i64 {
    Link::parse(line).and_then(|link| link.written()).unwrap_or_default()
}

/// Tells which of several chains goes on first, by the times of their next lines.
#[derive(Debug, Default)]
pub(super) struct Merge {
    next: BinaryHeap<Reverse<(i64, usize)>>,
    /// What came last: a clock that was set back does not hold up the lines of a chain.
    last: i64,
}

impl Merge {
    /// The chain at this place goes on with a line of this time, if it goes on.
    pub(super) fn add(&mut self, at: usize, written: Option<i64>) {
        self.next.extend(written.map(|written| Reverse((written.max(self.last), at))));
    }

    /// The chain that goes on first.
    pub(super) fn first(&mut self) -> Option<usize> {
        let Reverse((written, at)) = self.next.pop()?;
        self.last = written;
        Some(at)
    }
}
