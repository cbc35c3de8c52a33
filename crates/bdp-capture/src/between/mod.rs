//! Two captures of one path: which connections passed both places, and what was lost, changed and delayed between them.
//!
//! A capture keeps 40 bytes of each segment, up to [`SEGMENTS_MOST`]. Connections are compared one by one: segments are matched by the bytes that
//! they carry (`matching`), then counted, held beside themselves and timed.

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
