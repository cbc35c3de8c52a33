//! Actively managed queueing disciplines, and a rate limit behind them, set by rtnetlink.

use crate::netlink::{KIND, Netlink, ROOT, TCMSG_BYTES, push_attribute};
use crate::qdisc::{OPTIONS, RTM_NEWQDISC};
use crate::{Result, SysError};

/// `TCA_RED_*` of linux/pkt_sched.h; here and below, those that no declaration of a queue has.
pub mod red {
    /// `struct tc_red_qopt`: limit, lower and upper threshold in bytes, then of 8 bits: log2 of the weight's inverse, log2 of random
    /// numbers, log2 of idle time's unit, and flags.
    pub const PARAMETERS: u16 = 1;
    /// Decay of an average after an idle time, as a table of 256 shifts.
    pub const IDLE: u16 = 2;
    /// Largest probability, parts of 2^32.
    pub const MAX_P: u16 = 3;
    /// Flag: mark.
    pub const ECN: u8 = 1;
    /// Flag: drop above the upper threshold.
    pub const HARDDROP: u8 = 2;
}

/// `TCA_CAKE_*`.
pub mod cake {
    /// Bytes per second, 64 bits.
    pub const BASE_RATE64: u16 = 2;
    /// Additional bytes per packet.
    pub const OVERHEAD: u16 = 6;
    /// Microseconds.
    pub const TARGET: u16 = 8;
    /// Bytes of kernel memory.
    pub const MEMORY: u16 = 10;
}

/// `TCA_TBF_*` of linux/pkt_sched.h.
mod tbf {
    pub(super) const PARAMETERS: u16 = 1;
    pub(super) const RATE64: u16 = 4;
    pub(super) const BURST: u16 = 6;
}

/// `NLA_F_NESTED`, without which newer disciplines take no options.
const NESTED: u16 = 0x8000;
/// `TC_LINKLAYER_ETHERNET`: lengths are used unchanged.
const LINK_LAYER_ETHERNET: u8 = 1;
/// Handle of the rate limit.
const RATE: u32 = 0x0001_0000;
const QUEUE: u32 = 0x0002_0000;

/// A discipline and its options, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    kind: &'static str,
    bytes: Vec<u8>,
}

/// Parent of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The rate limit that [`Netlink::set_rate`] created.
    OfRate,
    /// The device itself.
    Root,
}

impl Options {
    /// Creates it without options.
    pub fn new(kind: &'static str) -> Self {
        Self { kind, bytes: Vec::new() }
    }

    /// Adds a 32-bit option.
    pub fn with(self, attribute: u16, value: u32) -> Self {
        self.with_bytes(attribute, &value.to_ne_bytes())
    }

    /// Adds an option.
    pub fn with_bytes(mut self, attribute: u16, value: &[u8]) -> Self {
        push_attribute(&mut self.bytes, attribute, value);
        self
    }
}

impl Netlink {
    /// Limits a device to this many bytes per second, including the overhead of each packet, in bursts of at most `burst_bytes`.
    pub fn set_rate(
        &mut self,
        device: &str,
        bytes_per_second: u64,
        overhead_bytes: u32,
        burst_bytes: u32,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        // struct tc_ratespec: size of a cell, link layer, overhead, alignment of a cell, smallest packet, rate.
        let mut rate = vec![0, LINK_LAYER_ETHERNET];
        rate.extend_from_slice(&(overhead_bytes as u16).to_ne_bytes());
        rate.extend_from_slice(&[0; 4]);
        rate.extend_from_slice(&u32::try_from(bytes_per_second).unwrap_or(u32::MAX).to_ne_bytes());
        // struct tc_tbf_qopt: rate, peak rate, limit, buffer, mtu.
        rate.extend_from_slice(&[0; 12]);
        for word in [1 << 24, 0, 0] {
            rate.extend_from_slice(&u32::to_ne_bytes(word));
        }
        push_attribute(&mut bytes, tbf::PARAMETERS, &rate);
        push_attribute(&mut bytes, tbf::RATE64, &bytes_per_second.to_ne_bytes());
        push_attribute(&mut bytes, tbf::BURST, &burst_bytes.to_ne_bytes());
        self.set_discipline(device, [RATE, ROOT], &Options { kind: "tbf", bytes })
    }

    /// Sets the queue of a device, or of its rate limit.
    pub fn set_queue(&mut self, device: &str, parent: Parent, queue: &Options) -> Result<()> {
        let parent = match parent {
            Parent::OfRate => RATE | 1,
            Parent::Root => ROOT,
        };
        self.set_discipline(device, [QUEUE, parent], queue)
    }

    fn set_discipline(&mut self, device: &str, [handle, parent]: [u32; 2], options: &Options) -> Result<()> {
        let mut body = vec![0; TCMSG_BYTES];
        body[4..8].copy_from_slice(&self.index(device)?.to_ne_bytes());
        body[8..12].copy_from_slice(&handle.to_ne_bytes());
        body[12..16].copy_from_slice(&parent.to_ne_bytes());
        push_attribute(&mut body, KIND, format!("{}\0", options.kind).as_bytes());
        push_attribute(&mut body, OPTIONS | NESTED, &options.bytes);
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        self.request(RTM_NEWQDISC, flags, &body)
            .map(drop)
            .map_err(|e| SysError::new("set the queueing discipline of device", device, e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_attributes() {
        let options = Options::new("codel").with(2, 5_000).with(4, 1);
        assert_eq!(options.bytes.len(), 16);
        assert_eq!(options.bytes[4..8], 5_000u32.to_ne_bytes());
        assert_eq!(options.bytes[10..12], 4u16.to_ne_bytes());
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let error = Netlink::open().unwrap().set_rate("no-such-dev", 1, 0, 1500).unwrap_err();
        assert!(error.to_string().contains("no-such-dev"), "{error}");
    }
}
