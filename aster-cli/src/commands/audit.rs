//! `aster audit`: what was called, and whether the records of it are those that were written.

use std::fs;
use std::path::Path;
use std::time::Duration;

use aster_runtime::audit::{Decision, Entry, Record, Stage, Store, Verification, VerifiedChain};
use aster_runtime::serve::Interrupt;
use aster_runtime::text::one_line;
use globset::{GlobBuilder, GlobMatcher};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::args::{Audit, Global, Period, Selection, Tail, Verify};
use crate::compose;
use crate::exit::{Exit, Failure, count};
use crate::render::{self, Output, Report};

/// How often what was written meanwhile is looked for.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) async fn run(global: &Global, command: &Audit, output: Output) -> Result<Exit, Failure> {
    match command {
        Audit::Tail(arguments) => tail(global, arguments, output).await,
        Audit::Query(selection) => {
            let mut records = Vec::new();
            let mut store = store(global, &selection.period)?;
            read(&mut store, &Filter::new(selection)?, |line| records.push(line)).await?;
            show(records, output)
        }
        Audit::Export(selection) => export(global, selection, output).await,
        Audit::Verify(arguments) => verify(global, arguments, output).await,
    }
}

/// The audit that these options mean.
pub(crate) fn store(global: &Global, period: &Period) -> Result<Store, Failure> {
    compose::audit_store(global, period.path.as_deref())
}

pub(crate) fn unreadable(error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the audit cannot be read: {error}"))
}

async fn tail(global: &Global, arguments: &Tail, output: Output) -> Result<Exit, Failure> {
    let filter = Filter::new(&arguments.selection)?;
    let mut store = store(global, &arguments.selection.period)?;
    let mut records = Vec::new();
    let keep = arguments.lines;
    read(&mut store, &filter, |line| {
        records.push(line);
        // Chains come one after the other, so that the newest are known only at the end.
        if records.len() > 2 * keep + 1024 {
            newest(&mut records, keep);
        }
    })
    .await?;
    newest(&mut records, keep);
    if !arguments.follow {
        return show(records, output);
    }
    let interrupt = Interrupt::listen();
    loop {
        for record in records.drain(..) {
            let go_on = if output.is_json() {
                output.json_line(record.raw.as_bytes())?
            } else {
                output.text(record.cells().join("  "))?;
                true
            };
            if !go_on {
                return Ok(Exit::Success);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = interrupt.stop.cancelled() => return Ok(Exit::Success),
        }
        read(&mut store, &filter, |line| records.push(line)).await?;
        records.sort_by_key(|record| record.written);
    }
}

fn newest(records: &mut Vec<Line>, keep: usize) {
    records.sort_by_key(|record| record.written);
    records.drain(..records.len().saturating_sub(keep));
}

fn show(mut records: Vec<Line>, output: Output) -> Result<Exit, Failure> {
    records.sort_by_key(|record| record.written);
    output.report(&Records { records })?;
    Ok(Exit::Success)
}

async fn export(global: &Global, selection: &Selection, output: Output) -> Result<Exit, Failure> {
    let filter = Filter::new(selection)?;
    let mut written = Ok(true);
    let mut store = store(global, &selection.period)?;
    let everything = filter.is_everything();
    store
        .read(|entry| {
            // What a writer says of its chain belongs to it.
            let wanted = everything || entry.record().is_some_and(|record| filter.takes(&entry, &record));
            if matches!(written, Ok(true)) && wanted {
                written = output.json_line(entry.line());
            }
        })
        .await
        .map_err(|error| unreadable(&error))?;
    written.map(|_| Exit::Success)
}

async fn read(store: &mut Store, filter: &Filter, mut take: impl FnMut(Line)) -> Result<(), Failure> {
    let visit = |entry: Entry<'_>| {
        let Some(record) = entry.record().filter(|record| filter.takes(&entry, record)) else { return };
        let raw = String::from_utf8_lossy(entry.line()).into_owned();
        take(Line { written: entry.written().unwrap_or_default(), raw, record });
    };
    store.read(visit).await.map_err(|error| unreadable(&error))
}

/// Which records are wanted.
pub(crate) struct Filter {
    tool: Option<GlobMatcher>,
    selection: Selection,
    since: Option<i64>,
    until: Option<i64>,
}

impl Filter {
    pub(crate) fn new(selection: &Selection) -> Result<Self, Failure> {
        let tool = selection.tool.as_ref().map(|glob| {
            let built = GlobBuilder::new(glob).build();
            built.map(|glob| glob.compile_matcher()).map_err(|error| {
                Failure::new(Exit::Usage, format!("`--tool`: {}", one_line(&error.to_string(), 300)))
            })
        });
        let time =
            |option: &str, text: &Option<String>| text.as_ref().map(|text| moment(option, text)).transpose();
        Ok(Self {
            tool: tool.transpose()?,
            selection: selection.clone(),
            since: time("--since", &selection.period.since)?,
            until: time("--until", &selection.period.until)?,
        })
    }

    fn is_everything(&self) -> bool {
        let Selection { tool, outcome, agent, client, session, call, period } = &self.selection;
        [tool, outcome, agent, client, session, call, &period.since, &period.until]
            .iter()
            .all(|said| said.is_none())
    }

    pub(crate) fn takes(&self, entry: &Entry<'_>, record: &Record) -> bool {
        let said = &self.selection;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| found == Some(wanted))
        };
        let within = (self.since.is_none() && self.until.is_none())
            || entry.written().is_some_and(|written| {
                self.since.is_none_or(|since| written >= since)
                    && self.until.is_none_or(|until| written < until)
            });
        let tool =
            |glob: &GlobMatcher| record.tool.iter().chain(&record.described).any(|tool| glob.is_match(tool));
        within
            && self.tool.as_ref().is_none_or(tool)
            && is(&said.outcome, record.outcome.map(|outcome| outcome.name()))
            && is(&said.agent, Some(&record.agent))
            && is(&said.client, record.client.as_deref())
            && is(&said.session, Some(&record.session))
            && is(&said.call, Some(&record.call_id))
    }
}

/// A time, or how long ago it was, in milliseconds since 1970.
fn moment(option: &str, text: &str) -> Result<i64, Failure> {
    let ago = || {
        let ago: SignedDuration = text.parse().ok()?;
        Timestamp::now().checked_sub(ago).ok()
    };
    let found = text.parse::<Timestamp>().ok().or_else(ago);
    found.map(Timestamp::as_millisecond).ok_or_else(|| {
        let message = format!("`{option}` cannot be `{}`", one_line(text, 64));
        Failure::new(Exit::Usage, message)
            .help("write a time such as `2026-11-30T12:00:00Z`, or how long ago, such as `2h`")
    })
}

/// A record, and the line it stands in.
struct Line {
    written: i64,
    raw: String,
    record: Record,
}

impl Line {
    fn cells(&self) -> [String; 6] {
        let record = &self.record;
        let what = match record.stage {
            Stage::Search => "a search".to_owned(),
            Stage::Describe => record.described.join(" "),
            _ => record.tool.clone().unwrap_or_else(|| record.requested.clone()),
        };
        let came = match (record.stage, record.outcome, &record.decision) {
            (Stage::Intent, ..) => "called".to_owned(),
            (Stage::Search, ..) => format!("found {}", record.found.unwrap_or_default()),
            (Stage::Describe, ..) => "described".to_owned(),
            (_, Some(outcome), Some(Decision::Denied(check))) => {
                format!("{} ({})", outcome.name(), serde_json::json!(check).as_str().unwrap_or_default())
            }
            (_, outcome, _) => outcome.map_or("", |outcome| outcome.name()).to_owned(),
        };
        let time = record.time.split_once('.').map_or(record.time.clone(), |(time, _)| format!("{time}Z"));
        let agent = match &record.client {
            Some(client) => format!("{} ({client})", record.agent),
            None => record.agent.clone(),
        };
        let took = record.duration_ms.map_or(String::new(), |ms| format!("{ms} ms"));
        let error = record.error.as_deref().unwrap_or_default();
        [&time, &agent, &what, &came, &took, error].map(|text| one_line(text, 200))
    }
}

#[derive(Serialize)]
struct Records {
    #[serde(serialize_with = "raw")]
    records: Vec<Line>,
}

fn raw<S: serde::Serializer>(records: &[Line], serializer: S) -> Result<S::Ok, S::Error> {
    // Read again, so that it is indented like everything else.
    let values = records
        .iter()
        .map(|record| serde_json::from_str::<serde_json::Value>(&record.raw).unwrap_or_default());
    serializer.collect_seq(values)
}

impl Report for Records {
    fn human(&self) -> String {
        if self.records.is_empty() {
            return "no records".to_owned();
        }
        let rows = self.records.iter().map(Line::cells);
        render::table(["Time", "Agent", "What", "Came of it", "Took", "Why"], rows)
    }
}

async fn verify(global: &Global, arguments: &Verify, output: Output) -> Result<Exit, Failure> {
    let before = arguments.against.as_deref().map(chains).transpose()?.unwrap_or_default();
    let store = compose::audit_store(global, arguments.path.as_deref())?;
    let verified = store.verify_against(&before).await.map_err(|error| unreadable(&error))?;
    let exit = if verified.is_intact() { Exit::Success } else { Exit::Failed };
    output.report(&Verified(verified))?;
    Ok(exit)
}

/// What an earlier verification says of the chains.
fn chains(path: &Path) -> Result<Vec<VerifiedChain>, Failure> {
    #[derive(Deserialize)]
    struct Before {
        chains: Vec<VerifiedChain>,
    }
    let text = fs::read(path).map_err(|error| error.to_string());
    let before = text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    before.map(|before: Before| before.chains).map_err(|error| {
        let place = one_line(&path.display().to_string(), 4096);
        Failure::new(Exit::Usage, format!("{place} is no verification: {error}"))
            .help("it is what `aster --json audit verify` writes")
    })
}

#[derive(Serialize)]
#[serde(transparent)]
struct Verified(Verification);

impl Report for Verified {
    fn human(&self) -> String {
        let verified = &self.0;
        let mut lines: Vec<String> =
            verified.findings.iter().map(|finding| format!("problem: {finding}")).collect();
        if verified.more_findings > 0 {
            lines.push(format!("problem: and {} more", verified.more_findings));
        }
        for place in &verified.torn {
            lines.push(format!(
                "note: {place}: a line was not finished; its writer was killed, or is still writing it"
            ));
        }
        for chain in &verified.chains {
            lines.push(format!(
                "chain {}: records {} to {} in {}, up to {}",
                chain.chain,
                chain.first,
                chain.last,
                count(chain.segments as usize, "segment"),
                chain.digest
            ));
        }
        let judged = if verified.is_intact() { "intact" } else { "not intact" };
        lines.push(format!(
            "{judged}: {}, {}, of which {} without an outcome",
            count(usize::try_from(verified.records).unwrap_or(usize::MAX), "record"),
            count(usize::try_from(verified.calls + verified.unfinished).unwrap_or(usize::MAX), "call"),
            verified.unfinished,
        ));
        lines.join("\n")
    }
}
