//! `--json-stream`: a JSON object a line while measurements go on. Specified in `docs/measurement-stream.md`.

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::ends::Direction;
use bdp_model::measurement::MeasureRequest;
use bdp_model::plain::in_words;
use bdp_run::Event;
use bdp_run::measure::MeasurePlan;
use bdp_sys::clock;
use serde::Serialize;
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
                self.line(&json!(Line::End {
                    repetition: measurement.repetition,
                    run: run.as_deref(),
                    measurement: bdp_report::measurement_json(measurement),
                }));
            }
            _ => {}
        }
    }

    /// Tells why there is no more to come.
    pub fn fail(&mut self, error: &str) {
        let error = output::tame(&in_words(error));
        self.line(&json!(Line::Error { repetition: self.started.max(1), error: &error }));
    }

    fn start(&self, repetition: u32) -> Value {
        json!(Line::Start {
            schema: STREAM_SCHEMA,
            bdp: env!("CARGO_PKG_VERSION"),
            run: self.run.as_deref(),
            repetition,
            runs: self.plan.runs,
            at_unix_ms: clock::unix_ms(),
            label: self.plan.label.as_deref(),
            request: &self.plan.request,
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
    let directions = progress.goodput_bps.iter().map(|(direction, goodput_bps)| {
        let streams = progress.stream_goodput_bps.iter().find(|(of, _)| of == direction);
        DirectionLine {
            direction: *direction,
            goodput_bps: *goodput_bps,
            stream_goodput_bps: streams.map_or(&[][..], |(_, streams)| streams.as_slice()),
        }
    });
    json!(Line::Interval {
        repetition,
        stage,
        elapsed_ns: progress.elapsed.as_ns(),
        total_ns: (progress.total.as_ns() > 0).then_some(progress.total.as_ns()),
        rtt_ns: progress.rtt_ns,
        directions: directions.collect(),
    })
}

/// A line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    /// A run begins.
    Start {
        /// Name and version of the shape.
        #[cfg_attr(test, schemars(extend("const" = STREAM_SCHEMA)))]
        schema: &'static str,
        /// bdp's version.
        bdp: &'static str,
        /// Id in the store, which there is once a repetition is over; null before, and if nothing is stored.
        run: Option<&'a str>,
        /// Which of several runs.
        repetition: u32,
        /// How many runs were asked for.
        #[cfg_attr(test, schemars(range(min = 1)))]
        runs: u32,
        /// Milliseconds since 1970.
        at_unix_ms: u64,
        /// What the user called it.
        label: Option<&'a str>,
        /// What was asked for: `request` of measurement.schema.json.
        #[cfg_attr(test, schemars(with = "Part", extend("required" = ["host", "port", "directions"])))]
        request: &'a MeasureRequest,
    },
    /// Some time has passed.
    Interval {
        /// Which of several runs.
        repetition: u32,
        /// What is going on.
        #[cfg_attr(test, schemars(extend("enum" = ["idle", "to", "from", "both", "trial", "experiment"])))]
        stage: &'static str,
        /// Since the stage began, nanoseconds.
        elapsed_ns: u64,
        /// How long the stage is meant to take; null if that is not known.
        total_ns: Option<u64>,
        /// The last round trip of the probe flow, nanoseconds.
        rtt_ns: Option<u64>,
        /// Each direction that is measured.
        directions: Vec<DirectionLine<'a>>,
    },
    /// A run is over.
    End {
        /// Which of several runs.
        repetition: u32,
        /// The run's id in the store.
        run: Option<&'a str>,
        /// The whole measurement, as measurement.schema.json describes it.
        #[cfg_attr(test, schemars(with = "Part", extend("required" = ["schema", "directions"])))]
        measurement: Value,
    },
    /// There is no more to come.
    Error {
        /// Which of several runs.
        repetition: u32,
        /// Why, in one line.
        error: &'a str,
    },
}

/// A direction in an interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DirectionLine<'a> {
    /// Which.
    direction: Direction,
    /// Since the line before, bit/s, as the near end sees it.
    goodput_bps: f64,
    /// The same of each stream as of its last sample, in order of connection; empty if that is unknown.
    stream_goodput_bps: &'a [f64],
}

/// What another schema describes.
#[cfg(test)]
type Part = serde_json::Map<String, Value>;
