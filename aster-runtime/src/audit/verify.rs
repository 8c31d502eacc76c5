//! Verification: whether a chain is whole, and every call that was dispatched has its intent.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use blake3::Hash;
use serde::{Deserialize, Serialize};

use super::chain::{Known, Link, Note};

/// How long, in milliseconds, a record may wait for its place after it was given its time.
const WAIT: i64 = 1000;

/// How many findings are told; a file of something else would be one a line.
const FINDINGS: usize = 100;

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// The chains.
    pub chains: Vec<VerifiedChain>,
    /// The lines that are records.
    pub records: u64,
    /// The calls of which there is an outcome.
    pub calls: u64,
    /// The calls of which there is an intent and no outcome: they run still, or their process was killed.
    pub unfinished: u64,
    /// Lines that a writer did not finish, because it was killed or is still writing; they are no sign of tampering.
    pub torn: Vec<String>,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// How many findings there are beyond those.
    pub more_findings: u64,
}

impl Verification {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }
}

/// One chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifiedChain {
    /// Its number.
    pub chain: u32,
    /// The number of the first line that is there; above 1 where retention has dropped others.
    pub first: u64,
    /// The number of the last line.
    pub last: u64,
    /// The segments that are there.
    pub segments: u32,
    /// The digest of the last line. Whoever keeps it elsewhere knows later that nothing before it was changed.
    pub digest: String,
}

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The file or table, with the number of the line where there is one.
    pub place: String,
    /// What is wrong.
    #[serde(flatten)]
    pub fault: Fault,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// The line cannot be read as one of a chain.
    Unreadable,
    /// The line of this number is not the one that was written.
    Changed {
        /// The chain.
        chain: u32,
        /// The number of the line.
        sequence: u64,
    },
    /// These lines are gone.
    Missing {
        /// The chain.
        chain: u32,
        /// The number of the first.
        first: u64,
        /// The number of the last.
        last: u64,
    },
    /// The line does not belong where it stands: it was put in, moved or written twice.
    Misplaced {
        /// The chain.
        chain: u32,
        /// The number it gives itself.
        sequence: u64,
    },
    /// The call was dispatched, and nothing said so before.
    NoIntent {
        /// The call.
        call_id: String,
    },
    /// The call has several outcomes, or several intents.
    Repeated {
        /// The call.
        call_id: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match &self.fault {
            Fault::Unreadable => write!(f, "the line cannot be read"),
            Fault::Changed { sequence, .. } => write!(f, "record {sequence} is not the one that was written"),
            Fault::Missing { first, last, .. } if first == last => write!(f, "record {first} is gone"),
            Fault::Missing { first, last, .. } => write!(f, "records {first} to {last} are gone"),
            Fault::Misplaced { sequence, .. } => {
                write!(f, "record {sequence} was put in or moved: it does not follow the one before it")
            }
            Fault::NoIntent { call_id } => {
                write!(f, "call {call_id} was dispatched without a record of the intent")
            }
            Fault::Repeated { call_id } => write!(f, "call {call_id} is recorded twice"),
        }
    }
}

/// Reads the lines of a store in order, and judges.
#[derive(Debug, Default)]
pub(super) struct Verifier {
    known: BTreeMap<u32, Vec<Known>>,
    chains: BTreeMap<u32, Chain>,
    calls: HashMap<String, Call>,
    /// A line that cannot be read, unless the next one says that it was torn.
    unread: Option<(String, u64, Hash)>,
    report: Verification,
}

#[derive(Debug)]
struct Chain {
    /// The place of its first line, its number, and what stood before it.
    begins: (String, u64, Option<Hash>),
    /// When its first line was written, in milliseconds since 1970.
    since: Option<i64>,
    place: String,
    segment: u32,
    segments: u32,
    sequence: u64,
    digest: Hash,
    /// The last that is said to have been dropped.
    dropped: Option<(u64, Hash)>,
}

/// What was seen of one call.
#[derive(Debug, Default)]
struct Call {
    intent: bool,
    outcome: bool,
    /// The place of the outcome of a call that must have had an intent.
    dispatched: Option<String>,
}

impl Verifier {
    /// With the heads that are noted beside the chains, and what was found of them before.
    pub(super) fn new(heads: BTreeMap<u32, Known>, before: &[VerifiedChain]) -> Self {
        let mut known: BTreeMap<u32, Vec<Known>> = BTreeMap::new();
        for (chain, head) in heads {
            known.entry(chain).or_default().push(head);
        }
        for chain in before {
            // One that is no digest is that of no line.
            let digest = Hash::from_hex(&chain.digest).unwrap_or(Hash::from_bytes([0; 32]));
            known.entry(chain.chain).or_default().push(Known { segment: 0, sequence: chain.last, digest });
        }
        Self { known, ..Self::default() }
    }

    /// The next line of what is in `place`.
    pub(super) fn line(&mut self, place: &str, line: &[u8]) {
        let digest = blake3::hash(line);
        let link = Link::parse(line);
        if let Some((at, bytes, torn)) = self.unread.take() {
            let told = link.as_ref().and_then(Link::note) == Some(Note::Torn { bytes, digest: torn });
            if told {
                self.report.torn.push(at);
            } else {
                self.find(&at, Fault::Unreadable);
            }
        }
        let Some(link) = link else {
            let at = match self.chains.values().find(|chain| chain.place == place) {
                Some(chain) => format!("{place}, after record {}", chain.sequence),
                None => place.to_owned(),
            };
            self.unread = Some((at, line.len() as u64, digest));
            return;
        };
        self.follow(place, &link, digest);
        if link.is_note() {
            if let (Some(Note::Dropped { before, digest }), Some(chain)) =
                (link.note(), self.chains.get_mut(&link.chain))
            {
                chain.dropped = Some((before, digest));
            }
            return;
        }
        self.report.records += 1;
        self.call(place, &link);
    }

    /// What stands after the last line of what is in `place`.
    pub(super) fn torn(&mut self, place: &str) {
        self.settle();
        self.report.torn.push(format!("{place}, at its end"));
    }

    /// Whether the line follows the one before it in its chain.
    fn follow(&mut self, place: &str, link: &Link<'_>, digest: Hash) {
        let (number, sequence) = (link.chain, link.sequence);
        let known = self.known.get(&number).into_iter().flatten();
        if known.filter(|known| known.sequence == sequence).any(|known| known.digest != digest) {
            self.find(place, Fault::Changed { chain: number, sequence });
        }
        let Some(chain) = self.chains.get_mut(&number) else {
            let chain = Chain {
                begins: (place.to_owned(), sequence, link.previous()),
                since: link.written(),
                place: place.to_owned(),
                segment: link.segment,
                segments: 1,
                sequence,
                digest,
                dropped: None,
            };
            self.chains.insert(number, chain);
            return;
        };
        let expected = chain.sequence + 1;
        let fault = if sequence > expected {
            Some(Fault::Missing { chain: number, first: expected, last: sequence - 1 })
        } else if sequence < expected {
            Some(Fault::Misplaced { chain: number, sequence })
        } else if link.previous() != Some(chain.digest) {
            Some(Fault::Changed { chain: number, sequence: sequence - 1 })
        } else if ![chain.segment, chain.segment + 1].contains(&link.segment) {
            Some(Fault::Misplaced { chain: number, sequence })
        } else {
            None
        };
        // What does not belong here is passed over, so that it is one finding and not two.
        if !matches!(fault, Some(Fault::Misplaced { .. })) {
            chain.segments += u32::from(link.segment != chain.segment);
            (chain.segment, chain.sequence, chain.digest) = (link.segment, sequence, digest);
            if chain.place != place {
                place.clone_into(&mut chain.place);
            }
        }
        if let Some(fault) = fault {
            self.find(place, fault);
        }
    }

    fn call(&mut self, place: &str, link: &Link<'_>) {
        let (Some(stage), Some(id)) = (&link.stage, &link.call_id) else { return };
        let call = self.calls.entry(id.clone().into_owned()).or_default();
        let again = match &**stage {
            "intent" => std::mem::replace(&mut call.intent, true),
            "outcome" => std::mem::replace(&mut call.outcome, true),
            _ => return,
        };
        if &**stage == "outcome" {
            self.report.calls += u64::from(!again);
            // The others end before they are dispatched, or may.
            if matches!(link.outcome.as_deref(), Some("ok" | "tool_error" | "failed" | "timed_out")) {
                call.dispatched = Some(place.to_owned());
            }
        }
        if again {
            self.find(place, Fault::Repeated { call_id: id.clone().into_owned() });
        }
    }

    /// All has been read.
    pub(super) fn finish(mut self) -> Verification {
        self.settle();
        let mut ends = Vec::new();
        for (number, chain) in &self.chains {
            let (place, first, before) = &chain.begins;
            // Killed while it dropped them, a writer may have left some.
            let dropped = chain
                .dropped
                .is_some_and(|(at, digest)| at > *first || (at == *first && Some(digest) == *before));
            if !dropped && (*first > 1 || before.is_some()) {
                ends.push((place.clone(), Fault::Missing { chain: *number, first: 1, last: first - 1 }));
            }
            let known = self.known.get(number).into_iter().flatten().map(|known| known.sequence).max();
            if let Some(last) = known.filter(|last| *last > chain.sequence) {
                let first = chain.sequence + 1;
                ends.push((chain.place.clone(), Fault::Missing { chain: *number, first, last }));
            }
            self.report.chains.push(VerifiedChain {
                chain: *number,
                first: *first,
                last: chain.sequence,
                segments: chain.segments,
                digest: chain.digest.to_hex().to_string(),
            });
        }
        for (number, known) in &self.known {
            if !self.chains.contains_key(number) {
                let last = known.iter().map(|known| known.sequence).max().unwrap_or_default();
                let fault = Fault::Missing { chain: *number, first: 1, last };
                ends.push((format!("chain {number}"), fault));
            }
        }
        // The intent of a call that began before may stand in what was dropped, perhaps of another chain.
        let dropped = self.chains.values().filter(|chain| chain.dropped.is_some());
        let kept_since = dropped.filter_map(|chain| chain.since).max();
        let mut calls: Vec<(String, Call)> = self.calls.drain().collect();
        calls.sort_by(|(left, _), (right, _)| left.cmp(right));
        for (call_id, call) in calls {
            if call.intent {
                self.report.unfinished += u64::from(!call.outcome);
                continue;
            }
            let excused = kept_since.zip(began(&call_id));
            let excused = excused.is_some_and(|(kept, began)| began <= kept.saturating_add(WAIT));
            if let Some(place) = call.dispatched.filter(|_| !excused) {
                ends.push((place, Fault::NoIntent { call_id }));
            }
        }
        for (place, fault) in ends {
            self.find(&place, fault);
        }
        self.report
    }

    fn settle(&mut self) {
        if let Some((at, ..)) = self.unread.take() {
            self.find(&at, Fault::Unreadable);
        }
    }

    fn find(&mut self, place: &str, fault: Fault) {
        // The head and the next line may both tell of it.
        if self.report.findings.last().is_some_and(|last| last.fault == fault) {
            return;
        }
        if self.report.findings.len() < FINDINGS {
            self.report.findings.push(Finding { place: place.to_owned(), fault });
        } else {
            self.report.more_findings += 1;
        }
    }
}

/// When a call began, in milliseconds since 1970: its id says so.
fn began(call_id: &str) -> Option<i64> {
    let (seconds, nanos) = uuid::Uuid::parse_str(call_id).ok()?.get_timestamp()?.to_unix();
    i64::try_from(seconds).ok()?.checked_mul(1000)?.checked_add(i64::from(nanos / 1_000_000))
}
