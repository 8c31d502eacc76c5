//! The default store: one JSON object a line, appended to files that only their owner can read.
//!
//! `audit.jsonl` is the segment that is being written; `audit.000001.jsonl` and so on are those that have ended. Each
//! process that writes at the same time has a chain, and so files, of its own: the second is `audit-1.jsonl`. Beside them,
//! `audit.lock` says that a process writes the chain, and `audit.head` how far it had got a moment ago.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blake3::Hash;

use super::chain::{Head, Known, Link, Merge, Note, Segments, written};
use super::gather::{Gather, Keep, Taken};
use super::{AuditSink, Commit, Record, Stage, identity, identity_at, now, open_private};

/// How many processes may write at the same time.
const CHAINS: u32 = 1024;

/// The extension of the file that says that a chain is written.
const LOCK: &str = ".lock";

/// After how many lines the head is noted again.
const NOTED: u64 = 64;

/// How long it may take to notice that the lock was taken away while the file stayed. That loses no record: two processes
/// would append to one file, which a verification tells.
const LOCK_WATCH: Duration = Duration::from_millis(100);

/// About how long a record is, in bytes.
const RECORD: usize = 2048;

/// The bytes that are read at once from the end of a file.
const BLOCK: u64 = 64 << 10;

/// Appends records to a file as JSON lines, each bound to the one before it.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    writer: Arc<Gather<Writer>>,
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// `None` where the file is a pipe or a device, which has no segments.
    files: Option<Files>,
    segments: Segments,
    head: Head,
    /// It has been said that the segment cannot be ended.
    is_stuck: bool,
    /// What was not written whole and could not be taken back.
    torn: Option<Torn>,
}

/// Lines of which a file has a part.
#[derive(Debug)]
struct Torn {
    lines: Vec<u8>,
    /// Where the chain has got to with all of them.
    head: Head,
}

impl JsonLines {
    /// Opens or makes the file, with mode 0600 on Unix, and the folders above it. Where another process writes it, a file
    /// beside it.
    ///
    /// # Errors
    ///
    /// Where that fails.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with_segments(path, Segments::default())
    }

    /// The same, with segments that end and are kept as is said.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened.
    pub fn with_segments(path: impl Into<PathBuf>, segments: Segments) -> io::Result<Self> {
        let path = path.into();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let file = OpenOptions::new().append(true).open(&path)?;
            let writer = Writer::new(file, None, segments, Head::new(0));
            return Ok(Self { path, writer: Gather::new(writer) });
        }
        let base = Base::of(&path);
        let writer = Writer::take(&base, segments)?;
        let path = base.name(writer.head.chain, None, &base.extension);
        Ok(Self { path, writer: Gather::new(writer) })
    }

    /// The file that was opened. Where the folder is emptied meanwhile, another process may take it, and another is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AuditSink for JsonLines {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.writer.write(record.stage, json(record)?)
    }

    fn commit(&self, record: &Record) -> Commit {
        match json(record) {
            Ok(object) => self.writer.commit(record.stage, object),
            Err(error) => Commit::Done(Err(error)),
        }
    }

    fn flush(&self) -> Commit {
        drop(self.writer.settled());
        Commit::Done(Ok(()))
    }

    fn lost(&self) -> u64 {
        self.writer.lost()
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        self.writer.settled().note_head();
    }
}

fn json(record: &Record) -> io::Result<Vec<u8>> {
    let mut object = Vec::with_capacity(RECORD);
    serde_json::to_writer(&mut object, record)?;
    Ok(object)
}

impl Keep for Writer {
    /// Writes them in one go, or each on its own where that fails.
    fn keep(&mut self, records: &[Arc<Taken>]) {
        let mut records: Vec<&Taken> = records.iter().map(AsRef::as_ref).collect();
        // An outcome belongs where its intent is.
        let goes_on = |record: &Taken| record.stage == Stage::Outcome;
        if !records.iter().all(|record| goes_on(record))
            && let Err(error) = self.follow_file()
        {
            records.extract_if(.., |record| !goes_on(record)).for_each(|record| fail(record, &error));
        }
        match (self.write(&records), &*records) {
            (Ok(()), all) => all.iter().for_each(|record| record.is_kept(Ok(()))),
            (Err(error), [one]) => one.is_kept(Err(error)),
            // The next write may finish them: none is written twice.
            (Err(error), all) if self.torn.is_some() => all.iter().for_each(|record| fail(record, &error)),
            (Err(_), all) => all.iter().for_each(|record| record.is_kept(self.write(&[record]))),
        }
    }
}

fn fail(record: &Taken, error: &io::Error) {
    record.is_kept(Err(io::Error::new(error.kind(), error.to_string())));
}

impl Writer {
    fn new(file: File, files: Option<Files>, segments: Segments, head: Head) -> Self {
        Self { file, files, segments, head, is_stuck: false, torn: None }
    }

    /// Goes on with the first chain that nobody else writes.
    fn take(base: &Base, segments: Segments) -> io::Result<Self> {
        for chain in 0..CHAINS {
            if let Some(files) = Files::lock(base, chain)? {
                return Self::open(files, segments);
            }
        }
        Err(io::Error::new(ErrorKind::ResourceBusy, format!("{CHAINS} processes write it already")))
    }

    /// Goes on where the chain ends. A line that a killed writer left without its end is closed and said to be so.
    fn open(mut files: Files, segments: Segments) -> io::Result<Self> {
        let mut file = files.open()?;
        let end = End::read(&mut file)?;
        let last = match &end.line {
            Some(line) => Some(line.clone()),
            // Killed between two segments, or before the first line.
            None => match files.ended()?.pop() {
                Some(number) => End::read(&mut File::open(files.segment(number))?)?.line,
                None => None,
            },
        };
        let mut head = Head::new(files.chain);
        if let Some((link, line)) = last.as_ref().and_then(|line| Some((Link::parse(line)?, line))) {
            head.segment = link.segment + u32::from(end.line.is_none());
            head.sequence = link.sequence;
            head.digest = Some(blake3::hash(line));
        }
        // What is known to have been there is gone on from: a tail that was cut off or changed is missed for ever.
        if let Some(known) = files.head().filter(|known| known.sequence >= head.sequence) {
            (head.segment, head.sequence) = (known.segment.max(head.segment), known.sequence);
            head.digest = Some(known.digest);
        }
        let mut first = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        BufReader::new(&file).read_until(b'\n', &mut first)?;
        head.since = Link::parse(&first).and_then(|link| link.written()).unwrap_or_else(millis);
        head.bytes = end.whole;
        let mut writer = Self::new(file, Some(files), segments, head);
        let follows = |link: Link<'_>, head: &Head| {
            link.chain == head.chain && link.sequence == head.sequence + 1 && link.previous() == head.digest
        };
        if Link::parse(&end.torn).is_some_and(|link| follows(link, &writer.head)) {
            // Only its line feed is missing.
            writer.file.write_all(b"\n")?;
            writer.head.advance(&end.torn, millis());
        } else if !end.torn.is_empty() {
            let note = Note::Torn { bytes: end.torn.len() as u64, digest: blake3::hash(&end.torn) };
            let line = writer.head.seal(&note.object(&now()));
            writer.file.write_all(&[b"\n", &*line, b"\n"].concat())?;
            writer.head.bytes += end.torn.len() as u64 + 1;
            writer.head.advance(&line, millis());
        }
        writer.note_head();
        Ok(writer)
    }

    /// Writes these or none.
    fn write(&mut self, records: &[&Taken]) -> io::Result<()> {
        let timed = self.segments.age.is_some() || self.head.bytes == 0;
        let now = if timed { millis() } else { self.head.since };
        if self.files.is_some() && self.head.is_full(&self.segments, now) {
            // The record matters more than where it stands.
            let rotated = self.rotate();
            let was_stuck = std::mem::replace(&mut self.is_stuck, rotated.is_err());
            if let Err(error) = rotated
                && !was_stuck
            {
                tracing::error!(%error, "a segment of the audit cannot be ended; it grows on until it can");
            }
        }
        self.append(records.iter().map(|record| &*record.object), now)
    }

    /// Goes on in a new file where somebody has taken the old one away: what is written there, nobody would read. What is
    /// gone is found by a verification.
    fn follow_file(&mut self) -> io::Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let is_there = files.is_there()?;
        if is_there && files.lock_seen.elapsed() < LOCK_WATCH {
            return Ok(());
        }
        let is_locked = files.is_locked()?;
        if is_locked && is_there {
            files.lock_seen = Instant::now();
            return Ok(());
        }
        tracing::error!("the file of the audit was taken away while it was written; it goes on in another");
        if is_locked {
            self.file = files.open()?;
        } else {
            // Nothing says any more that the chain is taken: another process may write it.
            let taken = Self::take(&files.base.clone(), self.segments)?;
            if taken.head.chain != self.head.chain || taken.head.sequence > 0 {
                *self = taken;
                return Ok(());
            }
            (self.file, self.files) = (taken.file, taken.files);
            self.note_head();
        }
        // Under the next number, since this one may have been given to what was taken away.
        self.head.next_segment();
        self.torn = None;
        self.head.bytes = self.file.metadata()?.len();
        Ok(())
    }

    fn append<'a>(&mut self, objects: impl Iterator<Item = &'a [u8]>, now: i64) -> io::Result<()> {
        self.mend()?;
        let (mut head, mut lines) = (self.head.clone(), Vec::new());
        for object in objects {
            let mut line = head.seal(object);
            head.advance(&line, now);
            line.push(b'\n');
            if lines.is_empty() {
                lines = line;
            } else {
                lines.append(&mut line);
            }
        }
        if let Err(error) = self.file.write_all(&lines) {
            // What a full disk left of them is none.
            if self.files.is_some() && self.file.set_len(self.head.bytes).is_err() {
                self.torn = Some(Torn { lines, head });
            }
            return Err(error);
        }
        let is_due = self.head.sequence / NOTED < head.sequence / NOTED;
        self.head = head;
        if is_due {
            self.note_head();
        }
        Ok(())
    }

    /// Takes back what could not be taken back before, or finishes it: what is written behind half a line, nobody could read.
    fn mend(&mut self) -> io::Result<()> {
        let Some(Torn { lines, head }) = &self.torn else { return Ok(()) };
        if self.file.set_len(self.head.bytes).is_err() {
            let there = self.file.metadata()?.len().saturating_sub(self.head.bytes);
            let left = usize::try_from(there).ok().and_then(|there| lines.get(there..));
            self.file.write_all(left.unwrap_or_default())?;
            self.head = head.clone();
        }
        self.torn = None;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.mend()?;
        let Some(files) = &mut self.files else { return Ok(()) };
        let ended = files.segment(self.head.segment);
        // Otherwise it was renamed the time before, and no other could be made.
        if files.active.try_exists()? {
            // Somebody put it there, and a rename would replace it.
            if ended.try_exists()? {
                let message = format!("`{}` is in the way; move it elsewhere", ended.display());
                return Err(io::Error::new(ErrorKind::AlreadyExists, message));
            }
            fs::rename(&files.active, ended)?;
        }
        self.file = files.open()?;
        self.head.next_segment();
        self.note_head();
        self.drop_old()
    }

    /// Drops the segments that are too many. First the chain says so; only then they go.
    fn drop_old(&mut self) -> io::Result<()> {
        let (Some(files), Some(keep)) = (&self.files, self.segments.keep) else { return Ok(()) };
        let ended = files.ended()?;
        let Some(many) = ended.len().checked_sub(keep as usize).filter(|many| *many > 0) else {
            return Ok(());
        };
        let dropped: Vec<PathBuf> = ended[..many].iter().map(|number| files.segment(*number)).collect();
        let mut last = File::open(&dropped[many - 1])?;
        let Some(line) = End::read(&mut last)?.line else { return Ok(()) };
        let Some(link) = Link::parse(&line) else { return Ok(()) };
        let note = Note::Dropped { before: link.sequence + 1, digest: blake3::hash(&line) };
        self.append(std::iter::once(&*note.object(&now())), millis())?;
        dropped.iter().try_for_each(fs::remove_file)
    }

    fn note_head(&mut self) {
        let (Some(files), Some(known)) = (&mut self.files, self.head.known()) else { return };
        if let Err(error) = files.note_head(&known) {
            tracing::warn!(%error, "the head of the audit cannot be noted");
        }
    }
}

/// The files of one chain.
#[derive(Debug)]
struct Files {
    base: Base,
    chain: u32,
    /// The file that is written, and what tells it from another that is later there.
    active: PathBuf,
    identity: (u64, u64),
    /// Held as long as the chain is written.
    lock: File,
    /// When others last saw it.
    lock_seen: Instant,
    head: File,
}

impl Files {
    /// The files of a chain that nobody else writes; `None` where somebody does.
    fn lock(base: &Base, chain: u32) -> io::Result<Option<Self>> {
        let lock = open_private(&base.name(chain, None, LOCK), false)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let head = open_private(&base.name(chain, None, ".head"), false)?;
        let active = base.name(chain, None, &base.extension);
        let (base, lock_seen) = (base.clone(), Instant::now());
        Ok(Some(Self { base, chain, active, identity: (0, 0), lock, lock_seen, head }))
    }

    /// Opens the file that is written, or makes it.
    fn open(&mut self) -> io::Result<File> {
        let file = open_private(&self.active, true)?;
        self.identity = identity(&file.metadata()?);
        Ok(file)
    }

    /// Whether the file that was opened is still there.
    fn is_there(&self) -> io::Result<bool> {
        Ok(identity_at(&self.active)? == Some(self.identity))
    }

    /// Whether others still see the lock.
    fn is_locked(&self) -> io::Result<bool> {
        let there = identity_at(&self.base.name(self.chain, None, LOCK))?;
        Ok(there == Some(identity(&self.lock.metadata()?)))
    }

    fn segment(&self, number: u32) -> PathBuf {
        self.base.name(self.chain, Some(number), &self.base.extension)
    }

    /// The numbers of the segments that have ended, in order.
    fn ended(&self) -> io::Result<Vec<u32>> {
        let all = self.base.all()?;
        let own = all.keys().filter(|(chain, _)| *chain == self.chain);
        Ok(own.filter_map(|(_, number)| *number).collect())
    }

    fn head(&self) -> Option<Known> {
        read_head(&self.base.name(self.chain, None, ".head"))
    }

    fn note_head(&mut self, known: &Known) -> io::Result<()> {
        // Of a width that never shrinks: it is written over the one before.
        let Known { segment, sequence, digest } = known;
        let text = format!(
            "{{\"segment\":{segment:>10},\"sequence\":{sequence:>20},\"digest\":\"{}\"}}\n",
            digest.to_hex()
        );
        self.head.seek(SeekFrom::Start(0))?;
        self.head.write_all(text.as_bytes())
    }
}

/// How the files of an audit are called.
#[derive(Debug, Clone)]
pub(super) struct Base {
    folder: PathBuf,
    stem: String,
    extension: String,
}

impl Base {
    pub(super) fn of(path: &Path) -> Self {
        let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: text(path.file_stem()),
            extension: extension.unwrap_or_default(),
        }
    }

    fn name(&self, chain: u32, number: Option<u32>, extension: &str) -> PathBuf {
        let mut name = self.stem.clone();
        if chain > 0 {
            name.push_str(&format!("-{chain}"));
        }
        if let Some(number) = number {
            name.push_str(&format!(".{number:06}"));
        }
        self.folder.join(name + extension)
    }

    /// The files that are there, by chain and number; the one that is being written has none and comes last.
    fn all(&self) -> io::Result<BTreeMap<(u32, Option<u32>), PathBuf>> {
        let mut found = BTreeMap::new();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(place) = self.place(&name) {
                found.insert(place, path);
            }
        }
        Ok(found)
    }

    /// The chain and the number that a file's name says.
    fn place(&self, name: &str) -> Option<(u32, Option<u32>)> {
        let middle = name.strip_prefix(&self.stem)?.strip_suffix(&self.extension)?;
        let (chain, number) = match middle.split_once('.') {
            Some((chain, number)) => (chain, Some(number.parse().ok().filter(|_| number.len() >= 6)?)),
            None => (middle, None),
        };
        let chain = match chain.strip_prefix('-') {
            Some(chain) => chain.parse().ok().filter(|chain| *chain > 0)?,
            None if chain.is_empty() => 0,
            None => return None,
        };
        // Only a name that this would give.
        (self.name(chain, number, &self.extension).file_name()?.to_string_lossy() == name)
            .then_some((chain, number))
    }
}

fn read_head(path: &Path) -> Option<Known> {
    #[derive(serde::Deserialize)]
    struct Noted {
        segment: u32,
        sequence: u64,
        digest: String,
    }
    let noted: Noted = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    Some(Known {
        segment: noted.segment,
        sequence: noted.sequence,
        digest: Hash::from_hex(noted.digest).ok()?,
    })
}

/// How a file ends.
struct End {
    /// The last whole line, without its line feed.
    line: Option<Vec<u8>>,
    /// The bytes of the whole lines.
    whole: u64,
    /// What stands after them.
    torn: Vec<u8>,
}

impl End {
    fn read(file: &mut File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut tail: Vec<u8> = Vec::new();
        let mut start = length;
        loop {
            // The line feed that ends the last whole line, and the one before that line.
            let last = tail.iter().rposition(|byte| *byte == b'\n');
            let first = last.and_then(|last| tail[..last].iter().rposition(|byte| *byte == b'\n'));
            if start == 0 || first.is_some() {
                let torn = tail.split_off(last.map_or(0, |last| last + 1));
                let line = last.map(|last| tail[first.map_or(0, |first| first + 1)..last].to_vec());
                return Ok(Self { line, whole: length - torn.len() as u64, torn });
            }
            let block = start.min(BLOCK.max(tail.len() as u64));
            start -= block;
            let mut bytes = vec![0; usize::try_from(block).unwrap_or(usize::MAX)];
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(&mut bytes)?;
            bytes.append(&mut tail);
            tail = bytes;
        }
    }
}

fn millis() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Reads what is in the files, and later what has come since.
#[derive(Debug)]
pub(super) struct Reader {
    base: Base,
    /// By chain, the segment that was read last and how far.
    read: BTreeMap<u32, (u32, u64)>,
}

/// What a reader finds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    /// A line, without its line feed.
    Line(&'a [u8]),
    /// What stands at the end of a file without one: its writer was killed, or is still writing.
    Torn,
}

impl Reader {
    pub(super) fn new(path: &Path) -> Self {
        Self { base: Base::of(path), read: BTreeMap::new() }
    }

    /// The heads that the writers have noted. Read before the lines, they are never ahead of them.
    pub(super) fn heads(&self) -> io::Result<BTreeMap<u32, Known>> {
        let chains: Vec<u32> = self.base.all()?.into_keys().map(|(chain, _)| chain).collect();
        let head = |chain: u32| Some((chain, read_head(&self.base.name(chain, None, ".head"))?));
        // A chain of which only the head is left has lost its files.
        let alone = (0..CHAINS).take_while(|chain| self.base.name(*chain, None, ".head").exists());
        Ok(chains.into_iter().chain(alone).filter_map(head).collect())
    }

    /// Passes every line that was not read before, chain by chain, in the order of the files, with the place of each.
    pub(super) fn read(&mut self, mut visit: impl FnMut(&str, Found<'_>)) -> io::Result<()> {
        for mut chain in self.chains()? {
            while let Some((place, found)) = chain.next()? {
                visit(place, found);
            }
            self.read.insert(chain.number, chain.read);
        }
        Ok(())
    }

    /// Passes every whole line that was not read before, those of all chains by the time at which they were written.
    pub(super) fn read_by_time(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        let mut chains = self.chains()?;
        let mut merge = Merge::default();
        for (at, chain) in chains.iter_mut().enumerate() {
            merge.add(at, chain.next_line()?);
        }
        while let Some(at) = merge.first() {
            visit(&chains[at].line);
            let next = chains[at].next_line()?;
            merge.add(at, next);
        }
        self.read.extend(chains.into_iter().map(|chain| (chain.number, chain.read)));
        Ok(())
    }

    /// What is to be read of each chain.
    fn chains(&self) -> io::Result<Vec<Chain>> {
        let mut chains: Vec<Chain> = Vec::new();
        for opened in self.open()? {
            if chains.last().is_none_or(|last| last.number != opened.chain) {
                chains.push(Chain {
                    number: opened.chain,
                    read: self.read.get(&opened.chain).copied().unwrap_or_default(),
                    files: VecDeque::new(),
                    ended: 0,
                    place: String::new(),
                    reader: None,
                    line: Vec::new(),
                });
            }
            if let Some(chain) = chains.last_mut() {
                chain.ended = opened.number.unwrap_or(chain.ended);
                chain.files.push_back(opened);
            }
        }
        Ok(chains)
    }

    /// Opens all files as they are at one moment: a segment that ends meanwhile is not missed.
    fn open(&self) -> io::Result<Vec<Opened>> {
        loop {
            let all = self.base.all()?;
            let mut opened = Vec::with_capacity(all.len());
            for ((chain, number), path) in &all {
                match File::open(path) {
                    Ok(file) => {
                        opened.push(Opened { chain: *chain, number: *number, path: path.clone(), file })
                    }
                    // It was renamed or dropped; look again.
                    Err(error) if error.kind() == ErrorKind::NotFound => break,
                    Err(error) => return Err(error),
                }
            }
            if opened.len() == all.len() && self.base.all()?.keys().eq(all.keys()) {
                // `None` sorts before every number, but is the newest.
                opened.sort_by_key(|opened| (opened.chain, opened.number.unwrap_or(u32::MAX)));
                return Ok(opened);
            }
        }
    }
}

/// A file of an audit, to be read.
struct Opened {
    chain: u32,
    /// Of a segment that has ended.
    number: Option<u32>,
    path: PathBuf,
    file: File,
}

/// The files of a chain, and how far they have been read.
struct Chain {
    number: u32,
    /// The segment that was read last and how far.
    read: (u32, u64),
    /// What is left to be opened.
    files: VecDeque<Opened>,
    /// The last segment that has ended.
    ended: u32,
    /// The name of the file that is being read.
    place: String,
    reader: Option<BufReader<File>>,
    line: Vec<u8>,
}

impl Chain {
    /// The next line, or what is left of one at the end of a file, and the name of the file.
    fn next(&mut self) -> io::Result<Option<(&str, Found<'_>)>> {
        loop {
            let Some(reader) = &mut self.reader else {
                let Some(opened) = self.files.pop_front() else { return Ok(None) };
                self.begin(opened)?;
                continue;
            };
            self.line.clear();
            let read = reader.read_until(b'\n', &mut self.line)?;
            if self.line.pop() == Some(b'\n') {
                self.read.1 += read as u64;
                return Ok(Some((&self.place, Found::Line(&self.line))));
            }
            self.reader = None;
            if read > 0 {
                return Ok(Some((&self.place, Found::Torn)));
            }
        }
    }

    /// Goes on to the next whole line; says when it was written, where there is one.
    fn next_line(&mut self) -> io::Result<Option<i64>> {
        loop {
            match self.next()? {
                None => return Ok(None),
                Some((_, Found::Torn)) => {}
                Some((_, Found::Line(line))) => return Ok(Some(written(line))),
            }
        }
    }

    /// Begins to read a file where the last reading of the chain ended, unless that was further on.
    fn begin(&mut self, Opened { number, path, file, .. }: Opened) -> io::Result<()> {
        let length = file.metadata()?.len();
        let (segment, offset) = self.read;
        let mut reader = BufReader::with_capacity(64 << 10, file);
        // That of the file that is being written stands in its lines.
        let number = match number {
            Some(number) => number,
            None => match first_segment(&mut reader)? {
                Some(number) => number,
                // No line in it says: it is the one after those that have ended.
                None => segment.max(self.ended + 1),
            },
        };
        if number < segment {
            return Ok(());
        }
        let offset = if number == segment && offset <= length { offset } else { 0 };
        reader.seek(SeekFrom::Start(offset))?;
        self.read = (number, offset);
        self.place = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.reader = Some(reader);
        Ok(())
    }
}

/// The segment in which a file's lines stand, as the first says that can be read.
fn first_segment(reader: &mut BufReader<File>) -> io::Result<Option<u32>> {
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        if let Some(link) = Link::parse(&line) {
            return Ok(Some(link.segment));
        }
        line.clear();
    }
    Ok(None)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::process::Command;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use serde_json::{Value, json};

    use super::*;
    use crate::audit::Store;

    /// Set in the process that is a test alone.
    const ALONE: &str = "ASTER_TEST_ALONE";

    /// Whether this process is the test alone, in which a write that there is no room for is an error and no signal. Where it is
    /// not, runs one that is.
    fn is_alone(test: &str) -> bool {
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let output = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("audit::jsonl::tests::{test}")])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        false
    }

    /// From here on no file may be longer than this one and so many bytes, as if the disk were full.
    fn leave_room(path: &Path, bytes: u64) {
        limit_files(Some(fs::metadata(path).unwrap().len() + bytes));
    }

    fn limit_files(current: Option<u64>) {
        let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: current.or(maximum), maximum }).unwrap();
    }

    fn record(stage: &str, name: &str) -> Record {
        let record = json!({"time": now(), "stage": stage, "session": "s", "agent": "a", "requested": name});
        serde_json::from_value(record).unwrap()
    }

    fn search(name: &str) -> Record {
        record("search", name)
    }

    /// Writes these in one go, and says of each whether it is kept.
    async fn together(audit: &JsonLines, records: &[Record]) -> Vec<bool> {
        let keeper = audit.writer.settled();
        let waiting: Vec<Commit> = records.iter().map(|record| audit.commit(record)).collect();
        drop(keeper);
        join_all(waiting).await.iter().map(Result::is_ok).collect()
    }

    /// The names of the records in a file whose chain is whole, and in which every line is.
    fn names(path: &Path) -> Vec<String> {
        let verified = Store::json_lines(path).verify().now_or_never().unwrap().unwrap();
        assert!(verified.is_intact() && verified.torn.is_empty(), "{verified:?}");
        let text = fs::read_to_string(path).unwrap();
        let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["requested"].clone();
        text.lines().map(|line| name(line).as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_full_disk_leaves_no_half_line() {
        if !is_alone("a_full_disk_leaves_no_half_line") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = JsonLines::open(&path).unwrap();
        audit.write(&search("first")).unwrap();
        leave_room(&path, 50);
        audit.write(&search("second")).unwrap_err();
        assert_eq!(names(&path), ["first"]);
        limit_files(None);
        audit.write(&search("third")).unwrap();
        assert_eq!(names(&path), ["first", "third"]);
    }

    #[tokio::test]
    async fn a_record_that_there_is_no_room_for_keeps_no_other_out() {
        if !is_alone("a_record_that_there_is_no_room_for_keeps_no_other_out") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = JsonLines::open(&path).unwrap();
        leave_room(&path, 2000);
        let records = [search("first"), search(&"long".repeat(500)), search("third")];
        assert_eq!(together(&audit, &records).await, [true, false, true]);
        assert_eq!(names(&path), ["first", "third"]);
    }

    /// A file that takes what is appended and gives nothing back, as one that is marked so.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_cannot_be_taken_back_is_finished_before_anything_else_is_written() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        use std::os::fd::AsRawFd as _;

        if !is_alone("what_cannot_be_taken_back_is_finished_before_anything_else_is_written") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let file = memfd_create("audit", MemfdFlags::ALLOW_SEALING).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &path).unwrap();
        let audit = JsonLines::open(&path).unwrap();
        audit.write(&search("first")).unwrap();
        leave_room(&path, 50);
        // Each is told that it is not kept, and none is written twice.
        assert_eq!(together(&audit, &[search("second"), search("third")]).await, [false, false]);
        audit.write(&search("fourth")).unwrap_err();
        leave_room(&path, 50);
        audit.write(&search("fifth")).unwrap_err();
        limit_files(None);
        audit.write(&search("sixth")).unwrap();
        assert_eq!(names(&path), ["first", "second", "third", "sixth"]);
    }

    #[tokio::test]
    async fn an_outcome_is_written_where_its_intent_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let audit = JsonLines::open(&path).unwrap();
        let mut file = File::open(&path).unwrap();
        drop(folder);
        let records = [record("intent", "a"), record("outcome", "b"), record("intent", "c")];
        assert_eq!(together(&audit, &records).await, [false, true, false]);
        let mut written = String::new();
        file.read_to_string(&mut written).unwrap();
        assert!(written.lines().count() == 1 && written.contains("\"requested\":\"b\""), "{written}");
    }
}
