//! Sysctls, by dotted name, of the namespace that the process is in.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::{Result, SysError};

/// `/proc/sys/...` path of a dotted name. A name with anything but letters, digits, `_`, `-` and dots is
/// rejected, so that no name leads out of `/proc/sys`.
fn path(name: &str) -> Result<PathBuf> {
    let good = !name.is_empty()
        && name.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        });
    if good {
        Ok(PathBuf::from("/proc/sys").join(name.replace('.', "/")))
    } else {
        Err(SysError::new("name", format!("sysctl '{name}'"), io::ErrorKind::InvalidInput.into()))
    }
}

/// Reads one, without the final newline; tabs between numbers become spaces.
pub fn read(name: &str) -> Result<String> {
    fs::read_to_string(path(name)?)
        .map(|text| text.trim().replace('\t', " "))
        .map_err(|e| SysError::new("read sysctl", name, e))
}

/// Writes one.
pub fn write(name: &str, value: &str) -> Result<()> {
    // Without O_CREAT, which fs::write adds: for users other than root it would hide that the file does not exist.
    let file = fs::File::options().write(true).open(path(name)?);
    file.and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|e| SysError::new("write sysctl", format!("{name} = {value}"), explain(e)))
}

/// Checks that it may be written: opens it for writing, and writes nothing.
pub fn check_writable(name: &str) -> Result<()> {
    let file = fs::File::options().write(true).open(path(name)?);
    file.map(drop).map_err(|e| SysError::new("open sysctl", name, e))
}

/// Explains the system's error for a sysctl.
fn explain(refused: io::Error) -> io::Error {
    let text = match refused.kind() {
        io::ErrorKind::NotFound => {
            "no such sysctl in a network namespace of this kernel; 'sysctl -a' lists those of the machine"
        }
        io::ErrorKind::InvalidInput => "the kernel rejects this value; correct it",
        io::ErrorKind::PermissionDenied => "it is read-only here; remove it",
        _ => return refused,
    };
    io::Error::new(refused.kind(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_sysctl_and_value() {
        let text = write("net.ipv4.no_such_sysctl", "1").unwrap_err().to_string();
        assert!(text.contains("net.ipv4.no_such_sysctl = 1: no such sysctl"), "{text}");
    }

    #[test]
    fn names_stay_inside() {
        assert!(read("kernel.osrelease").is_ok());
        for bad in ["", "..", "net..ipv4", "../etc/passwd", "net.ipv4./x"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
