//! Packets of full size that vanish without a word (RFC 2923), so that nothing comes through.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::units::Nanos;

use crate::text::time;

/// Claims that packets of full size vanish: none was acknowledged, however often it was retransmitted, and small ones came through.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// Retransmissions that prove it.
    const AGAIN: u64 = 2;
    let last = facts.sent.last()?;
    let mss = facts.mss_bytes?;
    let idle = facts.rtt.idle.filter(|rtt| rtt.received > 0)?;
    let small_lost = facts.rtt.loaded.is_some_and(|rtt| rtt.received == 0 && rtt.sent > rtt.in_flight);
    if facts.bytes >= mss
        || last.acked_bytes? >= mss
        || last.unacked? == 0
        || last.retransmits? < AGAIN
        || small_lost
    {
        return None;
    }
    Some(Finding {
        limit: Limit::MtuBlackHole,
        subject: "the path".to_owned(),
        confidence: if facts.rtt.loaded.is_some_and(|rtt| rtt.received > 0) { Confidence::High } else { Confidence::Medium },
        summary: format!("nothing came through: packets of full size ({mss} B of payload) vanish, and small ones arrive"),
        evidence: vec![
            format!("{} retransmissions of full segments, and none was acknowledged", last.retransmits?),
            format!("{} of {} small probes came back within {}", idle.received, idle.sent, time(Nanos(idle.max))),
            "no ICMP message lowered the path MTU: a router drops what is too big and does not say so (RFC 2923)".to_owned(),
        ],
        remedy: Some(format!(
            "set net.ipv4.tcp_mtu_probing = 1 on {}, clamp the MSS at the router, or let ICMP 'fragmentation needed' pass",
            facts.sender.name
        )),
        missing: Vec::new(),
    })
}
