//! Socket buffers: what autotuning may reach, beside what the path needs in flight.

use bdp_model::ends::End;
use bdp_model::facts::Facts;
use bdp_model::finding::Limit;
use bdp_model::tuning::{Change, Gain, Reason, Target, Why};

use super::draft::Draft;
use super::host::Host;
use super::path::{Described, Way};
use crate::setting::{RMEM, SOCKET_BUFFER, WMEM};

/// In flight / (rate x round trip): without room a flow is idle at the ends of its rounds, and more would be a queue.
const ROOM: f64 = 1.15;
/// Window / receive buffer, and payload / send buffer, at the least: the rest is the memory that packets take.
const PAYLOAD_LEAST: f64 = 0.5;
/// Buffers are rounded up to a multiple of this.
const ROUND_BYTES: u64 = 16 << 10;
/// Where nobody knows what the path carries, a plan goes no further than so many times what was measured.
const FURTHEST: f64 = 4.0;

/// A buffer of an end, and its setting.
#[derive(Clone, Copy, PartialEq)]
enum Buffer {
    Receive,
    Send,
}

impl Buffer {
    const fn setting(self) -> &'static str {
        match self {
            Self::Receive => RMEM,
            Self::Send => WMEM,
        }
    }

    const fn call(self) -> &'static str {
        match self {
            Self::Receive => "SO_RCVBUF",
            Self::Send => "SO_SNDBUF",
        }
    }
}

/// What a direction needs of a buffer.
struct Need {
    end: End,
    buffer: Buffer,
    in_flight: f64,
    /// Part of the buffer that holds payload.
    share: f64,
    streams: u32,
    gain: Option<Gain>,
}

/// Plans both buffers of a direction. What limits it after that is the rate, as far as it is known.
pub(super) fn add(draft: &mut Draft, way: &Way, near: &Host<'_>, far: &Host<'_>) {
    let facts = &way.facts;
    let Some(rtt) = facts.rtt_idle() else { return };
    let limited = way.findings.first().map(|finding| finding.limit);
    let by_window = matches!(limited, Some(Limit::ReceiveWindow | Limit::SendBuffer));
    let asked = facts.asked.window.is_some().then_some("-w").or(facts
        .asked
        .socket_buffer
        .is_some()
        .then_some(SOCKET_BUFFER));
    if let (Some(option), true) = (asked, by_window) {
        return draft.refuse(None, None, Why::Asked { option: option.to_owned() });
    }
    let Some(rate) = way.rate_bps.or_else(|| by_window.then(|| furthest(way)).flatten()) else { return };
    let streams = facts.streams();
    let in_flight = rate / 8.0 * rtt.as_secs_f64() * ROOM / f64::from(streams);
    let gain = way.rate_bps.filter(|&rate| by_window && rate > facts.goodput_bps).map(|rate| Gain {
        direction: way.direction,
        before_bps: facts.goodput_bps,
        after_bps: rate,
        next: None,
        loaded_rtt_less_ns: None,
    });
    let host = |end| if end == End::Near { near } else { far };
    let needs = [
        Need {
            end: way.receiver(),
            buffer: Buffer::Receive,
            in_flight,
            share: window_share(facts),
            streams,
            gain,
        },
        Need { end: way.sender(), buffer: Buffer::Send, in_flight, share: PAYLOAD_LEAST, streams, gain },
    ];
    for need in needs {
        fit(draft, host(need.end), &need);
    }
}

/// Plans both buffers of a machine, which sends and receives on a path that is described by figures.
pub(super) fn for_both_roles(draft: &mut Draft, host: &Host<'_>, path: &Described) {
    let streams = path.streams.max(1);
    let in_flight = path.rate_bps / 8.0 * path.rtt_ns as f64 / 1e9 * ROOM / f64::from(streams);
    for buffer in [Buffer::Receive, Buffer::Send] {
        let need = Need { end: End::Near, buffer, in_flight, share: PAYLOAD_LEAST, streams, gain: None };
        fit(draft, host, &need);
    }
}

fn fit(draft: &mut Draft, host: &Host<'_>, need: &Need) {
    let name = need.buffer.setting();
    let target = Target::sysctl(name);
    let Some([least, first, most]) = host.triple(name) else {
        return draft.refuse(need.end, target, Why::Unknown);
    };
    let needed = ((need.in_flight / need.share) as u64).next_multiple_of(ROUND_BYTES);
    if most >= needed {
        let why = Why::Enough {
            value: host.value(name).unwrap_or_default().to_owned(),
            needed: needed.to_string(),
        };
        return draft.refuse(need.end, target, why);
    }
    let all = needed.saturating_mul(u64::from(need.streams));
    if let Some(available_bytes) = host.tcp_memory().filter(|&available| all > available) {
        return draft.refuse(need.end, target, Why::Memory { needed_bytes: all, available_bytes });
    }
    draft.program(need.end, format!("setsockopt({}, {})", need.buffer.call(), needed / 2), target.clone());
    draft.change(Change {
        end: need.end,
        target,
        from: Some(format!("{least} {first} {most}")),
        to: format!("{least} {first} {needed}"),
        reason: Reason::Buffer { needed_bytes: needed, in_flight_bytes: need.in_flight as u64 },
        gain: need.gain,
    });
}

/// The part of a receive buffer that is window, as it was measured.
fn window_share(facts: &Facts) -> f64 {
    let share = || {
        let buffer = facts.window.socket_buffer_bytes.filter(|&bytes| bytes > 0)?;
        Some(facts.window.on_the_wire_bytes? as f64 / buffer as f64)
    };
    share().unwrap_or(PAYLOAD_LEAST).clamp(PAYLOAD_LEAST, 1.0)
}

/// How far to go where nobody knows what the path carries: to the next limit that is known, within bounds.
fn furthest(way: &Way) -> Option<f64> {
    let most = FURTHEST * way.facts.goodput_bps;
    let next = way.findings.first()?.next.map(|next| next.goodput_bps);
    Some(next.map_or(most, |next| next.min(most)))
}
