//! The path, and the queues on it.

use bdp_model::finding::fact::{Received, Steady};
use bdp_model::finding::limit::Path;
use bdp_model::finding::{Fact, Finding};

use super::super::evidence::{nanos, text};
use super::super::quantity::{part, rate, time};
use super::words::Words;

pub fn words(limit: Path, finding: &Finding) -> Words {
    match limit {
        Path::Ceiling => {
            Words::new(finding.place.name.as_deref().unwrap_or("the ceiling"), at_ceiling(finding))
                .figures(|_| None)
                .because(
                    "the connection is full",
                    "No setting makes it faster, only a faster connection does.",
                )
        }
        Path::PathRate => {
            Words::new("the path's bottleneck", "the path's bottleneck is full").figures(full_path).because(
                "the slowest part of the path is full",
                "No setting makes it faster, only a faster path does.",
            )
        }
        Path::ShallowQueue => Words::limited_by("a short queue on the path").because(
            "a queue on the path is too short for the bursts that come",
            "A longer queue there, or a sender that spaces its packets, makes it faster.",
        ),
        Path::HalfDuplex => Words::limited_by("a half-duplex medium on the path").because(
            "the connection carries one direction at a time",
            "A connection that carries both at once (full duplex) is faster.",
        ),
        Path::CrossTraffic => Words::limited_by("other traffic on the path").because(
            "others use the same connection",
            "It is faster when they do not, or on a faster connection.",
        ),
        Path::EcnMarks => Words::limited_by("congestion marks (ECN) on the path").because(
            "a device on the path asks senders to slow down before its queue grows long",
            "That keeps delays short; only a faster path carries more.",
        ),
    }
}

fn at_ceiling(finding: &Finding) -> String {
    let of = |fact| finding.observed(fact);
    match (of(Fact::AllArrived), of(Fact::LostAsAllowed), of(Fact::LoadAdds)) {
        (Some(_), _, _) => "at the ceiling, and nothing was lost".to_owned(),
        (_, Some(lost), _) => format!("at the ceiling, and {}", text(finding, lost)),
        (_, _, Some(load)) => format!("at the ceiling, stop tuning; but {}", text(finding, load)),
        _ => "at the ceiling, stop tuning".to_owned(),
    }
}

/// Returns the rates of a full path, and its queue.
fn full_path(finding: &Finding) -> Option<String> {
    let of = |fact| finding.observed(fact);
    if let Some(received) = of(Fact::Received) {
        let of: Received = received.figures()?;
        return Some(format!("{} of {} arrive, and its queue grows", rate(received.value), rate(of.sent.0)));
    }
    let queue = of(Fact::QueueOneWay).or(of(Fact::QueueRoundTrip)).or(of(Fact::RoundTripAboveLeast));
    let goodput = rate(finding.figures::<Steady>()?.goodput.0);
    Some(match (queue, of(Fact::OfPeakRate)) {
        (Some(queue), _) => format!("{goodput}, with a standing queue of {}", time(nanos(queue.value))),
        (None, Some(peak)) => format!(
            "{goodput}, {} of the highest rate of delivery, without a standing queue",
            part(peak.value)
        ),
        (None, None) => goodput,
    })
}
