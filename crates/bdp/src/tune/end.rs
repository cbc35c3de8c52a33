//! Common parts of `confirm`, `revert` and `journal`: the end that they act on, and their output.

use super::far::FarArgs;
use super::places::PlaceArgs;
use crate::help;

/// Of which end, and how it is printed.
#[derive(clap::Args)]
pub struct EndArgs {
    /// Print JSON ('bdp help tune.schema')
    #[arg(long, help_heading = help::OUTPUT)]
    pub json: bool,

    /// Where the journals of this host are.
    #[command(flatten)]
    pub places: PlaceArgs,

    /// The far end, where that is meant.
    #[command(flatten)]
    pub far: FarArgs,
}

/// The same of what is done with journals.
#[derive(clap::Args)]
pub struct JournalEndArgs {
    /// Of which end, and how it is printed.
    #[command(flatten)]
    pub end: EndArgs,

    /// With --at, only this journal [default: all applied from this host]
    #[arg(long, value_name = "N", requires = "at", help_heading = help::TEST)]
    pub only: Option<u32>,
}
