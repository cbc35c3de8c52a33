//! Measurements between two machines: one after the other, each explained and durable before the next begins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_explain::explain;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::Progress;
use bdp_model::caveat::Caveat;
use bdp_model::facts::Facts;
use bdp_model::measurement::{DirectionResult, MeasureRequest, Measurement};
use bdp_store::{NewRun, RunKind, Store, StoredMeasurement};
use bdp_sys::clock;
use serde::{Deserialize, Serialize};

use crate::session::{self, Credentials};
use crate::{Event, RunError};

/// What is measured, and how often.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MeasurePlan {
    /// What each run asks for.
    pub request: MeasureRequest,
    /// What a server may want to know; never written down.
    #[serde(skip)]
    pub credentials: Credentials,
    /// What the user calls it.
    pub label: Option<String>,
    /// How many runs.
    pub runs: u32,
    /// The command that repeats it.
    pub command: String,
}

/// What a plan came to.
#[derive(Debug)]
pub struct Measured {
    /// The id of the stored run; `None` where nothing is stored.
    pub run: Option<String>,
    /// Every measurement that was made, also where an error ended it.
    pub measurements: Vec<Measurement>,
    /// Whether it went to its end; cancelled is no error.
    pub result: Result<(), RunError>,
}

impl MeasurePlan {
    /// Measures as planned, and stores each measurement in `store` before the next run begins. `cancel` ends the run that goes
    /// on, which gives what it has, and no other begins.
    pub fn run(
        &self,
        store: Option<&mut dyn Store>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Measured {
        let label = self.label.as_deref();
        let mut measure = |repetition: u32, watch: &mut dyn FnMut(Event<'_>)| {
            let mut progress = |progress: &Progress| watch(Event::Progress { run: repetition, progress });
            measure_once(&self.request, &self.credentials, label, repetition, &mut progress, cancel)
        };
        self.run_with(&mut measure, store, watch, cancel)
    }

    /// As [`MeasurePlan::run`], with a way to measure of one's own.
    fn run_with(
        &self,
        measure: &mut Measure<'_>,
        mut store: Option<&mut dyn Store>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Measured {
        let mut run = None;
        let mut measurements = Vec::new();
        let mut result = Ok(());
        for repetition in 1..=self.runs {
            if repetition > 1 && cancel.load(Ordering::Relaxed) {
                break;
            }
            let measurement = match measure(repetition, watch) {
                Ok(measurement) => measurement,
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            };
            let case_key = format!("#{repetition}");
            let made = StoredMeasurement { case_key, params: BTreeMap::new(), measurement };
            let kept = store.as_deref_mut().map_or(Ok(()), |store| self.keep(&made, store, &mut run));
            watch(Event::MeasurementEnded { run: run.as_deref(), measurement: &made.measurement });
            measurements.push(made.measurement);
            if let Err(error) = kept {
                result = Err(error.into());
                break;
            }
        }
        if let (Ok(()), Some(run), Some(store), false) =
            (&result, &run, store, cancel.load(Ordering::Relaxed))
        {
            result = store.finish_run(run, clock::unix_ms()).map_err(RunError::from);
        }
        Measured { run, measurements, result }
    }

    /// Makes a measurement durable. A run is entered with its first: one that could not even begin is nothing to list.
    fn keep(
        &self,
        made: &StoredMeasurement,
        store: &mut dyn Store,
        run: &mut Option<String>,
    ) -> bdp_store::Result<()> {
        let run = match run {
            Some(run) => run,
            None => run.insert(store.begin_run(&NewRun {
                kind: RunKind::Measure,
                label: self.label.clone(),
                scenario: self.request.host.clone(),
                planned: self.runs,
                command: self.command.clone(),
                bdp: env!("CARGO_PKG_VERSION").to_owned(),
                started_unix_ms: made.measurement.started_unix_ms,
                ..NewRun::default()
            })?),
        };
        store.append_measurement(run, made)
    }
}

/// Measures once, in the repetition of this number, and reports how far it is.
type Measure<'a> = dyn FnMut(u32, &mut dyn FnMut(Event<'_>)) -> Result<Measurement, SessionError> + 'a;

/// One measurement, explained: what a sweep makes at each of its points.
pub fn measure_once(
    request: &MeasureRequest,
    credentials: &Credentials,
    label: Option<&str>,
    repetition: u32,
    progress: &mut dyn FnMut(&Progress),
    cancel: &AtomicBool,
) -> Result<Measurement, SessionError> {
    let mut measurement = session::measure(request, credentials, progress, cancel)?;
    complete(&mut measurement, label, repetition);
    Ok(measurement)
}

/// Adds what the session does not know: the label, the number, the ceiling and the findings.
fn complete(measurement: &mut Measurement, label: Option<&str>, repetition: u32) {
    measurement.label = label.map(str::to_owned);
    measurement.repetition = repetition;
    measurement.ceiling = bdp_explain::ceiling(measurement);
    if measurement.request.ssh.as_ref().is_some_and(|ssh| ssh.through) {
        measurement.caveats.push(Caveat::SshTunnel);
    }
    let facts = |d: &DirectionResult| Facts::measured(measurement, d.direction);
    let findings: Vec<_> =
        measurement.directions.iter().map(|d| facts(d).as_ref().map_or_else(Vec::new, explain)).collect();
    for (direction, findings) in measurement.directions.iter_mut().zip(findings) {
        direction.findings = findings;
    }
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
            runs,
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
                reported.push((run.map(str::to_owned), measurement.repetition));
            },
            &AtomicBool::new(false),
        );
        assert!(matches!(measured.result, Err(RunError::Session(SessionError::Cancelled))));
        let run = measured.run.unwrap();
        assert_eq!(reported, [(Some(run.clone()), 1), (Some(run.clone()), 2)]);
        let info = store.run("before").unwrap();
        assert_eq!((info.id, info.planned, info.recorded, info.finished_unix_ms), (run, 3, 2, None));
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
