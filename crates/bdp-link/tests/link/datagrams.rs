//! What arrives of datagrams at a constant rate over links in a row, against the model.

use bdp_model::link::Medium;
use bdp_model::path::udp::{Hop, arriving_pps};
use bdp_model::units::{ByteCount, Nanos, Probability, Rate};

use super::*;
use bdp_model::link::{Policer, Turns};

const BYTES: usize = 1_000;
const SENT: u64 = 100_000;

/// Share of datagrams at 1.2 times the rate of 10 Mbit/s that arrive as they were sent, each counted once.
fn arriving(configs: &[LinkConfig]) -> f64 {
    let gap = BYTES as u64 * 8 * 1_000 / 12;
    let mut packets: Vec<(Nanos, Packet)> = (0..SENT).map(|n| (Nanos(n * gap), datagram(n))).collect();
    for (seed, config) in configs.iter().enumerate() {
        let mut link = Link::new(config, 11 + seed as u64);
        let mut out = Vec::new();
        for (at, packet) in packets {
            while let Some(due) = link.next_event().filter(|&due| due <= at) {
                out.extend(link.pop(due).map(|departure| (departure.due, departure.packet)));
            }
            link.enqueue(End::A, packet, at);
        }
        out.extend(drain(&mut link).into_iter().map(|departure| (departure.due, departure.packet)));
        assert_conserved(&link);
        packets = out;
    }
    let mut whole: Vec<u64> = packets
        .iter()
        .map(|(_, packet)| (u64::from_be_bytes(packet.data[20..28].try_into().unwrap()), packet))
        .filter(|&(n, packet)| packet.data == datagram(n).data)
        .map(|(n, _)| n)
        .collect();
    whole.sort_unstable();
    whole.dedup();
    whole.len() as f64 / SENT as f64
}

/// IPv4 and UDP of no port, with its number behind the IP header.
fn datagram(n: u64) -> Packet {
    let mut data = vec![0; BYTES];
    (data[0], data[9]) = (0x45, 17);
    data[2..4].copy_from_slice(&(BYTES as u16).to_be_bytes());
    data[20..28].copy_from_slice(&n.to_be_bytes());
    Packet::from(data)
}

fn link(direction: DirectionConfig) -> LinkConfig {
    symmetric(direction)
}

#[test]
fn each_hop_takes_its_part_of_datagrams_in_turn() {
    let p = |fraction| Probability::new(fraction).unwrap();
    let bottleneck = || DirectionConfig { limit: QueueLimit::Packets(50), ..wire(10_000_000) };
    let lossy = || DirectionConfig { loss: independent(0.1), ..DirectionConfig::default() };
    let corrupting = || DirectionConfig { corrupt: p(0.1), ..bottleneck() };
    let policer = Some(Policer { rate: Rate::bps(5_000_000), burst: ByteCount::bytes(3_000) });
    let policed = || DirectionConfig { policer, ..bottleneck() };
    let copying = || DirectionConfig { duplicate: p(0.1), ..DirectionConfig::default() };
    let hop = |d: &DirectionConfig| Hop {
        loss: d.loss.probability(),
        corrupt: d.corrupt.fraction(),
        duplicate: d.duplicate.fraction(),
        policer_pps: d.policer.map(|policer| policer.rate.as_bps() as f64 / (8 * BYTES) as f64),
        wire_pps: d.rate.map(|rate| rate.as_bps() as f64 / (8 * BYTES) as f64),
    };
    for directions in [
        vec![bottleneck()],
        vec![lossy(), bottleneck()],
        vec![bottleneck(), lossy()],
        vec![corrupting()],
        vec![corrupting(), lossy()],
        vec![lossy(), policed(), lossy()],
        vec![lossy(), copying()],
    ] {
        let offered = 1_500.0;
        let hops: Vec<Hop> = directions.iter().map(hop).collect();
        let (model, by) = arriving_pps(offered, &hops).unwrap();
        let configs: Vec<LinkConfig> = directions.into_iter().map(link).collect();
        let got = arriving(&configs) * offered;
        assert!((got / model - 1.0).abs() < 0.005, "{hops:?}: {got} for {model} by {by:?}");
    }
}

/// With nothing to acknowledge them, datagrams have a half-duplex medium to themselves.
#[test]
fn nothing_takes_turns_with_datagrams() {
    let turns = Turns { guard: Nanos::micros(500), turn: Nanos::millis(2) };
    let config = LinkConfig {
        medium: Medium::HalfDuplex(turns),
        ..link(DirectionConfig { limit: QueueLimit::Packets(50), ..wire(10_000_000) })
    };
    let got = arriving(&[config]);
    assert!((got * 1.2 - 1.0).abs() < 0.005, "{got}");
}
