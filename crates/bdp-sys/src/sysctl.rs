//! Sysctls, by dotted name, of the namespace that the process is in.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::{Result, SysError};

/// `/proc/sys/...` of a dotted name. A name with anything but letters, digits, `_`, `-` and dots is refused, so that
/// no name leads out of `/proc/sys`.
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
    fs::write(path(name)?, value).map_err(|e| SysError::new("write sysctl", format!("{name} = {value}"), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        assert!(read("kernel.osrelease").is_ok());
        for bad in ["", "..", "net..ipv4", "../etc/passwd", "net.ipv4./x"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
