//! A sweep between this machine and another: measures at each point in random order, each durable before the next
//! begins, and adds points where a curve bends.

pub(crate) mod refine;

use bdp_model::names;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_flow::session::error::SessionError;
use bdp_model::ByteCount;
use bdp_model::flow::window::WindowBytes;
use bdp_model::measurement::labels::Labels;
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_model::sweep::measured_curves::measured_curves;
use bdp_model::sweep::order::shuffle_in_blocks;
use bdp_model::sweep::points::natural_order;
use bdp_store::{RunKind, Store, StoredMeasurement};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::measure::kept::KeptRun;
use crate::measure::session::Credentials;
use crate::measure::{broken_or_whole, measure_once};
use crate::{Event, Result};
use refine::Refinement;

/// A parameter that a sweep can vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Variable {
    /// Window on the wire, in bytes.
    Window,
    /// Number of parallel streams.
    Streams,
    /// Bytes per write.
    Length,
    /// Maximum segment size, in bytes.
    Mss,
    /// Congestion control algorithm.
    Congestion,
}

/// A parameter and its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Varied {
    /// The parameter to vary.
    pub parameter: Variable,
    /// Its values: in ascending order for a range, otherwise as listed.
    pub values: Vec<Setting>,
}

/// One value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// As typed, or as a number if calculated.
    pub text: String,
    /// Bytes or a count; 0 for a word.
    pub number: u64,
}

/// A sweep to a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepPlan {
    /// The request of each point, except for the varied parameters.
    pub request: MeasureRequest,
    /// Credentials for a server; never stored.
    #[serde(skip)]
    pub credentials: Credentials,
    /// The varied parameters; every combination of their values is measured.
    pub varied: Vec<Varied>,
    /// Measurements at each point.
    pub runs: u32,
    /// Whether to add points where a curve bends.
    pub refine: bool,
    /// Seed of the points' order.
    pub seed: u64,
    /// The user's name for it.
    pub label: Option<String>,
    /// The user's labels, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The command that repeats the sweep.
    pub command: String,
}

/// The result of a sweep.
#[derive(Debug)]
pub struct Swept {
    /// The id of the stored run; `None` if nothing is stored.
    pub run: Option<String>,
    /// Every measurement, in the natural order of the points.
    pub measurements: Vec<StoredMeasurement>,
    /// Whether it completed; being cancelled is not an error.
    pub result: Result<()>,
}

/// Measures once, as the repetition of this number.
pub type Measure<'a> = dyn FnMut(&MeasureRequest, u32) -> Result<Measurement, SessionError> + 'a;

names!(
    Variable: Window = "window", Streams = "streams", Length = "length", Mss = "mss",
        Congestion = "congestion"
);

impl Variable {
    /// Sets one of its values in a request.
    fn apply(self, value: &Setting, request: &mut MeasureRequest) -> Result<(), SessionError> {
        match self {
            Self::Window => {
                let window = WindowBytes::try_from(ByteCount::bytes(value.number));
                request.spec.window = Some(window.map_err(|e| SessionError::Request(e.to_string()))?);
            }
            Self::Streams => request.spec.streams = value.number as u32,
            Self::Length => request.spec.length = ByteCount::bytes(value.number),
            Self::Mss => request.spec.mss = Some(value.number as u32),
            Self::Congestion => request.spec.congestion = Some(value.text.clone()),
        }
        Ok(())
    }
}

impl SweepPlan {
    /// Sweeps, and stores each measurement in `store` before the next begins. `cancel` ends it within a second; an
    /// interrupted measurement is not a point.
    pub fn run(
        &self,
        store: Option<&mut dyn Store>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Swept {
        let called = (self.label.as_deref(), &self.labels);
        let mut measure = |request: &MeasureRequest, repetition| {
            measure_once(request, &self.credentials, called, repetition, &mut |_| {}, cancel)
        };
        self.run_with(&mut measure, store, watch, cancel)
    }

    /// Like [`SweepPlan::run`], with a custom way to measure.
    pub fn run_with(
        &self,
        measure: &mut Measure<'_>,
        store: Option<&mut dyn Store>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Swept {
        let called = (self.label.as_deref(), &self.labels);
        let run = KeptRun::new(store, RunKind::Sweep, &self.request.host, called, &self.command);
        let mut sweep = Sweep { plan: self, run, planned: 0, kept: Vec::new() };
        let result = sweep.carry_out(measure, watch, cancel);
        Swept { run: sweep.run.id().map(str::to_owned), measurements: in_order(sweep.kept), result }
    }
}

/// Returns the measurements of a sweep in the natural order of their points, whatever the order in which they were
/// made.
pub fn in_order(kept: Vec<StoredMeasurement>) -> Vec<StoredMeasurement> {
    let all: Vec<_> = kept.iter().map(|k| (&k.params, k.measurement.repetition)).collect();
    let order = natural_order(&all);
    let mut kept: Vec<Option<StoredMeasurement>> = kept.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| kept[index].take()).collect()
}

/// A value of each parameter.
type SweptPoint = Vec<(Variable, Setting)>;

/// A sweep in progress.
struct Sweep<'p, 's> {
    plan: &'p SweepPlan,
    run: KeptRun<'s>,
    planned: usize,
    kept: Vec<StoredMeasurement>,
}

impl Sweep<'_, '_> {
    fn carry_out(
        &mut self,
        measure: &mut Measure<'_>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Result<()> {
        let plan = self.plan;
        let along = plan.varied.iter().find(|v| v.parameter != Variable::Congestion && v.values.len() > 1);
        let mut refinement =
            along.filter(|_| plan.refine).map(|v| Refinement::of(v.values.iter().map(|value| value.number)));
        let mut round = plan.varied.clone();
        loop {
            let points = combinations(&round);
            self.planned += points.len() * plan.runs as usize;
            self.run.plan(self.planned)?;
            let mut turns: Vec<_> = (1..=plan.runs)
                .flat_map(|repetition| points.iter().map(move |point| (point, repetition)))
                .collect();
            shuffle_in_blocks(&mut turns, |turn| turn.1, plan.seed);
            for (point, repetition) in turns {
                if cancel.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let made = measure(&request(&plan.request, point)?, repetition);
                let (measurement, broken) = broken_or_whole(made)?;
                // An interrupted measurement would not be a valid point of the curve.
                if cancel.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.keep(point, repetition, measurement, watch)?;
                if let Some(cause) = broken {
                    return Err(cause.into());
                }
            }
            let all: Vec<_> = self.kept.iter().map(|k| (&k.params, &k.measurement)).collect();
            let new = refinement.as_mut().map(|r| r.next(&measured_curves(&all))).unwrap_or_default();
            let Some(along) = along.filter(|_| !new.is_empty()) else { break };
            for one in round.iter_mut().filter(|v| v.parameter == along.parameter) {
                one.values = new.iter().map(|&number| Setting { text: number.to_string(), number }).collect();
            }
        }
        Ok(self.run.finish()?)
    }

    /// Makes a measurement durable, and reports it; the first one also creates the stored run.
    fn keep(
        &mut self,
        point: &SweptPoint,
        repetition: u32,
        measurement: Measurement,
        watch: &mut dyn FnMut(Event<'_>),
    ) -> Result<()> {
        let words: Vec<String> =
            point.iter().map(|(parameter, value)| format!("{}={}", parameter.name(), value.text)).collect();
        let key = words.join(" ");
        let params: BTreeMap<String, Value> = point
            .iter()
            .map(|(parameter, value)| (parameter.name().to_owned(), Value::from(value.text.clone())))
            .collect();
        let kept = StoredMeasurement { case_key: format!("{key} #{repetition}"), params, measurement };
        self.run.append(&kept)?;
        self.kept.push(kept);
        let (done, planned) = (self.kept.len(), self.planned);
        let measurement = Cow::Borrowed(&self.kept[done - 1].measurement);
        watch(Event::PointEnded { key: Cow::Borrowed(&key), done, planned, measurement });
        Ok(())
    }
}

fn request(base: &MeasureRequest, point: &SweptPoint) -> Result<MeasureRequest, SessionError> {
    // The curve itself is the experiment.
    let mut request = MeasureRequest { no_experiments: true, ..base.clone() };
    for (parameter, value) in point {
        parameter.apply(value, &mut request)?;
    }
    Ok(request)
}

/// Returns every combination of values; the first parameter varies slowest.
fn combinations(varied: &[Varied]) -> Vec<SweptPoint> {
    varied.iter().fold(vec![Vec::new()], |all, one| {
        all.iter()
            .flat_map(|before| {
                one.values.iter().map(|value| {
                    let mut point = before.clone();
                    point.push((one.parameter, value.clone()));
                    point
                })
            })
            .collect()
    })
}

#[cfg(test)]
mod tests;
