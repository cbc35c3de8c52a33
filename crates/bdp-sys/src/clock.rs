//! The monotonic clock, shared by every process of the machine.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: comparable between processes and network namespaces of one machine.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Converts a time that is not before its clock's zero.
pub(crate) fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Milliseconds since 1970, for records.
pub fn unix_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Nanoseconds since 1970, for captures.
pub fn unix_ns() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_advances() {
        let first = super::monotonic_ns();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(super::monotonic_ns() >= first + 2_000_000);
    }
}
