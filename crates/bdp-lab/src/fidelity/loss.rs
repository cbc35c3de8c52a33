//! Tolerance between the configured loss and a model's share of lost packets.

use bdp_model::link::Loss;

/// Largest acceptable difference between the lost share of this many packets and the configured one: five
/// standard deviations, and one packet because periodic loss is exact to one and few packets make no
/// distribution. For bursty loss it is one burst of a length that a million don't exceed.
pub(crate) fn tolerance(loss: &Loss, packets: u64, dropped_before: u64) -> f64 {
    let burst = match loss {
        Loss::GilbertElliott { to_good, .. } if to_good.fraction() > 0.0 => {
            6.0 * 10f64.ln() / to_good.fraction()
        }
        _ => 0.0,
    };
    share(loss.deviation(packets), packets, burst, dropped_before)
}

/// Tolerance if the standard deviation of the number of packets is known, and each is lost independently.
pub(crate) fn tolerance_of(deviation: f64, packets: u64, dropped_before: u64) -> f64 {
    share(deviation, packets, 0.0, dropped_before)
}

fn share(deviation: f64, packets: u64, burst: f64, dropped_before: u64) -> f64 {
    const SIGMAS: f64 = 5.0;
    // Packets dropped before, by size or in an outage, may have been lost too, and are not counted as such.
    let slack = 1.0 + burst + dropped_before as f64;
    ((SIGMAS * deviation + slack) / packets.max(1) as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use bdp_model::units::Probability;

    use super::*;

    #[test]
    fn loss_in_bursts_is_held_to_wider_bounds() {
        let share = |p| Probability::new(p).unwrap();
        let independent = Loss::Independent(share(0.04));
        let bursts = Loss::GilbertElliott {
            to_bad: share(0.01),
            to_good: share(0.24),
            loss_good: share(0.0),
            loss_bad: share(1.0),
        };
        let [alone, together] = [&independent, &bursts].map(|loss| tolerance(loss, 100_000, 0) * 100_000.0);
        // 5 x sqrt(100,000 x 0.04 x 0.96) + 1; the variance of bursts is (1 + 2 x 0.75 / 0.25) times as large.
        assert!((alone - 310.8).abs() < 0.1, "{alone}");
        assert!((together - (1.0 + 309.84 * 7f64.sqrt() + 57.6)).abs() < 0.2, "{together}");
        assert_eq!(tolerance(&Loss::List(vec![3]), 1000, 2), 0.003);
        assert_eq!(tolerance(&independent, 0, 0), 1.0);
    }
}
