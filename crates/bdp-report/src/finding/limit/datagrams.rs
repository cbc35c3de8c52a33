//! Datagrams.

use bdp_model::finding::fact::{DatagramsLost, RateHeld, Received, SentOfAsked};
use bdp_model::finding::limit::Datagrams;
use bdp_model::finding::{Cause, Evidence, Fact, Finding};

use super::super::quantity::{percent, rate};
use super::words::{Words, device, name};

pub fn words(limit: Datagrams, finding: &Finding) -> Words {
    let name = name(finding);
    match limit {
        Datagrams::PathLoss => Words::new("the path", path_loss(finding)).figures(|_| None).because(
            "data is lost on the way",
            "Look for a congested or faulty link between the two, or send more slowly.",
        ),
        Datagrams::ReceivingHost => {
            Words::new(format!("receiving socket of {name}"), receiver_drops(finding, name))
                .figures(|finding| {
                    let is_held = finding.observed(Fact::RateHeld).is_some();
                    (!is_held).then(|| "that is no loss of the path".to_owned())
                })
                .because(
                    "{to} reads data more slowly than it arrives",
                    "A faster processor, or less other work, on {to} helps.",
                )
        }
        Datagrams::SendingHost => sender(finding, name).because(
            "{from} can't send any faster",
            "A faster processor, or less other work, on {from} helps.",
        ),
    }
}

fn path_loss(finding: &Finding) -> String {
    if let Some(held) = finding.observed(Fact::RateHeld) {
        return format!("{} is the most that the path carries{}", rate(held.value), without_loss(held));
    }
    let sent = sent(finding);
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

/// Returns the rates received and sent.
fn sent(finding: &Finding) -> Option<(f64, f64)> {
    let received = finding.observed(Fact::Received)?;
    Some((received.value, received.figures::<Received>()?.sent.0))
}

/// Returns a rate that was sustained, with its loss.
fn without_loss(held: &Evidence) -> String {
    match held.figures().map(|held: RateHeld| held.allowed.0) {
        None => String::new(),
        Some(0.0) => " without loss".to_owned(),
        Some(allowed) => format!(" with {} lost at most", percent(allowed)),
    }
}

fn receiver_drops(finding: &Finding, name: &str) -> String {
    match (finding.observed(Fact::RateHeld), sent(finding)) {
        (Some(held), _) => format!(
            "{} is the most that {name} takes{}; the path may carry more",
            rate(held.value),
            without_loss(held)
        ),
        (None, Some((received, sent))) => format!(
            "{name} read {} of {} sent, and dropped what its socket could not hold",
            rate(received),
            rate(sent)
        ),
        (None, None) => format!("{name} dropped what its socket could not hold"),
    }
}

fn sender(finding: &Finding, name: &str) -> Words {
    if finding.cause == Some(Cause::DeviceDrops) {
        let device = device(finding);
        let claim = format!("{device} on {name} dropped what exceeded its rate");
        return Words::new(format!("queue of {device} on {name}"), claim)
            .figures(|_| Some("it never left the host".to_owned()));
    }
    let asked = finding.figures().map(|of: SentOfAsked| of.sent.0);
    let sent = asked.or(finding.observed(Fact::SentUnbounded).map(|sent| sent.value));
    let than = sent.map_or("than it did".to_owned(), |sent| format!("than {}", rate(sent)));
    let claim = format!("{name} can send no more {than}; the path carried all of it");
    Words::new(format!("sender on {name}"), claim).figures(|_| None)
}
