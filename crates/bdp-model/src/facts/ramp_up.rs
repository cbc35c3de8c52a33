//! Detects slow start at the beginning of a flow, by its effect on the goodput.

use crate::finding::threshold::REACHED;
use crate::record::ReceiverSample;
use crate::units::Nanos;

/// Fewest intervals for an estimate of the later rate.
const LEAST_INTERVALS: usize = 10;

/// Slow start of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RampUp {
    /// Time from the first byte to the start of the first interval at 90 % of the later rate.
    pub took: Nanos,
    /// Goodput after that, bit/s.
    pub goodput_after_bps: f64,
}

impl RampUp {
    /// Detects it in a flow's samples if nothing was omitted. The later rate is the median of the second half of the intervals.
    /// `None` if the first interval is already at that rate, or if there are too few intervals.
    pub fn of(samples: &[ReceiverSample], omit_ns: u64) -> Option<Self> {
        if omit_ns > 0 {
            return None;
        }
        let rates: Vec<f64> = samples
            .windows(2)
            .filter(|pair| pair[1].at_ns > pair[0].at_ns)
            .map(|pair| {
                (pair[1].bytes - pair[0].bytes.min(pair[1].bytes)) as f64 * 8e9
                    / (pair[1].at_ns - pair[0].at_ns) as f64
            })
            .collect();
        if rates.len() < LEAST_INTERVALS || rates.len() + 1 != samples.len() {
            return None;
        }
        let mut later = rates[rates.len() / 2..].to_vec();
        later.sort_by(f64::total_cmp);
        let steady_bps = later[later.len() / 2];
        let first = rates.iter().position(|&rate| rate >= REACHED * steady_bps).filter(|&index| index > 0)?;
        let (from, last) = (&samples[first], samples.last()?);
        let seconds = last.at_ns.checked_sub(from.at_ns).filter(|&ns| ns > 0)? as f64 / 1e9;
        Some(Self {
            took: Nanos(from.at_ns),
            goodput_after_bps: last.bytes.checked_sub(from.bytes)? as f64 * 8.0 / seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples every 100 ms of these rates, in Mbit/s.
    fn readings(rates: &[u64]) -> Vec<ReceiverSample> {
        let mut samples = vec![ReceiverSample::default()];
        for (i, rate) in rates.iter().enumerate() {
            let bytes = samples[i].bytes + rate * 12_500;
            samples.push(ReceiverSample { at_ns: (i as u64 + 1) * 100_000_000, bytes, ..Default::default() });
        }
        samples
    }

    #[test]
    fn a_rate_that_doubles_until_it_stands() {
        let start =
            RampUp::of(&readings(&[10, 20, 40, 80, 100, 100, 98, 102, 100, 100, 100, 100]), 0).unwrap();
        assert_eq!(start.took, Nanos::millis(400));
        assert!((start.goodput_after_bps - 100e6).abs() < 1.0, "{start:?}");
    }

    #[test]
    fn nothing_is_told_of_a_flow_that_is_at_its_rate_at_once_or_too_short_or_cut() {
        assert_eq!(RampUp::of(&readings(&[100; 12]), 0), None);
        assert_eq!(RampUp::of(&readings(&[10, 100, 100, 100]), 0), None);
        assert_eq!(
            RampUp::of(&readings(&[10, 20, 40, 80, 100, 100, 98, 102, 100, 100, 100]), 1_000_000_000),
            None
        );
        assert_eq!(RampUp::of(&[], 0), None);
    }
}
