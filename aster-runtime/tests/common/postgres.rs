//! A PostgreSQL server of a test's own: the real one, in a temporary folder, on a free port of loopback.

use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The superuser's password: scanned for by tests, so that it must not turn up anywhere.
pub(crate) const PASSWORD: &str = "canary-of-the-database";

pub(crate) struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    port: u16,
    /// Who runs it, where this process may not: the server refuses to be run by root.
    user: Option<u32>,
}

impl Postgres {
    /// Starts one. `None`, and a line that says so, where PostgreSQL is not installed; with `ASTER_POSTGRES=required` in the
    /// environment, that fails.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os("ASTER_POSTGRES").is_none(),
                "ASTER_POSTGRES is set, and there is no initdb on PATH or in /usr/lib/postgresql"
            );
            let _ =
                writeln!(io::stderr(), "skipped: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let user = (fs::metadata("/proc/self").map(|own| own.uid()).unwrap_or(1) == 0).then(unprivileged);
        if let Some(user) = user {
            chown(folder.path(), Some(user), None).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { programs, folder, port, user };
        let password = server.folder.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        chown(&password, user, None).unwrap();
        let data = server.data();
        let auth = ["--auth=scram-sha-256", "--username=aster", "--encoding=UTF8", "--locale=C", "--no-sync"];
        server
            .run("initdb", |command| command.args(auth).arg("--pwfile").arg(&password).arg("-D").arg(&data));
        server.serve();
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://aster:{PASSWORD}@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends the server at once, as a crash would.
    pub(crate) fn crash(&self) {
        let data = self.data();
        self.run("pg_ctl", |command| command.args(["stop", "-w", "-m", "immediate"]).arg("-D").arg(&data));
    }

    /// Starts it, again after a crash.
    pub(crate) fn serve(&self) {
        let folder = self.folder.path().display();
        let options = format!("-p {} -c listen_addresses=127.0.0.1 -c fsync=off -k {folder}", self.port);
        let (data, log) = (self.data(), self.folder.path().join("log"));
        self.run("pg_ctl", |command| {
            command.args(["start", "-w", "-o", &options]).arg("-D").arg(&data).arg("-l").arg(&log)
        });
    }

    /// What a statement answers, by `psql`.
    pub(crate) fn query(&self, statement: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, &self.url()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run(&self, program: &str, prepare: impl FnOnce(&mut Command) -> &mut Command) {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if let Some(user) = self.user {
            command.uid(user);
        }
        // A server that inherits a pipe would keep it open.
        let out = self.folder.path().join("out");
        let file = fs::File::create(&out).unwrap();
        prepare(&mut command).stdout(file.try_clone().unwrap()).stderr(file);
        let status = command.status().unwrap();
        let said = fs::read_to_string(&out).unwrap_or_default();
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(status.success(), "{program}: {said}\n{log}");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut command = Command::new(self.programs.join("pg_ctl"));
        if let Some(user) = self.user {
            command.uid(user);
        }
        // After a crash there is none to stop.
        let _ = command.args(["stop", "-m", "immediate"]).arg("-D").arg(self.data()).output();
    }
}

/// The folder of the newest PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = debian.into_iter().rev().map(|(_, folder)| folder).chain(std::env::split_paths(&path));
    let mut folders = folders;
    folders.find(|folder| has(folder, "initdb") && has(folder, "pg_ctl"))
}

fn has(folder: &Path, program: &str) -> bool {
    folder.join(program).is_file()
}

/// A user who may do nothing in particular: that of the package, or `nobody`.
fn unprivileged() -> u32 {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let id = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        line.split(':').nth(2)?.parse().ok()
    };
    id("postgres").or_else(|| id("nobody")).unwrap_or(65_534)
}
