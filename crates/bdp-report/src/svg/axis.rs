//! An axis: maps values to coordinates and chooses round labels.

/// Scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Linear,
    Logarithmic,
}

/// Maps values from `low` to `high` to coordinates from `start` to `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    scale: Scale,
    pub low: f64,
    pub high: f64,
    pub start: f64,
    pub end: f64,
}

impl Axis {
    /// Returns a linear axis between two values; a single value gets space around it.
    pub fn linear([low, high]: [f64; 2], [start, end]: [f64; 2]) -> Self {
        let (low, high) = if low < high { (low, high) } else { (low - 0.5, low + 0.5) };
        Self { scale: Scale::Linear, low, high, start, end }
    }

    /// Returns a linear axis from zero to a little above the largest value.
    pub fn from_zero(largest: f64, coordinates: [f64; 2]) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 { largest } else { 1.0 };
        Self::linear([0.0, largest * 1.06], coordinates)
    }

    /// Returns a logarithmic axis over the positive values, with a small margin at both ends.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>, [start, end]: [f64; 2]) -> Self {
        let positive = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = positive.fold((f64::INFINITY, 0.0), |(l, h), v| (v.min(l), v.max(h)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let room = (high / low).powf(0.03).max(1.1);
        Self { scale: Scale::Logarithmic, low: low / room, high: high * room, start, end }
    }

    /// Returns the axis with the same values over other coordinates.
    pub fn over(self, [start, end]: [f64; 2]) -> Self {
        Self { start, end, ..self }
    }

    /// Returns the coordinate of a value, clamped to the ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.start + (self.end - self.start) * share
    }

    /// Whether the axis is logarithmic.
    pub fn is_logarithmic(&self) -> bool {
        self.scale == Scale::Logarithmic
    }

    /// Whether a value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Returns at most `most` round values on the axis: 1, 2, 5 x 10^n, or decades if there are enough.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        self.ticks_in(1.0, most)
    }

    /// Like [`Axis::ticks`], with values that are round multiples of `unit`.
    pub fn ticks_in(&self, unit: f64, most: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low / unit, self.high / unit, most),
            Scale::Logarithmic => logarithmic_ticks(self.low / unit, self.high / unit, most),
        }
        .into_iter()
        .map(|tick| tick * unit)
        .collect()
    }
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
pub(crate) fn ticks_of_bytes(axis: &Axis, most: usize) -> Vec<f64> {
    let powers: Vec<f64> = (0..60).map(|k| 2f64.powi(k)).filter(|&p| axis.holds(p)).collect();
    let stride = powers.len().div_ceil(most.max(1)).max(1);
    // Unit prefixes are ten powers of two apart: strides of 1, 2, 5 or 10 keep them among the labels.
    let stride = [1, 2, 5, 10, 20].into_iter().find(|&s| s >= stride).unwrap_or(20);
    let ticks: Vec<f64> = powers.into_iter().filter(|p| (p.log2() as usize).is_multiple_of(stride)).collect();
    if ticks.len() < 2 { axis.ticks(most) } else { ticks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let axis = Axis::from_zero(94.0, [0.0, 100.0]);
        assert_eq!(axis.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let axis = Axis::linear([170.0, 176.0], [0.0, 100.0]);
        assert_eq!(axis.ticks(6), [170.0, 171.0, 172.0, 173.0, 174.0, 175.0, 176.0]);
        let axis = Axis::logarithmic([50e3, 941e6], [0.0, 100.0]);
        assert_eq!(axis.ticks(6), [1e5, 1e6, 1e7, 1e8, 1e9]);
        let axis = Axis::logarithmic([512.0, 1e8], [0.0, 100.0]);
        assert_eq!(ticks_of_bytes(&axis, 7), [1024.0, 32_768.0, 1_048_576.0, 33_554_432.0]);
    }

    #[test]
    fn values_fall_between_the_ends() {
        let axis = Axis::logarithmic([10.0, 1000.0], [0.0, 100.0]);
        assert!((axis.at(100.0) - 50.0).abs() < 1e-9);
        assert_eq!((axis.at(0.0), axis.at(-1.0), axis.at(1e9)), (0.0, 0.0, 100.0));
        let same = Axis::linear([3.0, 3.0], [0.0, 10.0]);
        assert_eq!(same.at(3.0), 5.0);
        assert_eq!(Axis::from_zero(f64::NAN, [0.0, 1.0]).low, 0.0);
    }
}
