//! Limits in words: what a finding is about, its claim, and the sentence that can stand alone.

use bdp_model::finding::{Cause, Evidence, Fact, Finding, Limit};
use bdp_model::units::asked_size;

use super::evidence::{self, nanos};
use super::lines::lines;
use super::noun::noun;
use super::quantity::{part, percent, rate, size, time};

/// What a finding is about: `receive window of ams1`.
pub(crate) fn subject(finding: &Finding) -> String {
    let name = name(finding);
    let words = match finding.limit {
        Limit::ReceiveWindow if finding.cause == Some(Cause::ScalingHalfStripped) => {
            "window scaling on the path"
        }
        Limit::ReceiveWindow => return format!("receive window of {name}"),
        Limit::SendBuffer => return format!("send buffer of {name}"),
        Limit::Ceiling => finding.place.name.as_deref().unwrap_or("the ceiling"),
        Limit::PathRate => "the path's bottleneck",
        Limit::ShallowQueue => "a short queue on the path",
        Limit::HalfDuplex => "a half-duplex medium on the path",
        Limit::CrossTraffic => "other traffic on the path",
        Limit::EcnMarks => "congestion marks (ECN) on the path",
        Limit::CongestionLoss => "a full queue on the path",
        Limit::SackMissing => "loss recovery without SACK",
        Limit::TimestampsMissing => "no TCP timestamps",
        Limit::Policer => "a policer on the path",
        Limit::RandomLoss => "losses that the load does not cause",
        Limit::Reordering => "reordering on the path",
        Limit::MtuBlackHole => "an MTU black hole on the path",
        Limit::PathChanged => "a path that changed during the test",
        Limit::PathLoss => "the path",
        Limit::ReversePath => "the way back",
        Limit::SlowStart => "slow start",
        Limit::AskedRate if finding.cause == Some(Cause::KeptByHost) => {
            return format!("a rate that {name} keeps");
        }
        Limit::AskedRate => "the rate that was asked for",
        Limit::ClientIdle => return format!("client on {name}"),
        Limit::RoundTrips => match finding.cause {
            Some(Cause::TlsSetup) => "the round trips of TLS setup",
            Some(Cause::Handshake) => "making the connection",
            _ => "round trips between questions and answers",
        },
        Limit::ProgramWindow => return format!("window of the program on {name}"),
        Limit::PeerGone => return format!("an end that answers no more, {name}"),
        Limit::NotEstablished => "a connection that was never made",
        Limit::SlowWriter if finding.cause == Some(Cause::ResponseTime) => {
            return format!("response time of {name}");
        }
        Limit::SlowWriter => return format!("writer on {name}"),
        Limit::SlowReader => return format!("reader on {name}"),
        Limit::Nagle => return format!("Nagle's algorithm on {name}"),
        Limit::Cpu if finding.cause == Some(Cause::Throttled) => {
            return format!("processor quota of {name}");
        }
        Limit::Cpu => return format!("processor of {name}"),
        Limit::HostDrops if finding.cause == Some(Cause::DeviceDrops) => {
            return format!("network device of {name}");
        }
        Limit::HostDrops => return format!("receive backlog of {name}"),
        Limit::ReceivingHost => return format!("receiving socket of {name}"),
        Limit::SendingHost if finding.cause == Some(Cause::DeviceDrops) => {
            return format!("queue of {} on {name}", device(finding));
        }
        Limit::SendingHost => return format!("sender on {name}"),
        Limit::Unknown => "what limits it",
    };
    words.to_owned()
}

/// One sentence that can stand alone: the claim and its figures.
pub(crate) fn summary(finding: &Finding) -> String {
    let separator = if finding.limit == Limit::Unknown { "; " } else { ": " };
    match figures(finding) {
        Some(figures) => format!("{}{separator}{figures}", claim(finding)),
        None => claim(finding),
    }
}

/// The claim alone.
pub(crate) fn claim(finding: &Finding) -> String {
    let name = name(finding);
    let of = |fact| finding.observed(fact);
    match finding.limit {
        Limit::ReceiveWindow if finding.cause == Some(Cause::ScalingHalfStripped) => {
            let end = |uses: f64| {
                let used = |e: &&Evidence| e.fact == Fact::ScalingUsed && e.value == uses;
                finding.evidence.iter().find(used).and_then(|e| e.host.as_deref()).unwrap_or("one end")
            };
            format!("limited by a receive window that {} scales and {} does not", end(1.0), end(0.0))
        }
        Limit::ReceiveWindow => {
            let asked = of(Fact::WindowAsked).map_or_else(String::new, |asked| {
                let setting = asked.name.as_deref().unwrap_or("the request");
                format!(", which {setting} {} asks for", asked_size(asked.value as u64))
            });
            format!("limited by the receive window of {name}{asked}")
        }
        Limit::SendBuffer => match of(Fact::BufferBelowNeed) {
            Some(buffer) => format!("limited by the send buffer of {name}, {}", size(buffer.value)),
            None => format!("limited by the send buffer of {name}"),
        },
        Limit::Ceiling => match (of(Fact::AllArrived), of(Fact::LostAsAllowed), of(Fact::LoadAdds)) {
            (Some(_), _, _) => "at the ceiling, and nothing was lost".to_owned(),
            (_, Some(lost), _) => format!("at the ceiling, and {}", evidence::text(finding, lost)),
            (_, _, Some(load)) => {
                format!("at the ceiling, stop tuning; but {}", evidence::text(finding, load))
            }
            _ => "at the ceiling, stop tuning".to_owned(),
        },
        Limit::PathRate => "the path's bottleneck is full".to_owned(),
        Limit::ShallowQueue
        | Limit::HalfDuplex
        | Limit::CrossTraffic
        | Limit::EcnMarks
        | Limit::SackMissing
        | Limit::Nagle => format!("limited by {}", subject(finding)),
        Limit::TimestampsMissing => "segments are retransmitted without TCP timestamps".to_owned(),
        Limit::CongestionLoss => "limited by losses of a full queue on the path".to_owned(),
        Limit::RandomLoss => "limited by losses that the load does not cause".to_owned(),
        Limit::Policer => match finding.remedy.as_ref().and_then(|remedy| remedy.value) {
            Some(bps) => format!("limited by a policer on the path, at {} of goodput", rate(bps)),
            None => "limited by a policer on the path".to_owned(),
        },
        Limit::Reordering => "limited by reordering".to_owned(),
        Limit::ReversePath => "limited by the way back".to_owned(),
        Limit::MtuBlackHole => "nothing came through".to_owned(),
        Limit::PathChanged => "the path changed during the test".to_owned(),
        Limit::SlowStart => "limited by slow start".to_owned(),
        Limit::AskedRate if finding.cause == Some(Cause::KeptByHost) => {
            format!("limited by a rate that {name} keeps: a shaper, its device, or its program")
        }
        Limit::AskedRate if of(Fact::OfAskedRate).is_some() => "asked rate reached".to_owned(),
        Limit::AskedRate => "the asked rate came through; the path may carry more".to_owned(),
        Limit::ClientIdle => format!("no limit: the connection waits for the client on {name} to ask"),
        Limit::RoundTrips => match finding.cause {
            Some(Cause::TlsSetup) => "limited by the round trips of TLS setup".to_owned(),
            Some(Cause::Handshake) => "limited by making the connection".to_owned(),
            _ => "limited by round trips between questions and answers".to_owned(),
        },
        Limit::ProgramWindow => format!("limited by what the program on {name} lets be in flight"),
        Limit::PeerGone => format!("{name} answers no more"),
        Limit::NotEstablished => match finding.cause {
            Some(Cause::Refused) => format!("the connection was never made: {name} refused it by a reset"),
            Some(Cause::Unreachable) => {
                "the connection was never made: ICMP said that it can't be reached, or is prohibited"
                    .to_owned()
            }
            _ => format!("the connection was never made: {name} did not answer"),
        },
        Limit::SlowWriter if finding.cause == Some(Cause::ResponseTime) => {
            format!("limited by the response time of {name}")
        }
        Limit::SlowWriter => format!("limited by the writer on {name}"),
        Limit::SlowReader => format!("limited by the reader on {name}"),
        Limit::Cpu => match finding.cause {
            Some(Cause::Throttled) => format!("limited by the processor quota of {name}"),
            Some(Cause::Stolen) => {
                format!("limited by the processor of {name}, of which its hypervisor takes a part")
            }
            Some(Cause::ProcessorShared) => {
                format!("limited by the processor of {name}, which other programs use")
            }
            _ => format!("limited by the processor of {name}"),
        },
        Limit::HostDrops => match finding.cause {
            Some(Cause::DeviceDrops) => format!("limited by packets that the network device of {name} drops"),
            _ => format!("limited by packets that the kernel of {name} drops"),
        },
        Limit::PathLoss => match of(Fact::RateHeld) {
            Some(held) => {
                format!("{} is the most that the path carries {}", rate(held.value), without_loss(held))
            }
            None => path_loss(finding),
        },
        Limit::ReceivingHost => match of(Fact::RateHeld) {
            Some(held) => format!(
                "{} is the most that {name} takes {}; the path may carry more",
                rate(held.value),
                without_loss(held)
            ),
            None => {
                let received = of(Fact::Received).map_or((0.0, 0.0), |e| (e.value, e.other(0)));
                format!(
                    "{name} read {} of {} sent, and dropped what its socket could not hold",
                    rate(received.0),
                    rate(received.1)
                )
            }
        },
        Limit::SendingHost if finding.cause == Some(Cause::DeviceDrops) => {
            format!("{} on {name} dropped what exceeded its rate", device(finding))
        }
        Limit::SendingHost => {
            let sent = of(Fact::SentOfAsked).map(|sent| sent.other(0));
            let sent = sent.or(of(Fact::SentUnbounded).map(|sent| sent.value)).unwrap_or(0.0);
            format!("{name} can send no more than {}; the path carried all of it", rate(sent))
        }
        Limit::Unknown => match may_be(finding) {
            Some(candidates) => format!("limit unknown, perhaps {candidates}"),
            None => "limit unknown".to_owned(),
        },
    }
}

/// What an unknown limit may be, as `random loss (41 %), the policer (33 %) or other traffic (12 %)`.
pub(crate) fn may_be(finding: &Finding) -> Option<String> {
    let mut all: Vec<String> = finding
        .candidates
        .iter()
        .map(|one| format!("{} ({:.0} %)", noun(one.limit), one.probability * 100.0))
        .collect();
    let last = all.pop()?;
    Some(if all.is_empty() { last } else { format!("{} or {last}", all.join(", ")) })
}

/// What the claim rests on first, or is of.
fn figures(finding: &Finding) -> Option<String> {
    let of = |fact| finding.observed(fact);
    match finding.limit {
        Limit::ReceiveWindow if finding.cause == Some(Cause::ScalingHalfStripped) => Some(
            "a middlebox removed the window scale option from one segment of the handshake".to_owned(),
        ),
        Limit::ReceiveWindow => of(Fact::OfWindowRate).map(|of_rate| {
            format!(
                "{} / {} RTT = {} ({})",
                evidence::windows(of_rate),
                time(nanos(of_rate.other(1))),
                rate(of_rate.other(2)),
                evidence::reached(of_rate.value, "")
            )
        }),
        Limit::SendBuffer => match of(Fact::OfFlightRate) {
            Some(of_rate) => Some(format!(
                "{} in flight / {} RTT = {} ({})",
                evidence::windows(of_rate),
                time(nanos(of_rate.other(1))),
                rate(of_rate.other(2)),
                evidence::reached(of_rate.value, "")
            )),
            None => of(Fact::Starved).map(|starved| {
                format!("it runs dry between writes in {} of the samples", percent(starved.value))
            }),
        },
        Limit::PathRate => match of(Fact::Received) {
            Some(received) => Some(format!(
                "{} of {} arrive, and its queue grows",
                rate(received.value),
                rate(received.other(0))
            )),
            None => {
                let queue = of(Fact::QueueOneWay).or(of(Fact::QueueRoundTrip)).or(of(Fact::RoundTripAboveLeast));
                let goodput = rate(of(Fact::Steady)?.other(0));
                Some(match (queue, of(Fact::OfPeakRate)) {
                    (Some(queue), _) => format!("{goodput}, with a standing queue of {}", time(nanos(queue.value))),
                    (None, Some(peak)) => format!(
                        "{goodput}, {} of the highest rate of delivery, without a standing queue",
                        part(peak.value)
                    ),
                    (None, None) => goodput,
                })
            }
        },
        Limit::RandomLoss => {
            let congestion = of(Fact::LossesAtAnyRate).or(of(Fact::LossesWhilePaced))?.name.as_deref().unwrap_or("TCP");
            let lost = part(of(Fact::RetransmittedShare)?.value);
            Some(format!("{lost} of the segments, which keep {congestion}'s window small"))
        }
        Limit::Policer => Some("it drops what exceeds its rate, and has no queue".to_owned()),
        Limit::Reordering => {
            let seen = of(Fact::Reordered)?;
            let congestion = seen.name.as_deref().unwrap_or("TCP");
            Some(format!(
                "segments overtake others {:.0} times, and {congestion} takes late ones for lost",
                seen.other(0)
            ))
        }
        Limit::ReversePath => {
            let Some(lost) = of(Fact::ProbesLost) else { return lines(finding).into_iter().next() };
            Some(format!("it loses acknowledgements, as {} of the probes", percent(lost.value)))
        }
        Limit::MtuBlackHole => {
            let mss = of(Fact::FullSegmentsLost)?.other(0);
            Some(format!("packets of full size ({mss:.0} B of payload) vanish, and small ones arrive"))
        }
        Limit::PathChanged => {
            let Some(gap) = of(Fact::Gap) else { return lines(finding).into_iter().next() };
            let gap = time(nanos(gap.value));
            let share = percent(of(Fact::GapShare)?.value);
            Some(format!("nothing came through for {gap}, {share} of the time"))
        }
        Limit::SlowStart => {
            let took = of(Fact::TookRoundTrips)?;
            let text = evidence::text(finding, took);
            Some(format!("{text}, {} on average", rate(took.other(2))))
        }
        Limit::AskedRate => {
            let reached = rate(of(Fact::OfAskedRate)?.other(0));
            let queued = of(Fact::QueueOneWay).or(of(Fact::QueueRoundTrip)).is_some();
            let beyond =
                if queued { "the path has a standing queue" } else { "the path may carry more" };
            Some(format!("{reached}; {beyond}"))
        }
        Limit::SlowReader => of(Fact::Unread).map(|unread| {
            format!("it leaves {} in its socket (median), so that the receive window closes", size(unread.value))
        }).or_else(|| of(Fact::WindowShrunk).map(|shrunk| {
            format!(
                "it leaves data in its socket, and its receive window is below half of {} in {} of the samples",
                size(shrunk.other(0)),
                percent(shrunk.value)
            )
        })),
        Limit::ReceivingHost => {
            of(Fact::RateHeld).is_none().then(|| "that is no loss of the path".to_owned())
        }
        Limit::SendingHost => (finding.cause == Some(Cause::DeviceDrops))
            .then(|| "it never left the host".to_owned()),
        Limit::Unknown if finding.cause == Some(Cause::Tunnel) => Some(
            "data went through ssh's connection, and the TCP connections seen here end at ssh on either machine"
                .to_owned(),
        ),
        Limit::Ceiling | Limit::PathLoss => None,
        Limit::ShallowQueue
        | Limit::HalfDuplex
        | Limit::CrossTraffic
        | Limit::EcnMarks
        | Limit::CongestionLoss
        | Limit::SackMissing
        | Limit::TimestampsMissing
        | Limit::SlowWriter
        | Limit::ClientIdle
        | Limit::RoundTrips
        | Limit::ProgramWindow
        | Limit::PeerGone
        | Limit::NotEstablished
        | Limit::Nagle
        | Limit::Cpu
        | Limit::HostDrops
        | Limit::Unknown => lines(finding).into_iter().next(),
    }
}

fn path_loss(finding: &Finding) -> String {
    let (came, sent) = finding.observed(Fact::Received).map_or((0.0, 0.0), |e| (e.value, e.other(0)));
    if finding.observed(Fact::DatagramQueue).is_some() {
        return format!("the path carried {} of the {} sent and lost the rest", rate(came), rate(sent));
    }
    let lost = finding.observed(Fact::DatagramsLost).map_or(0.0, |lost| lost.other(1));
    format!("the path lost {} of what was sent at {}", percent(lost), rate(sent))
}

/// Of a rate that was held, with how much loss.
fn without_loss(held: &Evidence) -> String {
    match held.other(2) {
        0.0 => "without loss".to_owned(),
        allowed => format!("with {} lost at most", percent(allowed)),
    }
}

fn name(finding: &Finding) -> &str {
    finding.place.name.as_deref().unwrap_or("the host")
}

fn device(finding: &Finding) -> &str {
    let dropped = finding.observed(Fact::DroppedByDevice);
    dropped.and_then(|dropped| dropped.name.as_deref()).unwrap_or("its device")
}
