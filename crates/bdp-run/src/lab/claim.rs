//! The claim to a run: while one bdp works on it, no other can resume it.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::{fs, io};

use crate::RunError;

/// Held as long as the value lives, and by this process alone: the kernel releases it when the process ends, however
/// it ends.
#[derive(Debug)]
pub(crate) struct Claim {
    /// A socket without a file. Its name, which is the claim, is taken while it is open.
    _socket: Option<UnixListener>,
}

impl Claim {
    /// Claims a run of the store in this file.
    pub(crate) fn to(run: &str, store: &Path) -> Result<Self, RunError> {
        // The file itself and not its path, since a file may have several.
        let Ok(file) = fs::metadata(store) else { return Ok(Self { _socket: None }) };
        let name = format!("bdp run {run} in {:x}:{:x}", file.dev(), file.ino());
        match SocketAddr::from_abstract_name(name).and_then(|name| UnixListener::bind_addr(&name)) {
            Ok(socket) => Ok(Self { _socket: Some(socket) }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(RunError::Claimed { run: run.to_owned() })
            }
            // If sockets are forbidden, a claim is impossible, but measuring is not.
            Err(_) => Ok(Self { _socket: None }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_claimed_once_until_it_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let (store, other) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&store, "").unwrap();
        fs::write(&other, "").unwrap();
        let claim = Claim::to("7f3a", &store).unwrap();
        let refused = Claim::to("7f3a", &folder.path().join("./a")).unwrap_err().to_string();
        assert!(refused.contains("7f3a") && refused.contains("in progress"), "{refused}");
        Claim::to("7f3b", &store).unwrap();
        Claim::to("7f3a", &other).unwrap();
        drop(claim);
        Claim::to("7f3a", &store).unwrap();
    }
}
