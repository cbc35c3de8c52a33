//! Which boot of the machine this is, which network, and how long it has been up.

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

/// The number of the network namespace that the calling thread is in; it means something during one boot.
pub fn network_namespace() -> Result<u64> {
    const PATH: &str = "/proc/thread-self/ns/net";
    fs::metadata(PATH).map(|namespace| namespace.ino()).map_err(|e| SysError::new("read", PATH, e))
}

/// How a command is run in a network namespace of this number, as the beginning of a line of a shell: by a process that is in it, or by its name of `ip
/// netns`. `None` where neither is seen: it is gone, or held by what has no name.
pub fn way_into_network(number: u64) -> Option<String> {
    let is_it = |path: PathBuf| fs::metadata(path).is_ok_and(|namespace| namespace.ino() == number);
    let named = entries("/run/netns").find(|name| is_it(Path::new("/run/netns").join(name)));
    named.map(|name| format!("ip netns exec {name}")).or_else(|| {
        let processes = entries("/proc").filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        let mut inside = processes.filter(|process| is_it(Path::new("/proc").join(process).join("ns/net")));
        inside.next().map(|process| format!("nsenter -t {process} -n"))
    })
}

/// The names in a folder; none where it can't be read.
fn entries(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
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
        assert!(way_into_network(network_namespace().unwrap()).is_some());
        assert_eq!(way_into_network(0), None);
    }
}
