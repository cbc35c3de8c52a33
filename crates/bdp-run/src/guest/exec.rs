//! User programs in a guest: they see the machine's files, and the guest's network and clock.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::sync_channel;

use bdp_lab::program::ProgramOptions;
use bdp_lab::{AgentCommand, Driver, Pace, Program};
use bdp_model::record::{GuestReport, Record};
use bdp_sys::{clock, isolate, process};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::case::capture::CaptureOrder;
use crate::exec::programs::MESSAGES_MOST;
use crate::exec::stage::{ExecEvent, ExecPlan, Stage};
use crate::guest::calls;

/// Mount point of the machine's files.
pub(crate) const MACHINE: &str = "/machine";
/// The folder of captures.
pub(crate) const CAPTURES: &str = "/captures";
/// The folder of the programs' output.
const STREAMS: &str = "/streams";

/// Programs for a guest to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecOrder {
    pub(crate) plan: ExecPlan,
    /// The complete environment, except for variables that their hosts add.
    pub(crate) environment: Vec<(String, String)>,
    /// Their working directory.
    pub(crate) folder: PathBuf,
}

/// Returns the path of a program's output or error stream, as seen inside.
pub(crate) fn stream(program: usize, errors: bool) -> String {
    format!("{STREAMS}/{program}.{}", if errors { "err" } else { "out" })
}

/// Runs the programs; called by the first process of a guest.
pub(crate) fn run(agent: &AgentCommand, warden: &Program, order: &ExecOrder) -> Result<Record, String> {
    isolate::mount_machine(MACHINE).map_err(|e| e.to_string())?;
    fs::create_dir_all(STREAMS).map_err(|e| format!("make the folder '{STREAMS}': {e}"))?;
    // For each program, whether or not it gets to start.
    let mut streams = Vec::new();
    for index in 0..order.plan.programs.len() {
        for path in [stream(index, false), stream(index, true)] {
            streams.push(File::create(&path).map_err(|e| format!("make the file '{path}': {e}"))?);
        }
    }
    let mut plan = order.plan.clone();
    plan.capture = plan.capture.map(|capture| CaptureOrder { folder: CAPTURES.into(), ..capture });
    let stdio = |_: &ExecPlan, _: usize| Ok([Stdio::null(), Stdio::piped(), Stdio::piped()]);
    let options = ProgramOptions {
        root: Some(MACHINE.into()),
        folder: Some(order.folder.clone()),
        environment: Some(order.environment.clone()),
        ..Default::default()
    };
    let driver = preferred_driver()?;
    let calls_before = calls::so_far();
    let stage = Stage { host: agent, warden, driver, options, stdio: &stdio };
    let mut unkept = None;
    let record = stage.run(&plan, sync_channel(MESSAGES_MOST), &mut |event| {
        if let ExecEvent::Output { program, errors, line } = event {
            let written = streams[2 * program + usize::from(errors)].write_all(line);
            unkept = unkept.take().or(written.err());
        }
    });
    let mut record = record.map_err(|e| e.to_string())?;
    let calls = calls::so_far().zip(calls_before).map(|(after, before)| after - before);
    record.environment.guest = Some(GuestReport {
        emulated_ns: clock::monotonic_ns(),
        system_calls: calls,
        segments: None,
        wall: Default::default(),
    });
    for stream in &streams {
        unkept = unkept.take().or(stream.sync_all().err());
    }
    if let Some(e) = unkept {
        return Err(format!("store the output of a program: {e}"));
    }
    Ok(record)
}

/// Returns a driver that takes precedence over everything else on the guest's processor: programs that poll the
/// kernel, or hundreds of starting flows, must not delay a packet.
pub(crate) fn preferred_driver() -> Result<Driver, String> {
    process::prefer(0);
    let driver = Driver::start(Pace::Virtual).map_err(|e| e.to_string());
    process::prefer_no_more();
    driver
}
