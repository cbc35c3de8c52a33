//! A run that a measurement is compared with.

use bdp_model::measurement::figure::{Figure, Quantile, values};
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_model::statistics::comparison::{Comparison, Regression, THRESHOLD};
use serde::{Deserialize, Serialize};

/// The run that a measurement is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// The run's name.
    pub run: String,
    /// The run's measurements.
    pub measurements: Vec<Measurement>,
}

/// A figure of a measurement, compared with the same figure of the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Against {
    /// The figure.
    pub figure: Figure,
    /// The values of the baseline and of the new measurement.
    pub comparison: Comparison,
    /// Whether this is goodput and got worse by more than the noise and [`THRESHOLD`].
    pub regressed: bool,
}

impl Against {
    /// The regression's assessment; `None` if it is not assessed.
    pub fn regression(&self) -> Option<Regression> {
        let is_judged = matches!(self.figure, Figure::Goodput(_));
        is_judged.then(|| self.comparison.regression(self.figure.better(), THRESHOLD))
    }
}

impl Baseline {
    /// Whether the baseline has a direction that the new request measures.
    pub fn suits(&self, now: &MeasureRequest) -> bool {
        now.directions.iter().any(|&way| !values(Figure::Goodput(way), &self.measurements).is_empty())
    }

    /// Compares goodput and loaded round trips of each direction that both have.
    pub(crate) fn compare(&self, measured: &[Measurement], now: &MeasureRequest) -> Vec<Against> {
        let figures = now
            .directions
            .iter()
            .flat_map(|&way| [Figure::Goodput(way), Figure::RttLoaded(way, Quantile::P95)]);
        figures
            .filter_map(|figure| {
                let (before, now) = (values(figure, &self.measurements), values(figure, measured));
                let comparison = Comparison::of(&before, &now, figure.better())?;
                let regressed = matches!(figure, Figure::Goodput(_)) && comparison.regressed(THRESHOLD);
                Some(Against { figure, comparison, regressed })
            })
            .collect()
    }
}
