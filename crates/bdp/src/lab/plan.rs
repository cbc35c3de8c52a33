//! The part of a scenario to run, as the command line selects it.

use bdp_scenario::PlanOptions;

use super::parameter::{ClockArgs, setting};
use crate::help;

/// What of a scenario is run.
#[derive(clap::Args)]
pub struct PlanArgs {
    /// Only cases that match all words: PARAM=VALUE, #REPETITION or a part of the case's key
    #[arg(long, help_heading = help::TEST, value_name = "FILTER")]
    filter: Option<String>,

    /// Set a parameter by its path, for example flow.duration=5s; repeatable
    #[arg(long = "set", help_heading = help::TEST, value_name = "PATH=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Seed of all random streams and of the order of cases [default: the file's]
    #[arg(long, help_heading = help::TEST, value_name = "N")]
    seed: Option<u64>,

    /// Repetitions of each point [default: the file's]
    #[arg(long, help_heading = help::TEST, value_name = "N")]
    repetitions: Option<u32>,

    #[command(flatten)]
    clock: ClockArgs,
}

impl PlanArgs {
    /// Returns the planner's options.
    pub fn options(&self) -> PlanOptions {
        PlanOptions {
            seed: self.seed,
            filter: self.filter.clone(),
            overrides: self.settings.iter().cloned().chain(self.clock.setting()).collect(),
            repetitions: self.repetitions,
            ..PlanOptions::default()
        }
    }
}
