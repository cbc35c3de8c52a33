//! `--json-stream`: a JSON object per line during measurements. Specified in `docs/measurement-stream.md`.

use bdp_flow::session::progress::{Progress, Stage};
use bdp_model::measurement::MeasureRequest;
use bdp_model::measurement::ends::Direction;
use bdp_model::plain::in_words;
use bdp_run::Event;
use bdp_run::measure::MeasurePlan;
use bdp_sys::clock;
use serde::Serialize;
use serde_json::{Value, json};

use crate::output;

/// Schema version.
pub const STREAM_SCHEMA: &str = "bdp.measurement-stream/1";

/// Writes the lines, each as soon as its event happens.
pub struct Lines<'a> {
    plan: &'a MeasurePlan,
    /// Whether to write a line for each interval.
    intervals: bool,
    /// The last run whose start was written.
    started: u32,
    /// Id in the store, once there is one.
    run: Option<String>,
    /// Whether the reader has gone.
    is_over: bool,
}

impl<'a> Lines<'a> {
    /// Creates the lines of these measurements, with or without intervals.
    pub fn new(plan: &'a MeasurePlan, intervals: bool) -> Self {
        Self { plan, intervals, started: 0, run: None, is_over: false }
    }

    /// Writes the line of an event.
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

    /// Writes the error that ends the stream.
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

    /// Writes a line; errors are ignored, so that the measurement is not lost.
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

/// A line of the stream.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    /// A run begins.
    Start {
        /// Name and version of the schema.
        #[cfg_attr(test, schemars(extend("const" = STREAM_SCHEMA)))]
        schema: &'static str,
        /// Version of bdp.
        bdp: &'static str,
        /// Id in the store; null before the first repetition is over, and if nothing is stored.
        run: Option<&'a str>,
        /// Number of this run among several.
        repetition: u32,
        /// Number of requested runs.
        #[cfg_attr(test, schemars(range(min = 1)))]
        runs: u32,
        /// Time of the start, milliseconds since 1970.
        at_unix_ms: u64,
        /// Label of the run; null if it has none.
        label: Option<&'a str>,
        /// The measurement's request: `request` of measurement.schema.json.
        #[cfg_attr(test, schemars(with = "Part", extend("required" = ["host", "port", "directions"])))]
        request: &'a MeasureRequest,
    },
    /// An interval has passed.
    Interval {
        /// Number of this run among several.
        repetition: u32,
        /// Current stage.
        #[cfg_attr(test, schemars(extend("enum" = ["idle", "to", "from", "both", "trial", "experiment"])))]
        stage: &'static str,
        /// Time since the stage began, nanoseconds.
        elapsed_ns: u64,
        /// Planned duration of the stage, nanoseconds; null if unknown.
        total_ns: Option<u64>,
        /// Latest round trip of the probe flow, nanoseconds.
        rtt_ns: Option<u64>,
        /// Each measured direction.
        directions: Vec<DirectionLine<'a>>,
    },
    /// A run is over.
    End {
        /// Number of this run among several.
        repetition: u32,
        /// Id of the run in the store; null if it is not stored.
        run: Option<&'a str>,
        /// The whole measurement, as measurement.schema.json describes it.
        #[cfg_attr(test, schemars(with = "Part", extend("required" = ["schema", "directions"])))]
        measurement: Value,
    },
    /// An error ends the stream.
    Error {
        /// Number of this run among several.
        repetition: u32,
        /// The error, in one line.
        error: &'a str,
    },
}

/// A direction in an interval.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DirectionLine<'a> {
    /// The direction.
    direction: Direction,
    /// Goodput since the previous line, bit/s, seen by the near end.
    goodput_bps: f64,
    /// Goodput of each stream at its last sample, bit/s, in order of connection; empty if unknown.
    stream_goodput_bps: &'a [f64],
}

/// A part that another schema describes.
#[cfg(test)]
type Part = serde_json::Map<String, Value>;
