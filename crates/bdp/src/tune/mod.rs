//! `bdp tune`: settings of TCP and of network cards.

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
}

impl TuneArgs {
    /// Does what was asked.
    pub fn run(self) -> Outcome {
        match self.command {
            TuneCommand::Show(args) => args.run(),
        }
    }
}
