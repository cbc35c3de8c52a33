//! A stored run to compare with.

use bdp_model::comparison::{Comparison, Verdict};
use bdp_model::figure::{Figure, Quantile, values};
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_store::{RunKind, SqliteStore, Store};

use crate::exit;
use crate::store::refuse;

/// A loss of goodput up to this share is no regression, however sure it is.
const NEGLIGIBLE: f64 = 0.01;
/// Resamples are drawn from this, so that a comparison repeats.
const SEED: u64 = 1;

/// Measurements of a stored run.
pub struct Baseline {
    run: String,
    measurements: Vec<Measurement>,
    directions: Vec<bdp_model::measurement::Way>,
}

impl Baseline {
    /// Reads it; refuses one that holds nothing to compare with.
    pub fn load(run: &str, store: &SqliteStore, request: &MeasureRequest) -> anyhow::Result<Self> {
        let info = store.run(run).map_err(refuse)?;
        let what = match info.kind {
            RunKind::Measure => None,
            RunKind::Lab => Some("a run of the lab"),
            RunKind::Sweep => Some("a sweep"),
        };
        if let Some(what) = what {
            return Err(exit::usage(format!(
                "run {} is {what}; --baseline takes a run of 'bdp measure'",
                info.id
            )));
        }
        let measurements: Vec<Measurement> =
            store.measurements(&info.id).map_err(refuse)?.into_iter().map(|kept| kept.measurement).collect();
        let directions: Vec<_> = request
            .directions
            .iter()
            .copied()
            .filter(|&way| !values(Figure::Goodput(way), &measurements).is_empty())
            .collect();
        if directions.is_empty() {
            return Err(exit::usage(format!("run {} measured no direction that is measured now", info.id)));
        }
        Ok(Self { run: info.id, measurements, directions })
    }

    /// The comparison in lines, and whether goodput is less beyond the noise.
    pub fn compare(&self, measured: &[Measurement]) -> (String, bool) {
        let mut text = String::new();
        let mut regressed = false;
        for &way in &self.directions {
            for figure in [Figure::Goodput(way), Figure::RttLoaded(way, Quantile::P95)] {
                let (before, now) = (values(figure, &self.measurements), values(figure, measured));
                let Some(comparison) = Comparison::of(&before, &now, figure.better(), SEED) else { continue };
                let worse = matches!(figure, Figure::Goodput(_)) && comparison.regressed(NEGLIGIBLE);
                regressed |= worse;
                text.push_str(&line(&self.run, figure, &comparison, worse));
            }
        }
        (text, regressed)
    }
}

fn line(run: &str, figure: Figure, comparison: &Comparison, regressed: bool) -> String {
    let signed = |share: f64| format!("{:+.1} %", share * 100.0);
    let effect = comparison.effect.map_or_else(String::new, |effect| format!(", {}", signed(effect)));
    let interval = comparison.effect_interval.as_ref().map_or_else(String::new, |i| {
        format!(" ({:.0} %: {} to {})", i.confidence * 100.0, signed(i.low), signed(i.high))
    });
    let verdict = match comparison.verdict {
        _ if regressed => "REGRESSED".to_owned(),
        Verdict::TooFewRuns => {
            format!(
                "too few runs to tell, {} and {}; --runs 3 or more of each",
                comparison.a.n, comparison.b.n
            )
        }
        verdict => verdict.words().to_owned(),
    };
    format!(
        "baseline {run}  {figure}  {} -> {}{effect}{interval}: {verdict}\n",
        figure.format(comparison.a.p50),
        figure.format(comparison.b.p50),
    )
}
