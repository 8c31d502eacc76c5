//! What records come to: calls and how they ended, refusals, failures, searches and what they led to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hash};

use foldhash::fast::FixedState;
use serde::{Serialize, Serializer};

use super::{Decision, Record, Stage};
use crate::call::{Check, Outcome};

/// How many described tools are remembered until they are executed, over all sessions; and how many sessions that searched,
/// until they describe something.
const REMEMBERED: usize = 1 << 16;

/// The upper bounds of the histogram of durations, in milliseconds.
const BOUNDS_MS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 300_000];

/// Counts made of records: of a store with [`add`](Self::add), or of a running host with
/// [`Host::stats`](crate::Host::stats).
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// The calls that have ended, by what came of them.
    pub outcomes: Counts<Outcome>,
    /// The refusals, by the check that refused.
    pub denials: Counts<Check>,
    /// The calls, by server; those of names that stand for no tool are in none.
    pub servers: BTreeMap<String, ServerStats>,
    /// The searches with words in them, each further page another.
    pub searches: u64,
    /// Those that found nothing.
    pub empty_searches: u64,
    /// Those after which the same session described a tool before its next search.
    pub described_searches: u64,
    /// The tools that were described, each once for each time.
    pub described: u64,
    /// Those that the same session executed afterwards.
    pub described_then_executed: u64,
    /// The records that could not be written, of a running host: a store does not have them.
    #[serde(skip)]
    pub lost_records: u64,
    #[serde(skip)]
    recent: Recent,
    /// The sessions that have described nothing since they searched.
    #[serde(skip)]
    searching: Recent,
}

/// The calls of one server's tools.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ServerStats {
    /// By what came of them.
    pub outcomes: Counts<Outcome>,
    /// Those in which the server was not to be reached, broke the protocol, ran out of time or panicked, by kind.
    pub failures: BTreeMap<String, u64>,
    /// The bytes of their results.
    pub bytes: u64,
    /// How long they took, together.
    pub duration_ms: u64,
    /// How many took at most 5, 10, 25, 50, 100, 250 and 500 ms, 1, 5, 30 and 300 s, and longer.
    pub durations: [u64; BOUNDS_MS.len() + 1],
}

/// How often each of a few values was seen.
#[derive(Debug, Clone)]
pub struct Counts<K>(Vec<(K, u64)>);

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq> Counts<K> {
    /// How often this one was seen.
    #[must_use]
    pub fn get(&self, value: K) -> u64 {
        self.0.iter().find(|(known, _)| *known == value).map_or(0, |(_, count)| *count)
    }

    /// How often any was seen.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The values and how often each was seen, in the order in which they first were.
    pub fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        self.0.iter().copied()
    }

    fn add(&mut self, value: K) {
        match self.0.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => self.0.push((value, 1)),
        }
    }
}

impl<K: Serialize> Serialize for Counts<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(value, count)| (value, count)))
    }
}

/// What stands for the last of what was done and may be followed: tools that were described, sessions that searched.
#[derive(Debug, Clone, Default)]
struct Recent {
    /// In the order in which they came, each with its number; also what is no longer known.
    order: VecDeque<(u64, u64)>,
    /// Each with its number.
    known: HashMap<u64, u64>,
    next: u64,
}

impl Recent {
    fn insert(&mut self, key: u64) {
        if self.known.contains_key(&key) {
            return;
        }
        self.known.insert(key, self.next);
        self.order.push_back((key, self.next));
        self.next += 1;
        if self.order.len() > REMEMBERED
            && let Some((oldest, number)) = self.order.pop_front()
            // What was followed and came again has another number by now, and stays.
            && self.known.get(&oldest) == Some(&number)
        {
            self.known.remove(&oldest);
        }
    }

    /// Forgets what was followed. Whether it was known.
    fn remove(&mut self, key: u64) -> bool {
        self.known.remove(&key).is_some()
    }
}

/// What stands for a session and a tool.
fn key(of: impl Hash) -> u64 {
    FixedState::default().hash_one(of)
}

impl Stats {
    /// Counts one record. Those of a call have to come in their order.
    pub fn add(&mut self, record: &Record) {
        match record.stage {
            Stage::Search => {
                self.searches += 1;
                self.empty_searches += u64::from(record.found == Some(0));
                self.searching.insert(key(&record.session));
            }
            Stage::Describe => {
                self.described += record.described.len() as u64;
                if !record.described.is_empty() {
                    let searched = self.searching.remove(key(&record.session));
                    self.described_searches += u64::from(searched);
                }
                for tool in &record.described {
                    self.recent.insert(key((&record.session, tool)));
                }
            }
            Stage::Intent => {
                let Some(tool) = &record.tool else { return };
                let executed = self.recent.remove(key((&record.session, tool)));
                self.described_then_executed += u64::from(executed);
            }
            Stage::Outcome => self.add_outcome(record),
        }
    }

    fn add_outcome(&mut self, record: &Record) {
        let Some(outcome) = record.outcome else { return };
        self.outcomes.add(outcome);
        if let Some(Decision::Denied(check)) = record.decision {
            self.denials.add(check);
        }
        let Some((server, _)) = record.tool.as_ref().and_then(|tool| tool.split_once('/')) else { return };
        // Nothing is made for a server that is known.
        if !self.servers.contains_key(server) {
            self.servers.insert(server.to_owned(), ServerStats::default());
        }
        let Some(stats) = self.servers.get_mut(server) else { return };
        stats.outcomes.add(outcome);
        if outcome == Outcome::Denied {
            return;
        }
        if let Some(kind) = record.error_kind.as_deref().filter(|kind| *kind != "cancelled") {
            match stats.failures.get_mut(kind) {
                Some(count) => *count += 1,
                None => drop(stats.failures.insert(kind.to_owned(), 1)),
            }
        }
        let duration = record.duration_ms.unwrap_or_default();
        stats.bytes += record.bytes.unwrap_or_default() as u64;
        stats.duration_ms += duration;
        stats.durations[BOUNDS_MS.partition_point(|bound| *bound < duration)] += 1;
    }

    /// The counts in the text format that Prometheus reads, version 0.0.4.
    ///
    /// Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        let mut metric = Metric { text: &mut text };
        metric.head("aster_calls_total", "counter", "Calls that have ended, by server and outcome.");
        for (server, stats) in &self.servers {
            for (outcome, count) in stats.outcomes.iter() {
                metric.value("aster_calls_total", &[("server", server), ("outcome", outcome.name())], count);
            }
        }
        metric.head("aster_denials_total", "counter", "Refused calls, by the check that refused.");
        for (check, count) in self.denials.iter() {
            metric.value("aster_denials_total", &[("check", check.name())], count);
        }
        metric.head(
            "aster_failures_total",
            "counter",
            "Calls without an answer of their tool, by server and kind.",
        );
        for (server, stats) in &self.servers {
            for (kind, count) in &stats.failures {
                metric.value("aster_failures_total", &[("server", server), ("kind", kind)], *count);
            }
        }
        metric.head("aster_result_bytes_total", "counter", "Bytes of results, by server.");
        for (server, stats) in &self.servers {
            metric.value("aster_result_bytes_total", &[("server", server)], stats.bytes);
        }
        metric.head(
            "aster_call_duration_seconds",
            "histogram",
            "How long calls took, the gate included, by server.",
        );
        for (server, stats) in &self.servers {
            let mut within = 0;
            for (at, count) in stats.durations.iter().enumerate() {
                within += count;
                let bound = BOUNDS_MS.get(at).map_or("+Inf".to_owned(), |bound| seconds(*bound));
                metric.value(
                    "aster_call_duration_seconds_bucket",
                    &[("server", server), ("le", &bound)],
                    within,
                );
            }
            metric.value(
                "aster_call_duration_seconds_sum",
                &[("server", server)],
                seconds(stats.duration_ms),
            );
            metric.value("aster_call_duration_seconds_count", &[("server", server)], within);
        }
        for (name, help, count) in [
            ("aster_searches_total", "Searches with words in them.", self.searches),
            ("aster_empty_searches_total", "Searches that found nothing.", self.empty_searches),
            (
                "aster_described_searches_total",
                "Searches after which the same session described a tool before the next.",
                self.described_searches,
            ),
            ("aster_described_total", "Tools that were described.", self.described),
            (
                "aster_described_then_executed_total",
                "Described tools that the same session then executed.",
                self.described_then_executed,
            ),
            (
                "aster_audit_lost_records_total",
                "Records of the audit that could not be written.",
                self.lost_records,
            ),
        ] {
            metric.head(name, "counter", help);
            metric.value(name, &[], count);
        }
        text
    }
}

fn seconds(milliseconds: u64) -> String {
    let (whole, rest) = (milliseconds / 1000, milliseconds % 1000);
    let text = format!("{whole}.{rest:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Metric<'a> {
    text: &'a mut String,
}

impl Metric<'_> {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.text.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            // The names of servers and of values have nothing that would have to be escaped.
            let _ = write!(self.text, "{}{label}=\"{value}\"", if at == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(mut fields: Value) -> Record {
        for (field, value) in [("time", "2026-11-30T12:00:00Z"), ("session", "s"), ("agent", "a")] {
            fields[field] = json!(value);
        }
        serde_json::from_value(fields).unwrap()
    }

    /// One session that goes on for long is followed as long as it does.
    #[test]
    fn what_follows_what_is_counted_however_often() {
        let [search, describe, intent] = [
            json!({"stage": "search", "found": 1}),
            json!({"stage": "describe", "described": ["desk/keep"]}),
            json!({"stage": "intent", "tool": "desk/keep"}),
        ]
        .map(record);
        let mut stats = Stats::default();
        let rounds = REMEMBERED as u64 + 10;
        for _ in 0..rounds {
            stats.add(&search);
            stats.add(&describe);
            stats.add(&intent);
        }
        assert_eq!((stats.described_searches, stats.described_then_executed), (rounds, rounds));
    }
}
