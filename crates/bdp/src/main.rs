//! The command line: one file per subcommand, arguments -> action.
#![forbid(unsafe_code)]

mod absurd;
mod address;
mod agent;
mod arguments;
mod calc;
mod command_line;
mod compare;
mod complete;
mod completions;
mod demo;
mod exit;
mod explain;
mod failure;
mod far;
mod fix;
mod found;
mod guest;
mod help;
mod interrupt;
mod iperf3_options;
mod lab;
mod labels;
mod manual;
mod measure;
mod metrics;
mod output;
mod overview;
mod page;
mod path;
mod pcap;
mod ping;
mod planned;
mod program;
mod prose;
mod question;
mod reach;
mod refusal;
mod rehearse;
mod report;
mod roff;
mod runs;
#[cfg(test)]
mod schemas;
mod selftest;
mod serve;
mod show;
mod store;
mod sweep;
mod token;
mod topics;
mod tune;
mod twin;
mod users;
mod verify;
mod visitors;
mod watch;

#[cfg(not(panic = "unwind"))]
compile_error!(
    "a panic of bdp's is exit code 4, one case or one session, and never the whole server's: it has to unwind"
);

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use bdp_run::pcap::Source;
use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::{Exit, Outcome};
use crate::planned::Planned;

/// Finds out why a network path is slower than it should be, and helps fix it.
#[derive(Parser)]
#[command(name = "bdp", version = env!("BDP_VERSION"), propagate_version = true, disable_help_subcommand = true,
    after_help = EXAMPLES, after_long_help = with_topics())]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

/// The most common commands.
const EXAMPLES: &str = "\
Examples:
  bdp demo                                 published experiments, repeated here
  bdp serve                                the other end of a measurement
  bdp measure ams1                         both directions, and what limits them
  bdp ping ams1:443                        round trips to any open port
  bdp path ams1 --load                     the hop where the queue stands
  bdp compare                              the newest run and the one before it";

fn with_topics() -> String {
    let topics = topics::texts().join(", ");
    format!("{EXAMPLES}\n\nHelp topics, described by bdp help topics: {topics}.")
}

#[derive(Subcommand)]
enum Command {
    /// Repeat published experiments on the emulated lab, in a minute
    Demo(demo::DemoArgs),
    /// Measure throughput and latency to another machine, and report what limits them
    Measure(Box<measure::MeasureArgs>),
    /// Measure round trips to any host: TCP connect, ICMP, or TCP and UDP echo
    Ping(Box<ping::PingArgs>),
    /// Probe each hop of a path: round trips idle and under load, loss, MTU, DSCP and ECN changes, branches
    Path(Box<path::PathArgs>),
    /// Run, list and check scenarios on the emulated lab
    Lab(lab::LabArgs),
    /// Measure a curve over window, streams, write length, MSS or congestion control, and find its knee
    Sweep(Box<sweep::SweepArgs>),
    /// Calculate window, rate, loss, header overhead or slow start from TCP models
    Calc(calc::CalcArgs),
    /// Explain the connections in a capture file or on an interface
    Pcap(pcap::PcapArgs),
    /// Explain the TCP connections of other programs while they run
    Watch(watch::WatchArgs),
    /// Host settings: show them, plan the smallest change for a path, apply and revert it
    Tune(tune::TuneArgs),
    /// Rehearse a change of settings on the emulated twin of a measured path
    Rehearse(rehearse::RehearseArgs),
    /// Emulate a measured path, run the twin and compare it with the measurement
    Twin(twin::TwinArgs),
    /// Repeat a measurement after a change, and compare it with the earlier run and the prediction
    Verify(verify::VerifyArgs),
    /// Measure, explain, rehearse, apply and verify in one command; asks before each change
    Fix(Box<fix::FixArgs>),
    /// Serve measurements on one port, TCP and UDP
    Serve(serve::ServeArgs),
    /// Open the page in a browser: measure, see what limits the path, look at stored runs
    Page(page::PageArgs),
    /// Test this machine's clock, timers, processors and network stack, in five seconds
    Selftest(selftest::SelftestArgs),
    /// List stored runs; export, import and remove them
    Runs(runs::RunsArgs),
    /// Write a stored run as an HTML page or CSV
    Report(report::ReportArgs),
    /// Explain what limits the transfers of a stored run, by the rules of this version of bdp
    Explain(explain::ExplainArgs),
    /// Show one stored run
    Show(show::ShowArgs),
    /// Print the help of a subcommand
    Help(help::HelpArgs),
    /// Print the manual page, or write those of all subcommands
    Man(manual::ManArgs),
    /// Print the completion script of a shell
    Completions(completions::CompletionsArgs),
    /// Compare two stored runs, with confidence intervals
    Compare(compare::CompareArgs),
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| failure::report_bug(&panic.to_string())));
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next();
    if name.as_deref().is_some_and(|name| name == agent::NAME) {
        return agent::run(arguments.next().as_deref().and_then(OsStr::to_str));
    }
    if name.as_deref().is_some_and(|name| name == agent::WARDEN) {
        return program::run(arguments);
    }
    if name.as_deref().is_some_and(|name| name == far::NAME) {
        return far::run(arguments.next().as_deref().and_then(OsStr::to_str));
    }
    if name.as_deref().is_some_and(|name| name == watch::NAME) {
        return watch::serve(arguments);
    }
    if name.as_deref().is_some_and(|name| name == tune::GUARD) {
        return tune::run_guard(arguments);
    }
    if name.as_deref().is_some_and(|name| name == guest::NAME) {
        return guest::run();
    }
    if name.as_deref().is_some_and(|name| name == guest::KEEPER) {
        return guest::keep();
    }
    if name.as_deref().is_some_and(|name| name == guest::INSIDE) {
        return guest::inside();
    }
    if name.as_deref().is_some_and(|name| name == complete::NAME) {
        return complete::run(Cli::command(), arguments.map(|word| word.to_string_lossy().into_owned()));
    }
    bdp_sys::signal::survive_file_size_limit();
    // The panic hook has printed the message.
    std::panic::catch_unwind(run).unwrap_or(Exit::Bug).into()
}

fn run() -> Exit {
    let cli: Cli = match arguments::parse() {
        Ok(cli) => cli,
        Err(outcome) => return outcome.unwrap_or_else(|error| failure::report(&error)),
    };
    let outcome = cli.command.map_or_else(overview::print, Command::run);
    outcome.unwrap_or_else(|error| failure::report(&error))
}

impl Command {
    fn run(self) -> Outcome {
        match self {
            Self::Demo(args) => args.run(),
            Self::Measure(args) => args.run(),
            Self::Ping(args) => args.run(),
            Self::Path(args) => args.run(),
            Self::Pcap(args) => args.run(),
            Self::Watch(args) => args.run(),
            Self::Lab(args) => args.run(),
            Self::Sweep(args) => args.run(),
            Self::Calc(args) => args.run(),
            Self::Tune(args) => args.run(),
            Self::Rehearse(args) => args.run(),
            Self::Twin(args) => args.run(),
            Self::Verify(args) => args.run(),
            Self::Fix(args) => args.run(),
            Self::Serve(args) => args.run(),
            Self::Page(args) => args.run(page::Parser { root: Cli::command, parse }),
            Self::Selftest(args) => args.run(),
            Self::Runs(args) => args.run(),
            Self::Report(args) => args.run(),
            Self::Explain(args) => args.run(),
            Self::Show(args) => args.run(),
            Self::Help(args) => args.run(Cli::command()),
            Self::Man(args) => args.run(Cli::command()),
            Self::Completions(args) => args.run(Cli::command()),
            Self::Compare(args) => args.run(),
        }
    }
}

/// The command of these words, and which options they give.
fn parse(words: &[String]) -> anyhow::Result<page::Parsed> {
    let (cli, matches) = arguments::parse_words::<Cli>(words)?;
    match cli.command {
        Some(command) => Ok((Box::new(command), matches)),
        None => Err(exit::usage("no command: begin with its name, for example measure")),
    }
}

impl page::Typed for Command {
    fn planned(
        &self,
        source_of: &dyn Fn(&Path) -> anyhow::Result<Source>,
    ) -> Option<anyhow::Result<Planned>> {
        Some(match self {
            Self::Measure(args) => args.planned(),
            Self::Sweep(args) => args.planned(),
            Self::Compare(args) => args.planned(),
            Self::Twin(args) => args.planned(),
            Self::Rehearse(args) => args.planned(),
            Self::Verify(args) => args.planned(),
            Self::Fix(args) => args.planned(),
            Self::Lab(args) => return args.planned(),
            Self::Demo(args) => args.planned(),
            Self::Ping(args) => args.planned(),
            Self::Path(args) => args.planned(),
            Self::Pcap(args) => args.planned(source_of),
            _ => return None,
        })
    }

    fn run(self: Box<Self>) -> Outcome {
        (*self).run()
    }
}
