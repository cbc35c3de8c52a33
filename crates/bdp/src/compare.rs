//! `bdp compare`: two stored runs, point by point, with intervals of confidence.

use bdp_model::Probability;
use bdp_model::comparison::THRESHOLD;
use bdp_report::{About, Compared, Metric, Outcomes};
use bdp_store::RunInfo;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::exit::{self, Outcome};
use crate::found::{Found, Kept};
use crate::output::{self, tame, utc};
use crate::report::PageArgs;
use crate::store::StoreArgs;

/// Arguments of `bdp compare`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp compare 7f3a 91c0\n  bdp compare before after --threshold 2% --json\n  bdp compare baseline.jsonl\n\n\
    Exit codes: 0 no regression; 1 B regressed; 2 wrong request; 3 the environment refused; 4 a bug of bdp."
)]
pub struct CompareArgs {
    /// The run to compare with: its id, the beginning of it, or its label; or a file that --json or 'bdp runs export' wrote
    #[arg(value_name = "A")]
    a: String,

    /// The run that is judged [default: the newest run]
    #[arg(value_name = "B")]
    b: Option<String>,

    /// Changes up to this share of A are no regression
    #[arg(long, value_name = "SHARE", default_value_t = threshold())]
    threshold: Probability,

    /// What fails the comparison when it regresses
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "goodput")]
    judge: Vec<Judged>,

    /// Print JSON ('bdp help comparisons')
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    page: PageArgs,

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
    /// Retransmitted segments
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
        let a = Found::find(Some(&self.a), &self.store)?;
        let b = Found::find(self.b.as_deref(), &self.store)?;
        let (mut left, mut right) = (outcomes(&a)?, outcomes(&b)?);
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
                a.info.id,
                b.info.id,
                a.info.id,
                some(left.points()),
                b.info.id,
                some(right.points())
            )));
        }
        if self.json {
            output::print(&format!("{:#}\n", compared.json(&about(&a), &about(&b), threshold)))?;
        } else {
            let style = output::style();
            let heading = format!("A  {}\nB  {}\n\n", line(&a.info), line(&b.info));
            output::print(&(heading + &compared.table(threshold, &style)))?;
        }
        let store = self.store.given();
        self.page.write(None, &self.store, |words| {
            let about = |found| About { planned: None, ..Found::about(found, store.as_deref()) };
            let first = About { title: words.title, note: words.note, ..about(&a) };
            bdp_report::html_of_comparison(&compared, &first, &about(&b), threshold)
        })?;
        Ok(if compared.regressed() { Exit::Missed } else { Exit::Done })
    }
}

/// Where none is given: that of `bdp measure --baseline`, too.
fn threshold() -> Probability {
    Probability::new(THRESHOLD).unwrap_or_default()
}

fn outcomes(found: &Found) -> anyhow::Result<Outcomes> {
    let (what, outcomes) = match &found.kept {
        Kept::Measurements(all) => {
            let whole = all.iter().filter(|m| m.measurement.error.is_none());
            ("measurement", Outcomes::of_measurements(whole.map(|m| (&m.params, &m.measurement))))
        }
        Kept::Records(_) => ("record", Outcomes::of_records(bdp_model::points::in_order(&found.records()))),
    };
    if outcomes.points().is_empty() {
        let id = tame(&found.info.id);
        return Err(exit::usage(format!(
            "run {id} has nothing to compare: no {what} of it counts; 'bdp show {}' says why",
            output::quote(&id)
        )));
    }
    Ok(outcomes)
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
    format!("{}{label}  {}  {}", tame(&run.id), utc(run.started_unix_ms), tame(&run.scenario))
}

fn about(found: &Found) -> Value {
    let run = &found.info;
    json!({
        "run": run.id,
        "label": run.label,
        "kind": run.kind.name(),
        "scenario": run.scenario,
        "started_unix_ms": run.started_unix_ms,
    })
}
