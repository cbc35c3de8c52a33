//! A path that changed during the measurement: a new rate or a new length from some moment on.

use super::Facts;
use super::derived::stretches;
use crate::probes::ProbePoint;
use crate::record::ReceiverSample;
use crate::statistics::{median, percentile};
use crate::units::Nanos;

/// A level before and after a moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The moment, since the flow's first byte.
    pub at: Nanos,
    /// Median before it.
    pub before: f64,
    /// Median after it.
    pub after: f64,
    /// Distance of the two levels / deviation of the values from their own level, by the larger median: even growth gives 4.
    pub clearness: f64,
}

impl Step {
    /// Finds the moment that best separates the values into two sustained levels; `None` if there are too few, or no levels.
    /// The values must be in order of time.
    pub fn of(values: &[(u64, f64)]) -> Option<Self> {
        /// Smallest number of values in a level.
        const LEAST: usize = 8;
        if values.len() < 2 * LEAST {
            return None;
        }
        // The split with the least squares around the two means (one change point, binary segmentation).
        let total: f64 = values.iter().map(|v| v.1).sum();
        let (mut before, mut best) = (0.0, None::<(f64, usize)>);
        for (i, value) in values.iter().enumerate() {
            if (LEAST..=values.len() - LEAST).contains(&i) {
                let (n, m) = (i as f64, (values.len() - i) as f64);
                let gain = before * before / n + (total - before).powi(2) / m;
                if best.is_none_or(|(most, _)| gain > most) {
                    best = Some((gain, i));
                }
            }
            before += value.1;
        }
        let (_, split) = best?;
        let level = |part: &[(u64, f64)]| median(&mut part.iter().map(|v| v.1).collect::<Vec<_>>());
        let (left, right) = values.split_at(split);
        let (before, after) = (level(left)?, level(right)?);
        let scatter = |part: &[(u64, f64)], level: f64| {
            median(&mut part.iter().map(|v| (v.1 - level).abs()).collect::<Vec<_>>()).unwrap_or(0.0)
        };
        // The resolution of the samples.
        let least = 0.005 * before.max(after);
        let scatter = scatter(left, before).max(scatter(right, after)).max(least);
        let clearness = if scatter > 0.0 { (after - before).abs() / scatter } else { 0.0 };
        Some(Self { at: Nanos(right[0].0), before, after, clearness })
    }

    /// The smaller level / the larger one.
    pub fn ratio(&self) -> f64 {
        let (small, large) = (self.before.min(self.after), self.before.max(self.after));
        if large > 0.0 { small / large } else { 1.0 }
    }
}

impl Facts {
    /// A step in the rate of arrival, over stretches of two round trips or more after slow start.
    pub fn rate_step(&self) -> Option<Step> {
        Step::of(&self.rates()?)
    }

    /// Median rates of arrival before and after a moment.
    pub fn rates_around(&self, at: Nanos) -> Option<(f64, f64)> {
        let rates = self.rates()?;
        let of = |after: bool| {
            median(&mut rates.iter().filter(|r| (r.0 > at.0) == after).map(|r| r.1).collect::<Vec<_>>())
        };
        Some((of(false)?, of(true)?))
    }

    /// Rates of arrival after slow start, each with the end of its stretch of two round trips or more.
    fn rates(&self) -> Option<Vec<(u64, f64)>> {
        // Within a round trip or two under load a lost segment holds back later data.
        let trips = 2 * self.rtt_idle().max(self.rtt_loaded())?.as_ns();
        let ramp_up = self.ramp_up().map_or(0, |ramp_up| ramp_up.took.as_ns()).min(self.duration_ns / 4);
        let from = self.omit_ns.max(ramp_up);
        let counted = || self.received.iter().filter(|s| s.at_ns >= from);
        Some(stretches(counted(), trips.max(burst_span_ns(counted())).max(1)))
    }

    /// Median round trips of probes before and after a moment, after omit.
    pub fn round_trips_around(&self, at: Nanos) -> Option<(f64, f64)> {
        let trips = self.round_trips()?;
        let of = |after: bool| {
            median(&mut trips.iter().filter(|t| (t.0 > at.0) == after).map(|t| t.1).collect::<Vec<_>>())
        };
        Some((of(false)?, of(true)?))
    }

    /// A step in the round trips of probes during the transfer, after omit.
    pub fn rtt_step(&self) -> Option<Step> {
        Step::of(&self.round_trips()?)
    }

    /// A jump of these round trips near the step that never reverses: a path that became longer, unlike a queue, which comes and goes. Its levels are
    /// the minima before and after, its clearness the jump from the longest of three before to the shortest of three after / the minimum before.
    pub fn rtt_jump(&self, step: &Step) -> Option<Step> {
        /// Round trips on either side of the jump.
        const BESIDE: usize = 3;
        /// The least-squares split is off by at most this many.
        const NEAR: usize = 4;
        let trips = self.round_trips()?;
        let split = trips.iter().position(|trip| trip.0 >= step.at.0)?;
        let value = |part: &[(u64, f64)], pick: fn(f64, f64) -> f64| part.iter().map(|v| v.1).reduce(pick);
        let jump = |at: usize| {
            let before = value(trips.get(at.checked_sub(BESIDE)?..at)?, f64::max)?;
            Some(value(trips.get(at..at + BESIDE)?, f64::min)? - before)
        };
        let (most, at) = (split.saturating_sub(NEAR)..=split + NEAR)
            .filter_map(|at| Some((jump(at)?, at)))
            .max_by(|a, b| a.0.total_cmp(&b.0))?;
        let floor = |part: &[(u64, f64)]| percentile(&mut part.iter().map(|v| v.1).collect::<Vec<_>>(), 10.0);
        let (before, after) = (floor(&trips[..at])?, floor(&trips[at..])?);
        Some(Step { at: Nanos(trips[at].0), before, after, clearness: most / before.max(1.0) })
    }

    /// Round trips of probes during the transfer, after omit, each with its time.
    fn round_trips(&self) -> Option<Vec<(u64, f64)>> {
        let trip = |p: &ProbePoint| Some((u64::try_from(p.counts_from_ns()).ok()?, p.rtt_ns()? as f64));
        Some(self.probes.as_ref()?.counted().filter_map(trip).collect())
    }
}

/// Shortest stretch with a meaningful rate if data arrives in bursts less often than samples are taken, as with a persist timer or delayed
/// acknowledgements: several bursts. Shorter stretches contain one burst or none. 0 if most samples bring data.
fn burst_span_ns<'a>(samples: impl Iterator<Item = &'a ReceiverSample> + Clone) -> u64 {
    /// Bursts per stretch.
    const BURSTS: f64 = 4.0;
    /// Time between bursts / time between samples above which samples without data are normal.
    const RARER: f64 = 1.5;
    let apart = |moments: Vec<u64>| {
        let gaps = moments.windows(2).map(|w| w[1].saturating_sub(w[0]) as f64);
        median(&mut gaps.collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let mut bytes = None;
    let brought = |s: &&ReceiverSample| bytes.replace(s.bytes).is_some_and(|before| s.bytes > before);
    let bursts = apart(samples.clone().filter(brought).map(|s| s.at_ns).collect());
    let readings = apart(samples.map(|s| s.at_ns).collect());
    if bursts > RARER * readings { (BURSTS * bursts) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_hold_several_bursts() {
        let readings = |every: u64| -> Vec<ReceiverSample> {
            let at = |i: u64| ReceiverSample { at_ns: i * 100, bytes: i / every * 576, ..Default::default() };
            (0..40).map(at).collect()
        };
        assert_eq!(burst_span_ns(readings(1).iter()), 0, "each reading brings something");
        assert_eq!(burst_span_ns(readings(2).iter()), 800);
        assert_eq!(burst_span_ns(readings(5).iter()), 2_000);
        assert_eq!(burst_span_ns([].iter()), 0);
        // An outage is one gap among many.
        let mut outage = readings(1);
        outage.iter_mut().filter(|s| s.at_ns >= 3_000).for_each(|s| s.bytes = 29 * 576);
        assert_eq!(burst_span_ns(outage.iter()), 0);
    }

    #[test]
    fn a_step_is_found_where_it_is_and_noise_has_none() {
        let series = |level: &dyn Fn(u64) -> f64| {
            (0..40).map(|i| (i * 100, level(i) + (i % 3) as f64)).collect::<Vec<_>>()
        };
        let step = Step::of(&series(&|i| if i < 25 { 100.0 } else { 30.0 })).unwrap();
        assert_eq!(step.at, Nanos(2_500));
        assert!(step.clearness > 20.0 && (step.ratio() - 31.0 / 101.0).abs() < 0.02, "{step:?}");
        let none = Step::of(&series(&|_| 100.0)).unwrap();
        assert!(none.ratio() > 0.97, "{none:?}");
        let ramp = Step::of(&series(&|i| 10.0 * i as f64)).unwrap();
        assert!(ramp.clearness < 4.5, "{ramp:?}");
        assert_eq!(Step::of(&series(&|_| 1.0)[..10]), None);
    }
}
