//! `bdp tune`: settings of hosts, and plans that change them.

mod export;
mod file;

use crate::exit::Outcome;

/// Arguments of `bdp tune`.
#[derive(clap::Args)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(clap::Subcommand)]
enum TuneCommand {
    /// Write a plan as a script or file for another host: shell, Ansible, Kubernetes, Windows, macOS, FreeBSD
    Export(export::ExportArgs),
}

impl TuneArgs {
    /// Does what was asked.
    pub fn run(self) -> Outcome {
        match self.command {
            TuneCommand::Export(args) => args.run(),
        }
    }
}
