//! `aster init`: a commented `aster.yaml` to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use aster_runtime::config;
use aster_runtime::text::one_line;
use serde::Serialize;

use crate::args::{Global, Init};
use crate::exit::{Exit, Failure};
use crate::render::{Output, Report};

const USER: &str = include_str!("../../templates/user.yaml");
const PROJECT: &str = include_str!("../../templates/project.yaml");

#[derive(Serialize)]
struct Written {
    file: PathBuf,
}

impl Report for Written {
    fn human(&self) -> String {
        format!("wrote {}", shown(&self.file))
    }
}

pub(crate) fn run(global: &Global, arguments: &Init, output: Output) -> Result<Exit, Failure> {
    let file = match (&global.config, arguments.project) {
        (_, true) => PathBuf::from(config::FILE_NAME),
        (Some(file), false) => file.clone(),
        (None, false) => config::user_file().ok_or_else(|| {
            Failure::new(Exit::Failed, "there is no home directory").help("name a file with `--config FILE`")
        })?,
    };
    let text = if arguments.project { PROJECT } else { USER };
    write(&file, text, arguments.force).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(Exit::Failed, format!("{} is there already", shown(&file)))
            .help("`--force` overwrites it"),
        _ => Failure::new(Exit::Failed, format!("{} cannot be written: {error}", shown(&file))),
    })?;
    output.report(&Written { file })?;
    Ok(Exit::Success)
}

fn shown(file: &Path) -> String {
    one_line(&file.display().to_string(), 4096)
}

fn write(file: &Path, text: &str, force: bool) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!force);
    // The user's file may come to hold secrets.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The template with its commented settings in force: a setting has no space after its `#`, or several.
    fn uncommented(template: &str) -> String {
        let setting = |line: &str| {
            let rest = line.strip_prefix('#')?;
            (!rest.starts_with(' ') || rest.starts_with("  ")).then(|| rest.to_owned())
        };
        template.lines().map(|line| setting(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn what_the_templates_show_can_be_used() {
        let directory = tempfile::tempdir().unwrap();
        let load = |text: &str, project: bool| {
            let file = directory.path().join(config::FILE_NAME);
            std::fs::write(&file, text).unwrap();
            let (user, project) = if project { (None, Some(file)) } else { (Some(file), None) };
            let sources = config::Sources { user, project, ..config::Sources::default() };
            config::load(&sources, &["web"], &|name| Some(format!("value of {name}"))).unwrap()
        };
        for (template, project) in [(USER, false), (PROJECT, true)] {
            assert!(load(template, project).servers.is_empty(), "a fresh file changes nothing");
            let config = load(&uncommented(template), project);
            assert!(!config.servers.is_empty() && !config.filters.is_empty());
            assert_eq!(config.warnings, []);
            assert!(config.servers.iter().all(|server| server.launch.is_ok()));
        }
    }
}
