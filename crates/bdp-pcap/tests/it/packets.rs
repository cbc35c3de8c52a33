//! Packets of a stream: the four forms of pcap, and what pcapng has besides enhanced packets.

use std::io::{self, Read};

use bdp_model::units::Nanos;
use bdp_pcap::{Packets, ReadError};
use proptest::prelude::*;

use crate::round_trip::{packets, write};

/// What a packet is compared by: time, link layer, length, bytes.
type Kept = (Option<u64>, u16, u32, Vec<u8>);

fn all(source: impl Read) -> (Vec<Kept>, Option<ReadError>) {
    let mut found = Vec::new();
    let mut packets = match Packets::new(source) {
        Ok(packets) => packets,
        Err(error) => return (found, Some(error)),
    };
    while let Some(packet) = packets.next_packet() {
        match packet {
            Ok(p) => found.push((p.at.map(Nanos::as_ns), p.link_type, p.length, p.data.to_vec())),
            Err(error) => {
                assert!(packets.next_packet().is_none(), "it goes on after {error}");
                return (found, Some(error));
            }
        }
    }
    (found, None)
}

/// Gives a few bytes at a time, as a pipe may.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(room.len()).min(self.0.len());
        room[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// A file in pcap: its magic number, numbers as this order has them, and packets of a second and a fraction.
fn classic(
    magic: u32,
    word: fn(u32) -> [u8; 4],
    half: fn(u16) -> [u8; 2],
    packets: &[(u32, u32, u32, &[u8])],
) -> Vec<u8> {
    let mut bytes =
        [&word(magic)[..], &half(2), &half(4), &[0; 8], &word(65_535), &word(0x1400_0001)].concat();
    for (seconds, fraction, length, data) in packets {
        let header = [*seconds, *fraction, data.len() as u32, *length].map(word);
        bytes.extend([&header.concat(), *data].concat());
    }
    bytes
}

#[test]
fn pcap_reads_in_either_byte_order_and_resolution() {
    let sent: &[(u32, u32, u32, &[u8])] =
        &[(1, 5, 1500, &[1, 2, 3]), (1_700_000_000, 999, 0, &[]), (u32::MAX, 7, 2, &[9, 9])];
    for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
        let expected: Vec<Kept> = sent
            .iter()
            .map(|(s, f, length, data)| {
                (Some(u64::from(*s) * 1_000_000_000 + u64::from(*f) * unit), 1, *length, data.to_vec())
            })
            .collect();
        let files = [
            classic(magic, u32::to_le_bytes, u16::to_le_bytes, sent),
            classic(magic, u32::to_be_bytes, u16::to_be_bytes, sent),
        ];
        for bytes in files {
            let (found, error) = all(&bytes[..]);
            assert!(error.is_none(), "{error:?}");
            assert_eq!(found, expected);
            assert_eq!(all(Slow(&bytes, 3)).0, expected, "in small pieces");
        }
    }
}

/// A file of this version, with the two lengths of each packet in this order.
fn versioned(version: [u16; 2], whole_first: bool, is_big: bool, packets: &[(u32, &[u8])]) -> Vec<u8> {
    let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let [major, minor] = version.map(half);
    let mut bytes = [&word(0xa1b2_c3d4)[..], &major, &minor, &[0; 8], &word(96), &word(1)].concat();
    for (at, (length, data)) in (1..).zip(packets) {
        let (kept, whole) = (word(data.len() as u32), word(*length));
        let lengths = if whole_first { [whole, kept] } else { [kept, whole] };
        bytes.extend([&word(at)[..], &word(0), &lengths.concat(), *data].concat());
    }
    bytes
}

/// As libpcap reads them: swapped before version 2.3 and in DG/UX's 543.0, either way in 2.3, as they are now in 2.4.
#[test]
fn lengths_of_old_versions_are_swapped() {
    let sent: &[(u32, &[u8])] = &[(1500, &[1, 2, 3]), (4, &[4, 5, 6, 7]), (60, &[8])];
    let expected: Vec<Kept> = (1..)
        .zip(sent)
        .map(|(at, (length, data))| (Some(at * 1_000_000_000), 1, *length, data.to_vec()))
        .collect();
    for is_big in [false, true] {
        for (version, whole_first) in [
            ([2, 0], true),
            ([2, 2], true),
            ([2, 3], true),
            ([2, 3], false),
            ([2, 4], false),
            ([543, 0], true),
        ] {
            let (found, error) = all(&versioned(version, whole_first, is_big, sent)[..]);
            assert!(error.is_none(), "{version:?}: {error:?}");
            assert_eq!(found, expected, "{version:?}, whole first: {whole_first}");
        }
    }
}

#[test]
fn patched_headers_of_packets_are_eight_bytes_longer() {
    for (word, half) in [
        (u32::to_le_bytes as fn(u32) -> [u8; 4], u16::to_le_bytes as fn(u16) -> [u8; 2]),
        (u32::to_be_bytes, u16::to_be_bytes),
    ] {
        let mut bytes = classic(0xa1b2_cd34, word, half, &[]);
        for data in [&[1, 2, 3][..], &[4]] {
            let header = [5, 6, data.len() as u32, 60].map(word).concat();
            bytes.extend([&header[..], &[9; 8], data].concat());
        }
        let (found, error) = all(&bytes[..]);
        assert!(error.is_none(), "{error:?}");
        let at = Some(5_000_006_000);
        assert_eq!(found, [(at, 1, 60, vec![1, 2, 3]), (at, 1, 60, vec![4])]);
    }
}

/// Interfaces of one section may count milliseconds, microseconds, nanoseconds, and parts of two.
#[test]
fn each_interface_has_its_own_unit_of_time() {
    let interface =
        |unit: u8| (1, [&[101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, unit, 0, 0, 0][..], &[0; 4]].concat());
    let packet = |interface: u32, stamp: u64| {
        let words = [interface, (stamp >> 32) as u32, stamp as u32, 1, 1];
        (6, [&words.map(u32::to_le_bytes).concat()[..], &[interface as u8, 0, 0, 0]].concat())
    };
    let second = 1_700_000_000_u64;
    let bytes = blocks_of(&[
        interface(3),
        interface(9),
        interface(6),
        interface(0x80 | 10),
        packet(0, second * 1_000 + 1),
        packet(1, second * 1_000_000_000 + 1_000_001),
        packet(2, second * 1_000_000 + 1_001),
        packet(3, second << 10 | 2),
        // The clock was set back.
        packet(1, second * 1_000_000_000 - 5),
    ]);
    let (found, error) = all(&bytes[..]);
    assert!(error.is_none(), "{error:?}");
    let after: Vec<i64> =
        found.iter().map(|p| (p.0.unwrap() as i64) - (second as i64) * 1_000_000_000).collect();
    assert_eq!(after, [1_000_000, 1_000_001, 1_001_000, 1_953_125, -5]);
    assert_eq!(found.iter().map(|p| p.3[0]).collect::<Vec<_>>(), [0, 1, 2, 3, 1]);
}

#[test]
fn what_is_cut_short_gives_what_was_whole_and_says_where_it_broke() {
    let bytes = classic(
        0xa1b2_c3d4,
        u32::to_le_bytes,
        u16::to_le_bytes,
        &[(1, 0, 3, &[1, 2, 3]), (2, 0, 4, &[4, 5, 6, 7])],
    );
    for left in 1..20 {
        let (found, error) = all(&bytes[..bytes.len() - left]);
        assert_eq!(found.len(), 1);
        let error = error.unwrap_or_else(|| panic!("{left} bytes less are no error"));
        assert!(matches!(error, ReadError::CutShort { at: 43, .. }), "{error}");
    }
    assert_eq!(all(&bytes[..43]).1.map(|e| e.to_string()), None, "the end of a packet is one of the file");
    let (none, error) = all(&b"not a capture at all"[..]);
    assert_eq!(
        (none.len(), error.unwrap().to_string()),
        (
            0,
            "not pcap or pcapng: it starts with the bytes 6e 6f 74 20; 'tcpdump -w FILE' writes pcap, Wireshark saves as pcapng"
                .to_owned()
        )
    );
    let packed = all(&b"PK\x03\x04"[..]).1.unwrap().to_string();
    assert_eq!(packed, "not pcap or pcapng: it is packed, and neither by gzip nor by zstd; unpack it first");
    assert!(matches!(all(&b""[..]).1, Some(ReadError::Unknown(head)) if head.is_empty()));
}

#[test]
fn length_that_no_packet_has_takes_no_memory() {
    let mut bytes = classic(0xa1b2_c3d4, u32::to_le_bytes, u16::to_le_bytes, &[]);
    bytes.extend([1, 0, u32::MAX - 3, 4].map(u32::to_le_bytes).concat());
    assert!(matches!(all(&bytes[..]).1, Some(ReadError::TooLong { at: 24, length: 4_294_967_292 })));
}

#[test]
fn error_of_the_stream_is_passed_on() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let bytes = classic(0xa1b2_c3d4, u32::to_le_bytes, u16::to_le_bytes, &[(1, 0, 1, &[1])]);
    let (found, error) = all((&bytes[..]).chain(Broken));
    assert_eq!(found.len(), 1);
    assert_eq!(error.unwrap().to_string(), "at byte 41: the disk is gone");
}

/// Little-endian blocks of pcapng around these.
fn blocks_of(blocks: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut bytes = Vec::new();
    for (kind, body) in std::iter::once(&(0x0a0d_0d0a, section)).chain(blocks) {
        let length = (body.len() as u32 + 12).to_le_bytes();
        bytes.extend([&kind.to_le_bytes()[..], &length, body, &length].concat());
    }
    bytes
}

#[test]
fn simple_and_obsolete_packets_and_offsets_of_time_are_read() {
    // Ethernet, cut at 6 bytes, an hour to be added, milliseconds.
    let hour = [14, 0, 8, 0].into_iter().chain(3600_i64.to_le_bytes());
    let interface: Vec<u8> =
        [1, 0, 0, 0, 6, 0, 0, 0, 9, 0, 1, 0, 3, 0, 0, 0].into_iter().chain(hour).chain([0; 4]).collect();
    let words = |words: &[u32], data: &[u8]| {
        let mut body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body
    };
    let bytes = blocks_of(&[
        (1, interface),
        (6, words(&[0, 0, 1500, 3, 60], &[1, 2, 3])),
        (3, words(&[60], &[1, 2, 3, 4, 5, 6])),
        (3, words(&[2], &[8, 9])),
        (2, words(&[0, 0, 2500, 2, 77], &[7, 7])),
        (0x0bad, words(&[1], &[])),
    ]);
    let (found, error) = all(&bytes[..]);
    assert!(error.is_none(), "{error:?}");
    let hour = 3_600_000_000_000;
    assert_eq!(
        found,
        [
            (Some(hour + 1_500_000_000), 1, 60, vec![1, 2, 3]),
            (None, 1, 60, vec![1, 2, 3, 4, 5, 6]),
            (None, 1, 2, vec![8, 9]),
            (Some(hour + 2_500_000_000), 1, 77, vec![7, 7]),
        ]
    );
}

proptest! {
    #[test]
    fn what_the_writer_writes_is_read(packets in packets(), step in 1_usize..2000) {
        let bytes = write(&packets, 2);
        let (found, error) = all(Slow(&bytes, step));
        prop_assert!(error.is_none());
        let expected: Vec<Kept> = packets
            .iter()
            .map(|p| (Some(p.at), bdp_pcap::LINKTYPE_RAW, p.data.len() as u32 + p.cut, p.data.clone()))
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_make_the_stream_panic_or_run_on(
        head in prop::sample::select(vec![0xa1b2_c3d4_u32, 0xa1b2_3c4d, 0xa1b2_cd34, 0x0a0d_0d0a, 0xd4c3_b2a1]),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let bytes = [&head.to_le_bytes()[..], &bytes].concat();
        prop_assert!(all(&bytes[..]).0.len() <= bytes.len() / 12 + 1);
    }
}
