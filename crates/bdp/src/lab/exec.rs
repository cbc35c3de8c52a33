//! `bdp lab exec`: the user's programs on the hosts of an emulated path.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use bdp_model::case::CaseSpec;
use bdp_model::record::{ProgramEnd, Record};
use bdp_model::units::Nanos;
use bdp_run::CaptureOrder;
use bdp_run::exec::{self, ExecEvent, ExecPlan, Message, ProgramOrder};
use bdp_scenario::PlanOptions;

use super::parameter::{ClockArgs, setting};
use super::source;
use crate::exit::{self, Exit, Outcome};
use crate::labels::LabelArgs;
use crate::output;
use crate::refusal;
use crate::store::StoreArgs;
use crate::{command_line, help, interrupt, program};

/// The path on which programs run.
#[derive(clap::Args)]
pub struct PathArgs {
    /// Name from 'bdp lab list', or a TOML file ('bdp help scenario'); flows in it are not run
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,

    /// Select the case that matches all words, if the scenario has several
    #[arg(long, help_heading = help::TEST, value_name = "FILTER")]
    filter: Option<String>,

    /// Set a parameter by its path, for example link.delay=20ms; repeatable
    #[arg(long = "set", help_heading = help::TEST, value_name = "PATH=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Seed of all random streams [default: the file's]
    #[arg(long, help_heading = help::TEST, value_name = "N")]
    seed: Option<u64>,

    /// Folder for captures at the link ends named by the scenario, or at all link ends
    #[arg(long, value_name = "DIR", help_heading = help::OUTPUT)]
    capture: Option<PathBuf>,

    #[command(flatten)]
    labels: LabelArgs,

    #[command(flatten)]
    store: StoreArgs,
}

/// The requested path.
pub struct AskedPath {
    /// Case of the path.
    pub case: CaseSpec,
    /// Text of the scenario's file.
    text: String,
}

impl PathArgs {
    /// Finds the one case of the scenario that programs run on.
    pub fn find(&self, clock: Option<(String, String)>) -> anyhow::Result<AskedPath> {
        let options = PlanOptions {
            seed: self.seed,
            filter: self.filter.clone(),
            overrides: self.settings.iter().cloned().chain(clock).collect(),
            repetitions: Some(1),
            links_alone: true,
            ..PlanOptions::default()
        };
        let scenario = source::load(&self.scenario, &options)?;
        let mut cases = source::plan(&scenario, &options)?;
        let case = cases.swap_remove(0);
        if !cases.is_empty() {
            return Err(exit::usage(format!(
                "{} has {} cases, but programs run on one; choose one with --filter, for example --filter '{}'",
                scenario.name,
                cases.len() + 1,
                case.key().trim_end_matches(" #1")
            )));
        }
        if let Some(stack) =
            case.hosts.iter().filter_map(|host| host.stack.as_ref()).find(|s| s.in_steps().is_some())
        {
            return Err(exit::usage(format!(
                "programs need a kernel, which stack \"{stack}\" is not; use for example --set stack=linux-6.12"
            )));
        }
        Ok(AskedPath { case, text: scenario.text().to_owned() })
    }

    /// Location of the captures.
    pub fn captures(&self, case: &CaseSpec) -> anyhow::Result<Option<CaptureOrder>> {
        super::work::capture_order(self.capture.clone(), std::slice::from_ref(case))
    }

    /// Stores the record; returns the run's id, if there is a store.
    pub fn keep(&self, record: &Record, path: &AskedPath) -> anyhow::Result<Option<String>> {
        let Some(mut store) = self.store.open()? else { return Ok(None) };
        let typed = command_line::typed();
        let (label, labels) = self.labels.read()?;
        let kept = exec::keep(&mut store, record, &path.text, (label.as_deref(), &labels), &typed);
        kept.map(Some).map_err(refusal::of)
    }

    /// Command that prints a run again.
    pub fn again(&self, run: &str) -> String {
        self.store.show_command(run)
    }
}

/// Arguments of `bdp lab exec`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp lab exec s1-64k --host far -- ping -c 3 near\n  \
    bdp lab exec mine.toml --serve 'server=python3 -m http.server' --host client -- curl -O http://server:8000/big\n  \
    bdp lab exec mine.toml --serve 'server=iperf3 -s' --on 'a=iperf3 -c server' --on 'b=ping -c 9 server'\n  \
    bdp lab exec mine.toml --clock virtual --serve 'server=iperf3 -s' --host client -- iperf3 -c server\n\n\
    Exit codes: that of the command; with several, the first that is not 0; 124 time limit; 125 bdp itself\n\
    failed; 126 the command can't be executed; 127 it is not found; 128 plus the number of a signal.")]
pub struct ExecArgs {
    #[command(flatten)]
    path: PathArgs,

    /// Host that runs the command after '--' [default: the scenario's first host]
    #[arg(long, help_heading = help::TEST, value_name = "HOST")]
    host: Option<String>,

    /// Run a shell command on a host in parallel, for example 'b=ping -c 9 server'; repeatable
    #[arg(long = "on", help_heading = help::TEST, value_name = "HOST=LINE", value_parser = on_host)]
    lines: Vec<(String, String)>,

    /// Start a shell command first as a server, and stop it when the others have ended; repeatable
    #[arg(long = "serve", help_heading = help::TEST, value_name = "HOST=LINE", value_parser = on_host)]
    services: Vec<(String, String)>,

    #[command(flatten)]
    clock: ClockArgs,

    /// Stop all programs after this time, with exit code 124
    #[arg(long, help_heading = help::TEST, value_name = "TIME", value_parser = crate::arguments::seconds)]
    time_limit: Option<Nanos>,

    /// Print the record as JSON ('bdp help record'); output of the programs goes to standard error
    #[arg(long, help_heading = help::OUTPUT)]
    json: bool,

    /// Print only the output of the programs
    #[arg(long, short, help_heading = help::OUTPUT)]
    quiet: bool,

    /// Command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Parses `HOST=LINE`.
fn on_host(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((host, line)) if !host.trim().is_empty() && !line.trim().is_empty() => {
            Ok((host.trim().to_owned(), line.trim().to_owned()))
        }
        _ => Err("expected HOST=LINE, for example 'server=iperf3 -s'".to_owned()),
    }
}

impl ExecArgs {
    /// Runs the programs.
    pub fn run(self) -> Outcome {
        let path = self.path.find(self.clock.setting())?;
        let programs = self.programs(&path.case)?;
        let several = programs.iter().filter(|order| !order.service).count() > 1;
        let mut plan = ExecPlan::new(path.case.clone(), programs);
        plan.capture = self.path.captures(&path.case)?;
        plan.time_limit = self.time_limit;
        plan.own_streams = !several && !self.json;
        let orders = plan.programs.clone();
        let mut watch = |event: ExecEvent<'_>| {
            if let ExecEvent::Output { program, errors, line } = event {
                let order = &orders[program];
                let is_data = !order.service && !self.json;
                let host = (several || !is_data).then_some(order.host.as_str());
                output::pass_on(host, errors || !is_data, line);
            }
        };
        let record = run(&plan, &mut watch)?;
        let run = self.path.keep(&record, &path)?;
        if self.json {
            output::print(&format!(
                "{:#}\n",
                bdp_report::json(std::slice::from_ref(&record), run.as_deref())
            ))?;
        } else if !self.quiet {
            output::note_text(&summary(&record, run.as_deref().map(|run| self.path.again(run)).as_deref()));
        }
        for one in record.programs.iter().filter(|one| one.end == ProgramEnd::OutputLimit) {
            output::note(&format!(
                "'{}' on host '{}' was ended: with the virtual clock a program may write at most {} MiB to standard output and error; write more to a file",
                one.command.join(" "),
                one.host,
                exec::OUTPUT_MOST >> 20,
            ));
        }
        Ok(Exit::Program(exec::exit_of(&record.programs)))
    }

    fn programs(&self, case: &CaseSpec) -> anyhow::Result<Vec<ProgramOrder>> {
        let line = |service: bool| {
            move |(host, line): &(String, String)| ProgramOrder {
                host: host.clone(),
                command: vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
                service,
            }
        };
        let mut all: Vec<ProgramOrder> = self.services.iter().map(line(true)).collect();
        if !self.command.is_empty() {
            let host = match &self.host {
                Some(host) => host.clone(),
                None => case.hosts.first().map(|host| host.name.clone()).unwrap_or_default(),
            };
            all.push(ProgramOrder { host, command: self.command.clone(), service: false });
        } else if self.host.is_some() {
            return Err(exit::usage(
                "--host names the host of a command; the command is missing: --host NAME -- COMMAND",
            ));
        }
        all.extend(self.lines.iter().map(line(false)));
        if all.iter().all(|order| order.service) {
            return Err(exit::usage(
                "no command given; give one after '--', for example --host NAME -- COMMAND, or use --on HOST=LINE",
            ));
        }
        for order in &all {
            if !case.hosts.iter().any(|host| host.name == order.host) {
                return Err(exit::usage(exec::no_such_host(&order.host, case)));
            }
        }
        Ok(all)
    }
}

/// Runs a plan by the clock of its case. By the real clock, signals that ask bdp to end are passed to the programs.
pub fn run(plan: &ExecPlan, watch: &mut dyn FnMut(ExecEvent<'_>)) -> anyhow::Result<Record> {
    let (outbox, inbox) = sync_channel(exec::MESSAGES_MOST);
    let asked = outbox.clone();
    // A guest ends with bdp, and so do its programs.
    if plan.case.clock.is_real() {
        interrupt::hand_over(move |ending, by_terminal| {
            drop(asked.send(Message::Asked(ending, by_terminal)));
        });
    }
    exec::run(plan, &program::commands(), (outbox, inbox), watch).map_err(refusal::of)
}

/// Summary of a run, and how to print it again.
pub fn summary(record: &Record, again: Option<&str>) -> String {
    let mut text = bdp_report::programs(record, &output::style_of_errors());
    if let Some(again) = again {
        text.push_str(&format!("{again} prints it again\n"));
    }
    text
}
