//! The machine's boot, the network namespace, and the uptime.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;
use crate::{Result, SysError};

/// The kernel's random name of this boot.
pub fn id() -> Result<String> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    fs::read_to_string(PATH).map(|id| id.trim().to_owned()).map_err(|e| SysError::new("read", PATH, e))
}

/// Number of the calling thread's network namespace, valid during one boot.
pub fn network_namespace() -> Result<u64> {
    const PATH: &str = "/proc/thread-self/ns/net";
    fs::metadata(PATH).map(|namespace| namespace.ino()).map_err(|e| SysError::new("read", PATH, e))
}

/// Shell command prefix that runs a command in the network namespace of this number, through a process in it or
/// its `ip netns` name. `None` if neither is found: the namespace is gone or has no name.
pub fn way_into_network(number: u64) -> Option<String> {
    let is_it = |path: PathBuf| fs::metadata(path).is_ok_and(|namespace| namespace.ino() == number);
    let named = entries("/run/netns").find(|name| is_it(Path::new("/run/netns").join(name)));
    named.map(|name| format!("ip netns exec {name}")).or_else(|| {
        let processes = entries("/proc").filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        let mut inside = processes.filter(|process| is_it(Path::new("/proc").join(process).join("ns/net")));
        inside.next().map(|process| format!("nsenter -t {process} -n"))
    })
}

/// The names in a folder; none if it can't be read.
fn entries(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Nanoseconds since boot, including sleep (`CLOCK_BOOTTIME`).
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
        assert!(way_into_network(network_namespace().unwrap()).is_some());
        assert_eq!(way_into_network(0), None);
    }
}
