//! The command line: one file per subcommand, arguments -> action.
#![forbid(unsafe_code)]

mod calc;
mod exit;
mod lab;
mod runs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// Finds out why a network path is slower than it should be, and helps put it right.
#[derive(Parser)]
#[command(name = "bdp", version, propagate_version = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run scenarios on the emulated lab, list and check them
    Lab(lab::LabArgs),
    /// Calculate with the models: window, rate, loss, header overhead, slow start
    Calc(calc::CalcArgs),
    /// List stored runs
    Runs(runs::RunsArgs),
    /// Show one stored run
    Show(runs::ShowArgs),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Lab(args) => args.run(),
        Command::Calc(args) => args.run(),
        Command::Runs(args) => args.run(),
        Command::Show(args) => args.run(),
    };
    outcome.unwrap_or_else(|error| exit::report(&error)).into()
}

/// What every subcommand gives back.
type Outcome = anyhow::Result<Exit>;
