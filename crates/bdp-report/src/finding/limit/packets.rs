//! Limits from packet loss, reordering and loss recovery.

use bdp_model::finding::fact::{FullSegmentsLost, Reordered};
use bdp_model::finding::limit::Packets;
use bdp_model::finding::{Fact, Finding};

use super::super::evidence::nanos;
use super::super::quantity::{part, percent, rate, time};
use super::words::{Words, first_line};

pub fn words(limit: Packets, finding: &Finding) -> Words {
    match limit {
        Packets::CongestionLoss => {
            Words::new("a full queue on the path", "limited by losses of a full queue on the path").because(
                "the slowest part of the path is full and discards what does not fit",
                "Only a faster path carries more.",
            )
        }
        Packets::RandomLoss => {
            Words::limited_by("losses that the load does not cause").figures(random_losses).because(
                "data is lost on the way although the path is not full",
                "Look for a faulty cable, port or radio link between the two.",
            )
        }
        Packets::SackMissing => Words::limited_by("loss recovery without SACK").because(
            "lost data is retransmitted one packet at a time",
            "Selective acknowledgements (SACK) between {from} and {to} make it faster.",
        ),
        Packets::TimestampsMissing => {
            Words::new("no TCP timestamps", "segments are retransmitted without TCP timestamps").because(
                "a sender cannot always tell whether lost data was lost",
                "TCP timestamps between {from} and {to} show it.",
            )
        }
        Packets::Policer => {
            let bps = finding.remedy.as_ref().and_then(|remedy| remedy.value);
            let at = bps.map_or_else(String::new, |bps| format!(", at {} of goodput", rate(bps)));
            Words::new("a policer on the path", format!("limited by a policer on the path{at}"))
                .figures(|_| Some("it drops what exceeds its rate, and has no queue".to_owned()))
                .because(
                    "something on the path discards whatever exceeds a certain rate",
                    "Ask the provider which rate was agreed, or send no faster than that.",
                )
        }
        Packets::Reordering => {
            Words::new("reordering on the path", "limited by reordering").figures(reordered).because(
                "data arrives in another order than it was sent in",
                "Look for a path that spreads the packets of one connection over several links.",
            )
        }
        Packets::ReversePath => Words::limited_by("the way back").figures(acknowledgements_lost).because(
            "the answers of {to} get lost on their way back",
            "Look for a congested or faulty link on the way from {to} to {from}.",
        ),
        Packets::MtuBlackHole => Words::new("an MTU black hole on the path", "nothing came through")
            .figures(full_segments)
            .because(
                "large packets vanish on the way, and small ones come through",
                "A smaller MTU on {from}, or a tunnel that reports its own, cures it.",
            ),
        Packets::PathChanged => {
            Words::new("a path that changed during the test", "the path changed during the test")
                .figures(gap)
                .because("the path changed while it was measured", "Measure again, and for longer.")
        }
    }
}

fn random_losses(finding: &Finding) -> Option<String> {
    let of = |fact| finding.observed(fact);
    let losses = of(Fact::LossesAtAnyRate).or(of(Fact::LossesWhilePaced))?;
    let congestion = losses.name.as_deref().unwrap_or("TCP");
    let lost = part(of(Fact::RetransmittedShare)?.value);
    Some(format!("{lost} of the segments, which keep {congestion}'s window small"))
}

fn reordered(finding: &Finding) -> Option<String> {
    let seen = finding.observed(Fact::Reordered)?;
    let Reordered { times } = seen.figures()?;
    let congestion = seen.name.as_deref().unwrap_or("TCP");
    Some(format!("segments overtake others {times} times, and {congestion} takes late ones for lost"))
}

fn acknowledgements_lost(finding: &Finding) -> Option<String> {
    let Some(lost) = finding.observed(Fact::ProbesLost) else { return first_line(finding) };
    Some(format!("it loses acknowledgements, as {} of the probes", percent(lost.value)))
}

fn full_segments(finding: &Finding) -> Option<String> {
    let FullSegmentsLost { segment } = finding.figures()?;
    Some(format!("packets of full size ({:.0} B of payload) vanish, and small ones arrive", segment.0))
}

fn gap(finding: &Finding) -> Option<String> {
    let Some(gap) = finding.observed(Fact::Gap) else { return first_line(finding) };
    let (gap, share) = (time(nanos(gap.value)), percent(finding.observed(Fact::GapShare)?.value));
    Some(format!("nothing came through for {gap}, {share} of the time"))
}
