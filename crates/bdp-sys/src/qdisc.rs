//! Queueing disciplines of devices, set by rtnetlink: netem, the kernel's own emulator.

use crate::netlink::{KIND, Netlink, ROOT, TCMSG_BYTES, push_attribute};
use crate::{Result, SysError};

/// `RTM_NEWQDISC` of linux/rtnetlink.h.
pub(crate) const RTM_NEWQDISC: u16 = 36;
/// `TCA_OPTIONS`.
pub(crate) const OPTIONS: u16 = 2;

/// `TCA_NETEM_*` of linux/pkt_sched.h.
mod attribute {
    pub(super) const REORDER: u16 = 3;
    pub(super) const LOSS: u16 = 5;
    pub(super) const RATE: u16 = 6;
    pub(super) const RATE64: u16 = 8;
    pub(super) const LATENCY64: u16 = 10;
    pub(super) const JITTER64: u16 = 11;
}

/// `NETEM_LOSS_GE`, inside of `TCA_NETEM_LOSS`.
const GILBERT_ELLIOTT: u16 = 2;

/// Settings of netem for the packets that a device sends. Probabilities are parts of 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetemSettings {
    /// Delay added to each packet.
    pub delay_ns: u64,
    /// Half the width of the uniform distribution around it.
    pub jitter_ns: u64,
    /// Loss probability.
    pub loss: u32,
    /// Instead of `loss`, probabilities of a model with a good and a bad state: good to bad, bad to good, loss in bad, loss in good.
    pub loss_in_states: Option<[u32; 4]>,
    /// Duplication probability.
    pub duplicate: u32,
    /// Probability that a packet is sent without the delay.
    pub at_once: u32,
    /// Rate, bytes per second.
    pub rate_bytes_per_second: Option<u64>,
    /// Additional bytes per packet at that rate.
    pub overhead_bytes: u32,
    /// Maximum number of packets inside.
    pub limit_packets: u32,
}

impl Netlink {
    /// Makes netem the discipline of a device, replacing the previous one.
    pub fn set_netem(&mut self, device: &str, settings: &NetemSettings) -> Result<()> {
        // struct tcmsg: family, padding, device, handle, parent, info.
        let mut body = vec![0; TCMSG_BYTES];
        body[4..8].copy_from_slice(&self.index(device)?.to_ne_bytes());
        body[8..12].copy_from_slice(&0x0001_0000u32.to_ne_bytes());
        body[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        push_attribute(&mut body, KIND, b"netem\0");
        push_attribute(&mut body, OPTIONS, &settings.encode());
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_REPLACE) as u16;
        self.request(RTM_NEWQDISC, flags, &body)
            .map(drop)
            .map_err(|e| SysError::new("set netem of device", device, e))
    }
}

impl NetemSettings {
    /// Encodes `struct tc_netem_qopt`, followed by the attributes that do not fit in it.
    fn encode(&self) -> Vec<u8> {
        // Packets that are not the first of a gap are reordered with the probability that follows.
        let gap = u32::from(self.at_once > 0);
        let mut bytes = Vec::new();
        for word in [0, self.limit_packets, self.loss, gap, self.duplicate, 0] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        for (kind, ns) in [(attribute::LATENCY64, self.delay_ns), (attribute::JITTER64, self.jitter_ns)] {
            push_attribute(&mut bytes, kind, &i64::try_from(ns).unwrap_or(i64::MAX).to_ne_bytes());
        }
        if self.at_once > 0 {
            // Probability and correlation.
            let both = [self.at_once.to_ne_bytes(), [0; 4]];
            push_attribute(&mut bytes, attribute::REORDER, &both.concat());
        }
        if let Some([to_bad, to_good, loss_bad, loss_good]) = self.loss_in_states {
            // struct tc_netem_gemodel, which gives the bad state's probability of no loss.
            let words = [to_bad, to_good, u32::MAX - loss_bad, loss_good].map(u32::to_ne_bytes);
            let mut model = Vec::new();
            push_attribute(&mut model, GILBERT_ELLIOTT, &words.concat());
            push_attribute(&mut bytes, attribute::LOSS, &model);
        }
        if let Some(rate) = self.rate_bytes_per_second {
            // struct tc_netem_rate: rate, overhead of a packet, size and overhead of a cell.
            let small = u32::try_from(rate).unwrap_or(u32::MAX);
            let words = [small, self.overhead_bytes, 0, 0].map(u32::to_ne_bytes);
            push_attribute(&mut bytes, attribute::RATE, &words.concat());
            push_attribute(&mut bytes, attribute::RATE64, &rate.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_a_structure_and_attributes() {
        let settings = NetemSettings {
            delay_ns: 0x0102,
            limit_packets: 7,
            loss: 9,
            rate_bytes_per_second: Some(125_000),
            overhead_bytes: 38,
            ..Default::default()
        };
        let bytes = settings.encode();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([0, 4, 8, 12, 16, 20].map(word), [0, 7, 9, 0, 0, 0]);
        // Two times of 12 bytes, the rate of 20, the rate of 12.
        assert_eq!(bytes.len(), 24 + 12 + 12 + 20 + 12);
        assert_eq!((word(24) >> 16, word(28)), (u32::from(attribute::LATENCY64), 0x0102));
        assert_eq!((word(48) >> 16, word(52), word(56)), (u32::from(attribute::RATE), 125_000, 38));
        let states = NetemSettings { loss_in_states: Some([1, 2, u32::MAX - 3, 4]), ..Default::default() };
        let bytes = states.encode();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(48) >> 16, word(52) >> 16), (u32::from(attribute::LOSS), 2));
        assert_eq!([56, 60, 64, 68].map(word), [1, 2, 3, 4]);
        let reordering = NetemSettings { at_once: 5, ..Default::default() }.encode();
        assert_eq!(u32::from_ne_bytes(reordering[12..16].try_into().unwrap()), 1);
    }
}
