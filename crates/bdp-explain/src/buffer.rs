//! Socket buffers: what a rate needs of one, and whether the host's setting gives it. Remedies and plans both go by this.

use bdp_model::facts::Facts;
use bdp_model::measurement::HostFacts;

use crate::setting::{RMEM, WMEM, maximum, numbers};

/// In flight / (rate x round trip): without room a flow is idle at the ends of its rounds, and more would be a queue.
pub const ROOM: f64 = 1.15;
/// Window / receive buffer, and payload / send buffer, where that was not measured: the rest is the memory that packets take.
pub const PAYLOAD: f64 = 0.5;
/// The same as it was measured, at the least.
const PAYLOAD_LEAST: f64 = 0.125;
/// A buffer of this part of the largest that autotuning may make is bounded by it.
pub const AT_MAXIMUM: f64 = 0.9;
/// Buffers are rounded up to a multiple of this.
const ROUND_BYTES: u64 = 16 << 10;
/// Bytes of a page, in which `tcp_mem` counts.
const PAGE_BYTES: u64 = 4096;

/// A buffer of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Of the receiver.
    Receive,
    /// Of the sender.
    Send,
}

impl Buffer {
    /// The sysctl that bounds its growth.
    pub const fn setting(self) -> &'static str {
        match self {
            Self::Receive => RMEM,
            Self::Send => WMEM,
        }
    }

    /// The option by which a program sets its size, so that the kernel leaves it.
    pub const fn call(self) -> &'static str {
        match self {
            Self::Receive => "SO_RCVBUF",
            Self::Send => "SO_SNDBUF",
        }
    }
}

/// What a setting is beside a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// It is smaller: this is needed.
    Raise(u64),
    /// It is enough.
    Enough,
    /// It is smaller, and the host has not the memory.
    Memory { needed_bytes: u64, available_bytes: u64 },
}

/// Bytes that each of so many streams has in flight at a rate, with room.
pub fn in_flight(rate_bps: f64, rtt_seconds: f64, streams: u32) -> f64 {
    rate_bps / 8.0 * rtt_seconds * ROOM / f64::from(streams.max(1))
}

/// The buffer that holds so much in flight as this part of it.
pub fn size(in_flight: f64, share: f64) -> u64 {
    ((in_flight / share) as u64).next_multiple_of(ROUND_BYTES)
}

/// The part of a buffer that holds payload: as it was measured of one that could not grow.
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
    // Of a socket that holds more than the kernel counts, as one whose segments share pages, half is what others hold.
    share.clamp(PAYLOAD_LEAST, if buffer == Buffer::Send { PAYLOAD } else { 1.0 })
}

/// The size of a buffer that is as large as the host's setting lets it be.
fn bound_by_maximum(facts: &Facts, buffer: Buffer) -> Option<u64> {
    let (size, end) = match buffer {
        Buffer::Receive => (facts.window.socket_buffer_bytes, &facts.receiver),
        Buffer::Send => (facts.send_buffer_bytes, &facts.sender),
    };
    let most = maximum(end, buffer.setting())?;
    size.filter(|&bytes| bytes > 0 && bytes as f64 >= AT_MAXIMUM * most as f64)
}

/// The host's setting beside a need of each of so many streams; `None` if it is not known.
pub fn fit(host: &HostFacts, buffer: Buffer, needed: u64, streams: u32) -> Option<Fit> {
    let most = numbers(host, buffer.setting())?[2];
    if most >= needed {
        return Some(Fit::Enough);
    }
    let all = needed.saturating_mul(u64::from(streams.max(1)));
    // What all connections may have in buffers before TCP saves memory.
    let available = numbers(host, "net.ipv4.tcp_mem").map(|mem| mem[1].saturating_mul(PAGE_BYTES));
    Some(match available.filter(|&available| all > available) {
        Some(available_bytes) => Fit::Memory { needed_bytes: all, available_bytes },
        None => Fit::Raise(needed),
    })
}
