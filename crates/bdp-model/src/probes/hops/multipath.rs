//! How many flows find all branches of a hop: the stopping rule of the multipath detection algorithm (B. Augustin, T. Friedman,
//! R. Teixeira, "Measuring load-balanced paths in the Internet", IMC 2007).
//!
//! Each flow is assumed to take one of a hop's branches with equal probability. With `k` branches seen after `n` flows, the hypothesis
//! of `k + 1` branches is rejected if `n` flows would have found them all with the requested confidence.

/// Required confidence that no further branch of a hop was missed.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the number of flows that exclude a further branch with [`CONFIDENCE`]: 6, 11, 16, 21, 27, ...
pub fn probes_needed(branches: u32) -> u32 {
    let enough = |&flows: &u32| missed(branches, flows) <= 1.0 - CONFIDENCE;
    (branches + 1..).find(enough).unwrap_or(u32::MAX)
}

/// The probability, 0..=1, that so many flows miss at least one of `branches + 1` branches: that `n` draws leave out at least one of `k`
/// equally likely values, by inclusion and exclusion.
pub fn missed(branches: u32, flows: u32) -> f64 {
    let all = f64::from(branches) + 1.0;
    let (mut chosen, mut sum) = (1.0, 0.0);
    for left_out in 1..=branches {
        let out = f64::from(left_out);
        chosen *= (all - out + 1.0) / out;
        let term = chosen * (1.0 - out / all).powi(i32::try_from(flows).unwrap_or(i32::MAX));
        sum += if left_out % 2 == 1 { term } else { -term };
    }
    sum.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_that_of_the_published_table() {
        let needed: Vec<u32> = (1..=16).map(probes_needed).collect();
        assert_eq!(needed, [6, 11, 16, 21, 27, 33, 38, 44, 51, 57, 63, 70, 76, 83, 90, 96]);
    }

    #[test]
    fn fewer_flows_leave_more_doubt() {
        // Two branches: two flows take the same one half of the time.
        assert_eq!(missed(1, 2), 0.5);
        assert_eq!(missed(1, 0), 1.0);
        assert!(missed(2, 10) > missed(2, 11));
    }
}
