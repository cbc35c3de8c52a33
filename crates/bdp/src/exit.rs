//! Exit codes, and errors that carry theirs.

use std::fmt;
use std::process::ExitCode;

use bdp_model::plain::in_words;
use bdp_run::job::{Ended, Ending};

/// Result of every subcommand.
pub type Outcome = anyhow::Result<Exit>;

/// How a run of bdp ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Done,
    /// A case or a measurement missed an expectation, or a comparison found a regression.
    Missed,
    /// The request was wrong.
    Usage,
    /// The environment refused: permission, peer, missing part.
    Environment,
    /// A bug in bdp.
    Bug,
    /// Every repetition of a case was INVALID.
    Invalid,
    /// With `--strict`: whether an expectation was missed is unknown.
    Open,
    /// Exit code of the user's program, or why that could not be run ('bdp lab exec').
    Program(u8),
}

impl Exit {
    /// bdp's own exit codes, in order.
    pub const ALL: [Self; 7] =
        [Self::Done, Self::Missed, Self::Usage, Self::Environment, Self::Bug, Self::Invalid, Self::Open];

    /// Exit of a job; `strict` distinguishes unknown from met and missed.
    pub fn of(ended: &Ended, strict: bool) -> Self {
        match ended.ending() {
            Ending::Done | Ending::Missed if strict && ended.is_open() => Self::Open,
            ending => ending.into(),
        }
    }

    /// Exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Missed => 1,
            Self::Usage => 2,
            Self::Environment => 3,
            Self::Bug => 4,
            Self::Invalid => 5,
            Self::Open => 6,
            Self::Program(code) => code,
        }
    }

    /// Name of an error with this code in JSON.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Missed => "missed",
            Self::Usage => "usage",
            Self::Environment => "environment",
            Self::Bug => "bug",
            Self::Invalid => "invalid",
            Self::Open => "open",
            Self::Program(_) => "program",
        }
    }

    /// Meaning of the code, in a sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "Done.",
            Self::Missed => "A result was worse than requested.",
            Self::Usage => "Usage error.",
            Self::Environment => {
                "Environment error (permission, peer, missing part), or a case could not run."
            }
            Self::Bug => "Bug in bdp.",
            Self::Invalid => "Every repetition of a case was INVALID.",
            Self::Open => "With --strict: unknown or inconclusive.",
            Self::Program(_) => "As the program did.",
        }
    }
}

impl From<Ending> for Exit {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done | Ending::Cancelled => Self::Done,
            Ending::Missed => Self::Missed,
            Ending::Invalid => Self::Invalid,
            Ending::Failed => Self::Environment,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// An error with its exit code: the problem and the remedy, in one line.
#[derive(Debug)]
pub struct Refusal {
    /// Exit code.
    pub exit: Exit,
    /// Text of the line.
    pub text: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refusal {}

/// Creates an error for a wrong request.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    Refusal { exit: Exit::Usage, text: in_words(&text.into()) }.into()
}

/// Creates an error for a refusal by the environment.
pub fn environment(text: impl Into<String>) -> anyhow::Error {
    Refusal { exit: Exit::Environment, text: in_words(&text.into()) }.into()
}

/// An error in printing a measurement, with the command that prints it again if it is stored.
pub fn kept(error: anyhow::Error, again: Option<&str>) -> anyhow::Error {
    match again {
        Some(again) => environment(format!("{error}; the results so far are stored, '{again}' prints them")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_manual_say_the_same_of_each_code() {
        let page = include_str!("../../../docs/exit-codes.md").replace('`', "");
        for exit in Exit::ALL {
            let row = format!("| {} | {}", exit.code(), exit.meaning().trim_end_matches('.').to_lowercase());
            let is_there = page.lines().any(|line| line.to_lowercase().starts_with(&row));
            assert!(is_there, "docs/exit-codes.md has no row that begins '{row}'");
        }
    }
}
