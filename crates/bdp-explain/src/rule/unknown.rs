//! What no rule claims, with what was seen and what is missing for an answer.

use bdp_model::facts::{Facts, Source};
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::threshold::{QUEUE_SHARE, SAMPLES_MIN, WORTH_A_WORD};
use bdp_model::finding::{Cause, Confidence, Evidence, Finding, Lack, Limit, Missing, Place};

use crate::observed;
use crate::setting::{TestSetting, name_of};

/// Reports that the limit is unknown.
pub fn judge(facts: &Facts) -> Finding {
    Finding::new(Limit::Unknown, Place::path(), Confidence::Low).evidence(seen(facts)).missing(missing(facts))
}

/// The finding if TCP's own figures are those of a tunnel's ends.
pub fn through_tunnel() -> Finding {
    Finding::new(Limit::Unknown, Place::path(), Confidence::Low)
        .cause(Cause::Tunnel)
        .evidence([Evidence::flag(fact::ThroughTunnel, true)])
        .missing([Missing::new(Lack::DirectConnection)])
}

/// Possible reasons, strongest first.
fn seen(facts: &Facts) -> Vec<Evidence> {
    let mut all = Vec::new();
    all.extend(facts.busy_thread().map(observed::busy_thread));
    if let Some(retransmitted) = observed::retransmitted(facts) {
        // The kernel may retransmit a segment twice, and learns of each copy.
        let again = facts.retransmits.unwrap_or(0);
        let needless = facts.needless_retransmits.map(|n| n.min(again)).filter(|&n| n > 0);
        all.push(retransmitted);
        all.extend(needless.map(|n| Evidence::count(fact::NeedlessRetransmits, n)));
    }
    if let Some(window) = facts.window_use() {
        if window.congestion_full >= WORTH_A_WORD {
            let evidence = Evidence::share(fact::CongestionWindowFull, window.congestion_full);
            let evidence = evidence.at_least(WORTH_A_WORD).share_of(window.samples);
            all.push(evidence.named(&facts.congestion_control));
        }
        if window.receive_full >= WORTH_A_WORD {
            let full = match facts.rate_bps(window.receive_bytes) {
                Some(bps) => fact::WindowFull {
                    window: Some(Bytes(window.receive_bytes)),
                    carries: Some(Bps(f64::from(facts.streams()) * bps)),
                    streams: observed::several_streams(facts),
                },
                None => fact::WindowFull::ALONE,
            };
            let full = Evidence::share(full, window.receive_full);
            all.push(full.at_least(WORTH_A_WORD).share_of(window.samples));
        }
    }
    if let Some(share) = facts.sndbuf_limited().filter(|&share| share >= WORTH_A_WORD) {
        all.push(Evidence::share(fact::KernelCountsSendBuffer, share).at_least(WORTH_A_WORD));
    }
    all.extend(facts.standing_queue().map(|queue| observed::queue(facts, queue, QUEUE_SHARE)));
    if let Some(asked) = facts.asked_bps().filter(|&asked| asked > 0.0) {
        all.push(observed::of_asked_rate(facts, asked, name_of(facts, TestSetting::Rate)));
    }
    all.extend(observed::of_ceiling(facts));
    all
}

fn missing(facts: &Facts) -> Vec<Missing> {
    let mut all = Vec::new();
    if facts.mss_bytes.is_none() {
        all.push(Missing::new(Lack::SegmentSize).host(&facts.sender.name));
    }
    if facts.window_use().is_none() {
        let after_omit = facts.sent.iter().filter(|s| s.at_ns >= facts.omit_ns);
        // Streams without a figure are ignored; if none has all figures, the reason is not lack of time.
        let telling =
            after_omit.clone().filter(|s| s.unacked.and(s.cwnd).and(s.snd_wnd_bytes).is_some()).count();
        let counted = if telling > 0 { telling } else { after_omit.count() };
        all.push(match (facts.sent.len(), counted) {
            (0, _) => Missing::new(Lack::TcpInfo),
            (_, n) if n < SAMPLES_MIN => {
                let longer = if facts.omit_ns > 0 { Lack::LongerAfterOmit } else { Lack::LongerMeasurement };
                Missing::new(longer).samples(n as u64)
            }
            _ => Missing::new(Lack::TcpInfoWindows),
        });
    }
    if facts.rtt_idle().is_none() {
        all.push(Missing::new(Lack::IdleRoundTrip));
    }
    if facts.rtt_ns.loaded.is_none_or(|rtt| rtt.received == 0) {
        all.push(Missing::new(Lack::LoadedRoundTrip));
    }
    let each_way = facts.one_way.is_some_and(|ways| ways.idle.is_some() && ways.loaded.is_some());
    if facts.both_directions && !each_way {
        all.push(Missing::new(Lack::QueueDirection));
    }
    // A lab link without a rate has none to know.
    if facts.ceiling.is_none() && facts.source == Source::Measured {
        all.push(Missing::new(Lack::NicSpeed));
    }
    all
}
