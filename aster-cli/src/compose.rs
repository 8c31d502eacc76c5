//! The composition root: from the command line and the configuration to a running host. Nothing else in the command
//! knows which servers, sinks and stores there are.

use std::path::Path;

use aster_runtime::config::trust::{self, TrustStore};
use aster_runtime::config::{self, Config, Sources};

use crate::args::Global;
use crate::exit::{Exit, Failure};

/// The names of the native servers, which no external server may take.
const RESERVED: &[&str] = &["web", "shortcuts"];

/// Reads the user's and the project's file.
pub(crate) fn load(global: &Global) -> Result<Config, Failure> {
    let user = global.config.clone().or_else(config::user_file);
    let project = match global.no_project {
        true => None,
        false => config::project_file(Path::new("."), user.as_deref()),
    };
    let sources = Sources { user, user_required: global.config.is_some(), project };
    Ok(config::load(&sources, RESERVED, &|name| std::env::var(name).ok())?)
}

/// The consents of the user, and why they were not believed.
pub(crate) fn trust_store() -> Result<(TrustStore, Option<String>), Failure> {
    let directory = config::state_directory()
        .ok_or_else(|| Failure::new(Exit::Failed, "there is no home directory to remember consents in"))?;
    Ok(TrustStore::open(&directory.join(trust::FILE_NAME)))
}
