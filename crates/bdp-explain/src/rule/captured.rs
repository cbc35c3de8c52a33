//! What a capture shows of a sender that neither the path nor the receiver holds back: a congestion window would grow until something is lost or a
//! queue stands, and what is in flight does not.

use bdp_model::facts::{Facts, Source, TimeState};
use bdp_model::finding::{
    Action, Confidence, Evidence, Fact, Finding, Lack, Limit, Missing, Place, Quantity, Remedy,
};
use bdp_model::threshold::{SAMPLES_MIN, WINDOW_FREE};
use bdp_model::units::Nanos;

/// A program is late for so much of the time, and for most of it.
const LATE: f64 = 0.12;
const MOSTLY: f64 = 0.5;
/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.9;
/// No queue stands where even the 95th percentile of the round trip is no further above the least: a share of it, and a time.
const FLOOR: (f64, Nanos) = (0.05, Nanos::millis(1));
/// What is in flight each round trip is the goodput.
const FLIGHT_EXPLAINS: std::ops::RangeInclusive<f64> = 0.8..=1.25;
/// A transfer of fewer round trips has not grown as far as it will.
const ROUND_TRIPS: u64 = 20;

/// Whether a capture was taken at the sender: elsewhere nobody knows what its program did.
fn is_at_sender(facts: &Facts) -> bool {
    facts.sent.iter().any(|s| s.app_limited.is_some())
}

/// Lowers how sure a finding of a capture is: a level where the capture was not taken at the sender, and where a program is blamed whose buffer may
/// be what is full (docs/captures.md has how often each level is right).
pub fn temper(facts: &Facts, mut finding: Finding) -> Finding {
    let is_blurred = !is_at_sender(facts) || finding.limit == Limit::SlowWriter;
    if facts.source == Source::Captured && is_blurred {
        finding.confidence = match finding.confidence {
            Confidence::High => Confidence::Medium,
            Confidence::Medium | Confidence::Low => Confidence::Low,
        };
    }
    finding
}

/// Claims a program that reads late: the window was full and below half of its largest, which a receiver that reads what comes never lets happen.
pub fn reads_late(facts: &Facts) -> Option<Finding> {
    let late = share_of(facts, TimeState::ReceiverApplication)?;
    let (window, name) = (facts.window_use()?, &facts.receiver.name);
    let confidence = if late >= MOSTLY { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::SlowReader, Place::receiver(name), confidence)
        .evidence([
            Evidence::share(Fact::ReadingPaused, late).at_least(LATE).on(name),
            Evidence::share(Fact::WindowFull, window.receive_full).share_of(window.samples),
        ])
        .remedy(Remedy::new(Action::FreeReader).host(name));
    Some(finding)
}

/// Claims a program that writes late: nothing was in flight and nothing came, though both windows had room, and then it went on.
pub fn writes_late(facts: &Facts) -> Option<Finding> {
    let late = share_of(facts, TimeState::SenderApplication)?;
    let name = &facts.sender.name;
    if !is_at_sender(facts) || facts.asked.bytes.is_some() {
        return None;
    }
    let confidence = if late >= MOSTLY { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::SlowWriter, Place::sender(name), confidence)
        .evidence([Evidence::share(Fact::NothingToSend, late).at_least(LATE).on(name)])
        .remedy(Remedy::new(Action::FreeWriter).host(name));
    Some(finding)
}

/// The share of the time that a program is blamed for, of a capture, where it is worth a word.
fn share_of(facts: &Facts, state: TimeState) -> Option<f64> {
    let spent = facts.time_counted().filter(|_| facts.source == Source::Captured)?;
    Some(spent.share(state)).filter(|&share| share >= LATE)
}

/// Claims the send buffer: what is in flight stays the same, is acknowledged within the least round trip, and nothing is lost.
pub fn judge(facts: &Facts) -> Option<Finding> {
    if facts.source != Source::Captured || facts.counted(|s| s.retransmits)? > 0 {
        return None;
    }
    // Elsewhere than at the sender, a program that writes steadily looks the same.
    if !is_at_sender(facts) {
        return None;
    }
    let least = facts.rtt_least()?;
    let above = Nanos(facts.rtt.loaded?.answers().p95?).saturating_sub(least);
    let bound = (FLOOR.0 * least.0 as f64).max(FLOOR.1.0 as f64);
    let counted_ns = facts.duration_ns.saturating_sub(facts.omit_ns);
    let is_past_slow_start = facts.sent.iter().any(|s| s.ssthresh.is_some());
    if above.0 as f64 > bound || !is_past_slow_start || counted_ns < ROUND_TRIPS.saturating_mul(least.0) {
        return None;
    }
    let window =
        facts.window_use().filter(|w| w.samples >= SAMPLES_MIN as u64 && w.receive_full < WINDOW_FREE)?;
    let carried = facts.rate_bps(window.in_flight_bytes)?;
    let reached = facts.stream_bps() / carried;
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    if !FLIGHT_EXPLAINS.contains(&reached) {
        return None;
    }
    let name = &facts.sender.name;
    let finding = Finding::new(Limit::SendBuffer, Place::sender(name), Confidence::Low)
        .evidence([
            Evidence::share(Fact::OfFlightRate, reached)
                .at_least(*FLIGHT_EXPLAINS.start())
                .at_most(*FLIGHT_EXPLAINS.end())
                .with(Quantity::bytes(window.in_flight_bytes))
                .with(Quantity::time(facts.rtt_loaded()?))
                .with(Quantity::rate(carried)),
            Evidence::time(Fact::RoundTripAboveLeast, above)
                .at_most(bound)
                .with(Quantity::time(least + above))
                .with(Quantity::time(least)),
            Evidence::share(Fact::Steady, steady).at_least(STEADY).with(Quantity::rate(facts.goodput_bps)),
        ])
        .remedy(Remedy::new(Action::RaiseMaximum).setting("net.ipv4.tcp_wmem").host(name))
        .missing([Missing::new(Lack::SenderFigures).host(name)]);
    Some(finding)
}
