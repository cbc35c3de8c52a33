//! The process: its end, timers and processor time.

use std::fs;
use std::num::NonZeroU64;

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getppid, getrlimit, kill_process, kill_process_group,
    set_child_subreaper, set_parent_process_death_signal, setpriority_process, setrlimit, wait,
};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;
use crate::{Result, SysError};

/// Makes the kernel kill this process when the thread that started it ends. `parent` is the expected parent; if
/// it has gone meanwhile the process ends at once.
pub fn die_with_parent(parent: u32) {
    // Without it the process still ends with its standard input.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if Pid::as_raw(getppid()) as u32 != parent {
        // SAFETY: it ends this process, and runs nothing of it.
        unsafe { libc::_exit(0) };
    }
}

/// Makes the kernel kill this process when its starter ends, whatever namespace that is in.
pub fn die_with_starter() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Id of the calling thread.
pub fn thread_id() -> u32 {
    Pid::as_raw(Some(rustix::thread::gettid())) as u32
}

/// Makes the process that `command` starts end when the thread that starts it ends.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: what runs between fork and exec are two calls of the system, which allocate nothing and take no lock.
    unsafe {
        command.pre_exec(move || {
            die_with_parent(parent);
            Ok(())
        });
    }
}

/// Makes the process that `command` starts lead its own process group.
pub fn lead_group(command: &mut Command) {
    command.process_group(0);
}

/// Makes the process that `command` starts lead its own session, without a terminal, and ignore a hangup.
pub fn detach(command: &mut Command) {
    // SAFETY: what runs between fork and exec are two calls of the system, which allocate nothing and take no lock; ignoring runs no code.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
}

/// Kills a process group by its leader's id; one already gone is no error.
pub fn kill_group(leader: u32) {
    if let Some(leader) = Pid::from_raw(leader as i32) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// Kills a process.
pub fn kill(process: u32) -> Result<()> {
    let process = Pid::from_raw(process as i32).unwrap_or(Pid::INIT);
    kill_process(process, Signal::KILL)
        .map_err(|e| SysError::new("kill", format!("process {process:?}"), e.into()))
}

/// Makes this process adopt the orphans among its descendants.
pub fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Reaps every child that has ended; if none has, waits at most 100 ms for one.
pub fn reap() {
    let mut any = false;
    for _ in 0..10 {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {
            any = true;
        }
        if any {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Sets the calling thread's timer slack to one nanosecond, the most precise.
pub fn sharpen_timers() {
    // If refused, timers have the usual precision.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Raises the calling thread's priority within its session (nice -20). Returns whether the system allowed it,
/// which it does only for root and `CAP_SYS_NICE`. Real-time priority is avoided: a thread that spins at it
/// starves the kernel's own, and the kernel then takes the processor away for 50 ms each second.
pub fn raise_priority() -> bool {
    // SAFETY: sched_param is plain data for which all-zero is valid, and is read.
    unsafe {
        let ordinary: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
    }
    // On Linux it applies to the calling thread alone.
    setpriority_process(None, -20).is_ok()
}

/// Gives a process (0: the calling thread), and its later threads, precedence over all ordinary ones, in any
/// session: real-time, round robin, lowest priority. Returns whether the system allowed it, which it does only
/// for root and `CAP_SYS_NICE`. A thread that never sleeps must not have it (see [`raise_priority`]).
pub fn prefer(process: u32) -> bool {
    // SAFETY: sched_param is plain data for which all-zero is valid; the call reads it.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = 1;
        libc::sched_setscheduler(process as libc::pid_t, libc::SCHED_RR, &raw const parameters) == 0
    }
}

/// Undoes [`prefer`] for the calling thread; threads that it has started keep it.
pub fn prefer_no_more() {
    // SAFETY: sched_param is plain data for which all-zero is valid; the call reads it.
    unsafe {
        let ordinary: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
    }
}

/// Processors that the calling thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    sched_getaffinity(None)
        .map_or_else(|_| Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Pins a process, or with 0 the calling thread, to these processors.
pub fn pin(process: u32, cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    sched_setaffinity(Pid::from_raw(process as i32), &set)
        .map_err(|e| SysError::new("pin", format!("process {process} to processors {cpus:?}"), e.into()))
}

/// Processor time used by this process so far, user and system, nanoseconds.
pub fn cpu_time_ns() -> u64 {
    let (user, system) = cpu_times_ns();
    user + system
}

/// Processor time used by this process so far, nanoseconds: user, and system.
pub fn cpu_times_ns() -> (u64, u64) {
    // SAFETY: rusage is plain data for which all-zero is valid, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}

/// Processor time used by the calling thread so far, user and system, nanoseconds.
pub fn thread_cpu_time_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Raises the soft limit of open descriptors to the hard one, and returns it.
pub fn raise_descriptor_limit() -> Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|e| SysError::new("raise limit of", "open files", e.into()))?;
    // `None` means unlimited.
    Ok(maximum.unwrap_or(u64::MAX))
}

/// Memory of the machine, bytes, regardless of a container's limit.
pub fn machine_memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // Both are as wide as a machine word.
    #[allow(clippy::useless_conversion)]
    let total = u64::from(info.totalram);
    total.saturating_mul(u64::from(info.mem_unit.max(1)))
}

/// `uname -r`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |s| s.trim().to_owned())
}

/// Number of online processors.
pub fn online_cpus() -> u32 {
    // SAFETY: sysconf takes only a name.
    u32::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1).max(1)
}

/// Ticks of all processors since boot, from `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCpu {
    /// All ticks.
    pub total: u64,
    /// Ticks idle or waiting for I/O.
    pub idle: u64,
    /// Ticks taken by the hypervisor.
    pub steal: u64,
}

impl HostCpu {
    /// Reads it; all zero if `/proc/stat` can't be read.
    pub fn read() -> Self {
        fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let fields: Vec<u64> = text
            .lines()
            .next()
            .unwrap_or("")
            .split_whitespace()
            .skip(1)
            .take(8)
            .map(|f| f.parse().unwrap_or(0))
            .collect();
        let at = |i: usize| fields.get(i).copied().unwrap_or(0);
        Self { total: fields.iter().sum(), idle: at(3) + at(4), steal: at(7) }
    }

    /// Busy and stolen fractions since `earlier`, 0..=1.
    pub fn since(self, earlier: Self) -> (f64, f64) {
        let total = self.total.saturating_sub(earlier.total);
        if total == 0 {
            return (0.0, 0.0);
        }
        let part = |later: u64, before: u64| later.saturating_sub(before) as f64 / total as f64;
        (1.0 - part(self.idle, earlier.idle), part(self.steal, earlier.steal))
    }
}

/// Makes all later threads share one allocator arena: otherwise each gets its own, which keeps its peak memory.
/// For a process whose threads come and go, and allocate little while they are busy.
pub fn share_allocator() {
    // SAFETY: sets a number of the allocator's.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_the_processors() {
        let before = HostCpu::parse("cpu  100 0 100 800 0 0 0 0 0 0\n");
        let after = HostCpu::parse("cpu  150 0 120 900 10 0 10 10 0 0\n");
        let (busy, steal) = after.since(before);
        assert!((busy - 90.0 / 200.0).abs() < 1e-9, "{busy}");
        assert!((steal - 0.05).abs() < 1e-9);
        assert_eq!(before.since(before), (0.0, 0.0));
    }

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let all = allowed_cpus();
        assert!(!all.is_empty());
        let last = &all[all.len() - 1..];
        let pinned = last.to_vec();
        let seen =
            std::thread::spawn(move || pin(0, &pinned).map(|()| allowed_cpus())).join().unwrap().unwrap();
        assert_eq!(seen, last);
        assert_eq!(allowed_cpus(), all);
    }

    #[test]
    fn this_machine_has_a_processor_and_a_kernel() {
        assert!(online_cpus() >= 1);
        assert_ne!(kernel_release(), "");
    }
}
