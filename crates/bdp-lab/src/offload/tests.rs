//! Compares cutting with the kernel, which segments a super-packet that it forwards to a device without offloads.

use std::time::{Duration, Instant};

use bdp_sys::netlink::{DeviceSettings, Netlink};
use bdp_sys::tun::Tun;
use bdp_sys::{SysError, namespace, sysctl};

use super::*;
use untested::skip;

#[path = "../../../bdp/tests/support/untested.rs"]
mod untested;

const FIN_PSH_CWR_ACK: u8 = 0x01 | 0x08 | 0x80 | 0x10;

/// A router: packets written to the first device leave by the second.
struct Router {
    takes_all: Tun,
    takes_segments: Tun,
}

impl Router {
    /// Creates it in the calling thread's own network namespace.
    fn build() -> Result<Self, SysError> {
        namespace::enter_own_network()?;
        let mut netlink = Netlink::open()?;
        let takes_all = Tun::create("in0", Framing::SuperPackets)?;
        let takes_segments = Tun::create("out0", Framing::Segments)?;
        for (index, name) in (0..).zip(["in0", "out0"]) {
            netlink.bring_up(name, &DeviceSettings { mtu: Some(1500), ..Default::default() })?;
            for (address, prefix) in [
                (crate::agent::addresses(index, false)[0], 24),
                (crate::agent::addresses(index, true)[0], 64),
            ] {
                netlink.add_address(name, address, prefix)?;
            }
        }
        for name in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
            sysctl::write(name, "1")?;
        }
        Ok(Self { takes_all, takes_segments })
    }

    fn send(&self, packet: &Packet) {
        assert!(self.takes_all.send(&packet.data, encode(packet)).expect("a packet that the kernel takes"));
    }

    /// Packets of the flow from port 5201 that leave it, until there are this many.
    fn segments(&self, count: usize) -> Vec<Vec<u8>> {
        let deadline = Instant::now() + Duration::from_secs(5);
        let (mut room, mut seen) = (vec![0; 65_535], Vec::new());
        while seen.len() < count {
            match self.takes_segments.receive(&mut room).expect("a readable device") {
                // Not IPv6 neighbour discovery.
                Some((length, _)) if !matches!((room[0] >> 4, room[6]), (6, 0 | 58)) => {
                    seen.push(room[..length].to_vec());
                }
                Some(_) => {}
                None if Instant::now() > deadline => break,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        seen
    }
}

/// A super-packet between the two networks, with this hop limit.
fn super_packet(ipv6: bool, transport: Transport, payload: usize, size: u16, hops: u8) -> Packet {
    let [from, to] = [0, 1].map(|network| crate::agent::addresses(network, ipv6)[1]);
    let (protocol, mut segment) = match transport {
        Transport::Tcp => {
            let mut tcp =
                vec![0x14, 0x51, 0x13, 0x88, 0xff, 0xff, 0xf0, 0, 1, 2, 3, 4, 0x80, FIN_PSH_CWR_ACK, 1, 0];
            tcp.extend([0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
            (6, tcp)
        }
        Transport::Udp => {
            let length = (8 + payload) as u16;
            (17, [&[0x14, 0x51, 0x13, 0x88][..], &length.to_be_bytes(), &[0, 0]].concat())
        }
    };
    segment.extend((0..payload).map(|n| (n * 7 + n / 256) as u8));
    let octets = |address| match address {
        std::net::IpAddr::V4(a) => a.octets().to_vec(),
        std::net::IpAddr::V6(a) => a.octets().to_vec(),
    };
    let addresses = [octets(from), octets(to)].concat();
    let (mut data, start) = if ipv6 {
        let mut header = vec![0x60, 0, 0, 0];
        header.extend((segment.len() as u16).to_be_bytes());
        header.extend([protocol, hops]);
        (header, 40)
    } else {
        let mut header = vec![0x45, 0];
        header.extend((20 + segment.len() as u16).to_be_bytes());
        header.extend([0xff, 0xfe, 0x40, 0, hops, protocol, 0, 0]);
        (header, 20)
    };
    data.extend(&addresses);
    if !ipv6 {
        let checksum = !sum(&data);
        data[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    let offset = if transport == Transport::Tcp { 16 } else { 6 };
    let pseudo = [&addresses[..], &[0, protocol], &(segment.len() as u16).to_be_bytes()].concat();
    segment[offset..offset + 2].copy_from_slice(&sum(&pseudo).to_be_bytes());
    data.extend(segment);
    Packet {
        data,
        offload: Offload {
            segmentation: Some(Segmentation { transport, size }),
            checksum: Some(PartialChecksum { start, offset: offset as u16 }),
        },
    }
}

fn sum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn the_kernel_cuts_the_same_segments() {
    // A namespace belongs to a thread, and this one ends with the test.
    let router = match Router::build() {
        Ok(router) => router,
        Err(error) => return skip(&error.to_string()),
    };
    for ipv6 in [false, true] {
        for (transport, payload, size) in [
            (Transport::Tcp, 60_000, 1428),
            (Transport::Tcp, 2 * 1428, 1428),
            (Transport::Tcp, 1429, 1428),
            (Transport::Tcp, 7 * 536 + 1, 536),
            (Transport::Udp, 10 * 1200 + 17, 1200),
        ] {
            let what = format!("IPv6 {ipv6}, {transport:?}, {payload} bytes by {size}");
            let sent = super_packet(ipv6, transport, payload, size, 64);
            let segments = Segments::of(&sent);
            if transport == Transport::Udp && router.takes_all.send(&sent.data, encode(&sent)).is_err() {
                skip("the kernel takes no UDP super-packets");
                continue;
            } else if transport == Transport::Tcp {
                router.send(&sent);
            }
            let by_kernel = router.segments(segments.count() as usize);
            let forwarded = super_packet(ipv6, transport, payload, size, 63);
            let by_us: Vec<Vec<u8>> = wire_segments(&forwarded).map(Cow::into_owned).collect();
            assert_eq!(by_kernel.len(), by_us.len(), "{what}");
            for (i, (kernel, ours)) in by_kernel.iter().zip(&by_us).enumerate() {
                assert!(kernel == ours, "{what}: segment {i}\n{:?}\n{:?}", &kernel[..72], &ours[..72]);
            }
            // Runs of it are super-packets that the kernel accepts and cuts into the same segments.
            for border in [1, segments.count() / 2, segments.count() - 1] {
                for run in [0..border, border..segments.count()] {
                    router.send(&segments.cut(&sent, run));
                }
                assert!(router.segments(by_us.len()) == by_us, "{what}: cut at {border}");
            }
        }
    }
}

#[test]
fn what_is_decoded_is_what_was_encoded() {
    for ipv6 in [false, true] {
        for transport in [Transport::Tcp, Transport::Udp] {
            let packet = super_packet(ipv6, transport, 3000, 1000, 64);
            assert_eq!(decode(encode(&packet)), packet.offload);
        }
    }
    let plain = Packet::from(vec![0x45; 40]);
    assert_eq!(encode(&plain), VirtioHeader::default());
    assert_eq!(decode(VirtioHeader::default()), Offload::default());
}
