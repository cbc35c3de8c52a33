//! `bdp watch`: sockets of other programs, explained while they run.

mod arguments;
mod lines;
mod screen;
mod view;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bdp_report::{prometheus_of_watch, watch_interval_json, watch_summary_json};
use bdp_run::job::context::Context;
use bdp_run::job::{Job, Results};
use bdp_run::{Event, RunError};

pub use arguments::WatchArgs;
use lines::Lines;
use screen::Screen;

use crate::exit::{self, Exit, Outcome};
use crate::{guest, interrupt, metrics, output};

/// The hidden subcommand that queries sockets in another network namespace.
pub const NAME: &str = bdp_run::watch::SUBCOMMAND;

/// Message for an interrupt before any reading.
const NOTHING: &str = "ended before a socket was read";

/// Destination of reports.
enum Face {
    Json,
    Lines(Lines),
    Screen(Screen),
}

impl WatchArgs {
    /// Watches until the end; prints the summary.
    pub fn run(self) -> Outcome {
        let plan = self.plan()?;
        let listener = self.metrics.map(metrics::listen).transpose()?;
        let cancel = interrupt::cancel_instead();
        let page = Arc::new(Mutex::new(String::new()));
        if let Some(listener) = listener {
            let page = Arc::clone(&page);
            metrics::serve(listener, move || page.lock().unwrap_or_else(PoisonError::into_inner).clone())?;
        }
        let live = !self.json && !self.plain && std::io::stdout().is_terminal();
        let mut face = if self.json {
            Face::Json
        } else if live && let Some(screen) = Screen::open(&self.asked(), cancel) {
            Face::Screen(screen)
        } else {
            Face::Lines(Lines::new(self.top))
        };
        let (has_metrics, is_endless) = (self.metrics.is_some(), self.time.is_none());
        let mut printed = Ok(Exit::Done);
        let mut watch = |event: Event<'_>| {
            let Event::Sockets { interval } = event else { return };
            if has_metrics {
                let text = prometheus_of_watch(&interval, env!("CARGO_PKG_VERSION"));
                *page.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
            let shown = match &mut face {
                Face::Json => output::print(&watch_interval_json(&interval)),
                Face::Lines(lines) => lines.show(&interval),
                Face::Screen(screen) => {
                    screen.show(interval.into_owned());
                    Ok(Exit::Done)
                }
            };
            // Without a reader there is no reason to continue.
            if shown.is_err() || output::is_closed() {
                printed = shown;
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let ended = Job::Watch(plan).run(Context::new(&guest::commands, &mut watch, cancel));
        // Before anything is printed below it.
        drop(face);
        printed?;
        let summary = match (ended.results, &ended.result) {
            (Results::Watched(Some(summary)), _) => summary,
            (_, Err(RunError::Request(why))) => return Err(exit::usage(why.clone())),
            (_, Err(error)) => return Err(exit::environment(format!("watch: {error}"))),
            _ => return Err(exit::environment(NOTHING)),
        };
        output::print(&if self.json {
            watch_summary_json(&summary)
        } else {
            format!("\n{}", bdp_report::watch_summary(&summary, &output::style()))
        })?;
        // If nothing else ends it, an interrupt is its regular end.
        if cancel.load(Ordering::Relaxed) && !is_endless {
            interrupt::carry_out("");
        }
        ended.result.map(|()| Exit::Done).map_err(|error| exit::environment(format!("watch: {error}")))
    }
}

/// Queries sockets in another network namespace, for the process that started this one.
pub fn serve(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    match bdp_run::watch::serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            output::note(&why);
            ExitCode::from(3)
        }
    }
}
