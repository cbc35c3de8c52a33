//! Compares two runs.

use bdp_model::sweep::run_comparison::{Compared, Metric, Outcomes};
use serde::{Deserialize, Serialize};

use crate::RunError;

/// Two runs by their figures, and the metrics to judge.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparePlan {
    /// The run to compare with.
    pub a: RunFigures,
    /// The run to judge.
    pub b: RunFigures,
    /// The metrics whose regression fails the comparison.
    pub judge: Vec<Metric>,
    /// Changes up to this share of `a` are not a regression.
    pub threshold: f64,
}

/// A run and its figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFigures {
    /// The run's name.
    pub run: String,
    /// Its figures by point.
    pub points: Outcomes,
}

impl ComparePlan {
    /// Compares the runs; refuses runs that have no point in common. Two runs of one point each are compared whatever
    /// their points are named.
    pub fn run(&self) -> Result<Compared, RunError> {
        let (mut a, mut b) = (self.a.points.clone(), self.b.points.clone());
        if let ([one], [other]) = (self.a.points.points().as_slice(), self.b.points.points().as_slice())
            && one != other
        {
            let name = format!("{one} | {other}");
            a.rename_only(&name);
            b.rename_only(&name);
        }
        let compared = Compared::of(&a, &b, &self.judge, self.threshold);
        if compared.rows.is_empty() {
            let (a, b) = (&self.a, &self.b);
            return Err(RunError::Request(format!(
                "runs {} and {} have no point in common: {} has {}, {} has {}; compare runs with the same \
                 scenario, or the same directions and parameters",
                a.run,
                b.run,
                a.run,
                some(&a.points),
                b.run,
                some(&b.points)
            )));
        }
        // A metric that no row has would pass unnoticed.
        if let Some(absent) =
            self.judge.iter().find(|&&metric| compared.rows.iter().all(|r| r.metric != metric))
        {
            let (a, b) = (&self.a.run, &self.b.run);
            return Err(RunError::Request(format!(
                "runs {a} and {b} have no {} in common; choose a figure that both have with --judge",
                absent.words()
            )));
        }
        Ok(compared)
    }
}

fn some(points: &Outcomes) -> String {
    match points.points().as_slice() {
        [] => "none".to_owned(),
        [only] => format!("'{only}'"),
        [first, rest @ ..] => format!("'{first}' and {} more", rest.len()),
    }
}
