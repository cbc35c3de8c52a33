//! What is read of a frame: the packet within, or why there is none.

use bdp_capture::decode::{Carries, Packet, Unread, packet};
use bdp_capture::{Analysis, Frame};
use bdp_model::capture::{FlowProtocol, WhyUnread};
use proptest::prelude::*;

use crate::wrapped::{FORMATS, connection, ethernet, join, snap, udp, wlan};

/// The same packet, whatever tunnels are around it.
fn plain(packet: Packet) -> Packet {
    Packet { tunnels: 0, ..packet }
}

#[test]
fn each_format_holds_the_packet_that_was_wrapped() {
    for format in FORMATS {
        for ip in [connection(false), connection(true)].concat() {
            let bare = packet(101, &ip, ip.len() as u32).unwrap();
            let frame = (format.wrap)(&ip);
            let found = packet(format.link_type, &frame, frame.len() as u32)
                .unwrap_or_else(|why| panic!("{}: {why:?}", format.name));
            assert_eq!(plain(found), bare, "{}", format.name);
        }
    }
}

/// Of a frame that was cut within a header there is no packet, or that of a tunnel; behind it the same is found as of the whole.
#[test]
fn cut_frames_give_the_packet_as_far_as_it_was_kept() {
    for format in FORMATS {
        for ip in [&connection(false)[3], &connection(true)[3]] {
            let frame = (format.wrap)(ip);
            let whole = packet(format.link_type, &frame, frame.len() as u32).unwrap();
            let header = frame.len() - 100 - if format.name.contains("trailer") { 12 } else { 0 };
            for kept in 0..frame.len() {
                let found = packet(format.link_type, &frame[..kept], frame.len() as u32);
                let Ok(found) = found else {
                    assert!(kept < header, "{}: nothing in {kept} bytes", format.name);
                    continue;
                };
                let (Carries::Tcp(some), Carries::Tcp(all)) = (found.carries, whole.carries) else {
                    assert!(matches!(found.carries, Carries::Udp { .. }), "{}: {found:?}", format.name);
                    continue;
                };
                assert_eq!((found.source, found.destination), (whole.source, whole.destination));
                assert_eq!((some.seq, some.payload), (all.seq, all.payload), "{}: {kept}", format.name);
                assert!(some.kept <= all.kept);
            }
        }
    }
}

#[test]
fn connection_is_one_flow_in_each_format() {
    for format in FORMATS {
        for is_v6 in [false, true] {
            let mut analysis = Analysis::default();
            for (at, ip) in (1_u64..).zip(connection(is_v6)) {
                let data = (format.wrap)(&ip);
                let (link_type, length) = (format.link_type, data.len() as u32);
                analysis.frame(&Frame { at_ns: Some(at * 1_000_000), link_type, length, data: &data });
            }
            let (summary, found) = analysis.finish();
            assert_eq!((summary.packets, summary.unread.len(), found.len()), (9, 0, 1), "{}", format.name);
            let flow = &found[0].flow;
            assert_eq!(flow.protocol, FlowProtocol::Tcp);
            assert_eq!((flow.a.port(), flow.b.port(), flow.a.is_ipv6()), (40_000, 80, is_v6));
            let bytes = flow.directions.each_ref().map(|way| way.payload_bytes);
            assert_eq!(bytes, [100, 37], "{}", format.name);
        }
    }
}

#[test]
fn frames_without_a_packet_say_why() {
    let ip = connection(false).remove(3);
    let unread = |link_type: u16, frame: &[u8]| packet(link_type, frame, frame.len() as u32).unwrap_err();
    let data = |control: [u8; 2], data: &[u8]| join(&[&control, &wlan(), data]);
    // Encrypted, and as it is in the clear.
    assert_eq!(unread(105, &data([0x08, 0x41], &[7; 80])), Unread::Encrypted);
    assert_eq!(unread(105, &data([0x88, 0x41], &[7; 80])), Unread::Encrypted);
    // A beacon, an acknowledgement, data of which there is none.
    assert_eq!(unread(105, &data([0x80, 0], &[0; 40])), Unread::Control);
    assert_eq!(unread(105, &[0xd4, 0, 0, 0, 2, 2, 2, 2, 2, 2]), Unread::Control);
    assert_eq!(unread(105, &data([0x48, 0x01], &[])), Unread::Control);
    // The second fragment.
    let second = join(&[&[0x08, 0x02, 0, 0], &[2; 18], &[0x11, 0], &[9; 60]]);
    assert_eq!(unread(105, &second), Unread::Fragment);
    // Received with a wrong checksum: by radiotap, by PPI.
    let frame = data([0x08, 0x02], &snap(&ip));
    assert_eq!(unread(127, &join(&[&[0, 0, 9, 0, 2, 0, 0, 0, 0x40], &frame])), Unread::Damaged);
    let field = join(&[&[2, 0, 20, 0], &[0; 8], &[4, 0], &[0; 10]]);
    assert_eq!(unread(192, &join(&[&[0, 0, 32, 0, 105, 0, 0, 0], &field, &frame])), Unread::Damaged);
    // Spanning tree, tokens, MACsec, ARP, a header shorter than itself.
    let tree = [&[0, 38, 0x42, 0x42, 3][..], &[0; 35]].concat();
    assert_eq!(unread(1, &ethernet(&tree)), Unread::Llc(0x42));
    assert_eq!(unread(6, &[0; 30]), Unread::Control);
    assert_eq!(unread(10, &[0; 30]), Unread::Control);
    assert_eq!(unread(1, &ethernet(&[0x88, 0xe5, 0x0c, 0, 0, 0, 0, 1, 9, 9, 9, 9])), Unread::Encrypted);
    assert_eq!(unread(1, &ethernet(&[&[8, 6][..], &[0; 28]].concat())), Unread::NotIp(0x0806));
    assert_eq!(unread(127, &[0, 0, 4, 0, 0, 0, 0, 0, 0, 0]), Unread::Malformed);
    assert_eq!(unread(149, &[9; 200]), Unread::LinkType(149), "another's user 2");
    assert_eq!(unread(147, &ip), Unread::LinkType(147));
}

#[test]
fn unread_frames_are_counted_by_their_reason() {
    let mut analysis = Analysis::default();
    let beacon = join(&[&[0x80, 0], &wlan(), &[0; 40]]);
    let encrypted = join(&[&[0x08, 0x41], &wlan(), &[7; 80]]);
    for data in [&beacon, &encrypted, &encrypted] {
        analysis.frame(&Frame { at_ns: Some(1), link_type: 105, length: data.len() as u32, data });
    }
    let (summary, found) = analysis.finish();
    assert!(found.is_empty());
    let mut counted: Vec<_> = summary.unread.iter().map(|u| (u.why, u.number, u.packets)).collect();
    counted.sort();
    assert_eq!(counted, [(WhyUnread::LinkControl, None, 1), (WhyUnread::Encrypted, None, 2)]);
}

/// Programs use the ports of tunnels too.
#[test]
fn datagrams_that_are_no_tunnel_stay_datagrams() {
    for port in [4789, 8472, 4790, 6081, 2152, 1701, 6635, 37008] {
        for payload in [&b"a question of some program"[..], &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0], &[]] {
            let ip = udp(port, payload);
            let found = packet(101, &ip, ip.len() as u32).unwrap();
            let Carries::Udp { destination, payload: bytes, .. } = found.carries else {
                panic!("port {port}: {found:?}")
            };
            assert_eq!((destination, bytes as usize, found.tunnels), (port, payload.len(), 0));
        }
    }
}

/// Headers around each other have an end, whatever they are.
#[test]
fn nested_headers_are_bounded() {
    let ip = connection(false).remove(3);
    let tags = [0x81, 0, 0, 1].repeat(10_000);
    assert!(packet(1, &ethernet(&tags), 50_000).is_err());
    let mut nested = ip;
    for _ in 0..200 {
        nested = udp(2152, &join(&[&[0x30, 255, 0, 0, 0, 0, 0, 5], &nested]));
    }
    let found = packet(101, &nested, nested.len() as u32).unwrap();
    assert!(matches!(found.carries, Carries::Udp { destination: 2152, .. }), "{found:?}");
    let nested = join(
        &[&[108, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0][..], &[0; 96]]
            .concat()
            .repeat(100)
            .chunks(108)
            .collect::<Vec<_>>(),
    );
    assert!(packet(258, &nested, nested.len() as u32).is_err());
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(
        format in 0..FORMATS.len(),
        is_v6 in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        kept in any::<prop::sample::Index>(),
    ) {
        let format = &FORMATS[format];
        let mut frame = (format.wrap)(&connection(is_v6)[3]);
        for (at, value) in damage {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let length = frame.len() as u32;
        for frame in [&frame[..], &frame[..kept.index(frame.len())]] {
            if let Ok(Packet { carries: Carries::Udp { kept, .. }, .. }) = packet(format.link_type, frame, length) {
                prop_assert!(kept.of(frame).len() <= frame.len());
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(link_type in 0_u16..300, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = packet(link_type, &bytes, bytes.len() as u32);
    }
}
