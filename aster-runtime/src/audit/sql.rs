//! A database as the store: SQLite, embedded, or PostgreSQL, which many processes and machines share.
//!
//! One thread writes what all calls bring, and what has gathered meanwhile is one transaction. It takes a chain that nobody
//! else is writing to, reads in the database itself where that has got to, and moves it on: a writer that was killed leaves
//! whole transactions, and one that has lost its connection goes on with any chain that is free.
//!
//! A database may be away for a while: it is restarted, or the network is cut. What a call depends on is then not kept, and the
//! call is told so. All else, outcomes first of all, is *owed*: held in memory, in its order, and written before anything newer
//! once the database is back. What was on its way when the connection broke is looked for first, so that nothing is written
//! twice.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::time::{Duration, Instant};

use blake3::Hash;
use postgres::fallible_iterator::FallibleIterator as _;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::sync::oneshot;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::chain::{Head, Known, Link, Merge, Note, Segments, written};
use super::{AuditSink, Commit, Record, identity_at, now, open_private};

/// How many records may wait. Every call waits for its own, so that only calls that nobody waits for any more come to many.
const QUEUE: usize = 8192;

/// How many bytes of records may wait: with the record that exceeds them no more do.
const QUEUE_BYTES: usize = 64 << 20;

/// How many records are one transaction at most.
const BATCH: usize = 256;

/// How many bytes of records are one transaction: with the record that exceeds them it ends.
const BATCH_BYTES: usize = 8 << 20;

/// How many bytes of records are held for a database that is away.
const OWED_BYTES: usize = 64 << 20;

/// How often a database that is away is tried again while nothing new is to be written.
const RETRY: Duration = Duration::from_millis(500);

/// How long whoever flushes waits for a database that is away: as long as one takes that is only started anew.
const RESTART: Duration = Duration::from_secs(5);

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is made where it is not there. `aster_audit_chain` has the head of each chain.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS aster_audit_chain (
        chain BIGINT PRIMARY KEY,
        segment BIGINT NOT NULL,
        sequence BIGINT NOT NULL,
        digest TEXT,
        bytes BIGINT NOT NULL,
        since_ms BIGINT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS aster_audit (
        chain BIGINT NOT NULL,
        sequence BIGINT NOT NULL,
        segment BIGINT NOT NULL,
        unix_ms BIGINT NOT NULL,
        record JSON NOT NULL,
        PRIMARY KEY (chain, sequence)
    );
    CREATE INDEX IF NOT EXISTS aster_audit_unix_ms ON aster_audit (unix_ms);
";

/// Writes records to a database, each bound to the one before it. A call waits until its intent is committed.
///
/// While the database is away, outcomes, and whatever else no call depends on, are held in memory, up to 64 MiB, and written
/// when it is back. As much waits for a database that is slow. [`lost`](AuditSink::lost) counts what was not written.
#[derive(Debug)]
pub struct Sql {
    jobs: mpsc::SyncSender<Job>,
    /// The bytes of the records among them.
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Job {
    what: What,
    /// Who waits.
    done: oneshot::Sender<io::Result<()>>,
}

#[derive(Debug)]
enum What {
    /// A record, and whether a call depends on it: it is then kept now or never.
    Keep {
        object: Vec<u8>,
        now: bool,
    },
    Connect,
    Flush,
}

impl Job {
    /// What it gives to keep, if anything.
    fn object(&self) -> Option<&[u8]> {
        match &self.what {
            What::Keep { object, .. } => Some(object),
            What::Connect | What::Flush => None,
        }
    }

    fn bytes(&self) -> usize {
        self.object().map_or(0, <[u8]>::len)
    }
}

impl Sql {
    /// A SQLite database, a file that is made where it is not there, with mode 0600 on Unix. Its transactions are on the disk
    /// when they are committed (`WAL`, `synchronous = FULL`). Nothing is opened before the first record or
    /// [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// Where no thread can be started.
    pub fn sqlite(path: impl Into<PathBuf>, segments: Segments) -> io::Result<Self> {
        Self::start(Database::Sqlite(path.into()), segments)
    }

    /// A PostgreSQL database, by its URL, `postgres://user:password@host/database?sslmode=require`. The tables are made where
    /// they are not there; a role that may not do so has to be given them.
    ///
    /// Where the server has TLS, it is used, and the server's certificate must be one that this machine trusts;
    /// `sslmode=require` demands it, and `sslmode=disable` does without.
    ///
    /// # Errors
    ///
    /// Where the URL cannot be read, or no thread can be started.
    pub fn postgres(url: &str, segments: Segments) -> io::Result<Self> {
        // A server that does not notice that a connection is gone would hold the chain for hours.
        let limits = ["statement_timeout", "idle_in_transaction_session_timeout"];
        Self::start(Database::postgres(url, &limits)?, segments)
    }

    fn start(database: Database, segments: Segments) -> io::Result<Self> {
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let (waiting, lost) = (Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
        let writer = Writer::new(database, segments, Arc::clone(&lost));
        let waits = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("aster-audit".to_owned())
            .spawn(move || writer.run(queue, &waits))?;
        Ok(Self { jobs, waiting, lost })
    }

    /// Waits until the database is open, so that a mistake is known before the first call.
    ///
    /// # Errors
    ///
    /// Where it cannot be opened. Every later record tries again.
    pub async fn connect(&self) -> io::Result<()> {
        self.wait(What::Connect).await
    }

    fn send(&self, what: What) -> io::Result<oneshot::Receiver<io::Result<()>>> {
        let (done, told) = oneshot::channel();
        let job = Job { what, done };
        let bytes = job.bytes();
        let sent = match self.waiting.fetch_add(bytes, Ordering::Relaxed) {
            before if before >= QUEUE_BYTES && bytes > 0 => Err(TrySendError::Full(job)),
            _ => self.jobs.try_send(job),
        };
        sent.map(|()| told).map_err(|error| {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => io::Error::other("the database does not keep up"),
                TrySendError::Disconnected(_) => gone(),
            }
        })
    }

    fn wait(&self, what: What) -> Commit {
        match self.send(what) {
            Ok(waiting) => Commit::Pending(Box::pin(async { waiting.await.unwrap_or_else(|_| Err(gone())) })),
            Err(error) => Commit::Done(Err(error)),
        }
    }
}

impl AuditSink for Sql {
    fn write(&self, record: &Record) -> io::Result<()> {
        self.send(What::Keep { object: serde_json::to_vec(record)?, now: record.is_condition() }).map(drop)
    }

    fn commit(&self, record: &Record) -> Commit {
        match serde_json::to_vec(record) {
            Ok(object) => self.wait(What::Keep { object, now: record.is_condition() }),
            Err(error) => Commit::Done(Err(error.into())),
        }
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn flush(&self) -> Commit {
        self.wait(What::Flush)
    }
}

fn gone() -> io::Error {
    io::Error::other("the writer of the audit has ended")
}

/// Which database.
enum Database {
    Sqlite(PathBuf),
    Postgres(Box<postgres::Config>),
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sqlite(_) => "Sqlite",
            Self::Postgres(_) => "Postgres",
        })
    }
}

impl Database {
    /// The database at a URL, by whose settings `limits` it takes no longer than it may.
    fn postgres(url: &str, limits: &[&str]) -> io::Result<Self> {
        // What is wrong could hold the password.
        let mut config = postgres::Config::from_str(url).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "the URL of the database cannot be read")
        })?;
        let options: Vec<String> =
            limits.iter().map(|limit| format!("-c {limit}={}", PATIENCE.as_millis())).collect();
        config
            .application_name("aster")
            .connect_timeout(PATIENCE)
            .tcp_user_timeout(PATIENCE)
            // For a server that goes when it has everything and only has to answer.
            .keepalives_idle(PATIENCE)
            .keepalives_interval(PATIENCE / 5)
            .keepalives_retries(5)
            .options(&options.join(" "));
        Ok(Self::Postgres(Box::new(config)))
    }

    /// Connects, to write: makes what is not there.
    fn connect(&self) -> Result<Connection, Failed> {
        if let Self::Sqlite(path) = self {
            private(path).map_err(Failed::of)?;
        }
        let mut connection = self.open()?;
        let there = connection.has_tables()?;
        match &mut connection {
            Connection::Sqlite(it) => {
                it.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")?;
                it.execute_batch(TABLES)?;
            }
            // A role that is given them may not be allowed to make any.
            Connection::Postgres(_) if there => {}
            Connection::Postgres(it) => {
                // Two that make them at once would be in each other's way.
                it.batch_execute(&format!(
                    "BEGIN; SELECT pg_advisory_xact_lock(4137580914); {TABLES} COMMIT;"
                ))?;
            }
        }
        Ok(connection)
    }

    /// Connects, to read; `None` where nothing was ever written.
    fn connect_to_read(&self) -> Result<Option<Connection>, Failed> {
        if matches!(self, Self::Sqlite(path) if !path.exists()) {
            return Ok(None);
        }
        let mut connection = self.open()?;
        Ok(connection.has_tables()?.then_some(connection))
    }

    /// What tells the file from another that later has its path; of a server there is none.
    fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Self::Sqlite(path) => identity_at(path).ok().flatten(),
            Self::Postgres(_) => None,
        }
    }

    fn open(&self) -> Result<Connection, Failed> {
        match self {
            Self::Sqlite(path) => {
                let flags =
                    rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection = rusqlite::Connection::open_with_flags(path, flags)?;
                connection.busy_timeout(PATIENCE)?;
                Ok(Connection::Sqlite(connection))
            }
            Self::Postgres(config) => {
                let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
                let tls = rustls::ClientConfig::builder_with_provider(provider)
                    .with_safe_default_protocol_versions()
                    .and_then(BuilderVerifierExt::with_platform_verifier)
                    .map_err(Failed::of)?
                    .with_no_client_auth();
                Ok(Connection::Postgres(config.connect(MakeRustlsConnect::new(tls))?))
            }
        }
    }
}

/// Makes the file where it is not there, for its owner alone; what SQLite puts beside it gets the same mode.
fn private(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    open_private(path, false)?;
    // A writer that was killed may have left them as the file was.
    #[cfg(unix)]
    for beside in ["-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(beside);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        match std::fs::set_permissions(name, mode) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Why nothing was written or read.
#[derive(Debug, Clone)]
struct Failed {
    message: String,
    /// The database would have said so of anything else too: it is away, or busy, or full, or does not let us write.
    is_away: bool,
}

impl Failed {
    fn of(error: impl fmt::Display) -> Self {
        Self { message: error.to_string(), is_away: false }
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let is_away = error.sqlite_error_code().is_some_and(|code| {
            matches!(
                code,
                Code::DatabaseBusy
                    | Code::DatabaseLocked
                    | Code::DiskFull
                    | Code::ReadOnly
                    | Code::PermissionDenied
                    | Code::CannotOpen
                    | Code::OutOfMemory
                    | Code::SystemIoFailure
                    | Code::FileLockingProtocolFailed
            )
        });
        Self { is_away, ..Self::of(error) }
    }
}

impl From<postgres::Error> for Failed {
    fn from(error: postgres::Error) -> Self {
        // By class: the connection, a standby that only reads, a conflict with another, resources, locks, an operator, the system;
        // and what a role may not do, or the tables that are not there. An answer without a code is none.
        //
        // Source: PostgreSQL, appendix A, error codes.
        let is_away = error.code().is_none_or(|code| {
            let code = code.code();
            ["08", "40", "53", "55", "57", "58"].iter().any(|class| code.starts_with(class))
                || ["25006", "42501", "42P01"].contains(&code)
        });
        // Its own words are only where, such as "db error".
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self { message, is_away }
    }
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        Self::other(failed.message)
    }
}

/// How far records have come that are not kept.
#[derive(Debug, Clone)]
enum Lost {
    /// Nowhere: the database is away. They may be written later.
    Unsent(Failed),
    /// To a database that did not take them, and will not.
    Refused(Failed),
    /// To where it is not known whether they are kept. Where they would be is looked at before they are written again.
    Unsure(Failed, Place),
}

impl Lost {
    fn into_failed(self) -> Failed {
        let (Self::Unsent(failed) | Self::Refused(failed) | Self::Unsure(failed, _)) = self;
        failed
    }

    fn into_error(self) -> io::Error {
        self.into_failed().into()
    }
}

/// Where the last line of a transaction is, if it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    chain: u32,
    sequence: u64,
    digest: Hash,
}

/// A record that is held until the database is back.
struct Owed {
    object: Vec<u8>,
    /// It may be kept already, as part of the transaction that ends there.
    perhaps: Option<Place>,
}

enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(postgres::Client),
}

/// Executes a statement with parameters `?1`, `?2` and so on; says how many rows it changed.
macro_rules! execute {
    ($connection:expr, $statement:expr $(, $parameter:expr)*) => {
        match $connection {
            Connection::Sqlite(it) => {
                let mut statement = it.prepare_cached($statement)?;
                statement.execute(rusqlite::params![$($parameter),*])?;
            }
            Connection::Postgres(it) => {
                it.execute(&numbered($statement), &[$(&$parameter),*])?;
            }
        }
    };
}

/// Passes the rows of a query to a function, as a tuple of these types.
macro_rules! rows {
    ($connection:expr, $query:expr, [$($parameter:expr),*], ($($column:ident: $kind:ty),+) => $body:expr) => {
        match $connection {
            Connection::Sqlite(it) => {
                let mut statement = it.prepare($query)?;
                let mut rows = statement.query(rusqlite::params![$($parameter),*])?;
                while let Some(row) = rows.next()? {
                    let mut at = 0..;
                    $(let $column: $kind = row.get(at.next().unwrap_or_default())?;)+
                    $body
                }
            }
            Connection::Postgres(it) => {
                let parameters: &[&(dyn postgres::types::ToSql + Sync)] = &[$(&$parameter),*];
                let mut rows = it.query_raw(&numbered($query), parameters.iter().copied())?;
                while let Some(row) = rows.next()? {
                    let mut at = 0_usize..;
                    $(let $column: $kind = row.try_get(at.next().unwrap_or_default())?;)+
                    $body
                }
            }
        }
    };
}

/// A statement with PostgreSQL's marks for parameters.
fn numbered(statement: &str) -> String {
    statement.replace('?', "$")
}

impl Connection {
    fn batch(&mut self, statements: &str) -> Result<(), Failed> {
        match self {
            Self::Sqlite(it) => it.execute_batch(statements)?,
            Self::Postgres(it) => it.batch_execute(statements)?,
        }
        Ok(())
    }

    fn has_tables(&mut self) -> Result<bool, Failed> {
        Ok(match self {
            Self::Sqlite(it) => it.table_exists(None, "aster_audit")?,
            Self::Postgres(it) => it.query_one("SELECT to_regclass('aster_audit') IS NOT NULL", &[])?.get(0),
        })
    }

    /// The column that has the lines, as text.
    fn lines(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "record",
            Self::Postgres(_) => "record::text",
        }
    }
}

/// A line to insert.
struct Row {
    sequence: i64,
    segment: i64,
    unix_ms: i64,
    line: String,
}

/// Answers what calls bring, in the order in which they bring it.
struct Writer {
    keeper: Keeper,
    /// In the order in which they are to be written, before anything newer.
    owed: VecDeque<Owed>,
    owed_bytes: usize,
    lost: Arc<AtomicU64>,
}

impl Writer {
    fn new(database: Database, segments: Segments, lost: Arc<AtomicU64>) -> Self {
        let keeper = Keeper { database, segments, connection: None, identity: None };
        Self { keeper, owed: VecDeque::new(), owed_bytes: 0, lost }
    }

    fn run(mut self, queue: mpsc::Receiver<Job>, waiting: &AtomicUsize) {
        loop {
            let first = match self.owed.is_empty() {
                true => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => queue.recv_timeout(RETRY),
            };
            match first {
                Ok(first) => {
                    let jobs = gathered(first, &queue);
                    let bytes = jobs.iter().map(Job::bytes).sum();
                    self.serve(jobs);
                    waiting.fetch_sub(bytes, Ordering::Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => drop(self.catch_up()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if let Err(lost) = self.catch_up() {
            self.lose(self.owed.len(), &lost.into_error());
        }
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        let objects: Vec<&[u8]> = jobs.iter().filter_map(Job::object).collect();
        let kept = match self.catch_up() {
            Ok(()) => self.keeper.keep_each(&objects),
            Err(lost) => vec![Err(Lost::Unsent(lost.into_failed())); objects.len()],
        };
        let mut kept = kept.into_iter();
        for Job { what, done } in jobs {
            let is_record = matches!(what, What::Keep { .. });
            let told = match what {
                What::Keep { object, now } => match kept.next().unwrap_or(Ok(())) {
                    Err(lost) if !now => self.owe(object, lost),
                    kept => kept.map_err(Lost::into_error),
                },
                What::Connect => self.keeper.keep(&[]).map_err(Lost::into_error),
                What::Flush => self.insist(),
            };
            if let Err(Err(error)) = done.send(told)
                && is_record
            {
                self.lose(1, &error);
            }
        }
    }

    /// Says that records are lost for which nobody waits any more.
    fn lose(&self, records: usize, error: &io::Error) {
        tracing::error!(records, %error, "records of the audit are lost, for which nobody waited any more");
        self.lost.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Holds a record that may be written later, where there is room.
    fn owe(&mut self, object: Vec<u8>, lost: Lost) -> io::Result<()> {
        let perhaps = match &lost {
            Lost::Refused(_) => return Err(lost.into_error()),
            Lost::Unsent(_) => None,
            Lost::Unsure(_, place) => Some(*place),
        };
        let error = lost.into_error();
        let bytes = self.owed_bytes + object.len();
        if bytes > OWED_BYTES {
            let many = self.owed.len();
            return Err(io::Error::other(format!(
                "{error}; {many} records wait for it, and no more are held"
            )));
        }
        if self.owed.is_empty() {
            tracing::error!(%error, "the database of the audit is away; what no call depends on is held until it is back");
        }
        self.owed_bytes = bytes;
        self.owed.push_back(Owed { object, perhaps });
        Ok(())
    }

    /// Writes what is owed. What cannot be written yet stays so.
    fn catch_up(&mut self) -> Result<(), Lost> {
        let before = self.owed.len();
        while let Some(perhaps) = self.owed.front().map(|first| first.perhaps) {
            let alike = self.owed.iter().take_while(|owed| owed.perhaps == perhaps);
            if let Some(place) = perhaps {
                let many = alike.count();
                if self.keeper.is_kept(place)? {
                    (0..many).for_each(|_| self.settle(0));
                } else {
                    self.owed.iter_mut().take(many).for_each(|owed| owed.perhaps = None);
                }
                continue;
            }
            let mut bytes = 0;
            let fitting = alike.take(BATCH).map(|owed| &*owed.object).take_while(|object| {
                let fits = bytes < BATCH_BYTES;
                bytes += object.len();
                fits
            });
            let kept = self.keeper.keep_each(&fitting.collect::<Vec<_>>());
            let (mut at, mut away) = (0, None);
            for kept in kept {
                match kept {
                    Ok(()) => self.settle(at),
                    Err(Lost::Refused(failed)) => {
                        self.settle(at);
                        self.lose(1, &failed.into());
                    }
                    Err(lost) => {
                        if let Lost::Unsure(_, place) = &lost {
                            self.owed[at].perhaps = Some(*place);
                        }
                        away.get_or_insert(lost);
                        at += 1;
                    }
                }
            }
            if let Some(lost) = away {
                return Err(lost);
            }
        }
        if before > 0 {
            tracing::warn!(
                records = before,
                "the database of the audit is back, and has what was held for it"
            );
        }
        Ok(())
    }

    /// The record at this place is owed no more.
    fn settle(&mut self, at: usize) {
        self.owed_bytes -= self.owed.remove(at).map_or(0, |owed| owed.object.len());
    }

    /// The same for whoever does not come again: waits a while for a database that is only started anew.
    fn insist(&mut self) -> io::Result<()> {
        let until = Instant::now() + RESTART;
        loop {
            match self.catch_up() {
                Err(_) if Instant::now() < until => std::thread::sleep(RETRY),
                done => return done.map_err(Lost::into_error),
            }
        }
    }
}

/// Keeps records in the database, as well as it can be reached now.
struct Keeper {
    database: Database,
    segments: Segments,
    connection: Option<Connection>,
    /// Of the file that it is a connection to.
    identity: Option<(u64, u64)>,
}

impl Keeper {
    /// Keeps these records. Says what became of each: after one that may be written later, none is written.
    fn keep_each(&mut self, objects: &[&[u8]]) -> Vec<Result<(), Lost>> {
        in_halves(objects, &mut |objects| self.keep(objects))
    }

    /// Keeps these records, in a transaction.
    fn keep(&mut self, objects: &[&[u8]]) -> Result<(), Lost> {
        if self.connection.is_some() && self.database.identity() != self.identity {
            tracing::error!(
                "the file of the audit was taken away while it was written; it goes on in another"
            );
            self.connection = None;
        }
        // One that was open before may have been closed at the other end, of which nobody knew.
        let mut again = self.connection.is_some();
        loop {
            let mut connection = self.take_connection()?;
            // What fails before it is committed leaves nothing, and can be tried again. With a connection that is lost goes
            // whatever it had begun.
            match begun(&mut connection, objects, &self.segments) {
                Err(failed) if failed.is_away && again => again = false,
                Err(failed) if failed.is_away => return Err(Lost::Unsent(failed)),
                Err(failed) => return Err(self.refused(connection, failed)),
                Ok(None) => {
                    self.connection = Some(connection);
                    return Ok(());
                }
                Ok(Some(Begun { place, ends_segment })) => {
                    match connection.batch("COMMIT") {
                        Err(failed) if failed.is_away => return Err(Lost::Unsure(failed, place)),
                        Err(failed) => return Err(self.refused(connection, failed)),
                        Ok(()) => {}
                    }
                    match self.segments.keep.filter(|_| ends_segment) {
                        Some(keep) => self.retire(connection, place.chain, keep),
                        None => self.connection = Some(connection),
                    }
                    return Ok(());
                }
            }
        }
    }

    fn refused(&mut self, connection: Connection, failed: Failed) -> Lost {
        self.roll_back(connection);
        Lost::Refused(failed)
    }

    fn roll_back(&mut self, mut connection: Connection) {
        self.connection = connection.batch("ROLLBACK").is_ok().then_some(connection);
    }

    /// Drops the segments of a chain that are too many, where that can be done. In a transaction of its own: a role may be
    /// allowed to write and not to drop, a full disk may have room for a record and not for that, and what is written
    /// matters more.
    fn retire(&mut self, mut connection: Connection, chain: u32, keep: u32) {
        match drop_old(&mut connection, chain, keep).and_then(|()| connection.batch("COMMIT")) {
            Ok(()) => self.connection = Some(connection),
            Err(Failed { message, .. }) => {
                tracing::error!(error = message, "old segments of the audit cannot be dropped; they stay");
                self.roll_back(connection);
            }
        }
    }

    /// Whether the transaction that would end there is kept after all.
    fn is_kept(&mut self, place: Place) -> Result<bool, Lost> {
        let mut connection = self.take_connection()?;
        let is_kept = has_line(&mut connection, place).map_err(Lost::Unsent)?;
        self.connection = Some(connection);
        Ok(is_kept)
    }

    /// The connection, to be given back where it can still be used.
    fn take_connection(&mut self) -> Result<Connection, Lost> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let connection = self.database.connect().map_err(Lost::Unsent)?;
        self.identity = self.database.identity();
        Ok(connection)
    }
}

/// Keeps records in a transaction, all or none.
type Attempt<'a> = dyn FnMut(&[&[u8]]) -> Result<(), Lost> + 'a;

/// Keeps these records together or, where the database refuses them so, each half by itself: one that it does not take is
/// found in few steps, and costs no other.
fn in_halves(objects: &[&[u8]], keep: &mut Attempt<'_>) -> Vec<Result<(), Lost>> {
    if objects.is_empty() {
        return Vec::new();
    }
    let together = keep(objects);
    if objects.len() == 1 || !matches!(together, Err(Lost::Refused(_))) {
        return vec![together; objects.len()];
    }
    let (first, second) = objects.split_at(objects.len() / 2);
    let mut each = in_halves(first, keep);
    match each.last() {
        Some(Err(lost @ (Lost::Unsent(_) | Lost::Unsure(..)))) => {
            let unsent = Lost::Unsent(lost.clone().into_failed());
            each.resize(objects.len(), Err(unsent));
        }
        _ => each.extend(in_halves(second, keep)),
    }
    each
}

/// What has gathered behind a job, as far as it is one transaction.
fn gathered(first: Job, queue: &mpsc::Receiver<Job>) -> Vec<Job> {
    let mut bytes = first.bytes();
    let mut jobs = vec![first];
    while jobs.len() < BATCH && bytes < BATCH_BYTES {
        let Ok(job) = queue.try_recv() else { break };
        bytes += job.bytes();
        jobs.push(job);
    }
    jobs
}

/// A transaction that is only to be committed.
struct Begun {
    /// Where it ends.
    place: Place,
    /// It goes on in another segment.
    ends_segment: bool,
}

/// Begins a transaction with these records; `None` where there are none.
fn begun(
    connection: &mut Connection,
    objects: &[&[u8]],
    segments: &Segments,
) -> Result<Option<Begun>, Failed> {
    if objects.is_empty() {
        return Ok(None);
    }
    begin(connection)?;
    let mut head = free_chain(connection)?;
    let segment = head.segment;
    let mut rows = Vec::with_capacity(objects.len());
    let now_ms = jiff::Timestamp::now().as_millisecond();
    for object in objects {
        if head.is_full(segments, now_ms) {
            head.next_segment();
        }
        rows.push(row(&mut head, object, now_ms));
    }
    move_on(connection, &head, rows)?;
    Ok(head.known().map(|Known { sequence, digest, .. }| Begun {
        place: Place { chain: head.chain, sequence, digest },
        ends_segment: head.segment > segment,
    }))
}

fn begin(connection: &mut Connection) -> Result<(), Failed> {
    connection.batch(match connection {
        // Taken at once: a lock that is only asked for later could be refused in the middle.
        Connection::Sqlite(_) => "BEGIN IMMEDIATE",
        Connection::Postgres(_) => "BEGIN",
    })
}

/// Writes lines, and to where the chain has got with them.
fn move_on(connection: &mut Connection, head: &Head, rows: Vec<Row>) -> Result<(), Failed> {
    insert(connection, head.chain, rows)?;
    let digest = head.digest.map(|digest| digest.to_hex().to_string());
    execute!(
        connection,
        "UPDATE aster_audit_chain SET segment = ?1, sequence = ?2, digest = ?3, bytes = ?4, since_ms = ?5 WHERE chain = ?6",
        i64::from(head.segment),
        head.sequence.cast_signed(),
        digest,
        head.bytes.cast_signed(),
        head.since,
        i64::from(head.chain)
    );
    Ok(())
}

/// Whether there is the line that would be there.
fn has_line(connection: &mut Connection, place: Place) -> Result<bool, Failed> {
    let (chain, sequence) = (i64::from(place.chain), place.sequence.cast_signed());
    if let Connection::Postgres(it) = connection {
        // The server may only now be committing it, and keeps the chain from all others until it has. A chain that
        // is made in it cannot be seen before, but nor can it be made again.
        let wait = "INSERT INTO aster_audit_chain (chain, segment, sequence, digest, bytes, since_ms) \
                    VALUES ($1, 1, 0, NULL, 0, 0) ON CONFLICT (chain) DO UPDATE SET chain = EXCLUDED.chain";
        it.execute(wait, &[&chain])?;
    }
    let line = format!("SELECT {} FROM aster_audit WHERE chain = ?1 AND sequence = ?2", connection.lines());
    let mut found = false;
    rows!(connection, &line, [chain, sequence], (line: String) => {
        found = blake3::hash(line.as_bytes()) == place.digest;
    });
    Ok(found)
}

fn row(head: &mut Head, object: &[u8], unix_ms: i64) -> Row {
    let line = head.seal(object);
    head.advance(&line, unix_ms);
    // Of JSON that was written as text there is nothing to replace.
    let line = String::from_utf8_lossy(&line).into_owned();
    Row { sequence: head.sequence.cast_signed(), segment: i64::from(head.segment), unix_ms, line }
}

/// The head of a chain that nobody else is writing to, which is ours until the transaction ends.
fn free_chain(connection: &mut Connection) -> Result<Head, Failed> {
    loop {
        if let Some(head) = head(connection, "ORDER BY chain LIMIT 1", "SKIP LOCKED")? {
            return Ok(head);
        }
        // All are taken, or there is none yet. Where another makes the same one, it is taken too.
        execute!(
            connection,
            "INSERT INTO aster_audit_chain (chain, segment, sequence, digest, bytes, since_ms) \
             SELECT COALESCE(MAX(chain) + 1, 0), 1, 0, NULL, 0, 0 FROM aster_audit_chain WHERE true \
             ON CONFLICT DO NOTHING"
        );
    }
}

/// The head of the chain that is asked for, which is ours until the transaction ends. `otherwise` says what becomes of one that
/// somebody else is writing to, and is waited for unless it does.
fn head(connection: &mut Connection, which: &str, otherwise: &str) -> Result<Option<Head>, Failed> {
    let lock = match connection {
        // There is one writer at a time.
        Connection::Sqlite(_) => String::new(),
        Connection::Postgres(_) => format!("FOR UPDATE {otherwise}"),
    };
    let query = format!(
        "SELECT chain, segment, sequence, digest, bytes, since_ms FROM aster_audit_chain {which} {lock}"
    );
    let mut found = None;
    rows!(
        connection, &query, [],
        (chain: i64, segment: i64, sequence: i64, digest: Option<String>, bytes: i64, since: i64) =>
        found = Some((chain, segment, sequence, digest, bytes, since))
    );
    let Some((chain, segment, sequence, digest, bytes, since)) = found else { return Ok(None) };
    let wrong = || {
        let failed = Failed::of(format!("the head of chain {chain} cannot be read"));
        Failed { is_away: true, ..failed }
    };
    Ok(Some(Head {
        chain: u32::try_from(chain).map_err(|_| wrong())?,
        segment: u32::try_from(segment).map_err(|_| wrong())?,
        sequence: u64::try_from(sequence).map_err(|_| wrong())?,
        digest: digest.map(|digest| Hash::from_hex(digest).map_err(|_| wrong())).transpose()?,
        bytes: u64::try_from(bytes).map_err(|_| wrong())?,
        since,
    }))
}

fn insert(connection: &mut Connection, chain: u32, rows: Vec<Row>) -> Result<(), Failed> {
    let chain = i64::from(chain);
    match connection {
        Connection::Sqlite(it) => {
            let insert = "INSERT INTO aster_audit (chain, sequence, segment, unix_ms, record) VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut statement = it.prepare_cached(insert)?;
            for Row { sequence, segment, unix_ms, line } in rows {
                statement.execute(rusqlite::params![chain, sequence, segment, unix_ms, line])?;
            }
        }
        Connection::Postgres(it) => {
            // One way there and back, however many there are. `json` keeps every byte of the text, unlike `jsonb`.
            let insert = "INSERT INTO aster_audit (chain, sequence, segment, unix_ms, record) \
                          SELECT $1, line.sequence, line.segment, line.unix_ms, line.record::json \
                          FROM UNNEST($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) \
                          AS line (sequence, segment, unix_ms, record)";
            let of = |field: fn(&Row) -> i64| rows.iter().map(field).collect::<Vec<_>>();
            let (sequences, segments, times) =
                (of(|row| row.sequence), of(|row| row.segment), of(|row| row.unix_ms));
            let lines: Vec<&str> = rows.iter().map(|row| &*row.line).collect();
            it.execute(insert, &[&chain, &sequences, &segments, &times, &lines])?;
        }
    }
    Ok(())
}

/// Begins a transaction that drops the segments of a chain that are too many, and says so in the chain.
fn drop_old(connection: &mut Connection, chain: u32, keep: u32) -> Result<(), Failed> {
    begin(connection)?;
    let Some(mut head) = head(connection, &format!("WHERE chain = {chain}"), "")? else { return Ok(()) };
    let Some(first) = head.segment.checked_sub(keep).map(i64::from) else { return Ok(()) };
    let chain = i64::from(chain);
    let last = format!(
        "SELECT {} FROM aster_audit WHERE chain = ?1 AND segment < ?2 ORDER BY sequence DESC LIMIT 1",
        connection.lines()
    );
    let mut note = None;
    rows!(connection, &last, [chain, first], (line: String) => {
        note = Link::parse(line.as_bytes())
            .map(|link| Note::Dropped { before: link.sequence + 1, digest: blake3::hash(line.as_bytes()) });
    });
    let Some(note) = note else { return Ok(()) };
    execute!(connection, "DELETE FROM aster_audit WHERE chain = ?1 AND segment < ?2", chain, first);
    let row = row(&mut head, &note.object(&now()), jiff::Timestamp::now().as_millisecond());
    move_on(connection, &head, vec![row])
}

/// Reads what is in the database, and later what has come since.
#[derive(Debug)]
pub(super) struct Reader {
    database: Arc<Database>,
    /// By chain, the number of the line that was read last.
    read: BTreeMap<i64, i64>,
}

impl Reader {
    pub(super) fn sqlite(path: PathBuf) -> Self {
        Self { database: Arc::new(Database::Sqlite(path)), read: BTreeMap::new() }
    }

    pub(super) fn postgres(url: &str) -> io::Result<Self> {
        // A chain is one statement, which takes as long as it is read.
        let database = Database::postgres(url, &["lock_timeout"])?;
        Ok(Self { database: Arc::new(database), read: BTreeMap::new() })
    }

    /// The heads of the chains. Read before the lines, they are never ahead of them.
    pub(super) async fn heads(&self) -> io::Result<BTreeMap<u32, Known>> {
        let database = Arc::clone(&self.database);
        blocking(move || heads(&database)).await
    }

    /// Passes every line that was not read before, chain by chain, in order, with the chain's name.
    pub(super) async fn read(&mut self, mut visit: impl FnMut(&str, &[u8])) -> io::Result<()> {
        self.pass(read_lines, |chain, line| visit(&format!("chain {chain}"), line)).await
    }

    /// The same of all chains by the time at which the lines were written.
    pub(super) async fn read_by_time(&mut self, mut visit: impl FnMut(&[u8])) -> io::Result<()> {
        self.pass(read_lines_by_time, |_, line| visit(line)).await
    }

    async fn pass(&mut self, lines: ReadLines, mut visit: impl FnMut(i64, &[u8])) -> io::Result<()> {
        let (passed, mut arriving) = tokio::sync::mpsc::channel(BATCH);
        let (database, read) = (Arc::clone(&self.database), self.read.clone());
        let reading = tokio::task::spawn_blocking(move || lines(&database, &read, &passed));
        while let Some((chain, sequence, line)) = arriving.recv().await {
            visit(chain, line.as_bytes());
            self.read.insert(chain, sequence);
        }
        reading.await.unwrap_or_else(|_| Err(Failed::of("the reader panicked"))).map_err(io::Error::from)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Failed::of("the reader panicked"))).map_err(io::Error::from)
}

fn heads(database: &Database) -> Result<BTreeMap<u32, Known>, Failed> {
    let mut known = BTreeMap::new();
    let Some(mut connection) = database.connect_to_read()? else { return Ok(known) };
    rows!(
        &mut connection,
        "SELECT chain, segment, sequence, digest FROM aster_audit_chain WHERE digest IS NOT NULL", [],
        (chain: i64, segment: i64, sequence: i64, digest: String) => {
            let head = || {
                let (segment, sequence) = (u32::try_from(segment).ok()?, u64::try_from(sequence).ok()?);
                Some((u32::try_from(chain).ok()?, Known { segment, sequence, digest: Hash::from_hex(digest).ok()? }))
            };
            known.extend(head());
        }
    );
    Ok(known)
}

/// A line, with its chain and its number.
type Passed = (i64, i64, String);

type ReadLines = fn(&Database, &BTreeMap<i64, i64>, &tokio::sync::mpsc::Sender<Passed>) -> Result<(), Failed>;

fn chains(connection: &mut Connection) -> Result<Vec<i64>, Failed> {
    let mut chains = Vec::new();
    rows!(connection, "SELECT DISTINCT chain FROM aster_audit ORDER BY chain", [], (chain: i64) => chains.push(chain));
    Ok(chains)
}

fn lines_after(connection: &Connection) -> String {
    let columns = connection.lines();
    format!(
        "SELECT sequence, {columns} FROM aster_audit WHERE chain = ?1 AND sequence > ?2 ORDER BY sequence"
    )
}

fn read_lines(
    database: &Database,
    read: &BTreeMap<i64, i64>,
    passed: &tokio::sync::mpsc::Sender<Passed>,
) -> Result<(), Failed> {
    let Some(mut connection) = database.connect_to_read()? else { return Ok(()) };
    let lines = lines_after(&connection);
    for chain in chains(&mut connection)? {
        let after = read.get(&chain).copied().unwrap_or_default();
        rows!(&mut connection, &lines, [chain, after], (sequence: i64, line: String) => {
            if passed.blocking_send((chain, sequence, line)).is_err() {
                return Ok(());
            }
        });
    }
    Ok(())
}

/// What comes next in a chain, a batch at a time.
struct Upcoming {
    chain: i64,
    after: i64,
    lines: VecDeque<(i64, String)>,
}

impl Upcoming {
    /// When the next line was written, if there is one.
    fn next(&mut self, connection: &mut Connection) -> Result<Option<i64>, Failed> {
        if self.lines.is_empty() {
            let lines = format!("{} LIMIT {BATCH}", lines_after(connection));
            rows!(connection, &lines, [self.chain, self.after], (sequence: i64, line: String) => {
                self.after = sequence;
                self.lines.push_back((sequence, line));
            });
        }
        Ok(self.lines.front().map(|(_, line)| written(line.as_bytes())))
    }
}

fn read_lines_by_time(
    database: &Database,
    read: &BTreeMap<i64, i64>,
    passed: &tokio::sync::mpsc::Sender<Passed>,
) -> Result<(), Failed> {
    let Some(mut connection) = database.connect_to_read()? else { return Ok(()) };
    let upcoming = chains(&mut connection)?.into_iter().map(|chain| {
        let after = read.get(&chain).copied().unwrap_or_default();
        Upcoming { chain, after, lines: VecDeque::new() }
    });
    let mut upcoming: Vec<Upcoming> = upcoming.collect();
    let mut merge = Merge::default();
    for (at, chain) in upcoming.iter_mut().enumerate() {
        merge.add(at, chain.next(&mut connection)?);
    }
    while let Some(at) = merge.first() {
        let chain = &mut upcoming[at];
        let Some((sequence, line)) = chain.lines.pop_front() else { continue };
        if passed.blocking_send((chain.chain, sequence, line)).is_err() {
            return Ok(());
        }
        merge.add(at, chain.next(&mut connection)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_bounded_by_its_bytes_and_by_its_records() {
        let job = |bytes: usize| Job {
            what: What::Keep { object: vec![b' '; bytes], now: false },
            done: oneshot::channel().0,
        };
        let (jobs, queue) = mpsc::sync_channel(QUEUE);
        let sizes = [3 << 20, 3 << 20, 3 << 20, 1, 20 << 20, 1];
        sizes.iter().for_each(|bytes| jobs.send(job(*bytes)).expect("there is room"));
        let many = || gathered(queue.recv().expect("there is one"), &queue).len();
        assert_eq!([many(), many(), many()], [3, 2, 1]);
        (0..BATCH + 1).for_each(|_| jobs.send(job(1)).expect("there is room"));
        let many = || gathered(queue.recv().expect("there is one"), &queue).len();
        assert_eq!([many(), many()], [BATCH, 1]);
    }

    #[tokio::test]
    async fn what_waits_is_bounded_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.db");
        let sink = Sql::sqlite(&path, Segments::default()).unwrap();
        sink.connect().await.unwrap();
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let quarter = |number: usize| {
            let text = " ".repeat(QUEUE_BYTES / 4);
            format!("{{\"number\":{number},\"text\":\"{text}\"}}").into_bytes()
        };
        let send = |number: usize| sink.send(What::Keep { object: quarter(number), now: false });
        let taken: Vec<usize> = (0..6).filter(|number| send(*number).is_ok()).collect();
        assert_eq!(taken, [0, 1, 2, 3]);
        other.execute_batch("COMMIT").unwrap();
        sink.flush().await.unwrap();
        // Whoever flushes is told before what that took is counted off, and whoever comes then is not.
        sink.flush().await.unwrap();
        send(6).unwrap().await.unwrap().unwrap();
        assert_eq!((kept(&path), sink.lost()), (vec![0, 1, 2, 3, 6], 0));
    }

    /// Brings records that no call depends on, and gives back what is said of each.
    fn bring(writer: &mut Writer, records: impl IntoIterator<Item = Vec<u8>>) -> Vec<io::Result<()>> {
        let (jobs, told): (Vec<Job>, Vec<_>) = records
            .into_iter()
            .map(|object| {
                let (done, told) = oneshot::channel();
                (Job { what: What::Keep { object, now: false }, done }, told)
            })
            .unzip();
        writer.serve(jobs);
        told.into_iter().map(|told| told.blocking_recv().unwrap()).collect()
    }

    /// The numbers that the records have which are kept, in order.
    fn kept(path: &Path) -> Vec<i64> {
        let connection = rusqlite::Connection::open(path).unwrap();
        let query = "SELECT record ->> 'number' FROM aster_audit ORDER BY sequence";
        let mut statement = connection.prepare(query).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn numbered(number: usize) -> Vec<u8> {
        format!("{{\"number\":{number}}}").into_bytes()
    }

    fn writer(path: &Path) -> Writer {
        Writer::new(Database::Sqlite(path.to_owned()), Segments::default(), Arc::default())
    }

    #[test]
    fn what_is_owed_is_bounded_and_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let away = folder.path().join("away");
        std::fs::write(&away, "no folder").unwrap();
        let path = away.join("audit.db");
        let mut writer = writer(&path);
        let large =
            |number: usize| format!("{{\"number\":{number},\"text\":\"{}\"}}", " ".repeat(OWED_BYTES / 2));
        let told =
            bring(&mut writer, [numbered(1), large(2).into_bytes(), large(3).into_bytes(), numbered(4)]);
        assert_eq!(told.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true]);
        assert!(told[2].as_ref().unwrap_err().to_string().contains("2 records wait for it"), "{told:?}");
        assert_eq!(writer.owed.len(), 3);
        std::fs::remove_file(&away).unwrap();
        assert!(bring(&mut writer, [numbered(5)])[0].is_ok());
        assert_eq!((kept(&path), writer.owed_bytes), (vec![1, 2, 4, 5], 0));
    }

    #[test]
    fn what_may_be_kept_is_looked_for_before_it_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.db");
        let mut writer = writer(&path);
        assert!(bring(&mut writer, [numbered(1), numbered(2)]).iter().all(Result::is_ok));
        let mut head = free_chain(writer.keeper.connection.as_mut().unwrap()).unwrap();
        let place = |head: &Head| {
            let Known { sequence, digest, .. } = head.known().unwrap();
            Place { chain: head.chain, sequence, digest }
        };
        let there = place(&head);
        head.advance(b"{}", 0);
        let nowhere = place(&head);
        for (number, place) in [(2, there), (3, nowhere), (4, nowhere)] {
            let lost = Lost::Unsure(Failed::of("the connection is closed"), place);
            writer.owe(numbered(number), lost).unwrap();
        }
        assert!(bring(&mut writer, [numbered(5)])[0].is_ok());
        assert_eq!(kept(&path), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn only_records_that_nobody_hears_of_are_counted_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        let away = folder.path().join("away");
        std::fs::write(&away, "no folder").unwrap();
        let mut writer = writer(&away.join("audit.db"));
        let keep = || What::Keep { object: numbered(1), now: true };
        let (done, told) = oneshot::channel();
        let nobody = || oneshot::channel().0;
        writer.serve(vec![
            Job { what: keep(), done },
            Job { what: keep(), done: nobody() },
            Job { what: What::Connect, done: nobody() },
        ]);
        assert!(told.blocking_recv().unwrap().is_err());
        assert_eq!(writer.lost.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_record_that_is_refused_is_found_in_few_steps() {
        let objects = vec![b"good".as_slice(); BATCH];
        for (bad, most) in [(vec![0], 17), (vec![100], 17), (vec![BATCH - 1], 17), (vec![7, 200], 33)] {
            let mut objects = objects.clone();
            bad.iter().for_each(|at| objects[*at] = b"bad");
            let mut asked = 0;
            let each = in_halves(&objects, &mut |some| {
                asked += 1;
                let refused = some.contains(&b"bad".as_slice());
                if refused { Err(Lost::Refused(Failed::of("refused"))) } else { Ok(()) }
            });
            let failed: Vec<usize> = (0..BATCH).filter(|at| each[*at].is_err()).collect();
            assert_eq!((failed, each.len()), (bad, BATCH));
            assert!(asked <= most, "{asked}");
        }
    }

    #[test]
    fn after_what_may_be_written_later_nothing_is_written() {
        let objects = [b"1".as_slice(), b"2", b"3", b"4"];
        let mut asked = Vec::new();
        let each = in_halves(&objects, &mut |some| {
            asked.push(some.len());
            let failed = Failed::of("no");
            Err(if some.len() == 4 { Lost::Refused(failed) } else { Lost::Unsent(failed) })
        });
        assert_eq!(asked, [4, 2]);
        assert!(each.len() == 4 && each.iter().all(|kept| matches!(kept, Err(Lost::Unsent(_)))), "{each:?}");
    }
}
