//! The link in virtual time: every instant is an argument, so no test depends on a clock. Seeds are fixed; only the
//! inputs of the properties are drawn anew in each run.

mod arbitrary;
mod bursts;
mod closed_loop;
mod conservation;
mod copies;
mod datagrams;
mod enqueue_time;
mod foreseen;
mod half_duplex;
mod jitter;
mod loss;
mod managed;
mod marking;
mod oracle;
mod over_time;
mod pinned;
mod policing;
mod queue;
mod rewrite;
mod segment;
mod segments;
mod service;
mod super_packets;
mod timing;

use bdp_link::{Departure, DropCause, End, Link, Packet};
use bdp_model::link::{DirectionConfig, LinkConfig, Loss, QueueLimit};
use bdp_model::units::{Nanos, Probability, Rate};

/// Both directions alike.
fn symmetric(direction: DirectionConfig) -> LinkConfig {
    LinkConfig { forward: direction.clone(), reverse: direction, ..LinkConfig::default() }
}

/// A direction with a rate, no overhead, no delay, no loss and no limit.
fn wire(rate_bps: u64) -> DirectionConfig {
    DirectionConfig {
        rate: Some(Rate::bps(rate_bps)),
        overhead_bytes: 0,
        limit: QueueLimit::Unlimited,
        ..DirectionConfig::default()
    }
}

fn independent(fraction: f64) -> Loss {
    Loss::Independent(Probability::new(fraction).expect("a fraction"))
}

/// A packet that is no IP packet and carries its number in its first eight bytes.
fn numbered(number: u64, bytes: usize) -> Packet {
    assert!(bytes >= 8);
    let mut data = vec![0; bytes];
    data[..8].copy_from_slice(&number.to_be_bytes());
    Packet::from(data)
}

fn number(packet: &Packet) -> u64 {
    u64::from_be_bytes(packet.data[..8].try_into().expect("eight bytes"))
}

/// Pops everything, each packet at the instant it is due.
fn drain(link: &mut Link) -> Vec<Departure> {
    let mut departures = Vec::new();
    while let Some(at) = link.next_event() {
        match link.pop(at) {
            Some(departure) => {
                assert_eq!(departure.due, at);
                departures.push(departure);
            }
            // On a half-duplex medium it was decided who sends: what comes of it comes later.
            None => assert!(link.next_event().is_none_or(|next| next > at)),
        }
    }
    assert_eq!(link.pop(Nanos(u64::MAX)), None);
    departures
}

/// Packets in + duplicated = out + dropped by each cause + inside.
fn assert_conserved(link: &Link) {
    for from in [End::A, End::B] {
        let c = link.counters(from);
        assert_eq!(
            c.packets_in + c.duplicated,
            c.packets_out
                + DropCause::ALL.map(|cause| c.dropped(cause)).iter().sum::<u64>()
                + link.queued(from),
            "from {from:?}: {c:?}"
        );
    }
}
