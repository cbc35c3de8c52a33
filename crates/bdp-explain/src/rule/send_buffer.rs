//! The sending socket's buffer holds no more, while both windows have room.

use bdp_model::finding::{Confidence, Finding, Limit};

use crate::seen::{Seen, WindowUse, maximum, percent, rate, size, time};

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
const REACHED: std::ops::RangeInclusive<f64> = 0.7..=1.3;
/// A window that is full in more of the samples is the limit itself.
const WINDOW_FULL: f64 = 0.5;

/// Claims the limit where the kernel's count, what is in flight and the goodput agree, or two of them.
pub fn judge(seen: &Seen<'_>) -> Option<Finding> {
    let window = seen.window.as_ref()?;
    if window.receive_full >= WINDOW_FULL || window.congestion_full >= WINDOW_FULL {
        return None;
    }
    let carried = seen.rate_bps(window.in_flight_bytes)?;
    let reached = seen.stream_bps / carried;
    let buffer = seen.direction.send_buffer_bytes.filter(|&b| b > 0);
    let counted = seen.sndbuf_limited.is_some_and(|share| share >= LIMITED);
    let full = buffer.is_some_and(|b| window.in_flight_bytes / b as f64 >= PAYLOAD_ROOM);
    let explained = REACHED.contains(&reached);
    // The kernel knows best; without its word the other two must agree, and it must not say the opposite. It counts only
    // where a write had failed before the last segment left: a write that fits the room exactly it does not see.
    let denied = seen.sndbuf_limited.is_some_and(|share| share < 0.05) && !is_used_up(seen, window, buffer);
    if !explained || denied || !(counted || full) {
        return None;
    }
    let mostly = seen.sndbuf_limited.is_some_and(|share| share >= LIMITED_MOSTLY);
    Some(Finding {
        limit: Limit::SendBuffer,
        subject: format!("send buffer of {}", seen.sender_name),
        confidence: match (mostly, full) {
            (true, true) => Confidence::High,
            (true, false) => Confidence::Medium,
            (false, true) if counted => Confidence::Medium,
            _ => Confidence::Low,
        },
        summary: format!(
            "the send buffer of {} limits it: {} is what {} in flight carry in {}",
            seen.sender_name,
            rate(seen.stream_bps),
            size(window.in_flight_bytes),
            time(seen.rtt_loaded?)
        ),
        evidence: evidence(seen, window, carried, reached, buffer),
        remedy: Some(remedy(seen, window, buffer)),
        missing: match seen.sndbuf_limited {
            None => vec!["the kernel's count of the time limited by the send buffer (Linux 4.10)".to_owned()],
            Some(_) => Vec::new(),
        },
    })
}

/// Whether payload in flight takes half a buffer that can't grow, and no pacer holds segments back.
fn is_used_up(seen: &Seen<'_>, window: &WindowUse, buffer: Option<u64>) -> bool {
    let largest = maximum(seen.sender, WMEM);
    let fixed = seen.measurement.request.socket_buffer.is_some();
    let paced = seen.direction.congestion_control.starts_with("bbr");
    buffer.is_some_and(|b| {
        window.in_flight_bytes >= PAYLOAD_HALF * b as f64 && (fixed || largest.is_some_and(|max| b >= max))
    }) && window.congestion_full < CWND_FREE
        && seen.busy_process().is_none()
        && !paced
}

fn evidence(
    seen: &Seen<'_>,
    window: &WindowUse,
    carried: f64,
    reached: f64,
    buffer: Option<u64>,
) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(rtt) = seen.rtt_loaded {
        let limited = seen
            .sndbuf_limited
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
    let name = &seen.sender_name;
    let ends_at = maximum(seen.sender, WMEM)
        .filter(|_| seen.measurement.request.socket_buffer.is_none())
        .map(|max| format!("tcp_wmem max on {name} is {}", size(max as f64)));
    let needs = seen.needed_bytes().filter(|&needed| needed > window.in_flight_bytes).map(|needed| {
        let ceiling = seen.measurement.ceiling.as_ref().map_or(0.0, |c| c.goodput_bps);
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

fn remedy(seen: &Seen<'_>, window: &WindowUse, buffer: Option<u64>) -> String {
    if seen.measurement.request.socket_buffer.is_some() {
        return "ask for a larger socket buffer (--sockbuf), or for none".to_owned();
    }
    let ratio = buffer.map_or(2.0, |b| b as f64 / window.in_flight_bytes).clamp(1.0, 8.0);
    let to = seen
        .needed_bytes()
        .filter(|&needed| needed > window.in_flight_bytes)
        .map_or_else(String::new, |needed| format!(" to {} or more", size(needed * ratio)));
    format!("raise the last number of {WMEM} on {}{to}", seen.sender_name)
}

const WMEM: &str = "net.ipv4.tcp_wmem";
