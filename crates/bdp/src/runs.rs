//! `bdp runs`.

use crate::{Outcome, exit::Exit};

/// Arguments of `bdp runs`.
#[derive(clap::Args)]
pub struct RunsArgs {}

impl RunsArgs {
    /// Runsulates and prints.
    pub fn run(self) -> Outcome {
        Ok(Exit::Done)
    }
}

/// Arguments of `bdp show`.
#[derive(clap::Args)]
pub struct ShowArgs {}

impl ShowArgs {
    /// Shows the run.
    pub fn run(self) -> Outcome {
        Ok(Exit::Done)
    }
}
