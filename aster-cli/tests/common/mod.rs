//! A home directory and a project of their own for one test, and the command run in them.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) struct Sandbox {
    root: tempfile::TempDir,
}

pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["home", "config", "state", "project/.git"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn user(&self, text: &str) {
        self.write("config/aster/aster.yaml", text);
    }

    pub(crate) fn project(&self, text: &str) {
        self.write("project/aster.yaml", text);
    }

    /// The small server of `peer.sh` as an entry of `mcp.servers`, with `more` in it. What it does is in the file `log`.
    #[allow(dead_code, reason = "not all tests need a server")]
    pub(crate) fn peer(&self, more: &str) -> String {
        self.write("peer.sh", include_str!("peer.sh"));
        let (script, log) = (self.path("peer.sh"), self.path("log"));
        format!("{{command: sh, args: ['{}', '{}']{more}}}", script.display(), log.display())
    }

    pub(crate) fn command(&self) -> Command {
        self.prepare(Command::new(env!("CARGO_BIN_EXE_aster")))
    }

    /// The same surroundings for another program.
    pub(crate) fn prepare(&self, mut command: Command) -> Command {
        command
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("APPDATA", self.path("config"))
            .env("LOCALAPPDATA", self.path("state"));
        command
    }

    /// Runs the command without a terminal.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Outcome {
        self.run_with_input(arguments, "")
    }

    pub(crate) fn run_with_input<A: AsRef<OsStr>>(&self, arguments: &[A], input: &str) -> Outcome {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads no input may be gone before it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| self.redact(&String::from_utf8(bytes).unwrap());
        Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    fn redact(&self, text: &str) -> String {
        text.replace(&*self.path("").to_string_lossy(), "[ROOT]/")
    }
}

impl Outcome {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
