//! `bdp sweep`: a curve over varied parameters, its knee, and the recommended value.

mod arguments;
mod host;
mod lab;
mod next;
mod varied;

pub use arguments::SweepArgs;
pub use host::document as measured_document;
pub use lab::document;

use crate::exit::{self, Outcome};

impl SweepArgs {
    /// Runs the sweep.
    pub fn run(self) -> Outcome {
        let varied = self.varied.read(self.points)?;
        match (&self.scenario, &self.target) {
            (Some(scenario), _) => lab::run(&self, scenario, &varied),
            (None, Some(host)) => host::run(&self, host, varied),
            (None, None) => Err(exit::usage("bdp sweep needs a host, or a scenario with --in")),
        }
    }
}
