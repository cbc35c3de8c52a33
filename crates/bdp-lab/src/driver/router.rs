//! Forwarding without a router's kernel: by the virtual clock a packet that is merely forwarded enters its next
//! link at the nanosecond at which it left the last one. Everything else (an ICMP answer, fragments, options, a
//! packet for the router itself, a damaged header) is left to the kernel. A switch forwards this way by either
//! clock, since a kernel would count a hop.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bdp_link::{Packet, Segments};
use bdp_model::link::checksum;
use bdp_sys::tun::Framing;

/// One end of a link: the link's key, and the index of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) link: u64,
    pub(crate) end: usize,
}

/// A host that forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Router {
    /// Its devices.
    pub(crate) ports: Vec<Port>,
    /// Whether it is a switch, which counts no hop.
    pub(crate) switch: bool,
    /// Device towards each address of another host.
    pub(crate) ways: BTreeMap<IpAddr, Port>,
}

impl Router {
    /// Outgoing device of a packet that arrived by another one after this many hops; `None` for what is left to the
    /// kernel. The next link may still be too narrow for it.
    pub(crate) fn way(&self, packet: &Packet, came_by: Port, hops: u8) -> Option<Port> {
        let header = Header::of(&packet.data)?;
        let way = *self.ways.get(&header.to)?;
        let passes =
            header.hops_left.checked_sub(hops)? > self.hops() && self.ways.contains_key(&header.from);
        (passes && way != came_by).then_some(way)
    }

    /// Number of hops it counts.
    pub(super) fn hops(&self) -> u8 {
        u8::from(!self.switch)
    }

    /// Changes a packet as forwarding does.
    pub(crate) fn pass(&self, packet: &mut [u8]) {
        if !self.switch {
            turn_hops(packet, |hops| hops.wrapping_sub(1));
        }
    }

    /// A packet left to a switch's kernel, with the hop added that the kernel will count. At the maximum of 255 one is lost.
    pub(super) fn for_kernel(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.switch.then(|| {
            let mut packet = packet.to_vec();
            turn_hops(&mut packet, |hops| hops.saturating_add(1));
            packet
        })
    }
}

/// Whether a device with this MTU sends a packet unchanged.
pub(super) fn fits(packet: &Packet, mtu: u32, framing: Framing) -> bool {
    let whole = packet.offload.segmentation.is_none() && packet.offload.checksum.is_none();
    let longest = if whole { packet.data.len() as u64 } else { Segments::of(packet).len_bytes(0) };
    (whole || framing == Framing::SuperPackets) && longest <= u64::from(mtu)
}

/// Changes a packet's hop limit, and its checksum accordingly.
fn turn_hops(packet: &mut [u8], turn: impl Fn(u8) -> u8) {
    match packet.first().map(|b| b >> 4) {
        Some(4) if packet.len() >= 20 => {
            let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
            let (sum, before) = (word(packet, 10), word(packet, 8));
            packet[8] = turn(packet[8]);
            let sum = checksum::updated(sum, before, word(packet, 8));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[7] = turn(packet[7]),
        _ => {}
    }
}

/// Header fields that a router examines in an ordinary packet.
struct Header {
    from: IpAddr,
    to: IpAddr,
    hops_left: u8,
}

impl Header {
    fn of(data: &[u8]) -> Option<Self> {
        match data.first()? >> 4 {
            4 => Self::of_ipv4(data.first_chunk()?, data.len()),
            6 => Self::of_ipv6(data.first_chunk()?, data.len()),
            _ => None,
        }
    }

    fn of_ipv4(header: &[u8; 20], bytes: usize) -> Option<Self> {
        const WITHOUT_OPTIONS: u8 = 0x45;
        let intact = checksum::of(header) == 0;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
        (header[0] == WITHOUT_OPTIONS && length == bytes && intact).then(|| Self {
            from: address(12).into(),
            to: address(16).into(),
            hops_left: header[8],
        })
    }

    fn of_ipv6(header: &[u8; 40], bytes: usize) -> Option<Self> {
        const HOP_BY_HOP: u8 = 0;
        let length = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
        let address = |at: usize| -> Option<Ipv6Addr> {
            header.get(at..at + 16)?.first_chunk::<16>().map(|&bytes| bytes.into())
        };
        let (from, to) = (address(8)?.into(), address(24)?.into());
        (header[6] != HOP_BY_HOP && length == bytes).then_some(Self { from, to, hops_left: header[7] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Port = Port { link: 1, end: 1 };
    const RIGHT: Port = Port { link: 2, end: 0 };

    fn router(left: &str, right: &str) -> Router {
        let ways = [(left, LEFT), (right, RIGHT)].map(|(to, port)| (to.parse().unwrap(), port));
        Router { ports: vec![LEFT, RIGHT], switch: false, ways: ways.into() }
    }

    /// RFC 1071: the complement of the sum of all words.
    fn sum_of(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
        !(fold(fold(words.sum())) as u16)
    }

    fn ipv4(ttl: u8, identification: u16) -> Packet {
        let mut data = vec![0x45, 0, 0, 60, 0, 0, 0x40, 0, ttl, 6, 0, 0, 198, 18, 0, 1, 198, 18, 1, 2];
        data[4..6].copy_from_slice(&identification.to_be_bytes());
        let sum = sum_of(&data).to_be_bytes();
        data[10..12].copy_from_slice(&sum);
        data.resize(60, 7);
        data.into()
    }

    fn ipv6(hops: u8) -> Packet {
        let mut data = vec![0x60, 0, 0, 0, 0, 20, 6, hops];
        for last in [1, 2] {
            let address: Ipv6Addr = format!("2001:2:0:{}::{last}", last - 1).parse().unwrap();
            data.extend(address.octets());
        }
        data.resize(60, 7);
        data.into()
    }

    #[test]
    fn a_hop_leaves_the_checksum_right_whatever_it_was() {
        let router = router("198.18.0.1", "198.18.1.2");
        // Some identifications have sums that carry.
        for identification in 0..=u16::MAX {
            let mut packet = ipv4(64, identification);
            assert_eq!(router.way(&packet, LEFT, 0), Some(RIGHT));
            router.pass(&mut packet.data);
            assert_eq!(sum_of(&packet.data[..20]), 0, "{identification}");
            assert_eq!(packet.data[8], 63);
        }
        let mut packet = ipv6(64);
        router.pass(&mut packet.data);
        assert_eq!(packet, ipv6(63));
    }

    #[test]
    fn a_switch_counts_no_hop() {
        let switches = [router("198.18.0.1", "198.18.1.2"), router("2001:2:0:0::1", "2001:2:0:1::2")];
        for (router, make) in switches.iter().zip([(|hops| ipv4(hops, 5)) as fn(u8) -> Packet, ipv6]) {
            let switch = Router { switch: true, ..router.clone() };
            for hops in [1, 2, 64, 255] {
                let mut packet = make(hops);
                assert_eq!(switch.way(&packet, LEFT, 0), Some(RIGHT));
                switch.pass(&mut packet.data);
                assert_eq!(packet, make(hops));
            }
            assert_eq!(switch.way(&make(0), LEFT, 0), None);
            assert_eq!((switch.way(&make(1), LEFT, 1), switch.way(&make(2), LEFT, 1)), (None, Some(RIGHT)));
            // A packet that goes through the kernel after all is forwarded unchanged.
            let mut lifted = switch.for_kernel(&make(64).data).unwrap();
            router.pass(&mut lifted);
            assert_eq!(lifted, make(64).data);
            assert_eq!(router.for_kernel(&make(64).data), None);
        }
    }

    #[test]
    fn what_is_out_of_the_ordinary_is_the_kernels() {
        let routers = [router("198.18.0.1", "198.18.1.2"), router("2001:2:0:0::1", "2001:2:0:1::2")];
        for (router, make) in routers.iter().zip([(|hops| ipv4(hops, 5)) as fn(u8) -> Packet, ipv6]) {
            assert_eq!(router.way(&make(2), LEFT, 0), Some(RIGHT));
            assert_eq!(router.way(&make(3), LEFT, 1), Some(RIGHT));
            // Its hop limit is reached, here or on the way.
            assert_eq!(router.way(&make(1), LEFT, 0), None);
            assert_eq!(router.way(&make(0), LEFT, 0), None);
            assert_eq!(router.way(&make(3), LEFT, 2), None);
            // Back to where it came from.
            assert_eq!(router.way(&make(64), RIGHT, 0), None);
            // Longer or shorter than its length field.
            for bytes in [39, 59, 61] {
                let mut packet = make(64);
                packet.data.resize(bytes, 0);
                assert_eq!(router.way(&packet, LEFT, 0), None);
            }
            // Unknown destination or source.
            for address in [&router.ways.keys().next().copied(), &router.ways.keys().last().copied()] {
                let mut other = router.clone();
                other.ways.remove(&address.unwrap());
                assert_eq!(other.way(&make(64), LEFT, 0), None);
            }
        }
        // Options, and an inconsistent header.
        let mut packet = ipv4(64, 5);
        packet.data[0] = 0x46;
        assert_eq!(routers[0].way(&packet, LEFT, 0), None);
        let mut packet = ipv4(64, 5);
        packet.data[5] ^= 1;
        assert_eq!(routers[0].way(&packet, LEFT, 0), None);
        let mut packet = ipv6(64);
        packet.data[6] = 0;
        assert_eq!(routers[1].way(&packet, LEFT, 0), None);
        assert_eq!(routers[1].way(&Vec::new().into(), LEFT, 0), None);
    }

    #[test]
    fn a_device_takes_what_is_no_longer_than_its_mtu() {
        let packet = ipv4(64, 5);
        assert!(fits(&packet, 60, Framing::Segments));
        assert!(!fits(&packet, 59, Framing::SuperPackets));
        let mut unfinished = packet;
        unfinished.offload.checksum = Some(bdp_link::PartialChecksum { start: 20, offset: 16 });
        assert!(fits(&unfinished, 60, Framing::SuperPackets));
        assert!(!fits(&unfinished, 60, Framing::Segments));
    }
}
