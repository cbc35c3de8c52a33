//! A transfer that ended before slow start did.

use bdp_model::facts::{Facts, TimeState};
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::{Action, Confidence, Evidence, Finding, Limit, Place, Quantity, Remedy, Unit};
use bdp_model::units::Nanos;

use crate::rule::part::MOST;

/// Round trips / those in which a doubling window carries the bytes, with one to spare: above it, growth took less than half of the time.
const OF_GROWTH: f64 = 2.0;

/// Round trips in which a doubling window carries this many bytes, with the tolerance within which its growth explains the time.
fn growth_trips(facts: &Facts, bytes: f64) -> Option<f64> {
    let first = f64::from(facts.sent.iter().find_map(|s| s.cwnd)?) * facts.mss_bytes? as f64;
    (first > 0.0).then(|| OF_GROWTH * ((bytes / first + 1.0).log2() + 1.0))
}

/// Claims the path's rate if a short transfer took much longer than its window needs to grow, without losses: the first windows were more than the
/// path carries per round trip.
pub fn outlasted(facts: &Facts) -> Option<Finding> {
    let bytes = facts.asked.bytes?.as_bytes() as f64;
    let rtt = facts.rtt_least().filter(|&rtt| rtt > Nanos::ZERO)?;
    let trips = facts.duration_ns as f64 / rtt.as_ns() as f64;
    let growth = growth_trips(facts, bytes)?;
    let window = facts.sent.iter().filter_map(|s| s.cwnd).max()?;
    let carries = f64::from(window) * facts.mss_bytes? as f64 * 8.0 / rtt.as_secs_f64();
    if trips <= growth
        || carries <= OF_GROWTH * facts.stream_bps()
        || facts.retransmits.is_none_or(|again| again > 0)
    {
        return None;
    }
    let finding = Finding::new(Limit::PathRate, Place::path(), Confidence::Low)
        .evidence([Evidence::new(
            fact::TookRoundTrips {
                transferred: Bytes(bytes),
                round_trip: rtt,
                goodput: Bps(facts.goodput_bps),
            },
            Quantity { value: trips, unit: Unit::Count },
        )
        .at_least(growth)])
        .remedy(Remedy::new(Action::AddCapacity));
    Some(finding)
}

/// Claims that a transfer of this many bytes ended before slow start did.
pub fn judge(facts: &Facts) -> Option<Finding> {
    /// A longer transfer, doubling each round trip, has filled any path.
    const ROUND_TRIPS: f64 = 30.0;
    let bytes = facts.asked.bytes?.as_bytes();
    let rtt = facts.rtt_idle().filter(|&rtt| rtt > Nanos::ZERO)?;
    let trips = facts.duration_ns as f64 / rtt.as_ns() as f64;
    let left_it = facts.sent.iter().any(|s| s.ssthresh.is_some()) && !facts.is_paced();
    let by_growth = growth_trips(facts, bytes as f64).is_none_or(|growth| trips <= growth);
    // Even with few samples: a full buffer keeps the window from growing.
    let buffered = facts.time_counted().is_some_and(|spent| spent.share(TimeState::SendBuffer) >= MOST);
    if buffered
        || trips > ROUND_TRIPS
        || !by_growth
        || left_it
        || facts.retransmits.is_none_or(|again| again > 0)
    {
        return None;
    }
    let windows: Vec<u32> = facts.sent.iter().filter_map(|s| s.cwnd).collect();
    let (first, last) = (*windows.first()?, *windows.last()?);
    let finding = Finding::new(Limit::SlowStart, Place::sender(&facts.sender.name), Confidence::High)
        .evidence([
            Evidence::new(
                fact::TookRoundTrips {
                    transferred: Bytes(bytes as f64),
                    round_trip: rtt,
                    goodput: Bps(facts.goodput_bps),
                },
                Quantity { value: trips.max(1.0), unit: Unit::Count },
            )
            .at_most(ROUND_TRIPS),
            Evidence::flag(fact::StillInSlowStart, true),
            Evidence::count(fact::WindowGrew { from: u64::from(first) }, u64::from(last)),
        ])
        .remedy(Remedy::new(Action::KeepConnection));
    Some(finding)
}
