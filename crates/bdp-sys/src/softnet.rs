//! What the kernel's queues between devices and stack dropped: `/proc/net/softnet_stat`.

use std::fs;

/// Packets that found the backlog of their processor full (`net.core.netdev_max_backlog`) since boot, all processors; `None`
/// where the kernel does not report it.
pub fn dropped() -> Option<u64> {
    parse(&fs::read_to_string("/proc/net/softnet_stat").ok()?)
}

/// A line for each processor, of hexadecimal numbers: the second is dropped packets (`softnet_seq_show`).
fn parse(text: &str) -> Option<u64> {
    text.lines().map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_added_up() {
        assert_eq!(
            parse("0636895a 00000002 000003cb 00000000\n08e20ff3 0000000f 00000364 00000000\n"),
            Some(17)
        );
        assert_eq!(parse("0636895a\n"), None);
        assert_eq!(parse("0636895a x 0\n"), None);
        assert!(dropped().is_some());
    }
}
