//! The sending socket's buffer holds no more, while both windows have room.

use bdp_model::facts::{Facts, WindowUse};
use bdp_model::finding::{Confidence, Finding, Limit};
use bdp_model::threshold::{WINDOW_FULL, WORTH_A_WORD};

use crate::text::{maximum, percent, rate, size, time};

/// Share of the busy time that the kernel counts as limited by the buffer.
const LIMITED: f64 = 0.3;
/// Most of it.
const LIMITED_MOSTLY: f64 = 0.5;
/// In flight / `SO_SNDBUF`: the buffer counts the memory of whole packets, of which this much at least is payload.
const PAYLOAD_ROOM: f64 = 0.35;
/// Payload in flight / `SO_SNDBUF` of a buffer that has no room: the rest is headers and the memory that packets take.
const PAYLOAD_HALF: f64 = 0.5;
/// The congestion window is full in fewer of the samples: it holds nothing back.
const CWND_FREE: f64 = 0.1;
/// Goodput / (in flight / round trip): what is in flight explains the goodput.
const FLIGHT_EXPLAINS: std::ops::RangeInclusive<f64> = 0.7..=1.3;
/// The sender has nothing to send in at least this share of the samples.
const STARVED: f64 = 0.5;

/// Claims the limit where the kernel's count, what is in flight and the goodput agree, or two of them.
pub fn judge(facts: &Facts) -> Option<Finding> {
    let window = facts.window_use()?;
    if window.receive_full >= WINDOW_FULL || window.congestion_full >= WINDOW_FULL {
        return None;
    }
    let carried = facts.rate_bps(window.in_flight_bytes)?;
    let reached = facts.stream_bps() / carried;
    let buffer = facts.send_buffer_bytes.filter(|&b| b > 0);
    let counted = facts.sndbuf_limited().is_some_and(|share| share >= LIMITED);
    let full = buffer.is_some_and(|b| window.in_flight_bytes / b as f64 >= PAYLOAD_ROOM);
    let explained = FLIGHT_EXPLAINS.contains(&reached);
    // The kernel knows best; without its word the other two must agree, and it must not say the opposite. It counts only
    // where a write had failed before the last segment left: a write that fits the room exactly it does not see.
    let denied = facts.sndbuf_limited().is_some_and(|share| share < WORTH_A_WORD)
        && !is_used_up(facts, window, buffer);
    if !explained || denied || !(counted || full) {
        return None;
    }
    let mostly = facts.sndbuf_limited().is_some_and(|share| share >= LIMITED_MOSTLY);
    Some(Finding {
        limit: Limit::SendBuffer,
        subject: format!("send buffer of {}", facts.sender.name),
        confidence: match (mostly, full) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Medium,
            (false, true) if counted => Confidence::Medium,
            _ => Confidence::Low,
        },
        summary: format!(
            "limited by the send buffer of {}: {} in flight / {} RTT = {} ({} reached)",
            facts.sender.name,
            size(window.in_flight_bytes),
            time(facts.rtt_loaded()?),
            rate(carried),
            percent(reached)
        ),
        evidence: evidence(facts, window, carried, reached, buffer),
        remedy: Some(remedy(facts, window, buffer)),
        missing: match facts.sndbuf_limited() {
            None => vec!["the kernel's count of the time limited by the send buffer (Linux 4.10)".to_owned()],
            Some(_) => Vec::new(),
        },
    })
}

/// Whether payload in flight takes half a buffer that can't grow, and no pacer holds segments back.
fn is_used_up(facts: &Facts, window: WindowUse, buffer: Option<u64>) -> bool {
    buffer.is_some_and(|b| window.in_flight_bytes >= PAYLOAD_HALF * b as f64 && cannot_grow(facts, b))
        && window.congestion_full < CWND_FREE
        && facts.busy_thread().is_none()
        && !facts.is_paced()
}

fn cannot_grow(facts: &Facts, buffer: u64) -> bool {
    let fixed = facts.asked.socket_buffer.is_some();
    fixed || maximum(&facts.sender, WMEM).is_some_and(|max| buffer >= max)
}

/// Claims the limit where the buffer can't grow, is smaller than what a round trip needs, and the sending kernel has nothing
/// to send in most of the samples: large writes pass the buffer at once, and the next waits until all of one has been
/// acknowledged. The kernel's count does not see it, and bursts fill queues on the path for a moment.
pub fn runs_dry(facts: &Facts) -> Option<Finding> {
    let window = facts.window_use().filter(|w| w.starved >= STARVED)?;
    let buffer = facts.send_buffer_bytes.filter(|&b| b > 0 && cannot_grow(facts, b))?;
    // What even the rate that was reached needs; packets take more memory than their payload.
    let needed = facts.stream_bps() / 8.0 * facts.rtt_idle()?.as_secs_f64();
    if facts.is_paced() || facts.busy_thread().is_some() || window.receive_full >= WINDOW_FULL {
        return None;
    }
    if buffer as f64 >= needed {
        return None;
    }
    Some(Finding {
        limit: Limit::SendBuffer,
        subject: format!("send buffer of {}", facts.sender.name),
        confidence: Confidence::Medium,
        summary: format!(
            "limited by the send buffer of {}, {}: it runs dry between writes in {} of the samples",
            facts.sender.name,
            size(buffer as f64),
            percent(window.starved)
        ),
        evidence: vec![
            format!(
                "nothing was left to send in {} of the samples, while both windows had room for more",
                percent(window.starved)
            ),
            format!(
                "{} in the idle round trip of {} are {}, and the socket buffer is {}",
                rate(facts.stream_bps()),
                time(facts.rtt_idle()?),
                size(needed),
                size(buffer as f64)
            ),
        ],
        remedy: Some(remedy(facts, window, Some(buffer))),
        missing: Vec::new(),
    })
}

fn evidence(
    facts: &Facts,
    window: WindowUse,
    carried: f64,
    reached: f64,
    buffer: Option<u64>,
) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(rtt) = facts.rtt_loaded() {
        let limited = facts
            .sndbuf_limited()
            .map_or_else(String::new, |share| format!(", send buffer full {} of the time", percent(share)));
        all.push(format!(
            "{} in flight / {} = {}, {} of it reached{limited}",
            size(window.in_flight_bytes),
            time(rtt),
            rate(carried),
            percent(reached),
        ));
    }
    let holds = buffer.map(|b| {
        let share = percent(window.in_flight_bytes / b as f64);
        format!(
            "the socket buffer of {} counts whole packets: {share} of it is payload in flight",
            size(b as f64)
        )
    });
    all.extend(holds);
    let name = &facts.sender.name;
    let ends_at = maximum(&facts.sender, WMEM)
        .filter(|_| facts.asked.socket_buffer.is_none())
        .map(|max| format!("tcp_wmem max on {name} is {}", size(max as f64)));
    let needs = facts.needed_bytes().filter(|&needed| needed > window.in_flight_bytes).map(|needed| {
        let ceiling = facts.ceiling.as_ref().map_or(0.0, |c| c.goodput_bps);
        format!("{} needs {} in flight", rate(ceiling), size(needed))
    });
    all.extend(match (needs, ends_at) {
        (Some(needs), Some(ends_at)) => Some(format!("{needs}; {ends_at}")),
        (needs, ends_at) => needs.or(ends_at),
    });
    all.push(format!(
        "both windows have room: the receiver allows {}, the congestion window was full {} of the time",
        size(window.receive_bytes),
        percent(window.congestion_full)
    ));
    all
}

fn remedy(facts: &Facts, window: WindowUse, buffer: Option<u64>) -> String {
    if facts.asked.socket_buffer.is_some() {
        return "ask for a larger socket buffer (--sockbuf), or for none".to_owned();
    }
    let ratio = buffer.map_or(2.0, |b| b as f64 / window.in_flight_bytes).clamp(1.0, 8.0);
    let to = facts
        .needed_bytes()
        .filter(|&needed| needed > window.in_flight_bytes)
        .map_or_else(String::new, |needed| format!(" to {} or more", size(needed * ratio)));
    format!("raise the last number of {WMEM} on {}{to}", facts.sender.name)
}

const WMEM: &str = "net.ipv4.tcp_wmem";
