//! A watched socket by the account of its time: the largest part is the limit. What one end cannot know is listed as missing.

use bdp_model::facts::{Conversation, Facts, SocketFacts, TimeState, Waits};
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::threshold::{AT_PEAK, QUEUE_NOISE, QUEUE_SHARE};
use bdp_model::finding::{
    Action, Cause, Confidence, Evidence, Fact, Finding, Lack, Limit, Missing, Place, Quantity, Remedy,
};
use bdp_model::record::ReceiverSample;
use bdp_model::statistics::median;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use crate::rule::part::{self, sure};
use crate::rule::{conversation, watched};
use crate::{observed, rule};

/// Fewest retransmissions without an answer: the data vanishes, or the peer is gone; a single SYN may have been lost.
const IN_VAIN: u64 = 2;
/// Fewest samples and round trips for a certain finding.
const READINGS: usize = 10;
const ROUND_TRIPS: u64 = 10;
/// Fewest turns to be certain whose turn it is.
const TURNS: u64 = 2;
/// Fewest losses that show that they occur at an idle round trip.
const LOSSES: u64 = 10;
/// Steady goodput: lower / upper quartile.
const STEADY: f64 = 0.7;
/// Share of samples with more waiting to be sent, for a sender that always has more.
const MORE_TO_SEND: f64 = 0.8;

/// The limit first; nothing if the socket was not watched for long enough.
pub fn explain(facts: &Facts, conversation: &Conversation) -> Vec<Finding> {
    let Some((waits, share)) = conversation.spent.waited_for() else { return Vec::new() };
    let finding = match waits {
        Waits::Connection => return not_established(conversation).into_iter().collect(),
        Waits::Path if facts.sent.is_empty() => path_at_receiver(facts, conversation),
        Waits::Path => path(facts, conversation),
        Waits::SendBuffer => send_buffer(facts, share),
        Waits::ProgramWindow if conversation.amount_bytes > 0 => program_window(facts, conversation, share),
        Waits::Processor => throttled(facts).unwrap_or_else(|| unknown(facts)),
        Waits::ReceiveWindow if facts.sent.is_empty() => {
            watched::own_window(facts).unwrap_or_else(|| watched::elsewhere(facts))
        }
        Waits::Reader if facts.sent.is_empty() => {
            watched::own_reader(facts).unwrap_or_else(|| conversation::of(facts, conversation, waits, share))
        }
        Waits::Writer if facts.sent.is_empty() => conversation::of(facts, conversation, waits, share)
            .missing([Missing::new(Lack::SenderFigures).host(&facts.sender.name)]),
        Waits::Pacing => rule::asked_rate::judge(facts).unwrap_or_else(|| part::plain(facts, waits, share)),
        Waits::Unknown | Waits::Uncaptured | Waits::OtherWay | Waits::Nothing => unknown(facts),
        _ => conversation::of(facts, conversation, waits, share),
    };
    vec![temper(facts, conversation, waits, finding)]
}

/// Lowers the confidence of a finding with few samples, round trips or turns.
fn temper(facts: &Facts, conversation: &Conversation, waits: Waits, mut finding: Finding) -> Finding {
    let readings = facts.sent.len().max(facts.received.len());
    let round_trips = facts.rtt_least().map_or(u64::MAX, |rtt| facts.duration_ns / rtt.0.max(1));
    let of_programs = matches!(waits, Waits::Client | Waits::Server | Waits::RoundTrips);
    let most = match () {
        () if of_programs && conversation.turns < TURNS => Confidence::Low,
        () if of_programs && conversation.is_unproved() => Confidence::Medium,
        // Known by gaps in the arrivals: a sender's own window may leave gaps too.
        () if waits == Waits::Writer && facts.sent.is_empty() => Confidence::Medium,
        // The kernel counts it rarely: then a queue behind the window cannot be told from a reader.
        () if waits == Waits::ReceiveWindow && finding.observed(Fact::TimeShare).is_some() => {
            Confidence::Medium
        }
        // A round trip much longer than the minimum is caused by a queue or a reader: a larger window may help little.
        () if waits == Waits::ReceiveWindow && is_stretched(facts) => Confidence::Medium,
        () if readings < READINGS || round_trips < ROUND_TRIPS => Confidence::Medium,
        () => Confidence::High,
    };
    finding.confidence = finding.confidence.min(most);
    finding
}

/// Whether the round trip is usually longer than the minimum by more than half.
fn is_stretched(facts: &Facts) -> bool {
    let queue = watched::queue_of(facts).and_then(|queue| queue.figures());
    queue.is_some_and(|fact::RoundTripAboveLeast { round_trip, least }| {
        round_trip.0 as f64 > 1.5 * least.0 as f64
    })
}

fn unknown(facts: &Facts) -> Finding {
    if facts.sent.is_empty() { watched::elsewhere(facts) } else { rule::unknown::judge(facts) }
}

/// A connection being established; nothing while its first SYN may still be answered.
fn not_established(conversation: &Conversation) -> Option<Finding> {
    let tries = conversation.sent_in_vain;
    if tries == 0 {
        return None;
    }
    let confidence = if tries >= IN_VAIN { Confidence::High } else { Confidence::Medium };
    let finding = Finding::new(Limit::NotEstablished, Place::path(), confidence)
        .cause(Cause::NoAnswer)
        .evidence([
            Evidence::count(fact::SynsSent { time: Nanos(conversation.in_vain_ns) }, tries + 1).at_least(1.0)
        ]);
    Some(finding)
}

fn socket(facts: &Facts) -> SocketFacts {
    facts.sender.socket.or(facts.receiver.socket).unwrap_or_default()
}

/// The quota of the control group of this end's program.
fn throttled(facts: &Facts) -> Option<Finding> {
    let (end, place) = match facts.sender.socket {
        Some(_) => (&facts.sender, Place::sender(&facts.sender.name)),
        None => (&facts.receiver, Place::receiver(&facts.receiver.name)),
    };
    let quota = end.socket?.quota?;
    let name = &end.name;
    let finding = Finding::new(Limit::Cpu, place, Confidence::High)
        .cause(Cause::Throttled)
        .evidence([Evidence::share(fact::Throttled, quota.share)
            .samples(quota.throttled, quota.periods)
            .on(name)])
        .remedy(Remedy::new(Action::RaiseQuota).host(name));
    Some(finding)
}

/// As much is in flight as the programs' own protocol allows. A sender that writes steadily, and is answered all the time, looks the same.
fn program_window(facts: &Facts, conversation: &Conversation, share: f64) -> Finding {
    let amount = conversation.amount_bytes as f64;
    Finding::new(
        Limit::ProgramWindow,
        conversation::giver(facts, conversation),
        sure(share).min(Confidence::Medium),
    )
    .evidence([Evidence::count(
        fact::StoppedAtAmount { amount: Bytes(amount) },
        conversation.stops_at_amount,
    )])
    .remedy(Remedy::new(Action::LargerProgramWindow).value(Quantity::bytes(amount)))
}

/// Packets in flight fill the send buffer, and the next write waits until some are acknowledged.
fn send_buffer(facts: &Facts, share: f64) -> Finding {
    let socket = socket(facts);
    let name = &facts.sender.name;
    let asked = socket.send_buffer_asked;
    let cause = match asked {
        Some(true) => Some(Cause::SocketBufferAsked),
        _ => facts
            .send_buffer_bytes
            .zip(crate::setting::maximum(&facts.sender, Setting::TcpWmem))
            .filter(|&(buffer, most)| buffer >= most)
            .map(|_| Cause::WmemMaximum),
    };
    let window = facts.window_use();
    let (met, of) = socket.buffer_taken;
    let explained = window.and_then(|w| {
        // A socket that was empty in most samples explains nothing.
        let carried = facts.rate_bps(w.in_flight_bytes).filter(|&bps| bps > 0.0)?;
        Some(Evidence::share(
            fact::OfFlightRate {
                in_flight: Bytes(w.in_flight_bytes),
                round_trip: facts.rtt_loaded()?,
                carries: Bps(carried),
                streams: None,
            },
            facts.stream_bps() / carried,
        ))
    });
    let confidence = match asked {
        Some(true) => sure(share),
        _ => sure(share).min(Confidence::Medium),
    };
    let room = window.map(|w| {
        Evidence::share(fact::WindowsHaveRoom { window: Bytes(w.receive_bytes) }, w.congestion_full)
            .share_of(w.samples)
    });
    let payload = facts.send_buffer_bytes.zip(window).filter(|(_, w)| of > 0 && w.in_flight_bytes > 0.0).map(
        |(buffer, w)| {
            Evidence::share(
                fact::BufferPayload { buffer: Bytes(buffer as f64) },
                w.in_flight_bytes / buffer as f64,
            )
            .samples(met, of)
        },
    );
    Finding::new(Limit::SendBuffer, Place::sender(name), confidence)
        .cause(cause)
        .evidence(explained)
        .evidence(payload)
        .evidence(room)
        .remedy(match cause {
            Some(Cause::SocketBufferAsked) => {
                Remedy::new(Action::AskSocketBuffer).setting("SO_SNDBUF").host(name)
            }
            _ => Remedy::new(Action::RaiseMaximum).setting(Setting::TcpWmem).host(name),
        })
}

/// The path's effect: nothing gets through, a queue stands, or losses keep the window small.
fn path(facts: &Facts, conversation: &Conversation) -> Finding {
    if let Some(finding) = vanished(facts, conversation) {
        return finding;
    }
    let spent = &conversation.spent;
    let queued = spent.share(TimeState::FullPath);
    let probing = spent.share(TimeState::Probing);
    let lost = spent.share_of(|state| state.waits() == Waits::Path) - queued - probing;
    if queued >= lost.max(probing) {
        return full(facts, queued);
    }
    if probing >= lost {
        return watched::standing_queue(facts)
            .or_else(|| by_model(facts, probing))
            .unwrap_or_else(|| unknown(facts));
    }
    // A sender by model keeps its rate through losses, and what it fills is the path.
    if let Some(finding) = watched::standing_queue(facts).filter(|_| facts.sends_by_model()) {
        return finding;
    }
    rule::OVERTAKEN
        .iter()
        .chain(&rule::LOSSES)
        .find_map(|rule| rule(facts))
        .or_else(|| losses(facts, lost))
        .unwrap_or_else(|| watched::standing_queue(facts).unwrap_or_else(|| unknown(facts)))
}

/// A receiver's view of the path: data that flows all the time through a queue, or of which some is missing at an idle round trip.
fn path_at_receiver(facts: &Facts, conversation: &Conversation) -> Finding {
    // What this end sent was lost, and retransmitted by its timer, before it was answered.
    let of_path = conversation.spent.share_of(|state| state.waits() == Waits::Path);
    let repaired = conversation.spent.share(TimeState::Timeout);
    if repaired >= part::MOST * of_path {
        return Finding::new(Limit::RandomLoss, Place::path(), sure(repaired).min(Confidence::Medium))
            .evidence([Evidence::share(fact::Repairing, repaired)])
            .remedy(Remedy::new(Action::FindErrors));
    }
    let Some(queue) = queue_at_receiver(facts) else { return watched::elsewhere(facts) };
    let missing = [Missing::new(Lack::SenderFigures).host(&facts.sender.name)];
    let queued = conversation.spent.share(TimeState::FullPath);
    if queued >= conversation.spent.share(TimeState::CongestionAvoidance) {
        let rates = facts.arrival_rates().filter(|rates| rates[2] > 0.0);
        let steady = rates.map(|rates| rates[0] / rates[2]).filter(|&steady| steady >= STEADY);
        let confidence =
            if steady.is_some() { sure(queued).min(Confidence::Medium) } else { Confidence::Low };
        return Finding::new(Limit::PathRate, Place::path(), confidence)
            .evidence([queue])
            .evidence(steady.map(|steady| {
                Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY)
            }))
            .missing(missing);
    }
    let out_of_order = |sample: Option<&ReceiverSample>| sample.and_then(|s| s.out_of_order).unwrap_or(0);
    let late = out_of_order(facts.received.last()).saturating_sub(out_of_order(facts.received.first()));
    // From here lost and reordered segments look alike.
    Finding::new(Limit::RandomLoss, Place::path(), Confidence::Low)
        .evidence([Evidence::count(fact::CameOutOfOrder, late).at_least(LOSSES as f64), queue])
        .remedy(Remedy::new(Action::FindErrors))
        .missing(missing)
}

/// The round trip of the data, by the timestamps that the sender echoed, above the smallest of this end.
fn queue_at_receiver(facts: &Facts) -> Option<Evidence> {
    let least = Nanos(facts.receiver.socket?.least_rtt_ns?);
    let mut usual: Vec<f64> = facts.received.iter().filter_map(|s| s.rtt_ns).map(|ns| ns as f64).collect();
    let usual = Nanos(median(&mut usual)? as u64);
    Some(Evidence::time(fact::RoundTripAboveLeast { round_trip: usual, least }, usual.saturating_sub(least)))
}

/// Data retransmitted repeatedly, none of which was acknowledged.
fn vanished(facts: &Facts, conversation: &Conversation) -> Option<Finding> {
    let (again, took) = (conversation.sent_in_vain, Nanos(conversation.in_vain_ns));
    let mss = facts.mss_bytes?;
    if again < IN_VAIN || conversation.spent.share(TimeState::Timeout) <= 0.0 {
        return None;
    }
    let last = facts.sent.last()?;
    let in_vain = Evidence::count(fact::SentInVain { time: took }, again).at_least(IN_VAIN as f64);
    let came_before = last.acked_bytes.is_some_and(|bytes| bytes >= 10 * mss);
    let socket = socket(facts);
    if socket.full_segment_waits && (socket.small_ones_pass || !came_before) {
        let confidence = match (socket.small_ones_pass, came_before) {
            (true, false) => Confidence::High,
            (false, _) if last.acked_bytes == Some(0) => Confidence::Low,
            _ => Confidence::Medium,
        };
        let finding = Finding::new(Limit::MtuBlackHole, Place::path(), confidence)
            .evidence([
                Evidence::count(fact::FullSegmentsLost { segment: Bytes(mss as f64) }, again)
                    .at_least(IN_VAIN as f64),
                Evidence::bytes(fact::SegmentSizeKept, mss as f64),
            ])
            .remedy(Remedy::new(Action::ProbeMtu).host(&facts.sender.name));
        return Some(finding);
    }
    if let Some(finding) = conversation::oversized(facts, conversation) {
        return Some(finding);
    }
    let name = &facts.receiver.name;
    let confidence = if again > IN_VAIN { Confidence::Medium } else { Confidence::Low };
    let finding = Finding::new(Limit::PeerGone, Place::receiver(name), confidence)
        .evidence([in_vain.on(name)])
        .remedy(Remedy::new(Action::FindHost).host(name));
    Some(finding)
}

/// The finding for unacknowledged data that got through after all.
pub fn outage_over(gone: &Finding, rtt_ns: Option<u64>) -> Finding {
    let gap = gone.figures().map(|fact::SentInVain { time }| {
        Evidence::time(fact::Gap { round_trips: time.0 / rtt_ns.unwrap_or(0).max(1) }, time)
    });
    Finding::new(Limit::PathChanged, Place::path(), gone.confidence)
        .evidence(gap)
        .remedy(Remedy::new(Action::FindOutage))
}

/// A queue stands most of the time, whatever was lost when slow start filled it.
fn full(facts: &Facts, queued: f64) -> Finding {
    if let Some(finding) = watched::standing_queue(facts) {
        return finding;
    }
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY);
    let confidence = if steady.is_some() { sure(queued).min(Confidence::Medium) } else { Confidence::Low };
    Finding::new(Limit::PathRate, Place::path(), confidence)
        .evidence([Evidence::share(fact::QueuedMostly, queued)])
        .evidence(watched::queue_of(facts))
        .evidence(steady.map(|steady| {
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY)
        }))
        .evidence(observed::retransmitted(facts))
        .missing([Missing::new(Lack::ProbeBeside).host(&facts.receiver.name)])
}

/// A model-based congestion control that always has more to send gets what the path allows.
fn by_model(facts: &Facts, share: f64) -> Option<Finding> {
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY)?;
    let has_more = facts.sent.iter().filter(|s| s.not_sent_bytes > facts.mss_bytes).count();
    if (has_more as f64) < MORE_TO_SEND * facts.sent.len() as f64 {
        return None;
    }
    let at_peak = observed::of_peak(facts, AT_PEAK);
    let confidence = if at_peak.is_some() { sure(share).min(Confidence::Medium) } else { Confidence::Low };
    let finding = Finding::new(Limit::PathRate, Place::path(), confidence)
        .evidence([
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY),
            Evidence::share(fact::TimeShare { time: None }, share).named(TimeState::Probing.name()),
        ])
        .evidence(at_peak)
        .evidence(observed::retransmitted(facts))
        .missing([Missing::new(Lack::ProbeBeside).host(&facts.receiver.name)]);
    Some(finding)
}

/// Losses without a standing queue keep the congestion window small.
fn losses(facts: &Facts, share: f64) -> Option<Finding> {
    let again = observed::retransmitted(facts)?;
    let mut queue = watched::queue_of(facts)?;
    let bound = (QUEUE_SHARE * facts.rtt_least()?.0 as f64).max(QUEUE_NOISE.0 as f64);
    let is_idle = queue.value <= bound;
    let times = facts.retransmits.unwrap_or(0);
    let full = facts.window_use().map(|w| w.congestion_full);
    let (limit, action) = match is_idle {
        true => (Limit::RandomLoss, Action::FindErrors),
        false => (Limit::CongestionLoss, Action::AddCapacity),
    };
    let repaired = facts.time_spent()?.repairs();
    let confidence = match times >= LOSSES && is_idle {
        true => sure(share).min(Confidence::Medium),
        false => Confidence::Low,
    };
    (queue.at_least, queue.at_most) = (None, is_idle.then_some(bound));
    let finding = Finding::new(limit, Place::path(), confidence)
        .evidence([again, queue, Evidence::share(fact::Repairing, repaired)])
        .evidence(full.filter(|&full| full >= 0.5).map(|full| watched::congestion_full(facts, full)))
        .remedy(Remedy::new(action));
    Some(finding)
}
