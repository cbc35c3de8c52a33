//! One figure out of a measurement, by the name that expectations use, and its median over several.

use std::fmt;

use crate::comparison::Better;
use crate::measurement::{DirectionResult, Measurement, Way};
use crate::record::RttSummary;
use crate::stats::median;
use crate::units::{ByteCount, Nanos, format_bps};

/// A figure that a measurement has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Goodput of a direction, bit/s.
    Goodput(Way),
    /// Segments that a direction sent again.
    Retransmits(Way),
    /// Window of a direction on the wire, bytes.
    Window(Way),
    /// Round trip before the load, ns.
    RttIdle(Quantile),
    /// Round trip under the load of a direction, ns.
    RttLoaded(Way, Quantile),
}

/// A quantile of round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// Smallest.
    Min,
    /// Median.
    P50,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// Largest.
    Max,
}

impl Quantile {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Min, Self::P50, Self::P95, Self::P99, Self::Max];

    /// `min`, `p50`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    const fn of(self, rtt: &RttSummary) -> Option<u64> {
        match self {
            Self::Min => Some(rtt.min),
            Self::P50 => Some(rtt.p50),
            Self::P95 => rtt.p95,
            Self::P99 => rtt.p99,
            Self::Max => Some(rtt.max),
        }
    }
}

impl Figure {
    /// Every figure, in the order in which messages list them.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for way in [Way::To, Way::From] {
            all.extend([Self::Goodput(way), Self::Retransmits(way), Self::Window(way)]);
            all.extend(Quantile::ALL.map(|quantile| Self::RttLoaded(way, quantile)));
        }
        all.extend(Quantile::ALL.map(Self::RttIdle));
        all
    }

    /// The figure of this name: `to.goodput`, `from.rtt.loaded.p99`, `rtt.idle.min`.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|figure| figure.to_string() == name)
    }

    /// The direction that it is of; `None` for what was measured before any.
    pub const fn way(self) -> Option<Way> {
        match self {
            Self::Goodput(way) | Self::Retransmits(way) | Self::Window(way) | Self::RttLoaded(way, _) => {
                Some(way)
            }
            Self::RttIdle(_) => None,
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Better {
        match self {
            Self::Goodput(_) | Self::Window(_) => Better::Higher,
            Self::Retransmits(_) | Self::RttIdle(_) | Self::RttLoaded(..) => Better::Lower,
        }
    }

    /// A value of it with its unit.
    pub fn format(self, value: f64) -> String {
        let whole = value.round().max(0.0) as u64;
        match self {
            Self::Goodput(_) => format_bps(value),
            Self::Retransmits(_) => format!("{value}"),
            Self::Window(_) => ByteCount::bytes(whole).to_string(),
            Self::RttIdle(_) | Self::RttLoaded(..) => Nanos(whole).to_string(),
        }
    }

    /// Its value in one measurement; `None` where it was not measured, the samples do not resolve it, or the measurement failed.
    pub fn of(self, measurement: &Measurement) -> Option<f64> {
        if measurement.error.is_some() {
            return None;
        }
        let at = |way| measurement.directions.iter().find(|d: &&DirectionResult| d.direction == way);
        match self {
            Self::Goodput(way) => at(way).map(|d| d.goodput_bps),
            Self::Retransmits(way) => at(way)?.retransmits.map(|n| n as f64),
            Self::Window(way) => at(way)?.window.on_the_wire_bytes.map(|n| n as f64),
            Self::RttIdle(quantile) => {
                let first = measurement.directions.iter().find_map(|d| d.rtt_ns.idle);
                rtt(measurement.rtt_idle_ns.or(first), quantile)
            }
            Self::RttLoaded(way, quantile) => rtt(at(way)?.rtt_ns.loaded, quantile),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goodput(way) => write!(f, "{}.goodput", way.name()),
            Self::Retransmits(way) => write!(f, "{}.retransmits", way.name()),
            Self::Window(way) => write!(f, "{}.window", way.name()),
            Self::RttIdle(quantile) => write!(f, "rtt.idle.{}", quantile.name()),
            Self::RttLoaded(way, quantile) => write!(f, "{}.rtt.loaded.{}", way.name(), quantile.name()),
        }
    }
}

fn rtt(summary: Option<RttSummary>, quantile: Quantile) -> Option<f64> {
    summary.filter(|rtt| rtt.received > 0).and_then(|rtt| quantile.of(&rtt)).map(|ns| ns as f64)
}

/// The median of a figure over the runs in which it was measured.
pub fn figure(figure: Figure, measurements: &[Measurement]) -> Option<f64> {
    median(&mut values(figure, measurements))
}

/// A figure in each run in which it was measured.
pub fn values(figure: Figure, measurements: &[Measurement]) -> Vec<f64> {
    measurements.iter().filter_map(|m| figure.of(m)).collect()
}
