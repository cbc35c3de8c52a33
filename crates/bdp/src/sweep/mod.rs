//! `bdp sweep`: a curve over varied parameters, its knee, and the recommended value.

mod arguments;
mod host;
mod lab;
mod next;
mod varied;

pub use arguments::SweepArgs;
pub use host::document as measured_document;
pub use lab::document;

use bdp_run::job::Job;

use crate::exit::{self, Outcome};
use crate::planned::Planned;

impl SweepArgs {
    /// The job of the sweep.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        let varied = self.varied.read(self.points)?;
        match (&self.scenario, &self.target) {
            (Some(scenario), _) => {
                let job = lab::work(self, scenario, &varied)?.job();
                Ok(Planned::new(job, |ended| {
                    let records = ended.results.records();
                    (!records.is_empty()).then(|| lab::json(ended.run.as_deref(), records))
                }))
            }
            (None, Some(host)) => {
                let job = Job::Sweep(Box::new(host::plan(self, host, varied)?));
                Ok(Planned::new(job, |ended| {
                    let points = ended.results.points();
                    (!points.is_empty()).then(|| host::json(ended.run.as_deref(), points))
                }))
            }
            (None, None) => Err(nowhere()),
        }
    }

    /// Runs the sweep.
    pub fn run(self) -> Outcome {
        let varied = self.varied.read(self.points)?;
        match (&self.scenario, &self.target) {
            (Some(scenario), _) => lab::run(&self, scenario, &varied),
            (None, Some(host)) => host::run(&self, host, varied),
            (None, None) => Err(nowhere()),
        }
    }
}

fn nowhere() -> anyhow::Error {
    exit::usage("bdp sweep needs a host, or a scenario with --in")
}
