//! Facts about a path: changes, gaps, and what probes and acknowledgements show.

use bdp_model::finding::fact::{Bps, Changes, Gaps, Path};
use bdp_model::finding::threshold::MODEL_TOLERANCE;

use super::super::quantity::{part, percent, rate, size, time};
use super::seen::Seen;

pub fn of_change(seen: &Seen<'_>, fact: Changes) -> String {
    match fact {
        Changes::RateStep(step) => format!(
            "goodput was {} until {} and {} from then on",
            rate(step.before.0),
            time(step.at),
            rate(step.after.0)
        ),
        Changes::RoundTripStep(step) => format!(
            "the round trip was {} until {} and {} from then on",
            time(step.before),
            time(step.at),
            time(step.after)
        ),
        Changes::OfPeakRate(of) => format!(
            "goodput is {} of {}, the highest rate of delivery that the sender's kernel saw",
            part(seen.value),
            rate(of.peak.0)
        ),
    }
}

pub fn of_path(seen: &Seen<'_>, fact: Path) -> String {
    let share = seen.share();
    match fact {
        Path::QueuedMostly(_) => format!("a queue stood on the path for {share} of the time"),
        Path::ProbesQueued(_) => format!("{share} of the probes under load met a queue"),
        Path::ProbesSilent(_) => format!("no probe was answered for {}", seen.time()),
        Path::Repairing(_) => format!("repairing losses took {share} of the time"),
        Path::SackUsed(_) => "the connection has no selective acknowledgements (SACK)".to_owned(),
        Path::TimestampsUsed(_) => {
            "the connection has no timestamps, by which a sender sees that a retransmission was not needed"
                .to_owned()
        }
        Path::MathisRate(model) => carries("Reno", "Mathis et al.", seen.value, model.goodput),
        Path::CubicRate(model) => carries("CUBIC", "RFC 9438", seen.value, model.goodput),
        Path::Reordered(seen_reordered) => format!(
            "the sender's kernel saw segments reordered {} times, {share} of those delivered",
            seen_reordered.times
        ),
        Path::ProbesLost(lost) => match lost.before {
            None => format!(
                "{} were lost on the data's own way under load: the queue was full",
                seen.samples("probes")
            ),
            Some(before) => {
                format!("{} of the probes were lost before the load, {share} under it", percent(before.0))
            }
        },
    }
}

/// Returns the rate of a response function, with the goodput if that is far from it.
fn carries(name: &str, source: &str, model: f64, goodput: Bps) -> String {
    let text = format!("{name} carries about {} with such losses ({source})", rate(model));
    match goodput.0 > MODEL_TOLERANCE * model {
        true => format!("{text}; {} came through: the losses were milder than the model's", rate(goodput.0)),
        false => text,
    }
}

pub fn of_gap(seen: &Seen<'_>, fact: Gaps) -> String {
    match fact {
        Gaps::FullSegmentsLost(_) => {
            format!("{:.0} retransmissions of full segments, and none was acknowledged", seen.value)
        }
        Gaps::ProbesAnswered(_) => {
            format!("{} came back within {}", seen.samples("small probes"), seen.time())
        }
        Gaps::SegmentSizeKept(_) => {
            "no ICMP message lowered the path MTU: a router drops what is too big and does not say so (RFC 2923)"
                .to_owned()
        }
        Gaps::LargerThanPassed(larger) => format!(
            "it had {}, and the largest that was acknowledged had {}",
            size(seen.value),
            size(larger.passed.0)
        ),
        Gaps::Gap(gap) => format!("nothing arrived for {}, {} round trips", seen.time(), gap.round_trips),
        Gaps::GapShare(_) => format!("nothing arrived for {} of the time", seen.share()),
        Gaps::ProbesMeanwhile(_) => format!("{} went unanswered meanwhile", seen.samples("probes")),
    }
}
