//! Single figures of a measurement, by the names that expectations use, and their medians over several measurements.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Probability;
use crate::facts::segments::Segments;
use crate::measurement::{Direction, DirectionResult, Measurement};
use crate::names;
use crate::probes::ping::Ping;
use crate::record::RttSummary;
use crate::statistics::comparison::Better;
use crate::statistics::median;
use crate::units::{ByteCount, Nanos, Rate, format_bps};

/// A set of figures that expectations can refer to.
pub trait Figures: Copy + PartialEq + fmt::Display {
    /// Names of some, for an error about a name that resembles none.
    const THERE_ARE: &'static str;

    /// Returns all of them, in the order in which messages list them.
    fn all() -> Vec<Self>;

    /// Returns the unit of its values.
    fn unit(self) -> Unit;

    /// Returns the figure of this name: `to.goodput`, `from.rtt.loaded.p99`, `rtt.idle.min`.
    fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|figure| figure.to_string() == name)
    }

    /// Formats a value with its unit.
    fn format(self, value: f64) -> String {
        self.unit().format(value)
    }
}

/// Base unit of a figure's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// bit/s.
    Bps,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
    /// A share, 0 to 1.
    Ratio,
    /// Segments.
    Segments,
    /// Round trips per minute.
    Rpm,
}

impl Unit {
    /// Parses a typed value, or returns what is wrong with it.
    pub fn parse(self, typed: &str) -> Result<f64, String> {
        match self {
            Self::Bps => typed.parse::<Rate>().map(|rate| rate.as_bps() as f64).map_err(|e| e.to_string()),
            Self::Bytes => {
                typed.parse::<ByteCount>().map(|size| size.as_bytes() as f64).map_err(|e| e.to_string())
            }
            // A bare 30 means milliseconds more often than seconds, and a wrong bound would go unnoticed.
            Self::Ns => match typed.parse::<Nanos>() {
                Ok(time) if time > Nanos::ZERO && !typed.ends_with(char::is_alphabetic) => {
                    Err(format!("'{typed}' is not a time: a unit is needed, for example {typed}ms"))
                }
                time => time.map(|time| time.as_ns() as f64).map_err(|e| e.to_string()),
            },
            Self::Ratio => typed.parse::<Probability>().map(Probability::fraction).map_err(|e| e.to_string()),
            Self::Segments => typed
                .parse::<u64>()
                .map(|count| count as f64)
                .map_err(|_| format!("'{typed}' is not a number of segments, for example 0 or 100")),
            Self::Rpm => {
                typed.parse::<f64>().ok().filter(|rpm| rpm.is_finite() && *rpm >= 0.0).ok_or_else(|| {
                    format!("'{typed}' is not a number of round trips a minute, for example 600")
                })
            }
        }
    }

    /// Formats a value with its unit.
    pub fn format(self, value: f64) -> String {
        let whole = value.round().max(0.0) as u64;
        match self {
            Self::Bps => format_bps(value),
            Self::Bytes => ByteCount::bytes(whole).to_string(),
            Self::Ns => Nanos(whole).to_string(),
            // One lost probe of a hundred thousand still shows.
            Self::Ratio => format!("{} %", (value * 100.0 * 1e4).round() / 1e4),
            Self::Segments => format!("{value}"),
            Self::Rpm => format!("{whole} RPM"),
        }
    }
}

/// A figure of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Goodput of a direction, bit/s.
    Goodput(Direction),
    /// Segments retransmitted in a direction.
    Retransmits(Direction),
    /// Segments retransmitted in a direction, as a share of those sent.
    RetransmitRatio(Direction),
    /// Window of a direction on the wire, bytes.
    Window(Direction),
    /// Round trip before the load, ns.
    RttIdle(Quantile),
    /// Round trip under the load of a direction, ns.
    RttLoaded(Direction, Quantile),
    /// Responsiveness under the load of a direction, round trips per minute.
    Rpm(Direction),
    /// Datagrams or TCP segments lost in a direction, as a share of those sent.
    Loss(Direction),
    /// Interarrival jitter of the datagrams of a direction (RFC 3550), ns.
    Jitter(Direction),
    /// Goodput of a direction as a share of the contracted rate.
    OfOrdered(Direction),
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

names!(Quantile: Min = "min", P50 = "p50", P95 = "p95", P99 = "p99", Max = "max");

impl Quantile {
    /// All quantiles.
    pub const ALL: [Self; 5] = [Self::Min, Self::P50, Self::P95, Self::P99, Self::Max];

    /// Returns it; `None` if the samples do not resolve it.
    pub const fn of(self, rtt: &RttSummary) -> Option<u64> {
        match self {
            Self::Min => Some(rtt.min),
            Self::P50 => Some(rtt.p50),
            Self::P95 => rtt.p95,
            Self::P99 => rtt.p99,
            Self::Max => Some(rtt.max),
        }
    }
}

impl Figures for Figure {
    const THERE_ARE: &'static str = "to.goodput, to.retransmits, to.retransmits.ratio, to.loss, to.window, to.rtt.loaded.p95, to.rpm, to.jitter (with -u), \
         to.of_ordered (with --ordered), the same of from, and rtt.idle.p95 (min, p50, p95, p99, max)";

    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for way in [Direction::To, Direction::From] {
            all.extend([
                Self::Goodput(way),
                Self::Retransmits(way),
                Self::RetransmitRatio(way),
                Self::Window(way),
            ]);
            all.extend(Quantile::ALL.map(|quantile| Self::RttLoaded(way, quantile)));
            all.extend([Self::Rpm(way), Self::Loss(way), Self::Jitter(way), Self::OfOrdered(way)]);
        }
        all.extend(Quantile::ALL.map(Self::RttIdle));
        all
    }

    fn unit(self) -> Unit {
        match self {
            Self::Goodput(_) => Unit::Bps,
            Self::Retransmits(_) => Unit::Segments,
            Self::Window(_) => Unit::Bytes,
            Self::RttIdle(_) | Self::RttLoaded(..) | Self::Jitter(_) => Unit::Ns,
            Self::Rpm(_) => Unit::Rpm,
            Self::Loss(_) | Self::RetransmitRatio(_) | Self::OfOrdered(_) => Unit::Ratio,
        }
    }
}

impl Figure {
    /// Returns its direction; `None` if it was measured before the load.
    pub const fn way(self) -> Option<Direction> {
        match self {
            Self::Goodput(way)
            | Self::Retransmits(way)
            | Self::RetransmitRatio(way)
            | Self::Window(way)
            | Self::RttLoaded(way, _)
            | Self::Rpm(way)
            | Self::Loss(way)
            | Self::Jitter(way)
            | Self::OfOrdered(way) => Some(way),
            Self::RttIdle(_) => None,
        }
    }

    /// Returns whether higher or lower values are better.
    pub const fn better(self) -> Better {
        match self {
            Self::Goodput(_) | Self::Window(_) | Self::Rpm(_) | Self::OfOrdered(_) => Better::Higher,
            Self::Retransmits(_)
            | Self::RetransmitRatio(_)
            | Self::RttIdle(_)
            | Self::RttLoaded(..)
            | Self::Loss(_)
            | Self::Jitter(_) => Better::Lower,
        }
    }

    /// Returns its value in a measurement; `None` if it was not measured, the samples do not resolve it, or the measurement failed.
    pub fn of(self, measurement: &Measurement) -> Option<f64> {
        if measurement.error.is_some() {
            return None;
        }
        let at = |way| measurement.directions.iter().find(|d: &&DirectionResult| d.direction == way);
        match self {
            Self::Goodput(way) => at(way).map(|d| d.goodput_bps),
            Self::Retransmits(way) => at(way)?.retransmits.map(|n| n as f64),
            Self::RetransmitRatio(way) => {
                at(way).and_then(|d| Segments::of(d, d.bytes)).map(Segments::retransmit_ratio)
            }
            Self::Window(way) => at(way)?.window.on_the_wire_bytes.map(|n| n as f64),
            Self::RttIdle(quantile) => {
                let first = measurement.directions.iter().find_map(|d| d.rtt_ns.idle);
                rtt(measurement.rtt_idle_ns.or(first), quantile)
            }
            Self::RttLoaded(way, quantile) => rtt(at(way)?.rtt_ns.loaded, quantile),
            Self::Rpm(way) => at(way)?.responsiveness_rpm,
            Self::Loss(way) => at(way).and_then(|d| d.loss_ratio(d.bytes)),
            Self::Jitter(way) => at(way)?.udp.as_ref()?.jitter_ns.map(|ns| ns as f64),
            Self::OfOrdered(way) => {
                let ordered = measurement.request.ordered?.of(way);
                at(way).filter(|_| ordered > 0).map(|d| d.goodput_bps / ordered as f64)
            }
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goodput(way) => write!(f, "{}.goodput", way.name()),
            Self::Retransmits(way) => write!(f, "{}.retransmits", way.name()),
            Self::RetransmitRatio(way) => write!(f, "{}.retransmits.ratio", way.name()),
            Self::Window(way) => write!(f, "{}.window", way.name()),
            Self::RttIdle(quantile) => write!(f, "rtt.idle.{}", quantile.name()),
            Self::RttLoaded(way, quantile) => write!(f, "{}.rtt.loaded.{}", way.name(), quantile.name()),
            Self::Rpm(way) => write!(f, "{}.rpm", way.name()),
            Self::Loss(way) => write!(f, "{}.loss", way.name()),
            Self::Jitter(way) => write!(f, "{}.jitter", way.name()),
            Self::OfOrdered(way) => write!(f, "{}.of_ordered", way.name()),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::find(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown figure '{name}'")))
    }
}

/// A figure of `bdp ping`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingFigure {
    /// Round trip, ns.
    Rtt(Quantile),
    /// Probes not answered, as a share of those sent.
    Loss,
    /// Mean difference between one round trip and the next, ns.
    Jitter,
}

impl Figures for PingFigure {
    const THERE_ARE: &'static str = "rtt.p95 (min, p50, p95, p99, max), loss and jitter";

    fn all() -> Vec<Self> {
        Quantile::ALL.map(Self::Rtt).into_iter().chain([Self::Loss, Self::Jitter]).collect()
    }

    fn unit(self) -> Unit {
        if self == Self::Loss { Unit::Ratio } else { Unit::Ns }
    }
}

impl PingFigure {
    /// Returns its value; `None` if it was not measured, or the probes do not resolve it.
    pub fn of(self, ping: &Ping) -> Option<f64> {
        let (sent, received) = (ping.probes.sent, ping.probes.received);
        match self {
            Self::Rtt(quantile) => {
                let rtt = ping.rtt_ns?;
                let ns = match quantile {
                    Quantile::Min => Some(rtt.min),
                    Quantile::P50 => Some(rtt.p50),
                    Quantile::P95 => rtt.p95,
                    Quantile::P99 => rtt.p99,
                    Quantile::Max => Some(rtt.max),
                };
                ns.map(|ns| ns as f64)
            }
            Self::Loss => (sent > 0).then(|| sent.saturating_sub(received) as f64 / sent as f64),
            Self::Jitter => ping.jitter_ns.map(|ns| ns as f64),
        }
    }
}

impl fmt::Display for PingFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rtt(quantile) => write!(f, "rtt.{}", quantile.name()),
            Self::Loss => f.write_str("loss"),
            Self::Jitter => f.write_str("jitter"),
        }
    }
}

fn rtt(summary: Option<RttSummary>, quantile: Quantile) -> Option<f64> {
    summary.filter(|rtt| rtt.received > 0).and_then(|rtt| quantile.of(&rtt)).map(|ns| ns as f64)
}

/// Returns the median of a figure over the runs in which it was measured.
pub fn figure(figure: Figure, measurements: &[Measurement]) -> Option<f64> {
    median(&mut values(figure, measurements))
}

/// Returns a figure of each run in which it was measured.
pub fn values(figure: Figure, measurements: &[Measurement]) -> Vec<f64> {
    measurements.iter().filter_map(|m| figure.of(m)).collect()
}
