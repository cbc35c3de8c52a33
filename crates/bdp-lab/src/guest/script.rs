//! Programs that are scripts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Bytes of a script that a kernel examines.
pub(super) const FIRST_LINE: usize = 256;

/// The program that runs a script, by its first line; `None` for other files.
pub(super) fn interpreter(file: &[u8]) -> Option<PathBuf> {
    let line = file.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let path = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_names_what_runs_it() {
        for (file, named) in [
            (&b"#!/bin/sh\necho"[..], Some("/bin/sh")),
            (b"#! /usr/bin/env python3 -u\n", Some("/usr/bin/env")),
            (b"#!/bin/sh", Some("/bin/sh")),
            (b"#!\n/bin/sh", None),
            (b"echo #!/bin/sh", None),
            (b"\x7fELF", None),
            (b"", None),
        ] {
            assert_eq!(interpreter(file), named.map(PathBuf::from));
        }
    }
}
