//! Where approvals can be given: the addresses and tokens of endpoints that run, in the state directory, one private file
//! each. A file is there as long as its endpoint; that of a process which was killed stays until somebody looks.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::state;

/// The name of the folder in the state directory.
pub const FOLDER: &str = "approvals";

/// What the content of a file is called in a reason.
const WHAT: &str = "the address of an endpoint for approvals";

/// An endpoint at which calls wait for an approval.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// Where it listens, on loopback.
    pub address: SocketAddr,
    /// What lets one in.
    pub token: String,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The file of an endpoint that runs: dropped, it is removed.
#[derive(Debug)]
pub struct Published {
    path: PathBuf,
}

impl Drop for Published {
    fn drop(&mut self) {
        // Somebody may have found nobody there, and removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes the file of an endpoint into this folder, which need not exist yet.
///
/// # Errors
///
/// Where it cannot be written.
pub fn publish(folder: &Path, endpoint: &Endpoint) -> io::Result<Published> {
    state::create_private(folder)?;
    let path = folder.join(format!("{}.json", uuid::Uuid::now_v7()));
    state::write(&path, endpoint)?;
    Ok(Published { path })
}

/// The endpoints in this folder, the oldest first, each with its file; or why one is not believed.
///
/// # Errors
///
/// Where the folder cannot be read. That there is none is no error.
pub fn published(folder: &Path) -> io::Result<Vec<Result<(PathBuf, Endpoint), String>>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    // A file that is being written has another name.
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: PathBuf| match state::read::<Endpoint>(&path, WHAT) {
        Ok(Some(endpoint)) if endpoint.address.ip().is_loopback() => Some(Ok((path, endpoint))),
        Ok(Some(endpoint)) => Some(Err(format!("{WHAT} is not on this machine: {}", endpoint.address))),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_known_as_long_as_it_runs_and_to_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("state/approvals");
        assert_eq!(published(&folder).unwrap(), []);
        let endpoint = Endpoint { address: "127.0.0.1:1".parse().unwrap(), token: "secret".into() };
        assert!(!format!("{endpoint:?}").contains("secret"));
        let file = publish(&folder, &endpoint).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
            assert_eq!((mode(&file.path), mode(&folder)), (0o600, 0o700));
        }
        assert_eq!(published(&folder).unwrap(), [Ok((file.path.clone(), endpoint.clone()))]);
        let elsewhere = Endpoint { address: "192.0.2.1:1".parse().unwrap(), ..endpoint };
        let other = publish(&folder, &elsewhere).unwrap();
        assert!(published(&folder).unwrap()[1].as_ref().unwrap_err().contains("192.0.2.1:1"));
        drop((file, other));
        assert_eq!(published(&folder).unwrap(), []);
    }
}
