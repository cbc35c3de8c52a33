//! What a program needs beside itself: its interpreter and its libraries.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The interpreter that an ELF file of 64 bits asks for; `None` of a static one, and of what is no such file.
pub(super) fn interpreter(file: &[u8]) -> Option<PathBuf> {
    const INTERPRETER: u64 = 3;
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b)))
    };
    let table = usize::try_from(number(0x20, 8)?).ok()?;
    let (entry, entries) = (number(0x36, 2)? as usize, number(0x38, 2)? as usize);
    let header = (0..entries)
        .filter_map(|i| table.checked_add(i * entry))
        .find(|&at| number(at, 4) == Some(INTERPRETER))?;
    let from = usize::try_from(number(header + 8, 8)?).ok()?;
    let length = usize::try_from(number(header + 32, 8)?).ok()?;
    let path = file.get(from..from.checked_add(length)?)?;
    let path = path.split(|&b| b == 0).next()?;
    Some(PathBuf::from(std::str::from_utf8(path).ok()?))
}

/// The files below `/lib` and `/usr/lib` that a process has mapped (`/proc/PID/maps`).
pub(super) fn libraries(maps: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .map(Path::new)
        .filter(|path| {
            ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"].iter().any(|d| path.starts_with(d))
        })
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so")))
        .map(Path::to_owned)
        .collect();
    files.sort();
    files.dedup();
    files
}

/// The libraries that an interpreter would load for a program. It runs no code of the program.
pub(super) fn needed(interpreter: &Path, program: &Path) -> io::Result<Vec<PathBuf>> {
    let mut command = Command::new(interpreter);
    command.arg("--list").arg(program).stdin(Stdio::null());
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(said.lines().next().unwrap_or("its libraries are unknown").to_owned()));
    }
    Ok(listed(&String::from_utf8_lossy(&output.stdout)))
}

/// The files of lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f12)`.
fn listed(text: &str) -> Vec<PathBuf> {
    let file = |line: &str| {
        let path = line.rsplit_once("=> ").map_or(line, |(_, path)| path).trim();
        let path = path.rsplit_once(" (").map_or(path, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_names_its_interpreter() {
        // A header of 64 bytes, one program header, the path.
        let mut file = vec![0u8; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[0x20] = 64;
        file[0x36] = 56;
        file[0x38] = 1;
        file[64] = 3;
        file[64 + 8] = 120;
        file[64 + 32] = 11;
        file.extend_from_slice(b"/lib64/ld.\0");
        assert_eq!(interpreter(&file), Some(PathBuf::from("/lib64/ld.")));
        file[64] = 1;
        assert_eq!(interpreter(&file), None);
        assert_eq!(interpreter(b"#!/bin/sh\n"), None);
        // Lengths beyond the file.
        file[64] = 3;
        file[64 + 33] = 0xff;
        assert_eq!(interpreter(&file), None);
    }

    #[test]
    fn libraries_are_those_that_are_mapped() {
        let maps = "55d0-55d1 r-xp 00000000 fe:01 1 /usr/bin/bdp\n\
            7f00-7f01 r-xp 00000000 fe:01 2                          /usr/lib/x86_64-linux-gnu/libc.so.6\n\
            7f01-7f02 r--p 00001000 fe:01 2                          /usr/lib/x86_64-linux-gnu/libc.so.6\n\
            7f02-7f03 r--p 00000000 fe:01 3                          /usr/lib/locale/C.utf8/LC_CTYPE\n\
            7fff-7fff rw-p 00000000 00:00 0                          [stack]\n";
        assert_eq!(libraries(maps), [PathBuf::from("/usr/lib/x86_64-linux-gnu/libc.so.6")]);
    }

    #[test]
    fn libraries_are_those_that_the_interpreter_lists() {
        let text = "\tlinux-vdso.so.1 (0x7ffc)\n\
            \tlibiperf.so.0 => /lib/x86_64-linux-gnu/libiperf.so.0 (0x7f1f)\n\
            \tlibgone.so.1 => not found\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x7f1f)\n";
        let files = ["/lib/x86_64-linux-gnu/libiperf.so.0", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(listed(text), files.map(PathBuf::from));
    }
}
