//! Network stack counters of this thread's namespace: `/proc/net/netstat` and `/proc/net/snmp`.

use std::collections::BTreeMap;
use std::fs;

/// Counters by group and name as the kernel writes them, for example `TcpExt` and `PruneCalled`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackCounts(BTreeMap<(String, String), u64>);

impl StackCounts {
    /// Reads those of the calling thread's network namespace; empty if the kernel does not report them.
    pub fn read() -> Self {
        let text =
            |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        Self::parse(&(text("snmp") + &text("netstat")))
    }

    /// Parses a line of names and a line of values for each group (`netstat_seq_show` of Linux). Negative values are ignored.
    fn parse(text: &str) -> Self {
        let mut counts = BTreeMap::new();
        let mut lines = text.lines();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let (Some((group, names)), Some((of, values))) = (names.split_once(':'), values.split_once(':'))
            else {
                break;
            };
            if group != of {
                break;
            }
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                if let Ok(value) = value.parse() {
                    counts.insert((group.to_owned(), name.to_owned()), value);
                }
            }
        }
        Self(counts)
    }

    /// Value of a counter; `None` if this kernel has none of that name.
    pub fn get(&self, group: &str, name: &str) -> Option<u64> {
        self.0.get(&(group.to_owned(), name.to_owned())).copied()
    }

    /// Increase of a counter since an earlier reading.
    pub fn since(&self, earlier: &Self, group: &str, name: &str) -> Option<u64> {
        Some(self.get(group, name)?.saturating_sub(earlier.get(group, name)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Tcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 14\n\
                        TcpExt: SyncookiesSent PruneCalled\nTcpExt: 0 7\n";

    #[test]
    fn counters_are_found_by_group_and_name() {
        let counts = StackCounts::parse(TEXT);
        assert_eq!(counts.get("Tcp", "RetransSegs"), Some(14));
        assert_eq!(counts.get("Tcp", "MaxConn"), None);
        assert_eq!(counts.get("TcpExt", "RetransSegs"), None);
        let later = StackCounts::parse(&TEXT.replace(" 7", " 9"));
        assert_eq!(later.since(&counts, "TcpExt", "PruneCalled"), Some(2));
        assert_eq!(later.since(&counts, "TcpExt", "NoSuch"), None);
    }

    #[test]
    fn what_is_cut_short_is_left_out() {
        assert_eq!(StackCounts::parse("Tcp: A B\nUdp: 1 2\n"), StackCounts::default());
        assert_eq!(StackCounts::parse("Tcp: A B\nTcp: 1\n").get("Tcp", "B"), None);
        assert_eq!(StackCounts::parse("nonsense\n"), StackCounts::default());
        assert!(StackCounts::read().get("TcpExt", "PruneCalled").is_some());
    }
}
