//! The folder that a guest sees as its root: the program, the program's dependencies, and an order.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use super::keep::READY;
use super::keeping::Keeping;
use super::paths::{ANSWER, ORDER, PROGRAM};
use super::{elf, script};
use crate::LabError;
use crate::host::Program;

/// Nested script interpreters that a kernel follows.
const SCRIPTS: u32 = 4;
/// Folders for the guest's own mounts, which hide this machine's.
const OWN_FOLDERS: [&str; 3] = ["dev", "proc", "sys"];
/// Folder for a mount that keeps the root's content in place.
const TEMPORARY: &str = "tmp";

/// Creates roots. All of them are removed when it is dropped; if this process is killed, a keeper removes them.
#[derive(Debug)]
pub struct RootMaker {
    folder: PathBuf,
    keeper: Child,
    /// Files copied to the same path below each root.
    files: Vec<PathBuf>,
    made: AtomicU64,
}

/// One guest's root, removed when dropped.
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
}

impl RootMaker {
    /// Creates it with a copy of this program, in a new private folder below `place`.
    pub fn new(keeper: &Program, place: &Path) -> Result<Self, LabError> {
        let folder = place.join(format!(
            "bdp-guests-{}-{:08x}",
            std::process::id(),
            u32::from_ne_bytes(bdp_sys::random::bytes()?)
        ));
        let refused = |e: io::Error| LabError::Guest(format!("make the folder '{}': {e}", folder.display()));
        // First the keeper that removes it, then the folder.
        let keeper = keep_folder(keeper, &folder).map_err(refused)?;
        let maker = Self { folder: folder.clone(), keeper, files: Vec::new(), made: AtomicU64::new(0) };
        make_private(&folder).map_err(refused)?;
        maker.fill().map_err(|(path, e)| {
            let way_out = if e.kind() == io::ErrorKind::StorageFull {
                "; set TMPDIR to a folder with 20 MB of room for each guest"
            } else {
                ""
            };
            LabError::Guest(format!("copy '{}' to '{}': {e}{way_out}", path.display(), folder.display()))
        })
    }

    /// Removes all roots, even while others still hold this.
    pub fn close(&self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn fill(mut self) -> Result<Self, (PathBuf, io::Error)> {
        let program = PathBuf::from("/proc/self/exe");
        self.take(&program, Path::new(PROGRAM))?;
        let at = |e| (program.clone(), e);
        let file = fs::File::open(&program).map_err(at)?;
        if let Some(interpreter) =
            elf::interpreter(|from, bytes| elf::part(&file, from, bytes)).map_err(at)?
        {
            self.take(&interpreter, &interpreter)?;
            for library in elf::libraries(&fs::read_to_string("/proc/self/maps").map_err(at)?) {
                self.take(&library, &library)?;
            }
        }
        Ok(self)
    }

    /// Copies another program to the same path in each later root, with the libraries that it loads here; a script with its interpreter.
    pub fn take_program(&mut self, path: &Path) -> Result<(), LabError> {
        self.take_with_libraries(path, SCRIPTS).map_err(not_taken)
    }

    /// Copies a file alone to the same path in each later root.
    pub fn take_file(&mut self, path: &Path) -> Result<(), LabError> {
        self.take_alone(path).map_err(not_taken)
    }

    fn take_alone(&mut self, path: &Path) -> Result<(), (PathBuf, io::Error)> {
        let at = |e| (path.to_owned(), e);
        if !path.is_absolute() {
            return Err(at(io::Error::other("its path is not absolute")));
        }
        if let Some(own) = OWN_FOLDERS.iter().find(|own| path.starts_with(Path::new("/").join(own))) {
            return Err(at(io::Error::other(format!(
                "a guest has its own /{own}; copy it to another folder"
            ))));
        }
        self.take(path, path)
    }

    fn take_with_libraries(&mut self, path: &Path, scripts: u32) -> Result<(), (PathBuf, io::Error)> {
        let at = |e| (path.to_owned(), e);
        self.take_alone(path)?;
        let file = fs::File::open(path).map_err(at)?;
        let part = |from, bytes| elf::part(&file, from, bytes);
        if let Some(runs_it) = script::interpreter(&part(0, script::FIRST_LINE).map_err(at)?)
            && scripts > 0
        {
            return self.take_with_libraries(&runs_it, scripts - 1);
        }
        let Some(interpreter) = elf::interpreter(part).map_err(at)? else { return Ok(()) };
        self.take(&interpreter, &interpreter)?;
        for library in elf::needed(&interpreter, path).map_err(at)? {
            self.take(&library, &library)?;
        }
        Ok(())
    }

    fn take(&mut self, from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
        let inside = to.strip_prefix("/").unwrap_or(to).to_owned();
        if self.files.contains(&inside) {
            return Ok(());
        }
        let copy = self.folder.join("files").join(&inside);
        let made = copy.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, &copy));
        made.map_err(|e| (from.to_owned(), e))?;
        self.files.push(inside);
        Ok(())
    }

    /// Creates a root with this order.
    pub fn make(&self, order: &[u8]) -> Result<Root, LabError> {
        let folder = self.folder.join(self.made.fetch_add(1, Ordering::Relaxed).to_string());
        let root = Root { folder };
        root.fill(&self.folder.join("files"), &self.files, order)
            .map_err(|e| LabError::Guest(format!("make the folder '{}': {e}", root.folder.display())))?;
        Ok(root)
    }
}

impl Root {
    fn fill(&self, from: &Path, files: &[PathBuf], order: &[u8]) -> io::Result<()> {
        make_private(&self.folder)?;
        for folder in OWN_FOLDERS.into_iter().chain([TEMPORARY]) {
            fs::create_dir(self.folder.join(folder))?;
        }
        for file in files {
            let link = self.folder.join(file);
            if let Some(parent) = link.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::hard_link(from.join(file), link)?;
        }
        fs::write(self.outside(ORDER), order)
    }

    /// Its path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The guest's answer; `None` if it left none.
    pub fn answer(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.outside(ANSWER)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The path on this machine of a path in the guest.
    pub fn outside(&self, inside: &str) -> PathBuf {
        self.folder.join(inside.trim_start_matches('/'))
    }
}

fn not_taken((path, cause): (PathBuf, io::Error)) -> LabError {
    LabError::Guest(format!("copy '{}' to a guest: {cause}", path.display()))
}

/// Starts the keeper of a folder, and waits until it is ready.
fn keep_folder(keeper: &Program, folder: &Path) -> io::Result<Child> {
    let mut command = keeper.command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    bdp_sys::process::lead_group(&mut command);
    let mut child = command.spawn()?;
    Keeping::Folder(folder.to_owned()).write_to(child.stdin.as_mut())?;
    let mut line = String::new();
    let said = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    io::BufReader::new(said).read_line(&mut line)?;
    if line.trim_end() == READY { Ok(child) } else { Err(io::Error::other("its keeper did not start")) }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for RootMaker {
    fn drop(&mut self) {
        self.close();
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
