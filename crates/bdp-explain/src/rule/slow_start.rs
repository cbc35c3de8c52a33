//! A transfer that was over before slow start was.

use bdp_model::facts::Facts;
use bdp_model::finding::{Action, Confidence, Evidence, Fact, Finding, Limit, Place, Quantity, Remedy, Unit};
use bdp_model::units::Nanos;

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
    let finding = Finding::new(Limit::SlowStart, Place::sender(&facts.sender.name), Confidence::High)
        .evidence([
            Evidence::new(Fact::TookRoundTrips, Quantity { value: trips.max(1.0), unit: Unit::Count })
                .at_most(ROUND_TRIPS)
                .with(Quantity::bytes(bytes as f64))
                .with(Quantity::time(rtt))
                .with(Quantity::rate(facts.goodput_bps)),
            Evidence::flag(Fact::StillInSlowStart, true),
            Evidence::count(Fact::WindowGrew, u64::from(last)).with(Quantity::count(u64::from(first))),
        ])
        .remedy(Remedy::new(Action::KeepConnection));
    Some(finding)
}
