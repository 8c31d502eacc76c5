//! Pins in the state directory: one file per server, so that a damaged one costs that server alone.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::trust::Digest;
use super::{Origin, ServerConfig, state};
use crate::catalogue::Pinning;
use crate::pins::{PinError, PinStore, ServerPins};
use crate::text::visible;

/// The name of the folder in the state directory.
pub const FOLDER: &str = "pins";

const VERSION: u32 = 1;

/// What the content of a file is called in a reason.
const WHAT: &str = "what is remembered of the server";

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    server: String,
    file: PathBuf,
    pins: ServerPins,
}

/// The pins of one user, for the servers of a configuration. Two files that each declare a server of one name declare two
/// servers.
#[derive(Debug, Clone)]
pub struct PinFiles {
    folder: PathBuf,
    declared_in: HashMap<String, PathBuf>,
}

impl PinFiles {
    /// Those in this folder, which need not exist yet.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, servers: &[ServerConfig]) -> Self {
        let declared_in = servers.iter().map(|server| (server.name.clone(), server.file.clone()));
        Self { folder: folder.into(), declared_in: declared_in.collect() }
    }

    /// Whether the user's own server would be started with the command of before, which is the first one or one that the
    /// user has agreed to since; `None` where it never was. A project's server needs consent to every command, which is
    /// in the [`TrustStore`](super::trust::TrustStore).
    ///
    /// # Errors
    ///
    /// Where it cannot be told.
    pub fn is_known(&self, server: &ServerConfig) -> Result<Option<bool>, PinError> {
        if server.origin == Origin::Project || server.settings.pins == Pinning::Off {
            return Ok(Some(true));
        }
        let digest = Digest::of_command(server).to_string();
        Ok(self.read(&server.name)?.command.map(|known| known == digest))
    }

    /// The same at a start: a first command is remembered.
    ///
    /// # Errors
    ///
    /// Where it cannot be told, or the first command cannot be remembered.
    pub fn may_start(&self, server: &ServerConfig) -> Result<bool, PinError> {
        if let Some(known) = self.is_known(server)? {
            return Ok(known);
        }
        let digest = Digest::of_command(server).to_string();
        let mut same = true;
        self.update(&server.name, &mut |pins| {
            same = *pins.command.get_or_insert_with(|| digest.clone()) == digest;
        })?;
        Ok(same)
    }

    /// Remembers the command of the user's own server as one that the user has agreed to.
    ///
    /// # Errors
    ///
    /// Where it cannot be kept.
    pub fn agree(&self, server: &ServerConfig) -> Result<(), PinError> {
        let digest = Digest::of_command(server).to_string();
        self.update(&server.name, &mut |pins| pins.command = Some(digest.clone()))
    }

    /// The file of a server.
    fn path(&self, server: &str) -> PathBuf {
        let file = self.declaring(server);
        let mut hasher = blake3::Hasher::new();
        hasher.update(file.as_os_str().as_encoded_bytes()).update(b"\0").update(server.as_bytes());
        // Names that differ in their case alone would be one file on some systems.
        self.folder.join(format!("{server}-{}.json", &hasher.finalize().to_hex()[..16]))
    }

    fn declaring(&self, server: &str) -> &Path {
        self.declared_in.get(server).map_or(Path::new(""), PathBuf::as_path)
    }

    fn read_from(&self, path: &Path, server: &str) -> Result<ServerPins, PinError> {
        let wrong = |reason: String| {
            let place = visible(&path.display().to_string());
            PinError(format!(
                "{place}: {reason}; nothing that it lists is trusted until the file is mended or removed"
            ))
        };
        let Some(stored) = state::read::<Stored>(path, WHAT).map_err(wrong)? else {
            return Ok(ServerPins::default());
        };
        if stored.version != VERSION {
            return Err(wrong(format!("{WHAT} has version {}, not {VERSION}", stored.version)));
        }
        if stored.server != server || stored.file != self.declaring(server) {
            return Err(wrong(format!("{WHAT} is of another one")));
        }
        Ok(stored.pins)
    }
}

impl PinStore for PinFiles {
    fn read(&self, server: &str) -> Result<ServerPins, PinError> {
        self.read_from(&self.path(server), server)
    }

    fn update(&self, server: &str, change: &mut dyn FnMut(&mut ServerPins)) -> Result<(), PinError> {
        let path = self.path(server);
        let kept = state::locked(&path, || {
            let mut pins = self.read_from(&path, server).map_err(io::Error::other)?;
            change(&mut pins);
            let file = self.declaring(server).to_owned();
            state::write(&path, &Stored { version: VERSION, server: server.to_owned(), file, pins })?;
            // What would not be believed the next time has not been kept.
            self.read_from(&path, server).map_err(io::Error::other).map(drop)
        });
        kept.map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<PinError>()) {
            Some(error) => error.clone(),
            None => {
                let place = visible(&path.display().to_string());
                PinError(format!("{place} cannot be written ({error}), so that nothing new of it is trusted"))
            }
        })
    }

    fn modified(&self, server: &str) -> Option<SystemTime> {
        fs::metadata(self.path(server)).and_then(|metadata| metadata.modified()).ok()
    }
}
