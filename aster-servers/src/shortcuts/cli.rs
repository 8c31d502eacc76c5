//! The command `shortcuts` of macOS: what to start, and what its output means. Nothing here knows of tools.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use aster_runtime::text;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

/// The most bytes of output that are kept; a shortcut that writes more still runs to its end.
const MAX_OUTPUT: u64 = 256 * 1024;

/// The most bytes of an error message that are read.
const MAX_ERROR: u64 = 4 * 1024;

const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The command, by its path.
#[derive(Debug, Clone)]
pub struct Cli {
    program: PathBuf,
    run_timeout: Duration,
}

impl Cli {
    /// The command at this path. A shortcut that runs longer than `run_timeout` is stopped.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, run_timeout: Duration) -> Self {
        Self { program: program.into(), run_timeout }
    }

    /// The names of the user's shortcuts, exactly as they are.
    ///
    /// # Errors
    ///
    /// Where the command cannot be started, fails or takes too long.
    pub async fn list(&self) -> Result<Vec<String>, CliError> {
        let output = self.start(&["list".into()], LIST_TIMEOUT).await?;
        Ok(names(&output.text))
    }

    /// Runs the shortcut of this name, which has to be one of [`list`](Self::list), with an input text.
    ///
    /// # Errors
    ///
    /// Where there is no such shortcut; where it cannot be started, fails or takes too long.
    pub async fn run(&self, name: &str, input: Option<&str>) -> Result<Output, CliError> {
        let known = self.list().await?;
        let name = find(&known, name)?;
        // A file and not standard input: that is the form which the command documents, and a text of any size passes.
        let file = match input {
            Some(input) => Some(input_file(input).map_err(|error| CliError::Input(error.to_string()))?),
            None => None,
        };
        let path = file.as_ref().map(tempfile::NamedTempFile::path);
        self.start(&run_arguments(name, path), self.run_timeout).await
    }

    async fn start(&self, arguments: &[OsString], limit: Duration) -> Result<Output, CliError> {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| CliError::Start(error.to_string()))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let everything =
            async { tokio::try_join!(read(stdout, MAX_OUTPUT), read(stderr, MAX_ERROR), child.wait()) };
        // Dropping the child on the way out kills it.
        let finished = tokio::time::timeout(limit, everything).await;
        let (output, error, status) = finished
            .map_err(|_| CliError::TimedOut { seconds: limit.as_secs() })?
            .map_err(|error| CliError::Start(error.to_string()))?;
        if !status.success() {
            let message = text::one_line(&String::from_utf8_lossy(&error.bytes), 500);
            return Err(CliError::Failed {
                message: if message.is_empty() { status.to_string() } else { message },
            });
        }
        if output.bytes.contains(&0) {
            return Err(CliError::NotText);
        }
        Ok(Output { text: String::from_utf8_lossy(&output.bytes).into_owned(), cut: output.cut })
    }
}

/// What the command wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The text, as it is.
    pub text: String,
    /// Whether it went on.
    pub cut: bool,
}

struct Bytes {
    bytes: Vec<u8>,
    cut: bool,
}

/// Reads at most `max` bytes, and lets the writer write the rest.
async fn read(stream: Option<impl AsyncRead + Unpin>, max: u64) -> std::io::Result<Bytes> {
    let mut bytes = Vec::new();
    let Some(mut stream) = stream else { return Ok(Bytes { bytes, cut: false }) };
    (&mut stream).take(max).read_to_end(&mut bytes).await?;
    let rest = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(Bytes { bytes, cut: rest > 0 })
}

fn input_file(input: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("aster-input-").suffix(".txt").tempfile()?;
    file.write_all(input.as_bytes())?;
    Ok(file)
}

/// The arguments that run a shortcut. The name is one of the user's own and begins with no `-`: see [`find`].
fn run_arguments(name: &str, input: Option<&Path>) -> Vec<OsString> {
    let mut arguments = vec!["run".into(), name.into()];
    if let Some(path) = input {
        arguments.extend(["--input-path".into(), path.into()]);
    }
    arguments
}

/// One name a line.
fn names(output: &str) -> Vec<String> {
    output.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// The user's shortcut that `name` means: the one of exactly this name, or the only one that shows as it, since a
/// model is shown names without their invisible characters.
fn find<'a>(known: &'a [String], name: &str) -> Result<&'a str, CliError> {
    let shown = |name: &str| text::one_line(name, 500);
    let wanted = shown(name);
    let exact = known.iter().find(|own| *own == name);
    let found = exact.or_else(|| {
        let mut alike = known.iter().filter(|own| shown(own) == wanted);
        alike.next().filter(|_| alike.next().is_none())
    });
    match found {
        None => Err(CliError::Unknown { name: wanted }),
        Some(own) if own.starts_with('-') => Err(CliError::Option { name: wanted }),
        Some(own) => Ok(own),
    }
}

/// Why a shortcut was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The command did not start.
    #[error("the command `shortcuts` cannot be run: {0}")]
    Start(String),
    /// The input could not be handed over.
    #[error("the input cannot be written to a temporary file: {0}")]
    Input(String),
    /// No such shortcut.
    #[error(
        "there is no shortcut `{name}`, or more than one; take a name from `shortcuts/list`, letter by letter"
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// A name that the command would take for an option.
    #[error(
        "the shortcut `{name}` cannot be run from here because its name begins with `-`; ask the user to rename it"
    )]
    Option {
        /// Its name.
        name: String,
    },
    /// It failed.
    #[error("the shortcut failed: {message}")]
    Failed {
        /// What the command said.
        message: String,
    },
    /// It took too long.
    #[error("the shortcut did not finish within {seconds} s and was stopped; it may wait for the user")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// Its result is not text.
    #[error("the shortcut ran, but its result is not text")]
    NotText,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_name_is_one_of_the_users_own_and_never_an_option() {
        let known =
            own(&["Résumé", "Heart ❤\u{fe0f}", "--help", "Twin\u{200b}", "Twin\u{200d}", "a; rm -rf ~"]);
        assert_eq!(find(&known, "Résumé"), Ok("Résumé"));
        assert_eq!(find(&known, "Heart ❤"), Ok("Heart ❤\u{fe0f}"));
        assert_eq!(find(&known, "Twin\u{200b}"), Ok("Twin\u{200b}"));
        assert_eq!(find(&known, "a; rm -rf ~"), Ok("a; rm -rf ~"));
        for name in ["Twin", "resume", "", "-i", "Résumé\n--help"] {
            assert!(matches!(find(&known, name), Err(CliError::Unknown { .. })), "{name}");
        }
        assert!(matches!(find(&known, "--help"), Err(CliError::Option { .. })));
    }

    #[test]
    fn arguments_are_one_each() {
        assert_eq!(run_arguments("a b \"c\" $(d)", None), ["run", "a b \"c\" $(d)"]);
        let path = Path::new("/tmp/in put.txt");
        assert_eq!(run_arguments("x", Some(path)), ["run", "x", "--input-path", "/tmp/in put.txt"]);
    }

    #[test]
    fn one_name_a_line() {
        assert_eq!(names("One\r\n\n Two words \nDrei\n"), own(&["One", " Two words ", "Drei"]));
        assert!(names("").is_empty());
    }

    #[cfg(unix)]
    mod with_a_script {
        use std::os::unix::fs::PermissionsExt;
        use std::sync::LazyLock;

        use super::*;

        /// Stands in for `/usr/bin/shortcuts`. Written once, before anything is started: a file that a thread still
        /// writes while another starts a process cannot be run.
        static SCRIPT: LazyLock<tempfile::TempPath> = LazyLock::new(|| script().unwrap());

        fn script() -> std::io::Result<tempfile::TempPath> {
            let mut file = tempfile::Builder::new().prefix("shortcuts-").suffix(".sh").tempfile()?;
            file.write_all(
                br#"#!/bin/sh
case "$1:$2" in
  list:) printf 'Echo\nShow $(arguments); now\nFail\nHang\nFlood\nBinary\n-x\n' ;;
  run:Echo) [ "$3" = --input-path ] && cat "$4" ;;
  "run:Show \$(arguments); now") printf '%s|' "$#" "$@" ;;
  run:Fail) printf 'no such\033[31m action\n' >&2; exit 3 ;;
  run:Hang) exec sleep 600 ;;
  run:Flood) head -c 3000000 /dev/zero | tr '\0' a ;;
  run:Binary) printf 'a\0b' ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac
"#,
            )?;
            file.as_file().set_permissions(PermissionsExt::from_mode(0o700))?;
            Ok(file.into_temp_path())
        }

        fn cli(limit: Duration) -> Cli {
            Cli::new(&**SCRIPT, limit)
        }

        async fn run(name: &str, input: Option<&str>) -> Result<Output, CliError> {
            cli(Duration::from_secs(60)).run(name, input).await
        }

        fn said(text: &str) -> Result<Output, CliError> {
            Ok(Output { text: text.to_owned(), cut: false })
        }

        #[tokio::test]
        async fn input_output_and_arguments_arrive_as_they_are() {
            let input = "two\nlines \"and\" $(more) é";
            assert_eq!(run("Echo", Some(input)).await, said(input));
            let name = "Show $(arguments); now";
            assert_eq!(run(name, None).await, said("2|run|Show $(arguments); now|"));
            assert_eq!(cli(Duration::ZERO).list().await.unwrap().len(), 7);
        }

        #[tokio::test]
        async fn a_failure_says_what_the_command_said() {
            assert_eq!(
                run("Fail", None).await,
                Err(CliError::Failed { message: "no such[31m action".into() })
            );
            assert_eq!(run("Binary", None).await, Err(CliError::NotText));
            assert!(matches!(run("-x", None).await, Err(CliError::Option { .. })));
            assert!(matches!(run("Other", None).await, Err(CliError::Unknown { .. })));
            let absent = Cli::new("/nonexistent/shortcuts", Duration::ZERO).list().await;
            assert!(matches!(absent, Err(CliError::Start(_))));
        }

        #[tokio::test]
        async fn output_is_capped_and_time_is_limited() {
            let output = run("Flood", None).await.unwrap();
            assert_eq!((output.text.len() as u64, output.cut), (MAX_OUTPUT, true));
            let hung = cli(Duration::from_secs(1)).run("Hang", None).await;
            assert_eq!(hung, Err(CliError::TimedOut { seconds: 1 }));
        }
    }
}
