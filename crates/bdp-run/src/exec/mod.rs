//! User programs on the hosts of a scenario (`bdp lab exec`): its links without its flows, and a record of the links'
//! traffic.

pub(crate) mod programs;
pub(crate) mod stage;

use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, SyncSender};

use bdp_lab::program::ProgramOptions;
use bdp_lab::{Driver, LabCommands, Pace, Program, machine};
use bdp_model::measurement::labels::Labels;
use bdp_model::record::Record;
use bdp_store::{NewRun, RunKind, Store};
use bdp_sys::clock;

use crate::case::key::{digest, key};
use crate::guest::exec::ExecOrder;
use crate::measure::kept::OUTSIDE;
use crate::{Result, RunError, guest};
pub use programs::{MESSAGES_MOST, Message, ProgramOrder, TIMED_OUT, exit_of};
use stage::Stage;
pub use stage::{ExecEvent, ExecPlan, OUTPUT_MOST, no_such_host};

/// Commands for the hosts and for the warden of a program on a host.
#[derive(Debug, Clone)]
pub struct ExecCommands {
    /// The lab's commands.
    pub lab: LabCommands,
    /// Becomes a warden, by [`bdp_lab::program::run`].
    pub warden: Program,
}

/// Runs the programs by the clock of the case. With the real clock, the channel delivers the user's requests.
pub fn run(
    plan: &ExecPlan,
    commands: &ExecCommands,
    (outbox, inbox): (SyncSender<Message>, Receiver<Message>),
    watch: &mut dyn FnMut(ExecEvent<'_>),
) -> Result<Record> {
    machine::prepare();
    if !plan.case.clock.is_real() {
        return run_in_guest(plan, &commands.lab.keeper, watch);
    }
    if let Some(obstacle) = machine::obstacle(&commands.lab.host) {
        return Err(obstacle.into());
    }
    let driver = Driver::start(if plan.may_sleep() { Pace::Share } else { Pace::Spin })?;
    let options = ProgramOptions { cpus: driver.host_cpus().map(<[usize]>::to_vec), ..Default::default() };
    let stdio = |plan: &ExecPlan, index: usize| {
        let own = plan.own_streams && !plan.programs[index].service;
        let stream = |mine: Stdio, other: Stdio| if own { mine } else { other };
        Ok([
            stream(Stdio::inherit(), Stdio::null()),
            stream(Stdio::inherit(), Stdio::piped()),
            stream(Stdio::inherit(), Stdio::piped()),
        ])
    };
    let stage = Stage { host: &commands.lab.host, warden: &commands.warden, driver, options, stdio: &stdio };
    stage.run(plan, (outbox, inbox), watch)
}

/// Runs the programs in a guest, by its clock, and passes on their output once they have exited.
fn run_in_guest(plan: &ExecPlan, keeper: &Program, watch: &mut dyn FnMut(ExecEvent<'_>)) -> Result<Record> {
    let folder = std::env::current_dir();
    let folder = folder.map_err(|e| RunError::Case(format!("get the current directory: {e}")))?;
    // A value that is not valid text cannot be passed on.
    let text = |name: OsString, value: OsString| Some((name.into_string().ok()?, value.into_string().ok()?));
    let mut environment: Vec<(String, String)> =
        std::env::vars_os().filter_map(|(name, value)| text(name, value)).collect();
    environment.retain(|(name, _)| name != OUTSIDE);
    environment.push((OUTSIDE.to_owned(), clock::unix_ms().to_string()));
    let order = ExecOrder { plan: plan.clone(), environment, folder };
    guest::run_exec(keeper, order, &mut |program, errors, path| {
        let failed = |e: std::io::Error| RunError::Case(format!("read the output of a guest's program: {e}"));
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        while let Some(line) = programs::line_of(&mut file).map_err(failed)? {
            watch(ExecEvent::Output { program, errors, line: &line });
        }
        Ok(())
    })
}

/// Stores a run of programs with its record; returns its id.
pub fn keep(
    store: &mut dyn Store,
    record: &Record,
    text: &str,
    (label, labels): (Option<&str>, &Labels),
    command: &str,
) -> Result<String> {
    let cases = std::slice::from_ref(&record.case);
    let run = store.begin_run(&NewRun {
        id: None,
        kind: RunKind::Exec,
        label: label.map(str::to_owned),
        labels: labels.clone(),
        scenario: record.scenario.clone(),
        scenario_text: text.to_owned(),
        plan_digest: digest(cases),
        planned: 1,
        command: command.to_owned(),
        bdp: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: record.environment.started_unix_ms,
    })?;
    store.append(&run, &key(&record.case), record, true)?;
    store.finish_run(&run, clock::unix_ms())?;
    Ok(run)
}
