//! CPU quota throttling of this process's control group: `cpu.stat` of cgroup v1 and v2.

use std::fs;
use std::path::{Path, PathBuf};

/// How often and how long the group's processes were throttled by its CPU quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which the quota was used up.
    pub periods: u64,
    /// Periods in which the group had something to run.
    pub of_periods: u64,
    /// Throttled time, nanoseconds, summed over processors.
    pub time_ns: u64,
}

/// Throttling of this process's group and its parents since their creation; `None` if none reports it, for example without a quota.
pub fn throttling() -> Option<Throttling> {
    of_groups(&fs::read_to_string("/proc/self/cgroup").ok()?)
}

/// Throttling of another process's groups; `None` also if it is not visible or has ended.
pub fn throttling_of(process: u32) -> Option<Throttling> {
    of_groups(&fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?)
}

fn of_groups(groups: &str) -> Option<Throttling> {
    let stats = stat_files(groups).into_iter().filter_map(|file| parse(&fs::read_to_string(file).ok()?));
    stats.reduce(|a, b| Throttling {
        periods: a.periods + b.periods,
        of_periods: a.of_periods.max(b.of_periods),
        time_ns: a.time_ns + b.time_ns,
    })
}

/// Possible `cpu.stat` files of the group and its parents: `0::/PATH` is version 2, `N:cpu,cpuacct:/PATH` version 1.
fn stat_files(groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let roots: &[&str] = if controllers.is_empty() {
            &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            &["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"]
        } else {
            continue;
        };
        // The second root is another name of the first, or another version.
        let Some(root) = roots.iter().map(Path::new).find(|root| root.join("cgroup.procs").exists()) else {
            continue;
        };
        let path = path.trim_start_matches('/');
        files.extend(Path::new(path).ancestors().map(|group| root.join(group).join("cpu.stat")));
    }
    files
}

/// `nr_throttled`, and `throttled_usec` (version 2) or `throttled_time` (version 1, nanoseconds).
fn parse(stat: &str) -> Option<Throttling> {
    let value = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let time_ns =
        value("throttled_usec").map(|us| us.saturating_mul(1_000)).or_else(|| value("throttled_time"));
    Some(Throttling { periods: value("nr_throttled")?, of_periods: value("nr_periods")?, time_ns: time_ns? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let v2 =
            "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 7\nnr_throttled 3\nthrottled_usec 4500\n";
        assert_eq!(parse(v2), Some(Throttling { periods: 3, of_periods: 7, time_ns: 4_500_000 }));
        let v1 = "nr_periods 7\nnr_throttled 3\nthrottled_time 4500\n";
        assert_eq!(parse(v1), Some(Throttling { periods: 3, of_periods: 7, time_ns: 4_500 }));
        // The group at the root has no quota.
        assert_eq!(parse("usage_usec 9\n"), None);
    }

    #[test]
    fn only_groups_of_processor_time_are_looked_at() {
        assert_eq!(stat_files("4:memory:/a\n9:name=systemd:/a\nnonsense\n"), Vec::<PathBuf>::new());
    }
}
