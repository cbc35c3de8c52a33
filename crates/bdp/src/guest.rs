//! `bdp __guest`, `bdp __keeper` and `bdp __inside`: the first process of a guest, the keeper of a guest, and a
//! program run in a guest for a test. Internal.

use std::process::ExitCode;
use std::sync::OnceLock;

use bdp_lab::{LabCommands, Program};
use bdp_run::guest::program::{ProgramRun, ProgramSpec};

/// The hidden subcommand that a guest's kernel starts.
pub const NAME: &str = bdp_run::guest::SUBCOMMAND;
/// The hidden subcommand that boots a guest and ends it.
pub const KEEPER: &str = "__keeper";

/// The hidden subcommand that runs a program in a guest.
pub const INSIDE: &str = "__inside";

/// Programs that a job may start: this same one for each.
pub fn commands() -> LabCommands {
    let keeper = Program { path: "/proc/self/exe".into(), arguments: vec![KEEPER.to_owned()] };
    LabCommands { host: crate::agent::command(), keeper }
}

/// Whether guests of a stack, or of the default kernel, boot here: boots one.
pub fn boots(stack: Option<&str>) -> String {
    match bdp_run::guest::try_boot(&commands().keeper, stack) {
        Ok(kernel) => format!("yes (guests of {}, Linux {})", kernel.name, kernel.version),
        Err(cause) => format!("no: {}", crate::output::tame(&cause)),
    }
}

/// Why no guest of the default kernel boots here; `None` if one does. It is tried once.
pub fn obstacle() -> Option<String> {
    static OBSTACLE: OnceLock<Option<String>> = OnceLock::new();
    let look = || bdp_run::guest::try_boot(&commands().keeper, None).err();
    OBSTACLE.get_or_init(|| look().map(|cause| crate::output::tame(&cause))).clone()
}

/// Carries out this guest's order, and powers it off.
pub fn run() -> ExitCode {
    if std::process::id() != 1 {
        crate::output::note(&format!("bdp: {NAME} is for internal use by a guest's kernel"));
        return ExitCode::from(2);
    }
    bdp_run::guest::serve(crate::agent::in_guest(), &crate::agent::warden())
}

/// Keeps a guest until it, or bdp, ends.
pub fn keep() -> ExitCode {
    bdp_sys::signal::leave_ending_to_parent();
    if bdp_lab::guest::keep() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the program that standard input describes, as JSON, in a guest; writes its results to standard output, as JSON.
pub fn inside() -> ExitCode {
    let said = read_order().and_then(|order| {
        let run = bdp_run::guest::run_program(&commands().keeper, None, &order).map_err(|e| e.to_string())?;
        answer(&run)
    });
    match said {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            crate::output::note(&format!("bdp: {}", crate::output::tame(&cause)));
            ExitCode::from(3)
        }
    }
}

fn read_order() -> Result<ProgramSpec, String> {
    serde_json::from_reader(std::io::stdin().lock()).map_err(|e| format!("read the command: {e}"))
}

fn answer(run: &ProgramRun) -> Result<(), String> {
    let text = serde_json::to_string(run).map_err(|e| e.to_string())?;
    crate::output::print(&text).map(drop).map_err(|e| format!("{e:?}"))
}
