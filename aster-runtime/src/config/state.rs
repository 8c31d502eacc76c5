//! Files in the state directory that several processes read and change: private, written whole, changed under a lock.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::open_regular;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Reads a file of ours; `None` where there is none. `what` it holds stands in the reason why it is not believed.
pub(super) fn read<T: DeserializeOwned>(path: &Path, what: &str) -> Result<Option<T>, String> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{what} cannot be read: {error}")),
    };
    let unknown = |error| format!("it cannot be told who may write to {what}: {error}");
    let directory = path.parent().unwrap_or(Path::new("."));
    for (place, metadata) in [(what, file.metadata()), ("its directory", directory.metadata())] {
        if in_others_hands(&metadata.map_err(unknown)?) {
            return Err(format!("others may write to {place}"));
        }
    }
    let mut text = String::new();
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| format!("{what} cannot be read: {error}"))?;
    serde_json::from_str(&text).map(Some).map_err(|_| format!("{what} is damaged"))
}

/// Does something while no other process does the like with this file.
pub(super) fn locked<T>(path: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    create_private(path.parent().unwrap_or(Path::new(".")))?;
    let lock = File::options().create(true).truncate(false).write(true).open(path.with_extension("lock"))?;
    lock.lock()?;
    work()
}

/// Writes a file: whole or not at all, readable by its owner alone.
pub(super) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    // A named temporary file has mode 0600 from its creation on.
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it would be larger than {} MiB", MAX_BYTES >> 20)));
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(unix)]
fn in_others_hands(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o022 != 0 || metadata.uid() != rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn in_others_hands(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
pub(super) fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

#[cfg(not(unix))]
pub(super) fn create_private(directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}
