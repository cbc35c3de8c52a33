//! `bdp demo`: the main job on shipped scenarios, in about a minute.

use std::path::PathBuf;

use bdp_model::case::stack::Clock;
use bdp_scenario::{PlanOptions, Scenario};

use crate::exit::Outcome;
use crate::lab::{Ending, Page, Work};
use crate::output;
use crate::planned::Planned;
use crate::report::PageWords;
use crate::store::StoreArgs;

/// Scenarios of the published experiments.
const PUBLISHED: [&str; 5] = ["s3-noscale", "s3-30k", "s1-64k", "s1-128k", "s1-streams"];

/// Default page of `--report`.
const DEFAULT_PAGE: &str = "bdp-demo.html";

/// Arguments of `bdp demo`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  bdp demo\n  bdp demo --report ~/demo.html\n  bdp demo --resume")]
pub struct DemoArgs {
    /// Print JSON ('bdp help record')
    #[arg(long)]
    json: bool,

    /// Seed of all random streams and of the order of cases
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Resume the newest unfinished demonstration
    #[arg(long)]
    resume: bool,

    /// Clock: real, or virtual [default: virtual if a guest kernel boots]
    #[arg(long, value_name = "CLOCK", value_parser = crate::lab::clock())]
    clock: Option<Clock>,

    /// File for the HTML page [default: ./bdp-demo.html]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    words: PageWords,

    #[command(flatten)]
    store: StoreArgs,
}

impl DemoArgs {
    /// The job that runs it.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(self.work()?.job(), crate::lab::document))
    }

    fn work(&self) -> anyhow::Result<Work> {
        let mut scenarios = Vec::new();
        for name in PUBLISHED {
            // They ship with the binary: a missing one is a bug.
            let (name, text) =
                bdp_scenario::find(name).ok_or_else(|| anyhow::anyhow!("no built-in scenario {name}"))?;
            scenarios.push(Scenario::parse(name, text)?);
        }
        scenarios.push(Scenario::parse("demo-window", include_str!("demo-window.toml"))?);
        // By the virtual clock every case is valid on any machine, however busy.
        let virtual_clock = || match crate::guest::obstacle() {
            None => Some(("clock".to_owned(), Clock::Virtual.name().to_owned())),
            Some(cause) => {
                output::note(&format!("note: using the real clock, as no guest kernel boots: {cause}"));
                None
            }
        };
        let asked = self.clock.map(|clock| ("clock".to_owned(), clock.name().to_owned()));
        let overrides = asked.or_else(virtual_clock).into_iter().collect();
        let options = PlanOptions { seed: self.seed, overrides, ..Default::default() };
        let mut work = Work::plan(scenarios, &options)?;
        if self.resume {
            work.resume();
        }
        Ok(work)
    }

    /// Runs the demo.
    pub fn run(self) -> Outcome {
        let mut work = self.work()?;
        let mut store = match self.store.open() {
            Ok(store) => store,
            Err(error) if !self.store.is_given() => {
                output::note(&format!("note: this run is not stored: {error:#}"));
                None
            }
            Err(error) => return Err(error),
        };
        let outcome = work.run(store.as_mut());
        let ending = Ending {
            as_json: self.json,
            run: work.run_id().map(str::to_owned),
            again: work.run_id().map(|run| self.store.show_command(run)),
            next: "next  bdp lab list\n      bdp lab run s0-window-i\n      bdp calc bdp --rate 1G --rtt 2.55ms\n",
            page: Some(Page {
                required: self.report.is_some(),
                path: self.report.unwrap_or_else(|| DEFAULT_PAGE.into()),
                words: self.words,
                store: self.store.given(),
            }),
        };
        crate::lab::finish(outcome, &ending)
    }
}
