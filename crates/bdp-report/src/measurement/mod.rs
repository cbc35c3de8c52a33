//! Measurements between two machines, as text and as JSON.

mod answer;
mod command;
pub(crate) mod conclusion;
mod datagrams;
mod heading;
mod interval_lines;
mod iperf3;
mod json;
pub(crate) mod latency;
mod pacing;
mod printed;
mod search;
mod sending;
mod streams;
mod text;

pub use command::quote;
pub(crate) use command::{against, in_store, typed};
pub use interval_lines::IntervalLines;
pub use iperf3::{Intervals, Part, Piece, ReceiverReading, SenderReading, iperf3_error, iperf3_json};
#[cfg(feature = "schema")]
pub(crate) use json::Measurements;
pub use json::{MEASUREMENTS_SCHEMA, measurements_json};
pub(crate) use pacing::words as pacing_words;
pub(crate) use search::conclusion as search_conclusion;
pub(crate) use streams::stream_rows;
pub use text::measurements_text;

use bdp_model::measurement::{Direction, Measurement};

use crate::style::Style;

/// Returns the arrow of a direction: `->` from the near to the remote end.
pub(crate) fn arrow(way: Direction, style: &Style) -> &'static str {
    match (way, style.unicode) {
        (Direction::To, true) => "→",
        (Direction::From, true) => "←",
        (Direction::To, false) => "->",
        (Direction::From, false) => "<-",
    }
}

/// Returns the directions measured in any run, in the order they ran.
fn ways(measurements: &[Measurement]) -> Vec<Direction> {
    let mut ways = Vec::new();
    for way in measurements.iter().flat_map(|m| &m.directions).map(|d| d.direction) {
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}
