//! From what is known of a transfer to what limits it. Nothing here measures: facts go in, findings come out.
//!
//! Each rule is one file under `rule` and either claims the limit, with its evidence, or does not; [`explain`] asks
//! them in an order in which an earlier answer makes the later ones meaningless. What no rule claims is unknown, and
//! said to be. [`hops`] does the same for the probes of a path.
#![forbid(unsafe_code)]

mod ceiling;
pub mod hops;
mod observed;
mod rule;
mod setting;
pub mod stream;

use bdp_model::facts::Facts;
use bdp_model::finding::Finding;

pub use ceiling::ceiling;

/// What limits a transfer, be it of a measurement or of the lab.
///
/// The first finding says what limits it; further ones, none yet, would stand beside it.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    if let Some(finding) = rule::datagrams::judge(facts) {
        return vec![finding];
    }
    if facts.through_tunnel {
        return vec![rule::unknown::through_tunnel()];
    }
    let finding = rule::black_hole::judge(facts)
        .or_else(|| rule::at_ceiling::judge(facts))
        .or_else(|| rule::watched::at_this_end(facts))
        .or_else(|| rule::receive_window::half_scaled(facts))
        .or_else(|| rule::asked_rate::judge(facts))
        // A thread that waits for its processor all the time looks like a slow program, and is none.
        .or_else(|| rule::cpu::judge(facts))
        // Neither a program that pauses nor a sender that runs dry keeps a path busy, though their bursts fill its queue.
        .or_else(|| rule::nagle::judge(facts))
        .or_else(|| rule::slow_reader::judge(facts))
        .or_else(|| rule::send_buffer::runs_dry(facts))
        .or_else(|| rule::slow_start::judge(facts))
        .or_else(|| rule::outage::judge(facts))
        .or_else(|| rule::path_step::judge(facts))
        .or_else(|| rule::reverse_path::judge(facts))
        .or_else(|| rule::half_duplex::judge(facts))
        .or_else(|| rule::cross_traffic::judge(facts))
        // A standing queue means that the path is busy all the time, whatever else is full.
        .or_else(|| rule::path_rate::judge(facts))
        .or_else(|| rule::receive_window::judge(facts))
        .or_else(|| rule::send_buffer::judge(facts))
        .or_else(|| rule::slow_writer::judge(facts))
        .or_else(|| rule::reordering::judge(facts))
        .or_else(|| rule::path_rate::judge_shallow(facts))
        .or_else(|| rule::plateau::judge(facts))
        .or_else(|| rule::ecn_marks::judge(facts))
        .or_else(|| rule::sack_missing::judge(facts))
        // What a host dropped is no loss of the path.
        .or_else(|| rule::host_drops::judge(facts))
        .or_else(|| rule::random_loss::judge(facts))
        .or_else(|| rule::threshold::judge(facts))
        .or_else(|| rule::watched::by_own_figures(facts))
        .unwrap_or_else(|| rule::unknown::judge(facts));
    vec![finding]
}
