//! `bdp compare`: two stored runs, point by point, with intervals of confidence.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bdp_model::Probability;
use bdp_model::comparison::THRESHOLD;
use bdp_model::run_comparison::{Metric, Outcomes};
use bdp_report::{About, ComparedText};
use bdp_run::compare::{ComparePlan, RunFigures};
use bdp_run::job::{Job, Results};
use bdp_store::RunInfo;
use serde_json::{Value, json};

use crate::exit::{self, Exit, Outcome};
use crate::found::{Found, Kept};
use crate::guest;
use crate::output::{self, tame, utc};
use crate::report::PageArgs;
use crate::store::StoreArgs;

/// Arguments of `bdp compare`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp compare                         the newest, and the one like it before\n  bdp compare 7f3a 91c0\n  bdp compare before after --threshold 2% --json\n  bdp compare baseline.jsonl\n\n\
    Exit codes: 0 no regression, or unknown or inconclusive without --strict; 1 B regressed; 2 wrong request;\n\
    3 the environment refused; 4 a bug of bdp; 6 with --strict: unknown or inconclusive."
)]
pub struct CompareArgs {
    /// The run to compare with: its id, the beginning of it, or its label; or a file that --json or 'bdp runs export' wrote
    /// [default: the newest run before B of the same kind and to the same host or of the same scenario]
    #[arg(value_name = "A")]
    a: Option<String>,

    /// The run that is judged [default: the newest run]
    #[arg(value_name = "B")]
    b: Option<String>,

    /// Changes up to this share of A are no regression
    #[arg(long, value_name = "SHARE", default_value_t = threshold())]
    threshold: Probability,

    /// What fails the comparison when it regresses; several as goodput,loss, or repeated
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', default_value = "goodput")]
    judge: Vec<Judged>,

    /// Exit 6 if it is unknown or inconclusive whether anything regressed
    #[arg(long)]
    strict: bool,

    /// Print JSON ('bdp help comparisons')
    #[arg(long)]
    json: bool,

    /// Write the differences with their intervals, as SVG and as PDF, into this folder, too
    #[arg(long, value_name = "DIR")]
    figures: Option<PathBuf>,

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
    /// Retransmitted segments, as a share of those sent
    RetransmitRatio,
    /// Datagrams or TCP segments lost, as a share of those sent
    Loss,
}

impl Judged {
    fn metric(self) -> Metric {
        match self {
            Self::Goodput => Metric::GoodputBps,
            Self::RttIdle => Metric::RttIdleNs,
            Self::RttLoaded => Metric::RttLoadedP95Ns,
            Self::Retransmits => Metric::Retransmits,
            Self::RetransmitRatio => Metric::RetransmitRatio,
            Self::Loss => Metric::LossRatio,
        }
    }
}

impl CompareArgs {
    /// Compares.
    pub fn run(self) -> Outcome {
        let b = Found::find(self.b.as_deref(), &self.store)?;
        let a = match &self.a {
            Some(_) => Found::find(self.a.as_deref(), &self.store)?,
            None => before(&b.info, &self.store)?,
        };
        let plan = ComparePlan {
            a: figures(&a)?,
            b: figures(&b)?,
            judge: self.judge.iter().map(|j| j.metric()).collect(),
            threshold: self.threshold.fraction(),
        };
        let threshold = plan.threshold;
        let never = AtomicBool::new(false);
        let ended = Job::Compare(Box::new(plan)).run(guest::commands(), None, &mut |_| {}, &never);
        let exit = Exit::of(&ended, self.strict);
        ended.result.map_err(|error| exit::usage(error.to_string()))?;
        let Results::Compared(Some(compared)) = ended.results else { return Ok(exit) };
        if self.json {
            output::print(&format!("{:#}\n", compared.json(&about(&a), &about(&b), threshold)))?;
        } else {
            let style = output::style();
            let heading = format!("A  {}\nB  {}\n\n", line(&a.info), line(&b.info));
            output::print(&(heading + &compared.table(threshold, &style)))?;
        }
        if let Some(folder) = &self.figures {
            let name = |run: &RunInfo| run.label.clone().unwrap_or_else(|| run.id.clone());
            let figures = bdp_report::figures_of_comparison(&compared, &name(&a.info), &name(&b.info));
            let paths = crate::report::write_figures(folder, &figures)?;
            paths.lines().for_each(|path| output::note(&format!("figure  {path}")));
        }
        let store = self.store.given();
        self.page.write(None, &self.store, |words| {
            let about = |found| About { planned: None, ..Found::about(found, store.as_deref()) };
            let first = About { title: words.title, note: words.note, ..about(&a) };
            bdp_report::html_of_comparison(&compared, &first, &about(&b), threshold)
        })?;
        Ok(exit)
    }
}

/// The newest run before this one that is like it.
fn before(run: &RunInfo, store: &StoreArgs) -> anyhow::Result<Found> {
    let is_like =
        |other: &RunInfo| other.id != run.id && (other.kind, &other.scenario) == (run.kind, &run.scenario);
    Found::newest_where(store, is_like)?.ok_or_else(|| {
        exit::usage(format!(
            "no other run like the newest, {} ({}), is stored; name both: bdp compare A B",
            tame(&run.id),
            tame(&run.scenario)
        ))
    })
}

/// Where none is given: that of `bdp measure --baseline`, too.
fn threshold() -> Probability {
    Probability::new(THRESHOLD).unwrap_or_default()
}

fn figures(found: &Found) -> anyhow::Result<RunFigures> {
    let (what, points) = match &found.kept {
        Kept::Measurements(all) => {
            let whole = all.iter().filter(|m| m.measurement.error.is_none());
            ("measurement", Outcomes::of_measurements(whole.map(|m| (&m.params, &m.measurement))))
        }
        Kept::Records(_) => ("record", Outcomes::of_records(bdp_model::points::in_order(&found.records()))),
    };
    let run = tame(&found.info.id);
    if points.points().is_empty() {
        return Err(exit::usage(format!(
            "run {run} has nothing to compare: no {what} of it counts; 'bdp show {}' says why",
            output::quote(&run)
        )));
    }
    Ok(RunFigures { run, points })
}

fn line(run: &RunInfo) -> String {
    let label = run.label.as_deref().map(|l| format!("  {}", tame(l))).unwrap_or_default();
    let label =
        if run.labels.is_empty() { label } else { format!("{label}  {}", tame(&run.labels.to_string())) };
    format!("{}{label}  {}  {}", tame(&run.id), utc(run.started_unix_ms), tame(&run.scenario))
}

fn about(found: &Found) -> Value {
    let run = &found.info;
    json!({
        "run": run.id,
        "label": run.label,
        "labels": run.labels,
        "kind": run.kind.name(),
        "scenario": run.scenario,
        "started_unix_ms": run.started_unix_ms,
    })
}
