//! Measurements between two machines: one after the other, each explained and durable before the next begins.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_explain::explain;
use bdp_flow::session::error::SessionError;
use bdp_flow::session::progress::Progress;
use bdp_model::caveat::Caveat;
use bdp_model::facts::Facts;
use bdp_model::measurement::{DirectionResult, MeasureRequest, Measurement};
use bdp_store::StoredMeasurement;

use crate::RunError;
use crate::session::{self, Credentials};

/// What is measured, and how often.
#[derive(Debug, Clone)]
pub struct MeasurePlan {
    /// What each run asks for.
    pub request: MeasureRequest,
    /// What a server may want to know.
    pub credentials: Credentials,
    /// What the user calls it.
    pub label: Option<String>,
    /// How many runs.
    pub runs: u32,
}

/// How far a run of measurements is.
#[derive(Debug)]
pub enum MeasureEvent<'a> {
    /// The session has something to tell, in the run of this number.
    Progress(u32, &'a Progress),
    /// A run ended, and is durable where it was to be kept.
    Ended(&'a Measurement),
}

/// Measures as planned; each measurement goes to `keep`, which makes it durable, before the next run begins. Gives every
/// measurement that was made, also where an error ended it; `cancel` ends the run that goes on, which gives what it has,
/// and no other begins.
pub fn measure(
    plan: &MeasurePlan,
    keep: &mut dyn FnMut(&StoredMeasurement) -> bdp_store::Result<()>,
    watch: &mut dyn FnMut(MeasureEvent<'_>),
    cancel: &AtomicBool,
) -> (Vec<Measurement>, Result<(), RunError>) {
    let mut made = Vec::new();
    for repetition in 1..=plan.runs {
        if repetition > 1 && cancel.load(Ordering::Relaxed) {
            break;
        }
        let mut progress = |progress: &Progress| watch(MeasureEvent::Progress(repetition, progress));
        let label = plan.label.as_deref();
        let measured =
            measure_once(&plan.request, &plan.credentials, label, repetition, &mut progress, cancel);
        let measurement = match measured {
            Ok(measurement) => measurement,
            Err(error) => return (made, Err(error.into())),
        };
        let case_key = format!("#{repetition}");
        let made_now = StoredMeasurement { case_key, params: BTreeMap::new(), measurement };
        let kept = keep(&made_now);
        watch(MeasureEvent::Ended(&made_now.measurement));
        made.push(made_now.measurement);
        if let Err(error) = kept {
            return (made, Err(error.into()));
        }
    }
    (made, Ok(()))
}

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
