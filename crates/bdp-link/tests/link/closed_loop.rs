//! A sender that a window bounds, over the link in virtual time: what a flow sees of it, not only what packets do.
//!
//! The sender has always something to send and keeps its window full; the receiver acknowledges every second segment.
//! It is no TCP: no slow start, no retransmission. That is what makes its goodput a matter of arithmetic.

use bdp_link::{End, Link, Packet};
use bdp_model::link::{DirectionConfig, LinkConfig, Medium, QueueLimit, Turns};
use bdp_model::path::turns;
use bdp_model::units::{Nanos, Rate};

use crate::segment::{ACK, Segment, offloaded};
use crate::symmetric;

const MSS: usize = 1460;
/// Segments of the longest super-packet: 64 KiB less headers.
const LONGEST: u64 = 44;

/// How the sender's device hands over what may be sent at once.
#[derive(Clone, Copy)]
enum Sends {
    Segments,
    SuperPackets,
}

/// Payload bits a second of `count` segments over the link, the first quarter left out.
fn goodput(config: &LinkConfig, window: u64, count: u64, sends: Sends) -> f64 {
    let mut link = Link::new(config, 1);
    let (mut sent, mut received, mut unacknowledged) = (0, 0, 0);
    let (mut allowed, mut now, mut since) = (window, Nanos::ZERO, None);
    while received < count {
        while sent < allowed {
            let burst = match sends {
                Sends::Segments => 1,
                Sends::SuperPackets => (allowed - sent).min(LONGEST),
            };
            link.enqueue(End::A, data(burst), now);
            sent += burst;
        }
        now = link.next_event().expect("a window that is full is on its way");
        let Some(departure) = link.pop(now) else { continue };
        match departure.to {
            End::A => allowed += u64::from(departure.packet.data[0]),
            End::B => {
                received += u64::from(departure.segments);
                unacknowledged += departure.segments;
                if received >= count / 4 {
                    since.get_or_insert((received, now));
                }
            }
        }
        // A flow whose window is a single segment is acknowledged by the timer, here at once.
        while unacknowledged >= 2 || (unacknowledged > 0 && window < 2) {
            let of = unacknowledged.min(2);
            link.enqueue(End::B, acknowledgement(of as u8), now);
            unacknowledged -= of;
        }
    }
    let (first, since) = since.expect("a quarter is less than all");
    (received - first) as f64 * MSS as f64 * 8e9 / (now - since).as_ns() as f64
}

fn data(segments: u64) -> Packet {
    let segment = Segment::new(ACK, 100, &[]).with_payload(&vec![0; segments as usize * MSS]);
    let packet = segment.v4(&[]);
    if segments > 1 { offloaded(packet, &segment, MSS as u16) } else { packet }
}

/// 40 bytes, of which the first says of how many segments: it is no IP packet, and no one looks into it.
fn acknowledgement(of: u8) -> Packet {
    let mut data = vec![0; 40];
    data[0] = of;
    Packet::from(data)
}

fn path(rate: Option<u64>, delay: Nanos) -> DirectionConfig {
    DirectionConfig {
        rate: rate.map(Rate::bps),
        delay,
        limit: QueueLimit::Packets(2_000),
        ..DirectionConfig::default()
    }
}

fn close(got: f64, want: f64, within: f64) -> bool {
    (got / want - 1.0).abs() <= within
}

/// The radio of `s0-distance`: 89 Mbit/s, 2.45 ms there and back, turns of 2 ms.
fn radio(guard: Nanos) -> LinkConfig {
    let turns = Turns { guard, turn: Nanos::millis(2) };
    LinkConfig {
        medium: Medium::HalfDuplex(turns),
        ..symmetric(path(Some(89_000_000), Nanos::micros(1_225)))
    }
}

#[test]
fn a_window_gives_itself_in_a_round_trip_until_the_wire_is_full() {
    let config = symmetric(path(Some(100_000_000), Nanos::millis(10)));
    let [data, ack] = [1_538.0, 78.0].map(|bytes| bytes * 8.0 / 100e6);
    for window in [2, 10, 80, 160] {
        // The second segment of two is acknowledged behind the first.
        let round_trip = 0.02 + 2.0 * data + ack;
        let got = goodput(&config, window, 20_000, Sends::Segments);
        let want = window as f64 * MSS as f64 * 8.0 / round_trip;
        // What is counted may begin and end within a burst.
        let burst = window as f64 / 15_000.0;
        assert!(close(got, want, burst + 1e-3), "{window}: {got} {want}");
    }
    for window in [180, 400, 2_000] {
        let got = goodput(&config, window, 20_000, Sends::Segments);
        assert!(close(got, 100e6 * 1_460.0 / 1_538.0, 1e-3), "{window}: {got}");
    }
}

#[test]
fn a_radio_leaves_to_data_what_its_turns_do_and_less_with_distance() {
    let [data, ack] = [1_538.0, 78.0].map(|bytes| bytes * 8.0 / 89e6);
    let mut last = f64::INFINITY;
    // A guard of 2 d / c for 0, 2, 5, 10, 20, 50 and 100 km.
    for guard_ns in [0, 13_300, 33_400, 66_700, 133_000, 334_000, 667_000] {
        let config = radio(Nanos(guard_ns));
        let Medium::HalfDuplex(turns) = config.medium else { unreachable!("a radio") };
        let want = 89e6 * 1_460.0 / 1_538.0 * turns::share(turns, data, ack);
        for window in [44, 180] {
            let got = goodput(&config, window, 20_000, Sends::Segments);
            assert!(close(got, want, 0.01), "guard {guard_ns} ns, window {window}: {got} {want}");
        }
        assert!(want < last);
        last = want;
    }
}

#[test]
fn super_packets_carry_what_their_segments_do() {
    for rate in [None, Some(2_500_000_000), Some(5_000_000_000)] {
        let delay = Nanos::millis(1);
        let config = symmetric(path(rate, delay));
        // Below rate x RTT, about it, and above it.
        for window in [44, 440, 1_200] {
            let [whole, alone] =
                [Sends::SuperPackets, Sends::Segments].map(|sends| goodput(&config, window, 20_000, sends));
            // What departs in a run departs up to 50 us later, once in each round trip.
            let later = 50e-6 / (2.0 * delay.as_secs_f64());
            assert!(close(whole, alone, later), "{rate:?} {window}: {whole} {alone}");
            if rate.is_some_and(|rate| alone > 0.94 * rate as f64) {
                assert!(close(whole, alone, 1e-3), "at the ceiling: {whole} {alone}");
            }
        }
    }
}

#[test]
fn on_a_radio_super_packets_are_segments() {
    let config = radio(Nanos::micros(133));
    let [whole, alone] =
        [Sends::SuperPackets, Sends::Segments].map(|sends| goodput(&config, 88, 10_000, sends));
    assert_eq!(whole, alone);
}
