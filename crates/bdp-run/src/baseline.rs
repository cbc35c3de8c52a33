//! A run that a measurement is compared with.

use bdp_model::comparison::{Comparison, Regression, THRESHOLD};
use bdp_model::figure::{Figure, Quantile, values};
use bdp_model::measurement::{MeasureRequest, Measurement};
use serde::{Deserialize, Serialize};

/// What there was before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// What the run is called.
    pub run: String,
    /// Its measurements.
    pub measurements: Vec<Measurement>,
}

/// A figure of a measurement compared with the same one of its baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// Which.
    pub figure: Figure,
    /// The baseline's values and those of now.
    pub comparison: Comparison,
    /// Whether it is goodput and worse, beyond the noise and [`THRESHOLD`].
    pub regressed: bool,
}

impl Against {
    /// What is said of a regression; `None` where that is not judged.
    pub fn regression(&self) -> Option<Regression> {
        let is_judged = matches!(self.figure, Figure::Goodput(_));
        is_judged.then(|| self.comparison.regression(self.figure.better(), THRESHOLD))
    }
}

impl Baseline {
    /// Whether it has a direction that is measured now.
    pub fn suits(&self, now: &MeasureRequest) -> bool {
        now.directions.iter().any(|&way| !values(Figure::Goodput(way), &self.measurements).is_empty())
    }

    /// Goodput and loaded round trips of each direction that both have.
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
