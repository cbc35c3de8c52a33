//! Comparison of two captures of one path: which connections passed both places, and what was lost, changed and delayed in between.
//!
//! A capture keeps 40 bytes per segment, up to [`SEGMENTS_MOST`]. Connections are compared one by one: segments are matched by the bytes they
//! carry (`matching`), then counted, compared for changes and timed.

mod changes;
mod clock;
mod compare;
mod counts;
mod direction;
mod identify;
mod log;
mod matching;
mod numbered;
#[cfg(test)]
mod tests;

pub use compare::{Place, compare};
pub use identify::LoggedFlow;
pub use log::{SEGMENTS_MOST, SegmentLog};
