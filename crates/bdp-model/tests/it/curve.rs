//! Curves: the knee, ranges, delay and memory on the shape that was published for 1 Gbit/s x 2.55 ms.

use bdp_model::statistics::comparison::Values;
use bdp_model::sweep::curve::{
    Axis, Curve, DeliveryDelay, Fall, Knee, Memory, Need, Point, Range, Unmeasured, log_spaced, usual_points,
};

const RTT_NS: u64 = 2_550_000;
const CEILING_BPS: f64 = 941.48e6;
const MSS: u64 = 1448;

/// One stream or several of a window over the published path: W/RTT up to the ceiling; beyond it a queue.
fn point(window: u64, streams: u32) -> Point {
    let flight = window as f64 * f64::from(streams);
    let by_window = if window < MSS { 50e3 } else { flight * 8.0 / (RTT_NS as f64 / 1e9) };
    let queue_ns = (flight * 8.0 / CEILING_BPS * 1e9 - RTT_NS as f64).max(0.0) as u64;
    Point {
        asked: window.to_string(),
        x: window as f64,
        goodput_bps: Values::of(&[by_window.min(CEILING_BPS)]).unwrap(),
        not_counted: 0,
        expected_bps: None,
        streams,
        mss_bytes: Some(MSS),
        window_asked_bytes: Some(window),
        socket_buffer_bytes: Some(2 * window),
        on_the_wire_bytes: Some(window),
        rtt_idle_ns: Some(RTT_NS),
        rtt_idle_p95_ns: Some(RTT_NS + 40_000),
        rtt_loaded_p95_ns: Some(RTT_NS + 60_000 + queue_ns),
        retransmits: Some(0),
    }
}

fn windows() -> Curve {
    let points =
        [16_777_216, 576, 1000, 2896, 8192, 32_768, 131_072, 262_144, 319_000, 409_600, 655_360, 4_194_304];
    let points = points.into_iter().map(|w| point(w, 1)).collect();
    Curve::new("set-up I".into(), String::new(), Axis::WindowOnTheWire, Some(1_000_000_000), points)
}

#[test]
fn the_knee_of_the_published_curve_is_at_319_kb() {
    let curve = windows();
    assert!(curve.points.is_sorted_by(|a, b| a.x < b.x));
    let Some(Knee::At(knee)) = curve.knee() else { panic!("{:?}", curve.knee()) };
    assert_eq!(curve.points[knee].x, 319_000.0);
    let product = curve.product().unwrap();
    assert!((product.bytes - 318_750.0).abs() < 1.0, "{product:?}");
    // 319 kB / 2.55 ms is 1.0008 Gbit/s, above the ceiling: nothing is gained from there on.
    assert_eq!(curve.for_throughput(), Some(Range { from: knee, to: knee }));
    // Between 262144 and 319000 lies 289178.
    assert_eq!(curve.bend(1.1), Some(289_178.0));
    assert_eq!(curve.bend(1.3), None);
}

#[test]
fn latency_wants_a_few_packets_and_no_queue() {
    let curve = windows();
    let range = curve.for_latency().unwrap();
    // 2896 bytes are two segments, 8192 five; 319 kB already queue for 0.16 ms of the 0.25 that are allowed; 400 KiB for 0.9.
    assert_eq!((curve.points[range.from].x, curve.points[range.to].x), (8192.0, 319_000.0));
    let mut slow = windows();
    slow.points.iter_mut().for_each(|p| p.rtt_loaded_p95_ns = Some(9_000_000));
    assert_eq!(slow.for_latency(), None);
    slow.points.iter_mut().for_each(|p| p.rtt_loaded_p95_ns = None);
    assert_eq!(slow.for_latency(), None);
    let streams = Curve::new(String::new(), String::new(), Axis::Streams, None, windows().points);
    assert_eq!(streams.for_latency(), None);
}

#[test]
fn the_delivery_delay_is_high_below_a_packet_and_rises_beyond_the_knee() {
    let curve = windows();
    let at = |x: f64| curve.points.iter().find(|p| p.x == x).unwrap().delivery_delay().unwrap();
    // 8 x 576 / 50 kbit/s = 92.16 ms, less 2.55.
    assert_eq!(at(576.0), DeliveryDelay::Ns(89_610_000));
    for window in [2896.0, 32_768.0, 262_144.0] {
        assert_eq!(at(window), DeliveryDelay::BelowResolution, "{window}");
    }
    let mut before = 0;
    for window in [319_000.0, 409_600.0, 655_360.0, 4_194_304.0] {
        let DeliveryDelay::Ns(delay) = at(window) else { panic!("{window}") };
        assert!(delay > before, "{window}: {delay} after {before}");
        before = delay;
    }
    let mut silent = point(8192, 1);
    silent.goodput_bps = Values::of(&[0.0]).unwrap();
    assert_eq!(silent.delivery_delay(), None);
}

/// Goodput in Mbit/s over windows that double, from 1 KiB on, or over streams.
fn rising(axis: Axis, goodputs: &[f64]) -> Curve {
    let points = goodputs.iter().enumerate().map(|(i, &mbps)| {
        let mut p = point(1024 << i, 1);
        p.goodput_bps = Values::of(&[mbps * 1e6]).unwrap();
        p
    });
    Curve::new(String::new(), String::new(), axis, None, points.collect())
}

#[test]
fn data_that_falls_where_it_must_rise_has_no_knee() {
    let of = |goodputs: &[f64]| rising(Axis::WindowAsked, goodputs);
    for (goodputs, from, to) in [
        (&[10.0, 50.0, 20.0, 30.0, 80.0, 90.0][..], 1, 2),
        (&[100.0, 20.0, 30.0, 90.0, 95.0], 0, 1),
        (&[100.0, 60.0, 40.0, 30.0], 0, 1),
    ] {
        let curve = of(goodputs);
        assert_eq!(curve.fall(), Some(Fall { from, to }), "{goodputs:?}");
        assert_eq!((curve.knee(), curve.for_throughput(), curve.knee_interval()), (None, None, None));
        assert_eq!(Memory::of(std::slice::from_ref(&curve)), None);
    }
    // Noise below the knee, one unlucky point beyond it, and what falls back and stays there are curves.
    for goodputs in [
        &[10.0, 50.0, 45.0, 80.0, 90.0][..],
        &[25.0, 100.0, 60.0, 100.0],
        &[25.0, 100.0, 98.0, 40.0],
        &[95.0, 100.0, 98.0, 40.0],
    ] {
        assert_eq!(of(goodputs).fall(), None, "{goodputs:?}");
        assert!(of(goodputs).knee().is_some(), "{goodputs:?}");
    }
    // One stream may be the best of all.
    assert_eq!(rising(Axis::Streams, &[100.0, 60.0, 40.0, 30.0]).knee(), Some(Knee::Below));
}

/// The published path at 8, 64 and 256 KiB and 1 MiB, as far as these have a valid run.
fn four_windows(valid: impl Fn(u64) -> bool) -> Curve {
    let windows = [8 << 10, 64 << 10, 256 << 10, 1 << 20];
    let (valid, vain): (Vec<u64>, Vec<u64>) = windows.into_iter().partition(|&w| valid(w));
    let vain = vain.into_iter().map(|w| Unmeasured { asked: w.to_string(), x: w as f64, runs: 4 });
    let points = valid.into_iter().map(|w| point(w, 1)).collect();
    Curve::new(String::new(), String::new(), Axis::WindowOnTheWire, Some(1_000_000_000), points)
        .with_unmeasured(vain.collect())
}

#[test]
fn the_largest_value_is_the_knee_where_it_fills_the_path() {
    let mut curve = four_windows(|_| true);
    assert_eq!(curve.knee(), Some(Knee::At(3)), "941 Mbit/s of 1 Gbit/s: nothing rises any more");
    assert_eq!(curve.for_throughput(), Some(Range { from: 3, to: 3 }));
    assert!(Memory::of(std::slice::from_ref(&curve)).is_some());
    // Of ten times the rate, or of one that nobody knows, it is not.
    for rate in [Some(10_000_000_000), None] {
        curve.rate_bps = rate;
        assert_eq!(curve.knee(), Some(Knee::Above));
        assert_eq!(Memory::of(std::slice::from_ref(&curve)), None, "there is no plateau");
    }
}

#[test]
fn a_curve_whose_larger_values_were_tried_in_vain_may_go_on() {
    let curve = four_windows(|w| w < 1 << 20);
    assert!(curve.may_go_on());
    assert_eq!(Memory::of(std::slice::from_ref(&curve)), None);
    // What is missing below the largest changes nothing there.
    let curve = four_windows(|w| w != 64 << 10);
    assert!(!curve.may_go_on() && curve.unmeasured.len() == 1);
    assert!(Memory::of(std::slice::from_ref(&curve)).is_some());
}

#[test]
fn the_ends_of_a_sweep_are_no_knee() {
    let of = |goodputs: &[f64]| {
        let points = goodputs.iter().enumerate().map(|(i, &g)| {
            let mut p = point(1024 << i, 1);
            p.goodput_bps = Values::of(&[g]).unwrap();
            p
        });
        Curve::new(String::new(), String::new(), Axis::WindowAsked, None, points.collect())
    };
    assert_eq!(of(&[25e6, 50e6, 94.9e6, 100e6, 100e6]).knee(), Some(Knee::At(3)));
    // Not of the luckiest point: 94.9, 95 and 100 are a plateau of 95.
    assert_eq!(of(&[25e6, 50e6, 94.9e6, 95e6, 100e6]).knee(), Some(Knee::At(2)));
    assert_eq!(of(&[25e6, 100e6, 60e6, 100e6]).knee(), Some(Knee::At(1)));
    assert_eq!(of(&[99e6, 100e6, 98e6, 98e6]).knee(), Some(Knee::Below));
    assert_eq!(of(&[1e6, 2e6, 4e6, 8e6]).knee(), Some(Knee::Above));
    assert_eq!(of(&[1e6, 2e6, 4e6, 8e6]).for_throughput(), None);
    assert_eq!(of(&[1e6, 8e6, 8e6]).knee(), None, "three points are no curve");
    // From 95 % of the plateau of 100 to 99 % of it.
    let wide = of(&[25e6, 95e6, 97e6, 99e6, 100e6, 100e6, 100e6, 100e6]);
    assert_eq!(wide.for_throughput(), Some(Range { from: 1, to: 3 }));
    assert_eq!(of(&[99e6, 100e6, 98e6, 98e6]).for_throughput(), Some(Range { from: 0, to: 0 }));
    let congestion = Curve { axis: Axis::Congestion, ..of(&[25e6, 95e6, 97e6, 99e6, 100e6]) };
    assert_eq!((congestion.knee(), congestion.for_throughput()), (None, None));
}

#[test]
fn the_memory_of_one_fitting_window_stands_beside_that_of_parallel_streams() {
    // Measured, both: 319 kB against 6 streams of 57344 (JPerf's 56 KiB) on the wire.
    let streams = Curve::new(
        String::new(),
        String::new(),
        Axis::Streams,
        None,
        (1..=20).map(|n| Point { x: f64::from(n), ..point(57_344, n) }).collect(),
    );
    let memory = Memory::of(&[windows(), streams.clone()]).unwrap();
    assert_eq!(
        memory.one,
        Need { streams: 1, window_bytes: 319_000, buffer_bytes: Some(638_000), measured: true }
    );
    assert_eq!(
        memory.parallel,
        Need { streams: 5, window_bytes: 57_344, buffer_bytes: Some(573_440), measured: true },
        "5 x 57344 = 286720 = 0.9 Gbit/s is 95 % of the ceiling"
    );
    // With windows alone the streams are calculated: 319000 / 8192 = 38.9.
    let memory = Memory::of(&[windows()]).unwrap();
    assert_eq!(
        memory.parallel,
        Need { streams: 39, window_bytes: 8192, buffer_bytes: Some(39 * 16_384), measured: false }
    );
    // With streams alone the window is: best goodput x RTT.
    let memory = Memory::of(&[streams]).unwrap();
    assert!(!memory.one.measured && memory.parallel.measured);
    assert_eq!(memory.one.window_bytes, 300_096);
    assert_eq!(Memory::of(&[]), None);
    // A path that is slower has needs of its own.
    let mut slow = windows();
    slow.path = "slow".into();
    slow.points.iter_mut().for_each(|p| p.goodput_bps = Values::of(&[p.goodput_bps.p50.min(90e6)]).unwrap());
    let both = Memory::by_path(&[windows(), slow]);
    assert_eq!((both[0].1.one.window_bytes, both[1].1.one.window_bytes), (319_000, 32_768));
}

#[test]
fn ranges_are_filled_by_factors() {
    assert_eq!(log_spaced(4096, 65_536, 5), [4096, 8192, 16_384, 32_768, 65_536]);
    assert_eq!(log_spaced(1, 4, 20), [1, 2, 3, 4]);
    assert_eq!(log_spaced(64, 1, 3), [64, 8, 1]);
    assert_eq!(log_spaced(7, 9, 1), [7]);
    assert_eq!(usual_points(4096, 64 << 20), 15);
    assert_eq!((usual_points(1, 2), usual_points(1, u64::MAX)), (5, 17));
}

#[test]
fn a_window_that_nobody_asked_for_explains_nothing() {
    let mut curve = windows();
    assert!(curve.points[3].delivery_delay().is_some());
    assert!(Memory::of(std::slice::from_ref(&curve)).is_some());
    curve.points.iter_mut().for_each(|p| p.window_asked_bytes = None);
    assert_eq!(curve.points[3].delivery_delay(), None);
    // Nor is a smaller one known that parallel streams could have.
    assert_eq!(Memory::of(&[curve]), None);
}

/// A window over 1 Gbit/s and 2.55 ms, each point with noise of this share, from SplitMix64 and Box and Muller.
fn noisy(seed: u64, share: f64) -> Curve {
    let mut state = seed;
    let mut even = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    let points = WINDOWS.map(|window| {
        let normal = (-2.0 * even().ln()).sqrt() * (std::f64::consts::TAU * even()).cos();
        let mut point = point(window, 1);
        point.goodput_bps = Values::of(&[point.goodput_bps.p50 * (1.0 + share * normal)]).unwrap();
        point
    });
    Curve::new(String::new(), String::new(), Axis::WindowOnTheWire, None, points.into())
}

/// 285 kB has 95 % of the ceiling, so that 290 kB is the knee.
const WINDOWS: [u64; 16] = [
    16_384, 32_768, 65_536, 131_072, 200_000, 262_144, 290_000, 320_000, 400_000, 500_000, 600_000, 800_000,
    1_000_000, 1_400_000, 2_000_000, 4_000_000,
];

/// The best of many noisy points is too high by twice their noise; the plateau is not.
#[test]
fn the_plateau_is_no_higher_for_being_noisy() {
    for share in [0.01, 0.03, 0.05] {
        let (mut plateau, mut best) = (0.0, 0.0);
        for seed in 0..2_000 {
            let curve = noisy(seed, share);
            plateau += curve.plateau().bps / CEILING_BPS / 2_000.0;
            best += curve.best_bps() / CEILING_BPS / 2_000.0;
        }
        assert!((plateau - 1.0).abs() < 0.35 * share, "{share}: {plateau}");
        assert!(best > 1.0 + 1.2 * share, "{share}: {best}");
    }
}

/// The true knee, 290 kB, lies in its interval at least as often as it says, less the noise of 2,000 draws.
#[test]
fn the_interval_of_the_knee_holds_it() {
    for share in [0.002, 0.01, 0.02, 0.03, 0.05] {
        let (mut held, mut said) = (0, 0);
        for seed in 0..2_000 {
            let Some(interval) = noisy(seed, share).knee_interval() else { continue };
            said += 1;
            let above = interval.above.is_none_or(|above| above < 290_000.0);
            held += u32::from(above && interval.up_to.is_none_or(|up_to| up_to >= 290_000.0));
        }
        let held = f64::from(held) / f64::from(said);
        assert!(said > 1_800 && held > 0.9 - 0.02, "{share}: {held} of {said}");
    }
    let exact = noisy(1, 0.0).knee_interval().unwrap();
    // 290 kB has 97 % of the plateau, which counts as scatter.
    assert_eq!((exact.above, exact.up_to), (Some(262_144.0), Some(320_000.0)));
}
