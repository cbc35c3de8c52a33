//! Captures.

use bdp_pcap::{Packets, blocks};

use crate::Target;

/// Targets of crate `bdp-pcap`.
pub const CAPTURE: &[Target] = &[
    Target { name: "pcapng", run: captures, seeds: capture_seeds },
    Target { name: "packets", run: packets, seeds: packet_seeds },
];

/// A packet has twelve bytes at least, is no longer than what it came of, and an error is the last.
fn packets(bytes: &[u8]) {
    let Ok(mut packets) = Packets::new(bytes) else { return };
    let mut count = 0;
    while let Some(packet) = packets.next_packet() {
        let Ok(packet) = packet else {
            assert!(packets.next_packet().is_none(), "it goes on after an error");
            return;
        };
        assert!(packet.data.len() < bytes.len());
        count += 1;
        assert!(count <= bytes.len() / 12);
    }
}

/// Those of pcapng, and pcap with a packet of three bytes in either byte order.
fn packet_seeds() -> Vec<Vec<u8>> {
    let file = |word: fn(u32) -> [u8; 4], half: fn(u16) -> [u8; 2]| {
        let head = [&word(0xa1b2_c3d4)[..], &half(2), &half(4), &[0; 8], &word(262_144), &word(1)].concat();
        [head, [1, 2, 3, 60].map(word).concat(), vec![1, 2, 3]].concat()
    };
    let classic = [file(u32::to_le_bytes, u16::to_le_bytes), file(u32::to_be_bytes, u16::to_be_bytes)];
    capture_seeds().into_iter().chain(classic).collect()
}

/// A block has twelve bytes at least, and an error is the last.
fn captures(bytes: &[u8]) {
    let read: Vec<_> = blocks(bytes).collect();
    assert!(read.len() <= bytes.len() / 12 + 1);
    assert!(read.iter().rev().skip(1).all(Result::is_ok), "it goes on after an error");
}

/// A section, an interface and a packet of 20 bytes, in either byte order.
fn capture_seeds() -> Vec<Vec<u8>> {
    let file = |word: fn(u32) -> [u8; 4], half: fn(u16) -> [u8; 2]| {
        let mut bytes = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let length = word(u32::try_from(body.len()).unwrap_or(0) + 12);
            bytes.extend([&word(kind)[..], &length, body, &length].concat());
        };
        block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat());
        block(1, &[&half(101)[..], &half(0), &word(0), &half(9), &half(1), &[9, 0, 0, 0], &word(0)].concat());
        let lengths = [word(0), word(5), word(7), word(20), word(20)].concat();
        block(6, &[&lengths[..], &[0x45; 20], &half(1), &half(3), b"lost", &word(0)].concat());
        bytes
    };
    vec![file(u32::to_le_bytes, u16::to_le_bytes), file(u32::to_be_bytes, u16::to_be_bytes)]
}
