//! Connections that were held to a rate, and reached it.

use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::ramp_up::RampUp;

use crate::seen::{Seen, percent, rate};

/// Goodput / rate that was asked for, over all: slow start takes its part.
const REACHED: f64 = 0.95;
/// The same of the median interval.
const REACHED_MOSTLY: f64 = 0.97;
/// The same of the goodput after slow start, where a queue stands on the path: less is what the path carries, and not what was asked for.
const REACHED_BESIDE_A_QUEUE: f64 = 0.99;
/// What is above by more was not held to that rate.
const ABOVE: f64 = 1.05;

/// Claims the limit where the goodput is the rate that was asked for.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let asked = seen.asked_bps().filter(|&asked| asked > 0.0)?;
    let d = seen.direction;
    let usual = d.spread.map_or(d.goodput_bps, |spread| spread.p50.max(d.goodput_bps));
    if usual < REACHED_MOSTLY * asked || !(REACHED..=ABOVE).contains(&(d.goodput_bps / asked)) {
        return None;
    }
    // A standing queue means that the path is full, or all but.
    let queue = seen.standing_queue();
    let ramp_up = RampUp::of(&d.received, d.omit_ns);
    let steady = ramp_up.map_or(d.goodput_bps, |ramp_up| ramp_up.goodput_after_bps);
    if queue.is_some() && steady < REACHED_BESIDE_A_QUEUE * asked {
        return None;
    }
    let beyond = if queue.is_some() { "a queue stands on the path" } else { "the path may carry more" };
    let reached = rate(d.goodput_bps);
    let mut evidence = vec![format!(
        "{reached} is {} of the {} that -b asks for",
        percent(d.goodput_bps / asked),
        rate(asked)
    )];
    evidence.extend(
        seen.resent()
            .filter(|&(again, _)| again > 0)
            .map(|(again, share)| format!("{again} segments were retransmitted, {}", percent(share))),
    );
    evidence.extend(seen.load_adds());
    Some(Finding {
        limit: Limit::AskedRate,
        subject: "the rate that was asked for".to_owned(),
        confidence: Confidence::High,
        summary: format!("asked rate reached: {reached}; {beyond}"),
        evidence,
        remedy: Some("leave -b out to measure what the path carries".to_owned()),
        missing: Vec::new(),
    })
}
