//! Flow of a packet: a seeded hash of addresses, protocol and ports.

use crate::packet::Packet;

/// A hash with its own key for each direction, as Linux has for each discipline: which flows share a queue follows from the seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowHash {
    key: u64,
}

impl FlowHash {
    pub(super) fn new(key: u64) -> Self {
        Self { key }
    }

    /// Queue of a packet's flow, among `buckets`. Non-IP packets share one.
    pub(super) fn bucket(self, packet: &Packet, buckets: usize) -> usize {
        let hash = self.of(packet);
        ((u128::from(hash) * buckets as u128) >> 64) as usize
    }

    /// Hashes of its sender and of its receiver.
    pub(super) fn hosts(self, packet: &Packet) -> [u64; 2] {
        let (addresses, _, _) = packet.flow();
        let (from, to) = addresses.split_at(addresses.len() / 2);
        [from, to].map(|address| address.chunks(8).fold(mix(self.key), |hash, chunk| mix(hash ^ word(chunk))))
    }

    pub(super) fn of(self, packet: &Packet) -> u64 {
        let (addresses, protocol, ports) = packet.flow();
        let mut hash = mix(self.key ^ u64::from(protocol));
        for chunk in addresses.chunks(8).chain([ports]) {
            hash = mix(hash ^ word(chunk));
        }
        hash
    }
}

/// Up to eight bytes as a number.
fn word(chunk: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(word)
}

/// The finalizer of SplitMix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(source: u16, last: u8) -> Packet {
        let mut data = vec![0; 28];
        data[0] = 0x45;
        data[3] = 28;
        data[9] = 17;
        data[19] = last;
        data[20..22].copy_from_slice(&source.to_be_bytes());
        data.into()
    }

    #[test]
    fn a_flow_keeps_its_queue_and_others_spread() {
        let hash = FlowHash::new(7);
        let bucket = |packet: Packet| hash.bucket(&packet, 1024);
        assert_eq!(bucket(udp(5, 1)), bucket(udp(5, 1)));
        let mut used: Vec<usize> = (0..1024).map(|port| bucket(udp(port, 1))).collect();
        used.sort_unstable();
        used.dedup();
        // 1 - 1/e of the queues.
        assert!((600..700).contains(&used.len()), "{}", used.len());
        assert_ne!(bucket(udp(5, 1)), bucket(udp(5, 2)));
        assert_ne!(bucket(udp(5, 1)), FlowHash::new(8).bucket(&udp(5, 1), 1024));
        assert!(hash.bucket(&Packet::default(), 3) < 3);
    }
}
