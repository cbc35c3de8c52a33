//! Values that change while flows run: steps, ramps, outages, and traces of delivery opportunities.
//!
//! Time zero is when flows may start. Before it, the values of time zero apply and there are no outages.

use serde::{Deserialize, Serialize};

pub use crate::link::trace::{Trace, TraceError};
use crate::units::{Nanos, Probability, Rate};

/// A value given at moments in ascending order, the first at time zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Timeline<T> {
    /// Keeps each value until the next moment.
    Steps(Vec<Moment<T>>),
    /// Changes linearly from each value to the next, and keeps the last.
    Ramp(Vec<Moment<T>>),
}

/// A value at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment<T> {
    /// Time, from time zero.
    #[serde(rename = "at_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Nanos,
    /// Value in its base unit.
    pub value: T,
}

/// A value that can be interpolated.
pub trait Between: Copy + PartialOrd {
    /// Returns the value at `part` of `whole` between this one and another; `part` is less than `whole`.
    fn towards(self, other: Self, part: u64, whole: u64) -> Self;
}

impl Between for u64 {
    fn towards(self, other: Self, part: u64, whole: u64) -> Self {
        let far = u128::from(self.abs_diff(other)) * u128::from(part) / u128::from(whole.max(1));
        // At most the difference, which fits u64.
        let far = far as u64;
        if other >= self { self + far } else { self - far }
    }
}

impl Between for Rate {
    fn towards(self, other: Self, part: u64, whole: u64) -> Self {
        Rate::bps(self.as_bps().towards(other.as_bps(), part, whole))
    }
}

impl Between for Probability {
    fn towards(self, other: Self, part: u64, whole: u64) -> Self {
        let share = part as f64 / whole.max(1) as f64;
        let between = self.fraction() + (other.fraction() - self.fraction()) * share;
        Probability::new(between.clamp(0.0, 1.0)).unwrap_or(self)
    }
}

impl<T: Between> Timeline<T> {
    /// Returns the moments and their values.
    pub fn moments(&self) -> &[Moment<T>] {
        match self {
            Self::Steps(moments) | Self::Ramp(moments) => moments,
        }
    }

    /// Returns the value at a time; `None` for a timeline without moments, which a scenario cannot have.
    pub fn at(&self, time: Nanos) -> Option<T> {
        let moments = self.moments();
        let next = moments.partition_point(|moment| moment.at <= time);
        let Some(last) = next.checked_sub(1).and_then(|i| moments.get(i)) else {
            return moments.first().map(|first| first.value);
        };
        match (self, moments.get(next)) {
            (Self::Ramp(_), Some(next)) => {
                let (part, whole) = ((time - last.at).as_ns(), (next.at - last.at).as_ns());
                Some(last.value.towards(next.value, part, whole))
            }
            _ => Some(last.value),
        }
    }

    /// Returns the smallest value.
    pub fn least(&self) -> Option<T> {
        self.values().reduce(|a, b| if b < a { b } else { a })
    }

    /// Returns the largest value.
    pub fn most(&self) -> Option<T> {
        self.values().reduce(|a, b| if b > a { b } else { a })
    }

    fn values(&self) -> impl Iterator<Item = T> + '_ {
        self.moments().iter().map(|moment| moment.value)
    }
}

/// How a direction's rate changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateOverTime {
    /// In steps or linearly; zero is an outage.
    Timeline(Timeline<Rate>),
    /// By opportunities of delivery.
    Trace(Trace),
}

impl RateOverTime {
    /// Returns the largest rate; for a trace, that of its fullest millisecond.
    pub fn most(&self) -> Rate {
        match self {
            Self::Timeline(timeline) => timeline.most().unwrap_or_default(),
            Self::Trace(trace) => trace.peak(),
        }
    }

    /// Returns the rate before time zero: the first of a timeline, the mean of a trace.
    pub fn first(&self) -> Rate {
        match self {
            Self::Timeline(timeline) => timeline.at(Nanos::ZERO).unwrap_or_default(),
            Self::Trace(trace) => trace.mean(),
        }
    }
}

/// How a direction's delay changes. The time at which a packet leaves the wire decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayOverTime {
    /// The delay in nanoseconds.
    pub timeline_ns: Timeline<u64>,
    /// Whether packets may overtake each other if the delay falls. If not, a packet leaves no sooner than the one before it.
    pub reorder: bool,
}

impl DelayOverTime {
    /// Returns the delay at a time.
    pub fn at(&self, time: Nanos) -> Nanos {
        Nanos(self.timeline_ns.at(time).unwrap_or(0))
    }

    /// Returns the smallest delay.
    pub fn least(&self) -> Nanos {
        Nanos(self.timeline_ns.least().unwrap_or(0))
    }
}

/// An outage: a time in which a direction delivers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outage {
    /// Start of the first outage.
    #[serde(rename = "at_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Nanos,
    /// Duration.
    #[serde(rename = "for_ns", with = "crate::units::nanoseconds")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub lasts: Nanos,
    /// Time from one start to the next, if it repeats.
    #[serde(rename = "every_ns", with = "crate::units::nanoseconds::option", default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub every: Option<Nanos>,
    /// Whether packets that arrive in it are dropped; if not, they wait until it ends.
    pub drop: bool,
}

impl Outage {
    /// Returns start and end of the first outage that has not ended at `time`.
    pub fn next(&self, time: Nanos) -> Option<(Nanos, Nanos)> {
        let from = match self.every.filter(|every| *every > Nanos::ZERO) {
            Some(every) if time > self.at => {
                let passed = (time - self.at).as_ns() / every.as_ns();
                let last = self.at + Nanos(passed * every.as_ns());
                if last + self.lasts > time { last } else { last + every }
            }
            _ => self.at,
        };
        let until = from + self.lasts;
        (until > time).then_some((from, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[(u64, u64)]) -> Vec<Moment<u64>> {
        values.iter().map(|&(at, value)| Moment { at: Nanos(at), value }).collect()
    }

    #[test]
    fn a_step_holds_and_a_ramp_is_straight() {
        let points = moments(&[(0, 100), (10, 200), (20, 50)]);
        let at = |timeline: &Timeline<u64>, times: [u64; 6]| times.map(|t| timeline.at(Nanos(t)).unwrap());
        let steps = Timeline::Steps(points.clone());
        assert_eq!(at(&steps, [0, 9, 10, 19, 20, 1_000]), [100, 100, 200, 200, 50, 50]);
        let ramp = Timeline::Ramp(points);
        assert_eq!(at(&ramp, [0, 5, 10, 13, 20, 1_000]), [100, 150, 200, 155, 50, 50]);
        assert_eq!((ramp.least(), ramp.most()), (Some(50), Some(200)));
    }

    #[test]
    fn the_widest_ramp_stays_within_its_ends() {
        let widest = Timeline::Ramp(moments(&[(0, u64::MAX), (u64::MAX, 0)]));
        assert_eq!(widest.at(Nanos(0)), Some(u64::MAX));
        assert_eq!(widest.at(Nanos(u64::MAX - 1)), Some(1));
    }

    #[test]
    fn an_outage_is_found_before_in_and_after_it() {
        let once = Outage { at: Nanos(10), lasts: Nanos(5), every: None, drop: false };
        let next = |outage: &Outage, t| outage.next(Nanos(t)).map(|(a, b)| (a.0, b.0));
        assert_eq!(
            [0, 10, 14, 15].map(|t| next(&once, t)),
            [Some((10, 15)), Some((10, 15)), Some((10, 15)), None]
        );
        let flaps = Outage { every: Some(Nanos(100)), ..once };
        assert_eq!(
            [0, 14, 15, 110, 115, 1_012].map(|t| next(&flaps, t).map(|(from, _)| from)),
            [10, 10, 110, 110, 210, 1_010].map(Some)
        );
    }
}
