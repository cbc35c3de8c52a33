//! From what is known of a transfer to what limits it. Nothing here measures: facts go in, findings come out.
//!
//! Each rule is one file under `rule` and either claims the limit, with its evidence, or does not; [`explain`] asks
//! them in an order in which an earlier answer makes the later ones meaningless. What no rule claims is unknown, and
//! said to be. [`hops`] does the same for the probes of a path.
#![forbid(unsafe_code)]

mod ceiling;
pub mod hops;
mod next;
mod observed;
pub mod plan;
mod rule;
mod setting;
pub mod stream;
pub mod twin;

use bdp_model::facts::{Facts, Source};
use bdp_model::finding::Finding;

use rule::beside::{BESIDE, Rule};

pub use ceiling::ceiling;

/// The rules, in an order in which an earlier answer makes later ones meaningless: a reader that pauses closes the window, and its bursts fill queues, so that
/// what later rules make of those would be wrong.
const RULES: [Rule; 31] = [
    rule::black_hole::judge,
    rule::at_ceiling::judge,
    rule::watched::at_this_end,
    rule::receive_window::half_scaled,
    rule::asked_rate::judge,
    // A thread that waits for its processor all the time looks like a slow program, and is none.
    rule::cpu::judge,
    // Neither a program that pauses nor a sender that runs dry keeps a path busy, though their bursts fill its queue.
    rule::nagle::judge,
    rule::slow_reader::judge,
    rule::captured::reads_late,
    rule::send_buffer::runs_dry,
    rule::captured::writes_late,
    rule::slow_start::judge,
    rule::outage::judge,
    rule::path_step::judge,
    rule::reverse_path::judge,
    rule::half_duplex::judge,
    rule::cross_traffic::judge,
    // A standing queue means that the path is busy all the time, whatever else is full.
    rule::path_rate::judge,
    rule::receive_window::judge,
    rule::send_buffer::judge,
    rule::slow_writer::judge,
    rule::reordering::judge,
    rule::path_rate::judge_shallow,
    rule::captured::judge,
    rule::plateau::judge,
    rule::ecn_marks::judge,
    // What a host dropped is no loss of the path.
    rule::host_drops::judge,
    rule::random_loss::judge,
    rule::threshold::judge,
    // It makes the repair of losses slow, whatever they are of.
    rule::sack_missing::judge,
    rule::watched::by_own_figures,
];

/// What limits a transfer, be it of a measurement or of the lab: the first finding. Further ones stand beside it.
pub fn explain(facts: &Facts) -> Vec<Finding> {
    if let Some(finding) = rule::datagrams::judge(facts) {
        return vec![finding];
    }
    if facts.through_tunnel {
        return vec![rule::unknown::through_tunnel()];
    }
    if let Some(conversation) = facts.conversation.as_ref().filter(|_| facts.source == Source::Watched) {
        return rule::watched_account::explain(facts, conversation);
    }
    if let Some(conversation) = &facts.conversation {
        return rule::conversation::explain(facts, conversation);
    }
    let Some(binding) = RULES.iter().find_map(|rule| rule(facts)) else {
        return vec![rule::unknown::judge(facts)];
    };
    let limit = binding.limit;
    let beside = BESIDE.iter().filter_map(|rule| rule(facts)).filter(|finding| finding.limit != limit);
    let binding = rule::captured::temper(facts, next::known(facts, binding));
    std::iter::once(binding).chain(beside).map(|finding| rule::paused::temper(facts, finding)).collect()
}
