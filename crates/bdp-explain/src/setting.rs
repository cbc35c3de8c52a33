//! Names of the settings that users change, and their values on a host.

use bdp_model::facts::{End, Facts, Source};
use bdp_model::measurement::HostFacts;

/// Sizes of the receive buffer.
pub const RMEM: &str = "net.ipv4.tcp_rmem";
/// Sizes of the send buffer.
pub const WMEM: &str = "net.ipv4.tcp_wmem";
/// Whether window scaling is offered.
pub const SCALING: &str = "net.ipv4.tcp_window_scaling";
/// Whether receive buffers are autotuned.
pub const AUTOTUNING: &str = "net.ipv4.tcp_moderate_rcvbuf";
/// A host's congestion control.
pub const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// The option that requests a socket buffer.
pub const SOCKET_BUFFER: &str = "--sockbuf";

/// A setting of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// The window on the wire.
    Window,
    /// The rate of each stream.
    Rate,
    /// Parallel streams.
    Streams,
    /// Payload of a datagram.
    Datagram,
    /// Congestion control of the sender.
    Congestion,
}

/// The name of what changes a setting: an option of a measurement or a key of a scenario.
pub fn name_of(facts: &Facts, setting: Setting) -> &'static str {
    match (facts.source, setting) {
        (Source::Measured, Setting::Window) => "-w",
        (Source::Measured, Setting::Rate) => "-b",
        (Source::Measured, Setting::Streams) => "-P",
        (Source::Measured, Setting::Datagram) => "-l",
        // The sysctl that sets it for the whole host, unless it was requested.
        (_, Setting::Congestion) if facts.asked.congestion.is_none() => CONGESTION_CONTROL,
        (Source::Measured, Setting::Congestion) => "-C",
        (Source::Emulated, Setting::Congestion) => "flow.congestion",
        (Source::Watched | Source::Captured, Setting::Congestion) => "TCP_CONGESTION",
        (Source::Emulated, Setting::Window) => "flow.window",
        (Source::Emulated, Setting::Rate) => "flow.rate",
        (Source::Emulated, Setting::Streams) => "flow.streams",
        (Source::Emulated, Setting::Datagram) => "flow.datagram",
        (Source::Watched | Source::Captured, Setting::Window) => "SO_RCVBUF",
        (Source::Watched | Source::Captured, Setting::Rate) => "SO_MAX_PACING_RATE",
        (Source::Watched | Source::Captured, Setting::Streams) => "parallel connections",
        (Source::Watched | Source::Captured, Setting::Datagram) => "its datagrams",
    }
}

/// The value of a sysctl at an end.
pub fn value_of<'a>(end: &'a End, sysctl: &str) -> Option<&'a str> {
    end.host.sysctls.get(sysctl).map(|value| value.trim())
}

/// The maximum, the last of the three values of `tcp_rmem` or `tcp_wmem`.
pub fn maximum(end: &End, sysctl: &str) -> Option<u64> {
    Some(numbers(&end.host, sysctl)?[2])
}

/// A sysctl of three values.
pub fn numbers(host: &HostFacts, sysctl: &str) -> Option<[u64; 3]> {
    let words = host.sysctls.get(sysctl)?.split_whitespace();
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    numbers.try_into().ok()
}
