//! Reduction of readings that preserves outliers.

/// Readings, and how many original ones each pair represents.
pub(crate) struct Thinned {
    pub points: Vec<[f64; 2]>,
    /// 1 if none was omitted.
    pub stride: usize,
}

/// Returns about `most` of the points `[at, value]` or fewer: of each group of neighbours, the smallest and the largest in order,
/// so that no peak is lost.
pub(crate) fn thin(points: &[[f64; 2]], most: usize) -> Thinned {
    if points.len() <= most {
        return Thinned { points: points.to_vec(), stride: 1 };
    }
    let stride = (2 * points.len()).div_ceil(most.max(2));
    let mut kept = Vec::with_capacity(most);
    for group in points.chunks(stride) {
        let by_value = |a: &&[f64; 2], b: &&[f64; 2]| a[1].total_cmp(&b[1]);
        let (Some(low), Some(high)) = (group.iter().min_by(by_value), group.iter().max_by(by_value)) else {
            continue;
        };
        let (first, second) = if low[0] <= high[0] { (low, high) } else { (high, low) };
        kept.push(*first);
        if second != first {
            kept.push(*second);
        }
    }
    Thinned { points: kept, stride }
}

/// Returns the largest value of points.
pub(crate) fn largest(points: &[[f64; 2]]) -> f64 {
    points.iter().map(|point| point[1]).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_survives() {
        let mut points: Vec<[f64; 2]> = (0..10_000).map(|i| [f64::from(i), 1.0]).collect();
        points[7777][1] = 99.0;
        points[1234][1] = 0.1;
        let thinned = thin(&points, 300);
        assert!(thinned.points.len() <= 302, "{}", thinned.points.len());
        assert!(thinned.stride > 1);
        assert!(thinned.points.contains(&[7777.0, 99.0]) && thinned.points.contains(&[1234.0, 0.1]));
        assert!(thinned.points.windows(2).all(|p| p[0][0] <= p[1][0]));
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points = [[0.0, 1.0], [1.0, 2.0]];
        let thinned = thin(&points, 2);
        assert_eq!((thinned.points.as_slice(), thinned.stride), (&points[..], 1));
    }
}
