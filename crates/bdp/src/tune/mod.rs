//! `bdp tune`: settings of hosts, what a path needs of them, and changes that can be undone.

pub mod measured;
mod plan;
mod show;

use crate::exit::Outcome;

/// Arguments of `bdp tune`.
#[derive(clap::Args)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(clap::Subcommand)]
enum TuneCommand {
    /// Show this host's settings beside the kernel's defaults, and which advice is stale
    Show(show::ShowArgs),
    /// Plan the smallest change of settings for a measured path, or for a rate and a round trip
    Plan(plan::PlanArgs),
}

impl TuneArgs {
    /// Does what was asked.
    pub fn run(self) -> Outcome {
        match self.command {
            TuneCommand::Show(args) => args.run(),
            TuneCommand::Plan(args) => args.run(),
        }
    }
}
