//! `bdp compare`: two stored runs, point by point, with confidence intervals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use bdp_model::Probability;
use bdp_model::statistics::comparison::THRESHOLD;
use bdp_model::sweep::run_comparison::{Compared, Metric, Outcomes};
use bdp_report::{About, ComparedText, Side};
use bdp_run::compare::{ComparePlan, RunFigures};
use bdp_run::job::context::Context;
use bdp_run::job::{Job, Results};
use bdp_store::RunInfo;
use serde_json::Value;

use crate::exit::{self, Exit, Outcome};
use crate::found::{Found, Kept};
use crate::guest;
use crate::output::{self, tame, utc};
use crate::planned::Planned;
use crate::report::PageArgs;
use crate::store::StoreArgs;

/// Arguments of `bdp compare`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp compare                         the newest run with the previous comparable run\n  bdp compare 7f3a 91c0\n  bdp compare before after --threshold 2% --json\n  bdp compare baseline.jsonl\n  \
    bdp compare 7f3a --by congestion=reno,cubic    two settings within one sweep\n\n\
    Exit codes: 0 no regression, or unknown or inconclusive without --strict; 1 B regressed; 2 usage error;\n\
    3 environment error; 4 bug in bdp; 6 with --strict: unknown or inconclusive."
)]
pub struct CompareArgs {
    /// Baseline run: its id, a prefix of the id, or its label; or a file written by --json or 'bdp runs export'
    /// [default: the newest run before B of the same kind and with the same host or scenario]
    #[arg(value_name = "A")]
    a: Option<String>,

    /// Run to judge [default: the newest run]
    #[arg(value_name = "B")]
    b: Option<String>,

    /// Compare two settings of a parameter within run A, for example congestion=reno,cubic
    #[arg(long, value_name = "NAME=A,B", value_parser = Settings::read, conflicts_with = "b")]
    by: Option<Settings>,

    /// Largest change, as a share of A, that is not a regression
    #[arg(long, value_name = "SHARE", default_value_t = threshold())]
    threshold: Probability,

    /// Figures that fail the comparison if they regress, for example goodput,loss; repeatable
    #[arg(long, value_name = "WHAT,...", value_delimiter = ',', default_value = "goodput")]
    judge: Vec<Judged>,

    /// Exit 6 if it is unknown or inconclusive whether anything regressed
    #[arg(long)]
    strict: bool,

    /// Print JSON ('bdp help comparisons')
    #[arg(long)]
    json: bool,

    /// Also write charts of the differences and their intervals, SVG and PDF, to this folder
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
    /// The job that compares the runs.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        let sides = self.sides()?;
        let plan = self.plan(&sides)?;
        let threshold = plan.threshold;
        Ok(Planned::new(Job::Compare(Box::new(plan)), move |ended| match &ended.results {
            Results::Compared(Some(compared)) => Some(sides.json(compared, threshold)),
            _ => None,
        }))
    }

    fn sides(&self) -> anyhow::Result<Sides> {
        let (a, b) = match (&self.by, &self.a) {
            (Some(by), run) => {
                let of = |value: &str| by.select(Found::find(run.as_deref(), &self.store)?, value);
                (of(&by.values[0])?, of(&by.values[1])?)
            }
            (None, Some(run)) => {
                (Found::find(Some(run), &self.store)?, Found::find(self.b.as_deref(), &self.store)?)
            }
            (None, None) => {
                let newest = Found::find(None, &self.store)?;
                (before(&newest.info, &self.store)?, newest)
            }
        };
        Ok(Sides { a, b, settings: self.by.as_ref().map(Settings::each).unwrap_or_default() })
    }

    fn plan(&self, sides: &Sides) -> anyhow::Result<ComparePlan> {
        Ok(ComparePlan {
            a: figures(&sides.a)?,
            b: figures(&sides.b)?,
            judge: self.judge.iter().map(|j| j.metric()).collect(),
            threshold: self.threshold.fraction(),
        })
    }

    /// Compares the runs.
    pub fn run(self) -> Outcome {
        let sides = self.sides()?;
        let plan = self.plan(&sides)?;
        let threshold = plan.threshold;
        let never = AtomicBool::new(false);
        let ended = Job::Compare(Box::new(plan)).run(Context::new(&guest::commands, &mut |_| {}, &never));
        let exit = Exit::of(&ended, self.strict);
        ended.result.map_err(|error| exit::usage(error.to_string()))?;
        let Results::Compared(Some(compared)) = ended.results else { return Ok(exit) };
        let Sides { a, b, settings } = &sides;
        if self.json {
            output::print(&format!("{:#}\n", sides.json(&compared, threshold)))?;
        } else {
            let style = output::style();
            let of = |found: &Found, setting: &Option<String>| {
                setting.iter().fold(line(&found.info), |line, setting| format!("{line}  {}", tame(setting)))
            };
            let heading = format!("A  {}\nB  {}\n\n", of(a, &settings[0]), of(b, &settings[1]));
            output::print(&(heading + &compared.table(threshold, &style)))?;
        }
        if let Some(folder) = &self.figures {
            let name = |run: &RunInfo, setting: &Option<String>| {
                setting.clone().or_else(|| run.label.clone()).unwrap_or_else(|| run.id.clone())
            };
            let (of, against) = (name(&b.info, &settings[1]), name(&a.info, &settings[0]));
            let figures = bdp_report::figures_of_comparison(&compared, &against, &of);
            let paths = crate::report::write_figures(folder, &figures)?;
            paths.lines().for_each(|path| output::note(&format!("figure  {path}")));
        }
        let store = self.store.given();
        self.page.write(None, &self.store, |words| {
            let store = store.as_deref();
            let first = About { title: words.title, note: words.note, ..page_about(a, store, &settings[0]) };
            bdp_report::html_of_comparison(&compared, &first, &page_about(b, store, &settings[1]), threshold)
        })?;
        Ok(exit)
    }
}

/// The two runs, or the same run with each of two settings.
struct Sides {
    a: Found,
    b: Found,
    settings: [Option<String>; 2],
}

impl Sides {
    fn json(&self, compared: &Compared, threshold: f64) -> Value {
        let Self { a, b, settings } = self;
        compared.json(&about(a, &settings[0]), &about(b, &settings[1]), threshold)
    }
}

/// Two settings of a run's varied parameter.
#[derive(Debug, Clone)]
struct Settings {
    name: String,
    values: [String; 2],
}

impl Settings {
    fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not a parameter with two settings; example: congestion=reno,cubic");
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        let values = <[String; 2]>::try_from(values).map_err(|_| wrong())?;
        if name.trim().is_empty() || values.iter().any(String::is_empty) || values[0] == values[1] {
            return Err(wrong());
        }
        Ok(Self { name: name.trim().to_owned(), values })
    }

    /// The settings in the form `congestion=reno`.
    fn each(&self) -> [Option<String>; 2] {
        [0, 1].map(|index| Some(format!("{}={}", self.name, self.values[index])))
    }

    /// Selects the part of a run with one of them, as if nothing had been varied.
    fn select(&self, mut found: Found, value: &str) -> anyhow::Result<Found> {
        let mut there: BTreeSet<String> = BTreeSet::new();
        let mut is_it = |params: &mut BTreeMap<String, Value>| {
            let path =
                params.keys().find(|path| **path == self.name || path.ends_with(&format!(".{}", self.name)));
            let Some(set) = path.cloned().and_then(|path| params.remove(&path)) else { return false };
            let set = set.as_str().map_or_else(|| set.to_string(), str::to_owned);
            let is_it = set == value;
            there.insert(set);
            is_it
        };
        match &mut found.kept {
            Kept::Measurements(all) => all.retain_mut(|kept| is_it(&mut kept.params)),
            Kept::Records(all) => all.retain_mut(|(_, record)| is_it(&mut record.params)),
        }
        if there.contains(value) {
            return Ok(found);
        }
        let run = tame(&found.info.id);
        let there: Vec<String> = there.iter().map(|set| tame(set)).collect();
        Err(exit::usage(if there.is_empty() {
            format!("run {run} did not vary {}; --by needs a parameter of the sweep", tame(&self.name))
        } else {
            format!("run {run} has no {}={}; it has {}", tame(&self.name), tame(value), there.join(", "))
        }))
    }
}

/// The newest earlier run that is comparable.
fn before(run: &RunInfo, store: &StoreArgs) -> anyhow::Result<Found> {
    let is_like =
        |other: &RunInfo| other.id != run.id && (other.kind, &other.scenario) == (run.kind, &run.scenario);
    Found::newest_where(store, is_like)?.ok_or_else(|| {
        exit::usage(format!(
            "no run comparable to the newest, {} ({}), is stored; give both: bdp compare A B",
            tame(&run.id),
            tame(&run.scenario)
        ))
    })
}

/// The default threshold, also of `bdp measure --baseline`.
fn threshold() -> Probability {
    Probability::new(THRESHOLD).unwrap_or_default()
}

fn figures(found: &Found) -> anyhow::Result<RunFigures> {
    let (what, points) = match &found.kept {
        Kept::Measurements(all) => {
            let whole = all.iter().filter(|m| m.measurement.error.is_none());
            ("measurement", Outcomes::of_measurements(whole.map(|m| (&m.params, &m.measurement))))
        }
        Kept::Records(_) => {
            ("record", Outcomes::of_records(bdp_model::sweep::points::in_order(&found.records())))
        }
    };
    let run = tame(&found.info.id);
    if points.points().is_empty() {
        return Err(exit::usage(format!(
            "run {run} has nothing to compare: it has no valid {what}; see 'bdp show {}'",
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

fn about<'a>(found: &'a Found, setting: &'a Option<String>) -> Side<'a> {
    let run = &found.info;
    Side {
        run: &run.id,
        label: run.label.as_deref(),
        labels: &run.labels,
        kind: run.kind.name(),
        scenario: &run.scenario,
        started_unix_ms: run.started_unix_ms,
        setting: setting.as_deref(),
    }
}

/// The page's description of a side.
fn page_about<'a>(found: &'a Found, store: Option<&'a str>, setting: &'a Option<String>) -> About<'a> {
    let about = found.about(store);
    About { planned: None, label: setting.as_deref().or(about.label), ..about }
}
