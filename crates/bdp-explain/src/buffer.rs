//! Socket buffers: what a rate needs, and whether the host's setting provides it. Used by remedies and plans.

use bdp_model::facts::Facts;
use bdp_model::measurement::HostFacts;
use bdp_model::tuning::setting::Setting;

use crate::setting::{maximum, numbers};

/// In flight / (rate x round trip): without headroom a flow is idle at the ends of its rounds, and more would only queue.
pub const ROOM: f64 = 1.15;
/// Window / receive buffer, and payload / send buffer, if not measured: the rest is the packets' memory overhead.
pub const PAYLOAD: f64 = 0.5;
/// Smallest measured share that is used.
const PAYLOAD_LEAST: f64 = 0.125;
/// A buffer above this share of autotuning's maximum is limited by it.
pub const AT_MAXIMUM: f64 = 0.9;
/// Buffers are rounded up to a multiple of this.
const ROUND_BYTES: u64 = 16 << 10;
/// Page size in bytes, the unit of `tcp_mem`.
const PAGE_BYTES: u64 = 4096;

/// A socket buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// The receiver's.
    Receive,
    /// The sender's.
    Send,
}

impl Buffer {
    /// The sysctl that limits its growth.
    pub const fn setting(self) -> Setting {
        match self {
            Self::Receive => Setting::TcpRmem,
            Self::Send => Setting::TcpWmem,
        }
    }

    /// The socket option with which a program fixes its size.
    pub const fn call(self) -> &'static str {
        match self {
            Self::Receive => "SO_RCVBUF",
            Self::Send => "SO_SNDBUF",
        }
    }
}

/// A setting compared with a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It is too small: this value is needed.
    Raise(u64),
    /// It is sufficient.
    Enough,
    /// It is too small, but the host lacks the memory.
    Memory { needed_bytes: u64, available_bytes: u64 },
}

/// Bytes in flight that each of these streams needs at a rate, with headroom.
pub fn in_flight(rate_bps: f64, rtt_seconds: f64, streams: u32) -> f64 {
    rate_bps / 8.0 * rtt_seconds * ROOM / f64::from(streams.max(1))
}

/// The buffer size of which this many bytes in flight are the given share.
pub fn size(in_flight: f64, share: f64) -> u64 {
    ((in_flight / share) as u64).next_multiple_of(ROUND_BYTES)
}

/// The share of a buffer that holds payload, measured on a buffer that could not grow.
pub fn payload_share(facts: &Facts, buffer: Buffer) -> f64 {
    let measured = match buffer {
        Buffer::Receive => {
            let window = facts.window_bound().map(|bound| bound.bytes);
            window.zip(bound_by_maximum(facts, buffer))
        }
        Buffer::Send => {
            let window = facts.window_use().map(|window| window.in_flight_bytes);
            window.zip(bound_by_maximum(facts, buffer))
        }
    };
    let share = measured.map_or(PAYLOAD, |(payload, buffer)| payload / buffer as f64);
    // Of a socket that holds more than the kernel counts, as with segments that share pages, other data takes half.
    share.clamp(PAYLOAD_LEAST, if buffer == Buffer::Send { PAYLOAD } else { 1.0 })
}

/// The size of a buffer that has reached the host's maximum.
fn bound_by_maximum(facts: &Facts, buffer: Buffer) -> Option<u64> {
    let (size, end) = match buffer {
        Buffer::Receive => (facts.window.socket_buffer_bytes, &facts.receiver),
        Buffer::Send => (facts.send_buffer_bytes, &facts.sender),
    };
    let most = maximum(end, buffer.setting())?;
    size.filter(|&bytes| bytes > 0 && bytes as f64 >= AT_MAXIMUM * most as f64)
}

/// Compares the host's setting with the need of each stream; `None` if the setting is unknown.
pub fn fit(host: &HostFacts, buffer: Buffer, needed: u64, streams: u32) -> Option<Fit> {
    let most = numbers(host, buffer.setting())?[2];
    if most >= needed {
        return Some(Fit::Enough);
    }
    let all = needed.saturating_mul(u64::from(streams.max(1)));
    // What all connections may use for buffers before TCP saves memory.
    let available = numbers(host, Setting::TcpMem).map(|mem| mem[1].saturating_mul(PAGE_BYTES));
    Some(match available.filter(|&available| all > available) {
        Some(available_bytes) => Fit::Memory { needed_bytes: all, available_bytes },
        None => Fit::Raise(needed),
    })
}
