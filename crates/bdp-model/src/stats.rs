//! Order statistics of samples.

/// The `p`-th percentile (0..=100) by linear interpolation between closest ranks; `None` of nothing.
/// Sorts `values`.
pub fn percentile(values: &mut [f64], p: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let rank = (p / 100.0).clamp(0.0, 1.0) * (values.len() - 1) as f64;
    let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
    Some(values[low] + (values[high] - values[low]) * (rank - low as f64))
}

/// The median; `None` of nothing. Sorts `values`.
pub fn median(values: &mut [f64]) -> Option<f64> {
    percentile(values, 50.0)
}

/// Round trips a minute, given some in nanoseconds: 60 s over their mean without the largest 5 %, the single-sided trimmed
/// mean of draft-ietf-ippm-responsiveness. `None` of nothing. Sorts `round_trips_ns`.
pub fn responsiveness_rpm(round_trips_ns: &mut [u64]) -> Option<f64> {
    round_trips_ns.sort_unstable();
    let kept = round_trips_ns.len() - round_trips_ns.len() / 20;
    let sum: u64 = round_trips_ns[..kept].iter().sum();
    (sum > 0).then(|| 60e9 * kept as f64 / sum as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responsiveness_leaves_the_slowest_twentieth_out() {
        assert_eq!(responsiveness_rpm(&mut []), None);
        assert_eq!(responsiveness_rpm(&mut [20_000_000]), Some(3000.0));
        // Nineteen of 30 ms, and one that is left out.
        let mut round_trips = [30_000_000; 20];
        round_trips[3] = 5_000_000_000;
        assert_eq!(responsiveness_rpm(&mut round_trips), Some(2000.0));
    }

    #[test]
    fn percentiles_interpolate() {
        let mut v = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&mut v), Some(2.5));
        assert_eq!(percentile(&mut v, 0.0), Some(1.0));
        assert_eq!(percentile(&mut v, 100.0), Some(4.0));
        assert_eq!(median(&mut []), None);
    }
}
