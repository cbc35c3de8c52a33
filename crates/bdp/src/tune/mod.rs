//! `bdp tune`: host settings, what a path needs of them, and changes that can be reverted.

pub mod apply;
mod confirm;
pub(crate) mod document;
mod end;
mod export;
pub mod far;
mod file;
mod guard;
mod journal;
pub mod measured;
pub mod places;
mod plan;
mod revert;
mod show;
mod stored;
mod sysctl_file;

pub use guard::{NAME as GUARD, command as guard_command, run as run_guard};

use crate::exit::Outcome;

/// Arguments of `bdp tune`.
#[derive(clap::Args)]
pub struct TuneArgs {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(clap::Subcommand)]
enum TuneCommand {
    /// Show this host's settings with the kernel's defaults, and warn of outdated advice
    Show(show::ShowArgs),
    /// Plan the smallest change of settings for a measured path, or for a rate and a round trip
    Plan(plan::PlanArgs),
    /// Apply the changes of a plan to this host, with a journal to revert them
    Apply(apply::ApplyArgs),
    /// Keep applied changes that would otherwise revert automatically
    Confirm(confirm::ConfirmArgs),
    /// Restore the values from before the changes
    Revert(revert::RevertArgs),
    /// List changes in force: since when, until when, and the previous values
    Journal(journal::JournalArgs),
    /// Export a plan for another host: shell, sysctl.d, Ansible, Kubernetes, Windows, macOS, FreeBSD
    Export(export::ExportArgs),
}

impl TuneArgs {
    /// Runs the subcommand.
    pub fn run(self) -> Outcome {
        match self.command {
            TuneCommand::Show(args) => args.run(),
            TuneCommand::Plan(args) => args.run(),
            TuneCommand::Apply(args) => args.run(),
            TuneCommand::Confirm(args) => args.run(),
            TuneCommand::Revert(args) => args.run(),
            TuneCommand::Journal(args) => args.run(),
            TuneCommand::Export(args) => args.run(),
        }
    }
}
