//! A server as a child process: what is configured of it, what of our environment it gets, and how it ends together
//! with everything that it started.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use process_wrap::tokio::ChildWrapper;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::diagnostics::Diagnostics;
use super::raw::{Line, Lines};
use crate::catalogue::ExternalSettings;
use crate::process::{contained, environment, program, spawn_failure};

/// How long a server has to end by itself after its standard input was closed, and again after it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the rest of a server's process group has after the server itself has ended.
const ORPHAN_PATIENCE: Duration = Duration::from_millis(500);

/// What a shell runs beside the server: it ends the server's process group when its standard input does, which is when
/// we end without having ended the server ourselves. It goes the same way as [`Process::close`].
#[cfg(unix)]
const WATCHDOG: &str = "trap '' HUP INT QUIT TERM; read -r _; sleep 2; kill -s TERM -- \"-$1\"; sleep 2; kill -s KILL -- \"-$1\"";

/// The longest line of standard error that is looked at, in bytes.
const MAX_STDERR_LINE: usize = 64 << 10;

/// What is configured of a server that is a program speaking MCP on its standard input and output.
#[derive(Clone)]
#[non_exhaustive]
pub struct StdioServer {
    /// The server's name, unique in the configuration.
    pub name: String,
    /// The program: a path, or a name that is looked up on `PATH`.
    pub command: String,
    /// Its arguments. No shell reads them.
    pub args: Vec<String>,
    /// Variables of its environment, beside [`INHERITED_VARIABLES`](crate::process::INHERITED_VARIABLES). Their values are kept
    /// out of what is told of the server's state, its errors and its log;
    /// [`HostBuilder::secrets`](crate::host::HostBuilder::secrets) keeps them out of all the rest, such as results.
    pub env: BTreeMap<String, String>,
    /// What else is kept out in the same way, such as a token among the arguments.
    pub secrets: Vec<String>,
    /// Its working directory; `None` is ours.
    pub cwd: Option<PathBuf>,
    /// What is configured of its tools.
    pub settings: ExternalSettings,
    /// How long it may take from its start to its complete list of tools. A package runner with a cold cache takes
    /// long. 60 s unless set.
    pub startup_timeout: Duration,
    /// How long a call may go on without an answer or a sign of progress. 60 s unless set.
    pub call_timeout: Duration,
    /// How long a call may go on in all, whatever progress it reports. 10 min unless set.
    pub call_limit: Duration,
    /// The pause before a server that ended is started again, four times as long after each failure. A call to it
    /// does not wait for this. 1 s unless set.
    pub restart_delay: Duration,
}

impl StdioServer {
    /// A server of this name that runs `command`, with the defaults.
    #[must_use]
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            settings: ExternalSettings::default(),
            secrets: Vec::new(),
            startup_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(60),
            call_limit: Duration::from_secs(600),
            restart_delay: Duration::from_secs(1),
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I, A>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = A>,
        A: Into<String>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Adds values that are treated like those of its environment: what a variable put into an argument, say.
    #[must_use]
    pub fn secrets<V: Into<String>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.secrets.extend(values.into_iter().map(Into::into));
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Says what is configured of its tools.
    #[must_use]
    pub fn settings(mut self, settings: ExternalSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets how long it may take to start.
    #[must_use]
    pub fn startup_timeout(mut self, limit: Duration) -> Self {
        self.startup_timeout = limit;
        self
    }

    /// Sets how long a call may go on without a sign of progress.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// Sets how long a call may go on in all.
    #[must_use]
    pub fn call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// Sets the pause before the first restart.
    #[must_use]
    pub fn restart_delay(mut self, pause: Duration) -> Self {
        self.restart_delay = pause;
        self
    }
}

impl fmt::Debug for StdioServer {
    /// Without arguments and values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioServer")
            .field("name", &self.name)
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// A running server. Dropping it kills its whole process group; [`close`](Self::close) asks first.
#[derive(Debug)]
pub(super) struct Process {
    child: Box<dyn ChildWrapper>,
    exited: Option<ExitStatus>,
    stderr: Option<JoinHandle<()>>,
    #[cfg(unix)]
    watchdog: Option<tokio::process::Child>,
}

impl Process {
    /// Starts the server.
    ///
    /// # Errors
    ///
    /// Why it cannot be started, for people.
    pub(super) fn spawn(
        server: &StdioServer,
        diagnostics: &Arc<Diagnostics>,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        if let Some(cwd) = server.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
            return Err(format!("its working directory `{}` is no directory", cwd.display()));
        }
        let environment = environment(std::env::vars_os(), &server.env);
        let mut command = Command::new(program(&server.command, &environment));
        command.args(&server.args).env_clear().envs(&environment);
        if let Some(cwd) = &server.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());

        let mut child = contained(command).spawn().map_err(|error| spawn_failure(&server.command, &error))?;

        let pipes = (child.stdout().take(), child.stdin().take(), child.stderr().take());
        let mut process = Self {
            #[cfg(unix)]
            watchdog: child.id().and_then(watch),
            child,
            exited: None,
            stderr: None,
        };
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err("its standard streams are no pipes".to_owned());
        };
        process.stderr = Some(tokio::spawn(drain(stderr, Arc::clone(diagnostics))));
        Ok((process, stdout, stdin))
    }

    /// Waits for the server itself, though not for what it started, to end.
    pub(super) async fn wait(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            // The group's own `wait` would also wait for its other members.
            self.exited = self.child.inner_mut().wait().await.ok();
        }
        self.exited
    }

    /// How the server ended, if it does so within `patience`, with its last words read.
    pub(super) async fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
        let status = timeout(patience, self.wait()).await.ok().flatten()?;
        if let Some(stderr) = &mut self.stderr {
            // Ends with the pipe, which a grandchild may hold open.
            if timeout(ORPHAN_PATIENCE, stderr).await.is_ok() {
                self.stderr = None;
            }
        }
        Some(status)
    }

    /// Ends the server, whose standard input is closed already: waits, asks its process group to end, kills it.
    pub(super) async fn close(mut self) {
        let ended = timeout(PATIENCE, self.wait()).await.is_ok();
        if !self.terminate() {
            return;
        }
        if ended {
            tokio::time::sleep(ORPHAN_PATIENCE).await;
        } else {
            let _ = timeout(PATIENCE, self.wait()).await;
        }
    }

    /// Asks the process group to end. `false` where nothing is left of it, or nothing can be asked.
    #[cfg(unix)]
    fn terminate(&self) -> bool {
        const SIGTERM: i32 = 15;
        self.child.signal(SIGTERM).is_ok()
    }

    #[cfg(not(unix))]
    fn terminate(&self) -> bool {
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The whole group, also where the server itself has ended; an error says that nothing is left.
        let _ = self.child.start_kill();
        #[cfg(unix)]
        if let Some(watchdog) = &mut self.watchdog {
            // Before its standard input is closed, which it would take for our end.
            let _ = watchdog.start_kill();
        }
        if let Some(stderr) = &self.stderr {
            stderr.abort();
        }
    }
}

/// Starts a watchdog over a process group: a server may ignore the end of its standard input, and the kernel's own
/// parent-death signal ends no grandchildren and needs code between `fork` and `exec`. Without a shell there is none.
#[cfg(unix)]
fn watch(group: u32) -> Option<tokio::process::Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WATCHDOG, "aster-watchdog"]).arg(group.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // Away from the terminal's signals, and from the variables that the server does not get either.
    command.process_group(0).kill_on_drop(true).env_clear().env("PATH", "/usr/bin:/bin");
    command.spawn().inspect_err(|error| tracing::debug!(%error, "no watchdog")).ok()
}

/// Reads standard error for as long as there is any, so that the server never blocks on it.
async fn drain(mut stderr: impl AsyncRead + Unpin, diagnostics: Arc<Diagnostics>) {
    let mut lines = Lines::new(MAX_STDERR_LINE);
    let mut chunk = vec![0; 8 << 10];
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        lines.push(&chunk[..count]);
        while let Some(Line::Whole(line) | Line::TooLong(line)) = lines.next() {
            diagnostics.stderr(&line);
        }
    }
    if let Some(Line::Whole(line) | Line::TooLong(line)) = lines.finish() {
        diagnostics.stderr(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let server = StdioServer::new("s", "c").args(["--token=hunter2"]).env("TOKEN", "hunter2");
        let text = format!("{server:?}");
        assert!(text.contains("TOKEN") && !text.contains("hunter2"), "{text}");
    }
}
