//! From what was measured to what limits it. Nothing here measures: a measurement goes in, findings come out.
//!
//! Each rule is one file under `rule` and either claims the limit, with its evidence, or does not; [`explain`] asks
//! them in an order in which an earlier answer makes the later ones meaningless. What no rule claims is unknown, and
//! said to be.
#![forbid(unsafe_code)]

mod ceiling;
mod rule;
mod seen;

use bdp_model::finding::Finding;
use bdp_model::measurement::{Measurement, Way};

pub use ceiling::ceiling;
pub use rule::at_ceiling::AT_CEILING;

/// What limits one direction of a measurement whose ceiling is filled in; nothing where that direction was not measured.
///
/// The first finding says what limits the direction; further ones, none yet, would stand beside it.
pub fn explain(way: Way, measurement: &Measurement) -> Vec<Finding> {
    let Some(seen) = seen::Seen::of(way, measurement) else { return Vec::new() };
    if let Some(finding) = rule::datagrams::judge(&seen) {
        return vec![finding];
    }
    if measurement.request.ssh.as_ref().is_some_and(|ssh| ssh.through) {
        return vec![rule::unknown::through_tunnel()];
    }
    let finding = rule::at_ceiling::judge(&seen)
        .or_else(|| rule::receive_window::half_scaled(&seen))
        .or_else(|| rule::asked_rate::judge(&seen))
        // Neither a reader that pauses nor a sender that runs dry keeps a path busy, though their bursts fill its queue.
        .or_else(|| rule::slow_reader::judge(&seen))
        .or_else(|| rule::send_buffer::runs_dry(&seen))
        // A queue that stands tells that the path is busy all the time, whatever else is full.
        .or_else(|| rule::path_rate::judge(&seen))
        .or_else(|| rule::receive_window::judge(&seen))
        .or_else(|| rule::send_buffer::judge(&seen))
        .or_else(|| rule::path_rate::judge_shallow(&seen))
        .unwrap_or_else(|| rule::unknown::judge(&seen));
    vec![finding]
}
