//! Full-size packets that vanish silently (RFC 2923), so that nothing gets through.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bytes};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Remedy};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

/// Claims that full-size packets vanish: none was acknowledged, however often it was retransmitted, while small ones got through.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// Retransmissions that are proof.
    const AGAIN: u64 = 2;
    let last = facts.sent.last()?;
    let mss = facts.mss_bytes?;
    let idle = facts.rtt_ns.idle.filter(|rtt| rtt.received > 0)?;
    let small_lost = facts.rtt_ns.loaded.is_some_and(|rtt| rtt.received == 0 && rtt.sent > rtt.in_flight);
    if facts.bytes >= mss
        || last.acked_bytes? >= mss
        || last.unacked? == 0
        || last.retransmits? < AGAIN
        || small_lost
    {
        return None;
    }
    let confidence = match facts.rtt_ns.loaded.is_some_and(|rtt| rtt.received > 0) {
        true => Confidence::High,
        false => Confidence::Medium,
    };
    let finding = Finding::new(Limit::MtuBlackHole, Place::path(), confidence)
        .evidence([
            Evidence::count(fact::FullSegmentsLost { segment: Bytes(mss as f64) }, last.retransmits?)
                .at_least(AGAIN as f64),
            Evidence::time(fact::ProbesAnswered, Nanos(idle.max)).samples(idle.received, idle.sent),
            Evidence::bytes(fact::SegmentSizeKept, mss as f64),
        ])
        .remedy(match probes_mtu(facts) {
            true => Remedy::new(Action::ProbeMtu),
            false => Remedy::new(Action::ProbeMtu).host(&facts.sender.name),
        });
    Some(finding)
}

/// Whether the sender's kernel probes the path MTU already.
fn probes_mtu(facts: &Facts) -> bool {
    let probing = facts.sender.host.sysctls.get(Setting::TcpMtuProbing.name);
    probing.is_some_and(|value| value.trim() != "0")
}
