//! `bdp lab`.

use crate::{Outcome, exit::Exit};

/// Arguments of `bdp lab`.
#[derive(clap::Args)]
pub struct LabArgs {}

impl LabArgs {
    /// Calculates and prints.
    pub fn run(self) -> Outcome {
        Ok(Exit::Done)
    }
}
