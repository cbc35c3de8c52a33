//! Super-packets cut into segments: nothing is lost or changed that the wire would not have changed.

use bdp_link::{Offload, Packet, PartialChecksum, Segmentation, Segments, Transport};
use proptest::prelude::*;

use crate::segment::{ACK, FIN, PSH, Segment, checksum_is_right_from, offloaded, offloaded_datagrams, sum};

const CWR: u8 = 0x80;

fn segment() -> impl Strategy<Value = Segment> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(fin, psh, cwr)| {
        ACK | if fin { FIN } else { 0 } | if psh { PSH } else { 0 } | if cwr { CWR } else { 0 }
    });
    let options = prop_oneof![Just(vec![]), Just(vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2])];
    (flags, options, prop::collection::vec(any::<u8>(), 0..9000))
        .prop_map(|(flags, options, payload)| Segment::new(flags, 4096, &options).with_payload(&payload))
}

fn transport_start(packet: &Packet) -> usize {
    packet.offload.checksum.map_or(0, |c| usize::from(c.start))
}

fn tcp_header_len(packet: &Packet, start: usize) -> usize {
    usize::from(packet.data[start + 12] >> 4) * 4
}

fn sequence(packet: &Packet, start: usize) -> u32 {
    u32::from_be_bytes(packet.data[start + 4..start + 8].try_into().expect("four bytes"))
}

/// Lengths and checksums of the IP header.
fn ip_header_is_right(packet: &Packet) -> bool {
    let data = &packet.data;
    let length = |at: usize| usize::from(u16::from_be_bytes([data[at], data[at + 1]]));
    if data[0] >> 4 == 6 {
        return length(4) + 40 == data.len();
    }
    length(2) == data.len() && sum(&data[..usize::from(data[0] & 15) * 4]) == 0xffff
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_hold_all_of_the_super_packet_and_no_more(
        segment in segment(),
        envelope in 0..6usize,
        size in 1..2000u16,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = offloaded(segment.enveloped().swap_remove(envelope), &segment, size);
        let start = transport_start(&whole);
        let segments = Segments::of(&whole);
        prop_assert_eq!(segments.count() as usize, segment.payload.len().div_ceil(size.into()).max(1));

        let mut borders: Vec<u32> = cuts.iter().map(|cut| cut.index(segments.count() as usize + 1) as u32).collect();
        borders.extend([0, segments.count()]);
        borders.sort_unstable();
        borders.dedup();
        let mut payload = Vec::new();
        for run in borders.windows(2).map(|w| w[0]..w[1]) {
            let packet = segments.cut(&whole, run.clone());
            prop_assert!(ip_header_is_right(&packet));
            prop_assert_eq!(packet.offload.segmentation.is_some(), run.len() > 1 || segments.count() == 1);
            if run.start == 0 {
                prop_assert_eq!(&segments.keep_front(whole.clone(), run.end), &packet);
            }
            let own = Segments::of(&packet);
            prop_assert_eq!(own.count() as usize, run.len());
            prop_assert_eq!(segments.run_bytes(run.clone()), (0..own.count()).map(|i| own.len_bytes(i)).sum::<u64>());
            for i in 0..own.count() {
                let mut single = own.cut(&packet, i..i + 1);
                // Cutting in two steps or in one is the same.
                prop_assert_eq!(&single, &segments.cut(&whole, run.start + i..run.start + i + 1));
                let index = run.start + i;
                prop_assert_eq!(single.data.len() as u64, segments.len_bytes(index));
                prop_assert_eq!(sequence(&single, start), sequence(&whole, start).wrapping_add(index * u32::from(size)));
                let (flags, last) = (single.data[start + 13], index + 1 == segments.count());
                prop_assert_eq!(flags & (FIN | PSH), if last { segment.flags & (FIN | PSH) } else { 0 });
                prop_assert_eq!(flags & CWR, if index == 0 { segment.flags & CWR } else { 0 });
                if single.data[0] >> 4 == 4 {
                    prop_assert_eq!(single.data[5], whole.data[5].wrapping_add(index as u8));
                }
                single.complete_checksum();
                prop_assert!(checksum_is_right_from(&single, start));
                prop_assert_eq!(single.offload, Offload::default());
                payload.extend_from_slice(&single.data[start + tcp_header_len(&single, start)..]);
            }
        }
        prop_assert_eq!(payload, segment.payload);
    }

    #[test]
    fn nothing_that_comes_from_outside_breaks_it(
        data in prop::collection::vec(any::<u8>(), 0..200),
        version in prop_oneof![Just(0x45u8), Just(0x60), any::<u8>()],
        size: u16,
        start in 0..260u16,
        offset in 0..300u16,
        udp: bool,
    ) {
        let mut data = data;
        if let Some(first) = data.first_mut() {
            *first = version;
        }
        let transport = if udp { Transport::Udp } else { Transport::Tcp };
        let offload = Offload {
            segmentation: Some(Segmentation { transport, size }),
            checksum: Some(PartialChecksum { start, offset }),
        };
        let packet = Packet { data, offload };
        let segments = Segments::of(&packet);
        let bytes: u64 = (0..segments.count()).map(|i| segments.len_bytes(i)).sum();
        prop_assert!(bytes >= packet.data.len() as u64);
        for i in 0..segments.count() {
            let mut single = segments.cut(&packet, i..i + 1);
            prop_assert_eq!(single.data.len() as u64, segments.len_bytes(i));
            single.complete_checksum();
        }
    }
}

#[test]
fn malformed_super_packets_pass_whole_as_one() {
    let segment = Segment::new(ACK, 1, &[]).with_payload(&[7; 3000]);
    let good = offloaded(segment.v4(&[]), &segment, 1000);
    assert_eq!(Segments::of(&good).count(), 3);
    type Spoil = fn(&mut Packet);
    let spoils: [Spoil; 7] = [
        |p| p.offload.checksum = None,
        |p| p.offload.checksum = Some(PartialChecksum { start: 24, offset: 16 }),
        |p| p.offload.segmentation = Some(Segmentation { transport: Transport::Tcp, size: 0 }),
        |p| p.data.truncate(2000),
        |p| p.data[0] = 0x55,
        |p| p.data[32] = 0x40,
        |p| p.data.clear(),
    ];
    for (n, spoil) in spoils.into_iter().enumerate() {
        let mut packet = good.clone();
        spoil(&mut packet);
        let segments = Segments::of(&packet);
        assert_eq!(segments.count(), 1, "spoil {n}");
        assert_eq!(segments.len_bytes(0), packet.data.len() as u64);
        assert_eq!(segments.cut(&packet, 0..1), packet);
    }
}

#[test]
fn datagrams_get_lengths_of_their_own() {
    // IPv4, 20 bytes; UDP, 8; three datagrams of 500, 500 and 20 bytes.
    let sent: Vec<u8> = (0..1020u32).map(|n| n as u8).collect();
    let packet = offloaded_datagrams(&sent, 500);
    let segments = Segments::of(&packet);
    assert_eq!((segments.count(), segments.run_bytes(0..3)), (3, 528 + 528 + 48));
    let mut payload = Vec::new();
    for i in 0..3 {
        let mut single = segments.cut(&packet, i..i + 1);
        single.complete_checksum();
        assert!(ip_header_is_right(&single));
        let udp = &single.data[20..];
        assert_eq!(usize::from(u16::from_be_bytes([udp[4], udp[5]])), udp.len());
        let pseudo = [&single.data[12..20], &[0, 17], &(udp.len() as u16).to_be_bytes()[..], udp].concat();
        assert_eq!(sum(&pseudo), 0xffff, "datagram {i}");
        assert_eq!(single.data[4..6], 0xffffu16.wrapping_add(i as u16).to_be_bytes());
        payload.extend_from_slice(&udp[8..]);
    }
    assert_eq!(payload, sent);
}
