//! `bdp lab`: scenarios on the emulated lab.

mod captured;
pub(crate) mod conformance;
mod exec;
mod import;
mod list;
mod parameter;
mod plan;
mod profiles;
mod progress;
mod selftest;
mod shell;
pub mod source;
pub(crate) mod stacks;
mod work;

pub use parameter::{clock, setting};
use plan::PlanArgs;
use work::print;
pub use work::{Work, document};

use std::collections::BTreeSet;
use std::path::PathBuf;

use bdp_model::case::CaseSpec;
use bdp_model::case::stack::Stack;
use bdp_model::record::Record;
use bdp_report::About;
use bdp_scenario::PlanOptions;

use crate::exit::{self, Outcome};
use crate::help;
use crate::labels::LabelArgs;
use crate::planned::Planned;
use crate::report::{PageArgs, PageWords};
use crate::store::StoreArgs;

/// Arguments of `bdp lab`.
#[derive(clap::Args)]
pub struct LabArgs {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(clap::Subcommand)]
enum LabCommand {
    /// Run scenarios: built-in ones by name, others by path
    Run(Box<RunArgs>),
    /// Run your own programs on the hosts of a scenario: curl, a database, iperf3
    Exec(Box<exec::ExecArgs>),
    /// Start a shell on a host of a scenario
    Shell(shell::ShellArgs),
    /// List the built-in scenarios or link profiles, or print one
    List(ListArgs),
    /// Check scenario files without running them
    Check(CheckArgs),
    /// Convert a path configuration of tc netem, mahimahi or rattan to a scenario
    Import(import::ImportArgs),
    /// Print the netem commands that approximate a scenario's links
    Export(import::ExportArgs),
    /// List the kernels and other stacks that hosts can run, and how to build missing ones
    Stacks(StacksArgs),
    /// Check stacks against one TCP conformance suite
    Conformance(conformance::ConformanceArgs),
    /// Test the emulator's accuracy on this machine, in about 50 seconds
    Selftest(selftest::SelftestArgs),
}

impl LabArgs {
    /// Runs the subcommand.
    pub fn run(self) -> Outcome {
        match self.command {
            LabCommand::Run(args) => args.run(),
            LabCommand::Exec(args) => args.run(),
            LabCommand::Shell(args) => args.run(),
            LabCommand::List(args) if args.profiles => profiles::run(args.name.as_deref(), args.json),
            LabCommand::List(args) => list::run(args.name.as_deref(), args.json),
            LabCommand::Check(args) => args.run(),
            LabCommand::Import(args) => args.run(),
            LabCommand::Export(args) => args.run(),
            LabCommand::Stacks(args) => stacks::run(args.json),
            LabCommand::Conformance(args) => args.run(),
            LabCommand::Selftest(args) => args.run(),
        }
    }
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab list\n  bdp lab list s3-30k > mine.toml\n  bdp lab list --profiles\n  bdp lab list --profiles lte\n  bdp lab list --json"
)]
struct ListArgs {
    /// Print this scenario or profile, as a template for your own
    name: Option<String>,

    /// List the link profiles: DSL, LTE, satellites and others ('bdp help profiles')
    #[arg(long)]
    profiles: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab stacks\n  bdp lab stacks --json\n\n'bdp help stacks' describes where bdp looks for kernels."
)]
struct StacksArgs {
    /// Print JSON ('bdp help stacks.schema')
    #[arg(long)]
    json: bool,
}

/// Arguments of `bdp lab run`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab run s3-30k\n  bdp lab run s0-window-i --filter direction=forward\n  \
    bdp lab run mine.toml --repetitions 5 --json > mine.json\n  bdp lab run mine.toml --resume\n\n\
    Captures are pcapng, one file per link end and attempt: SCENARIO-KEY-ATTEMPT-link0-near.pcapng. The comment of each \
    packet states what the link did with it: tshark -r FILE -T fields -e frame.number -e frame.comment\n\n\
    Exit codes: 0 done; 1 an expectation was missed; 2 usage error; 3 environment error; 4 bug in bdp;\n\
    5 every repetition of a case was INVALID."
)]
struct RunArgs {
    /// Names from 'bdp lab list', or TOML files ('bdp help scenario')
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<String>,

    #[command(flatten)]
    plan: PlanArgs,

    /// Maximum number of parallel cases [default: as many as keep accuracy; with the virtual clock, one per processor]
    #[arg(long, help_heading = help::TEST, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    jobs: Option<u32>,

    /// Attempts at a case before it is INVALID; with the virtual clock always 1 [default: 4]
    #[arg(long, help_heading = help::TEST, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: Option<u32>,

    /// Resume the newest unfinished run of the same cases
    #[arg(long, help_heading = help::TEST)]
    resume: bool,

    /// Folder for captures at the link ends named by the scenario, or at all [default: bdp-captures, if it names any]
    #[arg(long, value_name = "DIR", help_heading = help::OUTPUT)]
    capture: Option<PathBuf>,

    /// Print JSON ('bdp help record')
    #[arg(long, help_heading = help::OUTPUT)]
    json: bool,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    labels: LabelArgs,

    /// Write metrics to this file for the Prometheus textfile collector ('bdp help metrics')
    #[arg(long, value_name = "FILE", help_heading = help::OUTPUT, hide_short_help = true)]
    prometheus: Option<PathBuf>,

    #[command(flatten)]
    store: StoreArgs,
}

impl LabArgs {
    /// The job of `bdp lab run`; `None` of any other subcommand.
    pub fn planned(&self) -> Option<anyhow::Result<Planned>> {
        if let LabCommand::Run(args) = &self.command { Some(args.planned()) } else { None }
    }
}

impl RunArgs {
    fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(self.work()?.job(), work::document))
    }

    fn work(&self) -> anyhow::Result<Work> {
        let options = self.plan.options();
        let scenarios = self
            .scenarios
            .iter()
            .map(|name| source::load(name, &options))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut work = Work::plan(scenarios, &options)?;
        let (label, labels) = self.labels.read()?;
        work.call(label, labels);
        if self.resume {
            work.resume();
        }
        if let Some(attempts) = self.attempts {
            work.limit_attempts(attempts);
        }
        work.limit_jobs(self.jobs);
        Ok(work)
    }

    fn run(self) -> Outcome {
        let mut work = self.work()?;
        self.page.check()?;
        crate::report::check_place(self.prometheus.as_deref(), "metrics")?;
        let mut store = self.store.open()?;
        work.capture(self.capture.clone())?;
        let outcome = work.run(store.as_mut());
        let ending = Ending {
            as_json: self.json,
            run: work.run_id().map(str::to_owned),
            again: work.run_id().map(|run| self.store.show_command(run)),
            next: "",
            page: self.page.parts().map(|(path, words)| Page {
                path,
                words,
                required: true,
                store: self.store.given(),
            }),
        };
        let written = match (&self.prometheus, &outcome) {
            (Some(path), Ok(records) | Err((records, _))) => {
                crate::report::write_case_metrics(path, records, &self.labels.read()?.1)
            }
            (None, _) => Ok(()),
        };
        finish(outcome, &ending).and_then(|exit| written.map(|()| exit))
    }
}

/// What to do with the records when a run is over.
pub struct Ending {
    /// Whether JSON is printed instead of the table.
    pub as_json: bool,
    /// The run's id, if it is stored.
    pub run: Option<String>,
    /// The command that prints it again, if the run is stored.
    pub again: Option<String>,
    /// Lines that follow the table.
    pub next: &'static str,
    /// The page to write.
    pub page: Option<Page>,
}

/// A page about a run.
pub struct Page {
    /// Path of the page.
    pub path: PathBuf,
    /// Author's text on the page.
    pub words: PageWords,
    /// Whether it was requested: otherwise an unwritable folder is no failure.
    pub required: bool,
    /// Path of the store, if it was given.
    pub store: Option<String>,
}

/// Prints the results, even if an error ended the run, and returns bdp's exit.
pub fn finish(outcome: Result<Vec<Record>, (Vec<Record>, anyhow::Error)>, ending: &Ending) -> Outcome {
    let again = ending.again.as_deref();
    finish_with(outcome, |records| {
        print(records, ending.run.as_deref(), ending.as_json, again)
            .map_err(|error| exit::kept(error, again))?;
        let text = closing(records, ending)?;
        if ending.as_json {
            text.lines().for_each(crate::output::note);
            return Ok(());
        }
        crate::output::print(&text).map(|_| ())
    })
}

/// As [`finish`], with the caller's own printing.
pub fn finish_with(
    outcome: Result<Vec<Record>, (Vec<Record>, anyhow::Error)>,
    print: impl FnOnce(&[Record]) -> anyhow::Result<()>,
) -> Outcome {
    let (records, outcome) = match outcome {
        Ok(records) => {
            let exit = bdp_run::job::Ending::of(&records).into();
            (records, Ok(exit))
        }
        Err((records, error)) => (records, Err(error)),
    };
    let printed = if records.is_empty() { Ok(()) } else { print(&records) };
    // Of two errors the first one ended the run.
    outcome.and_then(|exit| printed.map(|()| exit))
}

/// Text after the table: the next commands, and last the path of the page. With JSON it goes to standard error.
fn closing(records: &[Record], ending: &Ending) -> anyhow::Result<String> {
    let mut text = match ending.as_json {
        true => String::new(),
        false => format!("{}{}", captured::explained(records), ending.next),
    };
    if let Some(page) = &ending.page {
        let command = crate::command_line::typed();
        let started = records.iter().map(|r| r.environment.started_unix_ms).min().map(crate::output::utc);
        let about = About {
            run: ending.run.as_deref(),
            command: Some(&command),
            started: started.as_deref(),
            store: page.store.as_deref(),
            ..About::default()
        };
        match crate::report::write_page(&page.path, records, &page.words.on(about)) {
            Ok(()) => text.push_str(&format!("report  {}\n", crate::report::shown(&page.path))),
            Err(error) if page.required => return Err(error),
            Err(error) => crate::output::note(&format!("note: {error:#}")),
        }
    }
    Ok(text)
}

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  bdp lab check mine.toml\n  bdp lab check mine.toml --cases --set flow.duration=5s"
)]
struct CheckArgs {
    /// Scenarios: paths of TOML files, or names from 'bdp lab list'
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,

    #[command(flatten)]
    plan: PlanArgs,

    /// Print each case
    #[arg(long)]
    cases: bool,
}

impl CheckArgs {
    fn run(self) -> Outcome {
        let mut text = String::new();
        let mut stacks = BTreeSet::new();
        for name in &self.scenarios {
            let name = name.to_str().ok_or_else(|| exit::usage("a scenario's path must be UTF-8"))?;
            if let Some(links) = self.links_alone(name)? {
                text.push_str(&links);
                continue;
            }
            let scenario = source::load(name, &self.plan.options())?;
            let cases = source::plan(&scenario, &self.plan.options())?;
            crate::absurd::note_links(&cases);
            text.push_str(&list::checked(&scenario, &cases, self.cases));
            let by_virtual_clock = cases.iter().filter(|case| !case.clock.is_real());
            stacks.extend(by_virtual_clock.flat_map(stacks_of));
        }
        if stacks.is_empty() {
            // They might use it too.
            stacks.insert(None);
        }
        for stack in stacks {
            let name = stack.as_ref().map_or_else(String::new, |stack| format!(" with {stack}"));
            let runs = match stack.as_ref().and_then(Stack::in_steps) {
                Some(in_steps) => match bdp_run::selftest::conformance::version_of(in_steps) {
                    Ok(version) => format!("yes, {version}"),
                    Err(error) => format!("no: {error}"),
                },
                None => crate::guest::boots(stack.map(|stack| stack.to_string()).as_deref()),
            };
            text.push_str(&format!("virtual clock{name}: {runs}\n"));
        }
        crate::output::print(&text)
    }
}

/// Stacks of a case: its kernel, or each that is no kernel; `None` if it names none.
fn stacks_of(case: &CaseSpec) -> Vec<Option<Stack>> {
    if !case.runs_in_steps() {
        return vec![case.stack().cloned()];
    }
    case.hosts.iter().filter_map(|host| host.stack.clone()).map(Some).collect()
}

impl CheckArgs {
    /// Message for a scenario without flows; `None` if it has some.
    fn links_alone(&self, name: &str) -> anyhow::Result<Option<String>> {
        let options = PlanOptions { links_alone: true, ..self.plan.options() };
        let scenario = source::load(name, &options)?;
        let without_flows = source::plan(&scenario, &options)?.iter().all(|case| case.flows.is_empty());
        Ok(without_flows.then(|| {
            format!("{}: valid, without flows, for 'bdp lab exec' and 'bdp lab shell'\n", scenario.name)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_page_comes_last() {
        let record: Record =
            serde_json::from_str(include_str!("../../../bdp-store/tests/it/record.json")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let page = |path: &PathBuf, required| {
            Some(Page { path: path.clone(), words: PageWords::default(), required, store: None })
        };
        let mut ending =
            Ending { as_json: false, run: None, again: None, next: "next  more\n", page: page(&path, false) };
        let text = closing(std::slice::from_ref(&record), &ending).unwrap();
        let shown = crate::report::shown(&path);
        assert_eq!(text.lines().collect::<Vec<_>>(), ["next  more", &format!("report  {shown}")]);
        assert!(std::fs::read_to_string(&path).unwrap().contains("</html>"));
        // An unrequested page that can't be written is no failure; a requested one is.
        let nowhere = folder.path().join("missing/page.html");
        ending.page = page(&nowhere, false);
        assert_eq!(closing(std::slice::from_ref(&record), &ending).unwrap(), "next  more\n");
        ending.page = page(&nowhere, true);
        assert!(closing(std::slice::from_ref(&record), &ending).is_err());
    }
}
