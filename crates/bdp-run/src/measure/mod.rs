//! Measurements between two machines: one after the other, each explained and durable before the next begins, and
//! checked against expectations.

pub mod baseline;
mod care;
pub mod explain;
pub(crate) mod kept;
pub mod session;
pub mod ssh;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::Progress;
use bdp_model::finding::caveat::Caveat;
use bdp_model::measurement::expectation::{Expectation, Judgement};
use bdp_model::measurement::labels::Labels;
use bdp_model::measurement::{MeasureRequest, Measurement};
use bdp_store::{RunKind, Store, StoredMeasurement};
use bdp_sys::random;
use serde::{Deserialize, Serialize};

use crate::job::context::Context;
use crate::{Event, Result, RunError};
use baseline::{Against, Baseline};
use kept::{Called, KeptRun};
use session::Credentials;
use ssh::{FarEnd, SshPlan};

/// A plan of measurements: what to measure, how often, and what is expected.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasurePlan {
    /// The request of each run.
    pub request: MeasureRequest,
    /// Credentials for a server; never stored.
    #[serde(skip)]
    pub credentials: Credentials,
    /// The user's name for it.
    pub label: Option<String>,
    /// The user's labels, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Number of runs.
    pub runs: u32,
    /// Whether datagrams keep the requested rate regardless of loss in the first second.
    #[serde(default)]
    pub flood: bool,
    /// The expected results.
    #[serde(default)]
    pub expectations: Vec<Expectation>,
    /// The baseline to compare with.
    pub baseline: Option<Baseline>,
    /// The command that repeats the run.
    pub command: String,
}

/// The result of a measurement plan.
#[derive(Debug)]
pub struct Measured {
    /// The id of the stored run; `None` if nothing is stored.
    pub run: Option<String>,
    /// Every measurement made, including those before an error.
    pub measurements: Vec<Measurement>,
    /// The verdict on each expectation.
    pub judgements: Vec<Judgement>,
    /// The figures compared with the baseline.
    pub comparisons: Vec<Against>,
    /// Whether it completed; being cancelled is not an error.
    pub result: Result<()>,
}

impl MeasurePlan {
    /// Measures as planned, and stores each measurement in `store` before the next run begins. `cancel` ends the
    /// current run, which returns what it has, and no further run begins.
    pub fn run(
        &self,
        store: Option<&mut dyn Store>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Measured {
        let called = (self.label.as_deref(), &self.labels);
        let watched = match self.flood {
            true => Ok(false),
            false => care::is_needed(&self.request, store.as_deref(), cancel),
        };
        let watch_loss = match watched {
            Ok(watch_loss) => watch_loss,
            Err(error) => return self.nothing(error),
        };
        let request = MeasureRequest { watch_loss, ..self.request.clone() };
        let mut measure = |repetition: u32, watch: &mut dyn FnMut(Event<'_>)| {
            let mut progress = |progress: &Progress| {
                watch(Event::Progress { repetition, progress: Cow::Borrowed(progress) });
            };
            measure_once(&request, &self.credentials, called, repetition, &mut progress, cancel)
        };
        self.run_with(&mut measure, store, watch, cancel)
    }

    /// Starts the far end by ssh, if the request says so, and makes the plan measure to it. It runs as long as the
    /// result is held.
    pub fn start_far_end(&mut self, cancel: &AtomicBool) -> Result<Option<FarEnd>> {
        let Some(request) = self.request.ssh.clone() else { return Ok(None) };
        if request.through && request.data_host.is_some() {
            let text = "with --through-ssh, data uses the ssh connection; omit HOST";
            return Err(RunError::Request(text.to_owned()));
        }
        let far = FarEnd::start(&SshPlan { request, random: u32::from_ne_bytes(random::bytes()?) }, cancel)?;
        self.request.host.clone_from(&far.host);
        self.request.port = far.port;
        self.credentials.token = Some(far.token.clone());
        Ok(Some(far))
    }

    /// Returns the result of a plan that failed before any measurement.
    fn nothing(&self, error: RunError) -> Measured {
        Measured {
            run: None,
            judgements: self.expectations.iter().map(|e| e.judge(&[])).collect(),
            comparisons: Vec::new(),
            measurements: Vec::new(),
            result: Err(error),
        }
    }

    /// Like [`MeasurePlan::run`], with a custom way to measure.
    fn run_with(
        &self,
        measure: &mut Measure<'_>,
        store: Option<&mut dyn Store>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Measured {
        let mut measurements = Vec::new();
        let called = (self.label.as_deref(), &self.labels);
        let mut kept = KeptRun::new(store, RunKind::Measure, &self.request.host, called, &self.command);
        let result = self.measure_all(measure, &mut kept, &mut measurements, watch, cancel);
        Measured {
            run: kept.id().map(str::to_owned),
            judgements: self.expectations.iter().map(|e| e.judge(&measurements)).collect(),
            comparisons: match &self.baseline {
                Some(baseline) => baseline.compare(&measurements, &self.request),
                None => Vec::new(),
            },
            measurements,
            result,
        }
    }

    fn measure_all(
        &self,
        measure: &mut Measure<'_>,
        kept: &mut KeptRun<'_>,
        measurements: &mut Vec<Measurement>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Result<()> {
        kept.plan(self.runs as usize)?;
        for repetition in 1..=self.runs {
            if repetition > 1 && cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            let (measurement, broken) = broken_or_whole(measure(repetition, watch))?;
            let case_key = format!("#{repetition}");
            let made = StoredMeasurement { case_key, params: BTreeMap::new(), measurement };
            let appended = kept.append(&made);
            let run = kept.id().map(Cow::Borrowed);
            watch(Event::MeasurementEnded { run, measurement: Cow::Borrowed(&made.measurement) });
            measurements.push(made.measurement);
            appended?;
            if let Some(cause) = broken {
                return Err(cause.into());
            }
        }
        if !cancel.load(Ordering::Relaxed) {
            kept.finish()?;
        }
        Ok(())
    }
}

/// A measurement that another job needs, with its run if it was stored.
#[derive(Debug, Clone)]
pub struct OneMeasured {
    /// The run's id.
    pub run: Option<String>,
    /// The measurement.
    pub measurement: Measurement,
}

/// Measures once, for another job; fails unless the measurement is whole.
pub(crate) fn measure_again(
    request: &MeasureRequest,
    credentials: &Credentials,
    label: Option<String>,
    command: &str,
    context: &mut Context<'_>,
) -> Result<OneMeasured> {
    let mut plan = MeasurePlan {
        request: request.clone(),
        credentials: credentials.clone(),
        label,
        labels: Labels::NONE,
        runs: 1,
        flood: false,
        expectations: Vec::new(),
        baseline: None,
        command: command.to_owned(),
    };
    // Runs as long as this is held.
    let _far_end = plan.start_far_end(context.cancel)?;
    let store = context.store.as_mut().map(|at| &mut *at.store as &mut dyn Store);
    let measured = plan.run(store, context.watch, context.cancel);
    context.go_on()?;
    measured.result?;
    let measurement = measured.measurements.into_iter().next();
    let measurement = measurement.ok_or_else(|| RunError::Unanswered("nothing was measured".to_owned()))?;
    match measurement.error {
        Some(error) => Err(RunError::Unanswered(error)),
        None => Ok(OneMeasured { run: measured.run, measurement }),
    }
}

/// Returns the measurement, including a partial one together with its error.
pub(crate) fn broken_or_whole(
    made: Result<Measurement, SessionError>,
) -> Result<(Measurement, Option<SessionError>), SessionError> {
    match made {
        Ok(measurement) => Ok((measurement, None)),
        Err(SessionError::Broken { cause, measurement }) => Ok((*measurement, Some(*cause))),
        Err(error) => Err(error),
    }
}

/// Measures once, as the repetition of this number, and reports its progress.
type Measure<'a> = dyn FnMut(u32, &mut dyn FnMut(Event<'_>)) -> Result<Measurement, SessionError> + 'a;

/// Makes and explains one measurement: a point of a sweep.
pub fn measure_once(
    request: &MeasureRequest,
    credentials: &Credentials,
    called: Called<'_>,
    repetition: u32,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    let completed = |mut measurement| {
        complete(&mut measurement, called, repetition);
        measurement
    };
    match session::measure(request, credentials, progress, cancel) {
        Ok(measurement) => Ok(completed(measurement)),
        Err(error) => Err(error.with_measurement(completed)),
    }
}

/// Adds what the session does not know: labels, repetition, ceiling and findings.
fn complete(measurement: &mut Measurement, (label, labels): Called<'_>, repetition: u32) {
    measurement.label = label.map(str::to_owned);
    measurement.labels = labels.clone();
    // How this run was controlled, not part of the request.
    measurement.request.watch_loss = false;
    measurement.repetition = repetition;
    measurement.ceiling = bdp_explain::ceiling(measurement);
    if measurement.request.ssh.as_ref().is_some_and(|ssh| ssh.through) {
        measurement.caveats.push(Caveat::SshTunnel);
    }
    crate::measure::explain::measurement(measurement);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(runs: u32) -> MeasurePlan {
        let credentials = Credentials { token: Some("secret".to_owned()), login: None };
        let request = MeasureRequest::to("ams1");
        MeasurePlan {
            request,
            credentials,
            label: Some("before".to_owned()),
            labels: Labels::NONE,
            runs,
            flood: false,
            expectations: vec!["to.goodput>=900M".parse().unwrap()],
            baseline: None,
            command: "bdp measure ams1".to_owned(),
        }
    }

    #[test]
    fn each_run_is_stored_before_it_is_reported_and_an_error_keeps_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = bdp_store::SqliteStore::open(folder.path().join("runs.sqlite")).unwrap();
        let mut reported = Vec::new();
        let measured = plan(3).run_with(
            &mut |repetition, _| match repetition {
                3 => Err(SessionError::Cancelled),
                _ => Ok(Measurement { repetition, ..Measurement::of(&MeasureRequest::to("ams1")) }),
            },
            Some(&mut store),
            &mut |event| {
                let Event::MeasurementEnded { run, measurement } = event else { panic!("{event:?}") };
                reported.push((run.map(Cow::into_owned), measurement.repetition));
            },
            &AtomicBool::new(false),
        );
        assert!(matches!(measured.result, Err(RunError::Session(SessionError::Cancelled))));
        assert_eq!(measured.judgements.iter().map(|j| j.met).collect::<Vec<_>>(), [false]);
        let run = measured.run.unwrap();
        assert_eq!(reported, [(Some(run.clone()), 1), (Some(run.clone()), 2)]);
        let info = store.run("before").unwrap();
        assert_eq!((info.id, info.planned, info.recorded, info.finished_unix_ms), (run, 3, 2, None));
    }

    #[test]
    fn a_measurement_that_breaks_is_stored_as_broken_and_ends_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = bdp_store::SqliteStore::open(folder.path().join("runs.sqlite")).unwrap();
        let measured = plan(3).run_with(
            &mut |repetition, _| {
                let whole = Measurement { repetition, ..Measurement::of(&MeasureRequest::to("ams1")) };
                if repetition == 1 {
                    return Ok(whole);
                }
                let cause = Box::new(SessionError::Request("gone".to_owned()));
                let measurement = Box::new(Measurement { error: Some("gone".to_owned()), ..whole });
                Err(SessionError::Broken { cause, measurement })
            },
            Some(&mut store),
            &mut |_| {},
            &AtomicBool::new(false),
        );
        assert_eq!(measured.result.unwrap_err().to_string(), "gone");
        let errors = |all: &[Measurement]| all.iter().map(|m| m.error.clone()).collect::<Vec<_>>();
        let expected = [None, Some("gone".to_owned())];
        assert_eq!(errors(&measured.measurements), expected);
        let run = measured.run.unwrap();
        let kept: Vec<Measurement> =
            store.measurements(&run).unwrap().into_iter().map(|kept| kept.measurement).collect();
        assert_eq!(errors(&kept), expected);
        let info = store.run(&run).unwrap();
        assert_eq!((info.recorded, info.valid, info.finished_unix_ms), (2, 1, None));
    }

    #[test]
    fn a_cancelled_run_is_kept_and_no_other_begins() {
        let cancel = AtomicBool::new(false);
        let measured = plan(5).run_with(
            &mut |repetition, _| {
                cancel.store(repetition == 2, Ordering::Relaxed);
                Ok(Measurement::of(&MeasureRequest::to("ams1")))
            },
            None,
            &mut |_| {},
            &cancel,
        );
        measured.result.unwrap();
        assert_eq!((measured.measurements.len(), measured.run), (2, None));
    }
}
