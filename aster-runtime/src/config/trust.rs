//! Consent to the servers that a project's file declares, remembered by digest.
//!
//! A consent binds what would be run: the server's name, its command, arguments, variables (names and values, as the
//! file has them, before `${…}` is filled in) and working directory, and the directory of the project's file. When
//! one of them changes the server needs consent anew, and the same lines in another checkout are another server. It
//! does not bind what the command itself loads: a consent to `./server.py` or to `npx package` is one to whatever
//! they contain on the day.
//!
//! Constraint: every doubt ends in "not trusted". A store that is damaged, or that others may write to, holds nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Declared, Origin, ServerConfig, state};
use crate::catalogue::Health;
use crate::pins::now;
use crate::text::is_unsafe;
pub use crate::text::visible;
use unicode_normalization::char::is_combining_mark;

/// The name of the store in the state directory.
pub const FILE_NAME: &str = "trust.json";

const VERSION: u32 = 1;

/// The identity of what a user consents to.
///
/// ```
/// # use aster_runtime::config::{Sources, load, trust::Digest};
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("aster.yaml");
/// # std::fs::write(&file, "mcp: {servers: {a: {command: b}}}")?;
/// # let sources = Sources { project: Some(file), ..Sources::default() };
/// # let config = load(&sources, &[], &|_| None)?;
/// let digest = Digest::of(&config.servers[0]);
/// assert_eq!(digest.to_string().len(), 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of a server as its file declares it.
    #[must_use]
    pub fn of(server: &ServerConfig) -> Self {
        Self::over(b"aster consent 1", server, |_| true)
    }

    /// The digest of what the user's own server runs: without the variables that change no code, such as a key that is
    /// renewed.
    pub(super) fn of_command(server: &ServerConfig) -> Self {
        Self::over(b"aster command 1", server, loads_code)
    }

    fn over(domain: &[u8], server: &ServerConfig, counts: impl Fn(&str) -> bool) -> Self {
        let Declared { command, args, env, cwd } = &server.declared;
        let mut hasher = blake3::Hasher::new();
        // Every field with its length, every list with its count: no two declarations share an encoding.
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(domain);
        field(server.file.parent().unwrap_or(&server.file).as_os_str().as_encoded_bytes());
        field(server.name.as_bytes());
        field(command.as_bytes());
        field(&(args.len() as u64).to_le_bytes());
        args.iter().for_each(|arg| field(arg.as_bytes()));
        let mut env: Vec<_> = env.iter().filter(|(name, _)| counts(name)).collect();
        env.sort();
        field(&(env.len() as u64).to_le_bytes());
        for (name, value) in env {
            field(name.as_bytes());
            field(value.as_bytes());
        }
        field(&[u8::from(cwd.is_some())]);
        field(cwd.as_deref().unwrap_or_default().as_bytes());
        Self(hasher.finalize().to_hex().to_string())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One consent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// What was consented to.
    pub digest: Digest,
    /// The server's name.
    pub name: String,
    /// The directory of the project's file.
    pub directory: PathBuf,
    /// The program, to recognise the entry by.
    pub command: String,
    /// When, in RFC 3339.
    pub granted: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    servers: Vec<Grant>,
}

/// The consents of one user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    grants: Vec<Grant>,
}

impl TrustStore {
    /// Reads the store; a missing one is empty. The second value says why a store was not believed.
    #[must_use]
    pub fn open(path: &Path) -> (Self, Option<String>) {
        let (grants, warning) = match read(path) {
            Ok(grants) => (grants, None),
            Err(reason) => {
                let place = visible(&path.display().to_string());
                (
                    Vec::new(),
                    Some(format!(
                        "{place}: {reason}; no project's server is trusted until it is mended or removed"
                    )),
                )
            }
        };
        (Self { grants }, warning)
    }

    /// Changes the store as it is now, and saves it: what others changed since it was last read stays changed. A store
    /// that is not believed is replaced.
    ///
    /// # Errors
    ///
    /// Where the store cannot be locked or written, or would not be believed.
    pub fn update<T>(path: &Path, change: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        state::locked(path, || {
            let (mut store, _) = Self::open(path);
            let changed = change(&mut store);
            state::write(path, &Stored { version: VERSION, servers: store.grants })?;
            read(path).map_err(io::Error::other)?;
            Ok(changed)
        })
    }

    /// Whether the server may be started: the user's own may, a project's after consent to exactly this.
    #[must_use]
    pub fn trusts(&self, server: &ServerConfig) -> bool {
        server.origin == Origin::User || {
            let digest = Digest::of(server);
            self.grants.iter().any(|grant| grant.digest == digest)
        }
    }

    /// The consents, oldest first.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Remembers a consent. [`update`](Self::update) makes it last.
    pub fn grant(&mut self, server: &ServerConfig) {
        if self.trusts(server) {
            return;
        }
        self.grants.push(Grant {
            digest: Digest::of(server),
            name: server.name.clone(),
            directory: server.file.parent().unwrap_or(&server.file).to_owned(),
            command: server.declared.command.clone(),
            granted: now(),
        });
    }

    /// Forgets every consent to servers of this name, in whatever project, and answers with them.
    pub fn remove(&mut self, name: &str) -> Vec<Grant> {
        let (removed, kept) =
            std::mem::take(&mut self.grants).into_iter().partition(|grant| grant.name == name);
        self.grants = kept;
        removed
    }
}

/// What a server shows that must not be started before consent.
#[must_use]
pub fn needs_consent(name: &str) -> Health {
    Health::NeedsConsent(format!("run `aster mcp trust {name}`"))
}

/// What the user's own server shows whose command is another than the one it was started with before.
#[must_use]
pub fn has_changed(name: &str) -> Health {
    Health::NeedsConsent(format!(
        "its command has changed since you trusted it; run `aster mcp trust {name}`"
    ))
}

fn read(path: &Path) -> Result<Vec<Grant>, String> {
    const WHAT: &str = "the list of consents";
    match state::read::<Stored>(path, WHAT)? {
        None => Ok(Vec::new()),
        Some(stored) if stored.version == VERSION => Ok(stored.servers),
        Some(stored) => Err(format!("{WHAT} has version {}, not {VERSION}", stored.version)),
    }
}

/// As [`visible`], for one value among others: in quotes where it is empty, or where white space could make it look like
/// more or fewer values, such as a row of spaces that fills a line of the terminal.
///
/// ```
/// use aster_runtime::config::trust::quoted;
///
/// assert_eq!(quoted("a b"), "a b");
/// assert_eq!(quoted(""), r#""""#);
/// assert_eq!(quoted("a   b "), r#""a \u{20}\u{20}b ""#);
/// ```
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut last = None;
    for c in text.chars() {
        let repeats = c == ' ' && last == Some(' ');
        // Without a letter before it, it would be drawn over what the value stands next to.
        let mark = is_combining_mark(c)
            && last.is_none_or(|last| !last.is_alphanumeric() && !is_combining_mark(last));
        match repeats || mark {
            true => shown.extend(c.escape_unicode()),
            false => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
        last = Some(c);
    }
    let spaced = text.starts_with(' ') || text.ends_with(' ') || text.contains("  ");
    if text.is_empty() || spaced || text.contains('"') {
        return format!("\"{}\"", shown.replace('"', "\\\""));
    }
    shown
}

/// What a reader of the command should not overlook, as fragments.
#[must_use]
pub fn hazards(declared: &Declared) -> Vec<&'static str> {
    let words = || {
        let texts = std::iter::once(&declared.command).chain(&declared.args);
        texts.flat_map(|text| text.split(|c: char| c.is_whitespace() || ";&|()`\"'".contains(c)))
    };
    let runs = |names: &[&str]| words().any(|word| names.contains(&program(word)));
    let texts: Vec<&str> = std::iter::once(&declared.command)
        .chain(&declared.args)
        .chain(declared.env.iter().map(|(_, value)| value))
        .chain(&declared.cwd)
        .map(String::as_str)
        .collect();

    let mut hazards = Vec::new();
    if runs(&["sudo", "doas", "su", "pkexec", "runas"]) {
        hazards.push("it asks for the rights of another user (`sudo` or the like)");
    }
    if runs(&["rm"]) && recursive_and_forced(words()) {
        hazards.push("it deletes directories without asking (`rm -rf`)");
    }
    if texts.iter().any(|text| text.split(['/', '\\', ' ', '=', ':']).any(|part| part == ".ssh")) {
        hazards.push("it names a path in `.ssh`, where private keys lie");
    }
    if runs(&["curl", "wget"]) && texts.iter().any(|text| pipes_into_shell(text)) {
        hazards.push("it runs what it downloads (`curl … | sh`)");
    }
    if declared.env.iter().any(|(name, _)| loads_code(name)) {
        hazards.push(
            "it sets a variable that changes which code programs load or where they fetch it (`LD_PRELOAD`, `PATH`, \
             `NPM_CONFIG_REGISTRY` or the like)",
        );
    }
    if texts.iter().any(|text| text.chars().any(is_unsafe)) {
        hazards.push("it has control or invisible characters, shown as `\\u{…}`");
    }
    hazards
}

fn program(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    name.strip_suffix(".exe").unwrap_or(name)
}

fn recursive_and_forced<'a>(words: impl Iterator<Item = &'a str>) -> bool {
    let (mut recursive, mut forced) = (false, false);
    for word in words {
        let short = word.starts_with('-') && !word.starts_with("--");
        recursive |= word == "--recursive" || (short && word.contains(['r', 'R']));
        forced |= word == "--force" || (short && word.contains('f'));
    }
    recursive && forced
}

fn pipes_into_shell(text: &str) -> bool {
    let shell = |word: &str| {
        matches!(program(word), "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "python" | "python3")
    };
    text.split('|').skip(1).any(|command| command.split_whitespace().take(3).any(shell))
        || text.contains("<(curl")
        || text.contains("$(curl")
        || text.contains("$(wget")
}

/// Whether programs read from a variable of this name what to load, where to fetch it, or how to run it.
fn loads_code(name: &str) -> bool {
    const PREFIXES: [&str; 8] = ["DYLD_", "GIT_", "LD_", "NODE_", "NPM_CONFIG_", "PIP_", "PYTHON", "UV_"];
    const NAMES: [&str; 8] =
        ["BASH_ENV", "ENV", "JAVA_TOOL_OPTIONS", "PATH", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT"];
    let name = name.to_ascii_uppercase();
    NAMES.contains(&&*name)
        || name.ends_with("_PROXY")
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
