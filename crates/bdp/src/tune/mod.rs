//! `bdp tune`: settings of hosts, what a path needs of them, and changes that can be undone.

mod export;
pub mod file;
pub mod measured;
mod plan;

use crate::exit::Outcome;

/// Arguments of `bdp tune`.
#[derive(clap::Args)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(clap::Subcommand)]
enum TuneCommand {
    /// Plan the smallest change of settings for a measured path, or for a rate and a round trip
    Plan(plan::PlanArgs),
    /// Write a plan for another host: shell, sysctl.d, Ansible, Kubernetes, Windows, macOS, FreeBSD
    Export(export::ExportArgs),
}

impl TuneArgs {
    /// Does what was asked.
    pub fn run(self) -> Outcome {
        match self.command {
            TuneCommand::Plan(args) => args.run(),
            TuneCommand::Export(args) => args.run(),
        }
    }
}
