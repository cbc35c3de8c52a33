//! Facts about losses, and the effect of losses and marks on a congestion window.

use bdp_model::finding::Limit;
use bdp_model::finding::fact::{Losses, Retransmitted};

use super::super::quantity::{rate, small_share, time};
use super::seen::Seen;

pub const HAD_ALREADY: &str = "the receiver had them already (DSACK): late or reordered, not lost";

pub fn of_loss(seen: &Seen<'_>, fact: Losses) -> String {
    let (value, share) = (seen.value, seen.share());
    match fact {
        Losses::Retransmitted(of) => retransmitted(value, of),
        Losses::NeedlessRetransmits(_) if value > 0.0 => {
            format!("{value:.0} segments were retransmitted needlessly: {HAD_ALREADY}")
        }
        Losses::NeedlessRetransmits(_) => "no segment was retransmitted needlessly (DSACK)".to_owned(),
        Losses::RetransmittedShare(_) if seen.finding.limit == Limit::ReversePath => {
            format!("only {share} of the segments were retransmitted: the way there loses far less")
        }
        Losses::RetransmittedShare(_) if value > 1.0 => {
            format!("more segments were retransmitted than delivered, {value:.1} for each")
        }
        Losses::RetransmittedShare(_) => format!("{share} of the segments were retransmitted"),
        Losses::RetransmittedMeanwhile(_) => {
            format!("{value:.0} segments were retransmitted meanwhile, and the receiver was reading")
        }
        Losses::LossesAtOneRate(at) => {
            format!("{} losses came at rates within {share} of {}: a threshold", at.losses, rate(at.rate.0))
        }
        Losses::LossesAtAnyRate(at) => format!(
            "{} losses came at rates that vary by {share}: a full queue or a policer drops at about the same rate",
            at.losses
        ),
        Losses::LostEach(of) => {
            let segments = if value.round() == 1.0 { "segment" } else { "segments" };
            format!("each of {} losses cost {value:.0} {segments} (median)", of.losses)
        }
        Losses::Overshoot(end) => {
            let of = match value > 1.0 {
                true => "more than were in flight at once".to_owned(),
                false => format!("{share} of those in flight"),
            };
            format!("the end of slow start cost {} segments, {of}: a threshold was overshot", end.segments)
        }
        Losses::QueueBeforeLosses(queue) => format!(
            "just before losses the round trip was {} above its least of {}",
            seen.time(),
            time(queue.least)
        ),
        Losses::Marked(of) => format!(
            "{} of {} segments arrived with a Congestion Experienced mark, {}",
            of.marked,
            of.delivered,
            small_share(value)
        ),
        Losses::WindowReductions(reduced) => format!(
            "{} reduced its window {value:.0} times for marks, {} times for losses",
            seen.name(),
            reduced.for_losses
        ),
    }
}

fn retransmitted(value: f64, of: Retransmitted) -> String {
    let (segment, were) = if value == 1.0 { ("segment", "was") } else { ("segments", "were") };
    match of.segments {
        // Each of few segments may have been retransmitted several times.
        carried if of.share.0 > 1.0 => {
            format!(
                "{value:.0} {segment} {were} retransmitted, more than the {carried} that carried the data"
            )
        }
        // Their number is not known without the segment size.
        0 => format!("{value:.0} {segment} {were} retransmitted, {}", small_share(of.share.0)),
        carried => {
            format!("{value:.0} {segment} of {carried} {were} retransmitted, {}", small_share(of.share.0))
        }
    }
}
