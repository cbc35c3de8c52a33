//! Scheduler statistics of threads and processes: processor time used, and time spent waiting for a processor.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Times of a thread since its start, from `/proc/PID/task/TID/schedstat` (Linux `Documentation/scheduler/sched-stats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Id of the thread.
    pub thread: u32,
    /// Time on a processor.
    pub running_ns: u64,
    /// Time ready to run, while other threads had the processor.
    pub waiting_ns: u64,
}

/// Times of all threads of a process; empty if it has ended or the kernel does not keep them (`CONFIG_SCHED_INFO`).
pub fn thread_times(process: u32) -> Vec<ThreadTime> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let thread = entry.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
            let (running_ns, waiting_ns) = parse_schedstat(&text)?;
            Some(ThreadTime { thread, running_ns, waiting_ns })
        })
        .collect()
}

/// The calling thread's own times, for repeated reading.
#[derive(Debug)]
pub struct OwnWait {
    file: Option<File>,
}

impl OwnWait {
    /// Opens those of the calling thread, whichever thread reads them later.
    pub fn of_this_thread() -> Self {
        Self { file: File::open("/proc/thread-self/schedstat").ok() }
    }

    /// Time ready to run while others had its processor, since its start; `None` if the kernel keeps no statistics.
    pub fn waiting_ns(&self) -> Option<u64> {
        self.times_ns().map(|(_, waiting)| waiting)
    }

    /// Time on a processor, and waiting time; `None` also if the thread has ended.
    pub fn times_ns(&self) -> Option<(u64, u64)> {
        let mut room = [0; 96];
        let length = self.file.as_ref()?.read_at(&mut room, 0).ok()?;
        parse_schedstat(std::str::from_utf8(&room[..length]).ok()?)
    }
}

fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A process and its used processor time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessTime {
    /// Id of the process.
    pub process: u32,
    /// Id of its parent.
    pub parent: u32,
    /// Name of its program, at most 15 bytes.
    pub name: String,
    /// User and system time of all threads.
    pub running_ns: u64,
}

/// Times of all processes that `/proc` shows to this user.
pub fn process_times() -> Vec<ProcessTime> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
        })
        .filter_map(|entry| parse_stat(&fs::read_to_string(entry.path().join("stat")).ok()?))
        .collect()
}

/// Parses `PID (NAME) STATE PPID ...`, with utime and stime as fields 14 and 15 (proc(5)), in hundredths of a second.
fn parse_stat(text: &str) -> Option<ProcessTime> {
    const TICK_NS: u64 = 10_000_000;
    // A name may contain parentheses and spaces: the last parenthesis ends it.
    let (head, tail) = text.rsplit_once(')')?;
    let (process, name) = head.split_once('(')?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<u64>().ok();
    Some(ProcessTime {
        process: process.trim().parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        name: name.to_owned(),
        running_ns: (ticks(11)? + ticks(12)?) * TICK_NS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_stat_is_read_whatever_the_name() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 100 0 0\n";
        let found = parse_stat(line).unwrap();
        assert_eq!((found.process, found.parent, found.name.as_str()), (42, 7, "a) b (c"));
        assert_eq!(found.running_ns, 3_000_000_000);
        assert_eq!(parse_stat("42 (a"), None);
        assert_eq!(parse_stat("42 (a) S 1"), None);
    }

    #[test]
    fn schedstat_has_running_and_waiting_time() {
        assert_eq!(parse_schedstat("638295 17 1\n"), Some((638_295, 17)));
        assert_eq!(parse_schedstat("638295"), None);
    }

    #[test]
    fn this_process_is_found_with_its_threads() {
        let own = std::process::id();
        assert!(process_times().iter().any(|p| p.process == own));
        // A kernel without these statistics has none in either place.
        assert_eq!(thread_times(own).is_empty(), OwnWait::of_this_thread().waiting_ns().is_none());
        assert_eq!(thread_times(u32::MAX), []);
    }
}
