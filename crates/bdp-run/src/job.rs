//! A job: what a command line, a page or a fleet asks for, and what it came to. Both are plain data and have a form in JSON.

use std::sync::atomic::{AtomicBool, Ordering};

use bdp_lab::AgentCommand;
use bdp_model::measurement::Measurement;
use bdp_model::points::points;
use bdp_model::record::Record;
use bdp_store::StoredMeasurement;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lab::{LabPlan, StoreAt};
use crate::measure::MeasurePlan;
use crate::sweep::SweepPlan;
use crate::{Event, RunError};

/// Version of a job's shape.
pub const JOB_SCHEMA: &str = "bdp.job/1";
/// Version of an outcome's shape.
pub const OUTCOME_SCHEMA: &str = "bdp.outcome/1";

/// Work of one kind. Credentials are no part of its JSON: whoever runs it has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Measurements to a host.
    Measure(MeasurePlan),
    /// Measurements to a host that differ in what is varied.
    Sweep(SweepPlan),
    /// Cases of scenarios on the lab.
    Lab(LabPlan),
}

/// What a job came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`OUTCOME_SCHEMA`].
    pub schema: String,
    /// The id of the stored run; `None` where nothing is stored.
    pub run: Option<String>,
    /// How it ended.
    pub ending: Ending,
    /// Records or measurements that there are.
    pub kept: usize,
    /// Why it did not go to its end.
    pub error: Option<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As it was planned.
    Done,
    /// A case missed its expectation.
    Missed,
    /// Every repetition of a case was INVALID.
    Invalid,
    /// The environment refused, or a case could not run.
    Failed,
    /// Somebody ended it.
    Cancelled,
}

/// What a job measured.
#[derive(Debug)]
pub enum Results {
    /// Of the lab.
    Records(Vec<Record>),
    /// Of measurements alike.
    Measurements(Vec<Measurement>),
    /// Of a sweep to a host.
    Points(Vec<StoredMeasurement>),
}

/// A job that ended.
#[derive(Debug)]
pub struct Ended {
    /// The id of the stored run; `None` where nothing is stored.
    pub run: Option<String>,
    /// What there is, also where an error ended it.
    pub results: Results,
    /// Whether it went to its end.
    pub result: Result<(), RunError>,
    /// Whether it was told to end.
    pub cancelled: bool,
}

impl Job {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        // A plan is plain data, which JSON can always hold.
        let mut document = serde_json::to_value(self).unwrap_or_default();
        document["schema"] = JOB_SCHEMA.into();
        document
    }

    /// A job that [`Job::to_json`] wrote; another version's is refused.
    pub fn from_json(document: Value) -> Result<Self, RunError> {
        match document["schema"].as_str() {
            Some(JOB_SCHEMA) => {
                serde_json::from_value(document).map_err(|error| RunError::Case(error.to_string()))
            }
            other => Err(RunError::Case(format!(
                "job of schema '{}'; expected {JOB_SCHEMA}",
                other.unwrap_or_default()
            ))),
        }
    }

    /// Runs it. What is measured is durable before more is; hosts of a lab are made by `agent`. `cancel` ends measurements
    /// within a second; cases of the lab run to their end.
    pub fn run(
        &self,
        agent: AgentCommand,
        at: Option<StoreAt<'_>>,
        watch: &mut dyn FnMut(Event<'_>),
        cancel: &AtomicBool,
    ) -> Ended {
        let (run, results, result) = match self {
            Self::Measure(plan) => {
                let measured = plan.run(at.map(|at| at.store), watch, cancel);
                (measured.run, Results::Measurements(measured.measurements), measured.result)
            }
            Self::Sweep(plan) => {
                let swept = plan.run(at.map(|at| at.store), watch, cancel);
                (swept.run, Results::Points(swept.measurements), swept.result)
            }
            Self::Lab(plan) => {
                let made = plan.run(agent, None, at, watch);
                (made.run, Results::Records(made.records), made.result)
            }
        };
        Ended { run, results, result, cancelled: cancel.load(Ordering::Relaxed) }
    }
}

impl Ended {
    /// What it came to, without the results themselves.
    pub fn outcome(&self) -> Outcome {
        let (ending, kept) = match &self.results {
            Results::Records(records) => (Ending::of(records), records.len()),
            Results::Measurements(all) => (Ending::Done, all.len()),
            Results::Points(all) => (Ending::Done, all.len()),
        };
        let ending = match &self.result {
            Err(_) => Ending::Failed,
            Ok(()) if self.cancelled => Ending::Cancelled,
            Ok(()) => ending,
        };
        Outcome {
            schema: OUTCOME_SCHEMA.to_owned(),
            run: self.run.clone(),
            ending,
            kept,
            error: self.result.as_ref().err().map(RunError::to_string),
        }
    }
}

impl Ending {
    /// By the gravest of these records: a case that could not run, then a missed expectation, then a point of which no
    /// repetition was valid.
    pub fn of(records: &[Record]) -> Self {
        if records.iter().any(|r| r.error.is_some()) {
            Self::Failed
        } else if points(records).iter().any(|point| point.missed().next().is_some()) {
            Self::Missed
        } else if points(records).iter().any(|point| point.valid().next().is_none()) {
            Self::Invalid
        } else {
            Self::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use bdp_model::measurement::MeasureRequest;
    use bdp_model::scenario::{PlanOptions, Scenario, find};

    use super::*;
    use crate::session::Credentials;
    use crate::sweep::{Setting, Variable, Varied};

    fn jobs() -> [Job; 3] {
        let credentials = Credentials { token: Some("secret".to_owned()), login: None };
        let request = MeasureRequest::to("ams1");
        let command = "bdp".to_owned();
        let values = vec![Setting { text: "64K".to_owned(), number: 65_536 }];
        let varied = vec![Varied { parameter: Variable::Window, values }];
        let (name, text) = find("s3-30k").unwrap();
        let scenario = Scenario::parse(name, text).unwrap();
        let cases = scenario.plan(&PlanOptions::default()).unwrap();
        [
            Job::Measure(MeasurePlan {
                request: request.clone(),
                credentials: credentials.clone(),
                label: None,
                runs: 2,
                command: command.clone(),
            }),
            Job::Sweep(SweepPlan {
                request,
                credentials,
                varied,
                runs: 1,
                refine: true,
                seed: 7,
                label: None,
                command: command.clone(),
            }),
            Job::Lab(LabPlan::new(&[scenario], cases, 7, command)),
        ]
    }

    #[test]
    fn a_job_goes_through_json_whole_but_for_its_credentials() {
        for job in jobs() {
            let document = job.to_json();
            let text = document.to_string();
            assert_eq!(document["schema"], JOB_SCHEMA);
            assert!(!text.contains("secret") && !text.contains("credentials"), "{text}");
            let carried = Job::from_json(serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(carried.to_json(), document);
        }
    }

    #[test]
    fn a_job_of_another_version_is_refused() {
        let mut document = jobs()[0].to_json();
        document["schema"] = "bdp.job/2".into();
        let refused = Job::from_json(document).unwrap_err().to_string();
        assert_eq!(refused, "job of schema 'bdp.job/2'; expected bdp.job/1");
    }

    /// A record of one point, from a stored one.
    fn record(valid: bool, error: Option<&str>, met: Option<bool>) -> Record {
        let text = include_str!("../../bdp-store/tests/it/record.json");
        let mut record: Record = serde_json::from_str(text).unwrap();
        record.valid = valid;
        record.error = error.map(str::to_owned);
        if let Some(expectation) = &mut record.expectation {
            expectation.met = met;
        }
        record
    }

    #[test]
    fn the_gravest_record_decides_the_ending() {
        let (kept, missed) = (record(true, None, Some(true)), record(true, None, Some(false)));
        let (invalid, failed) = (record(false, None, None), record(false, Some("it broke"), None));
        let ending =
            |records: &[&Record]| Ending::of(&records.iter().map(|&r| r.clone()).collect::<Vec<_>>());
        assert_eq!(ending(&[&kept]), Ending::Done);
        assert_eq!(ending(&[&kept, &missed]), Ending::Missed);
        assert_eq!(ending(&[&kept, &missed, &failed]), Ending::Failed);
        // An INVALID attempt beside a valid one of the same point was made good.
        assert_eq!(ending(&[&invalid, &kept]), Ending::Done);
        assert_eq!(ending(&[&invalid, &invalid]), Ending::Invalid);
        assert_eq!(ending(&[&invalid, &missed]), Ending::Missed);
        let elsewhere = Record { scenario: "another".to_owned(), ..kept.clone() };
        assert_eq!(ending(&[&invalid, &elsewhere]), Ending::Invalid);
        // What an INVALID attempt says of its expectation is not heard.
        assert_eq!(ending(&[&record(false, None, Some(false)), &kept]), Ending::Done);
    }
}
