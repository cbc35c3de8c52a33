//! `bdp __guest` and `bdp __keeper`: the first process of a guest, and the one that keeps a guest. Not for people.

use std::process::ExitCode;

use bdp_lab::{LabCommands, Program};

/// The hidden subcommand that a guest's kernel starts.
pub const NAME: &str = bdp_run::guest::SUBCOMMAND;
/// The hidden subcommand that boots a guest and ends it.
pub const KEEPER: &str = "__keeper";

/// The programs that a job may start: this very one for each.
pub fn commands() -> LabCommands {
    let keeper = Program { path: "/proc/self/exe".into(), arguments: vec![KEEPER.to_owned()] };
    LabCommands { host: crate::agent::command(), keeper }
}

/// Whether guests of a stack, or of the default kernel, boot here: by booting one.
pub fn boots(stack: Option<&str>) -> String {
    match bdp_run::guest::try_boot(&commands().keeper, stack) {
        Ok(kernel) => format!("yes (guests of {}, Linux {})", kernel.name, kernel.version),
        Err(cause) => format!("no: {}", crate::output::tame(&cause)),
    }
}

/// Runs what was ordered of this guest, and switches it off.
pub fn run() -> ExitCode {
    if std::process::id() != 1 {
        crate::output::note(&format!("bdp: {NAME} is started by a guest's kernel, not by hand"));
        return ExitCode::from(2);
    }
    bdp_run::guest::serve(crate::agent::in_guest())
}

/// Keeps a guest until it, or bdp, ends.
pub fn keep() -> ExitCode {
    bdp_sys::signal::leave_ending_to_parent();
    if bdp_lab::guest::keep() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
