//! `bdp __agent`: the process that becomes a host of the lab. Internal.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use bdp_lab::{AgentCommand, Program};

use crate::output;

/// The hidden subcommand.
pub const NAME: &str = "__agent";

/// The hidden subcommand of the process before a program on a host.
pub const WARDEN: &str = "__program";

/// The process before a program on a host: this same program.
pub fn warden() -> Program {
    Program { path: "/proc/self/exe".into(), arguments: vec![WARDEN.to_owned()] }
}

/// Command that creates hosts: this same program, even if its file was replaced or removed meanwhile.
pub fn command() -> AgentCommand {
    AgentCommand::Process(Program { path: "/proc/self/exe".into(), arguments: vec![NAME.to_owned()] })
}

/// Creates hosts of a guest: each is a thread.
pub fn in_guest() -> AgentCommand {
    bdp_flow::pause::look_seldom();
    AgentCommand::Thread(|control| {
        if bdp_lab::agent::enter(&control, None).is_ok()
            && let Ok(writer) = control.try_clone()
        {
            bdp_agent::agent::serve(control, writer);
        }
    })
}

/// Serves the control stream on standard input. `parent` is the id of the process that must outlive this one.
pub fn run(parent: Option<&str>) -> ExitCode {
    // A terminal or a service manager signals the whole group; the lab must receive its own end, not its hosts'.
    bdp_sys::signal::leave_ending_to_parent();
    // For ps and top, which would otherwise show "exe".
    let _ = std::fs::write("/proc/self/comm", "bdp-agent");
    let Some(parent) = parent.and_then(|p| p.parse().ok()) else {
        output::note(&format!("bdp: {NAME} is for internal use by the lab"));
        return ExitCode::from(2);
    };
    let Ok(control) = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::from(3);
    };
    if bdp_lab::agent::enter(&control, Some(parent)).is_err() {
        // The lab knows the reason, or has gone.
        return ExitCode::from(3);
    }
    if let Ok(writer) = control.try_clone() {
        bdp_agent::agent::serve(control, writer);
    }
    ExitCode::SUCCESS
}
