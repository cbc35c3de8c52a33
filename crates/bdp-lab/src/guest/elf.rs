//! Dependencies of a program: its interpreter and its libraries.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Longest path of a file, and longest table that is searched.
const LONGEST_PATH: usize = 4096;
const LONGEST_TABLE: usize = 1 << 20;

/// Reads this many bytes of a file from an offset, fewer at its end.
pub(super) fn part(file: &File, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut part = vec![0; bytes];
    let mut read = 0;
    // No file is longer than a signed number.
    while read < bytes && i64::try_from(at.saturating_add(read as u64)).is_ok() {
        match file.read_at(&mut part[read..], at + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    part.truncate(read);
    Ok(part)
}

/// The interpreter that a 64-bit ELF file requests, read through `part`; `None` for a static one, and for other files.
pub(super) fn interpreter(part: impl Fn(u64, usize) -> io::Result<Vec<u8>>) -> io::Result<Option<PathBuf>> {
    const INTERPRETER: u64 = 3;
    const HEADER: usize = 64;
    // Bytes read of an entry.
    const ENTRY: usize = 40;
    let header = part(0, HEADER)?;
    if header.len() < HEADER || !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let (table, size) = (number(&header, 0x20, 8), number(&header, 0x36, 2) as usize);
    let entries = part(table, (size * number(&header, 0x38, 2) as usize).min(LONGEST_TABLE))?;
    let mut entries = entries.chunks(size.max(1)).filter(|entry| entry.len() >= ENTRY);
    let Some(entry) = entries.find(|entry| number(entry, 0, 4) == INTERPRETER) else { return Ok(None) };
    let length = number(entry, 32, 8);
    let path = part(number(entry, 8, 8), length.min(LONGEST_PATH as u64) as usize)?;
    if (path.len() as u64) < length {
        return Ok(None);
    }
    let path = path.split(|&b| b == 0).next().unwrap_or_default();
    Ok(std::str::from_utf8(path).ok().map(PathBuf::from))
}

/// A little-endian number of this many bytes, which must exist.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b))
}

/// Files below `/lib` and `/usr/lib` that a process has mapped (`/proc/PID/maps`).
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

/// Libraries that an interpreter would load for a program. No code of the program runs.
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

/// Files in lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x7f12)`.
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

    fn asked_for(file: &[u8]) -> Option<PathBuf> {
        let end = |at: u64| (at as usize).min(file.len());
        let part = |at: u64, bytes: usize| Ok(file[end(at)..end(at.saturating_add(bytes as u64))].to_vec());
        interpreter(part).unwrap()
    }

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
        assert_eq!(asked_for(&file), Some(PathBuf::from("/lib64/ld.")));
        file[64] = 1;
        assert_eq!(asked_for(&file), None);
        assert_eq!(asked_for(b"#!/bin/sh\n"), None);
        // A table at the file's end, or beyond it; entries of no length; a path beyond the file.
        file[64] = 3;
        assert_eq!(asked_for(&file[..100]), None);
        for (place, byte) in [(0x20 + 7, 0xff), (0x36, 0), (64 + 33, 0xff), (64 + 8 + 7, 0xff)] {
            let mut file = file.clone();
            file[place] = byte;
            assert_eq!(asked_for(&file), None, "{place}");
        }
    }

    #[test]
    fn parts_end_with_their_file() {
        let this = File::open(std::env::current_exe().unwrap()).unwrap();
        let length = this.metadata().unwrap().len();
        assert_eq!(part(&this, 1, 3).unwrap(), b"ELF");
        assert_eq!(part(&this, length - 2, 5).unwrap().len(), 2);
        assert!(part(&this, length, 1).unwrap().is_empty());
        assert!(part(&this, u64::MAX, 1).unwrap().is_empty());
        assert!(interpreter(|at, bytes| part(&this, at, bytes)).unwrap().is_some_and(|path| path.exists()));
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
