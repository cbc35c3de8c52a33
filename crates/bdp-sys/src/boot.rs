//! Which boot of the machine this is, which network, and how long it has been up.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;
use crate::{Result, SysError};

/// The kernel's random name of this boot.
pub fn id() -> Result<String> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    fs::read_to_string(PATH).map(|id| id.trim().to_owned()).map_err(|e| SysError::new("read", PATH, e))
}

/// The number of the network namespace that the calling thread is in; it means something during one boot.
pub fn network_namespace() -> Result<u64> {
    const PATH: &str = "/proc/thread-self/ns/net";
    fs::metadata(PATH).map(|namespace| namespace.ino()).map_err(|e| SysError::new("read", PATH, e))
}

/// Nanoseconds since boot, those in which the machine slept included (`CLOCK_BOOTTIME`).
pub fn uptime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Boottime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_and_a_network_have_names() {
        assert_eq!(id().unwrap().len(), 36);
        assert_eq!(network_namespace().unwrap(), network_namespace().unwrap());
        assert!(uptime_ns() > 0);
    }
}
