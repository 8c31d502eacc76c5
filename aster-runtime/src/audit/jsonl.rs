//! The default sink: one JSON object a line, appended to a file that only its owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{AuditSink, Record};

/// Room for most records, in bytes.
const LINE: usize = 1024;

/// Appends records to a file as JSON lines.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: Mutex<File>,
}

impl JsonLines {
    /// Opens or makes the file, with mode 0600 on Unix, and the folders above it.
    ///
    /// # Errors
    ///
    /// Where that fails.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        // One that was there before may have been open to others.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(Self { path, file: Mutex::new(file) })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AuditSink for JsonLines {
    fn write(&self, record: &Record) -> io::Result<()> {
        let mut line = Vec::with_capacity(LINE);
        serde_json::to_writer(&mut line, record)?;
        line.push(b'\n');
        // One write of the whole line: on a file opened for appending, lines of several processes do not mix.
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}
