//! Tables, charts and JSON from records and measurements. Nothing here measures, asks for the time or touches a file.
#![forbid(unsafe_code)]

mod breach;
mod capture;
mod caveat;
mod chart;
mod comparison;
mod csv;
mod date;
pub mod explanation;
mod finding;
mod flows;
mod grid;
mod hops;
mod html;
mod instrument;
mod json;
mod measurement;
mod notes;
mod number;
mod ping;
mod programs;
mod prometheus;
mod repeated;
#[cfg(feature = "schema")]
pub mod schema;
mod spark;
mod style;
mod summary;
mod sweep;
mod sweep_report;
mod table;
mod time_spent;
mod traffic;
pub mod tuning;
mod twin;
mod varied;
mod virtual_clock;
mod visit;
mod watch;

pub use bdp_model::plain::plain;
pub use breach::why_invalid;
pub use capture::{
    CAPTURE_SCHEMA, CapturesDocument, Shown, capture_line, capture_words, captures_json, captures_text,
};
pub use chart::export::{VectorFigure, figures_of_cases, figures_of_comparison, figures_of_measurements};
pub use comparison::{COMPARISON_SCHEMA, ComparedText, Side};
pub use csv::{csv, csv_of_measurements};
pub use date::utc;
pub use hops::{path_text, phase_words};
pub use html::{About, html, html_of_captures, html_of_comparison, html_of_measurements};
pub use instrument::instrument_text;
pub use json::{CASES_SCHEMA, instrument_json, json, measurement_json, path_json, ping_json};
pub use measurement::{
    IntervalLines, Intervals, MEASUREMENTS_SCHEMA, Part, Piece, ReceiverReading, SenderReading, iperf3_error,
    iperf3_json, measurements_json, measurements_text, quote,
};
pub use number::RateUnit;
pub use ping::{csv_of_ping, ping_text, probe_line};
pub use programs::programs;
pub use prometheus::{FarEnd, prometheus, prometheus_of_cases, prometheus_of_ping, prometheus_of_sweep};
pub use spark::spark;
pub use style::Style;
pub use sweep_report::{SWEEP_SCHEMA, sweep, sweep_json};
pub use table::{sweep_heading, table};
pub use traffic::fairness;
pub use twin::twin_text;
pub use visit::visit_json;
pub use watch::{
    prometheus_of_watch, watch_detail, watch_heading, watch_interval_json, watch_limit, watch_lines,
    watch_summary, watch_summary_json, watch_table,
};
