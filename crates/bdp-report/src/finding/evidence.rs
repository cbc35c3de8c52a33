//! Facts in words.

use bdp_model::finding::{Evidence, Fact, Finding, Limit};
use bdp_model::threshold::MODEL_TOLERANCE;
use bdp_model::units::Nanos;

use crate::number::three_digits;
use crate::time_spent;

use super::quantity::{part, percent, rate, size, small_share, time};

/// Without window scaling no window is larger.
const AT_MOST_64_KIB: &str = "no window is larger than 64 KiB without window scaling (RFC 7323)";

/// A fact as a sentence without its full stop.
pub(super) fn text(finding: &Finding, evidence: &Evidence) -> String {
    let value = evidence.value;
    let other = |index| evidence.other(index);
    let (host, name) = (host(finding, evidence), evidence.name.as_deref().unwrap_or("unknown"));
    let share = || percent(value);
    match evidence.fact {
        Fact::OfWindowRate => format!(
            "{} / {} = {}, {}",
            windows(evidence),
            time(nanos(other(1))),
            rate(other(2)),
            reached(value, "of it ")
        ),
        Fact::OfFlightRate => format!(
            "{} in flight / {} = {}, {}",
            windows(evidence),
            time(nanos(other(1))),
            rate(other(2)),
            reached(value, "of it ")
        ),
        Fact::WindowFull => {
            let what = match finding.limit {
                Limit::PathRate => ": a larger one would lengthen the queue and nothing else".to_owned(),
                _ if evidence.with.len() >= 2 => {
                    let windows = of_each(other(2), size(other(0)));
                    format!(", though {windows} would carry {}", rate(other(1)))
                }
                _ => String::new(),
            };
            format!("the receive window was full {} of the time{what}", share())
        }
        Fact::WindowShrunk => format!(
            "{host} leaves data in its socket: its receive window is below half of {} in {} of the samples, {} at least",
            size(other(0)),
            share(),
            size(other(1))
        ),
        Fact::Unread => format!(
            "{} had come and were not read by the program on {host} (median), and the receive window was {}",
            size(value),
            size(other(0))
        ),
        // What a capture was taken of does not say which congestion control it was.
        Fact::CongestionWindowFull if name.is_empty() => {
            format!("the congestion window was full {} of the time", share())
        }
        Fact::CongestionWindowFull => {
            format!("the congestion window ({name}) was full {} of the time", share())
        }
        Fact::WindowsHaveRoom => format!(
            "both windows have room: the receiver allows {}, the congestion window was full {} of the time",
            size(other(0)),
            share()
        ),
        Fact::Starved => format!(
            "nothing was left to send in {} of the samples, while both windows had room for more",
            share()
        ),
        Fact::KernelCountsWindow => {
            format!("the kernel counts {} of the busy time as limited by it, at least", share())
        }
        Fact::KernelCountsSendBuffer => {
            format!("the kernel counts {} of the busy time as limited by the send buffer", share())
        }
        Fact::BufferPayload if value > 1.0 => format!(
            "more is in flight than the socket buffer of {} holds: the last write may exceed it",
            size(other(0))
        ),
        Fact::BufferPayload => format!(
            "the socket buffer of {} counts whole packets: {} of it is payload in flight",
            size(other(0)),
            share()
        ),
        Fact::BufferBelowNeed => format!(
            "{}{} in the idle round trip of {} are {}, and the socket buffer is {}",
            rate(other(0)),
            if other(3) > 1.0 { " of each stream" } else { "" },
            time(nanos(other(1))),
            size(other(2)),
            size(value)
        ),
        Fact::DelayedAckRate => format!(
            "the window holds few segments, and the acknowledgement of one may wait for the next (RFC 9293, section \
             3.8.6.3): {} and more are what they carry",
            rate(value)
        ),
        Fact::NoWholeSegment => format!(
            "the window holds no whole segment of {}: the sender waits for its persist timer before it sends less",
            size(other(0))
        ),
        Fact::OtherWayQueue => {
            format!("{} of this round trip is the queue of the other direction", time(nanos(value)))
        }
        Fact::SettingMaximum => {
            let (short, max) = match name.strip_prefix("net.ipv4.") {
                Some(short) => (short, " max"),
                None => (name, ""),
            };
            format!("{short}{max} on {host} is {}", size(value))
        }
        Fact::BufferBelowMaximum => format!(
            "tcp_rmem is not what bounds it: the receive buffer of {host} is {}, and may grow to {}",
            size(value),
            size(other(0))
        ),
        Fact::AutotuningSetting => format!(
            "tcp_moderate_rcvbuf is 0 on {host}: the receive buffer stays at its first size, the middle number of tcp_rmem"
        ),
        Fact::ScalingSetting => format!("tcp_window_scaling is 0 on {host}: {AT_MOST_64_KIB}"),
        Fact::ScalingRemoved => format!(
            "tcp_window_scaling is 1 at both ends, and the connection has none: a middlebox removed the option from the \
             handshake; {AT_MOST_64_KIB}"
        ),
        Fact::ScalingAgreed => format!("the connection has no window scaling: {AT_MOST_64_KIB}"),
        Fact::ScalingUsed if value > 0.0 => format!("{host} uses window scaling on this connection"),
        Fact::ScalingUsed => format!("{host} does not use window scaling on this connection"),
        Fact::WindowAsRead => format!("{host} takes the receive window for {}", size(value)),
        Fact::WindowAsked => format!("{name} asks for a window of {}", size(value)),

        Fact::OfCeiling => format!(
            "{} is {} of {}, what {name} leaves to TCP",
            rate(other(0)),
            part(value),
            bdp_model::units::format_bps(other(1))
        ),
        Fact::OfCeilingInDatagrams => format!(
            "{} is {} of the {} that {name} carries in datagrams of this size",
            rate(other(0)),
            part(value),
            rate(other(1))
        ),
        Fact::AboveCeiling => "that is more than the device can carry: its driver reports a wrong speed".to_owned(),
        Fact::OfAskedRate => {
            format!("{} is {} of the {} that {name} asks for", rate(other(0)), part(value), rate(other(1)))
        }
        Fact::Steady if evidence.at_most.is_some() => {
            format!("goodput changes: its lower quartile is {} of the upper one", share())
        }
        Fact::Steady if evidence.at_least.is_none() => {
            format!("the lower quartile of goodput is {} of the upper one", share())
        }
        Fact::Steady => format!("goodput is steady: its lower quartile is {} of the upper one", share()),

        Fact::LoadAdds => format!("load adds {} to the round trip at p95", time(nanos(value))),
        Fact::NoQueue if value > 0.0 => {
            format!("load adds {} to the round trip at p95: no queue was full", time(nanos(value)))
        }
        Fact::NoQueue => "load adds no delay: no queue was full".to_owned(),
        Fact::QueueOneWay => format!(
            "load adds {} to the median one-way delay towards the receiver: a standing queue",
            time(nanos(value))
        ),
        Fact::QueueRoundTrip => {
            format!("load adds {} to the median round trip: a standing queue", time(nanos(value)))
        }

        Fact::Retransmitted => {
            // Each of few segments may have been retransmitted several times.
            let (segments, were) = if value == 1.0 { ("segment", "was") } else { ("segments", "were") };
            if other(1) > 1.0 {
                return format!(
                    "{value:.0} {segments} {were} retransmitted, more than the {:.0} that carried the data",
                    other(0)
                );
            }
            let of = if other(0) > 0.0 { format!(" of {:.0}", other(0)) } else { String::new() };
            format!("{value:.0} {segments}{of} {were} retransmitted, {}", small_share(other(1)))
        }
        Fact::NeedlessRetransmits if value > 0.0 => {
            format!("{value:.0} segments were retransmitted needlessly: {HAD_ALREADY}")
        }
        Fact::NeedlessRetransmits => "no segment was retransmitted needlessly (DSACK)".to_owned(),
        Fact::RetransmittedShare if finding.limit == Limit::ReversePath => format!(
            "only {} of the segments were retransmitted: the way there loses far less",
            share()
        ),
        Fact::RetransmittedShare if value > 1.0 => {
            format!("more segments were retransmitted than delivered, {value:.1} for each")
        }
        Fact::RetransmittedShare => format!("{} of the segments were retransmitted", share()),
        Fact::RetransmittedMeanwhile => {
            format!("{value:.0} segments were retransmitted meanwhile, and the receiver was reading")
        }
        Fact::LossesAtOneRate => format!(
            "{:.0} losses came at rates within {} of {}: a threshold",
            other(0),
            share(),
            rate(other(1))
        ),
        Fact::LossesAtAnyRate => format!(
            "{:.0} losses came at rates that vary by {}: a full queue or a policer drops at about the same rate",
            other(0),
            share()
        ),
        Fact::LossesWhilePaced => format!(
            "experiment: held to {}, below the goodput, it lost segments {value:.0} times; the losses of the test lead to expect {}",
            rate(other(0)),
            three_digits(other(1))
        ),
        Fact::MoreStreams => {
            let queue = match evidence.with.get(2) {
                Some(added) => format!(", and their queue adds {}", time(nanos(added.value))),
                None => String::new(),
            };
            format!(
                "experiment: {:.0} connections reach {}, {} times the goodput of the test{queue}",
                other(1),
                rate(other(0)),
                three_digits(value)
            )
        }
        Fact::BurstDelay => format!(
            "experiment: a burst of {:.0} datagrams lost {:.0}, arrived at {}, and its queue delayed by {} ({} of the round trip)",
            other(1),
            other(2),
            rate(other(3)),
            time(nanos(value)),
            percent(value / other(0).max(1.0))
        ),
        Fact::LostEach => {
            let segments = if value.round() == 1.0 { "segment" } else { "segments" };
            format!("each of {:.0} losses cost {value:.0} {segments} (median)", other(0))
        }
        Fact::Overshoot => format!(
            "the end of slow start cost {:.0} segments, {}: a threshold was overshot",
            other(0),
            if value > 1.0 { "more than were in flight at once".to_owned() } else { format!("{} of those in flight", share()) }
        ),
        Fact::QueueBeforeLosses => format!(
            "just before losses the round trip was {} above its least of {}",
            time(nanos(value)),
            time(nanos(other(0)))
        ),
        Fact::Marked => format!(
            "{:.0} of {:.0} segments arrived with a Congestion Experienced mark, {}",
            other(0),
            other(1),
            small_share(value)
        ),
        Fact::WindowReductions => format!(
            "{name} reduced its window {value:.0} times for marks, {:.0} times for losses",
            other(0)
        ),
        Fact::RateStep => format!(
            "goodput was {} until {} and {} from then on",
            rate(other(0)),
            time(nanos(other(2))),
            rate(other(1))
        ),
        Fact::RoundTripStep => format!(
            "the round trip was {} until {} and {} from then on",
            time(nanos(other(0))),
            time(nanos(other(2))),
            time(nanos(other(1)))
        ),
        Fact::OfPeakRate => format!(
            "goodput is {} of {}, the highest rate of delivery that the sender's kernel saw",
            part(value),
            rate(other(1))
        ),
        Fact::ReadingPaused => format!("the program on {host} held back its reading for {} of the time", share()),
        Fact::NothingToSend => format!("the kernel of {host} waited for the program's next bytes for {} of the time", share()),
        Fact::WaitedForProgram if other(1) > 0.0 => format!(
            "waited for the program on {host} for {}, {} of the time, in {:.0} waits",
            time(nanos(other(0))),
            share(),
            other(1)
        ),
        Fact::WaitedForProgram => {
            format!("waited for the program on {host} for {}, {} of the time", time(nanos(other(0))), share())
        }
        Fact::TurnsTook => format!(
            "{:.0} turns of {} took {}, {} of the time",
            other(1),
            time(nanos(other(2))),
            time(nanos(other(0))),
            share()
        ),
        Fact::StoppedAtAmount => {
            format!("{value:.0} times {} went out, and no more until the other end had asked", size(other(0)))
        }
        Fact::SentInVain => {
            format!("data was sent again {value:.0} times in {} and never acknowledged", time(nanos(other(0))))
        }
        Fact::SynsSent => {
            let again = if value > 1.0 { format!("{value:.0} SYNs in {}", time(nanos(other(0)))) } else { "a SYN".to_owned() };
            format!("{again} to {host}")
        }
        Fact::LeftOpen => {
            format!("all was said, and the connection was left open for {}, {} of the time", time(nanos(other(0))), share())
        }
        Fact::CaptureLacks => format!("the capture lacks {} of the bytes that passed", share()),
        Fact::TimeShare if other(0) > 0.0 => {
            format!("{} took {}, {} of the time", time_spent::named(name), time(nanos(other(0))), share())
        }
        Fact::TimeShare => format!("{} took {} of the time", time_spent::named(name), share()),
        Fact::SmallWriteHeld => format!(
            "{} waited in the send buffer in {} of the samples though both windows had room: less than a segment of {}",
            size(other(0)),
            share(),
            size(other(1))
        ),
        Fact::QueuedMostly => format!("a queue stood on the path for {} of the time", share()),
        Fact::ProbesQueued => format!("{} of the probes under load met a queue", share()),
        Fact::ProbesSilent => format!("no probe was answered for {}", time(nanos(value))),
        Fact::Repairing => format!("repairing losses took {} of the time", share()),
        Fact::SackUsed => "the connection has no selective acknowledgements (SACK)".to_owned(),
        Fact::TimestampsUsed => {
            "the connection has no timestamps, by which a sender sees that a retransmission was not needed".to_owned()
        }
        Fact::QueueWayBack | Fact::QueueWayBackP95 => {
            let own = match evidence.with.is_empty() {
                true => String::new(),
                false => format!(", {} to the way there", time(nanos(other(0)))),
            };
            let of = if evidence.fact == Fact::QueueWayBack { "median" } else { "95th percentile of the" };
            format!("load adds {} to the {of} delay of the way back{own}", time(nanos(value)))
        }
        Fact::MathisRate => carries("Reno", "Mathis et al.", evidence),
        Fact::CubicRate => carries("CUBIC", "RFC 9438", evidence),
        Fact::Reordered => format!(
            "the sender's kernel saw segments reordered {:.0} times, {} of those delivered",
            other(0),
            share()
        ),
        Fact::ProbesLost if evidence.with.is_empty() => {
            let (lost, of) = evidence.samples.map_or((0, 0), |samples| (samples.met, samples.of));
            format!("{lost} of {of} probes were lost on the data's own way under load: the queue was full")
        }
        Fact::ProbesLost => {
            format!("{} of the probes were lost before the load, {} under it", percent(other(0)), share())
        }
        Fact::FullSegmentsLost => {
            format!("{value:.0} retransmissions of full segments, and none was acknowledged")
        }
        Fact::ProbesAnswered => {
            let (met, of) = evidence.samples.map_or((0, 0), |samples| (samples.met, samples.of));
            format!("{met} of {of} small probes came back within {}", time(nanos(value)))
        }
        Fact::LargerThanPassed => {
            format!("it had {}, and the largest that was acknowledged had {}", size(value), size(other(0)))
        }
        Fact::SegmentSizeKept => {
            "no ICMP message lowered the path MTU: a router drops what is too big and does not say so (RFC 2923)"
                .to_owned()
        }
        Fact::Gap => format!("nothing arrived for {}, {:.0} round trips", time(nanos(value)), other(0)),
        Fact::GapShare => format!("nothing arrived for {} of the time", share()),

        Fact::ProbesMeanwhile => {
            let (met, of) = evidence.samples.map_or((0, 0), |samples| (samples.met, samples.of));
            format!("{met} of {of} probes went unanswered meanwhile")
        }

        Fact::TookRoundTrips => {
            format!("{} took {value:.1} round trips of {}", size(other(0)), time(nanos(other(1))))
        }
        Fact::StillInSlowStart => {
            "nothing was lost, and the congestion window had not left slow start at the end".to_owned()
        }
        Fact::WindowGrew => {
            format!("the congestion window grew from {:.0} to {value:.0} segments", other(0))
        }

        Fact::SendingThread => format!("a sending thread used {} of a processor", share()),
        Fact::ReceivingThread => format!("a receiving thread used {} of a processor", share()),
        Fact::BusiestThread => {
            let by = evidence.name.as_ref().map_or_else(String::new, |name| format!(", by {name}"));
            format!("its busiest thread used {} of a processor{by}", share())
        }
        Fact::SendingThreadReady => {
            format!(
                "the sending thread on {host} ran {} of the time, and was ready to run or running for {} of it",
                percent(other(0)),
                share()
            )
        }
        Fact::ReceivingThreadReady => {
            format!(
                "the receiving thread on {host} ran {} of the time, and was ready to run or running for {} of it",
                percent(other(0)),
                share()
            )
        }
        Fact::Throttled => format!("the quota of its control group held it back {} of the time", share()),
        Fact::Stolen => format!("the hypervisor of {host} took {} of its processor time", share()),
        Fact::ReceiverPaused => format!(
            "the receiving process took no sample for {}, at an interval of {}: it did not run",
            time(nanos(value)),
            time(nanos(other(0)))
        ),
        Fact::HostPaused => {
            format!("a host kept the test's own programs from running for {}, and this may be of that", time(nanos(value)))
        }
        Fact::ThroughTunnel => {
            "ssh encrypts, and holds data back by windows of its own (RFC 4254, section 5.2)".to_owned()
        }

        Fact::RateHeld => {
            let whole = if other(1) == 0.0 { " without loss" } else { "" };
            format!("{} for {}{whole}", rate(value), time(nanos(other(0))))
        }
        Fact::LostAtRate => format!(
            "at {} {:.0} of {:.0} datagrams were lost, {}",
            rate(value),
            other(0),
            other(1),
            percent(other(2))
        ),
        Fact::AllArrived => format!(
            "all {value:.0} datagrams came through, {} of payload in {:.0} B each",
            rate(other(0)),
            other(1)
        ),
        Fact::DatagramsLost => {
            format!("{value:.0} of {:.0} datagrams were lost, {}", other(0), percent(other(1)))
        }
        Fact::LostAsAllowed => format!(
            "{:.0} of {:.0} datagrams were lost, {}, where {} was allowed",
            other(0),
            other(1),
            share(),
            percent(evidence.at_most.unwrap_or(0.0))
        ),
        Fact::DroppedBySocket if value == 0.0 => {
            format!("none of them was dropped by {host}, whose socket was never full")
        }
        Fact::DroppedBySocket => {
            let how_many = if value >= other(0) { "all".to_owned() } else { format!("{value:.0}") };
            format!("{how_many} of them were dropped by {host}, whose socket was full (SO_RXQ_OVFL)")
        }
        Fact::DroppedByDevice => {
            let device = evidence.name.as_deref().unwrap_or("its device");
            match finding.limit {
                Limit::HostDrops => format!(
                    "{device} on {host} dropped {value:.0} packets, and {:.0} segments were retransmitted",
                    other(0)
                ),
                Limit::PathLoss => format!(
                    "{device} on {host} dropped {value:.0} packets on the way out, which may be some of them"
                ),
                _ => format!(
                    "{device} on {host} dropped {value:.0} packets, {:.0} datagrams are missing",
                    other(0)
                ),
            }
        }
        Fact::DroppedByBacklog if finding.limit == Limit::HostDrops => format!(
            "the kernel of {host} dropped {value:.0} packets of its backlog (softnet), and {:.0} segments were retransmitted",
            other(0)
        ),
        Fact::DroppedByStack => format!(
            "{value:.0} segments found no room in a socket of {host}, and {:.0} were retransmitted",
            other(0)
        ),
        Fact::DroppedByBacklog => {
            format!("the kernel of {host} dropped {value:.0} packets of its backlog, which may be some of them")
        }
        Fact::Skipped => {
            format!("{value:.0} datagrams were skipped: {host} was more than 20 ms behind schedule")
        }
        Fact::Received => {
            let none = if other(1) == 0.0 { ", none lost" } else { "" };
            format!("{} sent, {} received{none}", rate(other(0)), rate(value))
        }
        Fact::SentOfAsked => {
            format!("{} of the {} asked for were sent, {}", rate(other(0)), rate(other(1)), share())
        }
        Fact::SentUnbounded => format!("{} sent as fast as possible, none lost", rate(value)),
        Fact::DatagramQueue => format!(
            "half of them arrived {} or more after the fastest: a standing queue",
            time(nanos(value))
        ),
        Fact::DatagramDelay => format!("delay was {} above its least at p95", time(nanos(value))),

        Fact::UnreadData => {
            format!("{} wait unread in the socket of {host}, {} of what it holds", size(other(0)), share())
        }
        Fact::ReaderKeepsUp => format!("the program on {host} reads what comes: {} wait unread", size(other(0))),
        Fact::RoundTripAboveLeast => format!(
            "the round trip is {}, and {} at least: {} are queues, of this connection or of others",
            time(nanos(other(0))),
            time(nanos(other(1))),
            time(nanos(value))
        ),
        Fact::WindowHasRoom => format!(
            "the receive window of {host} has room: {} / {} = {}, {} of it used",
            size(other(0)),
            time(nanos(other(1))),
            rate(other(2)),
            share()
        ),
        Fact::CameOutOfOrder => format!("{value:.0} segments came out of order: lost or overtaken on the way"),
    }
}

/// What a response function gives, beside what came through where that is far from it.
fn carries(name: &str, source: &str, evidence: &Evidence) -> String {
    let (model, goodput) = (evidence.value, evidence.other(1));
    let text = format!("{name} carries about {} with such losses ({source})", rate(model));
    match goodput > MODEL_TOLERANCE * model {
        true => format!("{text}; {} came through: the losses were milder than the model's", rate(goodput)),
        false => text,
    }
}

/// A window of each of several streams: `4 x 64 KiB`.
pub(super) fn windows(evidence: &Evidence) -> String {
    of_each(evidence.other(3), size(evidence.other(0)))
}

fn of_each(streams: f64, size: String) -> String {
    if streams > 1.0 { format!("{streams:.0} x {size}") } else { size }
}

/// How much of a rate was reached; no share is more than all.
pub(super) fn reached(share: f64, of_it: &str) -> String {
    /// Less above all of it is the noise of two figures.
    const NOISE: f64 = 0.005;
    match share - 1.0 {
        more if more <= 0.0 => format!("{} {of_it}reached", percent(share)),
        more if more <= NOISE => format!("all {of_it}reached"),
        more => format!("all {of_it}reached and {} more", percent(more)),
    }
}

const HAD_ALREADY: &str = "the receiver had them already (DSACK): late or reordered, not lost";

/// How a fact goes on in the line of the one before it, where the two belong together.
pub(super) fn joined(finding: &Finding, before: Fact, evidence: &Evidence) -> Option<String> {
    let share = || percent(evidence.value);
    Some(match (before, evidence.fact) {
        (Fact::OfWindowRate, Fact::WindowFull) => format!(", window full {} of the time", share()),
        (Fact::WindowShrunk, Fact::WindowFull) => format!(", and full {} of the time", share()),
        (Fact::OfFlightRate, Fact::KernelCountsSendBuffer) => {
            format!(", send buffer full {} of the time", share())
        }
        (Fact::ScalingUsed, Fact::ScalingUsed) => format!(
            ", {} does not: a middlebox removed the window scale option from one segment of the handshake (RFC 7323, \
             section 2.2)",
            host(finding, evidence)
        ),
        (Fact::Retransmitted, Fact::NeedlessRetransmits) if evidence.value > 0.0 => {
            format!("; {:.0} needlessly, {HAD_ALREADY}", evidence.value)
        }
        (Fact::Retransmitted, Fact::NeedlessRetransmits) => "; none needlessly (DSACK)".to_owned(),
        (Fact::RetransmittedShare, Fact::NoQueue) => format!(", and {}", text(finding, evidence)),
        (Fact::Gap, Fact::GapShare) => format!(", {} of the time", share()),
        (Fact::RateHeld, Fact::LostAsAllowed) => format!(": {}", text(finding, evidence)),
        _ => return None,
    })
}

/// The host that a fact is of, or the one that the finding is about.
fn host<'a>(finding: &'a Finding, evidence: &'a Evidence) -> &'a str {
    let host = evidence.host.as_deref().or(finding.place.name.as_deref());
    host.unwrap_or("the host")
}

/// Nanoseconds as they were; findings come from files too.
pub(super) fn nanos(value: f64) -> Nanos {
    Nanos(value.max(0.0) as u64)
}
