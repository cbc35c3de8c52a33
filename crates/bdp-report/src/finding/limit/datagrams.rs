//! Datagrams.

use bdp_model::finding::fact::{DatagramsLost, RateHeld, Received, SentOfAsked};
use bdp_model::finding::limit::Datagrams;
use bdp_model::finding::{Cause, Evidence, Fact, Finding};

use super::super::quantity::{percent, rate};
use super::words::{Words, device, name, plain};

pub const fn words(limit: Datagrams) -> &'static Words {
    match limit {
        Datagrams::PathLoss => &PATH_LOSS,
        Datagrams::ReceivingHost => &RECEIVING_HOST,
        Datagrams::SendingHost => &SENDING_HOST,
    }
}

const PATH_LOSS: Words = Words {
    subject: |_| "the path".to_owned(),
    claim: |finding| match finding.observed(Fact::RateHeld) {
        Some(held) => format!("{} is the most that the path carries{}", rate(held.value), without_loss(held)),
        None => path_loss(finding),
    },
    figures: |_| None,
    reason: |_, _, _| {
        plain(
            "data is lost on the way",
            "Look for a congested or faulty link between the two, or send more slowly.",
        )
    },
};

fn path_loss(finding: &Finding) -> String {
    let received = finding.observed(Fact::Received);
    let sent = received.and_then(|received| Some((received.value, received.figures::<Received>()?.sent.0)));
    if finding.observed(Fact::DatagramQueue).is_some() {
        return match sent {
            Some((came, sent)) => {
                format!("the path carried {} of the {} sent and lost the rest", rate(came), rate(sent))
            }
            None => "the path carried a part of what was sent and lost the rest".to_owned(),
        };
    }
    let lost = finding.figures().map_or("some".to_owned(), |lost: DatagramsLost| percent(lost.share.0));
    let at = sent.map_or_else(String::new, |(_, sent)| format!(" at {}", rate(sent)));
    format!("the path lost {lost} of what was sent{at}")
}

/// Returns a rate that was sustained, with its loss.
fn without_loss(held: &Evidence) -> String {
    match held.figures().map(|held: RateHeld| held.allowed.0) {
        None => String::new(),
        Some(0.0) => " without loss".to_owned(),
        Some(allowed) => format!(" with {} lost at most", percent(allowed)),
    }
}

const RECEIVING_HOST: Words = Words {
    subject: |finding| format!("receiving socket of {}", name(finding)),
    claim: |finding| {
        let (name, received) = (name(finding), finding.observed(Fact::Received));
        let sent = received.and_then(|received| received.figures()).map(|received: Received| received.sent.0);
        match (finding.observed(Fact::RateHeld), received, sent) {
            (Some(held), ..) => format!(
                "{} is the most that {name} takes{}; the path may carry more",
                rate(held.value),
                without_loss(held)
            ),
            (None, Some(received), Some(sent)) => format!(
                "{name} read {} of {} sent, and dropped what its socket could not hold",
                rate(received.value),
                rate(sent)
            ),
            _ => format!("{name} dropped what its socket could not hold"),
        }
    },
    figures: |finding| {
        finding.observed(Fact::RateHeld).is_none().then(|| "that is no loss of the path".to_owned())
    },
    reason: |_, _, to| {
        Some((
            format!("{to} reads data more slowly than it arrives"),
            format!("A faster processor, or less other work, on {to} helps."),
        ))
    },
};

const SENDING_HOST: Words = Words {
    subject: |finding| match finding.cause {
        Some(Cause::DeviceDrops) => format!("queue of {} on {}", device(finding), name(finding)),
        _ => format!("sender on {}", name(finding)),
    },
    claim: |finding| match finding.cause {
        Some(Cause::DeviceDrops) => {
            format!("{} on {} dropped what exceeded its rate", device(finding), name(finding))
        }
        _ => {
            let asked = finding.figures().map(|of: SentOfAsked| of.sent.0);
            let sent = asked.or(finding.observed(Fact::SentUnbounded).map(|sent| sent.value));
            let than = sent.map_or("than it did".to_owned(), |sent| format!("than {}", rate(sent)));
            format!("{} can send no more {than}; the path carried all of it", name(finding))
        }
    },
    figures: |finding| {
        (finding.cause == Some(Cause::DeviceDrops)).then(|| "it never left the host".to_owned())
    },
    reason: |_, from, _| {
        Some((
            format!("{from} can't send any faster"),
            format!("A faster processor, or less other work, on {from} helps."),
        ))
    },
};
