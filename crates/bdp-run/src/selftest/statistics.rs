//! Statistical tests of random draws. A correct emulator fails each of these for one seed in a thousand.

/// Quantile of the standard normal distribution, exceeded in one case in a thousand.
pub(super) const Z: f64 = 3.29;
/// Quantile of Kolmogorov's distribution, exceeded in one case in a thousand.
const KOLMOGOROV: f64 = 1.95;

/// Returns the distance of `k` out of `n` from a probability, in standard deviations.
pub(super) fn z_of_share(k: u64, n: u64, p: f64) -> f64 {
    let (k, n) = (k as f64, n as f64);
    (k - n * p) / (n * p * (1.0 - p)).sqrt().max(f64::MIN_POSITIVE)
}

/// Returns the distance of two shares, in standard deviations.
pub(super) fn z_of_two(k: [u64; 2], n: [u64; 2]) -> f64 {
    let [(k1, n1), (k2, n2)] = [(k[0] as f64, n[0] as f64), (k[1] as f64, n[1] as f64)];
    let pooled = (k1 + k2) / (n1 + n2).max(1.0);
    let deviation = (pooled * (1.0 - pooled) * (1.0 / n1 + 1.0 / n2)).sqrt();
    if deviation == 0.0 { 0.0 } else { (k1 / n1 - k2 / n2) / deviation }
}

/// Returns the distance of the mean of run lengths from that of a geometric distribution with this mean, in standard
/// deviations.
pub(super) fn z_of_runs(runs: &[u64], mean: f64) -> f64 {
    let n = runs.len() as f64;
    let measured = runs.iter().sum::<u64>() as f64 / n.max(1.0);
    (measured - mean) / (mean * (mean - 1.0) / n.max(1.0)).sqrt().max(f64::MIN_POSITIVE)
}

/// Returns the largest distance of a sample from the uniform distribution over a range (Kolmogorov-Smirnov), and its
/// bound.
pub(super) fn from_even(values: &[u64], low: u64, high: u64) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let n = sorted.len() as f64;
    let width = (high - low).max(1) as f64;
    let mut most: f64 = 0.0;
    for (value, below) in sorted.iter().zip(0u32..) {
        let at = (value.saturating_sub(low) as f64 / width).min(1.0);
        most = most.max((at - f64::from(below) / n).abs()).max((f64::from(below + 1) / n - at).abs());
    }
    (most, KOLMOGOROV / n.sqrt())
}

/// Returns the largest distance between two samples (Kolmogorov-Smirnov), and its bound.
pub(super) fn apart(a: &[u64], b: &[u64]) -> (f64, f64) {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    a.sort_unstable();
    b.sort_unstable();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let share = |sorted: &[u64], value: u64| sorted.partition_point(|&v| v <= value) as f64;
    let most = a.iter().chain(&b).map(|&v| (share(&a, v) / n - share(&b, v) / m).abs()).fold(0.0, f64::max);
    (most, KOLMOGOROV * ((n + m) / (n * m)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_samples_pass_and_wrong_ones_do_not() {
        assert!(z_of_share(105, 10_000, 0.01).abs() < Z && z_of_share(150, 10_000, 0.01) > Z);
        assert!(z_of_two([100, 110], [10_000, 10_000]).abs() < Z);
        assert!(z_of_two([100, 200], [10_000, 10_000]).abs() > Z);
        assert_eq!(z_of_two([0, 0], [10, 10]), 0.0);
        let even: Vec<u64> = (0..1000).map(|i| 500 + i * 7 % 1000).collect();
        let (off, bound) = from_even(&even, 500, 1500);
        assert!(off <= bound, "{off} {bound}");
        let (off, bound) = from_even(&even, 500, 1400);
        assert!(off > bound, "{off} {bound}");
        let shifted: Vec<u64> = even.iter().map(|v| v + 100).collect();
        assert!(apart(&even, &even).0 == 0.0);
        let (off, bound) = apart(&even, &shifted);
        assert!(off > bound, "{off} {bound}");
        assert!(z_of_runs(&[1, 1, 2, 1, 1, 1, 1, 1, 2], 1.2).abs() < 1.0);
        assert!(z_of_runs(&[3; 100], 1.2) > Z);
    }
}
