//! Parameters of a scenario on the command line: its clock, and any other by its path.

use bdp_model::case::stack::Clock;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::help;

/// The clock by which cases run.
#[derive(clap::Args, Default)]
pub struct ClockArgs {
    /// Clock: real, or virtual, which is exact even on a busy machine [default: the scenario's]
    #[arg(long, help_heading = help::TEST, value_name = "CLOCK", value_parser = clock())]
    clock: Option<Clock>,
}

impl ClockArgs {
    /// The resulting setting, which overrides all others.
    pub fn setting(&self) -> Option<(String, String)> {
        self.clock.map(|clock| ("clock".to_owned(), clock.name().to_owned()))
    }
}

/// Parses a clock's name.
pub fn clock() -> impl TypedValueParser<Value = Clock> {
    PossibleValuesParser::new(Clock::NAMES.map(|(name, _)| name)).map(|name| {
        Clock::NAMES.into_iter().find(|(known, _)| *known == name).map_or(Clock::Real, |(_, c)| c)
    })
}

/// Parses `PATH=VALUE`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.trim().is_empty() => {
            Ok((path.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected PATH=VALUE, for example flow.duration=5s".to_owned()),
    }
}
