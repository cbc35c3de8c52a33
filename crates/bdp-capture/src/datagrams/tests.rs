//! Datagrams constructed from the RFCs, and others that must not be recognised.

use bdp_model::capture::{
    CapturedStream, ClockRateSource, FlowEnd, NumberedProtocol, QuicHandshake, SpinState,
};
use bdp_wire::datagram::{HEADER_BYTES, Step};
use bdp_wire::iperf2::Stamp;
use bdp_wire::iperf3::datagram as iperf3;

use super::random::Random;
use super::*;

const MS: u64 = 1_000_000;

fn rtp(kind: u8, number: u16, timestamp: u32, ssrc: u32) -> Vec<u8> {
    let head = [&[0x80, kind][..], &number.to_be_bytes(), &timestamp.to_be_bytes(), &ssrc.to_be_bytes()];
    [head.concat(), vec![0x55; 160]].concat()
}

fn streams(all: &Datagrams) -> Vec<CapturedStream> {
    [0, 1].into_iter().flat_map(|side| all.report(side).streams).collect()
}

fn is_nothing(all: &Datagrams) -> bool {
    let echo = [0, 1].into_iter().all(|side| all.report(side).echo.is_none());
    streams(all).is_empty() && all.quic_report().is_none() && echo
}

#[test]
fn rtp_has_its_losses_and_jitter_across_a_wrap() {
    let mut all = Datagrams::default();
    // Three are lost, one is duplicated, one is two places late; numbers and timestamps wrap.
    let mut order: Vec<u16> = (0..200).filter(|n| ![50, 51, 120].contains(n)).collect();
    order.insert(90, 80);
    let at = order.iter().position(|&n| n == 150).unwrap();
    order.swap(at, at + 2);
    for (i, &n) in order.iter().enumerate() {
        let at = i as u64 * 20 * MS;
        let payload =
            rtp(96, n.wrapping_add(65_500), u32::from(n).wrapping_mul(960).wrapping_sub(1000), 0xdead_beef);
        all.udp(Some(at), 0, &payload[..12], payload.len() as u32);
        // A second stream, of a static payload type, from one clock.
        let other = rtp(0, n, u32::from(n) * 160, 7);
        all.udp(Some(u64::from(n) * 20 * MS), 0, &other, other.len() as u32);
    }
    let found = streams(&all);
    assert_eq!(found.len(), 2);
    let first = &found[0];
    assert_eq!((first.protocol, first.ssrc), (NumberedProtocol::Rtp, Some(0xdead_beef)));
    assert_eq!((first.packets, first.expected, first.lost), (198, 200, 3), "{first:?}");
    assert_eq!((first.reordered, first.duplicates, first.stale, first.restarts), (2, 1, 0, 0));
    assert_eq!(
        (first.clock_rate_hz, first.clock_rate_from),
        (Some(48_000), Some(ClockRateSource::Timestamps))
    );
    assert_eq!(first.payload_types, [96]);
    let second = &found[1];
    assert_eq!(
        (second.clock_rate_hz, second.clock_rate_from),
        (Some(8000), Some(ClockRateSource::PayloadType))
    );
    assert!(first.jitter_ns.unwrap() > 100_000.0 && second.lost == 3, "{second:?}");
    assert_eq!(all.report(0).headers_cut, 0);
}

#[test]
fn rtp_is_believed_only_when_it_goes_on_as_rtp() {
    let of = |packets: &dyn Fn(u16) -> Vec<u8>| {
        let mut all = Datagrams::default();
        for i in 0..500_u16 {
            let payload = packets(i);
            all.udp(Some(u64::from(i) * 20 * MS), 0, &payload, payload.len() as u32);
        }
        streams(&all).len()
    };
    let n = u32::from;
    assert_eq!(of(&|i| rtp(0, i, n(i) * 160, 5)), 1);
    assert_eq!(of(&|i| rtp(0, i.min(6), n(i) * 160, 5)), 0, "seven packets");
    assert_eq!(of(&|i| rtp(0, i, 0, 5)), 0, "timestamps stand");
    assert_eq!(of(&|i| rtp(0, 7, n(i) * 160, 5)), 0, "numbers stand");
    assert_eq!(of(&|i| rtp(0, i.wrapping_mul(977), n(i) * 160, 5)), 0, "numbers jump");
    assert_eq!(of(&|i| rtp(0, i, n(i).wrapping_mul(0x3141_5926), 5)), 0, "timestamps jump");
    assert_eq!(of(&|i| rtp(0, i, n(i) * 160, n(i))), 0, "SSRCs change");
    assert_eq!(of(&|i| rtp(0, i, n(i) * 160, 0)), 0, "no SSRC");
    // RTCP: sender reports, type 200, as marker and type 72 (RFC 5761).
    assert_eq!(of(&|i| rtp(200, i, n(i) * 160, 5)), 0);
    // STUN, DTLS, TURN channels (RFC 7983).
    for first in [0x00, 0x01, 0x16, 0x40, 0xc0] {
        assert_eq!(of(&|i| [vec![first], rtp(0, i, n(i) * 160, 5)[1..].to_vec()].concat()), 0, "{first:x}");
    }
    // More contributing sources than fit.
    assert_eq!(of(&|i| [vec![0x8f], rtp(0, i, n(i) * 160, 5)[1..40].to_vec()].concat()), 0);
}

#[test]
fn more_streams_than_are_followed_are_said() {
    let mut all = Datagrams::default();
    for ssrc in 1..=20 {
        for i in 0..20_u16 {
            let payload = rtp(0, i, u32::from(i) * 160, ssrc);
            all.udp(Some(u64::from(i) * 20 * MS), 1, &payload, payload.len() as u32);
        }
    }
    let report = all.report(1);
    assert_eq!((report.streams.len(), report.more_streams), (MOST_STREAMS, true));
}

/// Returns a payload of bdp's datagrams, iperf3's in both widths, or iperf2's.
fn numbered(format: Format, number: u64, sent_ns: u64) -> Vec<u8> {
    let mut bytes = vec![0x31; 1000];
    match format {
        Format::Bdp(tag) => {
            let mut head = [0; HEADER_BYTES];
            Header { last: false, tag, number, sent_ns }.write(&mut head);
            bytes[..HEADER_BYTES].copy_from_slice(&head);
        }
        Format::Iperf2 => bytes[..16]
            .copy_from_slice(&Stamp { number: number as i64 + 1, sent_us: sent_ns / 1000 }.encode()),
        _ => iperf3::Header { sent_us: sent_ns / 1000, number: number + 1 }
            .encode(format == Format::Iperf3Wide, &mut bytes),
    }
    bytes
}

#[test]
fn datagrams_of_tests_have_their_losses_and_jitter() {
    for (format, protocol) in [
        (Format::Bdp(*b"the tag!"), NumberedProtocol::Bdp),
        (Format::Iperf3, NumberedProtocol::Iperf3),
        (Format::Iperf3Wide, NumberedProtocol::Iperf3),
        (Format::Iperf2, NumberedProtocol::Iperf2),
    ] {
        let mut all = Datagrams::default();
        for n in (0..1000).filter(|n| n % 100 != 42) {
            // Every second one is a millisecond late: |D| is 1 ms, and so is the final jitter.
            let sent = 5_000_000 * MS + n * MS;
            let payload = numbered(format, n, sent);
            all.udp(Some(n * MS + n % 2 * MS), 0, &payload[..32], 1000);
        }
        let found = streams(&all);
        assert_eq!(found.len(), 1, "{format:?}");
        let one = &found[0];
        assert_eq!(
            (one.protocol, one.expected, one.lost, one.packets),
            (protocol, 1000, 10, 990),
            "{format:?}"
        );
        let jitter = one.jitter_ns.unwrap();
        assert!((0.9e6..1.05e6).contains(&jitter), "{format:?} {jitter}");
        assert!((one.rate_bps.unwrap() / 7.93e6 - 1.0).abs() < 0.01, "{one:?}");
    }
}

#[test]
fn what_is_known_of_the_ends_of_a_stream_counts() {
    let tag = *b"the tag!";
    let opening = Opening {
        step: Step::Open,
        key: [1; 16],
        flow: 1,
        stream: 0,
        cookie: [2; 16],
        client_ns: 0,
        server_ns: 0,
    }
    .encode();
    for (opened, expected) in [(true, 14), (false, 10)] {
        let mut all = Datagrams::default();
        if opened {
            all.udp(Some(0), 0, &opening, opening.len() as u32);
        }
        for n in 4..12 {
            all.udp(Some(n * MS), 1, &numbered(Format::Bdp(tag), n, n * MS), 1000);
        }
        let mut end = [0; HEADER_BYTES];
        Header { last: true, tag, number: 14, sent_ns: 20 * MS }.write(&mut end);
        all.udp(Some(20 * MS), 1, &end, end.len() as u32);
        let one = streams(&all).remove(0);
        assert_eq!((one.expected, one.lost, one.packets), (expected, expected - 8, 8));
    }
    // End mark of iperf2, and hello of iperf3.
    let mut all = Datagrams::default();
    for n in 0..30 {
        all.udp(Some(n * MS), 0, &numbered(Format::Iperf2, n, n * MS), 1000);
    }
    let mut end = numbered(Format::Iperf2, 0, 30 * MS);
    end[..16].copy_from_slice(&Stamp { number: -33, sent_us: 30_000 }.encode());
    all.udp(Some(30 * MS), 0, &end, 1000);
    assert_eq!((streams(&all)[0].expected, streams(&all)[0].lost), (32, 2));
    let mut all = Datagrams::default();
    all.udp(Some(0), 0, b"9876", 4);
    all.udp(Some(1), 1, b"6789", 4);
    for n in 2..10 {
        all.udp(Some(n * MS), 0, &numbered(Format::Iperf3, n, n * MS), 1000);
    }
    assert_eq!((streams(&all)[0].expected, streams(&all)[0].lost), (10, 2));
}

#[test]
fn without_times_losses_are_known_and_jitter_is_not() {
    let mut all = Datagrams::default();
    for n in (0..100).filter(|&n| n != 40) {
        let payload = rtp(0, n, u32::from(n) * 160, 9);
        all.udp(None, 0, &payload, payload.len() as u32);
    }
    let one = streams(&all).remove(0);
    assert_eq!((one.lost, one.jitter_ns, one.rate_bps, one.clock_rate_hz), (1, None, None, None));
}

/// Returns payloads that are neither RTP, QUIC nor numbered, of several kinds.
fn other(kind: usize, i: u64, random: &mut Random) -> Vec<u8> {
    let length = 20 + (random.next() % 1400) as usize;
    let mut bytes = random.bytes(length);
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    match kind {
        // DNS: a random identifier, flags, counts.
        1 => put(2, &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, b'w', b'w', b'w']),
        // A leading 32-bit number, followed by a constant.
        2 => put(0, &[&(i as u32).to_be_bytes()[..], &[7; 8]].concat()),
        // The first byte of RTP, and random bytes.
        3 => put(0, &[0x80, 96]),
        // First byte and number of RTP, with a constant SSRC and random timestamps.
        4 => put(
            0,
            &[&[0x80, 96][..], &(i as u16).to_be_bytes(), &(random.next() as u32).to_be_bytes(), &[3; 4]]
                .concat(),
        ),
        // The first byte of a long header, and random bytes.
        5 => put(0, &[0xc0 | random.next() as u8]),
        // Packets with short headers whose start was not captured.
        6 => put(0, &[0x40 | random.next() as u8 & 0x3f, 1, 2, 3, 4, 5, 6, 7, 8]),
        // WireGuard: a type, an index, a little-endian counter.
        7 => put(0, &[&[4, 0, 0, 0, 9, 9, 9, 9][..], &i.to_le_bytes()].concat()),
        // Seconds and microseconds without a number, and a number without them.
        8 => put(
            0,
            &[&(1_700_000_000 + i as u32 / 50).to_be_bytes()[..], &(i as u32 % 50 * 20_000).to_be_bytes()]
                .concat(),
        ),
        9 => put(0, &[&i.to_be_bytes()[..], &i.to_be_bytes()].concat()),
        // NTP: seconds and a fraction of 2^32.
        10 => put(0, &[&[0x24, 2, 6, 0xe9][..], &[0; 8], b"GPS\0"].concat()),
        // First bytes of bdp's own datagrams.
        11 => put(0, &[0xbd, b'b', b'd']),
        // Version 0, as in a version negotiation, without a request.
        12 => put(0, &[0x80, 0, 0, 0, 0, 8]),
        _ => {}
    }
    bytes
}

#[test]
fn what_is_none_of_these_is_never_called_so() {
    let mut random = Random(20_261_125);
    let (mut datagrams, mut flows, mut wrong) = (0_u64, 0_u64, Vec::new());
    for kind in 0..13 {
        for _ in 0..300 {
            let mut all = Datagrams::default();
            for i in 0..100 {
                let payload = other(kind, i, &mut random);
                all.udp(Some(i * 20 * MS), (random.next() % 4 / 3) as usize, &payload, payload.len() as u32);
                datagrams += 1;
            }
            flows += 1;
            if !is_nothing(&all) {
                wrong.push((kind, streams(&all), all.quic_report()));
            }
        }
    }
    println!("{} of {flows} flows of {datagrams} other datagrams were taken for something", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A QUIC packet with a long header of version 1.
fn long(kind: u8, to: &[u8], from: &[u8], length: usize) -> Vec<u8> {
    let mut all = vec![0xc3 | kind << 4, 0, 0, 0, 1, to.len() as u8];
    all.extend(to);
    all.push(from.len() as u8);
    all.extend(from);
    match kind {
        0 => all.push(0),
        3 => return [all, vec![0x77; 40]].concat(),
        _ => {}
    }
    let payload = length - all.len() - 2;
    all.extend((0x4000 | payload as u16).to_be_bytes());
    all.resize(length, 0x99);
    all
}

fn short(to: &[u8], spin: bool) -> Vec<u8> {
    [&[if spin { 0x60 } else { 0x40 }][..], to, &[0x88; 40]].concat()
}

const FIRST: [u8; 8] = *b"randomly";
const CLIENT: [u8; 3] = *b"cli";
const SERVER: [u8; 5] = *b"serve";

/// A handshake answered by the server after 30 ms and completed by the client after 45.
fn shake_hands(all: &mut Datagrams, kept: usize) {
    let mut pass = |ms: u64, side: usize, packets: &[Vec<u8>]| {
        let datagram = packets.concat();
        all.udp(Some(ms * MS), side, &datagram[..datagram.len().min(kept)], datagram.len() as u32);
    };
    pass(1000, 0, &[long(0, &FIRST, &CLIENT, 1200)]);
    pass(1030, 1, &[long(0, &CLIENT, &SERVER, 200), long(2, &CLIENT, &SERVER, 900), short(&CLIENT, false)]);
    pass(
        1045,
        0,
        &[long(0, &SERVER, &CLIENT, 60), long(2, &SERVER, &CLIENT, 80), short(&SERVER, false), vec![0; 900]],
    );
}

#[test]
fn the_time_of_a_quic_handshake_is_known_where_its_packets_were_kept() {
    let mut all = Datagrams::default();
    shake_hands(&mut all, 1500);
    let quic = all.quic_report().unwrap();
    assert_eq!((quic.version, quic.client, quic.retry, quic.zero_rtt), (1, FlowEnd::A, false, 0));
    assert_eq!((quic.first_answer_ns, quic.handshake_ns), (Some(30 * MS), Some(45 * MS)));
    assert_eq!((quic.handshake, quic.spin.packets), (QuicHandshake::Known, [1, 1]));
    // The client's packets after the first of its datagram are truncated.
    let mut all = Datagrams::default();
    shake_hands(&mut all, 54);
    let again = short(&SERVER, false);
    all.udp(Some(1100 * MS), 0, &again, again.len() as u32);
    let quic = all.quic_report().unwrap();
    assert_eq!((quic.first_answer_ns, quic.handshake_ns), (Some(30 * MS), None));
    assert_eq!(quic.handshake, QuicHandshake::Cut);
    // Only the answer was captured: the client is the other end.
    let mut all = Datagrams::default();
    let answer = [long(0, &FIRST, &SERVER, 300), long(2, &FIRST, &SERVER, 900)].concat();
    all.udp(Some(0), 0, &answer, 1200);
    let quic = all.quic_report().unwrap();
    assert_eq!(
        (quic.client, quic.handshake, quic.first_answer_ns),
        (FlowEnd::B, QuicHandshake::BeginningMissing, None)
    );
}

#[test]
fn retry_version_negotiation_and_0_rtt_are_seen() {
    let mut all = Datagrams::default();
    let mut pass = |ms: u64, side: usize, datagram: &[u8]| {
        all.udp(Some(ms * MS), side, datagram, datagram.len() as u32);
    };
    // An unknown version, and its answer (RFC 8999, section 6).
    let mut unknown = long(0, &FIRST, &CLIENT, 1200);
    unknown[1..5].copy_from_slice(&[0x1a, 0x2a, 0x3a, 0x4a]);
    pass(0, 0, &unknown);
    let ids = [&[3][..], &CLIENT, &[8], &FIRST].concat();
    pass(20, 1, &[&[0xa0, 0, 0, 0, 0][..], &ids, &1_u32.to_be_bytes()].concat());
    pass(21, 0, &[long(0, &FIRST, &CLIENT, 800), long(1, &FIRST, &CLIENT, 400)].concat());
    pass(41, 1, &long(3, &CLIENT, b"retried", 0));
    pass(42, 0, &long(0, b"retried", &CLIENT, 1200));
    pass(62, 1, &[long(0, &CLIENT, &SERVER, 200), long(2, &CLIENT, &SERVER, 900)].concat());
    pass(63, 0, &short(&SERVER, false));
    let quic = all.quic_report().unwrap();
    assert!(quic.retry && quic.version_negotiation && quic.version == 1, "{quic:?}");
    assert_eq!((quic.zero_rtt, quic.first_answer_ns, quic.handshake_ns), (1, Some(62 * MS), Some(63 * MS)));
    // A version negotiation for other connection IDs is no answer.
    let mut all = Datagrams::default();
    all.udp(Some(0), 0, &unknown, 1200);
    let ids = [&[3][..], b"cla", &[8], &FIRST].concat();
    let other = [&[0xa0, 0, 0, 0, 0][..], &ids, &1_u32.to_be_bytes()].concat();
    all.udp(Some(1), 1, &other, other.len() as u32);
    assert_eq!(all.quic_report(), None);
}

#[test]
fn spin_bits_of_a_connection_give_round_trips() {
    for (greased, expected) in [(false, SpinState::Spins), (true, SpinState::Erratic)] {
        let mut all = Datagrams::default();
        let mut random = Random(5);
        shake_hands(&mut all, 1500);
        // Request and response, 40 ms from here to the server and back, 10 to the client.
        for round in 0..40_u64 {
            let mut bit = |bit: bool| if greased { random.next().is_multiple_of(2) } else { bit };
            let (asked, answered) = (short(&SERVER, bit(round % 2 == 1)), short(b"new", bit(round % 2 == 1)));
            for (ms, side, packet) in [(0, 0, asked), (40, 1, answered)] {
                all.udp(Some((1100 + round * 50 + ms) * MS), side, &packet, packet.len() as u32);
            }
        }
        let spin = all.quic_report().unwrap().spin;
        assert_eq!(spin.state, expected, "{spin:?}");
        let medians = |all: [Option<bdp_model::capture::CapturedRtt>; 2]| {
            all.map(|rtt| rtt.map(|rtt| rtt.p50.as_ns() / MS))
        };
        let (rtt, ends) =
            if greased { ([None; 2], [None; 2]) } else { ([Some(50); 2], [Some(10), Some(40)]) };
        assert_eq!((medians(spin.rtt), medians(spin.to_ends)), (rtt, ends));
    }
}

#[test]
fn pings_of_bdp_and_of_icmp_are_paired() {
    let mut all = Datagrams::default();
    for number in 0..5 {
        let mut message = vec![0; 64];
        let far = Some(bdp_wire::echo::FarStamps { arrived_ns: 1, by_kernel: false, returned_ns: 2 });
        Ping { key: [4; 16], number, far: None }.put(&mut message);
        all.udp(Some(number * 100 * MS), 0, &message, 64);
        Ping { key: [4; 16], number, far }.put(&mut message);
        if number != 3 {
            all.udp(Some(number * 100 * MS + 7 * MS), 1, &message, 64);
        }
    }
    let echo = all.report(0).echo.unwrap();
    assert_eq!((echo.sent, echo.answered, echo.rtt.unwrap().p50.as_ns() / MS), (5, 4, 7));
    assert_eq!(all.report(1).echo, None);
}

#[test]
fn what_is_cut_too_short_is_counted() {
    let mut all = Datagrams::default();
    for n in 0..20 {
        all.udp(Some(n * MS), 0, &numbered(Format::Bdp(*b"the tag!"), n, n)[..20], 1000);
        all.udp(Some(n * MS), 1, b"short", 5);
    }
    assert_eq!((all.report(0).headers_cut, all.report(1).headers_cut), (20, 0));
    assert!(is_nothing(&all));
}
