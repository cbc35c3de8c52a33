//! A twin beside the measurement that it was made from.

use serde::{Deserialize, Serialize};

use super::path::{Parameter, Twin};
use crate::ends::Direction;
use crate::stats::Estimate;

/// Version of the shape.
pub const TWIN_SCHEMA: &str = "bdp.twin/1";

/// All that `bdp twin` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TwinReport {
    /// Name and version of this document's shape.
    #[cfg_attr(feature = "schema", schemars(extend("const" = TWIN_SCHEMA)))]
    pub schema: String,
    /// bdp's version.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub bdp: String,
    /// The run that it is made from; null of a file that does not say.
    pub run: Option<String>,
    /// A twin for each direction that was measured; of two at once one.
    pub twins: Vec<Compared>,
}

/// A twin and what came out of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// The twin.
    pub twin: Twin,
    /// Its scenario.
    pub scenario: String,
    /// The kernel that ran it; null where it was not run.
    pub kernel: Option<String>,
    /// Repetitions.
    pub runs: u32,
    /// What was changed after a first pass missed.
    pub adjusted: Vec<Adjusted>,
    /// The figures of each direction that carried data.
    pub figures: Vec<DirectionFigures>,
}

impl Compared {
    /// A twin that was not run.
    pub fn unrun(twin: Twin, runs: u32, seed: u64) -> Self {
        let scenario = twin.scenario(runs, seed);
        Self { twin, scenario, kernel: None, runs: 0, adjusted: Vec::new(), figures: Vec::new() }
    }

    /// Whether all directions repeat; one that was not run does not differ.
    pub fn repeats(&self) -> bool {
        self.figures.iter().all(|figures| figures.fidelity == Fidelity::Repeats)
    }
}

/// The figures of one direction, measured and in the twin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionFigures {
    /// Which.
    pub direction: Direction,
    /// Goodput, bit/s.
    pub goodput_bps: Figure,
    /// Median round trip under load, nanoseconds.
    pub loaded_p50_ns: Option<Figure>,
    /// Its 95th percentile.
    pub loaded_p95_ns: Option<Figure>,
    /// Retransmitted segments.
    pub retransmits: Option<Figure>,
    /// How closely it repeats.
    pub fidelity: Fidelity,
}

/// A figure as it was measured and as the twin has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// As it was measured.
    pub measured: f64,
    /// Mean over the twin's repetitions.
    pub twin: f64,
    /// 95 % confidence interval of the mean; null for a single repetition or identical values.
    pub interval: Option<[f64; 2]>,
}

impl Figure {
    /// Of repetitions; `None` of none.
    pub fn of(measured: f64, repetitions: &[f64]) -> Option<Self> {
        let Estimate { mean, interval, .. } = Estimate::of(repetitions)?;
        Some(Self { measured, twin: mean, interval })
    }

    /// Twin / measured; `None` where nothing was measured.
    pub fn ratio(&self) -> Option<f64> {
        (self.measured > 0.0).then(|| self.twin / self.measured)
    }
}

/// How closely a twin repeats a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// Goodput within 10 %, median round trip under load within 20 %.
    Repeats,
    /// Goodput differs by more.
    GoodputDiffers,
    /// The round trip under load differs by more.
    DelayDiffers,
    /// Both do.
    Differs,
}

impl Fidelity {
    /// Goodput of a twin that repeats differs by no more than this share.
    pub const GOODPUT: f64 = 0.10;
    /// The same of the median round trip under load.
    pub const DELAY: f64 = 0.20;

    /// Of these figures.
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

/// A parameter that was changed after a pass that missed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Adjusted {
    /// Which pass it followed, from 1.
    pub round: u32,
    /// Which way.
    pub way: Direction,
    /// What.
    pub what: Parameter,
    /// Before.
    pub from: f64,
    /// After.
    pub to: f64,
}
