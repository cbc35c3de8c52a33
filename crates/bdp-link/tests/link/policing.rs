//! The policer: its burst, its rate in the long run, and that it queues nothing.

use bdp_link::{DropCause, End, Link, Verdict};
use bdp_model::link::{DirectionConfig, Policer};
use bdp_model::units::{ByteCount, Nanos, Rate};

use crate::{assert_conserved, numbered, symmetric};

const GONE: Verdict = Verdict::dropped(DropCause::Policer);

fn link(rate_bps: u64, burst: u64) -> Link {
    let policer = Some(Policer { rate: Rate::bps(rate_bps), burst: ByteCount::bytes(burst) });
    Link::new(&symmetric(DirectionConfig { policer, ..DirectionConfig::default() }), 0)
}

#[test]
fn a_burst_passes_to_the_byte_and_the_bucket_fills_to_the_nanosecond() {
    // 8 Mbit/s: a byte each microsecond.
    let mut link = link(8_000_000, 15_000);
    let mut enter = |bytes: usize, now: u64| link.enqueue(End::A, numbered(0, bytes), Nanos(now));
    assert!((0..10).all(|_| enter(1_500, 0) == Verdict::QUEUED));
    assert_eq!(enter(8, 0), GONE);
    assert_eq!(enter(1_500, 1_499_999), GONE);
    // The dropped ones took nothing.
    assert_eq!(enter(1_500, 1_500_000), Verdict::QUEUED);
    assert_eq!(enter(8, 1_507_999), GONE);
    assert_eq!(enter(8, 1_508_000), Verdict::QUEUED);
    // An hour fills it, and no more than that.
    let hour = 3_600_000_000_000;
    assert!((0..10).all(|_| enter(1_500, hour) == Verdict::QUEUED));
    assert_eq!(enter(8, hour), GONE);
    assert_eq!(enter(15_001, 2 * hour), GONE);
    assert_eq!(enter(15_000, 2 * hour), Verdict::QUEUED);
    assert_eq!(link.counters(End::A).policer_dropped, 5);
    assert_conserved(&link);
}

#[test]
fn in_the_long_run_the_rate_passes_and_the_burst() {
    for rate_bps in [999_983, 10_000_000, 77_777_777] {
        let (burst, bytes) = (32_768u64, 1_000usize);
        let mut link = link(rate_bps, burst);
        // Twice the rate for 200,000 packets, each passing at once where it passes.
        let gap = 8_000 * 1_000_000_000 / rate_bps / 2;
        let mut passed = 0u64;
        let mut now = Nanos::ZERO;
        for n in 0..200_000 {
            now = Nanos(n * gap);
            let verdict = link.enqueue(End::A, numbered(n, bytes), now);
            if verdict == Verdict::QUEUED {
                passed += bytes as u64;
                assert_eq!(link.pop(now).map(|d| d.due), Some(now));
            } else {
                assert_eq!(verdict, GONE);
            }
        }
        let allowed = burst as f64 + rate_bps as f64 / 8.0 * now.as_secs_f64();
        assert!(passed as f64 <= allowed, "{passed} of {allowed}");
        assert!(passed as f64 > allowed - bytes as f64 * 1.01, "{passed} of {allowed}");
    }
}

#[test]
fn a_clock_that_runs_backwards_fills_nothing() {
    let mut link = link(8_000_000, 100);
    let mut enter = |now: u64| link.enqueue(End::A, numbered(0, 100), Nanos(now));
    assert_eq!(enter(1_000_000_000), Verdict::QUEUED);
    assert_eq!(enter(0), GONE);
    assert_eq!(enter(1_000_099_999), GONE);
    assert_eq!(enter(1_000_100_000), Verdict::QUEUED);
    assert_eq!(enter(u64::MAX), Verdict::QUEUED);
}

#[test]
fn longer_packets_than_pass_vanish_before_anything_else_sees_them() {
    let policer = Some(Policer { rate: Rate::bps(1), burst: ByteCount::bytes(2_000) });
    let direction = DirectionConfig { drop_above: Some(1_400), policer, ..DirectionConfig::default() };
    let mut link = Link::new(&symmetric(direction), 0);
    for _ in 0..5 {
        assert_eq!(link.enqueue(End::A, numbered(0, 1_401), Nanos::ZERO), Verdict::dropped(DropCause::Size));
    }
    assert_eq!(link.enqueue(End::A, numbered(0, 1_400), Nanos::ZERO), Verdict::QUEUED);
    assert_eq!((link.counters(End::A).size_dropped, link.counters(End::A).policer_dropped), (5, 0));
    assert_conserved(&link);
}
