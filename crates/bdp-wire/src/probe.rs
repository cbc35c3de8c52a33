//! A probe of the lab: a UDP datagram of 16 bytes that its echo returns. Five bytes are zero when sent; the echo fills in the one-way delay
//! and the number of probes received from this sender. All hosts of a lab share one clock.
//!
//! The emulator between the two hosts reads probes too: the probe's timestamp, with the times at which the emulator read
//! and released it, shows where the round trip's time was spent.

/// Length of a probe's payload, bytes.
pub const PROBE_BYTES: usize = 16;
/// UDP's protocol number (IANA).
const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;
/// Unit of the one-way delay written by an echo; the maximum is 68 s.
const THERE_UNIT_NS: u64 = 16;
/// Mask of a probe number.
const NUMBERS: u64 = (1 << 24) - 1;

/// Content of a probe, big-endian in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Probe {
    /// Number within the flow, from 0 to 2^24 - 1: enough for a day at 100 per second.
    pub number: u64,
    /// Time of sending, by the machine's monotonic clock.
    pub sent_at_ns: u64,
}

impl Probe {
    /// Encodes the probe.
    pub fn encode(self) -> [u8; PROBE_BYTES] {
        let mut bytes = [0; PROBE_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        bytes[8..].copy_from_slice(&self.sent_at_ns.to_be_bytes());
        bytes
    }

    /// Decodes a payload of exactly a probe's length.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; PROBE_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        Some(Self { number: word(0) & NUMBERS, sent_at_ns: word(8) })
    }

    /// Writes into a probe's payload its delay up to the echo, at `now_ns`, and the number of probes received, this one included.
    pub fn note_arrival(bytes: &mut [u8; PROBE_BYTES], now_ns: u64, count: u64) {
        let Some(probe) = Self::decode(bytes) else { return };
        let took = now_ns.saturating_sub(probe.sent_at_ns).div_ceil(THERE_UNIT_NS).max(1);
        bytes[..4].copy_from_slice(&u32::try_from(took).unwrap_or(u32::MAX).to_be_bytes());
        bytes[4] = count as u8;
    }

    /// Number of probes from this sender that the echo had received, modulo 256; `None` if the echo wrote nothing.
    pub fn echoed(bytes: &[u8]) -> Option<u8> {
        Self::there_ns(bytes).and(bytes.get(4).copied())
    }

    /// One-way delay to the echo, to 16 ns; `None` if the echo wrote nothing.
    pub fn there_ns(bytes: &[u8]) -> Option<u64> {
        let took = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
        (took > 0).then(|| u64::from(took) * THERE_UNIT_NS)
    }

    /// Decodes the probe in an IP packet: IPv4, or IPv6 without extension headers, with a datagram of a probe's length.
    pub fn of_packet(packet: &[u8]) -> Option<Self> {
        let header_bytes = match packet.first()? >> 4 {
            4 if *packet.get(9)? == UDP => usize::from(packet[0] & 0x0f) * 4,
            6 if *packet.get(6)? == UDP => 40,
            _ => return None,
        };
        Self::decode(packet.get(header_bytes + UDP_HEADER_BYTES..)?)
    }
}

/// Count of the probes that an echo received from one sender, without duplicates; probes over 64 behind the latest are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EchoCount {
    latest: u64,
    /// Bitmap of the latest 64 probes received; the lowest bit is the latest.
    came: u64,
    count: u64,
}

impl EchoCount {
    /// Records a probe and returns the count so far.
    pub fn note(&mut self, number: u64) -> u64 {
        if self.count == 0 || number > self.latest {
            let ahead = u32::try_from(number.saturating_sub(self.latest)).unwrap_or(u32::MAX);
            self.came = self.came.checked_shl(ahead).unwrap_or(0) | 1;
            self.latest = number;
            self.count += 1;
            return self.count;
        }
        let bit = u32::try_from(self.latest - number).ok().and_then(|behind| 1u64.checked_shl(behind));
        if let Some(bit) = bit.filter(|bit| self.came & bit == 0) {
            self.came |= bit;
            self.count += 1;
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Probe = Probe { number: 7, sent_at_ns: 0x0102_0304_0506_0708 };

    #[test]
    fn a_probe_survives_encoding() {
        assert_eq!(Probe::decode(&PROBE.encode()), Some(PROBE));
        let mut answer = PROBE.encode();
        assert_eq!(Probe::there_ns(&answer), None);
        Probe::note_arrival(&mut answer, PROBE.sent_at_ns + 1_000_000, 259);
        assert_eq!((Probe::echoed(&answer), Probe::echoed(&PROBE.encode())), (Some(3), None));
        assert_eq!((Probe::decode(&answer), Probe::there_ns(&answer)), (Some(PROBE), Some(1_000_000)));
        assert_eq!(Probe::decode(&[0; 15]), None);
        assert_eq!(Probe::decode(&[0; 17]), None);
    }

    #[test]
    fn a_probe_that_comes_twice_or_late_counts_once() {
        let mut count = EchoCount::default();
        let counts = [3, 3, 5, 4, 4, 70, 5, 7, 200].map(|number| count.note(number));
        assert_eq!(counts, [1, 1, 2, 3, 3, 4, 4, 5, 6]);
    }

    #[test]
    fn a_probe_is_found_in_a_packet_of_either_ip_version() {
        let mut v4 = vec![0u8; 28];
        v4[0] = 0x45;
        v4[9] = UDP;
        v4.extend(PROBE.encode());
        assert_eq!(Probe::of_packet(&v4), Some(PROBE));
        let mut v6 = vec![0u8; 48];
        v6[0] = 0x60;
        v6[6] = UDP;
        v6.extend(PROBE.encode());
        assert_eq!(Probe::of_packet(&v6), Some(PROBE));
        v4[9] = 6;
        assert_eq!(Probe::of_packet(&v4), None);
        v6.push(0);
        assert_eq!(Probe::of_packet(&v6), None);
        assert_eq!(Probe::of_packet(&[0x4f; 12]), None);
        assert_eq!(Probe::of_packet(&[]), None);
    }
}
