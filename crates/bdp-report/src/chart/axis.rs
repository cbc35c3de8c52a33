//! An axis: its values, unit and round labels.

use bdp_model::Nanos;
use bdp_model::sweep::parameter;
use bdp_model::units::format_bps;
use serde::Serialize;

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Scale {
    Linear,
    Logarithmic,
}

/// Unit of an axis's values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) enum Unit {
    /// A unit of this name, and how many of the values are one.
    Named(&'static str, f64),
    Number,
    Packets,
    Bytes,
    BitsPerSecond,
    Nanoseconds,
    /// Parts of one, as percentages.
    Share,
    /// Parts of one, as percentages with their sign.
    Change,
}

impl From<parameter::Unit> for Unit {
    fn from(unit: parameter::Unit) -> Self {
        match unit {
            parameter::Unit::Bytes => Self::Bytes,
            parameter::Unit::BitsPerSecond => Self::BitsPerSecond,
            parameter::Unit::Nanoseconds => Self::Nanoseconds,
            parameter::Unit::Share => Self::Share,
            parameter::Unit::Packets => Self::Packets,
            parameter::Unit::Number => Self::Number,
        }
    }
}

impl Unit {
    pub const SECONDS: Self = Self::Named("s", 1.0);
    pub const MILLISECONDS: Self = Self::Named("ms", 1.0);

    /// Returns a value with its unit.
    pub fn label(self, value: f64) -> String {
        match self {
            Self::Named(name, one) => format!("{} {name}", plain(value / one)),
            Self::Number => plain(value),
            Self::Packets => format!("{} {}", plain(value), if value == 1.0 { "packet" } else { "packets" }),
            Self::Bytes => size_label(value),
            Self::BitsPerSecond => format_bps(value),
            Self::Nanoseconds => Nanos(value.max(0.0) as u64).to_string(),
            Self::Share => format!("{} %", plain(value * 100.0)),
            Self::Change => format!("{}{} %", if value > 0.0 { "+" } else { "" }, plain(value * 100.0)),
        }
    }

    /// Returns a value without the part of the unit that is beside the axis.
    pub(super) fn short_label(self, value: f64) -> String {
        match self {
            Self::Named(_, one) => plain(value / one),
            // `500 k`, `10 M`.
            Self::BitsPerSecond => self.label(value).trim_end_matches("bit/s").trim_end().to_owned(),
            _ => self.label(value),
        }
    }

    /// Returns the part of the unit that is beside the axis.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Named(name, _) => name,
            Self::BitsPerSecond => "bit/s",
            _ => "",
        }
    }
}

/// Values from `low` to `high`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Axis {
    scale: Scale,
    pub low: f64,
    pub high: f64,
    pub unit: Unit,
    /// Values with a label.
    pub ticks: Vec<f64>,
}

impl Axis {
    fn new(scale: Scale, [low, high]: [f64; 2], unit: Unit, most: usize) -> Self {
        let mut axis = Self { scale, low, high, unit, ticks: Vec::new() };
        axis.ticks = axis.round_values(most);
        axis
    }

    /// Returns a linear axis between two values with at most so many labels; a single value gets space around it.
    pub fn linear([low, high]: [f64; 2], unit: Unit, most: usize) -> Self {
        let range = if low < high { [low, high] } else { [low - 0.5, low + 0.5] };
        Self::new(Scale::Linear, range, unit, most)
    }

    /// Returns a linear axis from zero to a little above the largest value.
    pub fn from_zero(largest: f64, unit: Unit, most: usize) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        Self::linear([0.0, largest * 1.06], unit, most)
    }

    /// Returns a logarithmic axis over the positive values, with a small margin at both ends.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>, unit: Unit, most: usize) -> Self {
        let positive = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0.0), |(l, h), v| (v.min(l), v.max(h)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let room = (high / low).powf(0.03).max(1.1);
        Self::new(Scale::Logarithmic, [low / room, high * room], unit, most)
    }

    /// Returns the axis with labels at these values.
    pub fn with_ticks(self, ticks: Vec<f64>) -> Self {
        Self { ticks, ..self }
    }

    /// Returns the position of a value from 0 to 1.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether the axis is logarithmic.
    pub fn is_logarithmic(&self) -> bool {
        self.scale == Scale::Logarithmic
    }

    /// Whether a value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns at most `most` values that are round in the unit: 1, 2, 5 x 10^n, decades if there are enough, and powers
    /// of two of bytes.
    fn round_values(&self, most: usize) -> Vec<f64> {
        let one = match (self.unit, self.scale) {
            (Unit::Bytes, Scale::Logarithmic) => return ticks_of_bytes(self, most),
            (Unit::Bytes, Scale::Linear) => binary_unit(self.high).0,
            (Unit::Named(_, one), _) => one,
            _ => 1.0,
        };
        self.ticks_in(one, most)
    }

    fn ticks_in(&self, unit: f64, most: usize) -> Vec<f64> {
        let ticks = match self.scale {
            Scale::Linear => linear_ticks(self.low / unit, self.high / unit, most),
            Scale::Logarithmic => logarithmic_ticks(self.low / unit, self.high / unit, most),
        };
        ticks.into_iter().map(|tick| tick * unit).collect()
    }
}

/// Formats a round value plainly: `0.5`, `20`, `1000`.
pub(crate) fn plain(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// Returns the largest binary unit below a size, and its name.
fn binary_unit(bytes: f64) -> (f64, &'static str) {
    let units = [(1024f64.powi(3), "GiB"), (1024f64.powi(2), "MiB"), (1024.0, "KiB")];
    units.into_iter().find(|unit| bytes >= unit.0).unwrap_or((1.0, "B"))
}

/// Formats a round size without trailing zeros: `64 KiB`, `1.5 MiB`.
fn size_label(bytes: f64) -> String {
    let (unit, name) = binary_unit(bytes);
    format!("{} {name}", plain((bytes / unit * 100.0).round() / 100.0))
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let least_step = (high - low) / most.max(2) as f64;
    let decade = 10f64.powf(least_step.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|&s| s >= least_step * 0.999);
    let step = step.unwrap_or(decade * 10.0);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

fn logarithmic_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let all = |steps: &[f64]| -> Vec<f64> {
        (-12..19)
            .flat_map(|n| steps.iter().map(move |m| m * 10f64.powi(n)))
            .filter(|t| (low..=high).contains(t))
            .collect()
    };
    for steps in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let ticks = all(steps);
        if ticks.len() <= most && ticks.len() >= 2 {
            return ticks;
        }
    }
    let decades = all(&[1.0]);
    if decades.len() < 2 {
        return linear_ticks(low, high, most);
    }
    let stride = decades.len().div_ceil(most.max(1));
    decades.into_iter().step_by(stride).collect()
}

/// Returns up to `most` powers of two on a logarithmic axis of bytes.
fn ticks_of_bytes(axis: &Axis, most: usize) -> Vec<f64> {
    let powers: Vec<f64> = (0..60).map(|k| 2f64.powi(k)).filter(|&p| axis.holds(p)).collect();
    let stride = powers.len().div_ceil(most.max(1)).max(1);
    // Unit prefixes are ten powers of two apart: strides of 1, 2, 5 or 10 keep them among the labels.
    let stride = [1, 2, 5, 10, 20].into_iter().find(|&s| s >= stride).unwrap_or(20);
    let ticks: Vec<f64> = powers.into_iter().filter(|p| (p.log2() as usize).is_multiple_of(stride)).collect();
    if ticks.len() < 2 { axis.ticks_in(1.0, most) } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let number = Unit::Number;
        assert_eq!(Axis::from_zero(94.0, number, 5).ticks, [0.0, 20.0, 40.0, 60.0, 80.0]);
        let axis = Axis::linear([170.0, 176.0], number, 6);
        assert_eq!(axis.ticks, [170.0, 171.0, 172.0, 173.0, 174.0, 175.0, 176.0]);
        assert_eq!(Axis::logarithmic([50e3, 941e6], number, 6).ticks, [1e5, 1e6, 1e7, 1e8, 1e9]);
        let axis = Axis::logarithmic([512.0, 1e8], Unit::Bytes, 7);
        assert_eq!(axis.ticks, [1024.0, 32_768.0, 1_048_576.0, 33_554_432.0]);
        assert_eq!(Axis::from_zero(3e6, Unit::Named("Mbit/s", 1e6), 4).ticks, [0.0, 1e6, 2e6, 3e6]);
    }

    #[test]
    fn values_fall_between_the_ends() {
        let axis = Axis::logarithmic([10.0, 1000.0], Unit::Number, 3);
        assert!((axis.share(100.0) - 0.5).abs() < 1e-9);
        assert_eq!((axis.share(0.0), axis.share(-1.0), axis.share(1e9)), (0.0, 0.0, 1.0));
        assert_eq!(Axis::linear([3.0, 3.0], Unit::Number, 3).share(3.0), 0.5);
        assert_eq!(Axis::from_zero(f64::NAN, Unit::Number, 3).low, 0.0);
    }

    #[test]
    fn labels_have_their_unit() {
        assert_eq!(Unit::Bytes.label(1.5 * 1024.0 * 1024.0), "1.5 MiB");
        assert_eq!(Unit::BitsPerSecond.short_label(5e5), "500 k");
        assert_eq!(Unit::Change.label(0.05), "+5 %");
    }
}
