//! The search for the largest packet that comes back, over made-up paths in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bdp_model::probes::mtu_search::{IPV6_MINIMUM, MAX_PROBES, MtuBounds, MtuEnd, MtuSearcher, Step};
use bdp_model::units::Nanos;
use proptest::prelude::*;

/// Packet of the smallest echo over IPv4: 48 bytes and the headers.
const SMALLEST: u32 = 76;
const PATIENCE: Nanos = Nanos::secs(1);
const UNTIL: Nanos = Nanos::secs(3);

/// A path that says nothing of what it drops.
#[derive(Clone)]
struct Path {
    mtu: u32,
    round_trip: Nanos,
    /// Of echoes, whatever their size.
    loss: f64,
    /// A policer before the narrow place: packets that it lets through at once, and a second.
    policer: Option<(f64, f64)>,
    /// Of the line, and all of the others' packets are behind ours.
    rate_bps: f64,
    /// During it nothing passes.
    outage: Option<(Nanos, Nanos)>,
}

fn path(mtu: u32, round_trip_ms: u64) -> Path {
    Path {
        mtu,
        round_trip: Nanos::millis(round_trip_ms),
        loss: 0.0,
        policer: None,
        rate_bps: 1e9,
        outage: None,
    }
}

/// What a search came to, when, and what it sent.
struct Searched {
    end: MtuEnd,
    at: Nanos,
    sent: Vec<(Nanos, u32)>,
}

fn search(path: &Path, largest: u32, seed: u64) -> Searched {
    search_from(SMALLEST, path, largest, seed)
}

fn search_from(smallest: u32, path: &Path, largest: u32, seed: u64) -> Searched {
    let until = UNTIL.max(Nanos(4 * path.round_trip.as_ns()));
    let patience = PATIENCE.max(Nanos(4 * path.round_trip.as_ns()));
    let bounds = MtuBounds { smallest, largest, round_trip: path.round_trip, patience, until };
    let mut searcher = MtuSearcher::new(bounds);
    let (mut now, mut free_at) = (Nanos::ZERO, Nanos::ZERO);
    let (mut tokens, mut looked) = (path.policer.map_or(0.0, |(depth, _)| depth), Nanos::ZERO);
    let mut state = seed;
    let mut answers = BinaryHeap::new();
    let mut sent = Vec::new();
    loop {
        match searcher.next(now) {
            Step::Send(size) => {
                assert!((smallest..=largest).contains(&size), "{size}");
                sent.push((now, size));
                // Splitmix64.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut word = state;
                word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                let even = ((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
                let mut passes = even >= path.loss;
                if let Some((depth, rate)) = path.policer {
                    tokens = (tokens + (now - looked).as_secs_f64() * rate).min(depth);
                    looked = now;
                    let has = tokens >= 1.0;
                    tokens -= f64::from(u8::from(has));
                    passes &= has;
                }
                passes &= !path.outage.is_some_and(|(from, to)| (from..to).contains(&now));
                if passes && size <= path.mtu {
                    free_at = free_at.max(now) + Nanos::from_secs_f64(f64::from(size) * 8.0 / path.rate_bps);
                    answers.push(Reverse((free_at + path.round_trip, size)));
                }
            }
            Step::Wait(due) => {
                assert!(due > now, "{due:?} {now:?}");
                // Each answer may change what is due.
                match answers.peek() {
                    Some(&Reverse((at, size))) if at <= due => {
                        answers.pop();
                        now = now.max(at);
                        searcher.note_answer(size, now);
                    }
                    _ => now = due,
                }
            }
            Step::End(end) => return Searched { end, at: now, sent },
        }
        assert!(sent.len() < 1000 && now <= until, "{now:?}");
    }
}

fn less(mtu: u32) -> MtuEnd {
    MtuEnd::Less { mtu, exact: true }
}

#[test]
fn a_path_that_holds_the_largest_takes_one_echo() {
    for largest in [1500, 1280, 9000] {
        let searched = search(&path(largest, 20), largest, 1);
        assert_eq!((searched.end, searched.sent.len()), (MtuEnd::Held, 1));
        assert!(searched.at < Nanos::millis(21), "{:?}", searched.at);
    }
}

#[test]
fn usual_sizes_and_others_are_found_to_the_byte_in_a_second() {
    for mtu in
        [1499, 1492, 1476, 1454, 1421, 1420, 1419, 1400, 1396, 1358, 1280, 1279, 1006, 601, 576, 300, 77]
    {
        let searched = search(&path(mtu, 1), 1500, 1);
        assert_eq!(searched.end, less(mtu));
        assert!(searched.at < Nanos::millis(1500), "{mtu}: {:?}", searched.at);
        // What is beyond has been lost as often as a loss takes.
        let beyond = searched.sent.iter().filter(|&&(_, size)| size == mtu + 1).count();
        assert!(beyond >= MAX_PROBES as usize, "{mtu}: {beyond}");
    }
    let usual = search(&path(1400, 1), 1500, 1);
    assert!(usual.at < Nanos::millis(700), "{:?}", usual.at);
}

#[test]
fn jumbo_frames_are_searched_from_nine_thousand_down() {
    for mtu in [8999, 8896, 8500, 8000, 4471, 4470, 1500, 1400] {
        let searched = search(&path(mtu, 5), 9000, 1);
        assert_eq!(searched.end, less(mtu));
        assert!(searched.at < Nanos::millis(2500), "{mtu}: {:?}", searched.at);
    }
}

#[test]
fn a_long_path_takes_few_round_trips_and_three_seconds() {
    for mtu in [1492, 1400, 1280] {
        let searched = search(&path(mtu, 600), 1500, 1);
        assert_eq!(searched.end, less(mtu));
        assert!(searched.at <= UNTIL, "{:?}", searched.at);
    }
    // Between two usual sizes the smaller one is safe when time is up.
    let searched = search(&path(1410, 600), 1500, 1);
    assert!(matches!(searched.end, MtuEnd::Less { mtu: 1400..=1410, exact: false }), "{:?}", searched.end);
}

#[test]
fn nothing_below_what_every_link_of_ipv6_carries_is_tried_in_vain() {
    const SMALLEST_V6: u32 = 96;
    let searched = search_from(SMALLEST_V6, &path(IPV6_MINIMUM, 10), 1500, 1);
    assert_eq!(searched.end, less(IPV6_MINIMUM));
    // Once it has come back nothing smaller is sent.
    let came = searched.sent.iter().find(|s| s.1 == IPV6_MINIMUM).unwrap().0 + Nanos::millis(11);
    assert!(searched.sent.iter().all(|&(at, size)| at < came || size > IPV6_MINIMUM));
    // A link that breaks this rule is found nonetheless.
    assert_eq!(search_from(SMALLEST_V6, &path(1000, 10), 1500, 1).end, less(1000));
}

#[test]
fn silence_ends_when_patience_does() {
    for largest in [1500, 9000] {
        let searched = search(&Path { loss: 1.1, ..path(1500, 1) }, largest, 1);
        assert_eq!(searched.end, MtuEnd::Silent);
        assert!(searched.at >= PATIENCE && searched.at < Nanos::millis(1500), "{:?}", searched.at);
        let bytes: u32 = searched.sent.iter().map(|&(_, size)| size).sum();
        assert!(bytes < 250_000, "{bytes}");
    }
}

#[test]
fn random_loss_is_not_taken_for_size() {
    let lossy = Path { loss: 0.1, ..path(1500, 30) };
    let claimed = (0..2000).filter(|&seed| search(&lossy, 1500, seed).end != MtuEnd::Held).count();
    assert!(claimed <= 1, "{claimed}");
    let hole = Path { loss: 0.1, ..path(1412, 30) };
    let found: Vec<MtuEnd> = (0..1000).map(|seed| search(&hole, 1500, seed).end).collect();
    let exact = found.iter().filter(|&&end| end == less(1412)).count();
    assert!(exact >= 970, "{exact}");
    assert!(found.iter().all(|end| matches!(end, MtuEnd::Less { mtu: 1380..=1412, .. })));
}

#[test]
fn a_pause_of_the_path_is_not_taken_for_size() {
    for from_ms in (0..1000).step_by(7) {
        let outage = Some((Nanos::millis(from_ms), Nanos::millis(from_ms + 100)));
        let held = search(&Path { outage, ..path(1500, 3) }, 1500, 1);
        assert_eq!(held.end, MtuEnd::Held, "{from_ms}");
        let hole = search(&Path { outage, ..path(1400, 3) }, 1500, 1);
        assert_eq!(hole.end, less(1400), "{from_ms}");
    }
}

#[test]
fn a_policer_of_packets_is_not_taken_for_size() {
    for policer in [(15.0, 100.0), (10.0, 100.0), (6.0, 50.0), (3.0, 40.0), (2.0, 20.0)] {
        let policed = |mtu| Path { policer: Some(policer), ..path(mtu, 10) };
        assert_eq!(search(&policed(1500), 1500, 1).end, MtuEnd::Held);
        for mtu in [1492, 1476, 1430, 1421, 1420, 1412, 1400, 1380, 1300, 1280, 1000] {
            let searched = search(&policed(mtu), 1500, 1);
            assert_eq!(searched.end, less(mtu), "{policer:?} at {:?}", searched.at);
        }
    }
}

#[test]
fn a_slow_line_whose_answers_are_late_is_waited_for() {
    for rate_bps in [1e6, 500e3, 200e3] {
        let slow = |mtu| Path { rate_bps, ..path(mtu, 40) };
        assert_eq!(search(&slow(1500), 1500, 1).end, MtuEnd::Held);
        for mtu in [1476, 1420, 1412, 1400, 1280] {
            let searched = search(&slow(mtu), 1500, 1);
            let MtuEnd::Less { mtu: found, exact } = searched.end else { panic!("{:?}", searched.end) };
            // When time is up it is near, and not said to be exact.
            let is_near = !exact && (mtu - 20..mtu).contains(&found);
            assert!(found == mtu || is_near, "{rate_bps} {mtu}: {found}");
            assert!(exact || rate_bps < 500e3, "{rate_bps} {mtu} at {:?}", searched.at);
        }
    }
}

proptest! {
    /// Whatever is lost, what is found came back, and the search ends in time.
    #[test]
    fn what_is_found_came_back(
        mtu in 1..9_001_u32,
        largest in 576..=9_000_u32,
        round_trip in 0..900_u64,
        loss in prop_oneof![Just(0.0), 0.0..1.0_f64],
        seed: u64,
    ) {
        let made = Path { loss, ..path(mtu, round_trip) };
        let searched = search(&made, largest, seed);
        match searched.end {
            MtuEnd::Held => prop_assert!(mtu >= largest),
            MtuEnd::Less { mtu: found, .. } => {
                prop_assert!(found <= mtu && found < largest);
                prop_assert!(searched.sent.iter().any(|&(_, size)| size == found));
                let beyond = searched.sent.iter().filter(|&&(_, size)| size > found).count();
                prop_assert!(beyond >= MAX_PROBES as usize);
            }
            MtuEnd::Unsettled => prop_assert!(loss > 0.0),
            MtuEnd::Silent => prop_assert!(mtu < SMALLEST || loss > 0.0),
        }
    }

    /// Without loss it is found to the byte wherever time allows.
    #[test]
    fn a_quiet_path_is_found_to_the_byte(mtu in SMALLEST..9_001_u32, largest in 576..=9_000_u32, round_trip in 0..30_u64) {
        let end = search(&path(mtu, round_trip), largest, 0).end;
        prop_assert_eq!(end, if mtu >= largest { MtuEnd::Held } else { less(mtu) });
    }
}
