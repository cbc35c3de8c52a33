//! `bdp compare`: two stored runs, point by point, with intervals of confidence.

use std::path::PathBuf;

use bdp_model::Probability;
use bdp_model::comparison::THRESHOLD;
use bdp_model::record::Record;
use bdp_report::{Compared, Metric, Outcomes};
use bdp_store::{RunInfo, SqliteStore, Store};
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{self, tame, utc};
use crate::store::{StoreArgs, refuse};
use crate::{Outcome, exit};

/// Arguments of `bdp compare`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp compare 7f3a 91c0\n  bdp compare before after --threshold 2% --json\n\n\
    Exit codes: 0 no regression; 1 B regressed; 2 wrong request; 3 the environment refused; 4 a bug of bdp."
)]
pub struct CompareArgs {
    /// The run to compare with: its name, the beginning of it, or its label
    #[arg(value_name = "A")]
    a: String,

    /// The run that is judged
    #[arg(value_name = "B")]
    b: String,

    /// Changes up to this share of A are no regression
    #[arg(long, value_name = "SHARE", default_value_t = threshold())]
    threshold: Probability,

    /// What fails the comparison when it regresses
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "goodput")]
    judge: Vec<Judged>,

    /// Print JSON (docs/compare.md)
    #[arg(long)]
    json: bool,

    /// Write an HTML page about it to this file, too
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Judged {
    /// Goodput
    Goodput,
    /// Median idle round trip
    RttIdle,
    /// 95th percentile of the loaded round trip
    RttLoaded,
    /// Segments sent again
    Retransmits,
}

impl Judged {
    fn metric(self) -> Metric {
        match self {
            Self::Goodput => Metric::GoodputBps,
            Self::RttIdle => Metric::RttIdleNs,
            Self::RttLoaded => Metric::RttLoadedP95Ns,
            Self::Retransmits => Metric::Retransmits,
        }
    }
}

impl CompareArgs {
    /// Compares.
    pub fn run(self) -> Outcome {
        let Some(store) = self.store.open_to_read()? else {
            return Err(exit::usage(format!("there is no run '{}'; nothing is stored yet", self.a)));
        };
        let (a, mut left) = outcomes(&store, &self.a)?;
        let (b, mut right) = outcomes(&store, &self.b)?;
        // Two runs of one point each are meant to be compared, whatever their points are called.
        let (only_a, only_b) = (left.points().to_vec(), right.points().to_vec());
        if let ([one], [other]) = (only_a.as_slice(), only_b.as_slice())
            && one != other
        {
            let name = format!("{one} | {other}");
            left.rename_only(&name);
            right.rename_only(&name);
        }
        let judged: Vec<Metric> = self.judge.iter().map(|j| j.metric()).collect();
        let threshold = self.threshold.fraction();
        let compared = Compared::of(&left, &right, &judged, threshold);
        if compared.rows.is_empty() {
            return Err(exit::usage(format!(
                "runs {} and {} have no point in common: {} has {}, {} has {}; compare runs of the same scenario, or of the \
                 same directions and parameters",
                a.id,
                b.id,
                a.id,
                some(left.points()),
                b.id,
                some(right.points())
            )));
        }
        if self.json {
            output::print(&format!("{:#}\n", compared.json(&about(&a), &about(&b), threshold)))?;
        } else {
            let style = output::style();
            let heading = format!("A  {}\nB  {}\n\n", line(&a), line(&b));
            output::print(&(heading + &compared.table(threshold, &style)))?;
        }
        if let Some(path) = &self.report {
            crate::report::write_comparison(path, &compared, [&a, &b], threshold, &self.store)?;
        }
        Ok(if compared.regressed() { Exit::Missed } else { Exit::Done })
    }
}

/// Where none is given: that of `bdp measure --baseline`, too.
fn threshold() -> Probability {
    Probability::new(THRESHOLD).unwrap_or_default()
}

fn outcomes(store: &SqliteStore, name: &str) -> anyhow::Result<(RunInfo, Outcomes)> {
    let run = store.run(name).map_err(refuse)?;
    let records = store.records(&run.id).map_err(refuse)?;
    let measurements = store.measurements(&run.id).map_err(refuse)?;
    let outcomes = if records.is_empty() {
        let measurements = crate::sweep::in_order(measurements);
        let whole = measurements.iter().filter(|m| m.measurement.error.is_none());
        Outcomes::of_measurements(whole.map(|m| (&m.params, &m.measurement)))
    } else {
        let records: Vec<Record> = records.iter().map(|(_, record)| record.clone()).collect();
        Outcomes::of_records(bdp_report::in_order(&records))
    };
    if outcomes.points().is_empty() {
        return Err(exit::usage(format!(
            "run {} has nothing to compare: no {} of it counts; 'bdp show {}' says why",
            run.id,
            if records.is_empty() { "measurement" } else { "record" },
            run.id
        )));
    }
    Ok((run, outcomes))
}

fn some(points: &[String]) -> String {
    match points {
        [] => "none".to_owned(),
        [only] => format!("'{}'", tame(only)),
        [first, rest @ ..] => format!("'{}' and {} more", tame(first), rest.len()),
    }
}

fn line(run: &RunInfo) -> String {
    let label = run.label.as_deref().map(|l| format!("  {}", tame(l))).unwrap_or_default();
    format!("{}{label}  {}  {}", run.id, utc(run.started_unix_ms), tame(&run.scenario))
}

fn about(run: &RunInfo) -> Value {
    json!({
        "run": run.id,
        "label": run.label,
        "kind": run.kind.name(),
        "scenario": run.scenario,
        "started_unix_ms": run.started_unix_ms,
    })
}
