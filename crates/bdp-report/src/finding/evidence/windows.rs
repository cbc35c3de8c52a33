//! Facts about windows, buffers and host settings.

use bdp_model::finding::fact::{
    Bps, BufferBelowNeed, BufferPayload, Bytes, OfFlightRate, OfWindowRate, Settings, WindowFull, Windows,
};
use bdp_model::finding::{Finding, Limit};
use bdp_model::tuning::setting::Setting;
use bdp_model::units::Nanos;

use super::super::quantity::{percent, rate, size, time};
use super::seen::{Seen, nanos, reached};

/// Largest window without window scaling.
const AT_MOST_64_KIB: &str = "no window is larger than 64 KiB without window scaling (RFC 7323)";

pub fn of_window(seen: &Seen<'_>, fact: Windows) -> String {
    let (value, share) = (seen.value, || seen.share());
    match fact {
        Windows::OfWindowRate(of) => {
            let windows = of_each(of.streams, of.window);
            let (round_trip, carries) = (time(of.round_trip), rate(of.carries.0));
            format!("{windows} / {round_trip} = {carries}, {}", reached(value, "of it "))
        }
        Windows::OfFlightRate(of) => {
            let carries = in_flight(of.streams, of.in_flight, of.round_trip, of.carries, "");
            format!("{carries}, {}", reached(value, "of it "))
        }
        Windows::WindowFull(full) => {
            format!("the receive window was full {} of the time{}", share(), of_full(seen, full))
        }
        Windows::WindowShrunk(shrunk) => format!(
            "{} leaves data in its socket: its receive window is below half of {} in {} of the samples, {} at least",
            seen.host(),
            size(shrunk.largest.0),
            share(),
            size(shrunk.smallest.0)
        ),
        Windows::Unread(unread) => format!(
            "{} had come and were not read by the program on {} (median), and the receive window was {}",
            size(value),
            seen.host(),
            size(unread.window.0)
        ),
        Windows::CongestionWindowFull(_) => {
            // The source of a capture does not identify the congestion control.
            let of = match seen.name() {
                "" => String::new(),
                name => format!(" ({name})"),
            };
            format!("the congestion window{of} was full {} of the time", share())
        }
        Windows::WindowsHaveRoom(room) => format!(
            "both windows have room: the receiver allows {}, the congestion window was full {} of the time",
            size(room.window.0),
            share()
        ),
        Windows::Starved(_) => {
            format!(
                "nothing was left to send in {} of the samples, while both windows had room for more",
                share()
            )
        }
        Windows::KernelCountsWindow(_) => {
            format!("the kernel counts {} of the busy time as limited by it, at least", share())
        }
        Windows::KernelCountsSendBuffer(_) => {
            format!("the kernel counts {} of the busy time as limited by the send buffer", share())
        }
        Windows::BufferPayload(of) => of_payload(value, of),
        Windows::BufferBelowNeed(need) => format!(
            "{}{} in the idle round trip of {} are {}, and the socket buffer is {}",
            rate(need.goodput.0),
            if need.streams > Some(1) { " of each stream" } else { "" },
            time(need.round_trip),
            size(need.needed.0),
            size(value)
        ),
        Windows::DelayedAckRate(_) => format!(
            "the window holds few segments, and the acknowledgement of one may wait for the next (RFC 9293, section \
             3.8.6.3): {} and more are what they carry",
            rate(value)
        ),
        Windows::NoWholeSegment(none) => format!(
            "the window holds no whole segment of {}: the sender waits for its persist timer before it sends less",
            size(none.segment.0)
        ),
        Windows::OtherWayQueue(_) => {
            format!("{} of this round trip is the queue of the other direction", time(nanos(value)))
        }
    }
}

/// Returns how much of the socket buffer is payload in flight.
fn of_payload(share: f64, of: BufferPayload) -> String {
    let buffer = size(of.buffer.0);
    if share > 1.0 {
        return format!(
            "more is in flight than the socket buffer of {buffer} holds: the last write may exceed it"
        );
    }
    format!(
        "the socket buffer of {buffer} counts whole packets: {} of it is payload in flight",
        percent(share)
    )
}

/// Returns what a full window means.
fn of_full(seen: &Seen<'_>, full: WindowFull) -> String {
    match (seen.finding.limit, full.window, full.carries) {
        (Limit::PathRate, ..) => ": a larger one would lengthen the queue and nothing else".to_owned(),
        (_, Some(window), Some(carries)) => {
            format!(", though {} would carry {}", of_each(full.streams, window), rate(carries.0))
        }
        _ => String::new(),
    }
}

pub fn of_setting(seen: &Seen<'_>, fact: Settings) -> String {
    let (value, host, name) = (seen.value, seen.host(), seen.name());
    match fact {
        Settings::SettingMaximum(_) => {
            let (short, max) = match name.strip_prefix("net.ipv4.") {
                Some(short) => (short, " max"),
                None => (name, ""),
            };
            format!("{short}{max} on {host} is {}", size(value))
        }
        Settings::BufferBelowMaximum(below) => format!(
            "{} is not what bounds it: the receive buffer of {host} is {}, and may grow to {}",
            Setting::TcpRmem.short,
            size(value),
            size(below.maximum.0)
        ),
        Settings::AutotuningSetting(_) => format!(
            "{} is 0 on {host}: the receive buffer stays at its first size, the middle number of {}",
            Setting::TcpModerateRcvbuf.short,
            Setting::TcpRmem.short
        ),
        Settings::ScalingSetting(_) => {
            format!("{} is 0 on {host}: {AT_MOST_64_KIB}", Setting::TcpWindowScaling.short)
        }
        Settings::ScalingRemoved(_) => format!(
            "{} is 1 at both ends, and the connection has none: a middlebox removed the option from the handshake; \
             {AT_MOST_64_KIB}",
            Setting::TcpWindowScaling.short
        ),
        Settings::ScalingAgreed(_) => format!("the connection has no window scaling: {AT_MOST_64_KIB}"),
        Settings::ScalingUsed(_) if value > 0.0 => format!("{host} uses window scaling on this connection"),
        Settings::ScalingUsed(_) => format!("{host} does not use window scaling on this connection"),
        Settings::WindowAsRead(_) => format!("{host} takes the receive window for {}", size(value)),
    }
}

/// Returns the window of each of several streams: `4 x 64 KiB`.
pub fn of_each(streams: Option<u64>, window: Bytes) -> String {
    let window = size(window.0);
    match streams {
        Some(streams) if streams > 1 => format!("{streams} x {window}"),
        _ => window,
    }
}

/// Returns the bytes in flight and the resulting rate: `78.6 KiB in flight
/// 24.6 ms = 26.2 Mbit/s`, with a name for the time.
pub fn in_flight(streams: Option<u64>, bytes: Bytes, round_trip: Nanos, carries: Bps, name: &str) -> String {
    format!("{} in flight / {}{name} = {}", of_each(streams, bytes), time(round_trip), rate(carries.0))
}

/// Returns the number of streams to which a statement on windows applies, from the evidence.
pub fn streams(finding: &Finding) -> u64 {
    let of_window = finding.figures().map(|of: OfWindowRate| of.streams);
    let in_flight = || finding.figures().map(|of: OfFlightRate| of.streams);
    let buffered = || finding.figures().map(|of: BufferBelowNeed| of.streams);
    of_window.or_else(in_flight).or_else(buffered).flatten().unwrap_or(1).max(1)
}
