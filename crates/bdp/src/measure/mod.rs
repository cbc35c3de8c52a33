//! `bdp measure`: throughput and latency between this machine and another.

pub mod access;
mod arguments;
mod baseline;
mod captured;
mod iperf3_json;
pub mod judgement;
mod lines;
pub mod live;
mod login;
mod payload;
mod pieces;
mod socket;
mod ssh;
pub(crate) mod stream;
pub mod target;
mod udp;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use bdp_run::job::context::Context;
use bdp_run::job::{Ended, Job};
use bdp_run::measure::MeasurePlan;
use bdp_run::measure::baseline::Baseline;
use bdp_run::pcap::BesideCapture;
use bdp_run::{Event, RunError};
use bdp_store::SqliteStore;

pub use arguments::MeasureArgs;
use iperf3_json::Log;
use lines::ScrollingLines;
use live::Live;
pub use socket::{SocketArgs, dscp};
use stream::Lines;

use crate::exit::{self, Exit, Outcome};
use crate::found::alone;
use crate::planned::Planned;
use crate::store::{self, StoreArgs};
use crate::{guest, interrupt, output};

impl MeasureArgs {
    /// The job of the measurement.
    pub fn planned(&self) -> anyhow::Result<Planned> {
        let mut plan = self.plan()?;
        let unlike = self.compare_with(&mut plan, &self.store)?;
        let planned = Planned::by_events(Job::Measure(Box::new(plan)));
        Ok(Planned { notes: unlike.into_iter().collect(), ..planned })
    }

    /// Measures, prints, judges.
    pub fn run(self) -> Outcome {
        let mut plan = self.plan()?;
        self.page.check()?;
        crate::report::check_place(self.prometheus.as_deref(), "metrics")?;
        let mut store = self.store.open()?;
        // Before the measurement: a missing baseline is reported now.
        if let Some(unlike) = self.compare_with(&mut plan, &self.store)? {
            output::note(&unlike);
        }
        let cancel = interrupt::cancel_instead();
        // Runs as long as this is held.
        let host = plan.request.host.clone();
        let far_end = plan.start_far_end(cancel).map_err(|error| refusal(error, &host));
        let far_end = far_end.inspect_err(|_| end_if_asked(cancel, NOTHING))?;
        let mut watchers = self.watchers(&plan);
        let capture = self.capture.clone().map(|file| BesideCapture::begin(&plan.request, file, cancel));
        let capture = capture.transpose().map_err(|error| refusal(error, &plan.request.host))?;
        let job = Job::Measure(Box::new(plan.clone()));
        let mut watch = |event: Event<'_>| watchers.show(&event);
        let context = Context::new(&guest::commands, &mut watch, cancel);
        let mut ended = job.run(context.storing(store::of_job(&mut store)));
        watchers.end(&ended.result);
        let Watchers { log, moved, .. } = watchers;
        drop(far_end);
        let captured = capture.map(BesideCapture::end);
        let outcome = std::mem::replace(&mut ended.result, Ok(()));
        let outcome =
            outcome.map_err(|error| broken(refusal(error, &plan.request.host), &ended, &self.store));
        // If nothing was measured there is nothing to print, only the error.
        let measured = ended.results.measurements();
        if let Some(log) = log {
            log.print(measured, outcome.as_ref().err())?;
        } else if !measured.is_empty() && !self.json_stream {
            self.print(&ended)?;
        }
        let beside_data = self.json || self.json_stream || self.csv || self.is_iperf3_json();
        // A failed capture loses no measurement.
        let capture_broke = match captured {
            Some(captured) => captured::print(captured, beside_data, &self.style())?,
            None => None,
        };
        self.write_page(&ended, store.as_ref())?;
        let metrics = self.write_metrics(&ended, &plan);
        match (measured.is_empty(), moved) {
            (false, _) => end_if_asked(cancel, ""),
            (true, false) => end_if_asked(cancel, NOTHING),
            (true, true) => end_if_asked(cancel, "ended before there was enough to report"),
        }
        if let Some(why) = &capture_broke {
            output::note(&format!("bdp: the capture is incomplete: {why}; the measurement is complete"));
        }
        outcome?;
        metrics?;
        let verdict = self.print_verdicts(&ended, plan.baseline.as_ref())?;
        Ok(if capture_broke.is_some() && verdict == Exit::Done { Exit::Environment } else { verdict })
    }

    /// Creates the displays of a running measurement.
    fn watchers<'a>(&self, plan: &'a MeasurePlan) -> Watchers<'a> {
        let is_search = plan.request.spec.udp.as_ref().is_some_and(|udp| udp.search.is_some());
        let scrolling =
            self.interval_layout().filter(|_| !is_search).map(|layout| ScrollingLines::new(plan, layout));
        Watchers {
            // Two progress displays would be one too many.
            live: scrolling.is_none().then(|| Live::new(plan.runs)),
            scrolling,
            log: self.is_iperf3_json().then(|| Log::new(plan, self.interval_of_iperf3())),
            lines: self.json_stream.then(|| Lines::new(plan, !self.prints_no_intervals())),
            moved: false,
        }
    }

    /// Writes the requested page.
    fn write_page(&self, ended: &Ended, store: Option<&SqliteStore>) -> anyhow::Result<()> {
        let measured = ended.results.measurements();
        if ended.run.is_none() && measured.is_empty() {
            return Ok(());
        }
        self.page.write(ended.run.as_deref().zip(store), &self.store, |about| {
            let kept: Vec<_> = measured.iter().cloned().map(alone).collect();
            crate::report::page_of_measurements(&kept, about)
        })
    }

    /// Writes the requested Prometheus metrics.
    fn write_metrics(&self, ended: &Ended, plan: &MeasurePlan) -> anyhow::Result<()> {
        let Some(path) = &self.prometheus else { return Ok(()) };
        let request = &plan.request;
        let port = request.ssh.as_ref().map_or(Some(request.port), |ssh| ssh.data_port);
        let text = bdp_report::prometheus(
            ended.results.measurements(),
            &ended.judgements,
            bdp_report::FarEnd { host: &request.host, port, own: &plan.labels },
            env!("CARGO_PKG_VERSION"),
        );
        crate::report::write(path, &text, "metrics")
    }

    /// Prints the results of expectations, payload checks and the comparison with the baseline.
    fn print_verdicts(&self, ended: &Ended, baseline: Option<&Baseline>) -> Outcome {
        let measured = ended.results.measurements();
        judgement::report(&ended.judgements, measured.len());
        payload::print_wrong_bytes(measured);
        if let Some(baseline) = baseline {
            let lines = ended.comparisons.iter().map(|against| baseline::line(&baseline.run, against));
            // Data goes to standard output, unless that is one JSON document.
            if self.json || self.json_stream || self.csv || self.is_iperf3_json() {
                lines.for_each(|line| output::note(line.trim_end()));
            } else {
                output::print(&lines.collect::<String>())?;
            }
        }
        Ok(Exit::of(ended, self.strict))
    }

    fn print(&self, ended: &Ended) -> anyhow::Result<()> {
        let (measured, run) = (ended.results.measurements(), ended.run.as_deref());
        let text = if self.csv {
            let none = BTreeMap::new();
            let rows: Vec<_> = measured.iter().map(|m| (&none, m)).collect();
            bdp_report::csv_of_measurements(&rows)
        } else if !self.json {
            bdp_report::measurements_text(measured, run, self.store.given().as_deref(), &self.style())
        } else {
            format!("{:#}\n", bdp_report::measurements_json(measured, run, &ended.judgements))
        };
        let again = run.map(|run| self.store.show_command(run));
        output::print(&text).map_err(|error| exit::kept(error, again.as_deref()))?;
        if let (true, Some(run), Some(again)) = (self.json || self.csv, run, again) {
            output::note(&format!("run {run}; '{again}' prints it again"));
        }
        Ok(())
    }
}

/// Message for an interrupt before any flow.
pub const NOTHING: &str = "ended before anything was measured";

/// Ends bdp by the caught signal, if any, after these words, if any.
pub fn end_if_asked(cancel: &AtomicBool, words: &str) {
    if cancel.load(Ordering::Relaxed) {
        if !words.is_empty() {
            output::note(&format!("bdp: {words}"));
        }
        interrupt::carry_out(words);
    }
}

/// Displays of a running measurement.
struct Watchers<'a> {
    live: Option<Live>,
    scrolling: Option<ScrollingLines<'a>>,
    log: Option<Log>,
    lines: Option<Lines<'a>>,
    /// Whether any goodput has been reported yet.
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

/// Turns a measurement's error into one with an exit code.
pub fn refusal(error: RunError, host: &str) -> anyhow::Error {
    match error {
        RunError::Session(error) if !error.is_request() => {
            exit::environment(format!("measure {host}: {error}"))
        }
        other => crate::refusal::of(other),
    }
}

/// Turns the error of a failed measurement into one that names the kept part.
fn broken(error: anyhow::Error, ended: &Ended, store: &StoreArgs) -> anyhow::Error {
    let is_broken = ended.results.measurements().last().is_some_and(|last| last.error.is_some());
    match (is_broken, &ended.run) {
        (true, Some(run)) => exit::environment(format!(
            "{error}; the results so far are stored, '{}' prints them",
            store.show_command(run)
        )),
        _ => error,
    }
}
