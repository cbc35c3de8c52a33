//! `--json-stream`: a JSON object a line while measurements go on. Specified in `docs/measurement-stream.md`.

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::plain::in_words;
use bdp_run::Event;
use bdp_run::measure::MeasurePlan;
use bdp_sys::clock;
use serde_json::{Value, json};

use crate::output;

/// Version of the shape.
pub const STREAM_SCHEMA: &str = "bdp.measurement-stream/1";

/// Writes the lines, each as soon as there is something to tell.
pub struct Lines<'a> {
    plan: &'a MeasurePlan,
    /// Whether to tell of what goes by.
    intervals: bool,
    /// The last run whose start was written.
    started: u32,
    /// The id in the store, once there is one.
    run: Option<String>,
    /// Whether nobody reads any more.
    is_over: bool,
}

impl<'a> Lines<'a> {
    /// Of these measurements, with a line for each interval or without.
    pub fn new(plan: &'a MeasurePlan, intervals: bool) -> Self {
        Self { plan, intervals, started: 0, run: None, is_over: false }
    }

    /// Tells of what happened.
    pub fn write(&mut self, event: &Event<'_>) {
        match event {
            Event::Progress { repetition, progress } => {
                if self.started < *repetition {
                    self.started = *repetition;
                    let start = self.start(*repetition);
                    self.line(&start);
                }
                if self.intervals && progress.stage != Stage::Connecting && !progress.is_last {
                    self.line(&interval(*repetition, progress));
                }
            }
            Event::MeasurementEnded { run, measurement } => {
                self.run = run.as_deref().map(str::to_owned);
                self.line(&json!({
                    "event": "end",
                    "repetition": measurement.repetition,
                    "run": run,
                    "measurement": bdp_report::measurement_json(measurement),
                }));
            }
            _ => {}
        }
    }

    /// Tells why there is no more to come.
    pub fn fail(&mut self, error: &str) {
        let error = output::tame(&in_words(error));
        self.line(&json!({ "event": "error", "repetition": self.started.max(1), "error": error }));
    }

    fn start(&self, repetition: u32) -> Value {
        json!({
            "event": "start",
            "schema": STREAM_SCHEMA,
            "bdp": env!("CARGO_PKG_VERSION"),
            "run": self.run,
            "repetition": repetition,
            "runs": self.plan.runs,
            "at_unix_ms": clock::unix_ms(),
            "label": self.plan.label,
            "request": self.plan.request,
        })
    }

    /// What can't be written is lost, and no reason to lose what is being measured.
    fn line(&mut self, value: &Value) {
        if !self.is_over && output::print(&format!("{value}\n")).is_err() {
            self.is_over = true;
        }
    }
}

fn interval(repetition: u32, progress: &Progress) -> Value {
    let stage = match progress.stage {
        Stage::Connecting => "connecting",
        Stage::Idle => "idle",
        Stage::Direction(way) => way.name(),
        Stage::Both => "both",
        Stage::Trial(_) => "trial",
        Stage::Experiment(..) => "experiment",
    };
    let directions: Vec<Value> = progress
        .goodput_bps
        .iter()
        .map(|(way, goodput_bps)| {
            let streams = progress.stream_goodput_bps.iter().find(|(of, _)| of == way);
            json!({
                "direction": way,
                "goodput_bps": goodput_bps,
                "stream_goodput_bps": streams.map_or(&[][..], |(_, streams)| streams.as_slice()),
            })
        })
        .collect();
    json!({
        "event": "interval",
        "repetition": repetition,
        "stage": stage,
        "elapsed_ns": progress.elapsed.as_ns(),
        "total_ns": (progress.total.as_ns() > 0).then_some(progress.total.as_ns()),
        "rtt_ns": progress.rtt_ns,
        "directions": directions,
    })
}
