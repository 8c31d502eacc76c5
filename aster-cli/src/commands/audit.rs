//! `aster audit`: what was called, and whether the records of it are those that were written.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::time::Duration;

use aster_runtime::audit::{Decision, Entry, Record, Stage, Store, Verification, VerifiedChain};
use aster_runtime::call::Check;
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

/// How many records of a query are shown at once.
const PAGE: usize = 1000;

pub(crate) async fn run(global: &Global, command: &Audit, output: Output) -> Result<Exit, Failure> {
    match command {
        Audit::Tail(arguments) => tail(global, arguments, output).await,
        Audit::Query(selection) => query(global, selection, output).await,
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
    let mut last = VecDeque::new();
    read(&mut store, &filter, |line| {
        last.push_back(line);
        if last.len() > arguments.lines {
            last.pop_front();
        }
    })
    .await?;
    let mut records = Vec::from(last);
    if !arguments.follow {
        output.report(&Records { records })?;
        return Ok(Exit::Success);
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
    }
}

async fn query(global: &Global, selection: &Selection, output: Output) -> Result<Exit, Failure> {
    let filter = Filter::new(selection)?;
    let mut store = store(global, &selection.period)?;
    let mut shown = Ok(());
    let mut page = Page { output, records: Vec::new(), any: false };
    read(&mut store, &filter, |line| {
        if shown.is_err() {
            return;
        }
        page.records.push(line);
        if page.records.len() > PAGE {
            shown = page.show(false);
        }
    })
    .await?;
    shown?;
    page.show(true)?;
    Ok(Exit::Success)
}

/// What a query found last and has not shown yet: an audit may be larger than memory.
struct Page {
    output: Output,
    records: Vec<Line>,
    /// Whether some have been shown.
    any: bool,
}

impl Page {
    /// Shows the records, of which the last may be kept: what stands after it depends on whether there are more. What is shown
    /// altogether is what [`Records`] shows, but for the header, which each page of a table has.
    fn show(&mut self, last: bool) -> Result<(), Failure> {
        if last && !self.any {
            return self.output.report(&Records { records: std::mem::take(&mut self.records) });
        }
        if !self.output.is_json() {
            self.any = true;
            let rows = self.records.drain(..);
            return match rows.len() {
                0 => Ok(()),
                _ => self.output.text(table(rows.map(|line| line.cells()))),
            };
        }
        if !self.any {
            self.any = true;
            self.output.text("{\n  \"records\": [")?;
        }
        let next = if last { None } else { self.records.pop() };
        let end = self.records.len().checked_sub(1).filter(|_| last);
        for (at, record) in self.records.drain(..).enumerate() {
            let comma = if Some(at) == end { "" } else { "," };
            let indented = render::safe_json(&record.value()).replace('\n', "\n    ");
            self.output.text(format_args!("    {indented}{comma}"))?;
        }
        self.records.extend(next);
        if last { self.output.text("  ]\n}") } else { Ok(()) }
    }
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
        take(Line { raw: String::from_utf8_lossy(entry.line()).into_owned(), record });
    };
    store.read_by_time(visit).await.map_err(|error| unreadable(&error))
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
        let Selection {
            tool,
            server,
            group,
            tier,
            stage,
            outcome,
            check,
            agent,
            team,
            project,
            client,
            session,
            call,
            period,
        } = &self.selection;
        let of_calls = [tool, server, group, tier, stage, outcome, check, call];
        let of_callers = [agent, team, project, client, session, &period.since, &period.until];
        of_calls.iter().chain(&of_callers).all(|said| said.is_none())
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
        let any_tool =
            |fits: &dyn Fn(&str) -> bool| record.tool.iter().chain(&record.described).any(|tool| fits(tool));
        let of_server = |server: &String| {
            any_tool(&|tool| tool.split_once('/').is_some_and(|(found, _)| found == server))
        };
        within
            && self.tool.as_ref().is_none_or(|glob| any_tool(&|tool| glob.is_match(tool)))
            && said.server.as_ref().is_none_or(of_server)
            && is(&said.group, record.group.as_deref())
            && is(&said.tier, record.tier.map(|tier| tier.name()))
            && is(&said.stage, Some(record.stage.name()))
            && is(&said.outcome, record.outcome.map(|outcome| outcome.name()))
            && is(&said.check, refused_by(record).map(Check::name))
            && is(&said.agent, Some(&record.agent))
            && is(&said.team, record.team.as_deref())
            && is(&said.project, record.project.as_deref())
            && is(&said.client, record.client.as_deref())
            && is(&said.session, Some(&record.session))
            && is(&said.call, Some(&record.call_id))
    }
}

/// The check that refused a call, where one did.
fn refused_by(record: &Record) -> Option<Check> {
    match record.decision {
        Some(Decision::Denied(check)) => Some(check),
        _ => None,
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
    raw: String,
    record: Record,
}

impl Line {
    /// Read again, so that it is indented like everything else.
    fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.raw).unwrap_or_default()
    }

    fn cells(&self) -> [String; 6] {
        let record = &self.record;
        let what = match record.stage {
            Stage::Search => "a search".to_owned(),
            Stage::Describe => record.described.join(" "),
            _ => record.tool.clone().unwrap_or_else(|| record.requested.clone()),
        };
        let came = match (record.stage, record.outcome, refused_by(record)) {
            (Stage::Intent, ..) => "called".to_owned(),
            (Stage::Search, ..) => format!("found {}", record.found.unwrap_or_default()),
            (Stage::Describe, ..) => "described".to_owned(),
            (_, Some(outcome), Some(check)) if record.by.is_empty() => {
                format!("{} ({})", outcome.name(), check.name())
            }
            (_, Some(outcome), Some(check)) => {
                format!("{} ({}: {})", outcome.name(), check.name(), record.by)
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
    serializer.collect_seq(records.iter().map(Line::value))
}

impl Report for Records {
    fn human(&self) -> String {
        match self.records.is_empty() {
            true => "no records".to_owned(),
            false => table(self.records.iter().map(Line::cells)),
        }
    }
}

fn table(rows: impl IntoIterator<Item = [String; 6]>) -> String {
    render::table(["Time", "Agent", "What", "Came of it", "Took", "Why"], rows)
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
