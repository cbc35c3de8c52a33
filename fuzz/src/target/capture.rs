//! Captures.

use std::io::Read;

use bdp_capture::tcptrace::TcpTrace;
use bdp_capture::{Analysis, Filter, Frame};
use bdp_pcap::{Packets, blocks, unpacked};

use crate::parser::Target;

/// Targets of crates `bdp-pcap` and `bdp-capture`.
pub const CAPTURE: &[Target] = &[
    Target { name: "pcapng", run: captures, seeds: capture_seeds },
    Target { name: "packets", run: packets, seeds: packet_seeds },
    Target { name: "unpacked", run: compressed, seeds: compressed_seeds },
    Target { name: "connections", run: connections, seeds: connection_seeds },
    Target { name: "capture-filter", run: filter, seeds: filter_seeds },
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

/// What is compressed ends, or breaks.
fn compressed(bytes: &[u8]) {
    const MOST: u64 = 1 << 24;
    if let Ok(source) = unpacked(bytes) {
        let mut out = Vec::new();
        let _ = source.take(MOST).read_to_end(&mut out);
    }
}

/// `bdp` by gzip without compression, and by zstd as a raw block.
fn compressed_seeds() -> Vec<Vec<u8>> {
    let gzip = [
        &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 3, 0, 0xfc, 0xff][..],
        b"bdp",
        &[0x0b, 0x6d, 0x5b, 0x1a, 3, 0, 0, 0],
    ];
    let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0][..], b"bdp"];
    vec![gzip.concat(), zstd.concat()]
}

/// Link layers that are read, and one that is not.
const LINKS: [u16; 39] = [
    101, 1, 113, 276, 0, 9, 6, 8, 10, 50, 51, 100, 104, 105, 107, 108, 109, 117, 119, 122, 127, 138, 149,
    163, 166, 192, 197, 204, 205, 206, 219, 226, 228, 229, 239, 242, 258, 12, 147,
];

/// Frames of any bytes: the link layer first, then each with its length and how much later it came. Bytes acknowledged are none that were not
/// numbered, the datagrams of a stream are as many as passed, and the states of a sender's time add up to it.
fn connections(bytes: &[u8]) {
    let Some((&link, mut rest)) = bytes.split_first() else { return };
    let link_type = LINKS[usize::from(link) % LINKS.len()];
    let (mut analysis, mut trace, mut at) = (Analysis::of_at_most(64), TcpTrace::of_at_most(64), 0);
    while let [length, a, b, more @ ..] = rest {
        let length = usize::from(*length).min(more.len());
        at += u64::from(u16::from_be_bytes([*a, *b])) * 10_000;
        let frame = Frame {
            at_ns: Some(at),
            link_type,
            length: length as u32 + u32::from(*b & 7),
            data: &more[..length],
        };
        analysis.frame(&frame);
        trace.frame(&frame);
        rest = &more[length..];
    }
    let (summary, found) = analysis.finish();
    assert!(found.len() as u64 <= summary.packets);
    for stream in found
        .iter()
        .flat_map(|found| &found.flow.directions)
        .filter_map(|way| way.datagrams.as_ref())
        .flat_map(|all| &all.streams)
    {
        let passed = stream.expected.checked_sub(stream.lost).expect("no more are lost than there were");
        assert!(passed <= stream.packets, "datagrams that passed");
    }
    for facts in found.iter().flat_map(|found| found.facts.iter().flatten()) {
        if let Some(spent) = facts.time_spent() {
            for stretch in &spent.stretches {
                let sum: u64 = stretch.states.iter().map(|(_, ns)| ns).sum();
                assert_eq!(sum, stretch.to_ns - stretch.from_ns, "states of a stretch");
            }
        }
    }
    let _ = trace.text();
}

/// TCP, datagrams of each kind, and a segment behind headers of link layers and tunnels.
fn connection_seeds() -> Vec<Vec<u8>> {
    [segments(), datagrams()].into_iter().chain(wrapped()).collect()
}

/// A segment of 10 bytes in 802.11 behind radiotap and PPI, in NFLOG and PKTAP, on Token Ring, and in tunnels over IP and UDP.
fn wrapped() -> Vec<Vec<u8>> {
    const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let ethernet = [&[2; 12][..], &[8, 0]].concat();
    let ip = |protocol: u8, length: u16| {
        let addresses = [10, 0, 0, 1, 10, 0, 0, 2];
        [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, protocol, 0, 0], &addresses].concat()
    };
    let tcp = [&[0x13, 0x88, 0, 80, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x10, 1, 0, 0, 0, 0, 0][..], &[7; 10]];
    let segment = [ip(6, 50), tcp.concat()].concat();
    let wlan = [&[0x88, 1][..], &[2; 22], &[0; 2], &SNAP].concat();
    let udp = |port: u16, header: &[u8]| {
        let length = 8 + header.len() as u16 + 50;
        let ports = [[0x13, 0x88], port.to_be_bytes(), length.to_be_bytes(), [0; 2]].concat();
        [&ip(17, 20 + length), &ports, header].concat()
    };
    let gre = |header: &[u8]| [ip(47, 20 + header.len() as u16 + 50), header.to_vec()].concat();
    let erspan = [&[0x10, 0, 0x22, 0xeb][..], &[0; 4], &[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], &[0; 8]];
    let heads: [(u16, Vec<u8>); 10] = [
        (127, [&[0, 0, 9, 0, 2, 0, 0, 0, 0][..], &wlan].concat()),
        (192, [&[0, 0, 32, 0, 105, 0, 0, 0, 2, 0, 20, 0][..], &[0; 20], &wlan].concat()),
        (239, vec![2, 0, 0, 0, 8, 0, 1, 0, 8, 0, 1, 0, 54, 0, 9, 0]),
        (258, [&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 96], &ethernet].concat()),
        (6, [&[0x10, 0x40][..], &[2; 6], &[0x82; 6], &[4, 0, 0, 1], &SNAP].concat()),
        (101, gre(&[&erspan.concat()[..], &ethernet].concat())),
        (101, udp(6081, &[&[1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 1, 0, 0][..], &ethernet].concat())),
        (101, udp(2152, &[0x34, 255, 0, 58, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0])),
        (101, udp(1701, &[0x40, 2, 0, 0, 0, 1, 0, 2, 0xff, 3, 0, 0x21])),
        (101, udp(37008, &[&[1, 0, 0, 1, 10, 1, 9, 1][..], &ethernet].concat())),
    ];
    let seed = |(link_type, head): (u16, Vec<u8>)| {
        let link = LINKS.iter().position(|link| *link == link_type).unwrap_or(0) as u8;
        let frame = [head, segment.clone()].concat();
        let records = (0..4).map(|_| [&[frame.len() as u8, 1, 0][..], &frame].concat());
        [vec![link], records.collect::<Vec<_>>().concat()].concat()
    };
    heads.into_iter().map(seed).collect()
}

/// Twenty packets of RTP, of bdp's, iperf3's and iperf2's own, a QUIC handshake with spin bits behind it, and ICMP echoes.
fn datagrams() -> Vec<u8> {
    let mut all = vec![0];
    let mut packet = |from_b: bool, port: u16, protocol: u8, body: &[u8], whole: u16| {
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (source, destination) = if from_b { (b, a) } else { (a, b) };
        let (sport, dport) = if from_b { (port, 5000) } else { (5000, port) };
        let transport = if protocol == 17 {
            [sport.to_be_bytes(), dport.to_be_bytes(), (whole + 8).to_be_bytes(), [0; 2]].concat()
        } else {
            Vec::new()
        };
        all.extend([20 + transport.len() as u8 + body.len() as u8, 3, 232]);
        let length = (20 + transport.len() as u16 + whole).to_be_bytes();
        all.extend(
            [&[0x45, 0][..], &length, &[0, 0, 0x40, 0, 64, protocol, 0, 0], &source, &destination].concat(),
        );
        all.extend([&transport, body].concat());
    };
    let (cid, sid) = (*b"client", *b"server");
    let long = |kind: u8, to: &[u8], from: &[u8], length: u16| {
        let token: &[u8] = if kind == 0 { &[0] } else { &[] };
        let ids = [&[to.len() as u8][..], to, &[from.len() as u8], from].concat();
        let head = [&[0xc0 | kind << 4, 0, 0, 0, 1][..], &ids, token].concat();
        let rest = (0x4000 | (length - head.len() as u16 - 2)).to_be_bytes();
        [&head[..], &rest, &[7; 8]].concat()
    };
    packet(false, 443, 17, &long(0, b"randomly", &cid, 1200), 1200);
    packet(true, 443, 17, &long(0, &cid, &sid, 1200), 1200);
    packet(false, 443, 17, &long(2, &sid, &cid, 100), 100);
    for i in 0..20_u32 {
        let number = i.to_be_bytes();
        packet(
            false,
            5004,
            17,
            &[&[0x80, 0][..], &number[2..], &(i * 160).to_be_bytes(), b"ssrc"].concat(),
            172,
        );
        packet(
            false,
            5005,
            17,
            &[&b"\xbdbdp\x01\x08\0\0the tag!\0\0\0\0"[..], &number, &[0; 4], &number].concat(),
            1000,
        );
        packet(
            false,
            5006,
            17,
            &[&[0; 4][..], &(i * 1000).to_be_bytes(), &(i + 1).to_be_bytes(), &[0; 4]].concat(),
            1000,
        );
        packet(
            false,
            5007,
            17,
            &[&(i + 1).to_be_bytes()[..], &[0; 4], &(i * 1000).to_be_bytes(), &[0; 4]].concat(),
            1000,
        );
        for from_b in [false, true] {
            let bit = 0x40 | (i as u8 & 1) << 5;
            packet(from_b, 443, 17, &[&[bit][..], if from_b { &cid } else { &sid }, &[9; 20]].concat(), 100);
            packet(
                from_b,
                0,
                1,
                &[&[if from_b { 0 } else { 8 }, 0, 0, 0, 0, 1][..], &number[2..]].concat(),
                8,
            );
        }
    }
    all
}

/// A handshake, twelve segments, one of them twice, and their acknowledgements.
fn segments() -> Vec<u8> {
    let mut all = vec![0];
    let mut segment = |from_b: bool, seq: u32, ack: u32, flags: u8, payload: u8| {
        let options: &[u8] = if flags & 2 != 0 { &[2, 4, 5, 0xb4, 4, 2, 3, 3, 7, 1, 1, 0] } else { &[] };
        let header = 20 + options.len() as u8;
        let length = 20 + header + payload;
        let (a, b) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (source, destination) = if from_b { (b, a) } else { (a, b) };
        let (sport, dport) = if from_b { (80_u16, 5000_u16) } else { (5000, 80) };
        all.extend([length, 0, 100, 0x45, 0, 0, length, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        all.extend([source, destination].concat());
        all.extend([sport.to_be_bytes(), dport.to_be_bytes()].concat());
        all.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        all.extend([header << 2, flags, 0xff, 0xff, 0, 0, 0, 0]);
        all.extend(options);
        all.extend(vec![0; usize::from(payload)]);
    };
    segment(false, 100, 0, 2, 0);
    segment(true, 900, 101, 0x12, 0);
    segment(false, 101, 901, 0x10, 0);
    for i in 0..12 {
        segment(false, 101 + i * 100, 901, 0x18, 100);
        segment(true, 901, 201 + if i < 6 { i * 100 } else { 500 }, 0x10, 0);
    }
    segment(false, 601, 901, 0x18, 100);
    segment(true, 901, 1301, 0x10, 0);
    segment(false, 1301, 901, 0x11, 0);
    all
}

/// Any text is an expression or an error in one line.
fn filter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Filter::parse(text) {
        let line = error.to_string();
        assert!(!line.is_empty(), "an error without words");
    }
}

fn filter_seeds() -> Vec<Vec<u8>> {
    vec![b"not (tcp port 80 or 443) and host 10.0.0.1 and net 10.1 and after 2.5s".to_vec()]
}

/// Those of pcapng, and pcap with a packet of three bytes in either byte order, of versions 2.2 to 2.4.
fn packet_seeds() -> Vec<Vec<u8>> {
    let file = |word: fn(u32) -> [u8; 4], half: fn(u16) -> [u8; 2], minor: u16| {
        let head =
            [&word(0xa1b2_c3d4)[..], &half(2), &half(minor), &[0; 8], &word(262_144), &word(1)].concat();
        let lengths = if minor == 4 { [3, 60] } else { [60, 3] };
        [head, [1, 2, lengths[0], lengths[1]].map(word).concat(), vec![1, 2, 3]].concat()
    };
    let classic = [2, 3, 4].into_iter().flat_map(|minor| {
        [file(u32::to_le_bytes, u16::to_le_bytes, minor), file(u32::to_be_bytes, u16::to_be_bytes, minor)]
    });
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
