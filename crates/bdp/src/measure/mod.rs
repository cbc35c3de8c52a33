//! `bdp measure`: throughput and latency between this machine and another.

mod arguments;
mod baseline;
mod care;
mod iperf3_json;
pub mod judgement;
mod lines;
mod live;
mod login;
mod payload;
mod pieces;
mod socket;
mod ssh;
mod stream;
pub mod target;
mod udp;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_model::expectation::Judgement;
use bdp_model::measurement::Measurement;
use bdp_run::measure::Measured;
use bdp_run::{Event, RunError};
use bdp_store::Store;

pub use arguments::MeasureArgs;
use baseline::Baseline;
use iperf3_json::Log;
use lines::ScrollingLines;
use live::Live;
pub use socket::{SocketArgs, dscp};
use stream::Lines;

use crate::exit::Outcome;
use crate::exit::{self, Exit};
use crate::found::alone;
use crate::store::refuse;
use crate::{interrupt, output};

impl MeasureArgs {
    /// Measures, prints, judges.
    pub fn run(self) -> Outcome {
        let mut plan = self.plan()?;
        let expectations = self.expectations(&plan.request)?;
        let mut store = self.store.open()?;
        // Before anything is measured: a baseline that isn't there is found out now.
        let baseline = self
            .baseline
            .as_deref()
            .map(|run| Baseline::load(run, &self.store, &plan.request))
            .transpose()?;
        if let Some(unlike) = baseline.as_ref().and_then(|baseline| baseline.unlike(&plan.request)) {
            output::note(&unlike);
        }
        let cancel = interrupt::cancel_instead();
        // It runs for as long as this is held.
        let ended = |_: &anyhow::Error| end_if_asked(cancel, NOTHING);
        let far_end = self.ssh.start(&mut plan, self.data_target()?, cancel).inspect_err(ended)?;
        if !self.udp.may_flood() {
            care::check(&plan.request, store.as_ref(), cancel).inspect_err(ended)?;
        }
        let lines = self.json_stream.then(|| Lines::new(&plan, !self.prints_no_intervals()));
        let is_search = plan.request.spec.udp.as_ref().is_some_and(|udp| udp.search.is_some());
        let scrolling =
            self.interval_layout().filter(|_| !is_search).map(|layout| ScrollingLines::new(&plan, layout));
        let log = self.is_iperf3_json().then(|| Log::new(&plan, self.interval_of_iperf3()));
        let mut watchers = Watchers {
            // Two that show how far it is would be one too many.
            live: scrolling.is_none().then(|| Live::new(plan.runs)),
            scrolling,
            log,
            lines,
            moved: false,
        };
        let kept_in = store.as_mut().map(|store| store as &mut dyn Store);
        let Measured { run, measurements: measured, result } =
            plan.run(kept_in, &mut |event| watchers.show(&event), cancel);
        watchers.end(&result);
        let Watchers { log, moved, .. } = watchers;
        let outcome = result.map_err(|error| refusal(error, &plan.request.host));
        drop(far_end);
        let judged: Vec<Judgement> = expectations.iter().map(|expected| expected.judge(&measured)).collect();
        let again = run.as_deref().map(|run| self.store.show_command(run));
        // Where nothing was measured there is nothing to print, only the error.
        if let Some(log) = log {
            log.print(&measured, outcome.as_ref().err())?;
        } else if !measured.is_empty() && !self.json_stream {
            self.print(&measured, run.as_deref(), &judged).map_err(|error| match &again {
                Some(again) => {
                    exit::environment(format!("{error}; what was measured is stored, '{again}' prints it"))
                }
                None => error,
            })?;
        }
        if run.is_some() || !measured.is_empty() {
            let stored = run.as_deref().zip(store.as_ref());
            self.page.write(stored, &self.store, |about| {
                let kept: Vec<_> = measured.iter().cloned().map(alone).collect();
                crate::report::page_of_measurements(&kept, about)
            })?;
        }
        let metrics = self.prometheus.as_ref().map_or(Ok(()), |path| {
            let text =
                bdp_report::prometheus(&measured, &judged, &plan.request.host, env!("CARGO_PKG_VERSION"));
            crate::report::write(path, &text, "metrics")
        });
        match (measured.is_empty(), moved) {
            (false, _) => end_if_asked(cancel, ""),
            (true, false) => end_if_asked(cancel, NOTHING),
            (true, true) => end_if_asked(cancel, "ended before enough was measured to report"),
        }
        outcome?;
        metrics?;
        let mut exit = judgement::report(&judged, measured.len());
        if payload::print_wrong_bytes(&measured) {
            exit = Exit::Missed;
        }
        if let Some(baseline) = baseline {
            let (text, regressed) = baseline.compare(&measured);
            // Data goes to standard output, unless that is one JSON document.
            if self.json || self.json_stream || self.csv || self.is_iperf3_json() {
                text.lines().for_each(output::note)
            } else {
                output::print(&text).map(|_| ())?
            }
            if regressed {
                exit = Exit::Missed;
            }
        }
        Ok(exit)
    }

    fn print(&self, measured: &[Measurement], run: Option<&str>, judged: &[Judgement]) -> anyhow::Result<()> {
        let text = if self.csv {
            let none = BTreeMap::new();
            let rows: Vec<_> = measured.iter().map(|m| (&none, m)).collect();
            bdp_report::csv_of_measurements(&rows)
        } else if !self.json {
            bdp_report::measurements_text(measured, run, self.store.given().as_deref(), &self.style())
        } else {
            format!("{:#}\n", bdp_report::measurements_json(measured, run, judged))
        };
        output::print(&text)?;
        if (self.json || self.csv)
            && let Some(run) = run
        {
            output::note(&format!("run {run}; '{}' prints it again", self.store.show_command(run)));
        }
        Ok(())
    }
}

/// What is said where an interrupt comes before any flow.
const NOTHING: &str = "ended before anything was measured";

/// Ends bdp by the signal that was caught, if any, after these words, if any.
fn end_if_asked(cancel: &AtomicBool, words: &str) {
    if cancel.load(Ordering::Relaxed) {
        if !words.is_empty() {
            output::note(&format!("bdp: {words}"));
        }
        interrupt::carry_out();
    }
}

/// Who reads what goes by.
struct Watchers<'a> {
    live: Option<Live>,
    scrolling: Option<ScrollingLines<'a>>,
    log: Option<Log>,
    lines: Option<Lines<'a>>,
    /// Whether a flow was seen to move.
    moved: bool,
}

impl Watchers<'_> {
    fn show(&mut self, event: &Event<'_>) {
        self.moved |= matches!(event, Event::Progress { progress, .. } if !progress.goodput_bps.is_empty());
        if let Some(live) = &mut self.live {
            live.show(event);
        }
        if let Some(scrolling) = &mut self.scrolling {
            scrolling.write(event);
        }
        if let Some(log) = &mut self.log {
            log.note(event);
        }
        if let Some(lines) = &mut self.lines {
            lines.write(event);
        }
    }

    fn end(&mut self, result: &Result<(), RunError>) {
        if let Some(live) = &mut self.live {
            live.end();
        }
        if let Some(scrolling) = &mut self.scrolling {
            scrolling.end();
        }
        if let (Some(lines), Err(error)) = (&mut self.lines, result) {
            lines.fail(&error.to_string());
        }
    }
}

/// A measurement's error with its exit code.
pub fn refusal(error: RunError, host: &str) -> anyhow::Error {
    match error {
        RunError::Session(error) if error.is_request() => exit::usage(error.to_string()),
        RunError::Session(error) => exit::environment(format!("measure {host}: {error}")),
        RunError::Store(error) => refuse(error),
        other => exit::environment(other.to_string()),
    }
}
