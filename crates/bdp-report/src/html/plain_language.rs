//! A paragraph for readers who are not network engineers: what was measured, what limits it, and what to do.

use bdp_model::finding::threshold::NOTICEABLE_DELAY;
use bdp_model::record::{RttReport, Transfer};
use bdp_model::units::format_bps;
use maud::{Markup, html};

use crate::finding::reason;
use crate::number::three_digits;

/// Most transfers described individually.
const MOST_TRANSFERS: usize = 3;

/// A transfer to describe, with the names of its hosts.
pub(crate) struct Described<'a> {
    /// Sending host.
    pub from: &'a str,
    /// Receiving host.
    pub to: &'a str,
    /// The transfer.
    pub transfer: &'a Transfer,
}

/// Returns the paragraph.
pub(crate) fn paragraph(sentences: &[String]) -> Markup {
    html! { p.plain-language { b { "In plain language." } " " (sentences.join(" ")) } "\n" }
}

/// Returns sentences on transfers: the speed of each, its reason, the remedy, and response times meanwhile, without
/// repetition.
pub(crate) fn sentences(transfers: &[Described<'_>]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for Described { from, to, transfer } in transfers.iter().take(MOST_TRANSFERS) {
        sentences.push(format!("From {from} to {to} it reached {}.", format_bps(transfer.goodput_bps)));
        let reason = transfer.findings.first().map(|finding| reason(finding, from, to));
        for sentence in reason.into_iter().flatten().chain(delay(&transfer.rtt_ns)) {
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    let more = transfers.len().saturating_sub(MOST_TRANSFERS);
    if more > 0 {
        sentences.push(format!("{more} more transfers ran beside them."));
    }
    sentences
}

/// Returns the response time under load, if it is noticeably longer than when idle.
fn delay(rtt: &RttReport) -> Option<String> {
    let (idle, loaded) = (rtt.idle?.p50, rtt.loaded?.p95?);
    let ms = |ns: u64| three_digits(ns as f64 / 1e6);
    (loaded > idle + NOTICEABLE_DELAY.as_ns()).then(|| {
        format!(
            "Answers took {} ms when idle and up to {} ms under load (95 % of them): calls and games over the same \
             connection wait as long.",
            ms(idle),
            ms(loaded)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bdp_model::finding::{Confidence, Finding, Limit, Place};
    use bdp_model::record::ProbeOutcome;

    fn limited(limit: Limit, confidence: Confidence) -> Transfer {
        let findings = vec![Finding::new(limit, Place::path(), confidence)];
        Transfer { goodput_bps: 25.4e6, findings, ..Transfer::default() }
    }

    #[test]
    fn limit_confidence_and_delay_are_in_plain_words() {
        let answered = |ms: u64| [ProbeOutcome::Answered(ms * 1_000_000); 40];
        let rtt_ns = RttReport::of_probes(answered(24), answered(180));
        let transfer = Transfer { rtt_ns, ..limited(Limit::ReceiveWindow, Confidence::Medium) };
        let text = sentences(&[Described { from: "near", to: "ams1", transfer: &transfer }]).join(" ");
        assert!(
            text.starts_with(
                "From near to ams1 it reached 25.4 Mbit/s. The probable reason is that ams1 accepts"
            ),
            "{text}"
        );
        assert!(text.contains("A larger receive window on ams1"), "{text}");
        assert!(text.contains("Answers took 24.") && text.contains("up to 18"), "{text}");
    }

    #[test]
    fn nothing_is_said_twice_or_made_up() {
        let full = limited(Limit::Ceiling, Confidence::High);
        let way = |from, to| Described { from, to, transfer: &full };
        let both = sentences(&[way("a", "b"), way("b", "a")]);
        assert_eq!(both.iter().filter(|s| s.contains("connection is full")).count(), 1, "{both:?}");
        let of = |transfer: &Transfer| sentences(&[Described { from: "a", to: "b", transfer }]);
        assert_eq!(of(&Transfer::default()).len(), 1);
        assert_eq!(of(&limited(Limit::Unknown, Confidence::Low))[1], "The limit is unknown.");
    }
}
