//! Regular files only: opening one never blocks.

use std::fs::{self, File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file. Any other type is an error that names the type: opening a pipe would block, and a device may do anything.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    if let Ok(found) = fs::metadata(path) {
        check(found.file_type())?;
    }
    let file = options.clone().custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    // It may have been replaced meanwhile.
    check(file.metadata()?.file_type())?;
    Ok(file)
}

fn check(kind: FileType) -> io::Result<()> {
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "folder",
        kind if kind.is_fifo() => "named pipe",
        kind if kind.is_socket() => "socket",
        _ => "device",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {what}, not a file")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_named_and_not_waited_for() {
        let folder = std::env::temp_dir();
        for (path, what) in [(folder.as_path(), "folder"), (Path::new("/dev/null"), "device")] {
            let error = open(File::options().read(true), path).unwrap_err();
            assert_eq!(error.to_string(), format!("it is a {what}, not a file"));
        }
        let missing = open(File::options().read(true), Path::new("/nothing/here")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(open(File::options().read(true), Path::new("/proc/self/stat")).is_ok());
    }
}
