//! What no rule claims: what was seen all the same, and what is missing for an answer.

use bdp_model::facts::{Facts, Queue, Source};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{SAMPLES_MIN, WORTH_A_WORD};

use crate::text::{Setting, name_of, percent, rate, size, thread_used, time};

/// Says that the limit is unknown.
pub fn judge(facts: &Facts) -> Finding {
    let evidence = observed(facts);
    let summary = match evidence.first() {
        Some(first) => format!("limit unknown; {first}"),
        None => "limit unknown".to_owned(),
    };
    Finding {
        limit: Limit::Unknown,
        subject: "what limits it".to_owned(),
        confidence: Confidence::Low,
        summary,
        evidence,
        remedy: None,
        missing: missing(facts),
    }
}

/// What is said where TCP's own figures are those of a tunnel's ends.
pub fn through_tunnel() -> Finding {
    let summary = "limit unknown: data went through ssh's connection, and the TCP connections seen here end at ssh on either \
                   machine";
    Finding {
        limit: Limit::Unknown,
        subject: "what limits it".to_owned(),
        confidence: Confidence::Low,
        summary: summary.to_owned(),
        evidence: vec![
            "ssh encrypts, and holds data back by windows of its own (RFC 4254, section 5.2)".to_owned(),
        ],
        remedy: None,
        missing: vec!["a direct connection, without --through-ssh".to_owned()],
    }
}

/// What may be the reason, the strongest first.
fn observed(facts: &Facts) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((task, cpu)) = facts.busy_thread() {
        all.push(format!("{} {} of a processor", thread_used(task), percent(cpu)));
    }
    if let Some((again, share)) = facts.retransmitted().filter(|&(again, _)| again > 0) {
        let (segments, were) = if again == 1 { ("segment", "was") } else { ("segments", "were") };
        // The kernel may retransmit a segment twice, and hears of each copy.
        let needless = match facts.needless_retransmits.map_or(0, |n| n.min(again)) {
            0 => String::new(),
            n => format!(
                "; {n} needlessly, the receiver had them already (DSACK): late or reordered, not lost"
            ),
        };
        all.push(format!(
            "{again} {segments} of {} {were} retransmitted, {}{needless}",
            total(facts),
            small(share)
        ));
    }
    if let Some(window) = facts.window_use() {
        if window.congestion_full >= WORTH_A_WORD {
            all.push(format!(
                "the congestion window ({}) was full {} of the time",
                facts.congestion_control,
                percent(window.congestion_full)
            ));
        }
        if window.receive_full >= WORTH_A_WORD {
            let full = percent(window.receive_full);
            let carries = facts.rate_bps(window.receive_bytes).map_or_else(String::new, |bps| {
                format!(", though {} would carry {}", size(window.receive_bytes), rate(bps))
            });
            all.push(format!("the receive window was full {full} of the time{carries}"));
        }
    }
    if let Some(share) = facts.sndbuf_limited().filter(|&share| share >= WORTH_A_WORD) {
        all.push(format!(
            "the kernel counts {} of the busy time as limited by the send buffer",
            percent(share)
        ));
    }
    if let Some(Queue { added, own_way }) = facts.standing_queue() {
        let of = if own_way { "one-way delay towards the receiver" } else { "round trip" };
        all.push(format!("load adds {} to the median {of}: a standing queue", time(added)));
    }
    if let Some(asked) = facts.asked_bps().filter(|&asked| asked > 0.0) {
        let share = percent(facts.goodput_bps / asked);
        let by = name_of(facts, Setting::Rate);
        all.push(format!("goodput is {share} of the {} that {by} asks for", rate(asked)));
    }
    if let (Some(share), Some(ceiling)) = (facts.of_ceiling(), &facts.ceiling) {
        all.push(format!("goodput is {} of what {} leaves to TCP", percent(share), ceiling.by));
    }
    all
}

/// Segments that carried what was received.
fn total(facts: &Facts) -> u64 {
    facts.mss_bytes.filter(|&mss| mss > 0).map_or(0, |mss| facts.bytes.div_ceil(mss))
}

/// A share that may be far below one in a hundred.
fn small(share: f64) -> String {
    match share * 1e6 {
        millionths if millionths < 1.0 => "fewer than 1 in a million".to_owned(),
        millionths if millionths < 1000.0 => format!("{millionths:.0} in a million"),
        _ => percent(share),
    }
}

fn missing(facts: &Facts) -> Vec<String> {
    let mut all = Vec::new();
    if facts.mss_bytes.is_none() {
        all.push(format!("the segment size of {}", facts.sender.name));
    }
    if facts.window_use().is_none() {
        let after_omit = facts.sent.iter().filter(|s| s.at_ns >= facts.omit_ns);
        // Those that lack a figure say nothing; where none has them all, it isn't for want of time.
        let telling =
            after_omit.clone().filter(|s| s.unacked.and(s.cwnd).and(s.snd_wnd_bytes).is_some()).count();
        let counted = if telling > 0 { telling } else { after_omit.count() };
        all.push(match (facts.sent.len(), counted) {
            (0, _) => "TCP_INFO of the sender".to_owned(),
            (_, n) if n < SAMPLES_MIN => {
                let (plural, are) = if n == 1 { ("", "is") } else { ("s", "are") };
                let after = if facts.omit_ns > 0 { " after what is omitted" } else { "" };
                format!("a longer measurement: {n} sample{plural}{after} {are} too few")
            }
            _ => "windows and segments in flight in TCP_INFO of the sender".to_owned(),
        });
    }
    if facts.rtt_idle().is_none() {
        all.push("the idle round trip".to_owned());
    }
    if facts.rtt.loaded.is_none_or(|rtt| rtt.received == 0) {
        all.push("the round trip under load".to_owned());
    }
    let each_way = facts.one_way.is_some_and(|ways| ways.idle.is_some() && ways.loaded.is_some());
    if facts.both_directions && !each_way {
        all.push("on which way a queue stands (times of the far end in probes)".to_owned());
    }
    // A link of the lab without a rate has none to be known.
    if facts.ceiling.is_none() && facts.source == Source::Measured {
        all.push("the speed of the NICs".to_owned());
    }
    all
}
