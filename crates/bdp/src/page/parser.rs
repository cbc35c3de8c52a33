//! The parser of the command line, which the page shares.

use clap::{ArgMatches, Command};

use crate::measure::MeasureArgs;

/// The parser of the command line.
#[derive(Clone, Copy)]
pub struct Parser {
    /// All commands.
    pub root: fn() -> Command,
    /// The test that the words of a command line request, without `bdp`, and which options they give.
    pub measurement: fn(&[String]) -> anyhow::Result<(MeasureArgs, ArgMatches)>,
}
