//! A transfer that was over before slow start was.

use bdp_model::facts::Facts;
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::units::Nanos;

use crate::text::{rate, size, time};

/// Claims that a transfer of so many bytes was over before slow start was.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// Doubling each round trip, a longer one has filled any path.
    const ROUND_TRIPS: f64 = 30.0;
    let bytes = facts.asked.bytes?.as_bytes();
    let rtt = facts.rtt_idle().filter(|&rtt| rtt > Nanos::ZERO)?;
    let trips = facts.duration_ns as f64 / rtt.as_ns() as f64;
    let left_it = facts.sent.iter().any(|s| s.ssthresh.is_some()) && !facts.is_paced();
    if trips > ROUND_TRIPS || left_it || facts.retransmits.is_none_or(|again| again > 0) {
        return None;
    }
    let windows: Vec<u32> = facts.sent.iter().filter_map(|s| s.cwnd).collect();
    let (first, last) = (*windows.first()?, *windows.last()?);
    Some(Finding {
        limit: Limit::SlowStart,
        subject: "slow start".to_owned(),
        confidence: Confidence::High,
        summary: format!(
            "limited by slow start: {} took {:.1} round trips of {}, {} on average",
            size(bytes as f64),
            trips.max(1.0),
            time(rtt),
            rate(facts.goodput_bps)
        ),
        evidence: vec![
            "nothing was lost, and the congestion window had not left slow start at the end".to_owned(),
            format!("the congestion window grew from {first} to {last} segments"),
        ],
        remedy: Some("keep the connection open for several transfers, or begin with a larger window (ip route ... initcwnd)".to_owned()),
        missing: Vec::new(),
    })
}
