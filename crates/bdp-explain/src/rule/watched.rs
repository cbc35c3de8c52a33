//! A socket watched from one end: without probes and the other end's figures, its own must suffice. What they cannot show
//! is listed as missing.

use bdp_model::facts::Facts;
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::threshold::{QUEUE_NOISE, QUEUE_SHARE, SAMPLES_MIN, WINDOW_FULL, WINDOW_REACHED};
use bdp_model::finding::{
    Action, Cause, Confidence, Evidence, Figures, Finding, Lack, Limit, Missing, Place, Remedy,
};
use bdp_model::record::{ReceiverSample, SenderSample};
use bdp_model::statistics::median;
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use crate::buffer::AT_MAXIMUM;
use crate::observed;
use crate::setting::maximum;

/// Unread data / the receiver's buffer from which a reader is behind.
const UNREAD: f64 = 0.25;
/// The ratio from which it is certainly behind.
const UNREAD_MOSTLY: f64 = 0.5;
/// Share of samples that the kernel marks as limited by the program, above which a sender does not use its rate.
const APP_LIMITED: f64 = 0.2;
/// Goodput / rate of a window above which the window was not the limit.
const ABOVE: f64 = 1.25;
/// Steady rate: lower / upper quartile.
const STEADY: f64 = 0.7;

/// Unread data: as a share of the socket's capacity, in bytes, and the share of samples with much of it.
struct Unread {
    share: f64,
    bytes: f64,
    often: f64,
    samples: u64,
}

impl Unread {
    fn of(facts: &Facts) -> Option<Self> {
        let one = |sample: &ReceiverSample| {
            let (unread, free) = (sample.unread_bytes? as f64, sample.rcv_wnd_bytes? as f64);
            (unread + free > 0.0).then(|| (unread / (unread + free), unread))
        };
        let all: Vec<(f64, f64)> = facts.received.iter().filter_map(one).collect();
        if all.len() < SAMPLES_MIN {
            return None;
        }
        let mut shares: Vec<f64> = all.iter().map(|&(share, _)| share).collect();
        let mut bytes: Vec<f64> = all.iter().map(|&(_, bytes)| bytes).collect();
        let often = shares.iter().filter(|&&share| share >= UNREAD).count() as f64 / shares.len() as f64;
        Some(Self {
            share: median(&mut shares)?,
            bytes: median(&mut bytes)?,
            often,
            samples: all.len() as u64,
        })
    }

    fn evidence<F: Figures>(&self, fact: impl FnOnce(Bytes) -> F, facts: &Facts) -> Evidence {
        let met = (self.often * self.samples as f64).round() as u64;
        let evidence = Evidence::share(fact(Bytes(self.bytes)), self.share);
        evidence.samples(met, self.samples).on(&facts.receiver.name)
    }
}

/// The reading program leaves data in its socket.
pub fn own_reader(facts: &Facts) -> Option<Finding> {
    let unread = Unread::of(facts).filter(|u| u.often >= WINDOW_FULL && u.share >= UNREAD)?;
    let confidence = if unread.share >= UNREAD_MOSTLY { Confidence::High } else { Confidence::Medium };
    let name = &facts.receiver.name;
    let finding = Finding::new(Limit::SlowReader, Place::receiver(name), confidence)
        .evidence([unread.evidence(|unread| fact::UnreadData { unread }, facts).at_least(UNREAD)])
        .remedy(Remedy::new(Action::FreeReader).host(name));
    Some(finding)
}

/// Goodput / the rate that this end's window carries, by the kernel's estimate of the round trip, with its terms.
fn of_own_window<F: Figures>(facts: &Facts, fact: impl FnOnce(Bytes, Nanos, Bps) -> F) -> Option<Evidence> {
    let mut windows: Vec<f64> =
        facts.received.iter().filter_map(|s| s.rcv_wnd_bytes).map(|bytes| bytes as f64).collect();
    let mut rtts: Vec<f64> = facts.received.iter().filter_map(|s| s.rtt_ns).map(|ns| ns as f64).collect();
    if windows.len() < SAMPLES_MIN || rtts.len() < SAMPLES_MIN {
        return None;
    }
    let (window, rtt) = (median(&mut windows)?, Nanos(median(&mut rtts)? as u64));
    let carries = window * 8.0 / rtt.as_secs_f64().max(1e-9);
    if carries <= 0.0 {
        return None;
    }
    let usual = facts.arrival_rates().map_or(0.0, |rates| rates[1]);
    Some(Evidence::share(fact(Bytes(window), rtt, Bps(carries)), facts.goodput_bps.max(usual) / carries))
}

/// What arrives per round trip is the window that this end advertises.
pub fn own_window(facts: &Facts) -> Option<Finding> {
    let of_window =
        |window, round_trip, carries| fact::OfWindowRate { window, round_trip, carries, streams: None };
    let of_window = of_own_window(facts, of_window)
        .filter(|reached| (WINDOW_REACHED..=ABOVE).contains(&reached.value))?;
    let name = &facts.receiver.name;
    let buffer = facts.window.socket_buffer_bytes.map(|bytes| bytes as f64);
    let largest = maximum(&facts.receiver, Setting::TcpRmem).map(|bytes| bytes as f64);
    let known = buffer.zip(largest);
    let asked = facts.receiver.socket.and_then(|socket| socket.receive_buffer_asked);
    let is_asked = asked == Some(true);
    let at_maximum = known.map(|(buffer, largest)| buffer >= AT_MAXIMUM * largest);
    let evidence = known.filter(|_| !is_asked).map(|(buffer, largest)| match at_maximum {
        Some(true) => Evidence::bytes(fact::SettingMaximum, largest).named(Setting::TcpRmem).on(name),
        _ => Evidence::bytes(fact::BufferBelowMaximum { maximum: Bytes(largest) }, buffer).on(name),
    });
    // A window full for seconds would have grown, so its program may have fixed it: only the program can tell.
    let may_grow = at_maximum == Some(false) && asked == Some(false);
    let finding = Finding::new(Limit::ReceiveWindow, Place::receiver(name), Confidence::Medium)
        .cause(match at_maximum {
            _ if is_asked => Some(Cause::SocketBufferAsked),
            Some(true) => Some(Cause::RmemMaximum),
            Some(false) if may_grow => Some(Cause::BelowMaximum),
            _ => None,
        })
        .evidence([of_window.at_least(WINDOW_REACHED)])
        .evidence(evidence)
        .remedy(match at_maximum {
            _ if is_asked => Some(Remedy::new(Action::AskSocketBuffer).setting("SO_RCVBUF").host(name)),
            Some(true) => Some(Remedy::new(Action::RaiseMaximum).setting(Setting::TcpRmem).host(name)),
            _ => None,
        })
        .missing((at_maximum == Some(false) && !is_asked).then(|| Missing::new(Lack::WindowBound)))
        .missing([Missing::new(Lack::SenderFigures).host(&facts.sender.name)]);
    Some(finding)
}

/// Nothing at this end holds the data back, as far as it can see.
pub fn elsewhere(facts: &Facts) -> Finding {
    let keeps_up = Unread::of(facts).filter(|unread| unread.share < UNREAD);
    let has_room = |window, round_trip, carries| fact::WindowHasRoom { window, round_trip, carries };
    let room = of_own_window(facts, has_room).filter(|used| used.value < WINDOW_REACHED);
    let out_of_order = |sample: Option<&ReceiverSample>| sample.and_then(|s| s.out_of_order);
    let first = out_of_order(facts.received.first());
    let late = out_of_order(facts.received.last()).zip(first).map(|(last, first)| last.saturating_sub(first));
    Finding::new(Limit::Unknown, Place::path(), Confidence::Low)
        .evidence(
            keeps_up.map(|unread| {
                unread.evidence(|unread| fact::ReaderKeepsUp { unread }, facts).at_most(UNREAD)
            }),
        )
        .evidence(room.map(|room| room.at_most(WINDOW_REACHED).on(&facts.receiver.name)))
        .evidence(late.filter(|&late| late > 0).map(|late| Evidence::count(fact::CameOutOfOrder, late)))
        .missing([Missing::new(Lack::SenderFigures).host(&facts.sender.name)])
}

/// The round trip is above its minimum while the congestion window, or bbr's rate, is fully used.
pub fn standing_queue(facts: &Facts) -> Option<Finding> {
    let queue = queue_of(facts).filter(|queue| queue.value >= queue.at_least.unwrap_or(0.0))?;
    let full = facts.window_use().map(|w| w.congestion_full).filter(|&full| full >= WINDOW_FULL);
    let by_bbr = facts.sends_by_model()
        && share_of(&facts.sent, |s| s.app_limited).is_some_and(|share| share < APP_LIMITED);
    if full.is_none() && !by_bbr {
        return None;
    }
    let steady = facts.steadiness().filter(|&steady| steady >= STEADY);
    let confidence = if steady.is_some() { Confidence::Medium } else { Confidence::Low };
    let finding = Finding::new(Limit::PathRate, Place::path(), confidence)
        .evidence([queue])
        .evidence(steady.map(|steady| {
            Evidence::share(fact::Steady { goodput: Bps(facts.goodput_bps) }, steady).at_least(STEADY)
        }))
        .evidence(full.map(|full| congestion_full(facts, full)))
        .evidence(observed::retransmitted(facts))
        .missing([Missing::new(Lack::ProbeBeside).host(&facts.receiver.name)]);
    Some(finding)
}

pub fn congestion_full(facts: &Facts, share: f64) -> Evidence {
    let evidence = Evidence::share(fact::CongestionWindowFull, share).at_least(WINDOW_FULL);
    evidence.share_of(facts.sent.len() as u64).named(&facts.congestion_control)
}

/// The usual round trip above the smallest in the kernel's memory, with the smallest addition that is a queue.
pub fn queue_of(facts: &Facts) -> Option<Evidence> {
    let least = Nanos(facts.sent.iter().filter_map(|s| s.min_rtt_ns).min()?);
    let mut usual: Vec<f64> = facts.sent.iter().filter_map(|s| s.srtt_ns).map(|ns| ns as f64).collect();
    if usual.len() < SAMPLES_MIN {
        return None;
    }
    let usual = Nanos(median(&mut usual)? as u64);
    let bound = (QUEUE_SHARE * least.0 as f64).max(QUEUE_NOISE.0 as f64);
    Some(
        Evidence::time(fact::RoundTripAboveLeast { round_trip: usual, least }, usual.saturating_sub(least))
            .at_least(bound),
    )
}

/// Share of the samples with the answer yes, of those with an answer; `None` of too few.
fn share_of(samples: &[SenderSample], says: impl Fn(&SenderSample) -> Option<bool>) -> Option<f64> {
    let said: Vec<bool> = samples.iter().filter_map(says).collect();
    (said.len() >= SAMPLES_MIN).then(|| said.iter().filter(|&&yes| yes).count() as f64 / said.len() as f64)
}
