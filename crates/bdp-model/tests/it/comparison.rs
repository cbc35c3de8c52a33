//! Comparisons: known values, few values, ties, and how often the interval holds the truth.

use bdp_model::statistics::comparison::{Better, Comparison, Interval, Regression, Verdict};

fn compare(a: &[f64], b: &[f64]) -> Comparison {
    Comparison::of(a, b, Better::Higher).unwrap()
}

#[test]
fn a_clear_gain_is_better_and_the_same_gain_of_a_round_trip_is_worse() {
    let a = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];
    let b = a.map(|value| value + 50.0);
    let c = compare(&a, &b);
    assert_eq!((c.difference, c.effect, c.verdict), (50.0, Some(0.5), Verdict::Better));
    assert_eq!((c.a.n, c.a.p50, c.b.p50), (7, 100.0, 150.0));
    let interval = c.difference_interval.unwrap();
    // Of seven all that they span: 149 - 101 to 151 - 99, each side with 1 - 2/128.
    assert_eq!((interval.low, interval.high), (48.0, 52.0));
    assert!((interval.confidence - (1.0f64 - 2.0 / 128.0).powi(2)).abs() < 1e-12, "{interval:?}");
    let interval = c.effect_interval.unwrap();
    assert_eq!((interval.low, interval.high), (149.0 / 101.0 - 1.0, 151.0 / 99.0 - 1.0));
    let c = Comparison::of(&a, &b, Better::Lower).unwrap();
    assert_eq!(c.verdict, Verdict::Worse);
    assert!(c.regressed(0.05) && c.regressed(0.49) && !c.regressed(0.51));
    assert!(!compare(&a, &b).regressed(0.0), "a gain is no regression");
}

#[test]
fn sets_that_overlap_show_no_difference() {
    let c = compare(&[98.0, 100.0, 102.0, 104.0, 96.0, 100.0], &[99.0, 101.0, 103.0, 97.0, 100.0, 100.0]);
    assert_eq!((c.verdict, c.effect), (Verdict::NoDifferenceShown, Some(0.0)));
    assert!(!c.regressed(0.0));
}

#[test]
fn fewer_than_six_runs_on_a_side_claim_nothing() {
    for (m, n) in [(1, 1), (2, 2), (2, 5), (3, 3), (5, 5), (5, 100), (100, 5)] {
        let c = compare(&vec![100.0; m], &vec![50.0; n]);
        assert_eq!((c.effect, c.effect_interval, c.difference_interval), (Some(-0.5), None, None), "{m} {n}");
        assert_eq!(c.verdict, Verdict::TooFewRuns);
        assert!(!c.regressed(0.05), "{m} and {n} runs show nothing");
    }
    let of = |m, n| {
        let c = compare(&vec![100.0; m], &vec![50.0; n]);
        assert_eq!(c.verdict, Verdict::Worse);
        c.effect_interval.unwrap().confidence
    };
    // (1 - 2/64)^2, and 95 % from 6 and 7 on.
    assert!((of(6, 6) - 0.938_476_562_5).abs() < 1e-12);
    for (m, n) in [(6, 7), (7, 6), (7, 7), (6, 100), (20, 20), (1000, 1000)] {
        assert!((0.95..1.0).contains(&of(m, n)), "{m} {n}: {}", of(m, n));
    }
}

#[test]
fn the_interval_does_not_depend_on_which_side_is_first() {
    let (a, b) = (Draws(1).of(Shape::Normal, 6, 1.0), Draws(2).of(Shape::Normal, 11, 4.0));
    let (ab, ba) =
        (compare(&a, &b).difference_interval.unwrap(), compare(&b, &a).difference_interval.unwrap());
    assert_eq!((ab.low, ab.high, ab.confidence), (-ba.high, -ba.low, ba.confidence));
}

#[test]
fn an_interval_that_holds_a_regression_and_none_is_inconclusive() {
    let regression = |a: &[f64], b: &[f64]| compare(a, b).regression(Better::Higher, 0.05);
    let steady = [100.0, 101.0, 99.0, 100.0, 100.0, 100.0];
    // The median hardly moved, and one of the runs nearly came to nothing.
    let wild = [99.6, 11.0, 99.6, 103.0, 99.6, 99.6];
    let c = compare(&steady, &wild);
    assert_eq!(c.verdict, Verdict::NoDifferenceShown);
    assert_eq!(regression(&steady, &wild), Regression::Inconclusive);
    assert_eq!(regression(&steady, &steady), Regression::None);
    assert_eq!(regression(&steady, &steady.map(|v| v * 0.8)), Regression::Regressed);
    assert_eq!(regression(&steady, &steady.map(|v| v * 1.5)), Regression::None);
    assert_eq!(regression(&steady[..5], &steady), Regression::Unknown);
    // Worse for sure by less than the threshold, and maybe by more.
    let (a, b) = ([100.0, 102.0, 98.0, 100.0, 100.0, 100.0], [97.0, 95.0, 97.5, 97.0, 97.0, 97.0]);
    assert_eq!(compare(&a, &b).verdict, Verdict::Worse);
    assert_eq!(regression(&a, &b), Regression::Inconclusive);
    // Of round trips more is worse.
    let c = Comparison::of(&steady, &wild.map(|v| 200.0 - v), Better::Lower).unwrap();
    assert_eq!(c.regression(Better::Lower, 0.05), Regression::Inconclusive);
    // Without a ratio any change for the worse is one.
    let none = [0.0; 6];
    let c = Comparison::of(&none, &[0.0, 0.0, 0.0, 0.0, 0.0, 3.0], Better::Lower).unwrap();
    assert_eq!(c.regression(Better::Lower, 0.05), Regression::Inconclusive);
    assert_eq!(
        Comparison::of(&none, &none, Better::Lower).unwrap().regression(Better::Lower, 0.05),
        Regression::None
    );
}

#[test]
fn a_difference_too_small_to_matter_is_none() {
    let a = [1000.0, 1000.01, 999.99, 1000.0, 1000.0, 1000.0];
    let c = compare(&a, &a.map(|v| v - 0.1));
    assert!(c.effect_interval.unwrap().high < 0.0);
    assert_eq!(c.verdict, Verdict::NoDifferenceShown);
    let c = compare(&a, &a.map(|v| v - 1.0));
    assert_eq!(c.verdict, Verdict::Worse);
}

#[test]
fn without_noise_one_run_on_each_side_shows_the_difference() {
    let exact = |a: &[f64], b: &[f64]| Comparison::of_exact(a, b, Better::Higher).unwrap();
    let c = exact(&[100.0], &[75.0]);
    assert_eq!((c.exact, c.verdict, c.effect), (true, Verdict::Worse, Some(-0.25)));
    let interval = c.difference_interval.unwrap();
    assert_eq!((interval.low, interval.high, interval.confidence), (-25.0, -25.0, 1.0));
    assert_eq!(c.regression(Better::Higher, 0.05), Regression::Regressed);
    assert_eq!(c.regression(Better::Higher, 0.3), Regression::None);
    let same = exact(&[100.0], &[100.0]);
    assert_eq!(
        (same.verdict, same.regression(Better::Higher, 0.05)),
        (Verdict::NoDifferenceShown, Regression::None)
    );
    // Repetition by repetition: seeds move both sides together.
    let c = exact(&[100.0, 50.0, 75.0], &[99.0, 49.0, 74.0]);
    assert_eq!((c.verdict, c.difference_interval.unwrap().high), (Verdict::Worse, -1.0));
    // Unlike numbers of them are bounded by the extremes.
    let c = exact(&[100.0, 110.0], &[90.0]);
    let interval = c.difference_interval.unwrap();
    assert_eq!((interval.low, interval.high, c.verdict), (-20.0, -10.0, Verdict::Worse));
    // Differences both ways are decided by their interval, where there are runs enough.
    let c = exact(&[100.0, 50.0], &[90.0, 60.0]);
    assert_eq!((c.exact, c.regression(Better::Higher, 0.05)), (true, Regression::Inconclusive));
    let (a, b) = ([10.0, 11.0, 9.0, 10.0, 10.5, 9.5, 12.0], [20.0, 21.0, 19.0, 20.0, 20.5, 19.5, 11.0]);
    let c = exact(&a, &b);
    assert_eq!(c, compare(&a, &b));
}

#[test]
fn ties_are_no_difference_and_constants_that_differ_are_one() {
    let c = compare(&[941.0; 6], &[941.0; 6]);
    assert_eq!((c.effect, c.verdict), (Some(0.0), Verdict::NoDifferenceShown));
    let interval = c.effect_interval.unwrap();
    assert_eq!((interval.low, interval.high), (0.0, 0.0));
    let c = compare(&[100.0; 6], &[90.0; 6]);
    assert_eq!(c.verdict, Verdict::Worse);
    let interval = c.difference_interval.unwrap();
    assert_eq!((interval.low, interval.high), (-10.0, -10.0));
}

#[test]
fn where_a_value_is_zero_there_is_a_difference_and_no_ratio() {
    let c =
        Comparison::of(&[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], &[10.0, 12.0, 9.0, 11.0, 10.0, 11.0], Better::Lower)
            .unwrap();
    assert_eq!((c.effect, c.effect_interval, c.difference), (None, None, 10.5));
    assert_eq!(c.verdict, Verdict::Worse);
    assert!(c.regressed(0.05));
}

#[test]
fn what_is_not_finite_is_left_out_and_nothing_compares_with_nothing() {
    let c = compare(&[f64::NAN, 100.0, f64::INFINITY], &[100.0, 100.0]);
    assert_eq!((c.a.n, c.b.n), (1, 2));
    assert!(Comparison::of(&[], &[1.0], Better::Higher).is_none());
    assert!(Comparison::of(&[1.0], &[f64::NAN], Better::Higher).is_none());
}

/// Simulated comparisons of each kind.
const DRAWS: u64 = 2_000;

/// How often the interval holds the true difference of the medians, over shapes, unlike spreads and unlike numbers of runs:
/// never less than it says, less three standard deviations of the simulation. `docs/compare.md` has the smallest share of the table
/// that `cargo test -p bdp-model --test it -- --nocapture comparison::coverage` prints.
#[test]
fn coverage_is_what_the_interval_says_whatever_the_spreads() {
    let mut random = Draws(7);
    println!("| runs | says | normal | lognormal | exponential | two paths |\n|---|---|---|---|---|---|");
    for (m, n) in [(6, 6), (6, 7), (7, 7), (6, 20), (10, 10), (10, 40), (30, 30)] {
        let mut says = 0.0;
        let mut row = String::new();
        for shape in [Shape::Normal, Shape::Lognormal, Shape::Exponential, Shape::TwoPaths] {
            let mut least = 1.0f64;
            for (spread_a, spread_b) in [(1.0, 1.0), (1.0, 10.0), (10.0, 1.0), (1.0, 1000.0), (1000.0, 1.0)] {
                let mut held = 0;
                for _ in 0..DRAWS {
                    let (a, b) = (random.of(shape, m, spread_a), random.of(shape, n, spread_b));
                    let interval = compare(&a, &b).difference_interval.unwrap();
                    says = interval.confidence;
                    held += u64::from((interval.low..=interval.high).contains(&0.0));
                }
                least = least.min(held as f64 / DRAWS as f64);
            }
            let noise = 3.0 * (says * (1.0 - says) / DRAWS as f64).sqrt();
            assert!(least >= says - noise, "{m} and {n}, {shape:?}: says {says}, held {least}");
            row.push_str(&format!(" {:.1} |", least * 100.0));
        }
        println!("| {m} and {n} | {:.1} |{row}", says * 100.0);
    }
}

/// The ratio has the same bounds, so one holds where the other does.
#[test]
fn the_effect_has_the_coverage_of_the_difference() {
    let mut random = Draws(3);
    let mut held = 0;
    for _ in 0..DRAWS {
        // Medians of 100 and 90, one side ten times as wide.
        let a: Vec<f64> = random.of(Shape::Lognormal, 6, 0.02).iter().map(|x| 100.0 * (1.0 + x)).collect();
        let b: Vec<f64> = random.of(Shape::Lognormal, 8, 0.2).iter().map(|x| 90.0 * (1.0 + x)).collect();
        let c = compare(&a, &b);
        let interval = c.effect_interval.unwrap();
        assert_eq!(interval.low > 0.0, c.difference_interval.unwrap().low > 0.0);
        assert_eq!(interval.high < 0.0, c.difference_interval.unwrap().high < 0.0);
        held += u64::from((interval.low..=interval.high).contains(&-0.1));
    }
    assert!(held as f64 / DRAWS as f64 >= 0.95, "{held}");
}

/// Distributions with a median of 0.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Normal,
    /// Of a normal one with a deviation of 1.
    Lognormal,
    Exponential,
    /// Half of the runs on each of two paths: there is next to nothing at the median itself.
    TwoPaths,
}

/// Even numbers by Steele, Lea and Flood's SplitMix64.
struct Draws(u64);

impl Draws {
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let (u, v) = (self.even(), self.even());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn of(&mut self, shape: Shape, n: usize, spread: f64) -> Vec<f64> {
        (0..n)
            .map(|_| {
                spread
                    * match shape {
                        Shape::Normal => self.normal(),
                        Shape::Lognormal => self.normal().exp() - 1.0,
                        Shape::Exponential => -self.even().ln() - std::f64::consts::LN_2,
                        Shape::TwoPaths => {
                            let side = if self.even() < 0.5 { -1.0 } else { 1.0 };
                            side * (1.0 + 0.1 * self.even())
                        }
                    }
            })
            .collect()
    }
}

/// Known from tables of the binomial distribution: n, the rank of the lower bound, confidence.
#[test]
fn the_median_lies_between_order_statistics() {
    for (n, rank, confidence) in [
        (3, 1, 0.75),
        (5, 1, 0.9375),
        (6, 1, 0.96875),
        (8, 1, 0.9921875),
        (9, 2, 0.9609375),
        (10, 2, 0.978515625),
        (20, 6, 0.958610534667969),
        (100, 40, 0.964799799782),
    ] {
        // In no order.
        let mut values: Vec<f64> = (1..=n).map(f64::from).collect();
        values.reverse();
        let interval = Interval::of_median(&values).unwrap();
        assert_eq!((interval.low, interval.high), (f64::from(rank), f64::from(n + 1 - rank)), "{n}");
        assert!((interval.confidence - confidence).abs() < 1e-9, "{n}: {interval:?}");
    }
    assert_eq!(Interval::of_median(&[1.0, f64::NAN, 2.0]), None);
    // Far beyond 1 / 2^n as a number; normally distributed ranks: 5000 -+ 1.96 x 50.
    let many: Vec<f64> = (1..=10_000).map(f64::from).collect();
    let interval = Interval::of_median(&many).unwrap();
    assert!((4_900.0..4_905.0).contains(&interval.low) && interval.confidence >= 0.95, "{interval:?}");
}
