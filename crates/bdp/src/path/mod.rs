//! `bdp path`: the hops of a path, and the figures of each.

mod arguments;

use std::io::IsTerminal;
use std::sync::atomic::Ordering;

use bdp_report::{path_json, path_text, phase_words};
use bdp_run::job::context::Context;
use bdp_run::job::{Ended, Job, Results};
use bdp_run::{Event, RunError};
use indicatif::ProgressBar;

pub use arguments::PathArgs;

use crate::exit::{self, Exit, Outcome};
use crate::planned::Planned;
use crate::{guest, interrupt, output};

/// Message for an interrupt before any answer.
const NOTHING: &str = "ended before a hop answered";

impl PathArgs {
    /// The job that sends the probes.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        Ok(Planned::new(Job::Path(Box::new(self.plan()?)), |ended| match (&ended.results, &ended.result) {
            (Results::Path(Some(report)), Ok(())) => Some(path_json(report)),
            _ => None,
        }))
    }

    /// Sends probes and prints the results.
    pub fn run(self) -> Outcome {
        let plan = self.plan()?;
        let host = plan.request.host.clone();
        let cancel = interrupt::cancel_instead();
        let live = std::io::stderr().is_terminal().then(ProgressBar::new_spinner);
        let mut watch = |event: Event<'_>| {
            if let (Event::Hops { phase, hops }, Some(live)) = (event, &live) {
                live.set_message(phase_words(phase, hops));
                live.tick();
            }
        };
        let ended = Job::Path(Box::new(plan)).run(Context::new(&guest::commands, &mut watch, cancel));
        if let Some(live) = &live {
            live.finish_and_clear();
        }
        let Ended { results, result, .. } = ended;
        let (report, result) = match (results, result) {
            // If there was no load, nothing is shown of the phase under load.
            (Results::Path(Some(report)), Ok(())) => (report, Ok(())),
            (_, Err(RunError::Session(error))) if error.is_request() => {
                return Err(exit::usage(error.to_string()));
            }
            (_, result) => {
                if cancel.load(Ordering::Relaxed) {
                    output::note(&format!("bdp: {NOTHING}"));
                    interrupt::carry_out(NOTHING);
                }
                let error = result.err().map(|error| error.to_string()).unwrap_or_default();
                return Err(exit::environment(format!("path {host}: {error}")));
            }
        };
        let text = match self.json {
            true => format!("{:#}\n", path_json(&report)),
            false => path_text(&report, &output::style()),
        };
        output::print(&text)?;
        if cancel.load(Ordering::Relaxed) {
            interrupt::carry_out("");
        }
        result.map(|()| Exit::Done)
    }
}
