//! `bdp __program`: the process between the lab and a program on one of its hosts. Internal.

use std::ffi::OsString;
use std::process::ExitCode;

use bdp_run::exec::ExecCommands;

use crate::output;

/// Programs that a run of programs may start: this same one for each.
pub fn commands() -> ExecCommands {
    ExecCommands { lab: crate::guest::commands(), warden: crate::agent::warden() }
}

/// Runs a program, and ends as it does.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let code = bdp_lab::program::run(arguments).unwrap_or_else(|(code, line)| {
        output::note(&format!("bdp: {line}"));
        code
    });
    ExitCode::from(code)
}
