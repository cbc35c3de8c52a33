//! Flows of captures whose clocks, ports, numbers and options are not as one wishes.

use bdp_capture::{Analysis, Found, Frame};
use bdp_model::capture::{CaptureSummary, FlowProtocol, MultipathSubflow};

use crate::wrapped::{join, udp};

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// Both ends' initial sequence numbers, and their ports.
#[derive(Clone, Copy)]
struct Ends {
    numbers: [u32; 2],
    ports: [u16; 2],
}

/// A segment of IPv4 with these options, `at` bytes behind the SYN of its end.
fn segment(ends: Ends, is_back: bool, at: [u32; 2], flags: u8, options: &[u8], payload: u16) -> Vec<u8> {
    let (own, other) = (usize::from(is_back), usize::from(!is_back));
    let (seq, ack) = (ends.numbers[own].wrapping_add(at[0]), ends.numbers[other].wrapping_add(at[1]));
    let header = 20 + options.len();
    let length = (20 + header + usize::from(payload)) as u16;
    join(&[
        &[0x45, 0],
        &length.to_be_bytes(),
        &[0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1 + own as u8, 192, 0, 2, 1 + other as u8],
        &[ends.ports[own], ends.ports[other]].map(u16::to_be_bytes).concat(),
        &[seq, if flags & ACK == 0 { 0 } else { ack }].map(u32::to_be_bytes).concat(),
        &[(header as u8 / 4) << 4, flags, 0xff, 0xff, 0, 0, 0, 0],
        options,
        &vec![0x55; usize::from(payload)],
    ])
}

/// A connection in which the end that began sends so many segments of 1000 bytes, each acknowledged.
fn connection(ends: Ends, segments: u32) -> Vec<Vec<u8>> {
    let mut all = vec![
        segment(ends, false, [0, 0], SYN, &[], 0),
        segment(ends, true, [0, 1], SYN | ACK, &[], 0),
        segment(ends, false, [1, 1], ACK, &[], 0),
    ];
    for i in 0..segments {
        all.push(segment(ends, false, [1 + i * 1_000, 1], ACK, &[], 1_000));
        all.push(segment(ends, true, [1, 1 + (i + 1) * 1_000], ACK, &[], 0));
    }
    let end = 1 + segments * 1_000;
    all.push(segment(ends, false, [end, 1], FIN | ACK, &[], 0));
    all.push(segment(ends, true, [1, end + 1], FIN | ACK, &[], 0));
    all.push(segment(ends, false, [end + 1, 2], ACK, &[], 0));
    all
}

/// Packets that come with these times, ns.
fn analysed(packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> (CaptureSummary, Vec<Found>) {
    let mut analysis = Analysis::default();
    for (at, data) in packets {
        let length = data.len() as u32;
        analysis.frame(&Frame { at_ns: Some(at), link_type: 101, length, data: &data });
    }
    analysis.finish()
}

fn every(step_ns: u64, packets: Vec<Vec<u8>>) -> impl Iterator<Item = (u64, Vec<u8>)> {
    const BEGAN: u64 = 1_700_000_000_000_000_000;
    (0..).map(move |i| BEGAN + i * step_ns).zip(packets)
}

const ENDS: Ends = Ends { numbers: [1_000, 5_000], ports: [40_000, 80] };

/// Segments that were sent once more, where each byte was acknowledged.
fn retransmissions(found: &Found) -> u64 {
    let way = &found.flow.directions[0];
    let data = way.tcp.as_ref().unwrap();
    assert_eq!(way.payload_bytes, data.acked_bytes);
    data.retransmissions.segments
}

#[test]
fn sequence_numbers_that_wrap_are_no_losses() {
    for first in [u32::MAX - 5_500, u32::MAX, u32::MAX - 1_000, (1 << 31) - 5_500] {
        let ends = Ends { numbers: [first, first], ..ENDS };
        let (summary, found) = analysed(every(1_000_000, connection(ends, 20)));
        assert_eq!((summary.out_of_time, found.len()), (0, 1));
        assert_eq!(found[0].flow.directions[0].payload_bytes, 20_000);
        assert_eq!(retransmissions(&found[0]), 0, "from {first}");
    }
}

/// The clock is set back by an hour, and later by a day: what passed before lasts no longer for it, and each packet that lies behind is counted.
#[test]
fn clock_that_is_set_back_is_counted_and_changes_no_figure_of_data() {
    let packets: Vec<_> = every(1_000_000, connection(ENDS, 50)).collect();
    let count = packets.len();
    let (_, straight) = analysed(packets.clone());
    let back = |i: usize| [0, 3_600, 86_400][i * 3 / count] * 1_000_000_000;
    let (summary, found) =
        analysed(packets.into_iter().enumerate().map(|(i, (at, data))| (at - back(i), data)));
    let behind = (0..count).filter(|i| back(*i) > 0).count() as u64;
    assert_eq!((summary.packets, summary.out_of_time), (count as u64, behind));
    assert_eq!(found.len(), 1);
    assert!(found[0].flow.to_ns <= straight[0].flow.to_ns);
    assert_eq!(found[0].flow.directions[0].payload_bytes, straight[0].flow.directions[0].payload_bytes);
    assert_eq!(retransmissions(&found[0]), 0);
}

#[test]
fn ports_that_are_used_again_within_seconds_are_another_connection() {
    let mut packets = Vec::new();
    for i in 0..5_u32 {
        let ends = Ends { numbers: [1_000 + i * 70_000, 9_000 + i * 1_000_000], ..ENDS };
        packets.extend(connection(ends, 10));
    }
    let (_, found) = analysed(every(1_000_000, packets));
    assert_eq!(found.len(), 5);
    for found in &found {
        assert_eq!(found.flow.directions[0].payload_bytes, 10_000);
        assert_eq!(retransmissions(found), 0);
    }
}

/// Chats with servers at the ports of iperf3 and iperf2, over TCP and UDP.
#[test]
fn port_of_iperf_alone_makes_nothing_iperf() {
    for port in [5_201, 5_001] {
        let words = |i: u64| format!("message {i} {}", "so ".repeat(i as usize % 7)).into_bytes();
        let datagrams = (0..200).map(|i| (1 + i * 50_000_000, udp(port, &words(i))));
        let (_, found) = analysed(datagrams);
        assert_eq!((found.len(), found[0].flow.protocol), (1, FlowProtocol::Udp));
        for way in &found[0].flow.directions {
            assert!(way.datagrams.as_ref().is_none_or(|all| all.streams.is_empty()), "{way:?}");
        }
        let ends = Ends { ports: [40_000, port], ..ENDS };
        let (_, found) = analysed(every(300_000_000, connection(ends, 20)));
        assert!(found[0].flow.directions.iter().all(|way| way.datagrams.is_none()));
        assert!(!format!("{:?}", found[0].flow).to_lowercase().contains("iperf"));
    }
}

#[test]
fn subflows_of_multipath_tcp_are_named() {
    let capable = [30, 12, 0x01, 0x81, 1, 2, 3, 4, 5, 6, 7, 8];
    let join = [30, 12, 0x10, 1, 1, 2, 3, 4, 5, 6, 7, 8];
    let data = [30, 8, 0x20, 1, 0, 0, 0, 1];
    let with = |syn: &[u8], answer: &[u8], later: &[u8]| {
        let mut packets = connection(ENDS, 5);
        packets[0] = segment(ENDS, false, [0, 0], SYN, syn, 0);
        packets[1] = segment(ENDS, true, [0, 1], SYN | ACK, answer, 0);
        packets[3] = segment(ENDS, false, [1, 1], ACK, later, 1_000);
        packets
    };
    let subflow = |packets: Vec<Vec<u8>>| {
        let (_, found) = analysed(every(1_000_000, packets));
        assert_eq!(found.len(), 1);
        found[0].flow.tcp.as_ref().unwrap().multipath_subflow
    };
    assert_eq!(subflow(with(&[], &[], &[])), None);
    assert_eq!(subflow(with(&capable, &[], &[])), None, "the other end does not speak it");
    assert_eq!(subflow(with(&capable, &capable, &[])), Some(MultipathSubflow::Initial));
    assert_eq!(subflow(with(&join, &join, &data)), Some(MultipathSubflow::Additional));
    // Without one SYN or both.
    assert_eq!(subflow(with(&capable, &capable, &data).split_off(1)), Some(MultipathSubflow::Initial));
    assert_eq!(subflow(with(&[], &[], &data).split_off(3)), Some(MultipathSubflow::Unknown));
    // Of a flow that never came to anything.
    assert_eq!(subflow(with(&join, &join, &[])[..2].to_vec()), Some(MultipathSubflow::Additional));
    assert_eq!(subflow(with(&join, &join, &[])[..1].to_vec()), None, "nobody answered");
}

#[test]
fn times_of_any_size_add_up_to_the_time_of_the_connection() {
    let packets = connection(ENDS, 40);
    let count = packets.len() as u64;
    for leap in [1_u64 << 40, 1 << 58, 1 << 62, u64::MAX / count] {
        let at = move |i: u64| i.saturating_mul(leap);
        let (_, found) = analysed((0..).map(at).zip(packets.clone()));
        let flow = &found[0].flow;
        for facts in found[0].facts.iter().flatten() {
            let spent = &facts.conversation.as_ref().unwrap().spent;
            assert_eq!(spent.total_ns(), flow.to_ns - flow.from_ns, "{leap}");
            let of_states: u64 = spent.stretches.iter().flat_map(|s| &s.states).map(|s| s.1).sum();
            assert_eq!(of_states, spent.total_ns(), "{leap}");
        }
        assert!(found[0].facts[0].is_some());
    }
}
