//! `bdp calc`.

use crate::{Outcome, exit::Exit};

/// Arguments of `bdp calc`.
#[derive(clap::Args)]
pub struct CalcArgs {}

impl CalcArgs {
    /// Calculates and prints.
    pub fn run(self) -> Outcome {
        Ok(Exit::Done)
    }
}
