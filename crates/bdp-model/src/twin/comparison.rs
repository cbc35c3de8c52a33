//! Compares a twin with the measurement that it was made from.

use serde::{Deserialize, Serialize};

use super::path::{Parameter, Twin};
use crate::measurement::ends::Direction;
use crate::statistics::Estimate;

/// Version of the twin schema.
pub const TWIN_SCHEMA: &str = "bdp.twin/1";

/// The report of `bdp twin`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinReport {
    /// Name and version of this document's schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = TWIN_SCHEMA)))]
    pub schema: String,
    /// Version of bdp.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// Id of the run that it is made from; null if its file does not record it.
    pub run: Option<String>,
    /// One twin for each measured direction, or one for both if they ran at once.
    pub twins: Vec<Compared>,
}

/// A twin and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// The twin.
    pub twin: Twin,
    /// Its scenario.
    pub scenario: String,
    /// The kernel that ran it; null if it was not run.
    pub kernel: Option<String>,
    /// Number of repetitions.
    pub runs: u32,
    /// Parameters adjusted after an inaccurate pass.
    pub adjusted: Vec<Adjusted>,
    /// The figures of each direction that carried data.
    pub figures: Vec<DirectionFigures>,
}

impl Compared {
    /// Returns the comparison of a twin that was not run.
    pub fn unrun(twin: Twin, runs: u32, seed: u64) -> Self {
        let scenario = twin.scenario(runs, seed);
        Self { twin, scenario, kernel: None, runs: 0, adjusted: Vec::new(), figures: Vec::new() }
    }

    /// Whether the twin repeats all directions; true if it was not run.
    pub fn repeats(&self) -> bool {
        self.figures.iter().all(|figures| figures.fidelity == Fidelity::Repeats)
    }
}

/// Figures of one direction, measured and in the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionFigures {
    /// The direction.
    pub direction: Direction,
    /// Goodput, bit/s.
    pub goodput_bps: Figure,
    /// Median round trip under load, nanoseconds.
    pub loaded_p50_ns: Option<Figure>,
    /// 95th percentile of the round trip under load, nanoseconds.
    pub loaded_p95_ns: Option<Figure>,
    /// Retransmitted segments.
    pub retransmits: Option<Figure>,
    /// How closely the twin repeats the measurement.
    pub fidelity: Fidelity,
}

/// A figure, measured and in the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Measured value.
    pub measured: f64,
    /// Mean over the twin's repetitions.
    pub twin: f64,
    /// 95 % confidence interval of the mean; null for a single repetition or identical values.
    pub interval: Option<[f64; 2]>,
}

impl Figure {
    /// Creates a figure from repetitions; `None` if there are none.
    pub fn of(measured: f64, repetitions: &[f64]) -> Option<Self> {
        let Estimate { mean, interval, .. } = Estimate::of(repetitions)?;
        Some(Self { measured, twin: mean, interval })
    }

    /// Returns twin / measured; `None` if nothing was measured.
    pub fn ratio(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| self.twin / self.measured)
    }
}

/// How closely a twin repeats the measurement of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Goodput is within 10 % and the median round trip under load within 20 %.
    Repeats,
    /// Goodput differs by more.
    GoodputDiffers,
    /// The round trip under load differs by more.
    DelayDiffers,
    /// Both differ by more.
    Differs,
}

impl Fidelity {
    /// Largest relative difference of goodput in a twin that repeats the measurement.
    pub const GOODPUT: f64 = 0.10;
    /// Largest relative difference of the median round trip under load in a twin that repeats the measurement.
    pub const DELAY: f64 = 0.20;

    /// Judges these figures.
    pub fn of(goodput: &Figure, loaded_p50: Option<&Figure>) -> Self {
        let off = |figure: &Figure, by: f64| figure.ratio().is_none_or(|ratio| (ratio - 1.0).abs() > by);
        match (off(goodput, Self::GOODPUT), loaded_p50.is_some_and(|figure| off(figure, Self::DELAY))) {
            (false, false) => Self::Repeats,
            (true, false) => Self::GoodputDiffers,
            (false, true) => Self::DelayDiffers,
            (true, true) => Self::Differs,
        }
    }
}

/// A parameter adjusted after an inaccurate pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Adjusted {
    /// The pass before the adjustment, from 1.
    pub round: u32,
    /// The direction.
    pub way: Direction,
    /// The parameter.
    pub what: Parameter,
    /// Value before.
    pub from: f64,
    /// Value after.
    pub to: f64,
}
