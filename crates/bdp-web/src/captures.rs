//! Capture files that were uploaded, kept until the server ends.
//!
//! Each is a file without a name in any folder, so that nothing is left of it however the server ends.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bdp_sys::random;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Refused, RefusedBy};

/// Most bytes of a capture.
pub const MOST_BYTES: u64 = 4 << 30;
/// Most captures at a time, those that are being uploaded included.
const MOST_CAPTURES: usize = 8;

/// The captures, by id.
#[derive(Debug)]
pub struct Captures {
    all: Mutex<Table>,
    places: Arc<Semaphore>,
    most_bytes: u64,
}

#[derive(Debug, Default)]
struct Table {
    captures: BTreeMap<String, Arc<Capture>>,
    last: u64,
}

/// A capture. Its file exists as long as this does.
#[derive(Debug)]
pub struct Capture {
    file: File,
    /// Name of the file that was uploaded.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    _place: OwnedSemaphorePermit,
}

/// A capture that is being uploaded.
#[derive(Debug)]
pub struct Upload {
    capture: Capture,
    most_bytes: u64,
}

impl Default for Captures {
    fn default() -> Self {
        Self::of_at_most(MOST_BYTES)
    }
}

impl Captures {
    fn of_at_most(most_bytes: u64) -> Self {
        Self { all: Mutex::default(), places: Arc::new(Semaphore::new(MOST_CAPTURES)), most_bytes }
    }

    /// Begins an upload of this many bytes, if known, of a file of this name.
    pub fn begin(&self, name: &str, announced: Option<u64>) -> Result<Upload, Refused> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| {
            Refused::new(RefusedBy::Busy, format!("{MOST_CAPTURES} captures are open: remove one first"))
        })?;
        if announced.is_some_and(|bytes| bytes > self.most_bytes) {
            return Err(too_large(self.most_bytes));
        }
        let file = nameless(&folder()).map_err(|error| kept_not(&error))?;
        let capture = Capture { file, name: shown(name), bytes: 0, _place: place };
        Ok(Upload { capture, most_bytes: self.most_bytes })
    }

    /// Keeps an upload that is complete; returns its id.
    pub fn keep(&self, upload: Upload) -> Result<(String, Arc<Capture>), Refused> {
        if upload.capture.bytes == 0 {
            return Err(Refused::new(RefusedBy::Usage, "the capture is empty: choose a pcap or pcapng file"));
        }
        let mut table = self.lock();
        table.last += 1;
        let (id, capture) = (format!("c{}", table.last), Arc::new(upload.capture));
        table.captures.insert(id.clone(), capture.clone());
        Ok((id, capture))
    }

    /// All by id, oldest first.
    pub fn list(&self) -> Vec<(String, Arc<Capture>)> {
        let table = self.lock();
        let mut all: Vec<_> = table.captures.iter().map(|(id, held)| (id.clone(), held.clone())).collect();
        // c10 after c9.
        all.sort_by_key(|(id, _)| (id.len(), id.clone()));
        all
    }

    /// The capture of this id.
    pub fn get(&self, id: &str) -> Result<Arc<Capture>, Refused> {
        self.lock().captures.get(id).cloned().ok_or_else(|| unknown(id))
    }

    /// Removes a capture; a job that reads it still can.
    pub fn remove(&self, id: &str) -> Result<(), Refused> {
        self.lock().captures.remove(id).map(drop).ok_or_else(|| unknown(id))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upload {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        self.capture.bytes += bytes.len() as u64;
        if self.capture.bytes > self.most_bytes {
            return Err(too_large(self.most_bytes));
        }
        self.capture.file.write_all(bytes).map_err(|error| kept_not(&error))
    }
}

impl Capture {
    /// A path by which this process can open it, each time from its beginning.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

/// The folder for large files that need not outlive a process.
fn folder() -> PathBuf {
    let large = || Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir());
    let given = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    given.or_else(large).unwrap_or_else(std::env::temp_dir)
}

/// A new file that has no name any more.
fn nameless(folder: &Path) -> io::Result<File> {
    let words = random::bytes::<8>().map_err(io::Error::other)?.map(|byte| format!("{byte:02x}")).concat();
    // Nobody else may look into it in the moment for which the file has a name.
    let private = folder.join(format!("bdp-page-{words}"));
    DirBuilder::new().mode(0o700).create(&private)?;
    let path = private.join("capture");
    let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path);
    let removed = fs::remove_file(&path).and_then(|()| fs::remove_dir(&private));
    made.and_then(|file| removed.map(|()| file))
}

/// A file's name as it is shown: its last part, without control characters.
fn shown(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
    if plain.trim().is_empty() { "capture".to_owned() } else { plain }
}

fn too_large(most_bytes: u64) -> Refused {
    Refused::new(
        RefusedBy::TooLarge,
        format!(
            "the capture has more than {} GiB: explain it in a terminal with 'bdp pcap FILE'",
            most_bytes >> 30
        ),
    )
}

fn kept_not(error: &io::Error) -> Refused {
    Refused::new(
        RefusedBy::Environment,
        format!("cannot keep the capture: {error}; TMPDIR names another folder"),
    )
}

fn unknown(id: &str) -> Refused {
    let id: String = id.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
    Refused::new(RefusedBy::Missing, format!("no capture '{id}': choose the file again"))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_capture_is_read_by_its_path_and_has_no_name() {
        let captures = Captures::of_at_most(10);
        let mut upload = captures.begin("../a/slow\n.pcap", Some(9)).unwrap();
        upload.add(b"01234").unwrap();
        upload.add(b"5678").unwrap();
        let (id, capture) = captures.keep(upload).unwrap();
        assert_eq!((id.as_str(), capture.name.as_str(), capture.bytes), ("c1", "slow.pcap", 9));
        for _ in 0..2 {
            let mut text = String::new();
            File::open(capture.path()).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "012345678");
        }
        let place = fs::read_link(capture.path()).unwrap();
        assert!(place.to_string_lossy().ends_with(" (deleted)"), "{}", place.display());
        captures.remove(&id).unwrap();
        assert!(captures.get(&id).is_err() && captures.remove(&id).is_err());
        // Whoever reads it goes on.
        assert!(File::open(capture.path()).is_ok());
    }

    #[test]
    fn too_many_bytes_and_too_many_captures_are_refused() {
        let captures = Captures::of_at_most(10);
        assert_eq!(captures.begin("a", Some(11)).unwrap_err().kind, RefusedBy::TooLarge);
        let mut upload = captures.begin("a", None).unwrap();
        upload.add(&[0; 10]).unwrap();
        assert_eq!(upload.add(&[0]).unwrap_err().kind, RefusedBy::TooLarge);
        drop(upload);
        assert_eq!(captures.keep(captures.begin("a", None).unwrap()).unwrap_err().kind, RefusedBy::Usage);
        for _ in 0..MOST_CAPTURES {
            let mut upload = captures.begin("", None).unwrap();
            upload.add(b"x").unwrap();
            captures.keep(upload).unwrap();
        }
        assert_eq!(captures.begin("a", None).unwrap_err().kind, RefusedBy::Busy);
        assert_eq!(captures.get("c3").unwrap().name, "capture");
    }
}
