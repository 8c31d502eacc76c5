//! Programs that are started: what of our environment they get, and how they end together with what they started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use process_wrap::tokio::CommandWrap;
use tokio::process::Command;

/// The variables of our own environment that a program is started with, a server or a hook, beside those that are configured for it. A
/// name that ends in `*` stands for all that begin so. Nothing else is passed on: the rest of the environment is full
/// of other programs' secrets.
pub const INHERITED_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_*",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_PATH",
    "NVM_*",
    "PYENV_*",
    "VIRTUAL_ENV",
    // Without these, little runs on Windows.
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMPUTERNAME",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PSMODULEPATH",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// A command whose process is killed where it is dropped, on Unix as the leader of a group of its own.
pub(crate) fn contained(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    command.wrap(process_wrap::tokio::KillOnDrop);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command
}

/// The environment of a program: what of ours it may have, and what is configured.
pub(crate) fn environment(
    ours: impl Iterator<Item = (OsString, OsString)>,
    configured: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let mut environment: BTreeMap<_, _> = ours.filter(|(name, _)| is_inherited(name)).collect();
    environment.extend(configured.iter().map(|(name, value)| (name.into(), value.into())));
    environment
}

fn is_inherited(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // Windows does not tell upper from lower case.
    let name = if cfg!(windows) { name.to_ascii_uppercase() } else { name.to_owned() };
    INHERITED_VARIABLES.iter().any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *allowed,
    })
}

/// What to start for `command`. Windows itself looks for `.exe` alone, while `npx` and its like are `.cmd`.
pub(crate) fn program(command: &str, environment: &BTreeMap<OsString, OsString>) -> PathBuf {
    let value = |wanted: &str| {
        let mut variables = environment.iter();
        variables.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_os_str())
    };
    let found = value("PATH").filter(|_| cfg!(windows)).and_then(|path| {
        let extensions = value("PATHEXT").and_then(OsStr::to_str).unwrap_or(".COM;.EXE;.BAT;.CMD");
        find_program(command, std::env::split_paths(path), extensions)
    });
    found.unwrap_or_else(|| command.into())
}

/// The file that a bare `command` names in one of the directories, under one of the extensions.
fn find_program(
    command: &str,
    directories: impl Iterator<Item = PathBuf>,
    extensions: &str,
) -> Option<PathBuf> {
    if Path::new(command).components().count() != 1 || Path::new(command).extension().is_some() {
        return None;
    }
    let names: Vec<_> = extensions.split(';').map(|extension| format!("{command}{extension}")).collect();
    directories
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)).collect::<Vec<_>>())
        .find(|file| file.is_file())
}

pub(crate) fn spawn_failure(command: &str, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::NotFound if Path::new(command).components().count() == 1 => {
            "it is not found on PATH; install it, or configure its full path"
        }
        io::ErrorKind::NotFound => "there is no such file, or the interpreter that it names is missing",
        io::ErrorKind::PermissionDenied => "it is not executable",
        _ => return format!("cannot run `{command}`: {error}"),
    };
    format!("cannot run `{command}`: {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|&(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_program_gets_the_listed_variables_and_its_own() {
        let ours = variables(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("NVM_DIR", "/n"),
            ("OPENAI_API_KEY", "x"),
            ("PATHS", "x"),
        ]);
        let configured =
            BTreeMap::from([("TOKEN".to_owned(), "t".to_owned()), ("LC_ALL".to_owned(), "en".to_owned())]);
        let names_and_values: Vec<_> = environment(ours.into_iter(), &configured).into_iter().collect();
        assert_eq!(
            names_and_values,
            variables(&[("LC_ALL", "en"), ("NVM_DIR", "/n"), ("PATH", "/bin"), ("TOKEN", "t")])
        );
    }

    #[test]
    fn windows_names_are_resolved() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("npx.CMD");
        std::fs::write(&file, "").unwrap();
        let find = |command| find_program(command, [directory.path().to_owned()].into_iter(), ".EXE;.CMD");
        assert_eq!(find("npx"), Some(file));
        assert_eq!(find("node"), None);
        assert_eq!(find("./npx"), None);
    }
}
