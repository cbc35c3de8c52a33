//! Drops in the kernel's queues between devices and stack: `/proc/net/softnet_stat`.

use std::fs;

/// Counts of all processors since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Softnet {
    /// Packets that found the backlog of their processor full (`net.core.netdev_max_backlog`).
    pub dropped: u64,
    /// Times that a processor had more packets to receive than allowed at once (`net.core.netdev_budget`).
    pub squeezed: u64,
}

impl Softnet {
    /// Reads it; `None` if the kernel does not report it.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/net/softnet_stat").ok()?)
    }

    /// Parses a line of hexadecimal numbers for each processor: the second is dropped packets, the third squeezes (`softnet_seq_show`).
    fn parse(text: &str) -> Option<Self> {
        let mut sum = Self::default();
        for line in text.lines() {
            let mut fields = line.split_whitespace().skip(1).map(|field| u64::from_str_radix(field, 16));
            sum.dropped += fields.next()?.ok()?;
            sum.squeezed += fields.next()?.ok()?;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_added_up() {
        assert_eq!(
            Softnet::parse("0636895a 00000002 000003cb 00000000\n08e20ff3 0000000f 00000364 00000000\n"),
            Some(Softnet { dropped: 17, squeezed: 0x3cb + 0x364 })
        );
        assert_eq!(Softnet::parse("0636895a\n"), None);
        assert_eq!(Softnet::parse("0636895a x 0\n"), None);
        assert!(Softnet::read().is_some());
    }
}
