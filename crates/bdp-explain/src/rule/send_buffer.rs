//! A full send buffer, while both windows have room.

use bdp_model::facts::{Facts, WindowUse};
use bdp_model::finding::fact::{self, Bps, Bytes};
use bdp_model::finding::threshold::{BUFFER_PAYLOAD, WINDOW_FULL, WORTH_A_WORD};
use bdp_model::finding::{Action, Cause, Confidence, Evidence, Finding, Lack, Limit, Missing, Place, Remedy};
use bdp_model::tuning::setting::Setting;

use crate::setting::{SOCKET_BUFFER, maximum};
use crate::{next, observed};

/// Share of the busy time that the kernel counts as limited by the buffer.
const LIMITED: f64 = 0.3;
/// The share that is most of it.
const LIMITED_MOSTLY: f64 = 0.5;
/// Payload in flight / `SO_SNDBUF` of a full buffer, about a half: the rest is headers and the packets' memory overhead.
const PAYLOAD_HALF: f64 = 0.42;
/// Share of samples with a full congestion window below which it holds nothing back.
const CWND_FREE: f64 = 0.1;
/// Range of goodput / (in flight / round trip) in which the data in flight explains the goodput.
const FLIGHT_EXPLAINS: std::ops::RangeInclusive<f64> = 0.7..=1.3;
/// Smallest share of samples in which the sender has nothing to send.
const STARVED: f64 = 0.5;

/// Claims the limit if the kernel's count, the data in flight and the goodput agree, or two of them.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let window = facts.window_use()?;
    if window.receive_full >= WINDOW_FULL || window.congestion_full >= WINDOW_FULL {
        return None;
    }
    let carried = facts.rate_bps(window.in_flight_bytes)?;
    let reached = facts.stream_bps() / carried;
    // Several streams with more than that have larger buffers.
    if facts.goodput_bps > FLIGHT_EXPLAINS.end() * f64::from(facts.streams()) * carried {
        return None;
    }
    let buffer = facts.send_buffer_bytes.filter(|&b| b > 0);
    let counted = facts.sndbuf_limited().is_some_and(|share| share >= LIMITED);
    let full = buffer.is_some_and(|b| window.in_flight_bytes / b as f64 >= BUFFER_PAYLOAD);
    let explained = FLIGHT_EXPLAINS.contains(&reached);
    // The kernel's count is best; without it the other two must agree, and it must not contradict them. It counts only
    // if a write failed before the last segment was sent: it misses a write that fits the room exactly.
    let denied = facts.sndbuf_limited().is_some_and(|share| share < WORTH_A_WORD)
        && !is_used_up(facts, window, buffer);
    if !explained || denied || !(counted || full) {
        return None;
    }
    let mostly = facts.sndbuf_limited().is_some_and(|share| share >= LIMITED_MOSTLY);
    let confidence = match (mostly, full) {
        (true, true) => Confidence::High,
        (true, false) => Confidence::Medium,
        (false, true) if counted => Confidence::Medium,
        _ => Confidence::Low,
    };
    let uncounted = facts.sndbuf_limited().is_none();
    let streams = f64::from(facts.streams());
    let finding = Finding::new(Limit::SendBuffer, Place::sender(&facts.sender.name), confidence)
        .cause(cause(facts, buffer))
        .evidence([observed::within(
            Evidence::share(
                fact::OfFlightRate {
                    in_flight: Bytes(window.in_flight_bytes),
                    round_trip: facts.rtt_loaded()?,
                    carries: Bps(streams * carried),
                    streams: observed::several_streams(facts),
                },
                facts.goodput_bps / (streams * carried),
            ),
            FLIGHT_EXPLAINS,
        )])
        .evidence(facts.sndbuf_limited().map(|share| {
            let evidence = Evidence::share(fact::KernelCountsSendBuffer, share);
            if counted { evidence.at_least(LIMITED) } else { evidence }
        }))
        .evidence(buffer.map(|b| {
            let payload = window.in_flight_bytes / b as f64;
            let evidence = Evidence::share(fact::BufferPayload { buffer: Bytes(b as f64) }, payload);
            if full { evidence.at_least(BUFFER_PAYLOAD) } else { evidence }
        }))
        .evidence(ends_at(facts))
        .evidence([Evidence::share(
            fact::WindowsHaveRoom { window: Bytes(window.receive_bytes) },
            window.congestion_full,
        )
        .at_most(WINDOW_FULL)
        .share_of(window.samples)])
        .next(next::after_window(facts, window.in_flight_bytes, receive_window(facts, window)))
        .remedy(remedy(facts, buffer))
        .missing(uncounted.then(|| Missing::new(Lack::SendBufferCount)));
    Some(finding)
}

/// The largest window that the receiver advertises.
fn receive_window(facts: &Facts, window: WindowUse) -> Option<(Limit, f64)> {
    next::receive_window(facts).or(Some((Limit::ReceiveWindow, window.receive_largest_bytes)))
}

/// Autotuning's largest send buffer, if none was requested.
fn ends_at(facts: &Facts) -> Option<Evidence> {
    let most = maximum(&facts.sender, Setting::TcpWmem).filter(|_| facts.asked.socket_buffer.is_none())?;
    Some(Evidence::bytes(fact::SettingMaximum, most as f64).named(Setting::TcpWmem).on(&facts.sender.name))
}

/// What limits the buffer's size, if known.
fn cause(facts: &Facts, buffer: Option<u64>) -> Option<Cause> {
    if facts.asked.socket_buffer.is_some() {
        return Some(Cause::SocketBufferAsked);
    }
    buffer.filter(|&b| cannot_grow(facts, b)).map(|_| Cause::WmemMaximum)
}

/// Whether payload in flight takes half of a buffer that cannot grow, without a pacer holding segments back.
fn is_used_up(facts: &Facts, window: WindowUse, buffer: Option<u64>) -> bool {
    buffer.is_some_and(|b| window.in_flight_bytes >= PAYLOAD_HALF * b as f64 && cannot_grow(facts, b))
        && window.congestion_full < CWND_FREE
        && facts.busy_thread().is_none()
        && !facts.is_paced()
}

fn cannot_grow(facts: &Facts, buffer: u64) -> bool {
    let fixed = facts.asked.socket_buffer.is_some();
    fixed || maximum(&facts.sender, Setting::TcpWmem).is_some_and(|max| buffer >= max)
}

/// Claims the limit if the buffer cannot grow, is smaller than a round trip needs, and the sending kernel has nothing
/// to send in most samples: large writes pass through the buffer in one go, and the next waits until all of one is
/// acknowledged. The kernel's count misses this, and the bursts fill queues on the path for a moment.
pub fn runs_dry(facts: &Facts) -> Option<Finding> {
    let window = facts.window_use().filter(|w| w.starved >= STARVED)?;
    let buffer = facts.send_buffer_bytes.filter(|&b| b > 0 && cannot_grow(facts, b))?;
    // The need of the rate that was reached; packets take more memory than their payload.
    let needed = facts.stream_bps() / 8.0 * facts.rtt_idle()?.as_secs_f64();
    if facts.is_paced() || facts.busy_thread().is_some() || window.receive_full >= WINDOW_FULL {
        return None;
    }
    if buffer as f64 >= needed {
        return None;
    }
    let in_samples = Evidence::share(fact::Starved, window.starved);
    let finding = Finding::new(Limit::SendBuffer, Place::sender(&facts.sender.name), Confidence::Medium)
        .cause(Cause::BufferRunsDry)
        .evidence([
            in_samples.at_least(STARVED).share_of(window.samples),
            Evidence::bytes(
                fact::BufferBelowNeed {
                    goodput: Bps(facts.stream_bps()),
                    round_trip: facts.rtt_idle()?,
                    needed: Bytes(needed),
                    streams: observed::several_streams(facts),
                },
                buffer as f64,
            )
            .at_most(needed),
        ])
        .next(next::after_window(facts, window.in_flight_bytes, receive_window(facts, window)))
        .remedy(remedy(facts, Some(buffer)));
    Some(finding)
}

/// What to change at the sender; nothing for a buffer that could still grow.
fn remedy(facts: &Facts, buffer: Option<u64>) -> Option<Remedy> {
    if facts.asked.socket_buffer.is_some() {
        return Some(Remedy::new(Action::AskSocketBuffer).setting(SOCKET_BUFFER));
    }
    let may_grow =
        buffer.is_some_and(|b| !cannot_grow(facts, b)) && maximum(&facts.sender, Setting::TcpWmem).is_some();
    (!may_grow).then(|| Remedy::new(Action::RaiseMaximum).setting(Setting::TcpWmem).host(&facts.sender.name))
}
