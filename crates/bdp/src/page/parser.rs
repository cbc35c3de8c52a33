//! The parser of the command line, which the page shares.

use std::path::Path;

use bdp_run::pcap::Source;
use clap::{ArgMatches, Command};

use crate::exit::Outcome;
use crate::planned::Planned;

/// The parser of the command line.
#[derive(Clone, Copy)]
pub struct Parser {
    /// All commands.
    pub root: fn() -> Command,
    /// The command of these words, without `bdp`.
    pub parse: fn(&[String]) -> anyhow::Result<Parsed>,
}

/// A command with its arguments, and which options were given.
pub type Parsed = (Box<dyn Typed>, ArgMatches);

/// A command with its arguments.
pub trait Typed {
    /// The job that it runs, with captures from these sources; `None` if it runs none.
    fn planned(&self, source_of: &dyn Fn(&Path) -> anyhow::Result<Source>)
    -> Option<anyhow::Result<Planned>>;

    /// Runs it.
    fn run(self: Box<Self>) -> Outcome;
}
